"""Whether two parts of one array may have elements in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial

from fusionq.frontend.values import ArrayValue, Axis
from fusionq.ir.nodes import Binary, Call, Const, Expr, Extent
from fusionq.ir.offsets import split_offset
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite

_ZERO = Const(INT64, 0)


class ArrayOverlap(Enum):
    """What two parts of one array have in common: nothing, each element with the one at the same
    indices and no other, or perhaps more."""

    NONE = auto()
    SAME_ELEMENTS = auto()
    POSSIBLE = auto()


def overlap(target: ArrayValue, source: ArrayValue, repeated: Sequence[bool]) -> ArrayOverlap:
    """What two parts have in common if their arrays are one and the same.

    ``repeated``: of the source's open dimensions, which may be repeated in the target's.
    """
    if target.type != source.type:
        return ArrayOverlap.POSSIBLE
    source = source.mapped(lambda index: rewrite(index, partial(_of, target.name, source.name)))
    if any(map(_apart, target.axes, source.axes)):
        return ArrayOverlap.NONE
    own, other = (_without_whole(axes, target.name) for axes in (target.axes, source.axes))
    aligned = own == other and not any(repeated)
    return ArrayOverlap.SAME_ELEMENTS if aligned else ArrayOverlap.POSSIBLE


def _without_whole(axes: Sequence[Expr | Axis], name: str) -> tuple[Expr | Axis, ...]:
    """The axes without whole dimensions at the end: ``a[i, :]`` as ``a[i]``."""
    left = list(axes)
    while left:
        if left[-1] != Axis(_ZERO, 1, Extent(name, len(left) - 1)):
            break
        left.pop()
    return tuple(left)


def _apart(a: Expr | Axis, b: Expr | Axis) -> bool:
    """Whether two parts of one dimension certainly have nothing in common."""
    if not isinstance(a, Axis) and not isinstance(b, Axis):
        (base, offset), (other, distance) = split_offset(a), split_offset(b)
        return base == other and offset != distance
    first, second = _known(a), _known(b)
    return first is not None and second is not None and not set(first) & set(second)


def _known(axis: Expr | Axis) -> range | None:
    """Indices that a part of a dimension certainly does not go beyond; None if unknown."""
    if isinstance(axis, Axis):
        most = _at_most(axis.extent)
        if most is None or not isinstance(axis.start, Const):
            return None
        start = int(axis.start.value)
        return range(start, start + axis.step * most, axis.step)
    return range(int(axis.value), int(axis.value) + 1) if isinstance(axis, Const) else None


def _at_most(extent: Expr) -> int | None:
    """A bound of the number of elements of a slice; None if there is none."""
    match extent:
        case Const():
            return int(extent.value)
        case Binary(_, "add" | "sub" | "floordiv" as op, lhs, Const() as rhs):
            bound, by = _at_most(lhs), int(rhs.value)
            if bound is None:
                return None
            return {"add": bound + by, "sub": bound - by, "floordiv": bound // (by or 1)}[op]
        case Call(_, "pymin" | "pymax" as function, args):
            bounds = [_at_most(arg) for arg in args]
            known = [bound for bound in bounds if bound is not None]
            if function == "pymin":
                return min(known, default=None)
            return max(known) if len(known) == len(bounds) else None
    return None


def _of(name: str, other: str, expr: Expr) -> Expr:
    """An extent of one array as that of another of the same shape."""
    return replace(expr, array=name) if isinstance(expr, Extent) and expr.array == other else expr
