"""Which variables have one value for all work-items of a work-group, or of a row (LLVM's uniformity
analysis), by the form of the text alone: what is not seen to be uniform may be all the same.

A row is the work-items that differ in one id only, that of dimension ``row``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.nodes import Assign, Call, Expr, For, If, ItemQuery, Load, Stmt, Var, While
from fusionq.ir.walk import assigned_variable, nested_bodies, subexpressions

_RANGES = frozenset({"group_range", "local_range", "global_range"})
_IDS = frozenset({"global_id", "group_id", "local_id"})


def uniform_variables(
    body: Iterable[Stmt], row: int | None = None, given: Iterable[str] = ()
) -> frozenset[str]:
    """The variables that only uniform values are assigned to, and only where conditions and loops
    around are uniform, the variables of loops with uniform bounds, and those ``given``, which have
    uniform values before ``body``."""
    body = tuple(body)
    found = frozenset(name for name, _ in _definitions(body, frozenset(), False, row))
    found |= frozenset(given)
    while True:
        definitions = _definitions(body, found, False, row)
        divergent = {name for name, uniform in definitions if not uniform}
        if found.isdisjoint(divergent):
            return found
        found -= divergent


def is_uniform(expr: Expr, variables: frozenset[str], row: int | None = None) -> bool:
    """Whether ``expr`` is made of arguments, constants, the ids of the work-group or the row, and
    ``variables``."""
    return all(_is_uniform_part(e, variables, row) for e in subexpressions(expr))


def _is_uniform_part(expr: Expr, variables: frozenset[str], row: int | None) -> bool:
    match expr:
        case Var(name=name):
            return name in variables
        case ItemQuery(query, dim):
            if row is None:
                return query in _RANGES or query == "group_id"
            return query in _RANGES or (query in _IDS and dim != row)
        case Load():
            return False
        case Call(function=function):
            return function not in DEVICE_FUNCTIONS
        case _:
            return True


def _definitions(
    body: Iterable[Stmt], variables: frozenset[str], diverged: bool, row: int | None
) -> Iterator[tuple[str, bool]]:
    """Each variable that is set, and whether to one value for the work-group if ``variables`` are
    uniform; ``diverged``: where not all of its work-items may be."""
    for stmt in body:
        inside = diverged
        match stmt:
            case For(var, start, stop, step):
                uniform = all(is_uniform(e, variables, row) for e in (start, stop, step))
                yield var, uniform
                inside = diverged or not uniform
            case If(cond) | While(cond):
                inside = diverged or not is_uniform(cond, variables, row)
            case Assign(name, value):
                yield name, not diverged and is_uniform(value, variables, row)
            case _:
                name_set = assigned_variable(stmt)
                if name_set is not None:
                    yield name_set, False
        for nested in nested_bodies(stmt):
            yield from _definitions(nested, variables, inside, row)
