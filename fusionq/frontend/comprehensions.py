"""Comprehensions and generators, in place of the loops that they stand for.

    tuple(x * w for x, w in zip(t, W))   →   the tuple's items, one after the other
    sum(a[k] for k in range(n) if b[k])  →   total = 0
                                             for k in range(n):
                                                 if b[k]:
                                                     total += a[k]

Their variables are names of their own: the tree is copied with others in place of them.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from fusionq.frontend.elements import MOST_UNROLLED
from fusionq.frontend.iterables import Items
from fusionq.frontend.loops import Loops
from fusionq.frontend.scopes import assigned_names
from fusionq.frontend.sequence_functions import with_items
from fusionq.frontend.typing_rules import WEAK_BOOL
from fusionq.frontend.values import Constant, TupleValue, Value, describe
from fusionq.ir.nodes import CompareOp
from fusionq.ir.types import WEAK_INT

Comprehension: TypeAlias = ast.ListComp | ast.GeneratorExp

MOST_SORTED = 32
"""Items that ``sorted`` takes: comparisons are half their square."""

FOLDED: dict[object, str] = {sum: "sum", math.prod: "prod", any: "any", all: "all"}
"""The functions that take a generator of any length."""


class Comprehensions(Loops):
    """Lowers comprehensions, and calls that go over a generator."""

    def list_comprehension(self, node: ast.ListComp) -> Value:
        """The items, as a list."""
        return self.listed(node)

    def sequence_call(self, function: object, node: ast.Call) -> Value | None:
        """A call of one argument that is gone over: ``sum``, ``math.prod``, ``any``, ``all``,
        ``min`` and ``max`` of a generator, ``tuple``, ``list`` and ``sorted`` of anything of a
        known length; None for others."""
        if function is sorted:
            return self.sorted_items(node)
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            return None
        (argument,) = node.args
        if function is tuple or function is list:
            if isinstance(argument, (ast.GeneratorExp, ast.ListComp)):
                items = self.listed(argument).items
            else:
                items = self._known_items(argument).items
            return TupleValue(items, is_list=function is list)
        generator = isinstance(argument, ast.GeneratorExp)
        if generator or (function is sum and isinstance(argument, ast.ListComp)):
            assert isinstance(argument, (ast.GeneratorExp, ast.ListComp))
            if function in FOLDED:
                return self._fold(FOLDED[function], argument)
            if function is min or function is max:
                return self.of_sequence(function, self.listed(argument), node)
        return None

    def sorted_items(self, node: ast.Call) -> TupleValue:
        """``sorted(t)`` and ``sorted(t, reverse=True)``: neighbours are exchanged in as many rounds
        as there are items, which keeps the order of equal ones, as Python does."""
        backward: Value = Constant(WEAK_BOOL, False)
        for keyword in node.keywords:
            if keyword.arg == "reverse":
                backward = self.value(keyword.value)
        known = {keyword.arg for keyword in node.keywords} <= {"reverse"}
        if len(node.args) != 1 or not known or not isinstance(backward, Constant):
            self.fail(
                node,
                "sorted with these arguments",
                "Write sorted(t) or sorted(t, reverse=True).",
            )
        (argument,) = node.args
        if isinstance(argument, (ast.GeneratorExp, ast.ListComp)):
            items = self.listed(argument).items
        else:
            items = self._known_items(argument).items
        if len(items) > MOST_SORTED:
            self.fail(
                node, f"sorted of {len(items)} items, more than {MOST_SORTED}", "Write the loops."
            )
        numbers = [self.scalar(item, argument) for item in items]
        kinds = {number.type for number in numbers if not number.type.weak}
        if len(kinds) > 1 or any(n.type.is_float for n in numbers) > any(
            kind.is_float for kind in kinds or {number.type for number in numbers}
        ):
            self.fail(node, "sorted of numbers of several types", "Convert them before.")
        for kind in kinds:
            numbers = [self.retyped(number, kind, node) for number in numbers]
        kept = [self.spilled(number, "item", node) for number in numbers]
        op: CompareOp = "gt" if backward.value else "lt"
        choice = with_items(node, 3)
        for turn in range(len(kept)):
            for k in range(turn % 2, len(kept) - 1, 2):
                a, b = kept[k], kept[k + 1]
                swap = self.spilled(self.compare(op, b, a, node), "swap", node)
                pair = [
                    self.function_of(np.where, swap, *both, node=choice)
                    for both in ((b, a), (a, b))
                ]
                kept[k : k + 2] = [
                    self.spilled(self.scalar(x, node), "item", node) for x in pair
                ]
        return TupleValue(tuple(kept), is_list=True)

    def _fold(self, function: str, node: Comprehension) -> Value:
        node = self._with_own_names(node)
        result = f"{function}.in{next(self.kernel.numbers)}"
        statements = folding(function, node, result)
        self.own_names |= {result, f"{result}.left"}
        self.statements(statements)
        value = self.value(ast.copy_location(ast.Name(result, ast.Load()), node))
        self._forget(node, {result, f"{result}.left"})
        return value

    def listed(self, node: Comprehension) -> TupleValue:
        """The items of a comprehension, whose number has to be known."""
        node = self._with_own_names(node)
        copies = self.kernel.copies
        items = list(self._items_of(node, node.generators))
        self.kernel.copies = copies
        self._forget(node, set())
        return TupleValue(tuple(items), is_list=isinstance(node, ast.ListComp))

    def _items_of(
        self, node: Comprehension, generators: Sequence[ast.comprehension]
    ) -> Iterator[Value]:
        if not generators:
            yield self.fixed(self.value(node.elt), node.elt)
            return
        generator, *inner = generators
        items = self._known_items(generator.iter).items
        copies = self.kernel.copies
        self.kernel.copies *= max(len(items), 1)
        if self.kernel.copies > MOST_UNROLLED:
            self.fail(
                node,
                f"a comprehension of {self.kernel.copies} items, more than {MOST_UNROLLED}",
                "Fill a PrivateArray in a for loop.",
            )
        place = at(ast.Pass(), generator.target)
        for item in [self.fixed(item, generator.iter) for item in items]:
            self.assign(generator.target, item, place)
            if all(self._is_kept(test) for test in generator.ifs):
                yield from self._items_of(node, inner)
        self.kernel.copies = copies

    def _is_kept(self, test: ast.expr) -> bool:
        found = self.condition(test)
        if isinstance(found, Constant):
            return bool(found.value)
        self.fail(
            test,
            "how many items this comprehension has is not known when the kernel is compiled",
            "sum, any and all take such a generator; else fill a PrivateArray in a for loop.",
        )

    def _known_items(self, node: ast.expr) -> TupleValue:
        """What is gone over, as a tuple."""
        found = self.iterated(node)
        if isinstance(found, TupleValue):
            return found
        if isinstance(found, Items):
            length = found.count
            if isinstance(length, Constant) and int(length.value) <= MOST_UNROLLED:
                numbers = [Constant(WEAK_INT, k) for k in range(int(length.value))]
                return TupleValue(tuple(found.item(number) for number in numbers))
            self.fail(
                node,
                "how many items there are is not known when the kernel is compiled, or more than "
                f"{MOST_UNROLLED}",
                "sum, any and all take a generator of any length; else write a for loop.",
            )
        self.fail(
            node,
            f"items of {describe(found)}",
            "There are those of tuples, ranges, rows and PrivateArrays.",
        )

    def _with_own_names(self, node: Comprehension) -> Comprehension:
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.fail(inner, ":= inside a comprehension", "Write a for loop.")
            if isinstance(inner, ast.comprehension) and inner.is_async:
                self.fail(node, "async is not supported", "Use a plain for.")
        known = self.kernel.comprehensions
        if node not in known:
            known[node] = with_own_names(node, self.kernel.numbers)
        found, names = known[node]
        assert isinstance(found, (ast.ListComp, ast.GeneratorExp))
        self.own_names |= names
        return found

    def _forget(self, node: Comprehension, more: set[str]) -> None:
        """Drop a comprehension's names, unless functions that it makes still see them."""
        if not any(isinstance(inner, ast.Lambda) for inner in ast.walk(node)):
            names = assigned_names(g.target for g in node.generators) | more
            self.env = {k: v for k, v in (self.env or {}).items() if k not in names}


