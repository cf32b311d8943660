"""What a work-item of a kernel does, as the cost model counts it."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.base.costs import Weights
from fusionq.base.target import Target
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayParam,
    Atomic,
    Binary,
    Call,
    Const,
    Expr,
    For,
    GroupCall,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Unary,
    While,
)
from fusionq.ir.types import BOOL
from fusionq.ir.walk import nested_bodies
from fusionq.planning.cost import NOTHING, Work
from fusionq.planning.known_values import KnownValues, Sizes
from fusionq.planning.strides import Strides
from fusionq.planning.work import evaluated

CHEAP = frozenset({"floor", "ceil", "trunc", "rint", "copysign"})
"""Of ``FLOAT_FUNCTIONS``, those that are single instructions."""


def item_work(kernel: Kernel, sizes: Sizes, target: Target) -> Work:
    """What a work-item of ``kernel`` does, the one in the middle of the range, by the weights of
    ``target``: what is in loops as often as they run, and a load that is repeated once, since the
    compiler keeps the first: but for those under a condition, of which it knows no more behind it,
    or under another one."""
    return _Counting(kernel, sizes, target.weights).body(kernel.body)


class _Counting:
    def __init__(self, kernel: Kernel, sizes: Sizes, weights: Weights) -> None:
        self._weights = weights
        self._values = KnownValues(kernel, sizes)
        self._strides = Strides(kernel, self._values)
        params = [p for p in kernel.params if isinstance(p, ArrayParam)]
        self._nbytes = {p.name: p.dtype.nbytes for p in params}
        self._nbytes |= {a.name: a.dtype.nbytes for a in kernel.arrays}
        self._private = {a.name for a in kernel.arrays if a.space == "private"}
        self._loaded: set[Load] = set()
        """What has certainly been loaded before."""
        self._under: dict[Expr, set[Load]] = {}
        """What has been loaded where a condition holds."""
        self._loops = 0

    def body(self, body: Sequence[Stmt]) -> Work:
        return sum(map(self._stmt, body), NOTHING)

    def _stmt(self, stmt: Stmt) -> Work:
        work = sum(map(self._expr, evaluated(stmt)), NOTHING)
        match stmt:
            case If():
                share = self._values.share(stmt.cond)
                work += self._where(stmt.cond, stmt.then) * share
                # Both sides count where it is not known how many work-items go where.
                orelse = self._where(Unary(BOOL, "not", stmt.cond), stmt.orelse)
                return work + orelse * (1 - share if share < 1 else 1)
            case Store():
                work += self._access(stmt.array, stmt.indices)
            case Atomic():
                work += Work(serial=self._weights.atomic_operation)
            case GroupCall():
                work += Work(functions=self._weights.group_function)
        self._loops += (loop := isinstance(stmt, (For, While)))
        inside = sum(map(self.body, nested_bodies(stmt)), NOTHING)
        self._loops -= loop
        return work + inside * self._values.trips(stmt)

    def _where(self, cond: Expr, body: Sequence[Stmt]) -> Work:
        """What is done in ``body``, where ``cond`` holds."""
        if not body:
            return NOTHING
        before = self._loaded
        self._loaded = before | self._under.get(cond, set())
        work = self.body(body)
        self._under[cond], self._loaded = self._loaded, before
        return work

    def _expr(self, expr: Expr) -> Work:
        match expr:
            case Load():
                if expr in self._loaded:
                    return NOTHING
                self._loaded.add(expr)
                return self._access(expr.array, expr.indices)
            case Binary(op="floordiv" | "mod") if expr.type.is_integer:
                once = self._strides.of(expr.lhs) == self._strides.of(expr.rhs) == 0
                shift = is_power_of_two(expr.rhs)
                return NOTHING if once or shift else Work(serial=self._weights.integer_division)
            case Binary(op="truediv" | "floordiv" | "mod") | Call(function="sqrt"):
                return Work(functions=self._weights.float_division)
            case Binary(op="pow"):
                return Work(functions=1.0)
            case Call(function=function) if function in FLOAT_FUNCTIONS and function not in CHEAP:
                return Work(functions=1.0)
        return NOTHING

    def _access(self, array: str, indices: Sequence[Expr]) -> Work:
        if array in self._private or self._strides.are_consecutive(indices):
            return Work(accessed=self._nbytes[array])
        gathered = self._weights.gathered_bytes
        return Work(accessed=gathered) if self._loops else Work(serial=1.0)


def is_power_of_two(expr: Expr) -> bool:
    return isinstance(expr, Const) and int(expr.value).bit_count() == 1 and int(expr.value) > 0
