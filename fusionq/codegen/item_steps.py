"""By how much values grow from a work-item to its neighbour, or from an iteration to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import Assign, Binary, Const, Expr, Var
from fusionq.ir.walk import assigned_variable, statements

FAR = 1 << 40
"""By a product with what is no constant, as from a row to the next."""


class ItemSteps:
    """Of what is computed in ``body``: where ``moving`` grows by one, and what ``is_still`` does
    not change."""

    def __init__(self, body: Body, moving: Expr, is_still: Callable[[Expr], bool]) -> None:
        self._moving = moving
        self._is_still = is_still
        self.known: dict[str, int] = {}
        """For variables with one value."""
        times = Counter(assigned_variable(s) for s in statements(body))
        for s in statements(body):
            if not isinstance(s, Assign) or times[s.name] > 1:
                continue
            if not is_still(Var(s.value.type, s.name)):
                step = self.of(s.value)
                if step is not None:
                    self.known[s.name] = step

    def of(self, expr: Expr) -> int | None:
        """None where that is not seen."""
        if self._is_still(expr):
            return 0
        if expr == self._moving:
            return 1
        match expr:
            case Var(name=name):
                return self.known.get(name)
            case Binary(_, "add" | "sub" as op, lhs, rhs):
                one, other = self.of(lhs), self.of(rhs)
                if one is None or other is None:
                    return None
                return one + other if op == "add" else one - other
            case Binary(_, "mul", lhs, rhs):
                factors = {self.of(lhs): rhs, self.of(rhs): lhs}
                step = next((s for s in factors if s), None)
                if step is None or 0 not in factors:
                    return None
                by = factors[step]
                return step * int(by.value) if isinstance(by, Const) else FAR
        return None
