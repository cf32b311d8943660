"""Loads of several iterations of a loop together, ahead of what is done with them, in loops of any
length and step; for work-items that stand side by side in work-groups, and in launches of few:

    for k in range(lane, n, step):       count = (n - lane + step - 1) // step
        own += a[k] * x[k]           →   for t in range(0, count & -32, 32):
                                             32 loads of a and x; 32 sums
                                         for t in range(count & -32, count, 8):
                                             8 loads of a and x, those past the end of the first
                                             one's elements; 8 sums, but those past the end

So a loop waits for memory once for many iterations, not once for each that is left over, as a GPU's
compiler has it.  The parts are few: short kernels wait for their code, too.  Iterations are done
in their order, so sums have the same bits.  Legal for loads of arrays that nobody writes, or that
share no memory with one that the loop stores to.  A loop stays as it is where its bounds and step
leave 31 bits or it runs backwards.

In launches of few work-items a thread that goes along a row has neighbours in memory in iterations
that follow each other: ``rows_loaded`` says of which loops of loads languages may load vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.loads_ahead import TURN, is_rest, loads_in_each_iteration
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.conjunctions import TRUE, conjunction
from fusionq.ir.interval_arithmetic import of_type, within
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    has_barrier,
    rewrite,
    rewrite_body,
    statements,
    stored_arrays,
    subexpressions,
)

_ROW = f"{TURN}row_"
"""How the variable of a loop begins that loads neighbouring elements, and nothing else."""
_COUNT = "together_count_"
_BEGUN = "together_turn_"
_KEPT = "together_"
_IN_ROWS = (FLOAT32, FLOAT64, INT32, UINT32, INT64, UINT64)
_LARGEST = of_type(INT32)[1]


def with_loads_together(
    kernel: Kernel,
    body: Body,
    most: int,
    unwritten: frozenset[str] = frozenset(),
    apart: frozenset[str] = frozenset(),
) -> Kernel | None:
    """``kernel``, whose body without nested blocks is ``body``, with loads of ``most`` iterations
    together, at most, or a multiple of that in launches of few work-items; None where there are
    none, or no work-groups: other launches have so many work-items that some always compute.
    ``unwritten``: the array parameters that nobody writes while the kernel runs; ``apart``: those
    that share memory with no other, beside those that say so themselves."""
    names = [*(p.name for p in kernel.params), *(n for n, _ in kernel.variables)]
    if any(name.startswith(_KEPT) for name in names):
        return None
    if kernel.few_items:
        most *= CODE_LIMITS.few_times_together
    elif kernel.row_turns is not None:
        most = min(most, kernel.row_turns)
    elif not has_groups(kernel):
        return None
    alone = {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.restrict}
    rewriting = _Together(kernel, most, unwritten, apart | alone)
    body = rewrite_body(body, stmt=rewriting.stmt)
    if rewriting.kernel is kernel:
        return None
    return replace(rewriting.kernel, body=body)


def has_loads_together(kernel: Kernel) -> bool:
    """Whether some loop of ``kernel`` can load for several iterations, if work-items are few."""
    few, body = replace(kernel, few_items=True), flatten_blocks(kernel.body)
    return with_loads_together(few, body, CODE_LIMITS.iterations_together) is not None


def row_loops(kernel: Kernel) -> list[For]:
    """The loops of ``kernel``, without work-groups, that it may do by ``row_turns``."""
    body = flatten_blocks(kernel.body)
    if has_groups(kernel):
        return []
    rewriting = _Together(replace(kernel, row_turns=CODE_LIMITS.fewest_ahead), 0, frozenset(), {
        p.name for p in kernel.params if isinstance(p, ArrayParam) and p.restrict
    })  # fmt: skip
    loops = [s for s in statements(body) if isinstance(s, For) and _is_plain(s)]
    return [loop for loop in loops if rewriting.has_own_row(loop)]


def rows_loaded(loop: For) -> list[tuple[str, Load]]:
    """The private arrays that ``loop`` loads whole from neighbouring elements, each with the first
    of these; none where it is another loop."""
    if not loop.var.startswith(_ROW):
        return []
    found: list[tuple[str, Load]] = []
    for stmt in loop.body:
        assert isinstance(stmt, Store) and isinstance(stmt.value, Load)

        def first(e: Expr) -> Expr:
            return Const(e.type, 0) if isinstance(e, Var) and e.name == loop.var else e

        row = rewrite(stmt.value, first)
        assert isinstance(row, Load)
        found.append((stmt.array, row))
    return found


def has_groups(kernel: Kernel) -> bool:
    """Whether a kernel's work-items know of work-groups."""
    return has_barrier(kernel.body) or any(
        isinstance(e, ItemQuery) and e.query in ("local_id", "group_id")
        for e in expressions(kernel.body)
    )


