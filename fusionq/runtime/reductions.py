"""Submissions with reductions: the kernel by work-groups, and kernels that combine their results.

    submit(dot, n, a, b, Reduction(out, "add"))   →   submit(dot', NdRange(m, 256), a, b, partials, n)
                                                      submit(combine_result, 256, out, partials)

where ``m`` is ``n`` rounded up, and ``dot'`` stores a partial result for each work-group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from fusionq.base.call_site import argument_labels, located, user_span
from fusionq.base.dtypes import is_bfloat16
from fusionq.base.errors import ArgumentError, DeviceError, FusionStateError
from fusionq.base.span import Span
from fusionq.frontend.dialect import counterpart
from fusionq.frontend.kernel import KernelFunction
from fusionq.language.ranges import NdRange, Range, as_range
from fusionq.memory.buffer import AccessorArgument, Buffer
from fusionq.memory.foreign import describe
from fusionq.memory.foreign_array import ForeignArray
from fusionq.memory.fusing_queues import LOCK
from fusionq.memory.reduction import Reduction
from fusionq.memory.storage import check_reachable
from fusionq.passes.reduce_by_groups import Result
from fusionq.runtime.combining_kernels import (
    MOST_AT_ONCE,
    STRETCH,
    WORK_GROUP,
    combine_all,
    combine_stretches,
)
from fusionq.runtime.event import Event
from fusionq.runtime.members import share_memory
from fusionq.runtime.state import QueueState
from fusionq.submission.reducing_kernel import ReducedArgument, ReducingKernel

Dependences: TypeAlias = Event | Iterable[object]

Submit: TypeAlias = Callable[..., Event]
"""``FusionQueue.submit``."""

LEAST_ROW, ROW = 16, 64
"""Work-items in the last dimension of a work-group, at least, and where its extent does not say."""


def submit_reducing(
    queue: QueueState,
    submit: Submit,
    kernel: object,
    index_space: object,
    args: Sequence[object],
    depends_on: Dependences,
) -> Event:
    """See ``FusionQueue.submit``, of a kernel with reductions among its arguments; ``submit`` is
    that of the queue.  The event is that of the last kernel that combines."""
    if queue.closed:
        raise FusionStateError(f"{user_span()}: submit on a closed queue; make a new FusionQueue")
    function = _kernel_of(kernel)
    names = function.names_of(len(args))
    if len(names) != len(args):
        raise ArgumentError(
            f"{user_span()}: kernel {function.name!r} takes {len(names)} arguments after its item "
            f"({', '.join(names) or 'none'}), not {len(args)}"
        )
    space = counterpart(index_space)
    space = space if isinstance(space, NdRange) else as_range(space)
    if isinstance(space, Range) and function.work_group_size is not None:
        raise ArgumentError(
            f"{user_span()}: kernel {function.name!r} is made with "
            f"work_group_size={function.work_group_size}, and submitted over {space!r}; submit it "
            f"with NdRange(global_range, {function.work_group_size})"
        )
    groups, extents = _work_groups(space)
    count = prod(groups.global_range) // prod(groups.local_range)
    reductions = {k: arg for k, arg in enumerate(args) if isinstance(arg, Reduction)}
    for k, reduction in reductions.items():
        _check(queue, names, args, k, reduction)
    reducing = _reducing(function, reductions, groups, count, bool(extents))
    given = list(args)
    partials: dict[int, AccessorArgument] = {}
    for k, reduction in reductions.items():
        given[k] = _Labels(names, k).result(reduction.buffer)
        if count != 1:
            given[k] = partials[k] = _Labels(names, k).partials(_buffer(count, reduction))
    with LOCK:
        event = submit(reducing, groups, *given, *extents, depends_on=depends_on)
        for k, results in partials.items():
            reduction = reductions[k]
            if count or reduction.initialize:
                event = _combine(submit, reduction, results, count, _Labels(names, k))
    return event


class _Labels:
    """What a reduction's arrays are called: of the ``position``-th argument of the call, for the
    kernel's parameters ``names``."""

    def __init__(self, names: tuple[str, ...], position: int) -> None:
        self._names, self._position = names, position

    def result(self, array: object) -> AccessorArgument:
        """The array for the result as an argument."""
        return AccessorArgument(array, None, self._text)

    def partials(self, array: Buffer) -> AccessorArgument:
        """An array of partial results as an argument."""
        return AccessorArgument(array, None, lambda span: f"partial results of {self._text(span)}")

    def _text(self, span: Span) -> str:
        return argument_labels(span, self._names)[self._position]


