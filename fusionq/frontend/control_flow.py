"""Where paths meet: one value, one type and one variable for each name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

from fusionq.frontend.calls import Calls
from fusionq.frontend.draft import Draft
from fusionq.frontend.operators import example_cast
from fusionq.frontend.state import LoopContext
from fusionq.frontend.typing_rules import fits, join, type_name
from fusionq.frontend.values import (
    Binding,
    Constant,
    Environment,
    Runtime,
    Scalar,
    TupleValue,
    Unusable,
    Value,
    describe,
    same,
)
from fusionq.ir.nodes import Assign, Stmt, Var
from fusionq.ir.types import ScalarType

Block: TypeAlias = list[Draft] | list[Stmt]
State: TypeAlias = tuple[Environment, Block | None]
"""What the names stand for at the end of a path, and where its last assignments go (None
where none can be added)."""


class ControlFlow(Calls):
    """Merges environments; finds the types of variables that loops carry."""

    # --------------------------------------------------------------------- values
    def meet(self, name: str, values: Sequence[Value]) -> Value | None:
        """What a name stands for that has one of these values; None if there is no such thing."""
        if all(same(values[0], v) for v in values[1:]):
            return values[0]
        scalars = [v for v in values if isinstance(v, (Runtime, Constant))]
        if len(scalars) == len(values):
            common = common_type(scalars)
            return None if common is None else Runtime(common, self.variable(name, common))
        tuples = [v for v in values if isinstance(v, TupleValue)]
        if len(tuples) == len(values) and len({len(t.items) for t in tuples}) == 1:
            columns = zip(*(t.items for t in tuples), strict=True)
            items = [self.meet(f"{name}.{i}", column) for i, column in enumerate(columns)]
            found = tuple(item for item in items if item is not None)
            return TupleValue(found) if len(found) == len(items) else None
        return None

    def copy(self, target: Value, value: Value, block: Block, at: Binding) -> None:
        """Append ``target = value`` to a block; ``target`` comes from ``meet``."""
        match target, value:
            case TupleValue(), TupleValue():
                for to, item in zip(target.items, value.items, strict=True):
                    self.copy(to, item, block, at)
            case Runtime(expr=Var() as variable), Runtime() | Constant():
                node = ast.Pass(lineno=at.span.line, col_offset=0)
                expr = self.convert(value, variable.type, node)
                if expr != variable:
                    block.append(Assign(variable.name, expr, at.span))

    # --------------------------------------------------------------- environments
    def merge(self, states: Sequence[State]) -> Environment | None:
        """The environment where the paths meet; copies are appended to their blocks."""
        if not states:
            return None
        names = dict.fromkeys(name for env, _ in states for name in env)
        return {name: self._merged(name, states) for name in names}

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

    # ---------------------------------------------------------------------- loops
    def loop(self, assigned: set[str], lower: Callable[[], LoopExit | None]) -> None:
        """Lower a loop whose body assigns the given names.

        ``lower`` lowers it from the environment at the body's start and appends it, or gives
        None for a loop that is never entered.  A name
        that the body assigns holds one variable throughout; its type is the join of what it
        has before the loop and at the end of the body, found by lowering until it is stable.
        """
        assert self.env is not None
        entry = self.env
        carried: dict[str, Binding | Unusable] = {n: b for n, b in entry.items() if n in assigned}
        restore = self.snapshot()
        while True:
            header = self._loop_header(entry, carried)
            self.env = dict(header)
            context = LoopContext()
            self.loops.append(context)
            exit = lower()
            self.loops.pop()
            if exit is None:
                restore()
                self.env = entry
                return
            jumps_back: list[tuple[Environment, Block]] = []
            jumps_back += [(env, jump.before) for jump, env in context.continues]
            if self.env is not None:
                jumps_back.append((self.env, exit.body))
            breaks: list[State] = [(env, jump.before) for jump, env in context.breaks]
            if not self._widen(entry, header, carried, jumps_back, breaks, exit.can_end):
                break
            restore()
        for env, block in jumps_back:
            for name in carried:
                target, bound = header[name], env[name]
                if isinstance(target, Binding) and isinstance(bound, Binding):
                    self.copy(target.value, bound.value, block, bound)
        self.env = self.merge([*([(header, None)] if exit.can_end else []), *breaks])
        if self.env is not None and exit.can_end:
            for env, _ in jumps_back:
                for name, bound in env.items():
                    if isinstance(bound, Binding):
                        self.env.setdefault(name, perhaps_unassigned(name, bound))

    def _loop_header(
        self, entry: Environment, carried: dict[str, Binding | Unusable]
    ) -> Environment:
        """The environment at the start of the body; copies into loop variables are emitted."""
        header = dict(entry)
        for name, bound in carried.items():
            header[name] = bound
            before = entry[name]
            if isinstance(bound, Binding) and isinstance(before, Binding):
                target = self._variable_for(name, bound.value)
                self.copy(target, before.value, self.block, before)
                header[name] = Binding(target, bound.span)
        return header

    def _variable_for(self, name: str, value: Value) -> Value:
        match value:
            case Runtime() | Constant():
                return Runtime(value.type, self.variable(name, value.type))
            case TupleValue():
                return TupleValue(
                    tuple(self._variable_for(f"{name}.{i}", v) for i, v in enumerate(value.items))
                )
            case _:
                return value

    def _widen(
        self,
        entry: Environment,
        header: Environment,
        carried: dict[str, Binding | Unusable],
        jumps_back: Sequence[tuple[Environment, Block]],
        breaks: Sequence[State],
        can_end: bool,
    ) -> bool:
        """Change ``carried`` to what the paths back and out need; whether anything changed."""
        changed = False
        for name in carried:
            current, before = header[name], entry[name]
            if not (isinstance(current, Binding) and isinstance(before, Binding)):
                continue
            back = [env[name] for env, _ in jumps_back]
            unusable = [b for b in back if isinstance(b, Unusable)]
            bindings = [before, current, *(b for b in back if isinstance(b, Binding))]
            met = None if unusable else self.meet(name, [b.value for b in bindings[1:]])
            if met is not None and self.meet(name, [before.value, met]) is None:
                met = None
            if met is not None and can_end:
                out = [b for env, _ in breaks if isinstance(b := env[name], Binding)]
                met = self.meet(name, [met, *(b.value for b in out)]) or met
            if met is None:
                carried[name] = unusable[0] if unusable else conflict(name, bindings)
                changed = True
            elif not same(met, current.value):
                carried[name] = Binding(met, before.span)
                changed = True
        return changed


class LoopExit:
    """A lowered loop: its body's block, and whether it can end without a break."""

    def __init__(self, body: list[Draft], can_end: bool) -> None:
        self.body = body
        self.can_end = can_end


