"""The dimension of a stage's range whose neighbours run as one vector.

Lanes have neighbours in the last dimension, whose elements lie side by side in most arrays.  Where
that dimension is shorter than a vector, lanes are idle, and where a kernel accesses other elements
along it than neighbours (rows of a table by the last id), each is loaded by itself.  Vectors of
another dimension are fewer then, or cheaper: for distances between many points and few centroids
half as many.  What a vector takes is counted by the strides of its accesses; for how many vectors,
the sizes of today tell here, and those of the tile in the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.costs import Weights
from fusionq.base.target import Target
from fusionq.codegen.interchange import LEAST
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayParam,
    Atomic,
    Binary,
    Call,
    Expr,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    LaneDimension,
    Load,
    Stmt,
    Store,
)
from fusionq.ir.types import BOOL
from fusionq.ir.walk import (
    expressions,
    nested_bodies,
    operands,
    reads_memory,
    statement_expressions,
    statements,
    takes_work_groups,
)
from fusionq.planning.item_work import CHEAP, is_power_of_two
from fusionq.planning.known_values import KnownValues, Sizes
from fusionq.planning.strides import CONSECUTIVE, Strides

UNIFORM = 1.0
"""One element for all lanes, as loads of four bytes side by side for each."""


def lane_dimension(kernel: Kernel, sizes: Sizes, target: Target) -> LaneDimension | None:
    """The dimension that lanes should have where it is another than the last one and faster by
    enough: in the caches, since memory gives and takes whole rows faster."""
    items, lanes = sizes.items, target.worker_size
    if lanes != target.sub_group_size or kernel.ndim == 1 or not is_free(kernel):
        return None
    params = [p for p in kernel.params if isinstance(p, ArrayParam)]
    shapes = ([sizes.extents[p.name, d] for d in range(p.ndim)] for p in params)
    memory = sum(p.dtype.nbytes * prod(shape) for p, shape in zip(params, shapes, strict=True))
    if memory > target.kept_bytes:
        return None
    costs = [vector_cost(kernel, sizes, d, target.weights) for d in range(kernel.ndim)]
    *others, last = (
        prod(items) / max(n, 1) * -(-n // lanes) * cost
        for n, cost in zip(items, costs, strict=True)
    )
    best = min(range(len(others)), key=others.__getitem__)
    benefit = round(16 * costs[-1] / costs[best])
    if others[best] * LEAST >= last * 16 or benefit == 0:
        return None
    return LaneDimension(best, benefit)


def is_free(kernel: Kernel) -> bool:
    """Whether work-items can be done in any order, and ask for nothing but their ids."""
    if takes_work_groups(kernel) or kernel.sub_group_size is not None:
        return False
    if any(isinstance(s, (Atomic, GroupCall)) for s in statements(kernel.body)):
        return False
    queries = (e.query for e in expressions(kernel.body) if isinstance(e, ItemQuery))
    return all(query in ("global_id", "global_range") for query in queries)


def vector_cost(kernel: Kernel, sizes: Sizes, dim: int, weights: Weights) -> float:
    """What work-items of ``kernel`` take that are neighbours in ``dim`` and as many as a vector has
    lanes, in loads of four bytes side by side."""
    return _Counting(kernel, sizes, dim, weights).body(kernel.body)


class _Counting:
    def __init__(self, kernel: Kernel, sizes: Sizes, dim: int, weights: Weights) -> None:
        self._weights = weights
        self._values = KnownValues(kernel, sizes)
        self._strides = Strides(kernel, self._values, dim)
        params = [p for p in kernel.params if isinstance(p, ArrayParam)]
        self._nbytes = {p.name: p.dtype.nbytes for p in params}
        self._private = {a.name: a.dtype.nbytes for a in kernel.arrays}
        self._loaded: set[Load] = set()

    def body(self, body: Sequence[Stmt]) -> float:
        return sum(map(self._stmt, body))

    def _stmt(self, stmt: Stmt) -> float:
        if isinstance(stmt, Store):
            scattered = self._weights.lane_scattered
            return self._access(stmt.array, stmt.indices, scattered) + self._expr(stmt.value)
        cost = sum(map(self._expr, statement_expressions(stmt)))
        if isinstance(stmt, If):
            share = self._share(stmt.cond)
            cost += self.body(stmt.then) * share
            return cost + self.body(stmt.orelse) * (1 - share if share < 1 else 1)
        return cost + sum(map(self.body, nested_bodies(stmt))) * self._values.trips(stmt)

    def _share(self, cond: Expr) -> float:
        """Of the vectors that meet ``cond``, those that do what it holds: where it is not the same
        for all lanes, under masks.  A branch on data is as long as what it holds."""
        if self._strides.of(cond) != 0 or reads_memory(cond):
            return 1.0
        return self._values.share(cond)

    def _expr(self, expr: Expr) -> float:
        if isinstance(expr, Load):
            if expr in self._loaded:
                return 0.0
            self._loaded.add(expr)
            return self._access(expr.array, expr.indices, self._weights.lane_gathered)
        inside = sum(map(self._expr, operands(expr)))
        if not operands(expr) or self._strides.of(expr) == 0:  # once for all lanes
            return inside
        weights = self._weights
        width = 1.0 if expr.type == BOOL else max(expr.type.nbytes / 4, 1.0)
        match expr:
            case Binary(op="floordiv" | "mod") if expr.type.is_integer:
                even = is_power_of_two(expr.rhs) or self._cuts_rows(expr)
                one = weights.lane_operation * width
                return inside + (one if even else weights.lane_integer_division)
            case Binary(op="truediv" | "floordiv" | "mod") | Call(function="sqrt"):
                return inside + weights.lane_division * width
            case Binary(op="pow"):
                return inside + weights.lane_function * width
            case Call(function=function) if function in FLOAT_FUNCTIONS and function not in CHEAP:
                return inside + weights.lane_function * width
        return inside + weights.lane_operation * width

    def _cuts_rows(self, division: Binary) -> bool:
        """Whether ``division`` is done once for a segment of a row, see ``row_segments``."""
        divisor = self._values.value(division.rhs)
        even = self._strides.of(division.lhs) == 1 and self._strides.of(division.rhs) == 0
        return even and (divisor is None or divisor >= CODE_LIMITS.shortest_segment)

    def _access(self, array: str, indices: Sequence[Expr], apart: float) -> float:
        strides = [self._strides.of(index) for index in indices]
        # What grows evenly is no operation but an address.
        uneven = [e for e, stride in zip(indices, strides, strict=True) if stride is None]
        cost = sum(map(self._expr, uneven))
        if array in self._private:
            return cost + max(self._private[array] / 4, 1.0)
        if all(stride == 0 for stride in strides):
            return cost + UNIFORM
        *outer, inner = strides
        if inner in CONSECUTIVE and not any(stride != 0 for stride in outer):
            return cost + max(self._nbytes[array] / 4, 1.0)
        return cost + apart
