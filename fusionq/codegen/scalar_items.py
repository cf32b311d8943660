"""Which kernels are faster where no vectors are made of their work-items: those whose loops do as
many iterations as memory says, a number of its own for each work-item, or combine integers along
rows, of which each work-item has one.

    for k in range(first[i], first[i + 1]):
        s += value[k] * x[column[k]]

A compiler for CPUs that makes work-items lanes of vectors keeps a mask of those that still have
iterations to do, goes on until the last has ended, and accesses memory an element at a time.
Products of a sparse matrix by rows (CSR) of 1 to 31 elements take 1.9 ms so, and 0.4 where each
work-item is done by itself; of 100 elements 3.8 and 0.4 (one core, AVX2).  Loops that compute much
for each element, and kernels that do more than such loops, gain more by vectors.

    for k in range(a.shape[1]):
        s += a[i, k] * b[j, k]

Integers give the same in any order, so that a compiler makes vectors of a row's elements where it
makes none of work-items, whose elements it would load one by one: 128 by 128 products of rows of
256 int8 take 1.9 ms with vectors of work-items and 0.4 without, sums of rows of 64 bytes a third,
of 8 as long.  Sums of floats have one order.

All of this is about speed alone: the operations of a work-item are the same, in the same order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.codegen.scoping import Body
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    For,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    nested_bodies,
    statement_expressions,
    statements,
    subexpressions,
)


def is_for_scalars(kernel: Kernel, body: Body) -> bool:
    """Whether ``kernel`` with ``body`` is faster without vectors of work-items, and can do without:
    it has no sub-groups, and no functions of work-groups."""
    beside = _beside(kernel, body)
    return beside is not None and beside.is_for_scalars


def slower_together(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Those of ``kernels`` that are faster without vectors of work-items, where one kernel that
    does all of them has vectors."""
    found = [(kernel, _beside_of(kernel)) for kernel in kernels]
    if sum(inf if beside is None else beside.expressions for _, beside in found) <= _MOST:
        return ()
    return tuple(k for k, own in found if own is not None and own.is_for_scalars)


