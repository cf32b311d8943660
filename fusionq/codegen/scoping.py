"""Where a variable can be declared: as close to its first assignment as C's scopes allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Block,
    Break,
    Continue,
    Expr,
    For,
    GroupCall,
    If,
    Logical,
    Stmt,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    nested_bodies,
    statement_expressions,
    statements,
    subexpressions,
)

Body = tuple[Stmt, ...]


def flatten_blocks(body: Iterable[Stmt]) -> Body:
    """``body`` with each block at any depth replaced by its heading (the block without its
    statements) followed by its statements: a block is no scope."""
    flat: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Block():
                flat.append(Block(stmt.label, ()))
                flat.extend(flatten_blocks(stmt.body))
            case If():
                then, orelse = flatten_blocks(stmt.then), flatten_blocks(stmt.orelse)
                flat.append(If(stmt.cond, then, orelse, stmt.span))
            case For():
                body = flatten_blocks(stmt.body)
                flat.append(For(stmt.var, stmt.start, stmt.stop, stmt.step, body, stmt.span))
            case While():
                flat.append(While(stmt.cond, flatten_blocks(stmt.body), stmt.span))
            case WorkItemLoop():
                flat.append(WorkItemLoop(stmt.items, flatten_blocks(stmt.body), stmt.span))
            case _:
                flat.append(stmt)
    return tuple(flat)


def _reads(expr: Expr, name: str) -> bool:
    return any(isinstance(e, Var) and e.name == name for e in subexpressions(expr))


def _reads_itself(stmt: Stmt, name: str) -> bool:
    return any(_reads(e, name) for e in statement_expressions(stmt))


def mentioned(stmt: Stmt) -> set[str]:
    """The variables that ``stmt`` or a statement inside it reads or assigns."""
    names = {name for s in statements((stmt,)) if (name := assigned_variable(s)) is not None}
    return names | {e.name for e in expressions((stmt,)) if isinstance(e, Var)}


def assignments(body: Iterable[Stmt], name: str) -> int:
    """The number of assignments to the variable, at any depth."""
    return sum(assigned_variable(s) == name for s in statements(body))


def assigned_before_read(body: Body, name: str, assigned: bool) -> tuple[bool, bool]:
    """(no read comes before an assignment, assigned at the end), for a variable that is
    ``assigned`` at the start or not."""
    for stmt in body:
        if not assigned and _reads_itself(stmt, name):
            return False, False
        match stmt:
            case Assign() | Atomic() | GroupCall() if assigned_variable(stmt) == name:
                assigned = True
            case Break() | Continue():
                return True, True
            case If():
                flows = [assigned_before_read(b, name, assigned) for b in nested_bodies(stmt)]
                if not all(safe for safe, _ in flows):
                    return False, False
                assigned = all(after for _, after in flows)
            case For() | While() | WorkItemLoop():
                own = isinstance(stmt, For) and stmt.var == name
                if not assigned_before_read(stmt.body, name, assigned or own)[0]:
                    return False, False
    return True, assigned


def read_unassigned(bodies: Sequence[Body]) -> frozenset[str]:
    """The variables that a right operand of ``and`` or ``or`` reads where nothing says that they
    are assigned, but perhaps the left one: a path that does not get there has none."""
    behind = {
        e.name
        for body in bodies
        for cond in expressions(body)
        if isinstance(cond, Logical)
        for e in subexpressions(cond.rhs)
        if isinstance(e, Var)
    }
    return frozenset(
        name
        for name in behind
        if not all(assigned_before_read(body, name, False)[0] for body in bodies)
    )


def declarations(body: Body, names: Iterable[str]) -> dict[int, list[str]]:
    """The variables of ``names`` to declare in ``body`` itself, by the index of the statement
    at or before which that is; the others belong into nested bodies or are not mentioned."""
    mentions = [mentioned(stmt) for stmt in body]
    places: dict[int, list[str]] = {}
    for name in names:
        indices = [i for i, found in enumerate(mentions) if name in found]
        if indices and not (len(indices) == 1 and _belongs_inside(body[indices[0]], name)):
            places.setdefault(indices[0], []).append(name)
    return places


def _belongs_inside(stmt: Stmt, name: str) -> bool:
    """Whether nothing is lost when each nested body has the variable to itself."""
    if not nested_bodies(stmt) or _reads_itself(stmt, name):
        return False
    if isinstance(stmt, If | WorkItemLoop):
        return True
    return all(assigned_before_read(b, name, False)[0] for b in nested_bodies(stmt))


def is_declaring_assignment(stmt: Stmt, name: str) -> bool:
    """Whether the variable's declaration and this statement can be one."""
    return assigned_variable(stmt) == name and not _reads_itself(stmt, name)