def _combine(
    submit: Submit, reduction: Reduction, results: AccessorArgument, count: int, labels: _Labels
) -> Event:
    """Combine partial results, each ``STRETCH`` of them to one as long as there are too many."""
    while count > MOST_AT_ONCE:
        count = -(-count // STRETCH)
        stretches = labels.partials(_buffer(count, reduction))
        space = NdRange(count * WORK_GROUP, WORK_GROUP)
        submit(combine_stretches(reduction.op), space, stretches, results)
        results = stretches
    kernel = combine_all(reduction.op, reduction.initialize)
    return submit(
        kernel, NdRange(WORK_GROUP, WORK_GROUP), labels.result(reduction.buffer), results
    )


def _buffer(count: int, reduction: Reduction) -> Buffer:
    """Memory for ``count`` partial results."""
    dtype = np.dtype(np.float32) if is_bfloat16(reduction.dtype) else reduction.dtype
    return Buffer(count, np.bool_ if reduction.is_logical else dtype, internal=True)


# ----------------------------------------------------------------------------- the kernel
def _kernel_of(kernel: object) -> KernelFunction:
    if isinstance(kernel, KernelFunction):
        return kernel
    what = f"{type(kernel).__module__}.{type(kernel).__name__}"
    raise ArgumentError(
        f"{user_span()}: a Reduction is an argument of kernels made with @fusionq.kernel, not of "
        f"a {what}; make the kernel with that decorator, or combine with atomic operations"
    )


def _reducing(
    function: KernelFunction,
    reductions: dict[int, Reduction],
    groups: NdRange,
    count: int,
    is_padded: bool,
) -> KernelFunction:
    """The kernel that work-groups run; made once for each way."""

    def result(reduction: Reduction) -> Result:
        if count != 1:
            return "partial"
        return "initialized" if reduction.initialize else "combined"

    reduced = tuple(
        ReducedArgument(k, r.op, r.is_logical, result(r)) for k, r in reductions.items()
    )
    local_range = tuple(groups.local_range)
    key = reduced, local_range, is_padded
    found = function.made.get(key)
    if found is None:
        made = ReducingKernel(function, reduced, local_range, is_padded)
        found = function.made.setdefault(key, made)
    return found


# -------------------------------------------------------------------------- the work-groups
def _work_groups(space: Range | NdRange) -> tuple[NdRange, tuple[int, ...]]:
    """The work-groups of a range: those of an NdRange, and of a Range those that its extents alone
    decide; and the extents of a Range, beyond which some work-groups may reach."""
    if isinstance(space, NdRange):
        return space, ()
    local = group_shape(space)
    padded = [-(-extent // size) * size for extent, size in zip(space, local, strict=True)]
    return NdRange(tuple(padded), local), tuple(space)


def group_shape(extents: Sequence[int]) -> tuple[int, ...]:
    """The work-groups in which a Range is reduced: ``WORK_GROUP`` work-items, or fewer.

    From the last dimension on each takes the greatest divisor of its extent for which there is
    room, so that other kernels over the Range can be fused with it, and the first one what is left.
    A last extent without a divisor from ``LEAST_ROW`` on is rounded up.
    """
    shape = [WORK_GROUP]
    for extent in reversed(extents[1:]):
        room = shape[0]
        divisor = max((d for d in range(1, room + 1) if extent % d == 0), default=1)
        if len(shape) == 1 and divisor < min(LEAST_ROW, extent):
            divisor = ROW
        shape[:1] = [room // divisor, divisor]
    return tuple(shape)


# ------------------------------------------------------------------------------- checks
def _check(
    queue: QueueState, names: Sequence[str], args: Sequence[object], k: int, reduction: Reduction
) -> None:
    """ArgumentError, DeviceError where the result of the ``k``-th argument cannot be stored, or
    shares memory with other arguments."""
    span, array, backend = user_span(), reduction.array, queue.launcher.backend
    try:
        if isinstance(array, ForeignArray):
            check_reachable(backend, array.usm_interface, "the array", array.home)
        elif not array._storage.owned:  # what is owned moves to where kernels need it
            array._storage.check_reachable(backend)
    except (ArgumentError, DeviceError) as error:
        raise type(error)(located(span, f"the Reduction {names[k]!r}: {error}")) from None
    for other, value in enumerate(args):
        memory = None if other == k else _array_of(value)
        if memory is not None and share_memory(array, memory):
            raise ArgumentError(
                f"{span}: the result of the Reduction {names[k]!r} shares memory with the argument "
                f"{names[other]!r}; a kernel sees no result of its own reductions: pass a copy, or "
                "another Buffer for the result"
            )


def _array_of(value: object) -> Buffer | ForeignArray | None:
    """The array of an argument; None for what is none, or is for other checks to refuse."""
    if isinstance(value, Reduction):
        return value.array
    if isinstance(value, AccessorArgument):
        value = value.buffer
    if isinstance(value, Buffer):
        return value
    if isinstance(value, (bool, int, float, complex, tuple, list, np.generic)):
        return None
    try:
        return describe(value)
    except (ArgumentError, DeviceError):
        return None
