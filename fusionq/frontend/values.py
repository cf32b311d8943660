"""What an expression of a kernel stands for while it is lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, TypeGuard

import numpy as np

from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.frontend.path_conditions import Fact
from fusionq.frontend.signature import ArrayType, ReductionType
from fusionq.frontend.source import FunctionSource
from fusionq.ir.nodes import Expr, MemoryOrderName, MemoryScopeName
from fusionq.ir.record_types import RecordType
from fusionq.ir.types import ScalarType

Number: TypeAlias = bool | int | float | np.generic
"""A compile-time constant: a Python number (weak) or a NumPy scalar."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A number that is known when the kernel runs; ``expr`` has the type's concrete form."""

    type: ScalarType
    expr: Expr


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is known at compile time."""

    type: ScalarType
    value: Number


Scalar: TypeAlias = Runtime | Constant


@dataclass(frozen=True, slots=True)
class ComplexValue:
    """A complex number; both parts have one floating type."""

    real: Scalar
    imag: Scalar

    @property
    def parts(self) -> tuple[Scalar, Scalar]:
        """The real and the imaginary part."""
        return self.real, self.imag

    @property
    def type_name(self) -> str:
        """The name of its type, for messages."""
        if self.real.type.weak:
            return "complex"
        return f"complex{2 * self.real.type.bits}"


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension that a slice has cut: ``extent`` elements, ``step`` apart, from ``start`` on."""

    start: Expr
    step: int
    extent: Expr


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array argument, or a part of it: ``a[i]`` and ``a[i, 1:]`` of a 2-d ``a``.

    ``type`` is the whole array's.  ``axes``: of its first dimensions, each with an index or cut
    by a slice; the others are whole.
    """

    name: str
    type: ArrayType
    axes: tuple[Expr | Axis, ...] = ()

    @property
    def ndim(self) -> int:
        """How many dimensions have no index yet; 0 for an element."""
        return self.type.ndim - sum(not isinstance(axis, Axis) for axis in self.axes)

    @property
    def open(self) -> tuple[int, ...]:
        """The whole array's dimensions that have no index yet."""
        return tuple(
            d
            for d in range(self.type.ndim)
            if d >= len(self.axes) or isinstance(self.axes[d], Axis)
        )

    @property
    def indices(self) -> tuple[Expr, ...]:
        """Of an element: its indices."""
        return tuple(axis for axis in self.axes if not isinstance(axis, Axis))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All that its axes depend on, in the order of ``mapped``."""
        found: list[Expr] = []
        for axis in self.axes:
            found += [axis.start, axis.extent] if isinstance(axis, Axis) else [axis]
        return tuple(found)

    @property
    def form(self) -> tuple[object, ...]:
        """What parts have in common that differ in ``expressions`` only."""
        steps = (axis.step if isinstance(axis, Axis) else None for axis in self.axes)
        return self.name, self.type, *steps

    def mapped(self, change: Callable[[Expr], Expr]) -> ArrayValue:
        """The part with ``change`` made to each expression in it."""
        return replace(
            self,
            axes=tuple(
                Axis(change(axis.start), axis.step, change(axis.extent))
                if isinstance(axis, Axis)
                else change(axis)
                for axis in self.axes
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class VectorValue:
    """An array that an expression of arrays gives; its elements are computed where they are used.

    ``extents``: its shape.  ``leaves``: what it reads.  ``element`` emits what an element needs,
    given one index for each dimension.
    """

    extents: tuple[Scalar, ...]
    leaves: tuple[ArrayValue, ...]
    element: Callable[[Sequence[Expr]], Scalar | ComplexValue]

    @property
    def ndim(self) -> int:
        """Its dimensions."""
        return len(self.extents)


@dataclass(frozen=True, slots=True)
class AtomicValue:
    """An AtomicRef: the element, with all its indices, and how operations on it are ordered."""

    element: ArrayValue
    order: MemoryOrderName
    scope: MemoryScopeName


@dataclass(frozen=True, slots=True)
class ReductionValue:
    """A reduction, with the name of its parameter."""

    name: str
    type: ReductionType


@dataclass(frozen=True, slots=True)
class NewPrivateArray:
    """A PrivateArray before it is assigned to a name.  ``fill``: what its elements start as, one
    for all, or one each in the order of memory; nothing where that is undefined.
    ``is_asked_for``: by its type, which needs a name."""

    type: ArrayType
    shape: tuple[int, ...]
    fill: tuple[Scalar, ...] = ()
    is_asked_for: bool = False


@dataclass(frozen=True, slots=True)
class ItemValue:
    """The kernel's Item or NdItem, its group or its sub-group."""

    kind: Literal["item", "nd_item", "group", "sub_group"]


