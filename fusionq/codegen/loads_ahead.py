"""Loads of a loop's next iterations ahead of what is done with them.

    for k in range(lane, n, 128):         for k in range(lane, full, 2048):
        own += a[k] * x[k]           →        for t in range(16): kept_a[t] = a[k + 128 * t]; …
                                              for t in range(16): own += kept_a[t] * kept_x[t]
                                          for k in range(full, n, 128):
                                              own += a[k] * x[k]

A GPU's compiler has as many loads in flight as its own estimate of registers allows, and moves none
before a store.  Iterations are done in their order, so sums have the same bits.  Legal for loads of
arrays that share no memory with one that the loop stores to.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.scoping import Body
from fusionq.ir.int64_operations import int64
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Cast,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import BFLOAT16, FLOAT32, INT64
from fusionq.ir.walk import (
    always_evaluated,
    assigned_variable,
    rewrite,
    rewrite_body,
    statement_expressions,
    statements,
    stored_arrays,
    subexpressions,
)

TURN = "ahead_turn_"
"""How the variables of the loops over the iterations that are done at once begin."""
FULL = "ahead_full_"
"""How the variables begin that say where loops of whole iterations end."""
REST = "stream_rest_"
"""The same of what is not read by way of whole slots (``codegen.streamed_loops``)."""
IN_SLOT = "_in_slot"
"""How those of them end that begin in a slot that is not full, which few iterations are in."""


@dataclass
class LoadsAhead:
    """``kernel`` is that of the rewritten ``body``: it has more variables and private arrays.

    ``most``: values that a work-item keeps at once, at most; ``unwritten``: the array parameters
    that nobody writes while the kernel runs; ``apart``: those that share memory with no other.
    """

    kernel: Kernel
    local_range: tuple[int, ...]
    most: int
    unwritten: frozenset[str]
    apart: frozenset[str]
    _added: int = field(default=0, init=False)

    def rewritten(self, body: Body) -> Body:
        """``body`` with loads ahead where that is legal."""
        names = [*(p.name for p in self.kernel.params), *(n for n, _ in self.kernel.variables)]
        if not self.most or any(name.startswith(("ahead_", "kept_")) for name in names):
            return body
        return rewrite_body(body, stmt=self._stmt)

    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, For) or not self._is_plain(stmt):
            return (stmt,)
        loads = self._loads(stmt)
        turns, least = CODE_LIMITS.iterations_ahead, CODE_LIMITS.fewest_ahead
        while turns >= least and turns * len(loads) > self.most:
            turns //= 2
        if not loads or turns < least:
            return (stmt,)
        return self._split(stmt, loads, turns)

    def _is_plain(self, loop: For) -> bool:
        """Whether there is an iteration or none, from a local id or constant less than a step on to
        an extent, of assignments and stores."""
        match loop:
            case For(start=ItemQuery("local_id", dim), stop=Extent(), step=Const(_, step)):
                first = self.local_range[dim] - 1
            case For(start=Const(_, value), stop=Extent(), step=Const(_, step)):
                first = int(value)
            case _:
                return False
        return 0 <= first < int(step) and all(isinstance(s, Assign | Store) for s in loop.body)

    def _loads(self, loop: For) -> list[Expr]:
        """The loads of each iteration that may be done before all that the loop does."""
        arrays = {p.name for p in self.kernel.params if isinstance(p, ArrayParam)}
        stores = stored_arrays(loop.body) & arrays
        return [
            unit
            for unit in loads_in_each_iteration(self.kernel, loop)
            if all(
                self._stays(e.array, stores) for e in subexpressions(unit) if isinstance(e, Load)
            )
        ]

    def _stays(self, array: str, stores: Set[str]) -> bool:
        """Whether stores to the parameters ``stores`` leave ``array`` as it is."""
        if array in self.unwritten or not stores:
            return True
        return array not in stores and (array in self.apart or stores <= self.apart)

    def _split(self, loop: For, loads: list[Expr], turns: int) -> tuple[Stmt, ...]:
        number = self._added = self._added + 1
        full = f"{FULL}{number}"
        step = int(loop.step.value) if isinstance(loop.step, Const) else 0
        before, behind = (Var(INT64, f"{TURN}{number}_{k}") for k in range(2))
        kept = [
            ArrayDecl(f"ahead_{number}_{k}", load.type, (turns,), "private")
            for k, load in enumerate(loads)
        ]
        self.kernel = replace(
            self.kernel,
            arrays=(*self.kernel.arrays, *kept),
            variables=(*self.kernel.variables, (full, INT64)),
        )
        whole = Const(INT64, turns * step)
        left = int64("sub", loop.stop, loop.start)
        count = int64("floordiv", int64("add", left, Const(INT64, step - 1)), loop.step)
        chunks = int64("mul", int64("floordiv", count, Const(INT64, turns)), whole)

        def of_kept(e: Expr) -> Expr:
            if e in loads:
                array = kept[loads.index(e)]
                return Load(e.type, array.name, (behind,))
            return e

        def moved(e: Expr, turn: Var) -> Expr:
            if isinstance(e, Var) and e.name == loop.var:
                return int64("add", e, int64("mul", turn, Const(INT64, step)))
            return e

        get = tuple(
            Store(array.name, (before,), rewrite(load, lambda e: moved(e, before)))
            for array, load in zip(kept, loads, strict=True)
        )

        use = rewrite_body(rewrite_body(loop.body, of_kept), lambda e: moved(e, behind))
        one, zero = Const(INT64, 1), Const(INT64, 0)
        inside = tuple(
            For(turn.name, zero, Const(INT64, turns), one, part)
            for turn, part in ((before, get), (behind, use))
        )
        return (
            Assign(full, int64("add", loop.start, chunks)),
            replace(loop, stop=Var(INT64, full), step=whole, body=inside),
            replace(loop, start=Var(INT64, full)),
        )


def loads_in_each_iteration(kernel: Kernel, loop: For) -> list[Expr]:
    """The loads from array parameters that each iteration of ``loop`` does, at elements that depend
    on nothing that the loop sets; of bfloat16 those that become float32, in which they are kept."""
    arrays = {p.name for p in kernel.params if isinstance(p, ArrayParam)}
    assigned = {assigned_variable(s) for s in statements(loop.body)}
    found: list[Expr] = []
    for stmt in loop.body:
        for whole in statement_expressions(stmt):
            for unit in always_evaluated(whole):
                match unit:
                    case Cast(type, Load() as e) if (type, e.type) == (FLOAT32, BFLOAT16):
                        pass
                    case Load() as e if e.type != BFLOAT16:
                        pass
                    case _:
                        continue
                if e.array not in arrays or unit in found:
                    continue
                inside = [x for index in e.indices for x in subexpressions(index)]
                varies = any(isinstance(x, Var) and x.name in assigned for x in inside)
                if not varies and not any(isinstance(x, Load) for x in inside):
                    found.append(unit)
    return found


def keeps_loads(array: ArrayParam | ArrayDecl) -> bool:
    """Whether ``array`` holds what a loop has loaded together, in registers."""
    return isinstance(array, ArrayDecl) and array.name.startswith("together_")


def iterations_at_once(loop: For) -> int | None:
    """How many iterations ``loop`` is that are done at once; None where it is another loop."""
    if not loop.var.startswith(TURN) or not isinstance(loop.stop, Const):
        return None
    return int(loop.stop.value)


def is_rest(loop: For) -> bool:
    """Whether ``loop`` does the iterations behind the last whole iteration."""
    start = loop.start
    while isinstance(start, Cast):  # of an index in fewer bits
        start = start.operand
    return isinstance(start, Var) and start.name.startswith((FULL, REST))


def is_rest_of_slot(loop: For) -> bool:
    """Whether ``loop`` does what is in a slot that is not full."""
    start = loop.start
    while isinstance(start, Cast):
        start = start.operand
    return isinstance(start, Var) and start.name.startswith(REST) and start.name.endswith(IN_SLOT)
