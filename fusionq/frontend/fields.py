"""Fields of records: ``p[i].x``, ``p[i]["v"][2]``, ``p["x"][i]``.

A record is a part of an array without dimensions, as NumPy's are views.  A field of an array of
records is an array: the one that stands for that field in the IR.
"""

from __future__ import annotations

import ast
import dataclasses
from abc import abstractmethod

import numpy as np

from fusionq.frontend.conditions import Conditions
from fusionq.frontend.refused import similar
from fusionq.frontend.signature import ArrayType
from fusionq.frontend.values import ArrayValue, Value, describe
from fusionq.ir.record_types import Field, RecordType


class Fields(Conditions):
    """Lowers accesses to fields."""

    @abstractmethod
    def static(self, node: ast.expr) -> object:
        """The object that a chain of names and attributes stands for, if there is one."""

    def field_name(self, node: ast.expr) -> str | None:
        """The name that an index is; None for other indices."""
        text = node.value if isinstance(node, ast.Constant) else self.static(node)
        return text if isinstance(text, str) else None

    def field(
        self, owner: Value, name: str, node: ast.Subscript | ast.Attribute
    ) -> ArrayValue:
        """The field of a record, or of all records of an array."""
        dtype = owner.type.dtype if isinstance(owner, ArrayValue) else None
        if not isinstance(owner, ArrayValue) or not isinstance(dtype, RecordType):
            self.fail(
                node,
                f"{describe(owner)} has no field {name!r}",
                "Arrays of records have fields: those whose dtype is a structured one of NumPy's.",
            )
        field = dtype.field(name)
        if field is None:
            names = [f.name for f in dtype.fields]
            near = similar(name, names)
            self.fail(
                node,
                f"{ast.unparse(node.value)} has no field {name!r}",
                f"{near + '  ' if near.startswith('Did') else ''}Its fields: {', '.join(names)}.",
            )
        return self.member(owner, field)

    def member(self, owner: ArrayValue, field: Field) -> ArrayValue:
        """A field that a record, or an array of records, has."""
        array = self.kernel.fields[owner.name][field.name]
        kind = ArrayType(field.dtype, owner.type.ndim + len(field.shape))
        return dataclasses.replace(owner, name=array, type=kind)

    def attribute_field(self, owner: ArrayValue, node: ast.Attribute) -> ArrayValue:
        """The field that an attribute of a record, or of an array of them, stands for."""
        dtype = owner.type.dtype
        assert isinstance(dtype, RecordType)
        if dtype.field(node.attr) and hasattr(np.recarray if owner.ndim else np.record, node.attr):
            self.fail(
                node,
                f"{node.attr!r} is a field, and an attribute that NumPy's arrays and records have",
                f'Write {ast.unparse(node.value)}["{node.attr}"].',
            )
        return self.field(owner, node.attr, node)
