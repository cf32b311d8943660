"""Traversal and rewriting of the IR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter, is_
from typing import Any

from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.nodes import (
    ArrayDecl,
    Assign,
    Atomic,
    Barrier,
    Binary,
    Block,
    Break,
    Call,
    Cast,
    Compare,
    Continue,
    Expr,
    For,
    GroupCall,
    If,
    Kernel,
    Load,
    Logical,
    Persistent,
    Prefetch,
    Record,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    WorkItemLoop,
)

OWN_STATEMENTS = (Assign, Store, If, For, While, Break, Continue, Block)
"""The kinds of statements that a work-item does by itself, and that write nothing but variables and
elements."""

_OPERANDS: Mapping[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    **dict.fromkeys((Binary, Compare, Logical), attrgetter("lhs", "rhs")),
    **dict.fromkeys((Unary, Cast), lambda expr: (expr.operand,)),
    Load: attrgetter("indices"),
    Select: attrgetter("cond", "then", "orelse"),
    Call: attrgetter("args"),
}
"""The direct sub-expressions of the kinds that have any: ``match`` asks for one kind after another,
which for all of a kernel's expressions takes twice as long."""


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, in evaluation order."""
    below = _OPERANDS.get(type(expr))
    return () if below is None else below(expr)


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """``expr`` and all below it, outermost first."""
    rest = [expr]
    while rest:
        one = rest.pop()
        yield one
        below = _OPERANDS.get(type(one))
        if below is not None:
            rest.extend(below(one)[::-1])


def always_evaluated(expr: Expr) -> Iterator[Expr]:
    """Those of ``subexpressions`` that are evaluated whatever conditions inside say."""
    rest = [expr]
    while rest:
        one = rest.pop()
        yield one
        match one:
            case Select():
                rest.append(one.cond)
            case Logical():
                rest.append(one.lhs)
            case _:
                rest.extend(reversed(operands(one)))


_EXPRESSIONS: Mapping[type[Stmt], Callable[[Any], tuple[Expr, ...]]] = {
    Assign: lambda stmt: (stmt.value,),
    Store: lambda stmt: (*stmt.indices, stmt.value),
    **dict.fromkeys((If, While), lambda stmt: (stmt.cond,)),
    For: attrgetter("start", "stop", "step"),
    Atomic: lambda s: (*s.indices, *(e for e in (s.expected, s.value) if e is not None)),
    GroupCall: lambda s: (s.value, *((s.source,) if s.source is not None else ())),
    Prefetch: attrgetter("indices"),
    Record: lambda stmt: () if stmt.payload is None else (stmt.payload,),
}
"""What the kinds of statements that evaluate expressions themselves evaluate."""

_BODIES: Mapping[type[Stmt], Callable[[Any], tuple[tuple[Stmt, ...], ...]]] = {
    If: attrgetter("then", "orelse"),
    **dict.fromkeys((For, While, Block, WorkItemLoop), lambda stmt: (stmt.body,)),
}
"""The statement lists inside the kinds of statements that have any."""


def statement_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates itself (not those of nested statements)."""
    evaluated = _EXPRESSIONS.get(type(stmt))
    return () if evaluated is None else evaluated(stmt)


def nested_bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists inside a statement."""
    inside = _BODIES.get(type(stmt))
    return () if inside is None else inside(stmt)


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """All statements, outermost first, in program order."""
    rest = [*body][::-1]
    while rest:
        stmt = rest.pop()
        yield stmt
        inside = _BODIES.get(type(stmt))
        if inside is not None:
            for nested in reversed(inside(stmt)):
                rest.extend(nested[::-1])


def expressions(body: Iterable[Stmt]) -> Iterator[Expr]:
    """All expressions of all statements."""
    for stmt in statements(body):
        evaluated = _EXPRESSIONS.get(type(stmt))
        if evaluated is None:
            continue
        rest = [*evaluated(stmt)][::-1]
        while rest:  # as ``subexpressions``, which would be one generator more for each of them
            one = rest.pop()
            yield one
            below = _OPERANDS.get(type(one))
            if below is not None:
                rest.extend(below(one)[::-1])


def map_operands(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with ``f`` applied to its direct sub-expressions; ``expr`` itself where it leaves
    them as they are."""
    own = operands(expr)
    if not own:
        return expr
    new = tuple([f(operand) for operand in own])
    return expr if all(map(is_, own, new)) else _with_operands(expr, new)