@dataclass
class _Together:
    kernel: Kernel
    most: int
    unwritten: frozenset[str]
    apart: AbstractSet[str]
    _added: int = field(default=0, init=False)

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, For) or not _is_plain(stmt):
            return (stmt,)
        if not self.kernel.few_items and self.kernel.row_turns and not self.has_own_row(stmt):
            return (stmt,)
        loads = self._loads(stmt)
        turns = self.most
        while self._is_much(turns, loads):
            turns //= 2
        if not loads or turns < CODE_LIMITS.fewest_ahead:
            return (stmt,)
        return self._split(stmt, loads, turns)

    def _is_much(self, turns: int, loads: Sequence[Expr]) -> bool:
        """Whether there are no registers for so many times ``loads``."""
        if not self.kernel.few_items:
            return turns * len(loads) > CODE_LIMITS.values_together
        return turns * sum(max(load.type.nbytes, 4) for load in loads) > CODE_LIMITS.few_bytes

    def _loads(self, loop: For) -> list[Expr]:
        """The loads of each iteration that may be done before all that the loop does."""
        params = {p.name for p in self.kernel.params if isinstance(p, ArrayParam)}
        stores = stored_arrays(loop.body) & params

        def stays(array: str) -> bool:
            if array in self.unwritten:
                return True
            return array not in stores and (array in self.apart or stores <= self.apart)

        return [
            unit
            for unit in loads_in_each_iteration(self.kernel, loop)
            if all(stays(e.array) for e in subexpressions(unit) if isinstance(e, Load))
        ]

    def has_own_row(self, loop: For) -> bool:
        """Whether neighbouring work-items load from rows of their own in ``loop``."""
        return any(
            isinstance(load, Load)
            and self._is_row(load, loop)
            and any(map(self._differs, load.indices[:-1]))
            for load in self._loads(loop)
        )

    @cached_property
    def _differing(self) -> frozenset[str]:
        """The variables that differ between neighbouring work-items."""
        found: set[str] = set()
        assigned = [s for s in statements(self.kernel.body) if isinstance(s, Assign)]
        while True:
            more = {s.name for s in assigned if _differs(s.value, found, self.kernel.ndim)}
            if more <= found:
                return frozenset(found)
            found |= more

    def _differs(self, index: Expr) -> bool:
        return _differs(index, self._differing, self.kernel.ndim)

    def _is_row(self, load: Expr, loop: For) -> bool:
        """Whether launches of few work-items load ``load`` from neighbouring elements in
        iterations that follow each other, four or eight bytes each."""
        own = Var(INT64, loop.var)
        is_asked = self.kernel.few_items or self.kernel.row_turns is not None
        if not is_asked or loop.step != Const(INT64, 1):
            return False
        if not isinstance(load, Load) or load.type not in _IN_ROWS:
            return False
        param = self.kernel.param(load.array)
        assert isinstance(param, ArrayParam)
        *others, last = load.indices
        return (
            (param.contiguous or param.unit_stride)
            and param.alignment is None
            and last == own
            and all(e != own for index in others for e in subexpressions(index))
        )

    def _split(self, loop: For, loads: list[Expr], turns: int) -> tuple[Stmt, ...]:
        number = self._added = self._added + 1
        count, begun = Var(INT32, f"{_COUNT}{number}"), Var(INT64, f"{_BEGUN}{number}")
        before, behind = (Var(INT64, f"{TURN}{_KEPT}{number}_{k}") for k in range(2))
        kept = [
            ArrayDecl(f"{_KEPT}{number}_{k}", load.type, (turns,), "private")
            for k, load in enumerate(loads)
        ]
        self.kernel = replace(
            self.kernel,
            arrays=(*self.kernel.arrays, *kept),
            variables=(*self.kernel.variables, (count.name, INT32)),
        )
        start, stop, step = (Cast(INT32, e) for e in (loop.start, loop.stop, loop.step))

        def in_turn(turn: Expr) -> Callable[[Expr], Expr]:
            """With the loop's variable as it is in that iteration."""
            value = Cast(INT64, _of32("add", start, _of32("mul", Cast(INT32, turn), step)))
            return lambda e: value if e == Var(INT64, loop.var) else e

        def of_kept(e: Expr) -> Expr:
            return Load(e.type, kept[loads.index(e)].name, (behind,)) if e in loads else e

        def part(begin: Expr, end: Expr, size: int, masked: bool) -> For:
            """The iterations from ``begin`` on, so many at once; ``masked``: not those from ``end``
            on."""

            def turn(of: Var) -> Expr:
                return Binary(INT64, "add", begun, of)

            there = Compare("lt", turn(before), end)
            place = Select(INT64, there, turn(before), begun) if masked else turn(before)
            rows, others = ([
                Store(array.name, (before,), rewrite(load, in_turn(place)))
                for array, load in zip(kept, loads, strict=True)
                if (not masked and self._is_row(load, loop)) == is_row
            ] for is_row in (True, False))  # fmt: skip
            use = rewrite_body(rewrite_body(loop.body, of_kept), in_turn(turn(behind)))
            if masked:
                use = (If(Compare("lt", turn(behind), end), use),)
            zero, one, most = (Const(INT64, n) for n in (0, 1, size))
            row = Var(INT64, f"{_ROW}{_KEPT}{number}")
            of_row = rewrite_body(rows, lambda e: row if e == before else e)
            inside = tuple(
                For(of.name, zero, most, one, tuple(body))
                for of, body in ((row, of_row), (before, others), (behind, use))
                if body
            )
            return For(begun.name, begin, end, most, inside)

        whole = Cast(INT64, _of32("and", count, Const(INT32, -turns)))
        every = Cast(INT64, count)
        distance = Cast(UINT32, _of32("sub", _of32("sub", stop, start), Const(INT32, 1)))
        steps = Cast(INT32, Binary(UINT32, "floordiv", distance, Cast(UINT32, step)))
        fast = (
            Assign(count.name, _of32("add", steps, Const(INT32, 1))),
            part(Const(INT64, 0), whole, turns, masked=False),
            part(whole, every, min(turns, CODE_LIMITS.masked_together), masked=True),
        )
        some = Compare("lt", loop.start, loop.stop)
        small = conjunction(_small(self.kernel, loop))
        if small == TRUE:
            return (If(some, fast),)
        return (If(conjunction((some, small)), fast, (loop,)),)


