"""What identifies a submission's range and arguments to the caches."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from fusionq.analysis.submission import ScalarValue
from fusionq.backends.base import DeviceEvent
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.frontend.constants import constant_type
from fusionq.frontend.dialect import counterpart
from fusionq.frontend.kernel import KernelFunction
from fusionq.ir.record_types import members
from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range, as_range
from fusionq.memory.accessor import AccessorArgument
from fusionq.memory.buffer import Buffer
from fusionq.memory.foreign import array_members, foreign_token
from fusionq.memory.gpu_arrays import gpu_argument
from fusionq.memory.host_objects import shared_array
from fusionq.submission.call_arguments import CallArguments

SCALAR_CLASSES = frozenset(
    (
        bool, int, float, np.bool_, np.float16, np.float32, np.float64,
        np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    )
)  # fmt: skip
"""The scalars that need no further check; others are checked when first seen."""


def range_or_none(range: Any) -> Range | NdRange | None:
    """``range`` as a Range or an NdRange, another package's as ours; None where that is neither,
    for the checks to refuse.  (8.0 equals 8, and must not pass for it.)"""
    try:
        if type(range) is tuple:
            for extent in range:
                if type(extent) is not int:  # which may have another value the next time
                    return Range(*range)
            return _range_of(*range)
        if type(range) is int:
            return _range_of(range)
        range = counterpart(range)
        return range if isinstance(range, NdRange) else as_range(range)
    except (ArgumentError, TypeError):
        return None


_range_of = lru_cache(256)(Range)


def defaults_behind(kernel: object, given: int) -> tuple[object, ...]:
    """The defaults of the parameters that the ``given`` arguments of a submission leave out."""
    if isinstance(kernel, KernelFunction) and kernel.function.__defaults__:
        return kernel.left_out(given)
    return ()


def sort_argument(
    arg: object, call: CallArguments, memory: list[object], values: list[ScalarValue]
) -> object:
    """The token of an argument that is neither a plain Buffer nor a plain number, which joins
    the others of its ``call``, whose arrays and scalars so far are ``memory`` and ``values``."""
    if type(arg) is np.ndarray:
        return _foreign_token(arg, call, memory)
    if isinstance(arg, AccessorArgument):
        if isinstance(arg.buffer, Buffer):
            return _buffer_token(arg.buffer, memory), arg.promote
        return _foreign_token(arg.buffer, call, memory), arg.promote
    if isinstance(arg, Buffer):
        return _buffer_token(arg, memory)
    if isinstance(arg, (complex, np.complexfloating)):
        values += (arg.real, arg.imag)
        return type(arg)
    if isinstance(arg, (bool, int, float, np.generic)):
        values.append(arg)
        return type(arg)
    arg = counterpart(arg)
    if isinstance(arg, LocalAccessor):
        return arg
    if arg is None or isinstance(arg, (tuple, list, str, Enum)):
        return constant_type(arg)
    return _foreign_token(arg, call, memory)


def _buffer_token(buffer: Buffer, memory: list[object]) -> object:
    """The token of a Buffer; one of records is one array argument for each field."""
    memory += [buffer._storage] * (len(members(buffer._dtype)) or 1)
    return buffer._token


def _is_among(work: DeviceEvent, others: Sequence[DeviceEvent]) -> bool:
    """Whether a stream's work is that of one of the ``others``."""
    handle = getattr(work, "handle", None)
    return handle is not None and any([getattr(o, "handle", None) == handle for o in others])


def _foreign_token(arg: object, call: CallArguments, memory: list[object]) -> object:
    """The token of an array of another library, which the ``call`` keeps alive; None where the
    checks are to refuse it."""
    token = foreign_token(arg)
    if token is None:
        try:
            on_gpu = gpu_argument(arg)
            if on_gpu is not None:
                token, work = on_gpu
                if work is not None and not _is_among(work, call.depends):
                    call.depends = [*call.depends, work]
            else:
                arg = shared_array(arg)
                token = foreign_token(arg)
        except (ArgumentError, DeviceError):
            return None
    memory += [arg] * (len(array_members(arg)) or 1)
    call.foreign = [*call.foreign, arg]
    return token