def with_own_names(node: Comprehension, unused: Iterator[int]) -> tuple[Comprehension, set[str]]:
    """A copy of a comprehension whose variables have names that no Python code has; and these."""
    node = copy.deepcopy(node)
    targets = assigned_names(generator.target for generator in node.generators)
    names = {name: f"{name}.in{next(unused)}" for name in sorted(targets)}
    first = copy.deepcopy(node.generators[0].iter)
    _Renaming(names).generic_visit(node)
    node.generators[0].iter = first  # which is evaluated outside
    return node, set(names.values())


class _Renaming(ast.NodeTransformer):
    """Puts other names in place of a scope's, in it and in those inside of it that see them."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self._names:
            return ast.copy_location(ast.Name(self._names[node.id], node.ctx), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        spec = node.args
        spec.defaults = [self.visit(default) for default in spec.defaults]
        spec.kw_defaults = [default and self.visit(default) for default in spec.kw_defaults]
        own = {a.arg for a in ast.walk(spec) if isinstance(a, ast.arg)}
        node.body = self._without(own).visit(node.body)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._inner(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._inner(node)

    def _inner(self, node: Comprehension) -> ast.AST:
        node.generators[0].iter = first = self.visit(node.generators[0].iter)
        own = assigned_names(generator.target for generator in node.generators)
        self._without(own).generic_visit(node)
        node.generators[0].iter = first
        return node

    def _without(self, own: set[str]) -> _Renaming:
        return _Renaming({k: v for k, v in self._names.items() if k not in own})


def nested_loops(node: Comprehension, body: Sequence[ast.stmt], leave: str | None) -> ast.For:
    """The loops of a comprehension around a body; they all end where the bool ``leave`` is true."""
    inner = list(body)
    for number, generator in enumerate(reversed(node.generators)):
        for test in reversed(generator.ifs):
            inner = [at(ast.If(test, inner, []), test)]
        loop = at(ast.For(generator.target, generator.iter, inner, []), generator.iter)
        inner = [loop]
        if leave is not None and number < len(node.generators) - 1:
            out = ast.If(ast.Name(leave, ast.Load()), [ast.Break()], [])
            inner.append(at(out, generator.iter))
    assert isinstance(inner[0], ast.For)
    return inner[0]


def folding(function: str, node: Comprehension, result: str) -> list[ast.stmt]:
    """The statements that put ``sum`` and its like of a comprehension into a name."""
    start = ast.Constant({"sum": 0, "prod": 1, "any": False, "all": True}[function])
    first = at(ast.Assign([ast.Name(result, ast.Store())], start), node)
    if function in ("sum", "prod"):
        op = ast.Add() if function == "sum" else ast.Mult()
        combined = ast.AugAssign(ast.Name(result, ast.Store()), op, node.elt)
        return [first, nested_loops(node, [at(combined, node.elt)], None)]
    test = node.elt if function == "any" else ast.UnaryOp(ast.Not(), node.elt)
    found = ast.Assign([ast.Name(result, ast.Store())], ast.Constant(function == "any"))
    stop = at(ast.If(test, [found, ast.Break()], []), node.elt)
    if function == "any":
        return [first, nested_loops(node, [stop], result)]
    flag = f"{result}.left"
    left = ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(True))
    stop = at(ast.If(test, [found, left, ast.Break()], []), node.elt)
    stays = at(ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(False)), node)
    return [first, stays, nested_loops(node, [stop], flag)]


def at(stmt: ast.stmt, where: ast.AST) -> ast.stmt:
    """The statement with a place in the source."""
    return ast.fix_missing_locations(ast.copy_location(stmt, where))
