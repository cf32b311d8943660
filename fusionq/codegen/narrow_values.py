"""Integers of 64 bits that are made of smaller ones of memory, in 32 bits.

    d = int(a[i]) - int(b[i])              d = int32(a[i]) - int32(b[i])
    out[i] = min(abs(d), 200)       →      out[i] = int64(min(abs(d), 200))

Python's ``int`` has 64 bits in a kernel.  Of sums and products LLVM finds out that fewer are
enough, of minima, maxima, absolute values and quotients it does not, and vectors have half as many
lanes.  Where the interval of a result and those of its operands, elements and constants, are within
int32, the operation is one on int32; a variable of which all values are so is one of int32.  No
value changes.  What is made of ids, extents and arguments stays: compilers for CPUs see in 64 bits
alone that neighbours access neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.codegen.intervals import Intervals
from fusionq.codegen.narrow_indices import NARROW, Narrowing, of_int32
from fusionq.codegen.scoping import Body
from fusionq.codegen.variable_intervals import variable_intervals
from fusionq.ir.interval_arithmetic import Interval, within
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Load,
    Param,
)
from fusionq.ir.types import INT32, INT64
from fusionq.ir.walk import assigned_variable, expressions, rewrite, rewrite_body, statements

_BITWISE = frozenset({"or", "xor"})


def narrowed_values(kernel: Kernel, bodies: Sequence[Body]) -> tuple[Kernel, list[Body]]:
    """``kernel`` with the types of its variables, and its ``bodies``, in 32 bits as far as those
    are enough for what is made of memory."""
    if not any(_is_small_element(e) for body in bodies for e in expressions(body)):
        return kernel, list(bodies)
    intervals = Intervals(kernel)
    known = variable_intervals(kernel, bodies, intervals, (INT64,))
    variables = _variables(kernel, bodies, known)
    narrowing = _Values(variables, Intervals(kernel, known))
    types = tuple((name, INT32 if name in variables else type) for name, type in kernel.variables)
    made = [rewrite_body(body, narrowing.expr, narrowing.stmt) for body in bodies]
    return replace(kernel, variables=types), made


def _is_small_element(e: Expr) -> bool:
    """Whether ``e`` is an element of fewer bits, as int64."""
    match e:
        case Cast(type, Load() as load) if type == INT64:
            return load.type.is_bool or (load.type.is_integer and load.type.bits < 64)
    return False


def _variables(kernel: Kernel, bodies: Sequence[Body], known: dict[str, Interval]) -> set[str]:
    """The variables of int64 whose values are all made of memory, and within int32."""
    every = [s for body in bodies for s in statements(body)]
    found = {name for name, interval in known.items() if within(interval, NARROW)}
    found -= {s.var for s in every if isinstance(s, For)}
    found -= {
        name
        for s in every
        if not isinstance(s, Assign) and (name := assigned_variable(s)) is not None
    }
    while True:
        narrowing = _Values(found, Intervals(kernel, known))
        others = {
            s.name
            for s in every
            if isinstance(s, Assign) and s.name in found
            if of_int32(rewrite(s.value, narrowing.expr)) is None
        }
        if not others:
            return found
        found -= others


class _Values(Narrowing):
    """Narrows what is made of memory, and no more."""

    def _narrow(self, e: Expr) -> Expr | None:
        match e:
            case ItemQuery() | Extent() | Param():
                return None
            case Binary(_, "shr", lhs, Const(_, value)) if 0 <= int(value) < INT32.bits:
                one = self._all((lhs,))
                return None if one is None else Binary(INT32, "shr", one[0], Const(INT32, value))
            case Binary(_, op, lhs, rhs) if op in _BITWISE:
                both = self._all((lhs, rhs))
                return None if both is None else Binary(INT32, op, *both)
            case Call(_, "abs", (operand,)):
                one = self._all((operand,))
                low, _ = self._intervals.of(operand)
                return None if one is None or low == NARROW[0] else Call(INT32, "abs", one)
        return super()._narrow(e)
