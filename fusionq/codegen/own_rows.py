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

from collections.abc import Iterator, Sequence

from fusionq.base.frozen import dataclass
from fusionq.base.target import CODE_LIMITS
from fusionq.codegen.interior import MOST_NODES, nodes_of
from fusionq.codegen.item_steps import FAR, ItemSteps
from fusionq.codegen.jammed_loops import JammedLoops, is_jammable, jammed
from fusionq.codegen.scoping import Body
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Call,
    Const,
    Expr,
    For,
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
    """``jammed`` does several work-items that read rows of their own; ``lengths``: iterations of
    the loops over rows, of which the longest decides whether that is faster."""

    jammed: JammedLoops
    lengths: tuple[Expr, ...]


def own_rows(kernel: Kernel, body: Body) -> OwnRows | None:
    """How several work-items of ``kernel`` with ``body`` are done at once, where each reads rows of
    its own and does little more; None if it does not."""
    last = kernel.ndim - 1
    uniform = uniform_variables(body, last)
    if not is_jammable(kernel, body, uniform):
        return None
    own = ItemQuery("global_id", last)
    steps = ItemSteps(body, own, lambda e: is_uniform(e, uniform, last))
    inner = _innermost(body)
    read = [_reads_own_row(kernel, loop, steps) for loop in inner]
    if None in read or _beside(body) > CODE_LIMITS.beside_scalars:
        return None
    values = _values(body, uniform)
    over_rows = [loop for loop, is_row in zip(inner, read, strict=True) if is_row]
    lengths = [length for loop in over_rows if (length := _length(loop, values)) is not None]
    numbers = [int(e.value) for e in lengths if isinstance(e, Const)]
    least = CODE_LIMITS.own_row_iterations
    if any(number >= least for number in numbers):
        lengths = [Const(INT64, max(numbers))]
    else:
        lengths = [e for e in lengths if not isinstance(e, Const)]
    if not lengths:
        return None
    items = CODE_LIMITS.own_rows_at_once
    while items > 1 and items * nodes_of(body) > MOST_NODES:
        items //= 2
    return OwnRows(jammed(kernel, body, items, 1, uniform), tuple(lengths))


def _reads_own_row(kernel: Kernel, loop: For, steps: ItemSteps) -> bool | None:
    """Whether iterations of ``loop`` read neighbouring elements of a row of the work-item's own;
    None if vectors of work-items may be faster: neighbours access neighbouring elements, or what
    they access is unknown, or what they compute takes longer."""
    body = (loop,)
    changing = {loop.var, *(assigned_variable(s) for s in statements(loop.body))}
    along = ItemSteps(body, Var(INT64, loop.var), lambda e: _is_kept(e, changing))
    params = {p.name: p for p in kernel.params if isinstance(p, ArrayParam)}
    rows = computed = 0
    for array, indices in _accesses(loop.body):
        if not indices:
            continue
        apart = [steps.of(index) for index in indices]
        *outer, inner = [along.of(index) for index in indices]
        if not any(apart) or not (inner or any(outer)):
            continue  # one element for all work-items, or for all iterations
        is_near = not any(apart[:-1]) and apart[-1] is not None and abs(apart[-1]) < FAR
        if None in apart or is_near or any(step != 0 for step in outer):
            return None
        param = params[array]
        if inner not in (-1, 1) or not (param.contiguous or param.unit_stride):
            return None
        rows += 1
    for e in expressions(loop.body):
        if isinstance(e, Call) and e.function in FLOAT_FUNCTIONS and e.function != _CHEAP:
            return None
        computed += isinstance(e, Binary) and e.type.is_float
    if computed > CODE_LIMITS.scalar_operations * max(rows, 1):
        return None
    return rows > 0


_CHEAP = "sqrt"
"""The one that is an instruction."""


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


def _values(body: Body, uniform: frozenset[str]) -> dict[str, Expr]:
    """What the uniform variables are set to that have one value."""
    found: dict[str, Expr] = {}
    loops = {s.var for s in statements(body) if isinstance(s, For)}
    many = set(loops)
    for s in statements(body):
        if isinstance(s, Assign) and s.name in uniform:
            if s.name in found:
                many.add(s.name)
            found[s.name] = s.value
    return {name: value for name, value in found.items() if name not in many}


def _length(loop: For, values: dict[str, Expr]) -> Expr | None:
    """The iterations of ``loop`` as what is known before the first work-item; None if that is not
    known, or it is no loop by one."""
    if loop.step != Const(INT64, 1):
        return None
    start, stop = (_known(e, values) for e in (loop.start, loop.stop))
    if start is None or stop is None:
        return None
    if isinstance(start, Const) and isinstance(stop, Const):
        return Const(INT64, int(stop.value) - int(start.value))
    return Binary(INT64, "sub", stop, start)


def _known(expr: Expr, values: dict[str, Expr]) -> Expr | None:
    """``expr`` without variables."""
    for _ in range(_DEEPEST):
        parts = list(subexpressions(expr))
        if not any(isinstance(e, Var) for e in parts):
            return None if any(isinstance(e, ItemQuery | Load) for e in parts) else expr
        expr = rewrite(expr, lambda e: values.get(e.name, e) if isinstance(e, Var) else e)
    return None


_DEEPEST = 4
"""Variables that are set to one another."""
