"""Loops of a kernel in other forms, by what is known of the variables in their bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.scoping import Body
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    Assign,
    Block,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Stmt,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    rewrite_body,
    statements,
    with_values,
)

Values = Mapping[str, Expr]
"""Those of variables that are set once, before."""


class LoopRewriting(ABC):
    """Puts other statements in the place of loops of ``kernel``, innermost first."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        found = list(statements(kernel.body))
        self.sets = Counter(assigned_variable(s) for s in found)
        """How often each variable is set."""
        self.loops = {s.var for s in found if isinstance(s, For)}
        """The variables of loops."""
        taken = {name for name, _ in kernel.variables} | {p.name for p in kernel.params}
        self._names = FreshNames(taken | self.loops | {a.name for a in kernel.arrays})
        self._variables: list[tuple[str, ScalarType]] = []

    @abstractmethod
    def is_given(self, value: Expr, values: Values) -> bool:
        """Whether what is set once to ``value``, where variables have ``values``, may stand for
        the variable wherever that is asked for."""

    @abstractmethod
    def replaced(self, loop: For, values: Values) -> Sequence[Stmt]:
        """What takes the place of a loop before which variables have ``values``."""

    def made(self) -> Kernel:
        """The kernel with other loops."""
        body = self._body(self._kernel.body, {})
        variables = (*self._kernel.variables, *self._variables)
        return replace(self._kernel, body=body, variables=variables)

    def _body(self, body: Body, values: Values) -> tuple[Stmt, ...]:
        known = dict(values)
        made: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Assign(name, value) if self.sets[name] == 1 and self.is_given(value, known):
                    known[name] = self.known(value, known)
                case If():
                    then, orelse = (self._body(part, known) for part in (stmt.then, stmt.orelse))
                    stmt = replace(stmt, then=then, orelse=orelse)
                case For() | While() | WorkItemLoop() | Block():
                    stmt = replace(stmt, body=self._body(stmt.body, known))
            made += self.replaced(stmt, known) if isinstance(stmt, For) else [stmt]
        return tuple(made)

    def known(self, value: Expr, values: Values) -> Expr:
        """``value`` in terms of the ``values`` of its variables."""
        return with_values(value, values)

    def may_be_twice(self, loop: For) -> bool:
        """Whether a loop's statements are few, and nothing is read behind it that they bind."""
        few = sum(1 for _ in expressions(loop.body)) <= CODE_LIMITS.peeled_expressions
        return few and not loop.binds

    def variable(self, wanted: str) -> Var:
        """A new variable of a name like the one ``wanted``."""
        name = self._names.fresh(wanted)
        self._variables.append((name, INT64))
        return Var(INT64, name)

    def over_turns(self, loop: For, count: Expr, step: Expr, place: Callable[[Var], Expr]) -> For:
        """``loop`` over ``range(0, count, step)``, for each of which its variable is ``place``."""
        turn, own = self._names.fresh(f"{loop.var}_turn"), self.variable(f"{loop.var}_own")

        def renamed(e: Expr) -> Expr:
            return own if isinstance(e, Var) and e.name == loop.var else e

        body = Assign(own.name, place(Var(INT64, turn))), *rewrite_body(loop.body, renamed)
        return For(turn, Const(INT64, 0), count, step, body, loop.span)
