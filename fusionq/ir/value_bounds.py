"""What integers in a kernel are at least and at most, from how they are computed, and at least from
the conditions around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from fusionq.base.frozen import dataclass
from fusionq.ir.comparisons import NEGATED
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Break,
    Call,
    Cast,
    Compare,
    Const,
    Continue,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Logical,
    Param,
    Select,
    Stmt,
    Unary,
    Var,
)
from fusionq.ir.walk import assigned_variable, statements, subexpressions

_NOT_NEGATIVE = ("floordiv", "shr", "shl", "mul", "pow", "or", "xor")
"""Operations that give no negative number for operands that are none, unless they overflow."""


@dataclass(frozen=True)
class Bounds:
    """What is known at one point of a kernel: the least values of expressions, and the greatest
    ones of variables.

    ``fixed``: the variables that are assigned in one place only, so that what is known of them
    stays true.
    """

    fixed: frozenset[str]
    least_values: Mapping[Expr, int]
    greatest_values: Mapping[Expr, int] = field(default_factory=dict)

    @classmethod
    def of(cls, kernel: Kernel) -> Bounds:
        """What is known at the kernel's start: nothing."""
        found = list(statements(kernel.body))
        names = Counter(name for s in found if (name := assigned_variable(s)) is not None)
        names.update(s.var for s in found if isinstance(s, For))
        return cls(frozenset(name for name, count in names.items() if count == 1), {})

    def least(self, expr: Expr) -> int | None:
        """A number that the integer ``expr`` is never less than; None if there is none known.

        Sums and products are taken not to overflow.
        """
        known = [b for b in (self.least_values.get(expr), self._computed(expr)) if b is not None]
        return max(known, default=None)

    def greatest(self, expr: Expr) -> int | None:
        """A number that the integer ``expr`` is never greater than; None if there is none known.

        Sums and products are taken not to overflow.
        """
        match expr:
            case Const():
                return int(expr.value)
            case _ if expr.type.kind != "i":
                return None
            case Var():
                return self.greatest_values.get(expr)
            case Cast() if expr.operand.type.is_integer and _widens(expr):
                return self.greatest(expr.operand)
            case Unary(op="neg"):
                return _negative(self.least(expr.operand))
            case Unary(op="invert"):
                return _sum(-1, _negative(self.least(expr.operand)))
            case Binary(op="add"):
                return _sum(self.greatest(expr.lhs), self.greatest(expr.rhs))
            case Binary(op="sub"):
                return _sum(self.greatest(expr.lhs), _negative(self.least(expr.rhs)))
            case Binary(op="mul", lhs=Const() as factor, rhs=other) | Binary(
                op="mul", lhs=other, rhs=Const() as factor
            ):
                most = self.greatest(other) if factor.value > 0 else self.least(other)
                return None if most is None else most * int(factor.value)
            case Binary(op="mod", rhs=Const() as divisor) if divisor.value > 0:
                return int(divisor.value) - 1
            case Select():
                return self._greatest_of((expr.then, expr.orelse))
            case Call(function="pymax" | "maximum" | "fmax"):
                return self._greatest_of(expr.args)
            case Call(function="pymin" | "minimum" | "fmin"):
                bounds = [b for b in map(self.greatest, expr.args) if b is not None]
                return min(bounds, default=None)
        return None

    def where(self, cond: Expr, holds: bool = True) -> Bounds:
        """What is known where a condition holds, or does not."""
        found = dict(self.least_values)
        for expr, bound in self._told(cond, holds):
            if self._stays(expr):
                found[expr] = max(bound, found.get(expr, bound))
        return replace(self, least_values=found)

    def after(self, stmt: Stmt) -> Bounds:
        """What is known after a statement."""
        match stmt:
            case Assign(name, value) if name in self.fixed and value.type.is_integer:
                least = self.least(value)
                return self if least is None else self._with(Var(value.type, name), least)
            case If(cond, then, orelse) if _leaves(then) and not orelse:
                return self.where(cond, holds=False)
        return self

    def inside(self, loop: For) -> Bounds:
        """What is known in the body of a loop."""
        if loop.var not in self.fixed or not isinstance(loop.step, Const):
            return self
        upwards = loop.step.value > 0
        first, last = self.least(loop.start), self.least(loop.stop)
        least = first if upwards else None if last is None else last + 1
        return self if least is None else self._with(Var(loop.start.type, loop.var), least)

    # ------------------------------------------------------------------------ rules
    def _greatest_of(self, choices: Sequence[Expr]) -> int | None:
        bounds = [b for b in map(self.greatest, choices) if b is not None]
        return max(bounds) if len(bounds) == len(choices) else None

    def _with(self, expr: Expr, least: int) -> Bounds:
        return replace(self, least_values={**self.least_values, expr: least})

    def _stays(self, expr: Expr) -> bool:
        """Whether the expression keeps its value to the end of where it is looked at."""
        return all(
            isinstance(e, (Binary, Cast, Const, Extent, ItemQuery, Param, Unary))
            or (isinstance(e, Var) and e.name in self.fixed)
            for e in subexpressions(expr)
        )

    def _computed(self, expr: Expr) -> int | None:
        if not expr.type.is_integer:
            return None
        match expr:
            case Const():
                return int(expr.value)
            case ItemQuery() | Extent():
                return 0
            case Cast() if expr.operand.type.is_integer and _widens(expr):
                return self.least(expr.operand)
            case Binary():
                return self._of_binary(expr)
            case Select():
                return _smaller(
                    self.where(expr.cond).least(expr.then),
                    self.where(expr.cond, holds=False).least(expr.orelse),
                )
            case Call(function="pymin" | "minimum" | "fmin"):
                return _smaller(*map(self.least, expr.args))
            case Call(function="pymax" | "maximum" | "fmax"):
                bounds = [b for b in map(self.least, expr.args) if b is not None]
                return max(bounds, default=None)
            case Call(function="abs"):
                return 0
        return 0 if expr.type.kind == "u" else None

    def _of_binary(self, expr: Binary) -> int | None:
        if expr.type.kind == "u":
            return 0
        lhs, rhs = self.least(expr.lhs), self.least(expr.rhs)
        neither_negative = lhs is not None and rhs is not None and lhs >= 0 and rhs >= 0
        match expr.op:
            case "add":
                return None if lhs is None or rhs is None else lhs + rhs
            case "sub":
                exact = isinstance(expr.rhs, Const)
                return None if lhs is None or rhs is None or not exact else lhs - rhs
            case "mod":
                return 0 if rhs is not None and rhs >= 0 else None  # has the divisor's sign
            case "and":
                return 0 if any(b is not None and b >= 0 for b in (lhs, rhs)) else None
        return 0 if expr.op in _NOT_NEGATIVE and neither_negative else None

    def _told(self, cond: Expr, holds: bool) -> Iterator[tuple[Expr, int]]:
        """The least values that a condition tells where it holds, or does not."""
        match cond:
            case Unary(op="not"):
                yield from self._told(cond.operand, not holds)
            case Logical() if (cond.op == "and") == holds:
                yield from self._told(cond.lhs, holds)
                yield from self._told(cond.rhs, holds)
            case Compare() if cond.lhs.type.is_integer:
                op = cond.op if holds else NEGATED[cond.op]
                yield from self._compared(op, cond.lhs, cond.rhs)

    def _compared(self, op: str, lhs: Expr, rhs: Expr) -> Iterator[tuple[Expr, int]]:
        for greater, other, ops in ((lhs, rhs, ("gt", "ge")), (rhs, lhs, ("lt", "le"))):
            least = self.least(other)
            if op in (*ops, "eq") and least is not None:
                yield from _of_terms(greater, least + (op == ops[0]))
            if op == "ne" and isinstance(other, Const) and self.least(greater) == other.value:
                yield from _of_terms(greater, int(other.value) + 1)


def _of_terms(expr: Expr, least: int) -> Iterator[tuple[Expr, int]]:
    """``expr >= least``, and what that tells of ``x`` in ``x + 1`` and ``x - 1``."""
    yield expr, least
    if isinstance(expr, Binary) and isinstance(expr.rhs, Const) and expr.op in ("add", "sub"):
        offset = int(expr.rhs.value)
        yield from _of_terms(expr.lhs, least + (offset if expr.op == "sub" else -offset))


def _widens(cast: Cast) -> bool:
    """Whether every value of the operand's type keeps its value."""
    target, source = cast.type, cast.operand.type
    if target.kind == source.kind:
        return target.bits >= source.bits
    return target.kind == "i" and target.bits > source.bits


def _negative(a: int | None) -> int | None:
    return None if a is None else -a


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _smaller(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _leaves(body: tuple[Stmt, ...]) -> bool:
    """Whether nothing runs in this iteration after these statements."""
    return bool(body) and isinstance(body[-1], (Break, Continue))
