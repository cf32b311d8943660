"""Statements: assignments, branches, jumps."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType

from fusionq.frontend.array_functions import ArrayFunctions
from fusionq.frontend.draft import Draft, DraftIf, Jump
from fusionq.frontend.flags import PathEnd
from fusionq.frontend.joined_paths import State
from fusionq.frontend.operators import BINARY_OPERATORS
from fusionq.frontend.scopes import rebound_names
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    Binding,
    ComplexValue,
    Constant,
    NewPrivateArray,
    ObjectValue,
    Runtime,
    TupleValue,
    Value,
    VectorValue,
    describe,
    has_fields,
    is_array,
    is_record,
)
from fusionq.ir.nodes import Assign, Const, Expr, Extent, ItemQuery, Param, Var
from fusionq.ir.walk import reads_memory, subexpressions

_FIXED = (Const, Param, Extent, ItemQuery)
"""Expressions whose value never changes within a work-item."""


class Statements(ArrayFunctions):
    """Lowers statements."""

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        """Lower a sequence of statements, as far as control reaches."""
        for node in nodes:
            if self.env is None:
                return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if not self.source.names_in_expressions:
            self._lowered(node)
            return
        outer, self.rebound = self.rebound, rebound_names(node)
        try:
            self._lowered(node)
        finally:
            self.rebound = outer

    def _lowered(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                unpacked = all(isinstance(t, (ast.Tuple, ast.List)) for t in node.targets)
                if unpacked and isinstance(node.value, ast.GeneratorExp):
                    value: Value = self.listed(node.value)
                elif all(isinstance(t, ast.Name) for t in node.targets):
                    value = self.named_value(node.value)
                else:
                    value = self.value(node.value)
                if len(node.targets) > 1:
                    value = self.fixed(value, node)
                for target in node.targets:
                    self.assign(target, value, node)
            case ast.AnnAssign():
                if node.value is not None:
                    is_name = isinstance(node.target, ast.Name)
                    value = self.named_value(node.value) if is_name else self.value(node.value)
                    self.assign(node.target, value, node)
            case ast.AugAssign():
                self.augmented_assignment(node)
            case ast.If():
                self.branch(node)
            case ast.For():
                self.for_loop(node)
            case ast.While():
                self.while_loop(node)
            case ast.With():
                self.regions(node)
            case ast.Break():
                self.jump(Jump("break", self.span(node)), node)
            case ast.Continue():
                self.jump(Jump("continue", self.span(node)), node)
            case ast.Return():
                self.return_(node)
            case ast.Assert():
                self.assertion(node)
            case ast.FunctionDef():
                self.bind(node.name, self.nested_function(node), node)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                with self.unless_mark(call):
                    self.discard(self.call(call))
            case ast.Expr(value=ast.NamedExpr() as named):
                self.named(named)
            case ast.Expr():
                self.refuse_expression(node)
            case _:
                self.refuse(node)

    def refuse_expression(self, node: ast.Expr) -> None:
        self.value(node.value)  # a more precise error, if there is one
        self.fail(node, "this expression has no effect", "Assign its value, or leave it out.")

    def assertion(self, node: ast.Assert) -> None:
        """``assert`` of what is known at compile time."""
        cond = self.condition(node.test)
        if not isinstance(cond, Constant):
            self.refuse(node)
        if not cond.value:
            self.fail(
                node,
                f"this assertion does not hold: {ast.unparse(node.test)}",
                "It is decided when the kernel is compiled, for these types and constants.",
            )

    # --------------------------------------------------------------- assignments
    def assign(self, target: ast.expr, value: Value, node: ast.stmt) -> None:
        """Assign an evaluated value to a name, an element, or names of a tuple."""
        match target:
            case ast.Name():
                self.bind(target.id, value, node)
            case ast.Subscript() | ast.Attribute():
                self.store(target, value, node)
            case ast.Tuple() | ast.List():
                self.unpack(target, value, node)
            case ast.Starred():
                self.refuse(target)
            case _:
                self.refuse(target)

    def bind(self, name: str, value: Value, node: ast.AST) -> None:
        """Let a name stand for a value; a number known at run time goes into a variable."""
        assert self.env is not None
        self.env[name] = Binding(self.held(name, value, node), self.span(node))

    def named(self, node: ast.NamedExpr) -> Value:
        """``name := value``: the value, which the name stands for from now on."""
        self.bind(node.target.id, self.named_value(node.value), node)
        return self.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))

    def held(self, name: str, value: Value, node: ast.AST) -> Value:
        """The value as a name may hold it while other names change."""
        match value:
            case Runtime(expr=Param() | Extent()):
                return value
            case Runtime():
                variable = self.variable(name, value.type)
                if value.expr != variable:
                    self.block.append(Assign(variable.name, value.expr, self.span(node)))
                    self.path.assigned(variable.name, value.expr)
                return Runtime(value.type, variable)
            case TupleValue():
                names = [f"{name}.{i}" for i in range(len(value.items))]
                items = self.independent(names, value.items, False, node)
                held = [self.held(n, v, node) for n, v in zip(names, items, strict=True)]
                return replace(value, items=tuple(held))
            case ComplexValue():
                names = [f"{name}.real", f"{name}.imag"]
                parts = self.independent(names, value.parts, False, node)
                numbers = [self.held(n, p, node) for n, p in zip(names, parts, strict=True)]
                return ComplexValue(*[self.scalar(number, node) for number in numbers])
            case NewPrivateArray():
                return self.declared(name, value, node)
            case VectorValue():
                return self.materialised(name, value, node)
            case AtomicValue():
                return self.fixed(value, node)
            case ArrayValue() if value.axes:
                return self.fixed_element(value, node)
            case ObjectValue(object=ModuleType()):
                self.fail(
                    node, "a module cannot be assigned to a name", "Use the module's own name."
                )
            case _:
                return value

    def fixed(self, value: Value, node: ast.AST) -> Value:
        """The value, independent of variables and memory that change later."""
        match value:
            case Runtime() if not isinstance(value.expr, _FIXED):
                variable = Var(value.expr.type, self.fresh("value"))
                self.block.append(Assign(variable.name, value.expr, self.span(node)))
                return Runtime(value.type, variable)
            case TupleValue():
                return replace(value, items=tuple(self.fixed(v, node) for v in value.items))
            case ComplexValue():
                parts = [self.fixed(part, node) for part in value.parts]
                return ComplexValue(*[self.scalar(part, node) for part in parts])
            case NewPrivateArray():
                return self.declared("private", value, node)
            case VectorValue():
                return self.materialised("value", value, node)
            case AtomicValue():
                return replace(value, element=self.fixed_element(value.element, node))
            case _:
                return value

    def fixed_element(self, array: ArrayValue, node: ast.AST) -> ArrayValue:
        """The element, or the part of the array, that the indices denote now."""

        def fixed(index: Expr) -> Expr:
            if isinstance(index, _FIXED):
                return index
            variable = Var(index.type, self.fresh("index"))
            self.block.append(Assign(variable.name, index, self.span(node)))
            return variable

        return array.mapped(fixed)

    def independent(
        self, names: Sequence[str], values: Sequence[Value], writes_memory: bool, node: ast.AST
    ) -> list[Value]:
        """Values that may be assigned one after the other: what reads a name assigned before
        it (or memory, if elements are assigned) is put into a variable first."""
        result = list(values[:1])
        for position, value in enumerate(values[1:], 1):
            earlier = {v for n in names[:position] for v in self.variables_of(n)}
            fixed = isinstance(value, Runtime) and not (
                any(isinstance(e, Var) and e.name in earlier for e in subexpressions(value.expr))
                or (writes_memory and reads_memory(value.expr))
            )
            result.append(value if fixed else self.fixed(value, node))
        return result

    def unpack(self, target: ast.Tuple | ast.List, value: Value, node: ast.stmt) -> None:
        starred = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        if starred:
            self._unpack_rest(target, starred[0], value, node)
            return
        count = len(target.elts)
        if isinstance(value, ArrayValue) and value.ndim:
            value = TupleValue(tuple(self.unpacked(value, count, node)))
        if not isinstance(value, TupleValue) or len(value.items) != count:
            self.fail(
                node,
                f"{describe(value)} cannot be unpacked into {count} names",
                "Unpack tuples and arrays of the same length.",
            )
        names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
        values = self.independent(names, value.items, not all(names), node)
        for element, item in zip(target.elts, values, strict=True):
            self.assign(element, item, node)

    def _unpack_rest(
        self, target: ast.Tuple | ast.List, place: int, value: Value, node: ast.stmt
    ) -> None:
        """``first, *rest = t``: the rest is a list."""
        if isinstance(value, ArrayValue) and value.ndim:
            extent = self.extents(value)[0]
            if isinstance(extent, Constant):
                value = TupleValue(tuple(self.unpacked(value, int(extent.value), node)))
        others = len(target.elts) - 1
        if not isinstance(value, TupleValue) or len(value.items) < others:
            self.fail(
                node,
                f"{describe(value)} cannot be unpacked into {others} names and the rest",
                "Unpack tuples, and arrays whose length is known when the kernel is compiled.",
            )
        end = len(value.items) - (others - place)
        rest = TupleValue(value.items[place:end], is_list=True)
        starred = target.elts[place]
        assert isinstance(starred, ast.Starred)
        names = [*target.elts[:place], starred.value, *target.elts[place + 1 :]]
        whole = ast.copy_location(type(target)(names, ast.Store()), target)
        items = (*value.items[:place], rest, *value.items[end:])
        self.unpack(whole, TupleValue(items), node)

    def changeable(self, target: ast.Subscript | ast.Attribute) -> ArrayValue:
        """The element, or the part of an array, that a subscript or a field's name denotes on the
        left."""
        owner = self.value(target.value)
        if isinstance(target, ast.Attribute):
            if not (isinstance(owner, ArrayValue) and has_fields(owner)):
                self.fail(
                    target,
                    "attributes cannot be assigned, but for fields of records",
                    "Assign names or elements.",
                )
            return self.attribute_field(owner, target)
        if isinstance(owner, TupleValue):
            self.fail(
                target,
                "tuples cannot be changed, nor can lists and tuples that are arguments",
                "Make a new one; an array of a work-item's own is np.zeros(4, np.float32), others "
                "are arguments.",
            )
        array = self.element(owner, target)
        self._refuse_constant(array, target)
        return array

    def _refuse_constant(self, array: ArrayValue, node: ast.AST) -> None:
        if array.name in self.kernel.tables:
            self.fail(
                node,
                f"{array.name!r} is constant: it comes from outside the kernel",
                "Pass an array as an argument, or copy it to a PrivateArray.",
            )

    def store(self, target: ast.Subscript | ast.Attribute, value: Value, node: ast.stmt) -> None:
        """``array[…] = value``; the value is evaluated already, before the indices."""
        position = len(self.block)
        array = self.changeable(target)
        several = isinstance(value, TupleValue) and bool(array.ndim) and not has_fields(array)
        if not has_fields(array) and not several and (not is_array(value) or is_record(value)):
            self.number_value(value, getattr(node, "value", node))
        value = self.evaluated_before(position, value, node)
        if has_fields(array):
            if isinstance(value, TupleValue):
                names = [""] * len(value.items)
                value = TupleValue(tuple(self.independent(names, value.items, True, node)))
            self.assign_record(array, value, node)
            return
        if several and isinstance(value, TupleValue):
            self.assign_tuple(array, self._read_first(value, node), node)
            return
        if array.ndim:
            self.assign_elements(array, value, node)
            return
        self.stored(array, value, node)

    def _read_first(self, value: TupleValue, node: ast.AST) -> TupleValue:
        """The items with all that is read of memory read, as NumPy does before it writes."""
        items = [
            self._read_first(item, node)
            if isinstance(item, TupleValue)
            else self.fixed(self.computed(item, node), node)
            for item in value.items
        ]
        return TupleValue(tuple(items))

    def augmented_assignment(self, node: ast.AugAssign) -> None:
        if type(node.op) not in BINARY_OPERATORS:
            self.fail(node, "@ is not supported", "Write the loops out.")
        op = BINARY_OPERATORS[type(node.op)]
        if isinstance(node.target, ast.Name):
            name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            reduction = self.reduction_named(node.target.id)
            if reduction is not None:
                self.combine_operator(reduction, op, node)
                return
            a, b = self.in_order([name, node.value], self.operand)
            if isinstance(a, ArrayValue):
                self._refuse_constant(a, node.target)
                self.in_place(a, partial(self.arithmetic, op, node=node), b, node)
            else:
                result = self.elementwise(partial(self.arithmetic, op, node=node), [a, b], node)
                self.bind(node.target.id, result, node)
            return
        assert isinstance(node.target, (ast.Subscript, ast.Attribute))
        array = self.changeable(node.target)
        if array.ndim:
            position = len(self.block)
            value = self.operand(node.value)
            part = self.evaluated_before(position, array, node)
            assert isinstance(part, ArrayValue)
            self.in_place(part, partial(self.arithmetic, op, node=node), value, node)
            return
        load: Value = self.loaded(array, node)
        position = len(self.block)
        b = self.number_value(self.value(node.value), node.value)
        load = self.evaluated_before(position, load, node)
        kept = self.evaluated_before(position, array, node)
        assert isinstance(kept, ArrayValue)
        self.stored(kept, self.arithmetic(op, self.number_value(load, node), b, node), node)

    # ------------------------------------------------------------------ branches
    def branch(self, node: ast.If) -> None:
        assert self.env is not None
        cond = self.condition(node.test)
        if isinstance(cond, Constant):
            self.statements(node.body if cond.value else node.orelse)
            return
        before, known, versions = self.env, self.path.facts, dict(self.path.versions)
        blocks: list[list[Draft]] = []
        ends: list[State] = []
        paths = [self.path.of(cond.expr, holds) for holds in (True, False)]
        implied = [self.path.implied(cond.expr, holds) for holds in (True, False)]
        reached: list[int] = []
        assigned: list[dict[str, int]] = []
        for number, body in enumerate((node.body, node.orelse)):
            self.env = dict(before)
            self.path.facts = known + implied[number]
            with self.nested() as block:
                self.statements(body)
            blocks.append(block)
            if self.env is not None:
                ends.append((self.env, block))
                reached.append(number)
                assigned.append(dict(self.path.versions))
        self.env = self.merge(ends, [paths[number] for number in reached])
        self.path.meet(versions)
        if self.env is not None:
            self.bind_by_flags(
                ends, [PathEnd(env, v) for (env, _), v in zip(ends, assigned, strict=True)]
            )
        self.path.facts = known + (implied[reached[0]] if len(reached) == 1 else ())
        self.block.append(DraftIf(cond.expr, blocks[0], blocks[1], self.span(node)))

    # ------------------------------------------------------------------- regions
    def regions(self, node: ast.With) -> None:
        """``with region(…):``; its statements are this block's own."""
        for item in node.items:
            self.enter_region(self.region_name(item), node)
        self.statements(node.body)
        for _ in node.items:
            self.leave_region(node)

    # --------------------------------------------------------------------- jumps
    def jump(self, jump: Jump, node: ast.stmt) -> None:
        """Break or continue: the names' values are handed over when the loop is complete."""
        assert self.env is not None
        self.end_regions(node, len(self.loops))
        context = self.loops[-1]
        jumps = context.breaks if jump.kind == "break" else context.continues
        jumps.append((jump, self.env))
        self.block.append(jump)
        self.env = None

    def return_(self, node: ast.Return) -> None:
        none = ObjectValue(None)
        value = none if node.value is None else self.named_value(node.value)
        if self.caller is None and not (isinstance(value, ObjectValue) and value.object is None):
            self.fail(node, "a kernel returns nothing", "Write the result to an array.")
        if self.open_regions:
            value = self.fixed(value, node)
            self.end_regions(node, 0)
        jump = Jump("return", self.span(node))
        self.returns.append((jump, value, node))
        self.block.append(jump)
        self.env = None
