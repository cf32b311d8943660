"""Submissions with reductions: the kernel by work-groups, and kernels that combine their results.

    submit(dot, n, a, b, Reduction(out, "add"))   →   submit(dot', NdRange(m, 256), a, b, parts, n)
                                                      submit(combine_result, 256, out, parts)

where ``m`` is ``n`` rounded up, and ``dot'`` stores a partial result for each work-group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from fusionq.base.call_site import located, user_span
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.dtypes import is_bfloat16
from fusionq.base.errors import ArgumentError, DeviceError, FusionStateError
from fusionq.base.frozen import dataclass
from fusionq.frontend.dialect import counterpart
from fusionq.frontend.first_kernels import first_like
from fusionq.frontend.kernel import KernelFunction
from fusionq.language.ranges import NdRange, Range, as_range
from fusionq.memory.accessor import AccessorArgument
from fusionq.memory.buffer import Buffer
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
    CombiningKernel,
    combine_all,
    combine_stretches,
)
from fusionq.runtime.event import Event
from fusionq.runtime.members import share_memory
from fusionq.runtime.state import QueueState
from fusionq.submission.reducing_kernel import ReducedArgument, ReducedRange, ReducingKernel

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
    if not isinstance(kernel, KernelFunction):
        raise ArgumentError(
            f"{user_span()}: a Reduction is an argument of kernels made with @fusionq.kernel, not "
            f"of a {type(kernel).__module__}.{type(kernel).__name__}; make the kernel with that "
            "decorator, or combine with atomic operations"
        )
    args = *args, *kernel.left_out(len(args))
    kernel = first_like(kernel)
    space = counterpart(index_space)
    space = space if isinstance(space, NdRange) else as_range(space)
    reductions = {k: arg for k, arg in enumerate(args) if isinstance(arg, Reduction)}
    way = _way(kernel, space, len(args), reductions)
    for k, reduction in reductions.items():
        _check(queue, way.names, args, k, reduction)
    given = list(args)
    with LOCK:
        queue.temporaries.begin(queue.list)
        for k, reduction in reductions.items():
            given[k] = reduction.buffer
            if way.combining:
                given[k] = queue.temporaries.take(way.count, _dtype(reduction))
        event = submit(way.kernel, way.groups, *given, *way.extents, depends_on=depends_on)
        for k, stages in way.combining.items():
            results = given[k]
            for combining, groups, count in stages:
                target = reductions[k].buffer
                if count is not None:
                    target = queue.temporaries.take(count, _dtype(reductions[k]))
                event = submit(combining, groups, target, results)
                results = target
    return event


def _dtype(reduction: Reduction) -> np.dtype[Any]:
    """What partial results are stored in."""
    if reduction.is_logical:
        return np.dtype(np.bool_)
    return np.dtype(np.float32) if is_bfloat16(reduction.dtype) else reduction.dtype


# -------------------------------------------------------------------------------- the kernels
Stage: TypeAlias = tuple[CombiningKernel, NdRange, int | None]
"""A kernel that combines partial results, its range, and how many partial results it gives; None
where that is the result."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How a kernel with the parameters ``names`` runs with reductions: as ``kernel``, with the
    ``extents`` as last arguments, in ``count`` work-groups; then what combines the results of each
    reduction, by its position."""

    names: tuple[str, ...]
    kernel: ReducingKernel
    groups: NdRange
    extents: tuple[int, ...]
    count: int
    combining: dict[int, list[Stage]]


MOST_WAYS = 1024
"""Ways, and kernels, that are remembered for one kernel."""


def _way(
    kernel: KernelFunction, space: Range | NdRange, count: int, reductions: dict[int, Reduction]
) -> _Way:
    """How ``kernel`` runs over ``space``, with ``count`` arguments; made once."""
    key = space, count, *[(k, r.op, r.is_logical, r.initialize) for k, r in reductions.items()]
    way = kernel.made.get(key)
    if way is None:
        if len(kernel.made) >= MOST_WAYS:
            kernel.made.clear()
        way = kernel.made[key] = _new_way(kernel, space, count, reductions)
    assert isinstance(way, _Way)
    return way


def _new_way(
    kernel: KernelFunction, space: Range | NdRange, given: int, reductions: dict[int, Reduction]
) -> _Way:
    names = kernel.names_of(given)
    if len(names) != given:
        raise ArgumentError(f"{user_span()}: {kernel.wrong_count(names, given)}")
    if isinstance(space, Range) and kernel.work_group_size is not None:
        raise ArgumentError(
            f"{user_span()}: kernel {kernel.name!r} is made with "
            f"work_group_size={kernel.work_group_size}, and submitted over {space!r}; submit it "
            f"with NdRange(global_range, {kernel.work_group_size})"
        )
    groups, extents = _work_groups(space)
    count = prod(groups.global_range) // prod(groups.local_range)

    def result(reduction: Reduction) -> Result:
        if count != 1:
            return "partial"
        return "initialized" if reduction.initialize else "combined"

    reduced = tuple(
        ReducedArgument(k, r.op, r.is_logical, result(r)) for k, r in reductions.items()
    )
    run = ReducedRange(tuple(groups.local_range), isinstance(space, Range), bool(extents))
    key = reduced, run
    made = kernel.made.get(key)
    if made is None:
        made = kernel.made[key] = ReducingKernel(kernel, reduced, run)
    assert isinstance(made, ReducingKernel)
    combining = {
        k: _stages(kernel, r, count, names, k) for k, r in reductions.items() if count != 1
    }
    return _Way(names, made, groups, extents, count, combining)


def _stages(
    kernel: KernelFunction,
    reduction: Reduction,
    count: int,
    names: tuple[str, ...],
    position: int,
) -> list[Stage]:
    """What combines ``count`` partial results of a reduction of ``kernel``: each ``STRETCH`` of
    them to one as long as there are too many, and then all."""
    if not count and not reduction.initialize:
        return []
    op, initialize = reduction.op, reduction.initialize

    def made(key: Hashable, make: Callable[[], CombiningKernel]) -> CombiningKernel:
        whole = key, op, names, position
        found = kernel.made.get(whole)
        if found is None:
            found = kernel.made[whole] = make()
        assert isinstance(found, CombiningKernel)
        return found

    stages: list[Stage] = []
    while count > MOST_AT_ONCE:
        count = -(-count // STRETCH)
        groups = NdRange(count * WORK_GROUP, WORK_GROUP)
        stretches = made("stretches", lambda: combine_stretches(op, names, position))
        stages.append((stretches, groups, count))
    last = made(initialize, lambda: combine_all(op, initialize, names, position))
    return [*stages, (last, NdRange(WORK_GROUP, WORK_GROUP), None)]


# -------------------------------------------------------------------------- the work-groups
def _work_groups(space: Range | NdRange) -> tuple[NdRange, tuple[int, ...]]:
    """The work-groups of a range: those of an NdRange, and of a Range those that its extents alone
    decide; and the extents of a Range beyond which they reach."""
    if isinstance(space, NdRange):
        return space, ()
    local = group_shape(space)
    whole = tuple(-(-extent // size) * size for extent, size in zip(space, local, strict=True))
    return NdRange(whole, local), () if whole == tuple(space) else tuple(space)


def group_shape(extents: Sequence[int]) -> tuple[int, ...]:
    """The work-groups in which a Range is reduced: ``WORK_GROUP`` work-items, or fewer.

    From the last dimension on each takes the greatest divisor of its extent for which there is
    room, so that other kernels over the Range can be fused with it, and the first one what is left,
    of three no more than a GPU's blocks have threads in z.  A last extent without a divisor from
    ``LEAST_ROW`` on is rounded up.
    """
    shape = [WORK_GROUP]
    for extent in reversed(extents[1:]):
        room = shape[0]
        divisor = max((d for d in range(1, room + 1) if extent % d == 0), default=1)
        if len(shape) == 1 and divisor < min(LEAST_ROW, extent):
            divisor = ROW
        shape[:1] = [room // divisor, divisor]
    if len(shape) > 2:
        shape[0] = min(shape[0], CODE_LIMITS.block_planes)
    return tuple(shape)


# ------------------------------------------------------------------------------- checks
def _check(
    queue: QueueState, names: Sequence[str], args: Sequence[object], k: int, reduction: Reduction
) -> None:
    """ArgumentError, DeviceError where the result of the ``k``-th argument cannot be stored, or
    shares memory with other arguments."""
    array, backend = reduction.array, queue.launcher.backend
    try:
        if isinstance(array, ForeignArray):
            check_reachable(backend, array.usm_interface, "the array", array.home)
        elif not array._storage.owned:  # what is owned moves to where kernels need it
            array._storage.check_reachable(backend)
    except (ArgumentError, DeviceError) as error:
        raise type(error)(located(user_span(), f"the Reduction {names[k]!r}: {error}")) from None
    for other, value in enumerate(args):
        if isinstance(value, Buffer) and isinstance(array, Buffer):
            theirs, ours = value._storage, array._storage
            if theirs is not ours and theirs.owned and ours.owned:
                continue
        memory = None if other == k else _array_of(value)
        if memory is not None and share_memory(array, memory):
            raise ArgumentError(
                f"{user_span()}: the result of the Reduction {names[k]!r} shares memory with the "
                f"argument {names[other]!r}; a kernel sees no result of its own reductions: pass a "
                "copy, or another Buffer for the result"
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
