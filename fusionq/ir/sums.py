"""Which values may be sums, by the form of the text: of a sum, or of what one was assigned or
stored to; what a variable gets from atomic operations and group functions may be one, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusionq.ir.nodes import Assign, Binary, Expr, Load, Select, Stmt, Store, Unary, Var
from fusionq.ir.walk import assigned_variable, statements


def places_of_sums(body: Iterable[Stmt]) -> frozenset[str]:
    """The variables and arrays that ``body`` may leave a sum in; compilers forward what is stored
    to what loads it."""
    values = [*_values(body)]
    found: frozenset[str] = frozenset()
    while True:
        more = {name for name, value in values if value is None or may_be_sum(value, found)}
        if more <= found:
            return found
        found |= more


def may_be_sum(expr: Expr, places: frozenset[str]) -> bool:
    """Whether the value may be that of an addition or subtraction, or the negative of one."""
    match expr:
        case Binary(op=op):
            return op in ("add", "sub")
        case Unary(operand=operand):
            return may_be_sum(operand, places)
        case Select(then=then, orelse=orelse):
            return may_be_sum(then, places) or may_be_sum(orelse, places)
        case Var(name=name) | Load(array=name):
            return name in places
        case _:
            return False


def _values(body: Iterable[Stmt]) -> Iterator[tuple[str, Expr | None]]:
    """Variables and arrays with the values that they get; None for one that is not written out."""
    for stmt in statements(body):
        match stmt:
            case Assign(name, value) | Store(array=name, value=value):
                yield name, value
            case _:
                name_set = assigned_variable(stmt)
                if name_set is not None:
                    yield name_set, None
