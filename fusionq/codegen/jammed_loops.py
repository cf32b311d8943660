"""Unroll and jam across the vectors of a row: several of them share the iterations of a loop.

    for v in the row's vectors:            for v in the row's vectors, two at a time:
        total = 0                              total, total 1 = 0, 0
        for k in range(n):            →        for k in range(n):
            total += x[k] * a[k, v]                total += x[k] * a[k, v]
        out[v] = total                             total 1 += x[k] * a[k, v + 1]
                                               out[v], out[v + 1] = total, total 1

An iteration of such a loop reads a vector of a row of ``a``, the next one a vector of another row:
memory that could be read from end to end is read in pieces of a vector, and each iteration waits
for the sum of the last.  Several vectors read pieces several times as long, and have as many sums.

Legal as vectors are: each statement is done for all work-items of several vectors before the next,
each of which has variables of its own.  Bounds of loops have to be the same for all of a row, and
conditions around loops; what another condition holds is done for one vector after the other.  Loops
are left alone in which neighbours read elements that are no neighbours in memory:
each of their lanes reads a cache line of its own.

Callahan, Carr, Kennedy: "Improving register allocation for subscripted variables", 1990.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.interior import MOST_NODES, nodes_of
from fusionq.codegen.item_steps import FAR, ItemSteps
from fusionq.codegen.scoping import Body, mentioned
from fusionq.ir.functions import DEVICE_FUNCTIONS
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
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.uniformity import is_uniform, uniform_variables
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    rewrite,
    statements,
    subexpressions,
)


@dataclass(frozen=True)
class JammedLoops:
    """``body`` does ``items`` work-items of a lane, one at every so many lanes; it has
    ``variables`` more than the kernel."""

    items: int
    body: Body
    variables: tuple[tuple[str, ScalarType], ...]

    def added_to(self, kernel: Kernel) -> Kernel:
        """``kernel`` with what the body has beside."""
        return replace(kernel, variables=(*kernel.variables, *self.variables))


def jammed_loops(
    kernel: Kernel,
    body: Body,
    lanes: int,
    of_row: Iterable[str] = (),
    most_nodes: int = MOST_NODES,
) -> JammedLoops | None:
    """``body``, what ``kernel`` does inside of rows, for several work-items of each of the
    ``lanes`` of a vector; None where it is not to be done so, or there is no loop that reads rows
    of memory.  ``of_row``: variables that have their values before a row; ``most_nodes``:
    expressions of what they all do, at most."""
    last = kernel.ndim - 1
    uniform = uniform_variables(body, last, of_row)
    if not is_jammable(kernel, body, uniform):
        return None
    own = ItemQuery("global_id", last)
    steps = ItemSteps(body, own, lambda e: is_uniform(e, uniform, last))
    loops = [s for s in statements(body) if isinstance(s, For)]
    read = [_reads_rows(kernel, s, steps) for s in loops]
    if None in read:
        return None
    loops = [s for s, rows in zip(loops, read, strict=True) if rows]
    if not loops:
        return None
    types = dict(kernel.variables)
    held = _own_variables(body, uniform) - {v for v, step in steps.known.items() if step < FAR}
    in_loops = [mentioned(s) & held for s in loops]
    taken = max(sum(types[v].nbytes for v in names) for names in in_loops)
    of_all = [names - temporaries(s, body) for names, s in zip(in_loops, loops, strict=True)]
    kept = max(sum(types[v].nbytes for v in names) for names in of_all)
    # What is kept in memory from an iteration to the next one is in a register between.
    kept = kept or max(e.type.nbytes for s in loops for e in expressions(s.body) if _is_load(e))
    items = 1
    while (
        2 * items * kept <= CODE_LIMITS.jammed_bytes
        and 2 * items * taken <= CODE_LIMITS.jammed_temporaries
        and 2 * items * nodes_of(body) <= most_nodes
    ):
        items *= 2
    if items == 1:
        return None
    return jammed(kernel, body, items, lanes, uniform)


def jammed(
    kernel: Kernel, body: Body, items: int, lanes: int, uniform: frozenset[str]
) -> JammedLoops:
    """``body``, which ``is_jammable``, for so many ``items``, one at every so many ``lanes``."""
    types, own = dict(kernel.variables), _own_variables(body, uniform)
    jam = _Jam(items, lanes, kernel.ndim - 1, own, uniform)
    variables = tuple((jam.name(v, k), types[v]) for v in sorted(own) for k in range(1, items))
    return JammedLoops(items, tuple(jam.body(body)), variables)


def _own_variables(body: Body, uniform: frozenset[str]) -> frozenset[str]:
    """The variables of which each work-item has one."""
    return frozenset(name for s in statements(body) if (name := assigned_variable(s))) - uniform


def is_jammable(kernel: Kernel, body: Body, uniform: frozenset[str]) -> bool:
    """Whether ``body`` does nothing but compute, load and store elements of memory, where what it
    does next is the same for all of a row."""
    last = kernel.ndim - 1
    memory = {p.name for p in kernel.params if isinstance(p, ArrayParam)}
    own = ItemQuery("global_id", last)
    known = uniform | {s.var for s in statements(body) if isinstance(s, For)}
    known |= {name for s in statements(body) if (name := assigned_variable(s)) is not None}
    for s in statements(body):
        match s:
            case For(_, start, stop, step):
                control: Sequence[Expr] = (start, stop, step)
            case If(cond):
                has_loops = any(isinstance(inner, For) for inner in statements((s,)))
                control = (cond,) if has_loops else ()
            case Block(body=()) | Assign():
                control = ()
            case Store(array) if array in memory:
                control = ()
            case _:
                return False
        if not all(is_uniform(e, uniform, last) for e in control):
            return False
    for e in expressions(body):
        match e:
            case Load(array=array) if array not in memory:
                return False
            case Var(name=name) if name not in known:
                return False
            case ItemQuery() if e != own and not is_uniform(e, uniform, last):
                return False
            case Call(function=function) if function in DEVICE_FUNCTIONS:
                return False
    return True


def _reads_rows(kernel: Kernel, loop: For, steps: ItemSteps) -> bool | None:
    """Whether iterations of ``loop`` read rows of memory, one after the other; None if in one
    neighbours read elements that are no neighbours, of which several vectors would have as many
    more in the caches."""
    params = {p.name: p for p in kernel.params if isinstance(p, ArrayParam)}
    changing = {loop.var, *(assigned_variable(s) for s in statements(loop.body))}
    found = False
    for e in expressions(loop.body):
        if isinstance(e, Load) and e.indices:
            param, of_indices = params[e.array], [steps.of(i) for i in e.indices]
            if any(of_indices[:-1]) or of_indices[-1] not in (0, 1) or None in of_indices:
                return None
            if of_indices[-1] == 1 and not (param.contiguous or param.unit_stride):
                return None
            used = {v.name for v in subexpressions(e) if isinstance(v, Var)}
            found |= of_indices[-1] == 1 and not used.isdisjoint(changing)
    return found


def _is_load(expr: Expr) -> bool:
    return isinstance(expr, Load)


def temporaries(loop: For, body: Body) -> frozenset[str]:
    """The variables of ``loop`` that no statement beside it mentions: what an iteration computes
    for itself."""
    inside = Counter(_names(loop.body))
    return frozenset(name for name, times in Counter(_names(body)).items() if times == inside[name])


def _names(body: Body) -> Iterator[str]:
    for s in statements(body):
        name = assigned_variable(s)
        if name is not None:
            yield name
    for e in expressions(body):
        if isinstance(e, Var):
            yield e.name


@dataclass(frozen=True)
class _Jam:
    items: int
    lanes: int
    last: int
    own: frozenset[str]
    """The variables of which each work-item has one."""
    uniform: frozenset[str]

    def name(self, variable: str, k: int) -> str:
        """That of the ``k``-th work-item; no name of a kernel has a space."""
        return f"{variable} {k}" if k else variable

    def body(self, body: Iterable[Stmt]) -> Iterator[Stmt]:
        """``body`` for all work-items, statement by statement."""
        for s in body:
            match s:
                case For():
                    yield replace(s, body=tuple(self.body(s.body)))
                case If(cond) if is_uniform(cond, self.uniform, self.last):
                    then, orelse = tuple(self.body(s.then)), tuple(self.body(s.orelse))
                    yield replace(s, then=then, orelse=orelse)
                case If() | Store():
                    for k in range(self.items):
                        yield self._of_item(s, k)
                case Assign() if s.name in self.own:
                    for k in range(self.items):
                        yield self._of_item(s, k)
                case _:
                    yield s

    def _of_item(self, s: Stmt, k: int) -> Stmt:
        """``s`` for the ``k``-th work-item."""
        match s:
            case If(cond):
                then = tuple(self._of_item(inner, k) for inner in s.then)
                orelse = tuple(self._of_item(inner, k) for inner in s.orelse)
                return replace(s, cond=self._expr(cond, k), then=then, orelse=orelse)
            case Assign(name, value):
                name = self.name(name, k) if name in self.own else name
                return replace(s, name=name, value=self._expr(value, k))
            case Store(_, indices, value):
                there = tuple(self._expr(e, k) for e in indices)
                return replace(s, indices=there, value=self._expr(value, k))
        return s

    def _expr(self, expr: Expr, k: int) -> Expr:
        """``expr`` for the ``k``-th work-item."""
        id = ItemQuery("global_id", self.last)
        other = Binary(INT64, "add", id, Const(INT64, k * self.lanes)) if k else id

        def there(e: Expr) -> Expr:
            if isinstance(e, Var) and e.name in self.own:
                return replace(e, name=self.name(e.name, k))
            return other if e == id else e

        return rewrite(expr, there)
