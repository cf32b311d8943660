"""What a compiler that unrolls loops and inlines functions makes of a kernel's text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.loads_together import has_groups
from fusionq.codegen.unrolled_loops import is_over_memory, most_unrolled
from fusionq.ir.functions import FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Stmt,
    While,
    WorkItemLoop,
)
from fusionq.ir.walk import statement_expressions, subexpressions

_MOST_TIMES = 64
"""Beyond which a loop inside of others is not unrolled any further."""
_LONG = frozenset({"pow", "sin", "cos", "tan"})
"""Functions that take arguments of any size by a case of its own."""


@dataclass(frozen=True, slots=True)
class UnrolledWork:
    """Expressions and statements that unrolled loops add, functions that are long when they are
    inlined, and divisions and square roots of floats; those inside of loops as often as these are
    unrolled."""

    expressions: int
    functions: int
    quotients: int


def unrolled_work(kernels: Iterable[Kernel], is_persistent: bool) -> UnrolledWork:
    """Of the texts of ``kernels``, which are together a program; stages of a persistent kernel or
    kernels over a range."""
    found = [_Counting(kernel, is_persistent) for kernel in kernels]
    return UnrolledWork(
        sum(c.expressions for c in found),
        sum(c.functions for c in found),
        sum(c.quotients for c in found),
    )


class _Counting:
    def __init__(self, kernel: Kernel, is_persistent: bool) -> None:
        self._arrays = {p.name for p in kernel.params if isinstance(p, ArrayParam)}
        most = most_unrolled(kernel, kernel.body)
        self._streamed = min(most, CODE_LIMITS.streamed_together)
        if not is_persistent and has_groups(kernel):
            self._streamed += most  # whole parts, and what is left under masks
        elif not is_persistent and kernel.few_items:
            self._streamed += most * CODE_LIMITS.few_times_together
        self.expressions = self.functions = self.quotients = 0
        self._body(kernel.body, 1)

    def _body(self, body: Sequence[Stmt], times: int) -> None:
        for stmt in body:
            found = [e for root in statement_expressions(stmt) for e in subexpressions(root)]
            self.expressions += (times - 1) * (1 + len(found))
            self.functions += times * sum(map(_is_long, found))
            self.quotients += times * sum(map(_is_quotient, found))
            match stmt:
                case If():
                    self._body(stmt.then, times)
                    self._body(stmt.orelse, times)
                case For():
                    more = times * self._unrolled(stmt)
                    self._body(stmt.body, more if more <= _MOST_TIMES else times)
                case While() | Block() | WorkItemLoop():
                    self._body(stmt.body, times)

    def _unrolled(self, loop: For) -> int:
        match loop:
            case For(start=Const(_, start), stop=Const(_, stop), step=Const(_, step)) if step:
                count = len(range(int(start), int(stop), int(step)))
                return min(count, CODE_LIMITS.streamed_together)
        return self._streamed if is_over_memory(loop, self._arrays) else 1


def _is_long(e: Expr) -> bool:
    match e:
        case Binary(op="pow"):
            return e.type.is_float
        case Call(function=name) if name in FLOAT_FUNCTIONS and name != "sqrt":
            return name in _LONG or e.type.nbytes == 8
    return False


def _is_quotient(e: Expr) -> bool:
    match e:
        case Binary(op="truediv" | "floordiv" | "mod") | Call(function="sqrt"):
            return e.type.is_float
    return False
