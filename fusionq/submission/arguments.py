"""The arguments of a submission, described: types, places in memory, scalars' values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    DeclaredArgument,
    FieldPath,
    Promotion,
    ScalarArgument,
)
from fusionq.backends.base import Backend
from fusionq.base.articles import with_article
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.frontend.constants import constant_type
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.record_arrays import field_arrays
from fusionq.frontend.signature import ArgumentType, ArrayType, LocalType, part_names
from fusionq.ir.record_types import Member, RecordType, members, record_type
from fusionq.ir.types import (
    COMPLEX64,
    COMPLEX128,
    ELEMENT_TYPES,
    FLOAT32,
    ScalarType,
    complex_type_of,
    component_type,
    element_type,
    type_of_scalar,
)
from fusionq.language.local_memory import LocalAccessor
from fusionq.memory.accessor import AccessorArgument
from fusionq.memory.buffer import Buffer, RecordBuffer
from fusionq.memory.foreign import describe
from fusionq.memory.foreign_array import ForeignArray, alignment, components
from fusionq.memory.storage import check_reachable


def describe_arguments(
    backend: Backend, function: KernelFunction, span: Span, values: Sequence[object]
) -> tuple[tuple[Argument, ...], tuple[ArgumentType, ...]]:
    """The arguments of ``function`` as ``backend`` gets them, and their types as its parameters
    have them: a complex scalar is two arguments, an array of records one for each member.

    Raises ArgumentError (their number, a value that is no argument) and DeviceError (memory that
    the device cannot reach).
    """
    names = function.names_of(len(values))
    if len(values) != len(names):
        raise ArgumentError(function.wrong_count(names, len(values)))
    given: list[Argument | _Records] = []
    types: list[ArgumentType] = []
    for name, label, value in zip(names, function.labels(span, names), values, strict=True):
        whole = complex_type_of(value)
        if whole is None:
            given.append(_argument(backend, name, label, value))
            types.append(_argument_type(given[-1]))
        else:
            given += _parts(name, part_names(name, names), label, value)
            types.append(whole)
    return _named(given, types, function), tuple(types)


@dataclass(frozen=True, slots=True)
class _Records:
    """An array of records: an argument for each member, none with the name of its array yet."""

    type: ArrayType
    members: tuple[ArrayArgument, ...]


def _named(
    given: Sequence[Argument | _Records],
    types: Sequence[ArgumentType],
    function: KernelFunction,
) -> tuple[Argument, ...]:
    """The arguments, those of records with the names that the kernel has for them."""
    if not any(isinstance(one, _Records) for one in given):
        return tuple([one for one in given if not isinstance(one, _Records)])
    names = function.field_names(types)
    found: list[Argument] = []
    for one in given:
        if isinstance(one, _Records):
            assert isinstance(one.type.dtype, RecordType)
            (parameter,) = {m.field.parameter for m in one.members if m.field is not None}
            arrays = field_arrays(parameter, one.type.dtype, names)
            pairs = zip(one.members, arrays, strict=True)
            found += [replace(member, name=array.name) for member, array in pairs]
        else:
            found.append(one)
    return tuple(found)


def _argument(backend: Backend, name: str, label: str, value: object) -> Argument | _Records:
    if isinstance(value, Buffer):
        return _buffer_arguments(name, label, value, None)
    promote: Promotion | None = None
    if isinstance(value, AccessorArgument):
        promote = value.promote
        value = value.buffer
        if isinstance(value, Buffer):
            return _buffer_arguments(name, label, value, promote)
    if isinstance(value, (bool, int, float, np.generic)):
        return _scalar_argument(name, label, value)
    if isinstance(value, LocalAccessor):
        kind = LocalType(record_type(value.dtype) or _element_type(value.dtype), value.shape)
        return DeclaredArgument(name, label, kind)
    if value is None or isinstance(value, (tuple, list, str, Enum)):
        return _constant_argument(name, label, value)
    try:
        foreign = describe(value)
        if foreign is not None:
            check_reachable(backend, foreign.usm_interface, "this array", foreign.home)
            if foreign.dtype.names is None:
                return _foreign_argument(name, label, foreign, promote)
            return _records(
                name,
                foreign.dtype,
                foreign.shape,
                lambda member: _foreign_argument(name, label, foreign.member(member), promote),
            )
    except (ArgumentError, DeviceError) as error:
        raise type(error)(f"argument {name!r}: {error}") from None
    raise ArgumentError(
        f"argument {name!r} is of type {type(value).__name__}; a kernel takes Buffers, "
        "arrays (NumPy's, and what has __sycl_usm_array_interface__, __cuda_array_interface__, "
        "__dlpack__, __array_interface__ or the buffer protocol), numbers, tuples of numbers, "
        "strings and None; wrap others with numpy.asarray or fusionq.Buffer"
    )


def _element_type(dtype: np.dtype[Any]) -> ScalarType:
    found = element_type(dtype)
    assert found is not None
    return found


def _component_type(dtype: np.dtype[Any]) -> ScalarType:
    return component_type(_element_type(dtype))


def _buffer_arguments(
    name: str, label: str, buffer: Buffer, promote: Promotion | None
) -> Argument | _Records:
    if not isinstance(buffer, RecordBuffer):
        return _buffer_argument(name, label, buffer, promote)
    return _records(
        name,
        buffer.dtype,
        buffer.shape,
        lambda member: _buffer_argument(name, label, buffer.member(member), promote),
    )


def _records(
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    argument: Callable[[Member], ArrayArgument],
) -> _Records:
    type = record_type(dtype)
    assert type is not None
    found = [(member, argument(member)) for member in members(dtype)]
    fields = [replace(a, field=FieldPath(name, member.path)) for member, a in found]
    return _Records(ArrayType(type, len(shape)), tuple(fields))


def _buffer_argument(
    name: str, label: str, buffer: Buffer, promote: Promotion | None
) -> ArrayArgument:
    storage = buffer._storage
    shape, strides = components(buffer.shape, buffer.strides, buffer.dtype)
    return ArrayArgument(
        name=name,
        label=label,
        dtype=_component_type(buffer.dtype),
        shape=shape,
        strides=strides,
        storage=storage.token,
        offset=buffer._offset,
        address=None if storage.address is None else storage.address + buffer._offset,
        owned=storage.owned,
        buffer_flag=buffer._promotion,
        access_flag=promote,
        internal=buffer.internal,
        is_complex=buffer.dtype.kind == "c",
        alignment=alignment(buffer.dtype, buffer._start, buffer.strides),
    )


def _foreign_argument(
    name: str, label: str, array: ForeignArray, promote: Promotion | None
) -> ArrayArgument:
    shape, strides = components(array.shape, array.strides, array.dtype)
    return ArrayArgument(
        name=name,
        label=label,
        dtype=_component_type(array.dtype),
        shape=shape,
        strides=strides,
        storage=-array.address,  # storages' tokens are positive
        offset=0,
        address=array.address,
        owned=False,
        access_flag=promote,
        is_complex=array.dtype.kind == "c",
        alignment=alignment(array.dtype, array.address, array.strides),
    )


def _scalar_argument(name: str, label: str, value: Any, part: str | None = None) -> ScalarArgument:
    found = type_of_scalar(value)
    if isinstance(value, np.void):
        raise ArgumentError(
            f"argument {name!r} is a single record; pass an array of one, records[i:i + 1], or its "
            "fields"
        )
    if found is None:
        raise ArgumentError(
            f"argument {name!r} is {with_article(type(value).__name__)}; scalars are Python's "
            f"bool, int, float and complex, and NumPy's and ml_dtypes' {', '.join(ELEMENT_TYPES)}"
        )
    return ScalarArgument(name, label, found, value, part)


def _parts(
    name: str, names: Sequence[str], label: str, value: Any
) -> tuple[ScalarArgument, ScalarArgument]:
    """The real and the imaginary part of a complex scalar, with their ``names``."""
    real, imag = names
    return (
        _scalar_argument(real, f"{label}.real", value.real, f"{name}.real"),
        _scalar_argument(imag, f"{label}.imag", value.imag, f"{name}.imag"),
    )


def _constant_argument(name: str, label: str, value: object) -> DeclaredArgument:
    kind = constant_type(value)
    if kind is None:
        raise ArgumentError(
            f"argument {name!r} is {with_article(type(value).__name__)} that has something else "
            "than numbers in it; a tuple or list of numbers is constant in the kernel, which is "
            "compiled for its values. Pass arrays as arguments of their own"
        )
    return DeclaredArgument(name, label, kind)


def _argument_type(argument: Argument | _Records) -> ArgumentType:
    if isinstance(argument, _Records):
        return argument.type
    if isinstance(argument, ArrayArgument):
        if argument.is_complex:
            whole = COMPLEX64 if argument.dtype == FLOAT32 else COMPLEX128
            return ArrayType(whole, len(argument.shape) - 1)
        return ArrayType(argument.dtype, len(argument.shape))
    return argument.type