def _differs(e: Expr, differing: Collection[str], ndim: int) -> bool:
    """Whether an index differs between neighbouring work-items; their quotients rarely do."""
    match e:
        case ItemQuery("global_id", dim):
            return dim == ndim - 1
        case Var(_, name):
            return name in differing
        case Binary(_, "mod", lhs, _):
            return _differs(lhs, differing, ndim)
        case Binary(_, "add" | "sub" | "mul", lhs, rhs):
            return any(_differs(part, differing, ndim) for part in (lhs, rhs))
    return False


def _is_plain(loop: For) -> bool:
    """Whether a loop is short, of assignments and stores, with bounds and a step that need nothing
    that the loop changes; nor one of constants, which compilers unroll whole."""
    bounds = loop.start, loop.stop, loop.step
    if is_rest(loop) or all(isinstance(e, Const) for e in bounds):
        return False
    if _is_constant_below_one(loop.step):
        return False
    inside = list(expressions(loop.body))
    assigned = {assigned_variable(s) for s in statements(loop.body)}
    return (
        all(isinstance(s, Assign | Store) for s in loop.body)
        and len(inside) <= CODE_LIMITS.streamed_expressions
        and not any(
            isinstance(e, Load) or (isinstance(e, Var) and e.name in assigned)
            for bound in bounds
            for e in subexpressions(bound)
        )
    )


def _is_constant_below_one(e: Expr) -> bool:
    return isinstance(e, Const) and e.value < 1


def _small(kernel: Kernel, loop: For) -> list[Expr]:
    """The conditions under which the first and last iteration and the step are within 31 bits and
    the step is positive, but for those that are known to hold."""
    intervals = Intervals(kernel)
    zero, one, most = (Const(INT64, n) for n in (0, 1, _LARGEST))
    found: list[Expr] = []
    for e, least in ((loop.start, zero), (loop.stop, None), (loop.step, one)):
        interval = intervals.of(e)
        if least is not None and not within(interval, (int(least.value), interval[1])):
            found.append(Compare("ge", e, least))
        if e != loop.start and not within(interval, (interval[0], _LARGEST)):
            found.append(Compare("le", e, most))
    return found


def _of32(op: Literal["add", "sub", "mul", "and"], lhs: Expr, rhs: Expr) -> Binary:
    return Binary(INT32, op, lhs, rhs)
