"""Functions that are defined in a kernel, by ``def`` or ``lambda``: closures, inlined where they
are called.

    gain = 2                                     the names of the function around it are what they
    scaled = lambda x: x * gain                  are where it is called, as Python's closures see
    gain = 3                                     them; defaults are evaluated at the definition
    y = scaled(a[i])        # a[i] * 3
"""

from __future__ import annotations

import ast
from abc import abstractmethod

from fusionq.frontend.record_assignments import RecordAssignments
from fusionq.frontend.scopes import function_of_lambda
from fusionq.frontend.source import FunctionSource
from fusionq.frontend.values import (
    ArrayValue,
    Binding,
    FunctionValue,
    NewPrivateArray,
    Unusable,
    Value,
    VectorValue,
)


class NestedFunctions(RecordAssignments):
    """Lowers definitions of functions, and the names that they share with the one around them."""

    @abstractmethod
    def fixed(self, value: Value, node: ast.AST) -> Value:
        """The value, independent of variables and memory that change later."""

    @abstractmethod
    def fixed_element(self, array: ArrayValue, node: ast.AST) -> ArrayValue:
        """The element, or the part of the array, that the indices denote now."""

    def nested_function(self, node: ast.FunctionDef | ast.Lambda) -> FunctionValue:
        """The function that a definition makes; its defaults are evaluated now."""
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            self.fail(
                node.decorator_list[0],
                "a decorator of a function inside a kernel",
                "Leave it out: functions that a kernel calls are inlined.",
            )
        spec = node.args
        positional = [*spec.posonlyargs, *spec.args]
        optional = positional[len(positional) - len(spec.defaults) :]
        given = list(zip(optional, spec.defaults, strict=True))
        given += [
            (parameter, default)
            for parameter, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
            if default is not None
        ]
        values = self.in_order([default for _, default in given], self.value)
        defaults = {
            parameter.arg: self.fixed(value, default)
            for (parameter, default), value in zip(given, values, strict=True)
        }
        return FunctionValue(self._inner_source(node), self, defaults)

    def _inner_source(self, node: ast.FunctionDef | ast.Lambda) -> FunctionSource:
        """The definition as a function's source, one for each definition of a kernel."""
        known = self.kernel.nested
        if node not in known:
            tree = node if isinstance(node, ast.FunctionDef) else function_of_lambda(node)
            known[node] = self.source.inner(tree)
        return known[node]

    def owner(self, name: str) -> NestedFunctions | None:
        """The function whose local name this is: this one, or one around its definition; None for
        a name from outside of the kernel."""
        frame: NestedFunctions | None = self
        while frame is not None and not frame.has_local(name):
            around = frame.enclosing
            assert around is None or isinstance(around, NestedFunctions)
            frame = around
        return frame

    def has_local(self, name: str) -> bool:
        """Whether a name is the function's own, or that of one of its comprehensions."""
        return name in self.source.local_names or name in self.own_names

    def bound_name(self, node: ast.Name, owner: NestedFunctions) -> Value:
        """What a local name of ``owner`` stands for."""
        name = node.id.partition(".")[0]
        if owner.env is None:
            self.fail(
                node,
                f"{name!r} is a name of {owner.source.name!r}, which has returned",
                f"Give it to the function as a parameter, e.g. {name}={name}, whose default "
                "is evaluated where the function is defined.",
            )
        bound = owner.env.get(node.id)
        if bound is None:
            self.fail(node, f"{name!r} is read before it is assigned", "Assign it first.")
        if isinstance(bound, Unusable):
            holds = owner.path.hold(bound.where) or self.path.hold(bound.where)
            if bound.binding is not None and holds:
                bound = bound.binding
            elif bound.after_loop is not None:
                bound = bound.after_loop()
            if isinstance(bound, Unusable):
                self.fail(node, bound.message, bound.hint)
        assert isinstance(bound, Binding)
        return self.as_it_is(bound.value, node) if node.id in owner.rebound else bound.value

    def as_it_is(self, value: Value, node: ast.AST) -> Value:
        """The value of a name that the rest of the statement may assign anew."""
        if isinstance(value, ArrayValue) and value.axes:
            return self.fixed_element(value, node)
        if isinstance(value, (NewPrivateArray, VectorValue)):
            return value
        return self.fixed(value, node)
