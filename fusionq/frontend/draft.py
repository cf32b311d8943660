"""Statements under construction: their bodies can still grow, and they may jump.

``finish`` turns them into the IR, which has no ``return``:

    if c: return              if not c:
    rest               →          rest

    for …:                    returned = False
        if c: return          for …:
    rest               →          if c: returned = True; break
                              if not returned: rest
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fusionq.base.span import NO_SPAN, Span
from fusionq.ir.comparisons import NEGATED
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Barrier,
    Break,
    Compare,
    Const,
    Continue,
    Expr,
    Fence,
    For,
    GroupCall,
    If,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import BOOL
from fusionq.ir.walk import statements


@dataclass(slots=True)
class Jump:
    """``break``, ``continue`` or ``return``, after some last assignments."""

    kind: Literal["break", "continue", "return"]
    span: Span
    before: list[Stmt] = field(default_factory=list)


@dataclass(slots=True)
class DraftIf:
    cond: Expr
    then: list[Draft]
    orelse: list[Draft]
    span: Span


@dataclass(slots=True)
class DraftFor:
    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: list[Draft]
    span: Span
    binds: str | None = None

    @property
    def bounds(self) -> tuple[Expr, Expr, Expr]:
        """Start, stop and step."""
        return self.start, self.stop, self.step


@dataclass(slots=True)
class DraftWhile:
    cond: Expr
    body: list[Draft]
    span: Span


Draft: TypeAlias = Stmt | Jump | DraftIf | DraftFor | DraftWhile
DraftLoop: TypeAlias = DraftFor | DraftWhile


def bodies(draft: Draft) -> tuple[list[Draft], ...]:
    """The drafts inside a draft."""
    match draft:
        case DraftIf():
            return (draft.then, draft.orelse)
        case DraftFor() | DraftWhile():
            return (draft.body,)
        case _:
            return ()


_CHANGES_MEMORY = (Store, Atomic, Fence, Barrier, GroupCall)
_MEETS = (Barrier, GroupCall)


def stores(drafts: Sequence[Draft]) -> bool:
    """Whether memory may be another after the statements, by this work-item or by others."""
    return _any_statement(drafts, _CHANGES_MEMORY)


def meets(drafts: Sequence[Draft]) -> bool:
    """Whether the work-items of a group wait for each other in the statements."""
    return _any_statement(drafts, _MEETS)


def _any_statement(drafts: Sequence[Draft], kinds: tuple[type[Stmt], ...]) -> bool:
    return any(
        any(_any_statement(body, kinds) for body in bodies(draft))
        if isinstance(draft, (DraftIf, DraftFor, DraftWhile))
        else not isinstance(draft, Jump) and any(isinstance(s, kinds) for s in statements([draft]))
        for draft in drafts
    )


def _returns(drafts: Sequence[Draft]) -> bool:
    """Whether a return is among the statements."""
    return any(
        (isinstance(d, Jump) and d.kind == "return") or any(_returns(b) for b in bodies(d))
        for d in drafts
    )


def _always_returns(drafts: Sequence[Draft]) -> bool:
    """Whether every path through the statements ends in a return (loops are not looked into)."""
    return any(
        (isinstance(d, Jump) and d.kind == "return")
        or (isinstance(d, DraftIf) and _always_returns(d.then) and _always_returns(d.orelse))
        for d in drafts
    )


def negated(cond: Expr) -> Expr:
    """``not cond``; integer comparisons are turned round (floating ones cannot be, for NaN)."""
    match cond:
        case Const():
            return Const(BOOL, not cond.value)
        case Unary(op="not"):
            return cond.operand
        case Compare(op=op) if op in ("eq", "ne") or not cond.lhs.type.is_float:
            return Compare(NEGATED[op], cond.lhs, cond.rhs)
        case _:
            return Unary(BOOL, "not", cond)


def branch(cond: Expr, then: Sequence[Stmt], orelse: Sequence[Stmt], span: Span) -> list[Stmt]:
    """An If with a non-empty first branch; nothing for two empty ones."""
    if then:
        return [If(cond, tuple(then), tuple(orelse), span)]
    return [If(negated(cond), tuple(orelse), (), span)] if orelse else []


class _Finisher:
    """Eliminates returns; ``flag`` is made when a return has to be remembered."""

    def __init__(self, fresh_flag: Callable[[], str]) -> None:
        self._fresh_flag = fresh_flag
        self.flag: str | None = None

    def _flag(self) -> Var:
        if self.flag is None:
            self.flag = self._fresh_flag()
        return Var(BOOL, self.flag)

    def _mark(self, span: Span) -> Stmt:
        return Assign(self._flag().name, Const(BOOL, True), span)

    def outside_loops(self, drafts: Sequence[Draft], remembered: bool) -> list[Stmt]:
        """``remembered``: statements after these depend on whether they returned."""
        done: list[Stmt] = []
        for position, draft in enumerate(drafts):
            rest = list(drafts[position + 1 :])
            if isinstance(draft, Jump):
                done += draft.before
                if remembered:
                    done.append(self._mark(draft.span))
                return done
            if isinstance(draft, DraftIf):
                then, orelse = draft.then, draft.orelse
                if _always_returns(then):
                    orelse, rest = orelse + rest, []
                elif _always_returns(orelse):
                    then, rest = then + rest, []
                split = bool(rest) and (_returns(then) or _returns(orelse))
                inner = remembered or split
                done += branch(
                    draft.cond,
                    self.outside_loops(then, inner),
                    self.outside_loops(orelse, inner),
                    draft.span,
                )
                if split:
                    return done + self._unless_returned(rest, remembered)
                if not rest:
                    return done
            elif isinstance(draft, (DraftFor, DraftWhile)):
                inner = remembered or bool(rest)
                done.append(self._loop(draft, inner))
                if rest and _returns(draft.body):
                    return done + self._unless_returned(rest, remembered)
            else:
                done.append(draft)
        return done

    def _unless_returned(self, rest: Sequence[Draft], remembered: bool) -> list[Stmt]:
        cond = Unary(BOOL, "not", self._flag())
        return branch(cond, self.outside_loops(rest, remembered), (), NO_SPAN)

    def _loop(self, draft: DraftLoop, remembered: bool) -> Stmt:
        body = tuple(self._inside_loop(draft.body, remembered))
        if isinstance(draft, DraftFor):
            return For(draft.var, *draft.bounds, body, draft.span, draft.binds)
        return While(draft.cond, body, draft.span)

    def _inside_loop(self, drafts: Sequence[Draft], remembered: bool) -> list[Stmt]:
        done: list[Stmt] = []
        for draft in drafts:
            match draft:
                case Jump(kind="return"):
                    done += draft.before
                    if remembered:
                        done.append(self._mark(draft.span))
                    return [*done, Break(draft.span)]
                case Jump():
                    jump = Break if draft.kind == "break" else Continue
                    return [*done, *draft.before, jump(draft.span)]
                case DraftIf():
                    then = self._inside_loop(draft.then, remembered)
                    orelse = self._inside_loop(draft.orelse, remembered)
                    done += branch(draft.cond, then, orelse, draft.span)
                case DraftFor() | DraftWhile():
                    done.append(self._loop(draft, True))
                    if _returns(draft.body):
                        done.append(If(self._flag(), (Break(draft.span),), (), draft.span))
                case _:
                    done.append(draft)
        return done


class _Leaving:
    """Eliminates ``jumps`` to the end of statements, none of which is in a loop among these."""

    def __init__(self, jumps: Sequence[Jump], fresh_flag: Callable[[], str]) -> None:
        self._jumps = {id(jump) for jump in jumps}
        self._fresh_flag = fresh_flag
        self.flag: Var | None = None

    def _flag(self) -> Var:
        if self.flag is None:
            self.flag = Var(BOOL, self._fresh_flag())
        return self.flag

    def without(self, drafts: Sequence[Draft], remembered: bool) -> list[Draft]:
        """``remembered``: statements after these depend on whether they jumped."""
        done: list[Draft] = []
        for position, draft in enumerate(drafts):
            if isinstance(draft, Jump):
                if id(draft) not in self._jumps:
                    return [*done, draft]
                done += draft.before
                if remembered:
                    done.append(Assign(self._flag().name, Const(BOOL, True), draft.span))
                return done
            if not (isinstance(draft, DraftIf) and self._jumps_in(bodies(draft))):
                done.append(draft)
                continue
            rest, then, orelse = list(drafts[position + 1 :]), draft.then, draft.orelse
            if _always_jumps(then):
                orelse, rest = orelse + rest, []
            elif _always_jumps(orelse):
                then, rest = then + rest, []
            inner = remembered or bool(rest)
            then, orelse = self.without(then, inner), self.without(orelse, inner)
            done.append(DraftIf(draft.cond, then, orelse, draft.span))
            if rest:
                stayed = Unary(BOOL, "not", self._flag())
                done.append(DraftIf(stayed, self.without(rest, remembered), [], NO_SPAN))
            return done
        return done

    def _jumps_in(self, blocks: Sequence[Sequence[Draft]]) -> bool:
        """Whether one of the jumps is in the blocks, outside loops."""
        drafts = [draft for block in blocks for draft in block]
        inside = [bodies(draft) for draft in drafts if isinstance(draft, DraftIf)]
        return any(id(d) in self._jumps for d in drafts) or any(map(self._jumps_in, inside))


def _always_jumps(drafts: Sequence[Draft]) -> bool:
    """Whether every path through the statements ends in a jump (loops are not looked into)."""
    return any(
        isinstance(d, Jump)
        or (isinstance(d, DraftIf) and _always_jumps(d.then) and _always_jumps(d.orelse))
        for d in drafts
    )


def without_leaving(
    drafts: Sequence[Draft], jumps: Sequence[Jump], fresh_flag: Callable[[], str]
) -> list[Draft]:
    """The drafts, without those ``jumps`` among them, none in a loop, that go to their end;
    ``fresh_flag`` names a bool variable if need be."""
    leaving = _Leaving(jumps, fresh_flag)
    body = leaving.without(drafts, remembered=False)
    if leaving.flag is None:
        return body
    return [Assign(leaving.flag.name, Const(BOOL, False)), *body]


def finish(drafts: Sequence[Draft], fresh_flag: Callable[[], str]) -> list[Stmt]:
    """The drafts of a whole function as IR; ``fresh_flag`` names a bool variable if need be."""
    finisher = _Finisher(fresh_flag)
    body = finisher.outside_loops(drafts, remembered=False)
    if finisher.flag is None:
        return body
    return [Assign(finisher.flag, Const(BOOL, False)), *body]
