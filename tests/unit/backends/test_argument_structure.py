"""Arguments as one structure: the layout of C, and the bits of each type."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from fusionq.backends.argument_structure import ArgumentStructure
from fusionq.backends.base import ArrayBinding
from fusionq.base.errors import ArgumentError
from fusionq.base.span import Span
from fusionq.codegen.device_source import ExtentArgument, Pointer, Scalar, Stride
from fusionq.ir.nodes import Kernel
from fusionq.ir.parameters import ArrayParam, ScalarParam
from fusionq.ir.types import ELEMENT_TYPES
from tests.unit.backends.test_native_arguments import samples

NAMES = [name for name in ELEMENT_TYPES if not name.startswith("complex")]
F32 = ELEMENT_TYPES["float32"]


def kernel(*params):
    return Kernel("k", 1, params, (), Span("file", 1, ""))


@pytest.mark.parametrize("name", NAMES)
def test_scalars_have_the_bits_of_their_type(name):
    type = ELEMENT_TYPES[name]
    first, *others = samples(name)
    made = ArgumentStructure(kernel(ScalarParam("x", type)), [Scalar("x")], [first])
    assert bytes(made.content) == type.dtype.type(first).tobytes()
    for value in others:
        assert made.set_scalar("x", value)
        assert bytes(made.content) == type.dtype.type(value).tobytes()
        assert not made.set_scalar("x", value)


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1], ["int8", "float64", "int8"], ["int16"] * 3])
def test_members_lie_where_c_has_them(order):
    params = [ScalarParam(f"x{k}", ELEMENT_TYPES[name]) for k, name in enumerate(order)]
    values = [samples(name)[0] for name in order]
    made = ArgumentStructure(kernel(*params), [Scalar(p.name) for p in params], values)
    types = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
    fields = [(p.name, types[p.type.dtype.itemsize]) for p in params]
    in_c = builtin_structure(fields)
    assert len(made.content) == ctypes.sizeof(in_c)
    for param, value in zip(params, values, strict=True):
        field = getattr(in_c, param.name)
        found = made.content[field.offset : field.offset + field.size]
        assert bytes(found) == param.type.dtype.type(value).tobytes()


def builtin_structure(fields):
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


def test_a_float_beyond_its_type_is_infinite():
    made = ArgumentStructure(kernel(ScalarParam("x", F32)), [Scalar("x")], [1e300])
    assert np.frombuffer(made.content, np.float32)[0] == np.inf
    made.set_scalar("x", -1e300)
    assert np.frombuffer(made.content, np.float32)[0] == -np.inf


def arguments():
    params = (ScalarParam("n", ELEMENT_TYPES["int32"]), ArrayParam("a", F32, 2),
              ArrayParam("unused", F32, 1), ScalarParam("left_out", F32))  # fmt: skip
    slots = [Scalar("n"), Pointer("a"), ExtentArgument("a", 1), Stride("a", 0)]
    there = ArrayBinding(1 << 63 | 5, (3, 4), (-4, 1))
    bindings = [7, there, ArrayBinding(64, (2,), (1,)), 1.0]
    return ArgumentStructure(kernel(*params), slots, bindings)


def test_addresses_extents_and_strides():
    content = np.frombuffer(arguments().content, np.int64)
    assert [int(content[0]) & 0xFFFFFFFF, *content[2:].tolist()] == [7, 4, -4]
    assert int(content[1:2].view(np.uint64)[0]) == 1 << 63 | 5


def test_copies_are_independent_and_move():
    made = arguments()
    before = bytes(made.content)
    other = made.copy()
    pointers = other.pointers({"a": 1, "unused": 0})
    assert [place for _, place in pointers] == [1]  # the kernel does not use the other
    other.move(pointers, [None, 4096])
    assert other.set_scalar("n", 8)
    assert not other.set_scalar("left_out", 3.0)
    assert bytes(made.content) == before
    assert np.frombuffer(other.content, np.int64)[1:].tolist() == [4096, 4, -4]


def test_what_does_not_fit_is_refused():
    made = arguments()
    before = bytes(made.content)
    with pytest.raises(ArgumentError, match="does not fit"):
        made.set_scalar("n", 1 << 40)
    assert bytes(made.content) == before
    scalar = kernel(ScalarParam("x", F32))
    with pytest.raises(ArgumentError, match="takes a scalar"):
        ArgumentStructure(scalar, [Scalar("x")], [ArrayBinding(64, (2,), (1,))])
    array = kernel(ArrayParam("a", F32, 1))
    with pytest.raises(ArgumentError, match="takes an array"):
        ArgumentStructure(array, [Pointer("a")], [1.0])
    with pytest.raises(ArgumentError, match="parameters"):
        ArgumentStructure(array, [Pointer("a")], [])
