"""Loads of a loop's first iterations ahead of the wait for the launch before: a prefetch into
registers across launches.

    wait                              row = 4 * group
    row = 4 * group                   if lane + 1920 < n:
    for k in range(lane, n, 128):         for t in range(16): kept[t] = a[row, lane + 128 * t]
        own += a[row, k] * x[k]   →   wait
                                      row = 4 * group; first = lane
                                      if lane + 1920 < n:
                                          for t in range(16): own += kept[t] * x[lane + 128 * t]
                                          first = lane + 2048
                                      for k in range(first, n, 128): own += a[row, k] * x[k]

A launch of few work-groups does not fill the memory's lines while the one before ends, and is
short beside the time that its first loads take.  Legal for arrays that no launch of the list
writes (``ArrayParam.unwritten``): they have the same contents before the wait.  Iterations are done
in their order, so sums have the same bits.

Source: NVIDIA, CUDA C++ Programming Guide 13, Programmatic Dependent Launch and Synchronization.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.loads_ahead import TURN, loads_in_each_iteration
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Binary,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    assigned_variable,
    rewrite,
    rewrite_body,
    statement_expressions,
    statements,
    stored_arrays,
    subexpressions,
)

_FIRST = "early_first_"
_KEPT = "early_"


@dataclass(frozen=True)
class EarlyLoads:
    """``kernel``, without nested blocks, has more variables and private arrays; its body is
    ``early``, which may run before the launch before has ended, and ``body`` behind it.  Of the
    arrays ``once`` each work-group loads rows of its own, so that no cache need keep them."""

    kernel: Kernel
    early: Body
    body: Body
    once: frozenset[str]


def arrays_loaded_early(kernel: Kernel) -> frozenset[str]:
    """The arrays of which loads could be early if no launch of the list wrote them."""
    every = tuple(
        replace(p, unwritten=True) if isinstance(p, ArrayParam) else p for p in kernel.params
    )
    made = replace(kernel, params=every)
    body = flatten_blocks(kernel.body)
    loads = (load for _, loop, known in _row_loops(body) for load in _loads(made, loop, known))
    return frozenset(load.array for load in loads)


def has_rows_of_groups(kernel: Kernel) -> bool:
    """Whether there may be such arrays in a kernel that ``kernel`` is fused into."""
    return any(
        isinstance(stmt, For)
        and isinstance(stmt.start, ItemQuery)
        and stmt.start.query == "local_id"
        for stmt in flatten_blocks(kernel.body)
    )


def with_early_loads(kernel: Kernel, body: Body) -> EarlyLoads | None:
    """``kernel``, whose body without nested blocks is ``body``, with early loads; None where there
    are none.  The first loops come first where registers are not enough for all."""
    names = [*(p.name for p in kernel.params), *(n for n, _ in kernel.variables)]
    if any(name.startswith(_KEPT) for name in names):
        return None
    early: list[Stmt] = []
    rest: list[Body] = [(stmt,) for stmt in body]
    room = CODE_LIMITS.early_values
    of_groups: set[str] = set()
    shared: set[str] = set()
    for place, loop, known in _row_loops(body):
        loads = _loads(kernel, loop, known)
        for load in loads:
            (of_groups if _asks_for_group(body[:place], load) else shared).add(load.array)
        turns = CODE_LIMITS.iterations_ahead
        while turns * len(loads) > room:
            turns //= 2
        if not loads or turns < CODE_LIMITS.fewest_ahead:
            continue
        room -= turns * len(loads)
        kernel, get, rest[place] = _split(kernel, loop, loads, turns, place)
        needed = _needed(body[:place], (*loads, loop.stop))
        early += [*(stmt for stmt in needed if stmt not in early), get]
    if not early:
        return None
    behind = tuple(stmt for part in rest for stmt in part)
    before = tuple(early)
    once = frozenset(of_groups - shared)
    return EarlyLoads(replace(kernel, body=(*before, *behind)), before, behind, once)


def _row_loops(body: Body) -> Iterator[tuple[int, For, frozenset[str]]]:
    """The loops of a work-group over rows whose bounds are known before any memory is, with their
    places and the variables that are known so."""
    count = Counter(assigned_variable(stmt) for stmt in statements(body))
    known: set[str] = set()
    for place, stmt in enumerate(body):
        match stmt:
            case Assign(name, value) if count[name] == 1 and _is_known(value, known):
                known.add(name)
            case For(start=ItemQuery("local_id"), step=Const(_, step)):
                plain = all(isinstance(s, Assign | Store) for s in stmt.body)
                if plain and int(step) >= CODE_LIMITS.early_step and _is_known(stmt.stop, known):
                    yield place, stmt, frozenset(known)


def _asks_for_group(before: Body, load: Load) -> bool:
    """Whether ``load``, behind ``before``, needs to know which work-group it is for."""
    needed = (e for s in _needed(before, (load,)) for e in statement_expressions(s))
    return any(
        isinstance(e, ItemQuery) and e.query in ("group_id", "global_id")
        for value in (load, *needed)
        for e in subexpressions(value)
    )


def _is_known(value: Expr, known: Collection[str]) -> bool:
    """Whether ``value`` needs no memory and, of variables, those ``known`` only."""
    return not any(
        isinstance(e, Load) or (isinstance(e, Var) and e.name not in known)
        for e in subexpressions(value)
    )


def _loads(kernel: Kernel, loop: For, known: Collection[str]) -> list[Load]:
    """The loads of each iteration that may be early, by the variables ``known``; of bfloat16
    without what makes them float32, which would wait for them."""
    stored = stored_arrays(kernel.body)
    arrays = {
        p.name
        for p in kernel.params
        if isinstance(p, ArrayParam) and p.unwritten and p.restrict and p.name not in stored
    }
    units = (e for unit in loads_in_each_iteration(kernel, loop) for e in subexpressions(unit))
    within = {loop.var, *known}
    return [
        e
        for e in units
        if isinstance(e, Load)
        and e.array in arrays
        and all(_is_known(i, within) for i in e.indices)
    ]


def _split(
    kernel: Kernel, loop: For, loads: list[Load], turns: int, place: int
) -> tuple[Kernel, Stmt, Body]:
    """``kernel`` with what ``loop``, which stands at ``place``, keeps; the statement that loads it,
    and the loop behind that."""
    assert isinstance(loop.step, Const)
    step = int(loop.step.value)
    kept = [
        ArrayDecl(f"{_KEPT}{place}_{k}", load.type, (turns,), "private")
        for k, load in enumerate(loads)
    ]
    before, behind = (Var(INT64, f"{TURN}{_KEPT}{place}_{k}") for k in range(2))
    first = Var(INT64, f"{_FIRST}{place}")
    zero, one = Const(INT64, 0), Const(INT64, 1)

    def later(turn: Expr) -> Expr:
        """The loop's variable after so many iterations."""
        return Binary(INT64, "add", loop.start, Binary(INT64, "mul", turn, Const(INT64, step)))

    def at(turn: Expr) -> Callable[[Expr], Expr]:
        return lambda e: later(turn) if e == Var(INT64, loop.var) else e

    def of_kept(e: Expr) -> Expr:
        if isinstance(e, Load) and e in loads:
            return Load(e.type, kept[loads.index(e)].name, (behind,))
        return e

    last = Const(INT64, (turns - 1) * step)
    whole = Compare("lt", Binary(INT64, "add", loop.start, last), loop.stop)
    get = tuple(
        Store(array.name, (before,), rewrite(load, at(before)))
        for array, load in zip(kept, loads, strict=True)
    )
    use = rewrite_body(rewrite_body(loop.body, of_kept), at(behind))
    every = Const(INT64, turns)
    made = replace(
        kernel,
        arrays=(*kernel.arrays, *kept),
        variables=(*kernel.variables, (first.name, INT64)),
    )
    rest = (
        Assign(first.name, loop.start),
        If(whole, (For(behind.name, zero, every, one, use), Assign(first.name, later(every))), ()),
        replace(loop, start=first),
    )
    return made, If(whole, (For(before.name, zero, every, one, get),), ()), rest


def _needed(body: Body, values: tuple[Expr, ...]) -> Body:
    """The assignments of ``body`` that ``values`` need."""
    names = {e.name for value in values for e in subexpressions(value) if isinstance(e, Var)}
    found: list[Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, Assign) and stmt.name in names:
            found.insert(0, stmt)
            names |= {
                e.name
                for value in statement_expressions(stmt)
                for e in subexpressions(value)
                if isinstance(e, Var)
            }
    return tuple(found)
