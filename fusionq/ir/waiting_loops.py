"""Loops that end only when somebody else has changed memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from fusionq.ir.counted_loops import ends_by_counting
from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.livelocks import array_in_livelock
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Block,
    Break,
    Call,
    Const,
    Continue,
    Expr,
    Fence,
    For,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.walk import (
    assigned_variable,
    nested_bodies,
    statement_expressions,
    statements,
    subexpressions,
)

_KEEP_WITH_ZERO = ("add", "sub", "or", "xor")
"""Atomic operations that change nothing where the operand is 0."""


def awaited_arrays(loop: While) -> frozenset[str]:
    """The arrays that have to change for ``loop`` to end, once it has run twice: its body does
    nothing but load from them, and computes the same again from the same.  Empty where it may end
    by itself."""
    inside = list(statements(loop.body))
    if not all(_only_polls(statement) for statement in inside):
        return frozenset()
    own = frozenset(name for s in inside if (name := assigned_variable(s)) is not None)
    if _reads_earlier(loop.body, own, set()):
        return frozenset()
    loads = {s.array for s in inside if isinstance(s, Atomic)}
    for expr in (loop.cond, *(e for s in inside for e in statement_expressions(s))):
        for part in subexpressions(expr):
            if isinstance(part, Call) and part.function in DEVICE_FUNCTIONS:
                return frozenset()
            if isinstance(part, Load):
                loads.add(part.array)
    return frozenset(loads)


def endless_loops(kernel: Kernel) -> Iterator[While]:
    """The loops without an end: they ask for nothing, and nothing leaves them."""
    for loop in statements(kernel.body):
        if not isinstance(loop, While) or _is_left(loop.body):
            continue
        if isinstance(loop.cond, Const) and loop.cond.value:
            yield loop


def _is_left(body: Sequence[Stmt]) -> bool:
    """Whether a loop with this body may be left from inside."""
    for stmt in body:
        if isinstance(stmt, Break):
            return True
        if not isinstance(stmt, (For, While)) and any(map(_is_left, nested_bodies(stmt))):
            return True
    return False


def loops_that_wait_for_other_items(kernel: Kernel) -> Iterator[tuple[While, str]]:
    """Loops that end only when another work-item has changed an array, with its name: one that
    this kernel writes to elsewhere."""
    every = list(statements(kernel.body))
    writes = [s for s in every if isinstance(s, Store | Atomic) and _writes(s)]
    written = {s.array for s in writes}
    for loop in every:
        if not isinstance(loop, While):
            continue
        yield from ((loop, array) for array in sorted(awaited_arrays(loop) & written))
        inside = {id(s) for s in statements(loop.body)}
        array = array_in_livelock(kernel, loop)
        if any(id(s) not in inside and s.array == array for s in writes):
            assert array is not None
            yield loop, array


def retries_that_wait(kernel: Kernel) -> Iterator[tuple[While, str]]:
    """Loops that repeat a ``compare_exchange`` of one element until it has a value that is not what
    they have seen there, with the array's name: such as a lock's, which another work-item has to
    open.  What cannot be told counts as such, but for loops that end after a number of tries."""
    private = {array.name for array in kernel.arrays if array.space == "private"}
    values: dict[str, list[Expr | Atomic]] = {}
    for s in statements(kernel.body):
        if isinstance(s, Assign):
            values.setdefault(s.name, []).append(s.value)
        elif isinstance(s, Atomic) and s.result is not None:
            values.setdefault(s.result, []).append(s)
    for loop in statements(kernel.body):
        if not isinstance(loop, While) or ends_by_counting(loop):
            continue
        inside = list(statements(loop.body))
        tries = [s for s in inside if isinstance(s, While) and not ends_by_counting(s)]
        inner = {id(s) for w in tries for s in statements(w.body)}
        changed = frozenset(
            name
            for s in inside
            if (name := s.var if isinstance(s, For) else assigned_variable(s)) is not None
        )
        for s in inside:
            if not isinstance(s, Atomic) or s.expected is None or id(s) in inner:
                continue
            if any(_reads(index, changed) for index in s.indices):
                continue  # another element each time
            expected = values.get(s.expected.name, []) if isinstance(s.expected, Var) else []
            kept = {e.array for e in expected if isinstance(e, Load)}
            stored = [t.value for t in inside if isinstance(t, Store) and t.array in kept]
            if not kept <= private or not all(_is_seen(v, s.array, kept, values) for v in stored):
                yield loop, s.array


def _is_seen(
    value: Expr,
    array: str,
    kept: Set[str],
    values: Mapping[str, Sequence[Expr | Atomic]],
    depth: int = 8,
) -> bool:
    """Whether ``value`` is certainly what was read from ``array``, or is kept for the next try."""
    if isinstance(value, Load):
        return value.array == array or value.array in kept
    if not isinstance(value, Var) or not depth:
        return False
    found = values.get(value.name, ())
    return bool(found) and all(
        one.array == array
        if isinstance(one, Atomic)
        else _is_seen(one, array, kept, values, depth - 1)
        for one in found
    )


def _only_polls(statement: Stmt) -> bool:
    if isinstance(statement, Atomic):
        return not _writes(statement)
    return isinstance(statement, Assign | If | Break | Continue | Block | Fence)


def _writes(statement: Stmt) -> bool:
    """Whether a statement may change an array: adding nothing, as some do to read, does not."""
    if not isinstance(statement, Atomic):
        return isinstance(statement, Store)
    nothing = isinstance(statement.value, Const) and statement.value.value == 0
    return not (statement.op == "load" or (statement.op in _KEEP_WITH_ZERO and nothing))


def _reads_earlier(body: Sequence[Stmt], own: frozenset[str], assigned: set[str]) -> bool:
    """Whether an iteration may read what an earlier one has assigned; adds to ``assigned`` what is
    certainly assigned behind ``body``."""
    for statement in body:
        if any(_reads(e, own - assigned) for e in statement_expressions(statement)):
            return True
        if isinstance(statement, If):
            then, orelse = set(assigned), set(assigned)
            if _reads_earlier(statement.then, own, then) or _reads_earlier(
                statement.orelse, own, orelse
            ):
                return True
            assigned |= then & orelse
        elif isinstance(statement, Block):
            if _reads_earlier(statement.body, own, assigned):
                return True
        elif (name := assigned_variable(statement)) is not None:
            assigned.add(name)
    return False


def _reads(expr: Expr, names: frozenset[str]) -> bool:
    return any(isinstance(part, Var) and part.name in names for part in subexpressions(expr))
