"""The commands of a queue that are not kernels: copy, fill, a function on the host.

They run on the host, in the queue's order: they wait for the launches that they depend on, and
have run when the call returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError, DeviceError, FusionStateError
from fusionq.ir.types import type_of_scalar
from fusionq.memory.buffer import Buffer, host_backend, host_view
from fusionq.memory.foreign import ForeignArray, describe
from fusionq.memory.fusing_queues import LOCK, QUEUES
from fusionq.memory.region import Region
from fusionq.runtime.event import Event
from fusionq.runtime.state import QueueState


def memcpy(queue: QueueState, dst: object, src: object) -> Event:
    """See ``FusionQueue.memcpy``."""
    target, source = _operand("memcpy", dst), _operand("memcpy", src)
    _require_writable("memcpy", target)
    if (target.shape, target.dtype) != (source.shape, source.dtype):
        raise ArgumentError(
            f"{user_span()}: memcpy copies between arrays of one shape and dtype, not from "
            f"{source.shape} {source.dtype} to {target.shape} {target.dtype}; slice or convert one"
        )
    into, out_of = _host_arrays(queue, "memcpy", (target, True), (source, False))
    np.copyto(into, out_of)
    return Event()


def fill(queue: QueueState, buffer: object, value: object) -> Event:
    """See ``FusionQueue.fill``."""
    target = _operand("fill", buffer)
    _require_writable("fill", target)
    element = _element(value, target.dtype)
    if element is None:
        raise ArgumentError(
            f"{user_span()}: fill cannot put {value!r} into an array of {target.dtype}; give a "
            "number that the dtype can hold"
        )
    (into,) = _host_arrays(queue, "fill", (target, True))
    into[...] = element
    return Event()


def _element(value: object, dtype: np.dtype[Any]) -> Any:
    """``value`` in ``dtype``: any number in a floating type unless it overflows, an integer or
    bool that fits in an integer type, a bool in bool; None for anything else."""
    if type_of_scalar(value) is None:
        return None
    kinds = {"b": "b", "i": "biu", "u": "biu", "f": "biuf"}[dtype.kind]
    number: Any = value.item() if isinstance(value, np.generic) else value
    if np.asarray(number).dtype.kind not in kinds + ("O" if type(number) is int else ""):
        return None
    try:
        with np.errstate(over="ignore"):
            element: Any = np.array(number).astype(dtype)[()]
    except OverflowError:
        return None
    overflows = dtype.kind == "f" and np.isinf(element) and abs(number) != np.inf
    return None if overflows or (dtype.kind != "f" and element != number) else element


def host_task(queue: QueueState, function: Callable[..., object], *buffers: object) -> Event:
    """See ``FusionQueue.host_task``."""
    if not callable(function):
        raise ArgumentError(
            f"{user_span()}: host_task calls a function, not {type(function).__name__}; the order "
            "is host_task(function, *buffers)"
        )
    operands = [(_operand("host_task", buffer), True) for buffer in buffers]
    arrays = _host_arrays(queue, "host_task", *operands)
    queue.launcher.backend.wait()
    function(*arrays)
    return Event()


def _operand(command: str, value: object) -> Buffer | ForeignArray:
    if isinstance(value, Buffer):
        return value
    try:
        foreign = describe(value)
    except ArgumentError as error:
        raise ArgumentError(f"{user_span()}: {command}: {error}") from None
    if foreign is None:
        raise ArgumentError(
            f"{user_span()}: {command} takes Buffers and arrays, not {type(value).__name__}"
        )
    return foreign


def _require_writable(command: str, target: Buffer | ForeignArray) -> None:
    writable = target._storage.writable if isinstance(target, Buffer) else target.writable
    if not writable:
        raise ArgumentError(f"{user_span()}: {command} cannot write to a read-only array")


def _host_arrays(
    queue: QueueState, command: str, *operands: tuple[Buffer | ForeignArray, bool]
) -> list[npt.NDArray[Any]]:
    """The operands (each with whether it is written) on the host, after ending the fusions and
    waiting for the kernels that come before."""
    with LOCK:
        if queue.closed:
            raise FusionStateError(
                f"{user_span()}: {command} on a closed queue; make a new FusionQueue"
            )
        for fusing in tuple(QUEUES):
            if any(fusing.uses(_region(operand), writes) for operand, writes in operands):
                fusing.abort(f"{command} depends on the list")
    arrays = []
    for operand, _ in operands:
        if isinstance(operand, Buffer):
            operand._storage.allocate(host_backend())
            operand._storage.wait()
            arrays.append(operand._host_array())
        else:
            queue.launcher.backend.wait()
            try:
                arrays.append(host_view(operand))
            except DeviceError as error:
                raise DeviceError(f"{user_span()}: {command}: {error}") from None
    return arrays


def _region(operand: Buffer | ForeignArray) -> Region:
    return operand._storage.region if isinstance(operand, Buffer) else operand.region
