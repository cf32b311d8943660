"""Where paths meet: one value, one type and one variable for each name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from fusionq.frontend.calls import Calls
from fusionq.frontend.draft import Draft
from fusionq.frontend.flags import PathEnd, flag_of
from fusionq.frontend.path_conditions import Fact
from fusionq.frontend.typing_rules import common_type
from fusionq.frontend.unusable import conflict, perhaps_unassigned, where_bound
from fusionq.frontend.values import (
    ArrayValue,
    Binding,
    ComplexValue,
    Constant,
    Environment,
    Runtime,
    TupleValue,
    Unusable,
    Value,
    same,
)
from fusionq.ir.nodes import Assign, Expr, Stmt, Var
from fusionq.ir.types import INT64

Block: TypeAlias = list[Draft] | list[Stmt]
State: TypeAlias = tuple[Environment, Block | None]
"""What the names stand for at the end of a path, and where its last assignments go (None
where none can be added)."""


class JoinedPaths(Calls):
    """Merges environments."""

    # --------------------------------------------------------------------- values
    def meet(self, name: str, values: Sequence[Value]) -> Value | None:
        """What a name stands for that has one of these values; None if there is no such thing."""
        if all(same(values[0], v) for v in values[1:]):
            return values[0]
        scalars = [v for v in values if isinstance(v, (Runtime, Constant))]
        if len(scalars) == len(values):
            common = common_type(scalars, self.holds)
            return None if common is None else Runtime(common, self.variable(name, common))
        parts = [v for v in values if isinstance(v, ArrayValue)]
        if len(parts) == len(values) and len({part.form for part in parts}) == 1:
            columns = iter(zip(*(part.expressions for part in parts), strict=True))
            places = count()

            def met(_: Expr) -> Expr:
                place, column = next(places), next(columns)
                alike = all(e == column[0] for e in column)
                return column[0] if alike else self.variable(f"{name}.{place}", INT64)

            return parts[0].mapped(met)
        complexes = [v for v in values if isinstance(v, ComplexValue)]
        if len(complexes) == len(values):
            real = self.meet(f"{name}.real", [v.real for v in complexes])
            imag = self.meet(f"{name}.imag", [v.imag for v in complexes])
            if isinstance(real, (Runtime, Constant)) and isinstance(imag, (Runtime, Constant)):
                return ComplexValue(real, imag)
            return None
        tuples = [v for v in values if isinstance(v, TupleValue)]
        if len(tuples) == len(values) and len({len(t.items) for t in tuples}) == 1:
            fields = zip(*(t.items for t in tuples), strict=True)
            items = [self.meet(f"{name}.{i}", field) for i, field in enumerate(fields)]
            found = tuple(item for item in items if item is not None)
            names = tuples[0].names if len({t.names for t in tuples}) == 1 else ()
            return TupleValue(found, names) if len(found) == len(items) else None
        return None

    def copy(self, target: Value, value: Value, block: Block, at: Binding) -> None:
        """Append ``target = value`` to a block; ``target`` comes from ``meet``."""
        match target, value:
            case TupleValue(), TupleValue():
                for to, item in zip(target.items, value.items, strict=True):
                    self.copy(to, item, block, at)
            case ComplexValue(), ComplexValue():
                for to, item in zip(target.parts, value.parts, strict=True):
                    self.copy(to, item, block, at)
            case ArrayValue(), ArrayValue():
                for to_expr, expr in zip(target.expressions, value.expressions, strict=True):
                    if to_expr != expr:
                        item = Runtime(to_expr.type, expr)
                        self.copy(Runtime(to_expr.type, to_expr), item, block, at)
            case Runtime(expr=Var() as variable), Runtime() | Constant():
                node = ast.Pass(lineno=at.span.line, col_offset=0)
                expr = self.convert(value, variable.type, node)
                self.note_widening(value.type, variable.type, variable.name, at.span)
                if expr != variable:
                    block.append(Assign(variable.name, expr, at.span))
                    self.path.assigned(variable.name)

    # --------------------------------------------------------------- environments
    def merge(
        self, states: Sequence[State], paths: Sequence[tuple[Fact, ...]] = ()
    ) -> Environment | None:
        """The environment where the paths meet; copies are appended to their blocks.  ``paths``:
        for each state, under what conditions it is reached."""
        if not states:
            return None
        names = dict.fromkeys(name for env, _ in states for name in env)
        merged: Environment = {}
        for name in names:
            found = self._merged(name, states)
            bound = [env.get(name) for env, _ in states]
            if isinstance(found, Unusable) and any(b is not found for b in bound):
                found = replace(found, after_loop=None)
            if isinstance(found, Unusable) and paths:
                found = where_bound(found, bound, paths)
            merged[name] = found
        return merged

    def _merged(self, name: str, states: Sequence[State]) -> Binding | Unusable:
        bindings: list[Binding] = []
        for env, _ in states:
            bound = env.get(name)
            if isinstance(bound, Unusable):
                return bound
            if bound is not None:
                bindings.append(bound)
        if len(bindings) < len(states):
            return perhaps_unassigned(name, bindings[0])
        target = self.meet(name, [b.value for b in bindings])
        if target is None:
            return conflict(name, bindings)
        for (_, block), bound in zip(states, bindings, strict=True):
            if block is None:
                if not same(target, bound.value):
                    return conflict(name, bindings)
            else:
                self.copy(target, bound.value, block, bound)
        return Binding(target, bindings[0].span)

    def meet_again(
        self, ends: Sequence[tuple[Environment | None, list[Draft]]], versions: dict[str, int]
    ) -> None:
        """Where paths of an expression meet that may assign names."""
        states: list[State] = [(env, block) for env, block in ends if env is not None]
        self.env = self.merge(states)
        self.path.meet(versions)

    def bound_where(
        self, names: Sequence[str], after: Environment | None, where: tuple[Fact, ...]
    ) -> None:
        """Let names that only one path of an expression binds be read where facts hold that say
        so."""
        for name in names:
            found, bound = (self.env or {}).get(name), (after or {}).get(name)
            if isinstance(found, Unusable) and isinstance(bound, Binding) and where:
                assert self.env is not None
                self.env[name] = replace(found, binding=bound, where=where)

    def bind_by_flags(self, states: Sequence[State], ends: Sequence[PathEnd]) -> None:
        """Let names that some of the paths, which have met, leave unbound be read where a flag is
        true that is false on these."""
        assert self.env is not None
        for name, found in list(self.env.items()):
            if not isinstance(found, Unusable) or found.where:
                continue
            paths = [(e.binding(name), block) for e, (_, block) in zip(ends, states, strict=True)]
            bindings = [b for b, _ in paths if b is not None]
            if not any(isinstance(env.get(name), Binding) for env, _ in states):
                continue
            flag = flag_of(name, ends, self.env)
            target = None if flag is None else self.meet(name, [b.value for b in bindings])
            if flag is None or target is None:
                continue
            copies = [
                (b, block, isinstance(env.get(name), Binding) or isinstance(b.value, Constant))
                for (b, block), (env, _) in zip(paths, states, strict=True)
                if b is not None and not same(target, b.value)
            ]
            if not all(block is not None and certain for _, block, certain in copies):
                continue
            for b, block, _ in copies:
                assert block is not None
                self.copy(target, b.value, block, b)
            where = self.path.of(flag, True)
            self.env[name] = replace(found, binding=Binding(target, bindings[0].span), where=where)
