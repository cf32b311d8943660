"""Assignments to whole records, field by field: ``p[i] = q[j]``, ``p[i] = x, 1``.

Bytes between the fields are never written.
"""

from __future__ import annotations

import ast

from fusionq.frontend.elements import MOST_UNROLLED
from fusionq.frontend.values import (
    ArrayValue,
    Constant,
    TupleValue,
    Value,
    VectorValue,
    describe,
    is_record,
)
from fusionq.frontend.vectors import VectorLowering
from fusionq.ir.record_types import RecordType
from fusionq.ir.types import WEAK_INT


class RecordAssignments(VectorLowering):
    """Lowers assignments to records."""

    def assign_record(self, target: ArrayValue, value: Value, node: ast.AST) -> None:
        """``target = value`` for a record and a record or tuple with as many fields, by position
        as in NumPy; all is read before anything is written."""
        if target.ndim:
            self.fail(
                node,
                f"an assignment to {describe(target)}",
                'Assign single records, p[i] = q[i], or a field of them, p["x"][i] = 1.',
            )
        if is_record(value):
            value = self._kept(value, node)
        self._assign_fields(self.detached_part(target, node), value, node)

    def _assign_fields(self, target: ArrayValue, value: Value, node: ast.AST) -> None:
        dtype = target.type.dtype
        assert isinstance(dtype, RecordType)
        fields = dtype.fields
        is_row = isinstance(value, TupleValue) and not value.is_list
        if not is_row or not isinstance(value, TupleValue) or len(value.items) != len(fields):
            self.fail(
                node,
                f"{describe(value)} for a record of {len(fields)} fields, "
                f"{', '.join(f.name for f in fields)}",
                "Assign a record or a tuple with as many, or the fields one by one.",
            )
        for field, item in zip(fields, value.items, strict=True):
            part = self.member(target, field)
            if isinstance(field.dtype, RecordType) and not field.shape:
                self._assign_fields(part, item, node)
            elif isinstance(field.dtype, RecordType):
                self._assign_each(part, item, node)
            elif part.ndim:
                self.assign_elements(part, item, node)
            else:
                self.stored(part, item, node)

    def _assign_each(self, target: ArrayValue, value: Value, node: ast.AST) -> None:
        """Assign to the records of an array of them inside of a record."""
        parts = self._each(target, node)
        if not isinstance(value, TupleValue) or len(value.items) != len(parts):
            self.fail(
                node,
                f"{describe(value)} for {len(parts)} records",
                "Assign the fields one by one.",
            )
        for part, item in zip(parts, value.items, strict=True):
            (self._assign_each if part.ndim else self._assign_fields)(part, item, node)

    def _each(self, array: ArrayValue, node: ast.AST) -> list[ArrayValue]:
        """The parts of an array inside of a record, by its first index."""
        extent = self.extents(array)[0]
        if not isinstance(extent, Constant) or int(extent.value) > MOST_UNROLLED:
            self.fail(
                node,
                f"a record with an array of more than {MOST_UNROLLED} records in it",
                "Assign the fields one by one.",
            )
        numbers = [Constant(WEAK_INT, k) for k in range(int(extent.value))]
        return [self.indexed(array, [number], [node], node) for number in numbers]

    def _kept(self, value: ArrayValue, node: ast.AST) -> Value:
        """What a part of a record is now: its numbers in variables, its arrays in private memory,
        its fields in a tuple."""
        dtype = value.type.dtype
        if isinstance(dtype, RecordType) and value.ndim:
            return TupleValue(tuple(self._kept(part, node) for part in self._each(value, node)))
        if isinstance(dtype, RecordType):
            members = [self.member(value, field) for field in dtype.fields]
            return TupleValue(tuple(self._kept(member, node) for member in members))
        if value.ndim:
            elements = VectorValue(
                self.extents_of(value),
                (value,),
                lambda indices: self.element_at(value, indices, node),
            )
            return self.materialised(value.name, elements, node)
        return self.once(self.loaded(value, node), value.name, node)
