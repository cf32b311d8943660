"""How a loop's iterations may end early: by ``break`` or ``continue``."""

from __future__ import annotations

from collections.abc import Iterable

from fusionq.ir.nodes import Block, Break, Continue, If, Stmt


def can_break(body: Iterable[Stmt]) -> bool:
    """Whether a ``break`` in ``body`` leaves the loop around it."""
    for stmt in body:
        match stmt:
            case Break():
                return True
            case If(_, then, orelse):
                if can_break(then) or can_break(orelse):
                    return True
            case Block(_, inner):
                if can_break(inner):
                    return True
    return False


def leaves_iteration(body: Iterable[Stmt]) -> bool:
    """Whether ``body`` may end its iteration by ``break`` or ``continue``."""
    return any(
        isinstance(s, (Break, Continue))
        or (isinstance(s, If) and (leaves_iteration(s.then) or leaves_iteration(s.orelse)))
        or (isinstance(s, Block) and leaves_iteration(s.body))
        for s in body
    )