def _with_operands(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """``expr`` with other direct sub-expressions."""
    match expr:
        case Binary():
            return Binary(expr.type, expr.op, *new)
        case Compare():
            return Compare(expr.op, new[0], new[1], expr.type)
        case Logical():
            return Logical(expr.op, new[0], new[1], expr.type)
        case Load():
            return Load(expr.type, expr.array, new, expr.span, expr.halved)
        case Unary():
            return Unary(expr.type, expr.op, *new)
        case Cast():
            return Cast(expr.type, *new)
        case Select():
            return Select(expr.type, new[0], new[1], new[2], expr.speculated)
        case Call():
            return Call(expr.type, expr.function, new)
        case _:
            return expr


def rewrite(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with ``f`` applied to every node, innermost first."""
    # No function inside that calls itself: that is a circle, which only the collector frees.
    below = _OPERANDS.get(type(expr))
    if below is None:
        return f(expr)
    own = below(expr)
    new = tuple([rewrite(operand, f) for operand in own])
    return f(expr if all(map(is_, own, new)) else _with_operands(expr, new))


def with_values(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """``expr`` with the ``values`` of those of its variables that have one."""
    below = _OPERANDS.get(type(expr))
    if below is None:
        return values.get(expr.name, expr) if isinstance(expr, Var) else expr
    own = below(expr)
    new = tuple([with_values(operand, values) for operand in own])
    return expr if all(map(is_, own, new)) else _with_operands(expr, new)


def rewrite_body(
    body: Iterable[Stmt],
    expr: Callable[[Expr], Expr] = lambda e: e,
    stmt: Callable[[Stmt], tuple[Stmt, ...]] = lambda s: (s,),
) -> tuple[Stmt, ...]:
    """``body`` with ``expr`` applied to every expression node and then ``stmt`` to every
    statement, both innermost first; ``stmt`` returns the statements to put in its place."""
    return tuple([new for s in body for new in stmt(_rewritten(s, expr, stmt))])


def _rewritten(
    s: Stmt, expr: Callable[[Expr], Expr], stmt: Callable[[Stmt], tuple[Stmt, ...]]
) -> Stmt:
    """``s`` with ``expr`` applied to its own expressions and both to what is inside."""
    match s:
        case Assign():
            return replace(s, value=rewrite(s.value, expr))
        case Store():
            indices = tuple([rewrite(i, expr) for i in s.indices])
            return replace(s, indices=indices, value=rewrite(s.value, expr))
        case If():
            cond = rewrite(s.cond, expr)
            then, orelse = rewrite_body(s.then, expr, stmt), rewrite_body(s.orelse, expr, stmt)
            return replace(s, cond=cond, then=then, orelse=orelse)
        case For():
            return replace(
                s,
                start=rewrite(s.start, expr),
                stop=rewrite(s.stop, expr),
                step=rewrite(s.step, expr),
                body=rewrite_body(s.body, expr, stmt),
            )
        case While():
            cond = rewrite(s.cond, expr)
            return replace(s, cond=cond, body=rewrite_body(s.body, expr, stmt))
        case Atomic():
            return replace(
                s,
                indices=tuple([rewrite(i, expr) for i in s.indices]),
                value=None if s.value is None else rewrite(s.value, expr),
                expected=None if s.expected is None else rewrite(s.expected, expr),
            )
        case GroupCall():
            return replace(
                s,
                value=rewrite(s.value, expr),
                source=None if s.source is None else rewrite(s.source, expr),
            )
        case Prefetch():
            return replace(s, indices=tuple([rewrite(i, expr) for i in s.indices]))
        case Record(payload=payload) if payload is not None:
            return replace(s, payload=rewrite(payload, expr))
        case Block() | WorkItemLoop():
            return replace(s, body=rewrite_body(s.body, expr, stmt))
        case _:
            return s


def renamed_statement(stmt: Stmt, variables: Mapping[str, str], arrays: Mapping[str, str]) -> Stmt:
    """``stmt`` with other names for the variables that it assigns and the array that it changes;
    its expressions stay."""
    match stmt:
        case Assign():
            return replace(stmt, name=variables[stmt.name])
        case Store() | Prefetch():
            return replace(stmt, array=arrays[stmt.array])
        case For():
            return replace(stmt, var=variables[stmt.var])
        case Atomic():
            result = None if stmt.result is None else variables[stmt.result]
            return replace(stmt, array=arrays[stmt.array], result=result)
        case GroupCall():
            return replace(stmt, result=variables[stmt.result])
        case _:
            return stmt


def assigned_variable(stmt: Stmt) -> str | None:
    """The variable that a statement sets, if any."""
    match stmt:
        case Assign(name):
            return name
        case Atomic() | GroupCall():
            return stmt.result
        case _:
            return None


def reads_memory(expr: Expr) -> bool:
    """Whether the expression loads from an array."""
    return any(isinstance(e, Load) for e in subexpressions(expr))


def loaded_arrays(body: Iterable[Stmt]) -> set[str]:
    """The arrays that statements load from."""
    return {e.array for e in expressions(body) if isinstance(e, Load)}


def stored_arrays(body: Iterable[Stmt]) -> set[str]:
    """The arrays that statements store to, or do atomic operations on."""
    return {s.array for s in statements(body) if isinstance(s, Store | Atomic)}


def local_memories(kernel: Kernel) -> dict[str, tuple[ArrayDecl, ...]]:
    """The local arrays of ``kernel`` by the memory that they lie in."""
    found: dict[str, tuple[ArrayDecl, ...]] = {}
    for array in kernel.arrays:
        if array.space == "local":
            name = array.memory or array.name
            found[name] = (*found.get(name, ()), array)
    return found


def local_bytes(kernel: Kernel) -> int:
    """Bytes of local memory that a work-group of ``kernel`` takes."""
    memories = local_memories(kernel).values()
    return sum(max(array.nbytes for array in arrays) for arrays in memories)


def private_bytes(kernel: Kernel) -> int:
    """Bytes of the private arrays of a work-item of ``kernel``."""
    return sum(array.nbytes for array in kernel.arrays if array.space == "private")


def combines_floats(call: GroupCall) -> bool:
    """Whether the order in which a function of a work-group combines may show in its result."""
    return call.sub_group is None and call.op is not None and call.value.type.is_float


def has_ordered_functions(kernel: Kernel) -> bool:
    """Whether ``kernel`` has functions of work-groups that may be done in local memory for the sake
    of their order: that combine floats, or are ``in_order``."""
    calls = (s for s in statements(kernel.body) if isinstance(s, GroupCall))
    return any(call.in_order or combines_floats(call) for call in calls)


def has_barrier(body: Iterable[Stmt]) -> bool:
    """Whether work-items of a group wait for each other somewhere in ``body``."""
    return any(isinstance(s, (Barrier, GroupCall)) for s in statements(body))


@cached_by_identity
def waits_in_groups(kernel: Kernel) -> bool:
    """Whether work-items of a group wait for each other somewhere in ``kernel``."""
    return has_barrier(kernel.body)


@cached_by_identity
def written_arrays(kernel: Kernel) -> frozenset[str]:
    """The arrays that ``kernel`` stores to, or does atomic operations on."""
    return frozenset(stored_arrays(kernel.body))


def is_work_group_function(kernel: Kernel) -> bool:
    """Whether ``kernel`` runs once for each work-group, in work-item loops."""
    return any(isinstance(s, WorkItemLoop) for s in statements(kernel.body))


def is_persistent(kernel: Kernel) -> bool:
    """Whether the workers of a launch of ``kernel`` have to run at once."""
    return any(isinstance(stmt, Persistent) for stmt in kernel.body)


def persistent_of(kernel: Kernel) -> Persistent | None:
    """What ``kernel`` is, where it is a persistent one."""
    body = kernel.body[0] if kernel.body else None
    return body if isinstance(body, Persistent) else None


def takes_work_groups(kernel: Kernel) -> bool:
    """Whether a stage that does ``kernel`` has tiles of whole work-groups: for each of them it runs
    once, as a work-group function, or in as many threads as that has work-items."""
    shared = waits_in_groups(kernel) or any(array.space == "local" for array in kernel.arrays)
    return shared or is_work_group_function(kernel)
