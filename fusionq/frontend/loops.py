"""Loops: over ranges, over tuples, and while a condition holds."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from fusionq.frontend.control_flow import CountedLoop, LoopExit
from fusionq.frontend.draft import (
    DraftFor,
    DraftIf,
    DraftWhile,
    Jump,
    negated,
    without_leaving,
)
from fusionq.frontend.elements import MOST_UNROLLED
from fusionq.frontend.flags import PathEnd
from fusionq.frontend.iterables import Items, Iterables, iterations
from fusionq.frontend.joined_paths import Block, State
from fusionq.frontend.path_conditions import entered
from fusionq.frontend.scopes import assigned_names
from fusionq.frontend.state import LoopContext, NotConstant
from fusionq.frontend.values import (
    Binding,
    Constant,
    Environment,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    describe,
)
from fusionq.ir.nodes import Const, Expr, Var
from fusionq.ir.types import BOOL, INT64, WEAK_INT


class Loops(Iterables):
    """Lowers loops."""

    @abstractmethod
    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        """Lower a sequence of statements, as far as control reaches."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, node: ast.stmt) -> None:
        """Assign an evaluated value to a name, an element, or names of a tuple."""

    @abstractmethod
    def bind(self, name: str, value: Value, node: ast.AST) -> None:
        """Let a name stand for a value; a number known at run time goes into a variable."""

    @abstractmethod
    def fixed(self, value: Value, node: ast.AST) -> Value:
        """The value, independent of variables and memory that change later."""

    def for_loop(self, node: ast.For) -> None:
        if isinstance(node.iter, ast.Call) and self._called(node.iter) is range:
            if not isinstance(node.target, ast.Name):
                self.fail(node.target, "range gives one variable", "Write 'for k in range(…)'.")
            name = node.target.id
            self._over_range(node, name, self.range_bounds(node.iter), _itself)
            return
        named = isinstance(node.target, ast.Name)
        backward = self._range_backward(node.iter) if named else None
        if backward is not None and isinstance(node.target, ast.Name):
            self._over_range(node, node.target.id, backward, _itself)
            return
        items = self.iterated(node.iter)
        if isinstance(items, Items):
            bounds = Const(INT64, 0), self.convert(items.count, INT64, node), Const(INT64, 1)
            self._over_range(node, "position", bounds, items.item)
        elif isinstance(items, TupleValue):
            self.over_tuple(node, items)
        else:
            self.fail(
                node,
                f"a for loop goes over range(…), a tuple or an array, not over {describe(items)}",
                "Write 'for k in range(n)', and index with k.",
            )

    def _over_range(
        self,
        node: ast.For,
        name: str,
        bounds: tuple[Expr, Expr, Expr],
        item: Callable[[Scalar], Value],
    ) -> None:
        """A loop over ``range(*bounds)`` with a variable of this name; the target is ``item`` of
        it."""
        start, stop, step = bounds
        counts = item is _itself
        own: list[str] = []
        runs = [self.path.of(cond, True) for cond in entered(start, stop, step)]
        values = iterations(start, stop, step)
        if values is not None and values[MOST_UNROLLED:]:
            values = None  # not unrolled

        def lower() -> LoopExit:
            assert self.env is not None
            variable = Var(INT64, self.fresh(name))
            own.append(variable.name)
            self.path.iterates(variable.name, start, stop, step)
            if values is not None:
                self.kernel.unrollable[variable.name] = len(values)
            number = Runtime(WEAK_INT, variable)
            with self.nested() as body:
                found = item(number)
                if counts and isinstance(node.target, ast.Name):
                    self.env[node.target.id] = Binding(number, self.span(node))
                else:
                    self.assign(node.target, self.fixed(found, node), node)
                self.statements(node.body)
            loop = DraftFor(variable.name, start, stop, step, body, self.span(node))
            self.block.append(loop)
            known = iterations(start, stop, step)
            return LoopExit(body, True, CountedLoop(loop, variable, known, runs))

        if values is None:
            self.loop(assigned_names([*node.body, node.target]), lower)
            return
        restore, before, known = self.snapshot(), self.env, self.path.facts
        depth, regions = len(self.loops), len(self.open_regions)
        try:
            self.loop(assigned_names([*node.body, node.target]), lower)
        except NotConstant as error:
            if counts and not error.variables & set(own):
                raise
            restore()
            self.env, self.path.facts = before, known
            del self.loops[depth:], self.open_regions[regions:]
            self.unrolled(node, [partial(item, Constant(WEAK_INT, value)) for value in values])
        else:
            for variable in own:
                self.kernel.unrollable.pop(variable, None)

    def over_tuple(self, node: ast.For, items: TupleValue) -> None:
        """A loop over a tuple's items: the body once for each."""
        copies = self.kernel.copies * len(items.items)
        if copies > MOST_UNROLLED:
            self.fail(
                node,
                f"a loop over a tuple repeats its body {copies} times, more than {MOST_UNROLLED}",
                "Write 'for k in range(n)', and index with k.",
            )
        fixed = [self.fixed(item, node) for item in items.items]
        self.unrolled(node, [partial(_itself, item) for item in fixed])

    def unrolled(self, node: ast.For, values: Sequence[Callable[[], Value]]) -> None:
        """The loop's body once for each value that its target gets; what ``continue`` and ``break``
        leave out is under conditions."""
        copies, known = self.kernel.copies, self.path.facts
        versions = dict(self.path.versions)
        self.kernel.copies *= len(values)
        breaks: list[tuple[Jump, Environment]] = []
        with self.nested() as block:
            for value in values:
                if self.env is None:
                    break
                self.env = dict(self.env)
                context = LoopContext()
                self.loops.append(context)
                with self.nested() as body:
                    self.assign(node.target, value(), node)
                    self.statements(node.body)
                self.loops.pop()
                breaks += context.breaks
                self._meet_jumps(body, context.continues, versions)
                if context.continues or context.breaks:
                    self.path.facts = known
                if context.breaks and not context.continues:
                    self.path.meet(versions)
        if breaks:
            self._meet_jumps(block, breaks, versions)
        else:
            self.block += block
        self.kernel.copies = copies

    def _meet_jumps(
        self,
        body: Block,
        jumps: Sequence[tuple[Jump, Environment]],
        versions: dict[str, int],
    ) -> None:
        """Append a body from which ``jumps`` go to its end; its end is where the paths meet.
        ``versions``: how often variables had been assigned before it."""
        if jumps:
            ends: list[State] = [(env, jump.before) for jump, env in jumps]
            if self.env is not None:
                ends.insert(0, (self.env, body))
            self.env = self.merge(ends)
            self.path.meet(versions)
            self.bind_by_flags(ends, [PathEnd(env, {}) for env, _ in ends])
        left = [jump for jump, _ in jumps]
        self.block += without_leaving(body, left, lambda: self.fresh("left"))

    def while_loop(self, node: ast.While) -> None:
        if self.source.names_in_expressions and assigned_names([node.test]):
            node = _with_test_inside(node)
        span = self.span(node)
        never: list[ast.expr] = []

        def lower() -> LoopExit | None:
            with self.nested() as head:
                cond = self.condition(node.test)
            if isinstance(cond, Constant) and not cond.value:
                never.append(node.test)
                return None
            can_end = not isinstance(cond, Constant)
            test = cond.expr if isinstance(cond, Runtime) else Const(BOOL, True)
            with self.nested() as body:
                self.statements(node.body)
            if head:
                # The condition needs statements: while True: …; if not cond: break; …
                head.append(DraftIf(negated(test), [Jump("break", span)], [], span))
                body[:0] = head
                test = Const(BOOL, True)
            self.block.append(DraftWhile(test, body, span))
            return LoopExit(body, can_end)

        self.loop(assigned_names(node.body), lower)
        for test in never[:1]:
            self.condition(test)  # what it does is done once


def _with_test_inside(node: ast.While) -> ast.While:
    """``while True: if not test: break; …``, where names that the test assigns are assigned in
    the loop."""
    test = ast.UnaryOp(ast.Not(), node.test)
    leave = ast.copy_location(ast.If(test, [ast.Break()], []), node.test)
    always = ast.copy_location(ast.Constant(True), node.test)
    loop = ast.copy_location(ast.While(always, [leave, *node.body], []), node)
    return ast.fix_missing_locations(loop)


def _itself(value: Value) -> Value:
    return value
