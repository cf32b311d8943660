"""Livelocks: loops whose own atomic operations bring them no further, found by an example.

The example is a value of the element that they change, with which an iteration of work-item 0
certainly does not leave the loop, and after which the element is as it was.  The next iteration is
the same, and so are all others, until another work-item changes the element.  That is a lock which
is held: what would take it (``exchange``, ``fetch_or``, ``fetch_max``, a ``fetch_add`` that is
taken back) leaves it so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Block,
    Break,
    Cast,
    Compare,
    Const,
    Continue,
    Expr,
    Fence,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import assigned_variable, statement_expressions, statements, subexpressions

Number: TypeAlias = bool | int | float
Values: TypeAlias = dict[str, Number]
"""Of variables, as far as they are known."""

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "min": min, "max": max,
    "exchange": lambda old, new: new, "store": lambda old, new: new,
}  # fmt: skip


def array_in_livelock(kernel: Kernel, loop: While) -> str | None:
    """The array of which another work-item has to change an element for ``loop`` to end, where an
    example shows that."""
    inside = list(statements(loop.body))
    changes = [s for s in inside if isinstance(s, Atomic) and s.op != "load"]
    if not changes or any(
        (s.array, s.indices) != (changes[0].array, changes[0].indices) for s in changes
    ):
        return None
    private = {array.name for array in kernel.arrays if array.space == "private"}
    own = {name for s in inside if (name := assigned_variable(s)) is not None}
    array, indices, value = changes[0].array, changes[0].indices, changes[0].value
    for part in (e for index in indices for e in subexpressions(index)):
        if isinstance(part, Load) or (isinstance(part, Var) and part.name in own):
            return None  # another element each time
    kinds = Assign | If | Block | Fence | Break | Continue | Atomic
    if not all(isinstance(s, kinds) or _is_private(s, private) for s in inside):
        return None
    assert value is not None, "of what changes an element"
    element = _Element(array, indices, value.type)
    before = _known_before(kernel, inside)
    if any(_stays(loop, element, example, before) for example in _examples(loop, value.type)):
        return array
    return None


@dataclass(frozen=True, slots=True)
class _Element:
    """What a loop changes."""

    array: str
    indices: tuple[Expr, ...]
    type: ScalarType


class _MayLeaveError(Exception):
    """It is not certain that an iteration comes to its end."""


def _is_private(statement: Stmt, private: set[str]) -> bool:
    return isinstance(statement, Store) and statement.array in private


def _known_before(kernel: Kernel, inside: Sequence[Stmt]) -> Values:
    """The variables that work-item 0 has assigned before a loop with the statements ``inside``."""
    own = {id(s) for s in inside}
    assigned = [s for s in statements(kernel.body) if assigned_variable(s) is not None]
    names = [assigned_variable(s) for s in assigned]
    values: Values = {}
    for statement in assigned:
        if isinstance(statement, Assign) and id(statement) not in own:
            known = _known(statement.value, values)
            if known is not None and names.count(statement.name) == 1:
                values[statement.name] = known
    return values


def _examples(loop: While, type: ScalarType) -> Iterator[Number]:
    """Values of an element of ``type``: what the loop compares with and changes by, and what is
    next to that."""
    constants = {
        e.value
        for s in (loop, *statements(loop.body))
        for expr in statement_expressions(s)
        for e in subexpressions(expr)
        if isinstance(e, Const)
    }
    if type.is_float:
        yield from {0.0, 1.0, *map(float, constants)}
        return
    whole = {0, 1, *(int(c) for c in constants if isinstance(c, (bool, int)))}
    near = {n + d for n in whole for d in (-1, 0, 1)}
    yield from {_wrapped(n, type) for n in (*near, *(~n for n in near))}


def _stays(loop: While, element: _Element, example: Number, before: Values) -> bool:
    """Whether ``loop``, once it has been entered with the element at ``example``, goes on for ever
    and leaves it so."""
    values = before.copy()
    try:
        for _ in range(3):
            earlier = values.copy()
            if _iteration(loop.body, element, example, values) != example:
                return False
            if _known(loop.cond, values) is not True:
                return False
            if values == earlier:
                return True
    except _MayLeaveError:
        pass
    return False


def _iteration(
    body: Sequence[Stmt], element: _Element, now: Number, values: Values
) -> Number:
    """The element behind ``body``, if it is ``now`` before; ``values`` are those before, and then
    behind it."""
    for statement in body:
        match statement:
            case Break() | Continue():
                raise _MayLeaveError
            case Block():
                now = _iteration(statement.body, element, now, values)
            case If():
                decided = _known(statement.cond, values)
                parts = [
                    part
                    for part, way in ((statement.then, True), (statement.orelse, False))
                    if decided in (way, None)
                ]
                ways = [values.copy() for _ in parts]
                found = {
                    _iteration(part, element, now, way)
                    for part, way in zip(parts, ways, strict=True)
                }
                if len(found) > 1:
                    raise _MayLeaveError
                (now,) = found
                values.clear()
                values |= dict(set.intersection(*(set(way.items()) for way in ways)))
            case Assign():
                _set(values, statement.name, _known(statement.value, values))
            case Atomic():
                is_it = (statement.array, statement.indices) == (element.array, element.indices)
                if statement.result is not None:
                    _set(values, statement.result, now if is_it else None)
                if is_it and statement.op != "load":
                    now = _changed(statement, element.type, now, values)
    return now


def _changed(atomic: Atomic, type: ScalarType, now: Number, values: Mapping[str, Number]) -> Number:
    assert atomic.value is not None
    operand = _known(atomic.value, values)
    if operand is None or atomic.op not in _COMPUTED:
        raise _MayLeaveError
    changed: Number = _COMPUTED[atomic.op](now, operand)
    return changed if type.is_float else _wrapped(int(changed), type)


def _set(values: Values, name: str, value: Number | None) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _known(expr: Expr, values: Mapping[str, Number]) -> Number | None:
    """The value of ``expr`` in work-item 0, None where it is not known."""
    match expr:
        case Const():
            return expr.value
        case Var():
            return values.get(expr.name)
        case ItemQuery("global_id" | "local_id" | "group_id"):
            return 0
        case Cast(type, operand):
            value = _known(operand, values)
            if value is None or type.is_float or operand.type.is_float:
                return None
            return bool(value) if type.is_bool else _wrapped(int(value), type)
        case Unary(type, op, operand):
            value = _known(operand, values)
            if value is None:
                return None
            if op == "not":
                return not value
            if type.is_float or type.is_bool:
                return None
            whole = int(value)
            return _wrapped({"neg": -whole, "invert": ~whole}.get(op, whole), type)
        case Compare(op, lhs, rhs):
            a, b = _known(lhs, values), _known(rhs, values)
            return None if a is None or b is None else _COMPARED[op](a, b)
        case Logical(op, lhs, rhs):
            a, b = _known(lhs, values), _known(rhs, values)
            if op == "and":
                return False if False in (a, b) else None if None in (a, b) else True
            return True if True in (a, b) else None if None in (a, b) else False
        case Select(_, cond, then, orelse):
            chosen = _known(cond, values)
            return None if chosen is None else _known(then if chosen else orelse, values)
        case Binary(type, op, lhs, rhs) if op in _COMPUTED and not type.is_float:
            a, b = _known(lhs, values), _known(rhs, values)
            if a is None or b is None:
                return None
            computed = _COMPUTED[op](a, b)
            return bool(computed) if type.is_bool else _wrapped(int(computed), type)
    return None


def _wrapped(value: int, type: ScalarType) -> int:
    """``value`` as integers of ``type`` wrap."""
    if type.is_bool:
        return int(bool(value))
    value &= (1 << type.bits) - 1
    return value - (1 << type.bits) if type.kind == "i" and value >> (type.bits - 1) else value
