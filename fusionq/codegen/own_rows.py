"""Work-items each of which reads a row of memory of its own, done one by one, several at a time.

    for i in a tile, by lanes:               for i in the tile, four at a time:
        s = 0                                    s, s 1, s 2, s 3 = 0, 0, 0, 0
        for k in range(n):            →          for k in range(n):
            s += x[i, k]                             s += x[i, k]; s 1 += x[i + 1, k]; …
        out[i] = s                               out[i] = s; out[i + 1] = s 1; …

A vector loads such elements one by one, from a row for each of its lanes: where rows are a power of
two apart, 16 of them do not fit the sets of the nearest cache, and each line is fetched once for
each of its elements.  A work-item by itself reads its row from end to end; several have as many
sums that do not wait for each other.

Legal as work-items of a stage are in no order, each does its operations in its own order, and each
has variables of its own.  Bounds of loops have to be the same for all, as for several vectors of a
row (``jammed_loops``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.interior import MOST_NODES, nodes_of
from fusionq.codegen.item_steps import FAR, ItemSteps
from fusionq.codegen.jammed_loops import JammedLoops, is_jammable, jammed, temporaries
from fusionq.codegen.scoping import Body
from fusionq.ir.functions import DEVICE_FUNCTIONS, FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Block,
    Call,
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
from fusionq.ir.uniformity import is_uniform, uniform_variables
from fusionq.ir.walk import assigned_variable, expressions, rewrite, statements, subexpressions


@dataclass(frozen=True)
class OwnRows:
    """``jammed`` does several work-items that read rows of their own by ``loops``, None where each
    is done by itself; ``lengths``: about the elements of the rows, the most of which decide whether
    that is faster."""

    jammed: JammedLoops | None
    loops: tuple[For, ...]
    lengths: tuple[Expr, ...]


def own_rows(
    kernel: Kernel,
    body: Body,
    is_masked: bool = False,
    operations: int = CODE_LIMITS.scalar_operations,
) -> OwnRows | None:
    """How one lane does work-items of ``kernel`` with ``body``, where each reads rows of its own
    and does little more; None where vectors may be faster.  ``is_masked``: it does so under a mask,
    of which conditions in loops make one for each.  ``operations``: for each element of a row, at
    most."""
    last = kernel.ndim - 1
    uniform = uniform_variables(body, last)
    own = ItemQuery("global_id", last)
    steps = ItemSteps(body, own, lambda e: is_uniform(e, uniform, last))
    inner = _innermost(body)
    read = [_reads_own_row(kernel, loop, steps, operations) for loop in inner]
    if is_masked and any(isinstance(s, If) for loop in inner for s in statements(loop.body)):
        return None
    if not inner or None in read or _beside(body) > CODE_LIMITS.beside_scalars:
        return None
    together = None
    if is_jammable(kernel, body, uniform):
        together = jammed(kernel, body, _at_once(body), 1, uniform)
    elif not is_plain(body) or not all(_is_free(loop, body) for loop in inner):
        return None
    values = _values(body)
    over_rows = [loop for loop, is_row in zip(inner, read, strict=True) if is_row]
    lengths = [length for loop in over_rows if (length := _length(loop, values, own)) is not None]
    numbers = [int(e.value) for e in lengths if isinstance(e, Const)]
    if any(number >= CODE_LIMITS.own_row_iterations for number in numbers):
        lengths = [Const(INT64, max(numbers))]
    else:
        lengths = [e for e in lengths if not isinstance(e, Const)]
    return OwnRows(together, tuple(over_rows), tuple(lengths)) if lengths else None


def _at_once(body: Body) -> int:
    """Work-items that are done together."""
    items = CODE_LIMITS.own_rows_at_once
    while items > 1 and items * nodes_of(body) > MOST_NODES:
        items //= 2
    return items


def is_plain(body: Body) -> bool:
    """Whether ``body`` does nothing that work-items do together."""
    every = (Assign, Store, If, For, Block)
    if not all(isinstance(s, every) for s in statements(body)):
        return False
    called = {e.function for e in expressions(body) if isinstance(e, Call)}
    return called.isdisjoint(DEVICE_FUNCTIONS)


def _is_free(loop: For, body: Body) -> bool:
    """Whether no iteration of ``loop`` waits for what the one before has computed in variables."""
    return set(map(assigned_variable, statements(loop.body))) - {None} <= temporaries(loop, body)


def _reads_own_row(
    kernel: Kernel, loop: For, steps: ItemSteps, operations: int
) -> bool | None:
    """Whether iterations of ``loop`` access elements near each other of a row of the work-item's
    own; None if vectors of work-items may be faster: neighbours access neighbouring elements, or
    what they access is unknown, or what they compute takes longer."""
    changing = {loop.var, *(assigned_variable(s) for s in statements(loop.body))}
    along = ItemSteps((loop,), Var(INT64, loop.var), lambda e: _is_kept(e, changing))
    params = {p.name: p for p in kernel.params if isinstance(p, ArrayParam)}
    by = int(loop.step.value) if isinstance(loop.step, Const) else FAR
    rows = computed = 0
    for array, indices in dict.fromkeys(_accesses(loop.body)):
        if not indices:
            continue
        *outer, inner = in_turn = [along.of(index) for index in indices]
        apart = [steps.of(index) for index in indices]
        if not any(step != 0 for step in apart) or not any(step != 0 for step in in_turn):
            continue  # one element for all work-items, or for all iterations
        is_far = any(apart[:-1]) or abs(apart[-1] or 0) >= FAR
        param = params.get(array)
        if param is None or not is_far or any(step != 0 for step in outer) or not inner:
            return None
        if abs(inner * by) > _NEAR or not (param.contiguous or param.unit_stride):
            return None
        rows += 1
    for e in expressions(loop.body):
        if isinstance(e, Call) and e.function in FLOAT_FUNCTIONS:
            return None
        if isinstance(e, Binary) and e.type.is_float:
            computed += _DIVISION if e.op in ("truediv", "floordiv", "mod") else 1
    if computed > operations * max(rows, 1):
        return None
    return rows > 0


_NEAR = 4
"""Elements from one iteration to the next, at most: several share a cache line."""

_DIVISION = 11
"""Operations in the time of a division: vectors do eight at once."""


def _accesses(body: Sequence[Stmt]) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """The arrays and indices of all loads and stores."""
    for s in statements(body):
        if isinstance(s, Store):
            yield s.array, s.indices
    for e in expressions(body):
        if isinstance(e, Load):
            yield e.array, e.indices


def _is_kept(expr: Expr, changing: set[str | None]) -> bool:
    """Whether ``expr`` has one value in all iterations that change the variables ``changing``."""
    return not any(
        isinstance(e, Load) or (isinstance(e, Var) and e.name in changing)
        for e in subexpressions(expr)
    )


def _innermost(body: Sequence[Stmt]) -> list[For]:
    """The loops of ``body`` that have none inside."""
    loops = [s for s in statements(body) if isinstance(s, For)]
    return [loop for loop in loops if not any(isinstance(s, For) for s in statements(loop.body))]


def _beside(body: Sequence[Stmt]) -> int:
    """The expressions of ``body`` outside of its innermost loops that are done for each work-item
    or, in a loop around them, for each of its iterations."""
    return nodes_of(body) - sum(nodes_of(loop.body) for loop in _innermost(body))


def _values(body: Body) -> dict[str, Expr]:
    """What the variables are set to that have one value."""
    times = Counter(assigned_variable(s) for s in statements(body))
    return {
        s.name: s.value for s in statements(body) if isinstance(s, Assign) and times[s.name] == 1
    }


def _length(loop: For, values: dict[str, Expr], own: ItemQuery) -> Expr | None:
    """From where to where ``loop`` goes, for the first work-item of a tile; None if that is not
    known ahead."""
    if not isinstance(loop.step, Const):
        return None
    ends = [_known(e, values, own) for e in (loop.start, loop.stop)]
    start, stop = ends if loop.step.value > 0 else reversed(ends)
    if start is None or stop is None:
        return None
    if isinstance(start, Const) and isinstance(stop, Const):
        return Const(INT64, int(stop.value) - int(start.value))
    return Binary(INT64, "sub", stop, start)


def _known(expr: Expr, values: dict[str, Expr], own: ItemQuery) -> Expr | None:
    """``expr`` for the first work-item, without variables; None if it depends on memory, or may
    divide by zero."""
    first = ItemQuery("tile_first", own.dim)

    def known(e: Expr) -> Expr:
        return values.get(e.name, e) if isinstance(e, Var) else first if e == own else e

    for _ in range(_DEEPEST):
        expr = rewrite(expr, known)
        parts = list(subexpressions(expr))
        if own not in parts and not any(isinstance(e, Var) for e in parts):
            return expr if all(map(_is_safe, parts)) else None
    return None


def _is_safe(e: Expr) -> bool:
    """Whether ``e`` has a value before the work-items of a tile."""
    match e:
        case Load():
            return False
        case ItemQuery(query=query):
            return query == "tile_first" or query.endswith("_range")
        case Binary(op="floordiv" | "mod" | "truediv", rhs=rhs):
            return isinstance(rhs, Const) and rhs.value != 0
        case Call(function=function):
            return function not in DEVICE_FUNCTIONS
    return True


_DEEPEST = 4
"""Variables that are set to one another."""
