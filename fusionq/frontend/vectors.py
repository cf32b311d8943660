"""Arrays as values: ``out[i, :] = a[i, :] + b[i, :]`` as a loop over elements.

An expression of rows and slices is not stored anywhere: each element is computed where it is
assigned.  NumPy reads all before it writes; where the two may overlap, the elements go through
private memory if their number is known when the kernel is compiled, and else are refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from fusionq.frontend.complex_numbers import Element, complex_of
from fusionq.frontend.draft import Draft, DraftFor, DraftIf
from fusionq.frontend.elements import Elements
from fusionq.frontend.memory import declaration
from fusionq.frontend.overlap import ArrayOverlap, overlap
from fusionq.frontend.signature import ArrayType
from fusionq.frontend.typing_rules import type_name
from fusionq.frontend.values import (
    ArrayValue,
    Axis,
    ComplexValue,
    Constant,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    VectorValue,
    describe,
    has_fields,
    is_record,
)
from fusionq.ir.nodes import Assign, Compare, Const, Expr, Load, Var
from fusionq.ir.types import INT64, WEAK_INT, component_type, element_type

Operand = Element | ArrayValue | VectorValue
Extents = tuple[Scalar, ...]


class VectorLowering(Elements):
    """Lowers expressions of arrays and assignments to parts of arrays."""

    def operand(self, node: ast.expr) -> Operand:
        """The value of an expression that must be a number or an array."""
        return self.as_operand(self.value(node), node)

    def as_operand(self, value: Value, node: ast.AST) -> Operand:
        """The value if it is a number or an array of numbers, else an error."""
        if isinstance(value, ArrayValue) and has_fields(value) and value.ndim:
            self.fail(
                node,
                f"a number or an array of numbers is needed here, not {describe(value)}",
                'Take a field of it: p["x"] is an array.',
            )
        if isinstance(value, (ArrayValue, VectorValue)) and not is_record(value):
            return value
        return self.number_value(value, node)

    def elementwise(
        self, meaning: Callable[..., Element], operands: Sequence[Value], node: ast.AST
    ) -> Element | VectorValue:
        """``meaning`` of the operands, for each element where some are arrays."""
        checked = [self.as_operand(value, node) for value in operands]
        numbers = [v for v in checked if isinstance(v, (Runtime, Constant, ComplexValue))]
        if len(numbers) == len(checked):
            return meaning(*numbers)
        kept = [self._once(value, node) for value in checked]
        parts = [value for value in kept if isinstance(value, (ArrayValue, VectorValue))]
        extents = self._broadcast([self.extents_of(part) for part in parts], node)
        leaves = tuple(leaf for part in parts for leaf in leaves_of(part))
        return VectorValue(
            extents,
            leaves,
            lambda indices: meaning(*[self.element_at(value, indices, node) for value in kept]),
        )

    def extents_of(self, value: Operand) -> Extents:
        """The shape of a number or an array."""
        if isinstance(value, ArrayValue):
            return tuple(self.extents(value))
        return value.extents if isinstance(value, VectorValue) else ()

    def _once(self, value: Operand, node: ast.AST) -> Operand:
        """The operand with what is the same for all elements evaluated."""
        if isinstance(value, (Runtime, Constant, ComplexValue)):
            return self.once(value, "value", node)
        return self.detached_part(value, node) if isinstance(value, ArrayValue) else value

    def _broadcast(self, shapes: Sequence[Extents], node: ast.AST) -> Extents:
        """NumPy's common shape; an extent of 1 is repeated where it is known."""
        found: list[Scalar] = []
        for place in range(max(map(len, shapes)), 0, -1):
            extents = [shape[-place] for shape in shapes if len(shape) >= place]
            known = {int(e.value) for e in extents if isinstance(e, Constant)}
            if len(known - {1}) > 1:
                sizes = " and ".join(map(str, sorted(known)))
                self.fail(
                    node,
                    f"arrays of {sizes} elements in one expression",
                    "Give them equal lengths; only an extent of 1 is repeated.",
                )
            long = [e for e in extents if not is_one(e)] or extents
            found.append(next((e for e in long if isinstance(e, Constant)), long[0]))
        return tuple(found)

    def element_at(self, value: Operand, indices: Sequence[Expr], node: ast.AST) -> Element:
        """The element of an operand at the indices of the whole expression's."""
        extents = self.extents_of(value)
        own = indices[len(indices) - len(extents) :]
        own = [
            Const(INT64, 0) if is_one(extent) else index
            for extent, index in zip(extents, own, strict=True)
        ]
        if isinstance(value, VectorValue):
            return value.element(own)
        if not isinstance(value, ArrayValue):
            return value
        places = [_as_index(index) for index in own]
        return self.loaded(self.indexed(value, places, [node] * len(own), node), node)

    # ------------------------------------------------------------------ assignment
    def assign_elements(self, target: ArrayValue, value: Value, node: ast.AST) -> None:
        """``target[…] = value`` for all elements of a part of an array."""
        source = self._once(self.as_operand(value, node), node)
        target = self.detached_part(target, node)
        if len(self.extents_of(source)) > target.ndim:
            self.fail(
                node,
                f"{len(self.extents_of(source))} dimensions for the {target.ndim} of this part of "
                f"{target.name!r}",
                "Assign an array of as many dimensions, or fewer.",
            )
        source = self._apart(target, source, node)
        extents = self.extents_of(target)
        self.check_lengths(source, extents, node)

        def store(indices: Sequence[Expr]) -> None:
            element = self.element_at(source, indices, node)
            places = [_as_index(index) for index in indices]
            place = self.indexed(target, places, [node] * len(places), node)
            self.stored(place, element, node)

        self._for_each(extents, target.name, store, node)

    def in_place(
        self, target: ArrayValue, meaning: Callable[..., Element], value: Value, node: ast.AST
    ) -> None:
        """``target op= value`` for all elements; NumPy's rule of types for that."""

        def checked(old: Element, new: Element) -> Element:
            result = meaning(old, new)
            dtype, given = target.type.dtype, complex_of(result)
            if not np.can_cast(given, dtype.dtype, "same_kind"):
                self.fail(
                    node,
                    f"this gives {given}, which an array of {type_name(dtype)} "
                    "does not take in place",
                    "Write target[…] = …, which converts; or use an array of that type.",
                )
            return result

        self.assign_elements(target, self.elementwise(checked, [target, value], node), node)

    def unpacked(self, array: ArrayValue, count: int, node: ast.AST) -> list[Value]:
        """The ``count`` elements of an array, or its parts ``a[0]``, ``a[1]``, …, each read where
        it is used; that there are no more and no fewer is checked as lengths are."""
        part = self.detached_part(array, node)
        counted = Constant(WEAK_INT, count), *self.extents_of(part)[1:]
        self.check_lengths(part, counted, node)
        return [
            self.part_or_number(self.indexed(part, [Constant(WEAK_INT, k)], [node], node), node)
            for k in range(count)
        ]

    def computed(self, value: Value, node: ast.AST) -> Value:
        """The value; a part of an array as an expression of its elements."""
        if not (isinstance(value, ArrayValue) and value.ndim):
            return value
        return VectorValue(
            self.extents_of(value),
            (value,),
            lambda indices: self.element_at(value, indices, node),
        )

    def assign_tuple(self, target: ArrayValue, value: TupleValue, node: ast.AST) -> None:
        """``target[…] = x, y, z``: an element, or a part, for each item, whose values do not
        depend on what is written here."""
        if len(value.items) == 1:
            self.assign_item(target, value.items[0], node)
            return
        target = self.detached_part(target, node)
        counted = Constant(WEAK_INT, len(value.items)), *self.extents_of(target)[1:]
        self.check_lengths(target, counted, node)
        for k, item in enumerate(value.items):
            place = self.indexed(target, [Constant(WEAK_INT, k)], [node], node)
            self.assign_item(place, item, node)

    def assign_item(self, target: ArrayValue, value: Value, node: ast.AST) -> None:
        """``target[…] = value`` for an element or a part."""
        if not target.ndim:
            self.stored(target, value, node)
        elif isinstance(value, TupleValue):
            self.assign_tuple(target, value, node)
        else:
            self.assign_elements(target, value, node)

    def materialised(self, name: str, value: VectorValue, node: ast.AST) -> ArrayValue:
        """The expression's elements in a private array of their own."""
        shape = tuple(int(e.value) for e in value.extents if isinstance(e, Constant))
        if len(shape) < len(value.extents) or 0 in shape or len(shape) > 3:
            self.fail(
                node,
                "this array's length is not known when the kernel is compiled, so it cannot be "
                "kept, only assigned",
                "Assign it to a part of an array, e.g. out[i, :] = …; or unpack it: x, y = a[i]; "
                "or compute with PrivateArrays or arrays in records, whose lengths are known.",
            )
        self.check_lengths(value, value.extents, node)
        name = self.fresh(name.replace(".", "_"))

        def store(indices: Sequence[Expr]) -> None:
            element = value.element(indices)
            dtype = element_type(complex_of(element))
            assert dtype is not None
            types.append(ArrayType(dtype, len(shape)))
            self.kernel.arrays[name] = declaration(name, dtype, shape, "private")
            self.stored(ArrayValue(name, types[0], tuple(indices)), element, node)

        types: list[ArrayType] = []
        self._for_each(value.extents, name, store, node)
        return ArrayValue(name, types[0])

    def _for_each(
        self,
        extents: Extents,
        name: str,
        body: Callable[[Sequence[Expr]], None],
        node: ast.AST,
    ) -> None:
        """Loops over all indices around what ``body`` emits; none over an extent of 1."""
        if prod(int(e.value) if isinstance(e, Constant) else 1 for e in extents) == 0:
            return
        stops = [self.spilled_expr(self.convert(e, INT64, node), "stop", node) for e in extents]
        variables = [
            None if is_one(e) else Var(INT64, self.fresh(f"{name}_{d}"))
            for d, e in enumerate(extents)
        ]
        with self.nested() as block:
            body([v or Const(INT64, 0) for v in variables])
        inner: list[Draft] = block
        zero, one = Const(INT64, 0), Const(INT64, 1)
        for variable, stop in zip(reversed(variables), reversed(stops), strict=True):
            if variable is not None:
                inner = [DraftFor(variable.name, zero, stop, one, inner, self.span(node))]
        self.block += inner

    # ---------------------------------------------------------------------- lengths
    def check_lengths(self, source: Operand, extents: Extents, node: ast.AST) -> None:
        """Where a source's length may be another than ``extents``, an access outside of it under
        that condition: checks of accesses then find what NumPy refuses."""
        for leaf in leaves_of(source):
            own = self.extents_of(leaf)
            for dim, extent, wanted in zip(
                leaf.open, own, extents[len(extents) - len(own) :], strict=True
            ):
                if is_one(extent) or extent == wanted:
                    continue
                if isinstance(extent, Constant) and isinstance(wanted, Constant):
                    self.fail(
                        node,
                        f"{extent.value} elements of {leaf.name!r} for {wanted.value}",
                        "Give them equal lengths; only an extent of 1 is repeated.",
                    )
                differ = Compare(
                    "ne", self.convert(extent, INT64, node), self.convert(wanted, INT64, node)
                )
                outside = self._outside(leaf, dim, node)
                variable = self.fresh("lengths_differ")
                self.block.append(
                    DraftIf(
                        differ,
                        [Assign(variable, outside, self.span(node))],
                        [],
                        self.span(node),
                    )
                )

    def _outside(self, leaf: ArrayValue, dim: int, node: ast.AST) -> Load:
        """A read of the element after the last one in a dimension."""
        indices: list[Expr] = []
        for d in range(leaf.type.ndim):
            axis = leaf.axes[d] if d < len(leaf.axes) else None
            if d == dim:
                indices.append(self.convert(self.extent(leaf.name, d), INT64, node))
            else:
                start = axis.start if isinstance(axis, Axis) else axis
                indices.append(start or Const(INT64, 0))
        if leaf.type.dtype.is_complex:
            indices.append(Const(INT64, 0))
        part = component_type(leaf.type.dtype.strong)
        return Load(part, leaf.name, tuple(indices), self.span(node))

    # ---------------------------------------------------------------------- overlap
    def _apart(self, target: ArrayValue, source: Operand, node: ast.AST) -> Operand:
        """The source, or a private copy, such that the target's elements may be written while it
        is read."""
        copy = False
        for leaf in leaves_of(source):
            found = overlap(target, leaf, [is_one(e) for e in self.extents_of(leaf)])
            if leaf.name == target.name:
                copy = copy or found is ArrayOverlap.POSSIBLE
            elif leaf.name not in self.kernel.arrays and target.name not in self.kernel.arrays:
                pair = target.name, leaf.name
                same_view = found is not ArrayOverlap.POSSIBLE
                self.kernel.apart[pair] = self.kernel.apart.get(pair, True) and same_view
        if not copy:
            return source
        elements = self.computed(source, node)
        assert isinstance(elements, VectorValue)
        source = elements
        if not all(isinstance(extent, Constant) for extent in source.extents):
            self.fail(
                node,
                f"what is read of {target.name!r} may overlap what is written, and has a length "
                "that is not known when the kernel is compiled",
                "NumPy reads all of it first: copy it to a PrivateArray, or write the loop in the "
                "order that is right.",
            )
        return self.materialised("copy", source, node)


def leaves_of(value: Operand) -> tuple[ArrayValue, ...]:
    """The parts of arrays that a value reads."""
    if isinstance(value, VectorValue):
        return value.leaves
    return (value,) if isinstance(value, ArrayValue) else ()


def is_one(extent: Scalar) -> bool:
    """Whether an extent is known to be 1."""
    return isinstance(extent, Constant) and int(extent.value) == 1


def _as_index(index: Expr) -> Scalar:
    if isinstance(index, Const):
        return Constant(WEAK_INT, int(index.value))
    return Runtime(WEAK_INT, index)