@dataclass(frozen=True, slots=True)
class MethodValue:
    """``item.get_id`` and its like, before the call."""

    owner: ItemValue | AtomicValue | ReductionValue | ComplexValue
    name: str


@dataclass(frozen=True, slots=True)
class TupleValue:
    """A tuple of fixed length; ``names``: its fields' names, if it is a named one.  ``is_list``: it
    was written as a list, which nothing changes."""

    items: tuple[Value, ...]
    names: tuple[str, ...] = ()
    is_list: bool = False

    def field(self, name: str) -> Value | None:
        """The item of this name; None if there is none."""
        return self.items[self.names.index(name)] if name in self.names else None


@dataclass(frozen=True, slots=True, eq=False)
class FunctionValue:
    """A function that is defined in a kernel: its source, what lowers the function around it, and
    the values of its parameters' defaults."""

    source: FunctionSource
    enclosing: object
    defaults: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class ObjectValue:
    """A Python object that exists at compile time only: a module, a function, a type."""

    object: object


Value: TypeAlias = (
    Runtime | Constant | ComplexValue | ArrayValue | VectorValue | AtomicValue | ReductionValue
    | NewPrivateArray | ItemValue | MethodValue | TupleValue | FunctionValue | ObjectValue
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for, and where it was assigned."""

    value: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Unusable:
    """A name that cannot be read here: what is wrong, and what to do."""

    message: str
    hint: str
    binding: Binding | None = None
    """What it stands for where ``where`` holds; None where it can never be read."""
    where: tuple[Fact, ...] = ()
    after_loop: Callable[[], Binding | Unusable] | None = None
    """Makes what it stands for where a loop has run before; ``submit`` then checks that it does."""


Environment: TypeAlias = dict[str, Binding | Unusable]


def same(a: Value, b: Value) -> bool:
    """Whether two values are certainly one and the same."""
    match a, b:
        case Constant(), Constant():
            return a.type == b.type and repr(a.value) == repr(b.value)
        case ComplexValue(), ComplexValue():
            return same(a.real, b.real) and same(a.imag, b.imag)
        case TupleValue(), TupleValue():
            return len(a.items) == len(b.items) and all(
                same(x, y) for x, y in zip(a.items, b.items, strict=True)
            )
        case ObjectValue(), ObjectValue():
            return a.object is b.object
        case FunctionValue(), FunctionValue():
            return (
                a.source is b.source
                and a.enclosing is b.enclosing
                and all(same(value, b.defaults[name]) for name, value in a.defaults.items())
            )
        case _:
            return a == b


def is_complex(value: Value) -> bool:
    """Whether a value is a complex number."""
    return isinstance(value, ComplexValue)


def is_array(value: Value) -> bool:
    """Whether a value is an array with dimensions, not a number."""
    return isinstance(value, (ArrayValue, VectorValue))


def is_record(value: Value) -> TypeGuard[ArrayValue]:
    """Whether a value is a record: an element of an array of these."""
    return isinstance(value, ArrayValue) and not value.ndim and has_fields(value)


def has_fields(array: ArrayValue) -> bool:
    """Whether the elements of an array are records."""
    return isinstance(array.type.dtype, RecordType)


def describe(value: Value) -> str:
    """The value in words, for messages."""
    match value:
        case Runtime() | Constant():
            return f"a number of type {value.type}"
        case ComplexValue():
            return f"a complex number of type {value.type_name}"
        case ArrayValue() if is_record(value):
            return f"a record of {value.name!r}"
        case ArrayValue() if has_fields(value):
            return f"a {value.ndim}-d array of records"
        case ArrayValue():
            return f"a {value.ndim}-d {'part of an array' if value.axes else 'array'}"
        case VectorValue():
            return f"a {value.ndim}-d array"
        case AtomicValue():
            return f"an AtomicRef to an element of {value.element.name!r}"
        case ReductionValue():
            return f"the reduction {value.name!r}"
        case NewPrivateArray():
            return "a PrivateArray that has no name yet"
        case ItemValue():
            names = {"item": "Item", "nd_item": "NdItem", "group": "Group", "sub_group": "SubGroup"}
            return f"the {names[value.kind]}"
        case MethodValue():
            return f"the method {value.name}"
        case TupleValue():
            return f"a {'list' if value.is_list else 'tuple'} of {len(value.items)}"
        case FunctionValue():
            return f"the function {value.source.name!r}"
        case ObjectValue(object=str() as text):
            return f"the string {text!r}"
        case ObjectValue(object=None):
            return "None"
        case ObjectValue():
            return f"a Python {type(value.object).__name__}"
