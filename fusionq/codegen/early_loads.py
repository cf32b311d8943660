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

from collections.abc import Callable
from dataclasses import dataclass, replace

from fusionq.base.target import CODE_LIMITS
from fusionq.codegen.loads_ahead import TURN, loads_in_each_turn
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Binary,
    Block,
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
    rewrite,
    rewrite_body,
    statement_expressions,
    stored_arrays,
    subexpressions,
)

_FIRST = "early_first"
_KEPT = "early_"


@dataclass(frozen=True)
class EarlyLoads:
    """``kernel``, without nested blocks, has more variables and private arrays; its body is
    ``early``, which may run before the launch before has ended, and ``body`` behind it."""

    kernel: Kernel
    early: Body
    body: Body


def arrays_loaded_early(kernel: Kernel) -> frozenset[str]:
    """The arrays of which loads could be early if no launch of the list wrote them."""
    every = tuple(
        replace(p, unwritten=True) if isinstance(p, ArrayParam) else p for p in kernel.params
    )
    body = flatten_blocks(kernel.body)
    place = _first_loop(body)
    if place is None:
        return frozenset()
    loop = body[place]
    assert isinstance(loop, For)
    return frozenset(load.array for load in _loads(replace(kernel, params=every), loop))


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
    are none."""
    names = [*(p.name for p in kernel.params), *(n for n, _ in kernel.variables)]
    place = _first_loop(body)
    if place is None or any(name.startswith(_KEPT) for name in names):
        return None
    loop = body[place]
    assert isinstance(loop, For) and isinstance(loop.step, Const)
    loads = _loads(kernel, loop)
    turns = CODE_LIMITS.iterations_ahead
    while turns * len(loads) > CODE_LIMITS.early_values:
        turns //= 2
    if not loads or turns < CODE_LIMITS.fewest_ahead:
        return None
    return _split(kernel, body, place, loads, turns)


def _first_loop(body: Body) -> int | None:
    """The place of a loop of a work-group over rows, with nothing but assignments that load
    nothing before it."""
    for place, stmt in enumerate(body):
        match stmt:
            case Block():
                continue
            case Assign() if not any(isinstance(e, Load) for e in subexpressions(stmt.value)):
                continue
            case For(start=ItemQuery("local_id"), step=Const(_, step)):
                plain = all(isinstance(s, Assign | Store) for s in stmt.body)
                return place if plain and int(step) >= CODE_LIMITS.early_step else None
        return None
    return None


def _loads(kernel: Kernel, loop: For) -> list[Load]:
    """The loads of each iteration that may be early; of bfloat16 without what makes them float32,
    which would wait for them."""
    stored = stored_arrays(kernel.body)
    arrays = {
        p.name
        for p in kernel.params
        if isinstance(p, ArrayParam) and p.unwritten and p.restrict and p.name not in stored
    }
    units = (e for unit in loads_in_each_turn(kernel, loop) for e in subexpressions(unit))
    return [e for e in units if isinstance(e, Load) and e.array in arrays]


def _split(kernel: Kernel, body: Body, place: int, loads: list[Load], turns: int) -> EarlyLoads:
    loop = body[place]
    assert isinstance(loop, For) and isinstance(loop.step, Const)
    step = int(loop.step.value)
    kept = [
        ArrayDecl(f"{_KEPT}{k}", load.type, (turns,), "private") for k, load in enumerate(loads)
    ]
    before, behind = (Var(INT64, f"{TURN}{_KEPT}{k}") for k in range(2))
    first = Var(INT64, _FIRST)
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
    early = (
        *_needed(body[:place], (*loads, loop.stop)),
        If(whole, (For(before.name, zero, every, one, get),), ()),
    )
    rest = (
        *body[:place],
        Assign(first.name, loop.start),
        If(whole, (For(behind.name, zero, every, one, use), Assign(first.name, later(every))), ()),
        replace(loop, start=first),
        *body[place + 1 :],
    )
    made = replace(
        kernel,
        arrays=(*kernel.arrays, *kept),
        variables=(*kernel.variables, (first.name, INT64)),
        body=(*early, *rest),
    )
    return EarlyLoads(made, early, rest)


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
