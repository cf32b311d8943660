"""A list whose kernels have 64 bits for indices that are made of ids in fewer.

    i = int32(item.get_id(0))                i = item.get_id(0)
    o[i] = a[i] + a[i + 1]            →      o[i] = a[i] + a[i + 1]

What keeps sums in 32 bits from wrapping around are the sizes and integer scalars of the list: the
plan asks for some of about the same size.  On devices that are faster with indices of 32 bits it is
the other way round (``codegen/narrow_indices.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.ir.interval_arithmetic import Interval, of_type, within
from fusionq.ir.nodes import SMALL, Expr, Extent, ItemQuery, Kernel, Param
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import expressions
from fusionq.passes.wide_ids import has_narrow_ids, with_wide_ids

LEAST_BOUND = 1 << 10
"""Sizes and scalars below it are served by one plan; above it a plan serves those up to the next
power of two.  The product of three such numbers is within 32 bits."""


@dataclass(frozen=True)
class WidenedList:
    """``submissions``, some of them with other kernels, for sizes and scalars within ``sizes``
    (by the size today) and ``scalars`` (by their places), and for arrays that are small where those
    of ``shapes`` (today) are."""

    submissions: tuple[Submission, ...]
    sizes: Mapping[int, Interval]
    scalars: Mapping[Source, Interval]
    shapes: Collection[tuple[int, ...]]

    def rests_on(self, validity: ListValidity) -> None:
        """Let ``validity`` remember for which sizes and scalars the kernels are right."""
        for extent, (low, high) in self.sizes.items():
            validity.demand_between(extent, low, high + 1)
        for shape in self.shapes:
            validity.demand_small(shape)
        for place, (low, high) in self.scalars.items():
            condition = Condition(f"{low} <= scalar <= {high}", ("scalar",), (("n",),))
            validity.demand(condition, {"n": place})


def widened_list(submissions: Sequence[Submission], target: Target) -> WidenedList:
    """The list with indices of 64 bits on ``target``, where it is faster with them."""
    made = list(submissions)
    sizes: dict[int, Interval] = {}
    scalars: dict[Source, Interval] = {}
    small_shapes: dict[tuple[int, ...], None] = {}
    known: dict[tuple[int, bool, tuple[tuple[Expr, Interval], ...]], _Widened] = {}
    """By the kernel's identity and the bounds."""
    for s, submission in enumerate(submissions if not target.device.narrow_indices else ()):
        kernel = submission.ir
        if not has_narrow_ids(kernel) or not all(global_range(submission)):
            continue
        bounds = _bounds(submission)
        shapes = set(submission.shapes())
        small = all(0 < prod(shape) <= SMALL for shape in shapes)
        key = id(kernel), small, tuple(bounds.items())
        if key not in known:
            known[key] = _widened(kernel, bounds, small)
        wide = known[key]
        if wide.kernel is kernel:
            continue
        small_shapes |= dict.fromkeys(sorted(shapes) if small else ())
        extents = [_extent(submission, e) for e in wide.asked if isinstance(e, Extent)]
        sizes |= {n: bound_of_size(n) for n in (*global_range(submission), *extents)}
        scalars |= {
            Source(s, k, None): bounds[param]
            for k, argument in enumerate(submission.arguments)
            if isinstance(argument, ScalarArgument)
            for param in (Param(argument.type, argument.name),)
            if param in wide.asked
        }
        made[s] = replace(
            submission,
            kernel=wide.kernel,
            fingerprint=f"{submission.fingerprint} with ids of 64 bits {list(known).index(key)}",
            form=None,
        )
    return WidenedList(tuple(made), sizes, scalars, small_shapes)


@dataclass(frozen=True)
class _Widened:
    """What became of the kernel ``of``, which stays, so that no other one has its identity;
    ``asked``: the scalars and extents without whose bounds it would be another one."""

    of: Kernel
    kernel: Kernel
    asked: frozenset[Expr]


def _widened(kernel: Kernel, bounds: Mapping[Expr, Interval], small: bool) -> _Widened:
    def within_bounds(of: Collection[Expr]) -> Kernel:
        sizes = {e: bounds[e] for e in of}
        params = {e.name: interval for e, interval in sizes.items() if isinstance(e, Param)}
        return with_wide_ids(kernel, sizes, params, small)

    asked = dict.fromkeys(bounds)
    made = within_bounds(asked)
    if made is kernel:
        return _Widened(kernel, kernel, frozenset())
    for e in bounds:
        fewer = dict.fromkeys(other for other in asked if other != e)
        if not isinstance(e, ItemQuery) and within_bounds(fewer) == made:
            asked = fewer
    return _Widened(kernel, made, frozenset(asked))


def _bounds(submission: Submission) -> dict[Expr, Interval]:
    """The intervals of the ids, ranges, extents and integer scalars that a kernel uses."""
    used = dict.fromkeys(expressions(submission.ir.body))
    values = {a.name: a for a in submission.arguments if isinstance(a, ScalarArgument)}
    found: dict[Expr, Interval] = {}
    for e in used:
        match e:
            case ItemQuery():
                found[e] = _of_query(e, submission)
            case Extent():
                found[e] = bound_of_size(_extent(submission, e))
            case Param(type, name) if type.is_integer and name in values:
                found[e] = bound_of_scalar(int(values[name].value), type)
    return found


def _of_query(query: ItemQuery, submission: Submission) -> Interval:
    """The interval of an id or a range."""
    items, group = global_range(submission), local_range(submission)
    if query.query == "local_linear_id":
        return (0, prod(group) - 1) if group else (0, _most_items(items) - 1)
    most = bound_of_size(items[query.dim])[1]
    if group:
        local = group[query.dim]
        if query.query.startswith("local"):
            return (0, local - 1) if query.query == "local_id" else (local, local)
        if query.query.startswith("group"):
            most //= local
    return (0, most - 1) if query.query.endswith("id") else (0, most)


def _most_items(items: Sequence[int]) -> int:
    return prod(bound_of_size(extent)[1] for extent in items)


def _extent(submission: Submission, e: Extent) -> int:
    """That of an array argument; 0 of what is none."""
    return next(
        (
            argument.shape[e.dim]
            for argument in submission.arguments
            if isinstance(argument, ArrayArgument) and argument.name == e.array
        ),
        0,
    )


def bound_of_size(size: int) -> Interval:
    """The sizes for which a plan holds that is made for ``size``."""
    return (1, _beyond(size) - 1) if size else (0, LEAST_BOUND - 1)


def bound_of_scalar(value: int, type: ScalarType) -> Interval:
    """The values for which a plan holds that is made for ``value`` of ``type``."""
    beyond = _beyond(abs(value))
    if beyond > LEAST_BOUND:
        found = (1, beyond - 1) if value > 0 else (1 - beyond, -1)
    elif type.kind == "u":
        found = (1, beyond - 1) if value else (0, beyond - 1)
    else:
        found = (1 - beyond, beyond - 1)
    return found if within(found, of_type(type)) else of_type(type)


def _beyond(magnitude: int) -> int:
    """The power of two above ``magnitude``, ``LEAST_BOUND`` at least."""
    return max(LEAST_BOUND, 1 << magnitude.bit_length())