def common_type(scalars: Sequence[Scalar]) -> ScalarType | None:
    """The join of the types; None if there is none, or a Python int does not fit into it."""
    common = reduce(
        lambda a, b: None if a is None else join(a, b.type),
        scalars[1:],
        scalars[0].type if scalars else None,
    )
    if common is None or not common.is_integer:
        return common
    constants = [s for s in scalars if isinstance(s, Constant) and s.type.is_integer]
    return common if all(fits(c.value, common) for c in constants) else None


def perhaps_unassigned(name: str, bound: Binding) -> Unusable:
    """A name that some paths do not assign."""
    return Unusable(
        f"{name!r} may not be assigned here: only some paths assign it (line {bound.span.line})",
        f"Assign {name} on every path, or before the branch or loop.",
    )


def conflict(name: str, bindings: Sequence[Binding]) -> Unusable:
    """A name that has values of different types on different paths."""
    kinds: dict[str, int] = {}
    for bound in bindings:
        value = bound.value
        kind = describe(value)
        if isinstance(value, (Runtime, Constant)):
            kind = type_name(value.type)
        kinds.setdefault(kind, bound.span.line)
    found = " or ".join(f"{kind} (line {line})" for kind, line in kinds.items())
    types = [b.value.type for b in bindings if isinstance(b.value, (Runtime, Constant))]
    strong = [t for t in types if not t.weak]
    cast = f", e.g. {example_cast(strong[0])}" if strong else ""
    return Unusable(
        f"{name!r} has no single type here: it is {found}",
        f"Convert the values to one type where they are assigned{cast}, or use another name.",
    )
