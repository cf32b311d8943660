"""Steps of sums in local memory that one work-item does, by vectors where the language has them:

    for place in range(128):                           for (place = 0; place < 128; place += 8)
        s[place] = s[place] + s[place + 128]     →         eight elements at once

Where work-items are lanes of a vector, Intel's compiler for CPUs does what the first work-item does
alone an element at a time.  Each element is combined with the one that it was combined with, so
the bits are the same: nothing is read that the loop stores.  Minima and maxima stay as they are,
which take longer by vectors there.
"""

from __future__ import annotations

from collections.abc import Set

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Binary, Const, Expr, For, Load, Store, Var
from fusionq.ir.types import FLOAT32, FLOAT64, INT64, ScalarType

BYTES = 32
"""Of a vector."""

_SYMBOLS = {"add": "+", "mul": "*"}


@dataclass(frozen=True, slots=True)
class VectorStep:
    """A loop that combines each of ``count`` elements of an array, from the first one on, with that
    at a distance of at least as many: its parts."""

    target: Load
    other: Load
    symbol: str
    count: int

    @property
    def type(self) -> ScalarType:
        """Of the elements."""
        return self.target.type

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return BYTES * 8 // self.type.bits


def vector_step(loop: For, arrays: Set[str]) -> VectorStep | None:
    """The step that a loop over one of ``arrays``, in local memory, is; None where it is none."""
    match loop:
        case For(
            start=Const(value=0),
            stop=Const(value=int() as count),
            step=Const(value=1),
            body=(
                Store(
                    array=array,
                    indices=(Var() as place,),
                    value=Binary(op="add" | "mul" as op, lhs=Load() as own, rhs=Load() as other),
                ),
            ),
        ) if array in arrays and own.type in (FLOAT32, FLOAT64):
            pass
        case _:
            return None
    here = Var(INT64, loop.var)
    distance = _distance(other.indices, here)
    if place != here or own.indices != (here,) or (own.array, other.array) != (array, array):
        return None
    step = VectorStep(own, other, _SYMBOLS[op], count)
    apart = distance is not None and distance >= count > 0
    return step if apart and count % step.lanes == 0 else None


def _distance(indices: tuple[Expr, ...], here: Var) -> int | None:
    match indices:
        case (Binary(op="add", lhs=lhs, rhs=Const(value=int() as distance)),) if lhs == here:
            return distance
    return None
