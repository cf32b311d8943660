"""Subscripts: elements of arrays and of tuples, rows and slices."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.frontend.complex_numbers import Element, complex_constant
from fusionq.frontend.fields import Fields
from fusionq.frontend.memory import declaration
from fusionq.frontend.signature import ArrayType
from fusionq.frontend.state import as_constant
from fusionq.frontend.typing_rules import common_type, constant
from fusionq.frontend.values import (
    ArrayValue,
    Axis,
    ComplexValue,
    Constant,
    ItemValue,
    ObjectValue,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    VectorValue,
    describe,
    has_fields,
    is_record,
)
from fusionq.ir.nodes import Binary, Const, Expr, Load, Var
from fusionq.ir.types import ELEMENT_TYPES, INT64, WEAK_COMPLEX, WEAK_INT, ScalarType
from fusionq.ir.walk import subexpressions

MOST_UNROLLED = 64
"""Iterations of a loop whose variable has to be known at compile time."""


class Elements(Fields):
    """Lowers subscripts."""

    def subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, TupleValue):
            return self.item(owner, node)
        if isinstance(owner, ItemValue) and owner.kind == "item" and self.kernel.item_is_certain:
            method = ast.Attribute(node.value, "get_id", ast.Load())
            call = ast.Call(method, [node.slice], [])
            return self.value(ast.fix_missing_locations(ast.copy_location(call, node)))
        if isinstance(owner, VectorValue):
            found = self._computed_element(owner, node)
            if found is not None:
                return found
        return self.part_or_number(self.element(owner, node), node)

    def _computed_element(self, owner: VectorValue, node: ast.Subscript) -> Value | None:
        """The element of an expression of arrays at as many numbers; None for other subscripts."""
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) != owner.ndim or any(isinstance(n, (ast.Slice, ast.Starred)) for n in nodes):
            return None
        values = self.in_order(nodes, self.value)
        if any(not isinstance(value, (Runtime, Constant)) for value in values):
            return None
        indices = []
        for value, place, extent in zip(values, nodes, owner.extents, strict=True):
            index = self.from_start(self.index(self.scalar(value, place), place), extent)
            if isinstance(index, Const) and isinstance(extent, Constant):
                self._inside(int(index.value), int(extent.value), "this array", place)
            indices.append(Const(INT64, 0) if extent == Constant(WEAK_INT, 1) else index)
        return owner.element(indices)

    def part_or_number(self, array: ArrayValue, node: ast.AST) -> Value:
        """A part of an array as a value: of an element that is a number, what it holds."""
        return array if array.ndim or has_fields(array) else self.loaded(array, node)

    def loaded(self, array: ArrayValue, node: ast.AST) -> Element:
        """The value of an element; of a constant array at a known index, a constant."""
        dtype = array.type.dtype
        if has_fields(array):
            self.scalar(array, node)  # which says what to do
        elements = self.kernel.tables.get(array.name)
        places = [index.value for index in array.indices if isinstance(index, Const)]
        if elements is not None and len(places) == array.type.ndim:
            element = elements[tuple(map(int, places))]
            element = element.item() if dtype.weak else element
            return complex_constant(element) if dtype.is_complex else Constant(dtype, element)
        if dtype.is_complex:
            return self.loaded_parts(array, node)
        return Runtime(dtype, Load(dtype.strong, array.name, array.indices, self.span(node)))

    # -------------------------------------------------------------------- tuples
    def item(self, owner: TupleValue, node: ast.Subscript) -> Value:
        """An item or a part of a tuple; of a table of numbers where the index is not known."""
        if isinstance(node.slice, ast.Slice):
            written = (node.slice.lower, node.slice.upper, node.slice.step)
            bounds = [
                None if b is None else self.integer_constant(self.value(b), b, "a bound")
                for b in written
            ]
            if bounds[2] == 0:
                self.fail(node, "the step of a slice is 0", "Give another one.")
            return TupleValue(owner.items[slice(*bounds)], is_list=owner.is_list)
        index = self.value(node.slice)
        name = node.value.id if isinstance(node.value, ast.Name) else "table"
        table = self.table_of(owner, name) if isinstance(index, Runtime) else None
        if table is not None and not self.unrolls(index):
            return self.elements_of(table, index, node)
        position = self.integer_constant(index, node.slice, "a tuple's index")
        if not -len(owner.items) <= position < len(owner.items):
            self.fail(node, f"the tuple has {len(owner.items)} elements", "Index within it.")
        return owner.items[position]

    def elements_of(self, table: ArrayValue, index: Value, node: ast.Subscript) -> Value:
        """``table[index]``."""
        part = self.indexed(table, [self.scalar(index, node.slice)], [node.slice], node)
        return part if part.ndim else self.loaded(part, node)

    def unrolls(self, index: Value) -> bool:
        """Whether a value is known once the loop around it is unrolled, and that is short."""
        reads = subexpressions(index.expr) if isinstance(index, Runtime) else ()
        known = self.kernel.unrollable
        found = {e.name for e in reads if isinstance(e, Var) and e.name in known}
        copies = self.kernel.copies * prod(known[name] for name in found)
        return bool(found) and copies <= MOST_UNROLLED

    def table_of(self, value: TupleValue, name: str) -> ArrayValue | None:
        """A tuple of constants, or of equally long tuples of these, as a constant array; None
        where it is none, or its numbers have no type in common."""
        shape, numbers = _flattened(value)
        whole = [n.parts if isinstance(n, ComplexValue) else (n,) for n in numbers]
        parts = [p for each in whole for p in each if isinstance(p, Constant)]
        width = len(whole[0]) if whole else 0
        alike = all(len(each) == width for each in whole)
        common = common_type(parts, self.holds) if alike else None
        if common is None or not 0 < prod(shape) * width == len(parts):
            return None
        found = [constant(part.value, common.strong).value for part in parts]
        elements = np.array(found, common.dtype)
        if width == 2:
            common = WEAK_COMPLEX if common.weak else ELEMENT_TYPES[f"complex{2 * common.bits}"]
            elements = elements.view(common.dtype)
        return self.table(elements.reshape(shape), common, name)

    def table(self, elements: npt.NDArray[Any], dtype: ScalarType, name: str) -> ArrayValue:
        """A constant array of the kernel; equal ones are one."""
        stored = dtype.dtype.newbyteorder("<")
        contents = elements.astype(stored).tobytes().hex()
        kind = ArrayType(dtype, elements.ndim)
        made = declaration(name, dtype.strong, elements.shape, "constant")
        made = dataclasses.replace(made, contents=contents)
        for other in self.kernel.arrays.values():
            if dataclasses.replace(made, name=other.name) == other:
                return ArrayValue(other.name, kind)
        name = self.kernel.fresh(re.sub(r"\W", "_", name))
        self.kernel.arrays[name] = dataclasses.replace(made, name=name)
        self.kernel.tables[name] = elements
        return ArrayValue(name, kind)

    def element(self, owner: Value, node: ast.Subscript) -> ArrayValue:
        """The part of an array that a subscript denotes."""
        name = self.field_name(node.slice)
        if name is not None:
            return self.field(owner, name, node)
        if isinstance(owner, VectorValue):
            owner = self.materialised("value", owner, node)
        if not isinstance(owner, ArrayValue):
            hint = "Index arrays and tuples."
            if isinstance(owner, ObjectValue) and hasattr(owner.object, "shape"):
                hint = "Pass it to submit: arrays and Buffers are arguments of the kernel."
            elif isinstance(owner, ItemValue):
                hint = (
                    "A kernel's first parameter is its work-item, whose ids are item.get_id(0), "
                    "item.get_id(1), …; what submit is given follows."
                )
            self.fail(node, f"{describe(owner)} cannot be indexed", hint)
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        nodes = self._without_ellipsis(nodes, owner, node)
        if any(isinstance(n, ast.Slice) for n in nodes):
            return self.sliced(owner, nodes, node)
        values = self.in_order(nodes, self.value)
        if any(isinstance(value, TupleValue) and value.is_list for value in values):
            self.fail(
                node,
                "lists are no indices: NumPy takes the elements that they name",
                "Index with numbers, or with a tuple of them, one for each dimension.",
            )
        if len(values) == 1 and isinstance(values[0], TupleValue):
            nodes, values = nodes * len(values[0].items), list(values[0].items)
        scalars = [self.scalar(v, n) for v, n in zip(values, nodes, strict=True)]
        return self.indexed(owner, scalars, nodes, node)

    def _without_ellipsis(
        self, nodes: list[ast.expr], owner: ArrayValue, node: ast.AST
    ) -> list[ast.expr]:
        """The indices with whole dimensions in place of ``...``."""
        places = [k for k, n in enumerate(nodes) if isinstance(n, ast.Constant) and n.value is ...]
        if len(places) > 1:
            self.fail(node, "... twice in one index", "Write a slice for each dimension: a[i, :].")
        for place in places:
            left = max(owner.ndim - len(nodes) + 1, 0)
            whole = [ast.copy_location(ast.Slice(), node) for _ in range(left)]
            return [*nodes[:place], *whole, *nodes[place + 1 :]]
        return nodes

    def indexed(
        self, owner: ArrayValue, scalars: Sequence[Scalar], nodes: Sequence[ast.AST], node: ast.AST
    ) -> ArrayValue:
        """``owner`` with indices for its first dimensions, which ``nodes`` stand for."""
        if len(scalars) > owner.ndim:
            if is_record(owner):
                self.fail(node, "a record has no indices", 'Take a field: r.x or r["x"].')
            of = f"{owner.ndim}-d part of the array" if owner.axes else f"{owner.ndim}-d array"
            self.fail(
                node,
                f"{len(scalars)} indices for the {of} {owner.name!r}",
                "Give one index for each dimension.",
            )
        axes = list(owner.axes)
        for dim, extent, scalar, place in zip(
            owner.open, self.extents(owner), scalars, nodes, strict=False
        ):
            index = self.from_start(self.index(scalar, place), extent)
            if isinstance(index, Const) and isinstance(extent, Constant):
                self._inside(int(index.value), int(extent.value), owner.name, place)
            cut = axes[dim] if dim < len(axes) else None
            if isinstance(cut, Axis):
                index = strided(cut, index)
                axes[dim] = index
            else:
                axes.append(index)
        return dataclasses.replace(owner, axes=tuple(axes))

    def from_start(self, index: Expr, extent: Scalar) -> Expr:
        """An index, which counts from the end where it is negative whatever the arguments are."""
        greatest = self.path.bounds.greatest(index)
        if greatest is None or greatest >= 0:
            return index
        if isinstance(extent, Constant) and isinstance(index, Const):
            return Const(INT64, int(extent.value) + int(index.value))
        whole = Const(INT64, int(extent.value)) if isinstance(extent, Constant) else extent.expr
        if isinstance(index, Const):
            return Binary(INT64, "sub", whole, Const(INT64, -int(index.value)))
        return Binary(INT64, "add", whole, index)

    def _inside(self, index: int, extent: int, name: str, place: ast.AST) -> None:
        if not 0 <= index < extent:
            shown = index if index >= 0 else index - extent
            self.fail(
                place,
                f"the index {shown} is outside {name!r}, which has {extent} elements there",
                f"Indices go from 0 to {extent - 1}, or from -{extent} to -1 from the end.",
            )

    # -------------------------------------------------------------------- slices
    def sliced(
        self, owner: ArrayValue, nodes: Sequence[ast.expr], node: ast.Subscript
    ) -> ArrayValue:
        """``a[1:, j]``: a view of the array."""
        if len(nodes) > owner.ndim:
            self.fail(
                node,
                f"{len(nodes)} indices for {describe(owner)} ({owner.name!r})",
                "Give at most one index or slice for each dimension.",
            )
        axes = list(owner.axes)
        for dim, extent, place in zip(owner.open, self.extents(owner), nodes, strict=False):
            cut = axes[dim] if dim < len(axes) else None
            made: Expr | Axis
            if isinstance(place, ast.Slice):
                made = self.axis(place, extent)
                if isinstance(cut, Axis):
                    start = strided(cut, made.start)
                    made = Axis(start, cut.step * made.step, made.extent)
            else:
                made = self.from_start(self.index(self.number(place), place), extent)
                if isinstance(made, Const) and isinstance(extent, Constant):
                    self._inside(int(made.value), int(extent.value), owner.name, place)
                if isinstance(cut, Axis):
                    made = strided(cut, made)
            if cut is None:
                axes.append(made)
            else:
                axes[dim] = made
        return dataclasses.replace(owner, axes=tuple(axes))

    def axis(self, node: ast.Slice, extent: Scalar) -> Axis:
        """What ``start:stop:step`` leaves of a dimension of this extent."""
        step = 1
        if node.step is not None:
            step = self.integer_constant(self.value(node.step), node.step, "a slice's step")
            if step == 0:
                self.fail(node.step, "the step of a slice is 0", "Give another one.")
            if step < 0:
                return self._backward(node, extent, step)
        start: Scalar = Constant(WEAK_INT, 0)
        if node.lower is not None:
            start = self._bound(node.lower, extent)
        stop = extent
        if node.upper is not None:
            stop = self.shorter(self._bound(node.upper, extent), extent, node.upper)
        span = stop
        if start != Constant(WEAK_INT, 0):
            span = self._larger(self.binary("sub", stop, start, node), Constant(WEAK_INT, 0), node)
        if step > 1:
            rounded = self.binary("add", span, Constant(WEAK_INT, step - 1), node)
            span = self.binary("floordiv", rounded, Constant(WEAK_INT, step), node)
        first, count = (self.convert(s, INT64, node) for s in (start, span))
        return Axis(first, step, count)

    def _backward(self, node: ast.Slice, extent: Scalar, step: int) -> Axis:
        """What ``start:stop:step`` leaves, from its last element to its first."""
        last = self.binary("sub", extent, Constant(WEAK_INT, 1), node)
        start: Scalar = last
        stop: Scalar = Constant(WEAK_INT, -1)
        if node.lower is not None:
            start = self.shorter(self._bound(node.lower, extent, -1), last, node.lower)
        if node.upper is not None:
            stop = self._bound(node.upper, extent, -1)
        span = self.binary("sub", start, stop, node)
        if node.lower is not None or node.upper is not None:
            span = self._larger(span, Constant(WEAK_INT, 0), node)
        if step < -1:
            rounded = self.binary("add", span, Constant(WEAK_INT, -step - 1), node)
            span = self.binary("floordiv", rounded, Constant(WEAK_INT, -step), node)
        first, count = (self.convert(s, INT64, node) for s in (start, span))
        return Axis(first, step, count)

    def _bound(self, node: ast.expr, extent: Scalar, least: int = 0) -> Scalar:
        """The bound of a slice, at ``least``; one that is negative whatever the arguments are
        counts from the end."""
        number = self.number(node)
        index = self.index(number, node)  # refuses what is no integer
        found = self.from_start(index, extent)
        if found is index and isinstance(number, Constant):
            return Constant(WEAK_INT, int(number.value))
        bound = as_constant(found)
        return bound if found is index else self._larger(bound, Constant(WEAK_INT, least), node)

    def shorter(self, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        """The smaller one of two extents."""
        if isinstance(a, Constant) and isinstance(b, Constant):
            return a if int(a.value) <= int(b.value) else b
        return self.smaller("pymin", a, b, node)

    def _larger(self, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        if isinstance(a, Constant) and isinstance(b, Constant):
            return a if int(a.value) >= int(b.value) else b
        return self.smaller("pymax", a, b, node)


def _flattened(value: TupleValue) -> tuple[tuple[int, ...], list[Value]]:
    """The shape of nested tuples, and what is in them; less than the shape says where they are no
    rectangle."""
    parts = [
        _flattened(item) if isinstance(item, TupleValue) else ((), [item]) for item in value.items
    ]
    shapes = {shape for shape, _ in parts}
    inner = shapes.pop() if len(shapes) == 1 else ()
    return (len(parts), *inner), [n for shape, part in parts if shape == inner for n in part]


def strided(axis: Axis, index: Expr) -> Expr:
    """The whole dimension's index of an element of a slice."""
    if axis.step != 1:
        index = Binary(INT64, "mul", index, Const(INT64, axis.step))
    return index if axis.start == Const(INT64, 0) else Binary(INT64, "add", axis.start, index)
