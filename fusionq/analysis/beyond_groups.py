"""Whether what submissions exchange may stay inside of the user's work-groups.

    b[i] = t[i + 1]                 work-groups exchange elements, whatever their size
    b[i] = t[i // 64 * 64 + 63 - i % 64]      work-groups of 64 may not

By the forms of indices alone: work-items that access their own elements, or some at constant
distances, clamped or not, exchange nothing, or something with the next work-group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fusionq.analysis.aliasing import places
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.nodes import (
    Atomic,
    Binary,
    Call,
    Const,
    Expr,
    Extent,
    If,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Select,
    Store,
    While,
)
from fusionq.ir.single_values import single_values
from fusionq.ir.walk import (
    expressions,
    statements,
    subexpressions,
    with_values,
)

_BOUNDS = frozenset({"minimum", "maximum", "pymin", "pymax"})
_PARTS = frozenset({"floordiv", "mod", "and", "shr"})
"""By these ids may be taken to pieces, as those of work-groups are."""


class _Use(NamedTuple):
    """Of an array, as ``name`` of ``kernel``, in a range of so many ``groups``, if it has such."""

    kernel: int
    name: str
    view: int
    groups: tuple[int, ...] | None


def staying_in_groups(submissions: Sequence[Submission]) -> frozenset[int]:
    """Which of ``submissions``, over work-groups of the user, may exchange elements with another
    one inside of these, or were asked to."""
    used = [(s, a) for s, each in enumerate(submissions) for a in _arrays(each)]
    kernels = {id(each.ir): each.ir for each in submissions}
    meeting: dict[int, dict[_Use, list[int]]] = {}
    for (s, argument), place in zip(used, places([a for _, a in used]), strict=True):
        use = _Use(id(submissions[s].ir), argument.name, place.view, _groups(submissions[s]))
        meeting.setdefault(place.group, {}).setdefault(use, []).append(s)
    found = {s for s, a in used if "local" in (a.buffer_flag, a.access_flag)}
    for uses in meeting.values():
        for use, members in uses.items():
            for other, others in uses.items():
                if (use != other or len(members) > 1) and _may_stay(use, other, kernels):
                    found |= {*members, *others}
    return frozenset(found)


def _may_stay(use: _Use, other: _Use, kernels: Mapping[int, Kernel]) -> bool:
    """Whether what submissions exchange by these uses may stay in work-groups of the first."""
    own, others = kernels[use.kernel], kernels[other.kernel]
    if use.groups is None or not (use.name in _stored(own) or other.name in _stored(others)):
        return False
    dims = _distant(own)[use.name], _distant(others)[other.name]
    apart = {d for each in dims for d in each or ()} or range(len(use.groups))
    return None in dims or use.view != other.view or all(use.groups[d] == 1 for d in apart)


def _groups(submission: Submission) -> tuple[int, ...] | None:
    """How many work-groups of the user it has in each dimension."""
    sizes = local_range(submission)
    if sizes is None:
        return None
    return tuple(n // size for n, size in zip(global_range(submission), sizes, strict=True))


def _arrays(submission: Submission) -> Iterator[ArrayArgument]:
    return (a for a in submission.arguments if isinstance(a, ArrayArgument))


@cached_by_identity
def _stored(kernel: Kernel) -> frozenset[str]:
    """The arrays that ``kernel`` stores to."""
    return frozenset(s.array for s in statements(kernel.body) if isinstance(s, Store | Atomic))


@cached_by_identity
def _distant(kernel: Kernel) -> Mapping[str, frozenset[int] | None]:
    """For each array the dimensions in which work-items may access what others do, too: at a
    constant distance, or the same; None where they access what is elsewhere."""
    every = list(statements(kernel.body))
    values = single_values(kernel.body)
    found: dict[str, frozenset[int] | None] = {p.name: frozenset() for p in kernel.params}
    asked = [s.cond for s in every if isinstance(s, If | While)]
    asked += [e.cond for e in expressions(kernel.body) if isinstance(e, Select)]
    divides = any(map(_has_parts_of_ids, (with_values(e, values) for e in asked)))
    accesses: list[Load | Store | Atomic] = [s for s in every if isinstance(s, Store | Atomic)]
    accesses += [e for e in expressions(kernel.body) if isinstance(e, Load)]
    for access in accesses:
        known = found.get(access.array)
        indices = [with_values(index, values) for index in access.indices]
        own = {e.dim for i in indices for e in subexpressions(i) if isinstance(e, ItemQuery)}
        shared = frozenset(range(kernel.ndim)) - own
        for dims in (shared, *map(_dims_of, indices)):
            known = None if known is None or dims is None or divides else known | dims
        found[access.array] = known
    return found


def _has_parts_of_ids(expr: Expr) -> bool:
    return any(
        isinstance(e, Binary)
        and e.op in _PARTS
        and any(isinstance(part, ItemQuery) for part in subexpressions(e))
        for e in subexpressions(expr)
    )


def _dims_of(index: Expr) -> frozenset[int] | None:
    """The dimensions of ids to which ``index`` has something added, or that it clamps; None where
    it is made of more than ids, and what is the same for all work-items."""
    match index:
        case ItemQuery("global_id"):
            return frozenset()
        case Const() | Param() | Extent():
            return frozenset()
        case Binary(_, "add" | "sub", lhs, rhs):
            operands: tuple[Expr, ...] = lhs, rhs
        case Call(_, function, args) if function in _BOUNDS:
            operands = args
        case Select(_, _, then, orelse):
            operands = then, orelse
        case _:
            return None
    inside = [_dims_of(e) for e in operands]
    if None in inside:
        return None
    return frozenset(e.dim for e in subexpressions(index) if isinstance(e, ItemQuery))