def without_vectors(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Those of ``kernels`` that have vectors of work-items by themselves, and none in one kernel
    that does all of them, since others are faster without."""
    found = [(kernel, _beside_of(kernel)) for kernel in kernels]
    if sum(inf if beside is None else beside.expressions for _, beside in found) > _MOST:
        return ()
    own = [kernel for kernel, beside in found if beside is not None and beside.is_for_scalars]
    return tuple(kernel for kernel, _ in found if kernel not in own) if own else ()


@dataclass(frozen=True)
class _Beside:
    """Of a kernel that can do without vectors of work-items, and has no loops that gain by them
    among those that go on as long as memory says: whether it has such, and the expressions beside
    them."""

    has_loops: bool
    expressions: float

    @property
    def is_for_scalars(self) -> bool:
        """Whether the kernel by itself is faster without vectors."""
        return self.has_loops and self.expressions <= _MOST


@cached_by_identity
def _beside_of(kernel: Kernel) -> _Beside | None:
    return _beside(kernel, kernel.body)


def _beside(kernel: Kernel, body: Body) -> _Beside | None:
    if kernel.sub_group_size is not None or kernel.row_lanes is not None:
        return None
    found = list(statements(body))
    if any(isinstance(s, GroupCall) for s in found):
        return None
    if any(map(_asks_for_sub_group, expressions(body))):
        return None
    lanes = _Lanes(kernel, found)
    by_memory = [s for s in found if lanes.is_for_one(s)]
    if not all(map(lanes.is_for_scalars, by_memory)):
        return None
    return _Beside(bool(by_memory), lanes.beside(body))


_MOST = CODE_LIMITS.beside_scalars


class _Lanes:
    """What differs among work-items that are neighbours in the last dimension."""

    def __init__(self, kernel: Kernel, found: Sequence[Stmt]) -> None:
        self._row = kernel.ndim - 1
        self._private = {a.name for a in kernel.arrays if a.space == "private"}
        self._values: dict[str, list[Expr]] = defaultdict(list)
        for s in found:
            match s:
                case Assign(name, value):
                    self._values[name].append(value)
                case For(var=var, start=start):
                    self._values[var].append(start)

    # -------------------------------------------------------------------------- values
    def _parts(self, expr: Expr) -> Iterator[Expr]:
        """The parts of ``expr``, and of all that its variables are ever set to."""
        seen: set[str] = set()
        waiting = [expr]
        while waiting:
            for e in subexpressions(waiting.pop()):
                yield e
                if isinstance(e, Var) and e.name not in seen:
                    seen.add(e.name)
                    waiting += self._values.get(e.name, ())

    def _differs(self, expr: Expr) -> bool:
        """Whether neighbours may have different values of ``expr``."""
        return any(
            (isinstance(e, Load) and e.array in self._private)
            or (
                isinstance(e, ItemQuery)
                and not e.query.endswith("_range")
                and (e.query != "global_id" or e.dim == self._row)
            )
            for e in self._parts(expr)
        )

    def _is_loaded(self, expr: Expr) -> bool:
        """Whether ``expr`` is made of what neighbours load from different places."""
        loads = (e for e in self._parts(expr) if isinstance(e, Load))
        return any(e.array in self._private or any(map(self._differs, e.indices)) for e in loads)

    # --------------------------------------------------------------------------- loops
    def is_by_memory(self, stmt: Stmt) -> bool:
        """Whether ``stmt`` is a loop of as many iterations as memory says to each work-item: its
        bounds, or what its condition loads at places that change from one to the next."""
        match stmt:
            case For():
                return self._is_loaded(stmt.start) or self._is_loaded(stmt.stop)
            case While():
                changed = _changed(stmt.body)
                loads = [e for e in self._parts(stmt.cond) if isinstance(e, Load)]
                return any(_uses(e.indices, changed) for e in loads) and self._differs(stmt.cond)
        return False

    def is_for_one(self, stmt: Stmt) -> bool:
        """Whether ``stmt`` is such a loop, or one over rows of integers."""
        return self.is_by_memory(stmt) or self.is_over_integers(stmt)

    def is_over_integers(self, stmt: Stmt) -> bool:
        """Whether ``stmt`` does nothing but combine integers along rows, of which neighbours have
        one each: in whichever order, so that vectors are made of the row's elements."""
        if not isinstance(stmt, For) or stmt.step != Const(INT64, 1):
            return False
        if all(isinstance(bound, Const) for bound in (stmt.start, stmt.stop)):
            return False  # mostly a few
        sums = _changed(stmt.body)
        if not all(_combines(s, sums) for s in stmt.body):
            return False
        inside = list(expressions(stmt.body))
        if any(e.type.is_float or not _is_plain(e) for e in inside):
            return False
        changed = {stmt.var, *sums}
        loads = [e for e in inside if isinstance(e, Load)]
        along = [e for e in loads if _uses(e.indices, changed)]
        if any(_uses(e.indices[:-1], changed) or not _is_next(e.indices[-1], stmt) for e in along):
            return False
        return any(map(self._differs, (i for e in along for i in e.indices[:-1])))

    def is_for_scalars(self, loop: Stmt) -> bool:
        """Whether a loop accesses memory rather than computes."""
        bodies = nested_bodies(loop)
        changed = {name for body in bodies for name in _changed(body)}
        if isinstance(loop, For):
            changed.add(loop.var)
        accesses = computed = 0
        inside = [s for body in bodies for s in statements(body)]
        for s in inside:
            accesses += isinstance(s, Store | Atomic) and _uses(s.indices, changed)
        every = [e for body in bodies for e in expressions(body)]
        if isinstance(loop, While):
            every += subexpressions(loop.cond)
        for e in every:
            accesses += isinstance(e, Load) and _uses(e.indices, changed)
            computed += isinstance(e, Binary) and e.type.is_float
            computed += _FUNCTION * _is_function(e)
        return computed <= CODE_LIMITS.scalar_operations * accesses

    def beside(self, body: Iterable[Stmt]) -> float:
        """The expressions of a work-item in ``body`` outside of such loops, and of what one of a
        work-group does for all; without end in loops that are none, and have none in them, unless
        they are short."""
        total = 0.0
        for s in body:
            if self.is_for_one(s) or (isinstance(s, If) and _is_one(s.cond)):
                continue
            for whole in statement_expressions(s):
                total += sum(_FUNCTION if _is_function(e) else 1 for e in subexpressions(whole))
            inside = sum(map(self.beside, nested_bodies(s)))
            match s:
                case For(_, Const(_, start), Const(_, stop), Const(_, step)) if step:
                    inside *= len(range(int(start), int(stop), int(step)))
                case For() | While() if not any(map(self.is_for_one, statements((s,)))):
                    inside = float("inf")
            total += inside
        return total


_FUNCTION = 16
"""Operations in the time of a mathematical function."""


def _is_one(cond: Expr) -> bool:
    """Whether ``cond`` holds for one work-item of a work-group."""
    if not isinstance(cond, Compare) or cond.op != "eq" or not isinstance(cond.rhs, Const):
        return False
    queries = [e.query for e in subexpressions(cond.lhs) if isinstance(e, ItemQuery)]
    return bool(queries) and all(query.startswith("local") for query in queries)


def _is_function(e: Expr) -> bool:
    return isinstance(e, Call) and e.function in FLOAT_FUNCTIONS


def _asks_for_sub_group(e: Expr) -> bool:
    """Whether ``e`` is what a profile asks of a work-item's sub-group."""
    return isinstance(e, Call) and "sub_group" in e.function


def _changed(body: Iterable[Stmt]) -> set[str]:
    """The variables that ``body`` sets, those of its loops included."""
    names: set[str] = set()
    for s in statements(body):
        name = s.var if isinstance(s, For) else assigned_variable(s)
        if name is not None:
            names.add(name)
    return names


def _uses(indices: Iterable[Expr], names: set[str]) -> bool:
    """Whether one of ``indices`` depends on one of the variables ``names``."""
    return any(isinstance(e, Var) and e.name in names for i in indices for e in subexpressions(i))


def _combines(stmt: Stmt, sums: set[str]) -> bool:
    """Whether ``stmt`` combines one of ``sums`` with what depends on none of them, in any order."""
    match stmt:
        case Assign(name, Binary(type, "add" | "and" | "or" | "xor", lhs, rhs)):
            others = [e for e in (lhs, rhs) if e != Var(type, name)]
            return len(others) == 1 and not _uses(others, sums)
    return False


def _is_plain(e: Expr) -> bool:
    """Whether ``e`` is a step that vectors of integers have."""
    match e:
        case Binary(op=op):
            return op in ("add", "sub", "mul", "and", "or", "xor")
        case Call():
            return False
    return True


def _is_next(index: Expr, loop: For) -> bool:
    """Whether ``index`` goes on by one from one iteration of a loop to the next."""
    changed = {loop.var, *_changed(loop.body)}
    match index:
        case Var(name=name):
            return name == loop.var
        case Binary(op="add" | "sub" as op, lhs=lhs, rhs=rhs):
            if not _uses((rhs,), changed):
                return _is_next(lhs, loop)
            return op == "add" and not _uses((lhs,), changed) and _is_next(rhs, loop)
    return False
