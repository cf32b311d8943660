"""Lists of submissions over NumPy views, for tests of analysis, passes and planning."""

from __future__ import annotations

import numpy as np

from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.base.span import Span
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.signature import ArrayType, Signature
from fusionq.ir.types import scalar_type, type_of_scalar
from fusionq.language.ranges import NdRange, as_range


class Flagged:
    """An array argument with promotion flags."""

    def __init__(self, array, *, private=False, local=False, access=None, internal=False):
        self.array = array
        self.buffer_flag = "private" if private else "local" if local else None
        self.access_flag = access
        self.internal = internal


def root(array):
    """The array that owns the memory."""
    while array.base is not None:
        array = array.base
    return array


def argument(name, value):
    flags = value if isinstance(value, Flagged) else Flagged(value)
    if not isinstance(flags.array, np.ndarray):
        return ScalarArgument(name, name, type_of_scalar(value), value)
    array, owner = flags.array, root(flags.array)
    start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return ArrayArgument(
        name=name,
        label=name,
        dtype=scalar_type(array.dtype),
        shape=array.shape,
        strides=array.strides,
        storage=id(owner),
        offset=start,
        address=None,
        owned=True,
        buffer_flag=flags.buffer_flag,
        access_flag=flags.access_flag,
        internal=flags.internal,
    )


def submission(kernel: KernelFunction, items, *args, index=0):
    """What ``queue.submit(kernel, items, *args)`` hands to planning."""
    range_ = items if isinstance(items, NdRange) else as_range(items)
    arguments = tuple(
        argument(name, value) for name, value in zip(kernel.parameter_names, args, strict=True)
    )
    signature = Signature(
        "nd_item" if isinstance(range_, NdRange) else "item",
        range_.ndim,
        tuple(
            ArrayType(a.dtype, len(a.shape)) if isinstance(a, ArrayArgument) else a.type
            for a in arguments
        ),
    )
    return Submission(
        index=index,
        kernel=kernel.specialise(signature),
        signature=signature,
        fingerprint=kernel.fingerprint,
        range=range_,
        arguments=arguments,
        span=Span("user.py", index + 1, f"queue.submit({kernel.name}, …)"),
    )


def submissions(*calls):
    """Several submissions, each given as (kernel, range, *args)."""
    return [submission(*call, index=index) for index, call in enumerate(calls)]


def completed(steps):
    """The result of all steps, one after the other."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
