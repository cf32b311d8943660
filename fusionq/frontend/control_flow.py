"""Loops: the types of the variables that they carry, and what names stand for after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from fusionq.frontend.draft import Draft, DraftFor
from fusionq.frontend.flags import PathEnd, known_after
from fusionq.frontend.joined_paths import Block, JoinedPaths, State
from fusionq.frontend.path_conditions import Fact
from fusionq.frontend.state import LoopContext
from fusionq.frontend.unusable import conflict, perhaps_unassigned
from fusionq.frontend.values import (
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
from fusionq.ir.nodes import Param, Var
from fusionq.ir.types import WEAK_INT
from fusionq.ir.walk import reads_memory


class ControlFlow(JoinedPaths):
    """Finds the types of variables that loops carry."""

    def loop(self, assigned: set[str], lower: Callable[[], LoopExit | None]) -> None:
        """Lower a loop whose body assigns the given names.

        ``lower`` lowers it from the environment at the body's start and appends it, or gives
        None for a loop that is never entered.  A name
        that the body assigns holds one variable throughout; its type is the join of what it
        has before the loop and at the end of the body, found by lowering until it is stable.  A
        Python int takes the type of what it meets in the loop; where it meets a type that it
        keeps apart from, the loop is lowered once more for what may not fit into that.
        """
        assert self.env is not None
        entry = self.env
        carried: dict[str, Binding | Unusable] = {n: b for n, b in entry.items() if n in assigned}
        restore, versions = self.snapshot(), dict(self.path.versions)
        is_stable = False
        while True:
            header = self._loop_header(entry, carried)
            self.env, at_start = dict(header), dict(self.path.versions)
            context = LoopContext()
            self.loops.append(context)
            values = [b.value for n in carried if isinstance(b := header[n], Binding)]
            undecided = set() if is_stable else set(_python_ints(values))
            with self.kernel.undecided_in(undecided) as taken_to_fit:
                exit = lower()
                self.loops.pop()
                at_end = dict(self.path.versions)
                if exit is None:
                    restore()
                    self.env = entry
                    self.path.meet(versions)
                    return
                jumps_back: list[tuple[Environment, Block]] = []
                jumps_back += [(env, jump.before) for jump, env in context.continues]
                if self.env is not None:
                    jumps_back.append((self.env, exit.body))
                breaks = [(env, jump.before) for jump, env in context.breaks]
                changed = self._widen(entry, header, carried, jumps_back, breaks, exit.can_end)
            if not (changed or undecided & taken_to_fit):
                break
            is_stable |= not changed
            restore()
        for env, block in jumps_back:
            for name in carried:
                target, bound = header[name], env[name]
                if isinstance(target, Binding) and isinstance(bound, Binding):
                    self.copy(target.value, bound.value, block, bound)
        ends = [*jumps_back, *((dict(env), block) for env, block in breaks)]
        counted = exit.counted
        iterations = None if counted is None else counted.iterations
        for env, block in breaks:
            self._leave(counted, env, block, header)
        can_end = exit.can_end and bool(jumps_back or not iterations)
        after = self._after(header, jumps_back, counted) if can_end and counted else header
        out: list[State] = [*([(after, None)] if can_end else []), *breaks]
        self.env = self.merge(out)
        if self.env is not None and exit.can_end:
            for env, _ in jumps_back:
                for name, bound in env.items():
                    found = (
                        perhaps_unassigned(name, bound)
                        if isinstance(bound, Binding)
                        else replace(bound, where=(), after_loop=None)
                    )
                    self.env.setdefault(name, found)
        self.path.meet(versions)
        if breaks and self.env is not None:
            known = known_after(after, entry, at_start, at_end)
            itself = [PathEnd(known, {})] if can_end else []
            self.bind_by_flags(out, [*itself, *(PathEnd(env, {}) for env, _ in breaks)])
        if counted is not None and ends:
            self._names_after(counted, header, ends)

    def _leave(
        self, loop: CountedLoop | None, env: Environment, block: Block, header: Environment
    ) -> None:
        """Give names that stand for a loop's own variable, which is visible in its body only, the
        variable that they have throughout the loop, by a copy before the break; those without
        one are unusable after it."""
        for name, bound in env.items():
            if not isinstance(bound, Binding) or not isinstance(bound.value, Runtime):
                continue
            if loop is None or bound.value.expr != loop.variable:
                continue
            carried = header.get(name)
            if isinstance(carried, Binding):
                self.copy(carried.value, bound.value, block, bound)
                env[name] = replace(bound, value=carried.value)
                continue
            env[name] = Unusable(
                f"{name!r} cannot be read after its loop, which a break may leave (line "
                f"{bound.span.line})",
                f"Keep it in a variable of its own, e.g. last = {name}, in the loop.",
            )

    def _after(
        self,
        header: Environment,
        jumps_back: Sequence[tuple[Environment, Block]],
        loop: CountedLoop,
    ) -> Environment:
        """The environment after a loop that ends by itself: what its body binds is bound, if it
        certainly runs."""
        if not loop.iterations:
            return header
        after = dict(header)
        for name in dict.fromkeys(name for env, _ in jumps_back for name in env):
            found = [env.get(name) for env, _ in jumps_back]
            bindings = [bound for bound in found if isinstance(bound, Binding)]
            if isinstance(header.get(name), Binding) or len(bindings) < len(found):
                continue
            target = self.meet(name, [bound.value for bound in bindings])
            if target is None:
                after[name] = conflict(name, bindings)
                continue
            for (_, block), bound in zip(jumps_back, bindings, strict=True):
                self.copy(target, bound.value, block, bound)
            if isinstance(target, Runtime) and target.expr == loop.variable:
                # The loop's own variable is visible in its body only.
                target = Constant(target.type, loop.iterations[-1])
            after[name] = Binding(target, bindings[0].span)
        return after

    def _names_after(
        self, loop: CountedLoop, header: Environment, ends: Sequence[tuple[Environment, Block]]
    ) -> None:
        """Let the names that all ends of an iteration have bound be read after a loop that runs, or
        of which ``submit`` knows whether it does."""
        assert self.env is not None
        never = loop.iterations is not None and not loop.iterations
        if never or any(map(reads_memory, loop.draft.bounds)):
            return
        for name, now in self.env.items():
            found = [env.get(name) for env, _ in ends]
            if isinstance(now, Binding) or all(bound is header.get(name) for bound in found):
                continue
            bound = [b for b in found if isinstance(b, Binding) or (b and b.after_loop)]
            if len(bound) == len(found):
                after = partial(self._bound_after, name, loop, ends)
                self.env[name] = replace(now, where=(), after_loop=after)

    def _bound_after(
        self, name: str, loop: CountedLoop, ends: Sequence[tuple[Environment, Block]]
    ) -> Binding | Unusable:
        """What a name stands for after a loop that has run, which is to be proved unless that is
        known."""
        if name not in loop.bound:
            bindings: list[Binding] = []
            for env, _ in ends:
                bound = env[name]
                if isinstance(bound, Unusable) and bound.after_loop is not None:
                    bound = bound.after_loop()
                if isinstance(bound, Unusable):
                    return bound
                bindings.append(bound)
            target = self.meet(name, [bound.value for bound in bindings])
            if target is None:
                return conflict(name, bindings)
            if isinstance(target, Runtime) and target.expr == loop.variable:
                target = Runtime(target.type, self.variable(name, target.type))
            self.undo += [partial(_shorten, block, len(block)) for _, block in ends]
            self.undo.append(partial(loop.bound.pop, name))
            for (_, block), bound in zip(ends, bindings, strict=True):
                self.copy(target, bound.value, block, bound)
            loop.bound[name] = Binding(target, bindings[0].span)
        known = loop.iterations is not None or any(map(self.path.hold, loop.runs))
        if loop.draft.binds is None and not known:
            self.undo.append(partial(setattr, loop.draft, "binds", None))
            loop.draft.binds = name
        return loop.bound[name]

    def _loop_header(
        self, entry: Environment, carried: dict[str, Binding | Unusable]
    ) -> Environment:
        """The environment at the start of the body; copies into loop variables are emitted."""
        header = dict(entry)
        for name, bound in carried.items():
            if isinstance(bound, Unusable):
                bound = replace(bound, where=(), after_loop=None)
            header[name] = bound
            for variable in self.variables_of(name):
                self.path.assigned(variable)
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
            case ComplexValue():
                parts = zip(("real", "imag"), value.parts, strict=True)
                return ComplexValue(
                    *[Runtime(p.type, self.variable(f"{name}.{n}", p.type)) for n, p in parts]
                )
            case TupleValue():
                items = [self._variable_for(f"{name}.{i}", v) for i, v in enumerate(value.items)]
                return replace(value, items=tuple(items))
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
            if met is not None:
                both = self.meet(name, [before.value, met])
                if both is None or not _is_argument(before.value):
                    met = both
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


@dataclass(slots=True)
class CountedLoop:
    """A loop over ``range(…)``: its variable, that one's values where they are known, and sets of
    facts of which each says that it runs.  ``bound``: what names stand for after it, if it has
    run."""

    draft: DraftFor
    variable: Var
    iterations: range | None
    runs: Sequence[tuple[Fact, ...]]
    bound: dict[str, Binding] = field(default_factory=dict)


@dataclass(slots=True)
class LoopExit:
    """A lowered loop: its body's block, whether it can end without a break."""

    body: list[Draft]
    can_end: bool
    counted: CountedLoop | None = None


def _is_argument(value: Value) -> bool:
    """Whether a value is a scalar argument, of which ``submit`` checks that it fits."""
    return isinstance(value, Runtime) and isinstance(value.expr, Param)


def _python_ints(values: Iterable[Value]) -> Iterator[str]:
    """The variables of Python ints."""
    for value in values:
        match value:
            case Runtime(type=scalar, expr=Var(name=name)) if scalar == WEAK_INT:
                yield name
            case TupleValue():
                yield from _python_ints(value.items)


def _shorten(block: Block, length: int) -> None:
    del block[length:]
