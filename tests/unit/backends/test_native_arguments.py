"""Arguments in the form that devices take."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.backends.base import ArrayBinding
from fusionq.backends.native_arguments import NativeArguments
from fusionq.base.span import Span
from fusionq.codegen.device_source import ExtentArgument, Pointer, Scalar, Stride
from fusionq.ir.nodes import Kernel
from fusionq.ir.parameters import ArrayParam, ScalarParam
from fusionq.ir.types import ELEMENT_TYPES

SAMPLES = {
    "bool": (True, False),
    "float16": (np.float16(-1.5), np.float16("nan")),
    "float32": (0.1, np.float32("-0.0"), np.float32("nan"), np.inf),
    "float64": (0.1, -0.0, np.float64("nan"), -np.inf),
    "bfloat16": (1.5, -2.0),
}
"""Others have their least and their greatest value."""


def samples(name: str):
    if name in SAMPLES:
        return SAMPLES[name]
    limits = np.iinfo(name)
    return int(limits.min), int(limits.max)


def kernel(*params):
    return Kernel("k", 1, params, (), Span("file", 1, ""))


def bits(argument) -> bytes:
    return bytes(argument)


@pytest.mark.parametrize("name", [n for n in ELEMENT_TYPES if not n.startswith("complex")])
def test_scalars_have_the_bits_of_their_type(name):
    type = ELEMENT_TYPES[name]
    first, *others = samples(name)
    scalar = ScalarParam("x", type)
    arguments = NativeArguments(kernel(scalar), [Scalar("x")], [first])
    (argument,) = arguments.values
    assert bits(argument) == type.dtype.type(first).tobytes()
    for value in others:
        assert arguments.set_scalar("x", value)
        assert arguments.values == [argument]  # where it was
        assert bits(argument) == type.dtype.type(value).tobytes()
        assert not arguments.set_scalar("x", value)


def test_copies_are_independent():
    params = (
        ArrayParam("a", ELEMENT_TYPES["float32"], 1),
        ScalarParam("x", ELEMENT_TYPES["float32"]),
        ScalarParam("y", ELEMENT_TYPES["float32"]),
    )
    slots = [Scalar("y"), Pointer("a"), ExtentArgument("a", 0), Scalar("x"), Stride("a", 0)]
    a = ArrayBinding(1 << 47, (8,), (1,))
    arguments = NativeArguments(kernel(*params), slots, [a, 2.0, 2.0])
    copy = arguments.copy()
    before = [*map(bits, arguments.values)]
    assert [*map(bits, copy.values)] == before
    for scalar, value in (("x", 3.0), ("y", 4.0)):
        copy.set_scalar(scalar, value)
    ((pointer, place),) = copy.pointers({"a": 5, "unused": 6})
    assert place == 5
    pointer.value = 7
    assert [*map(bits, arguments.values)] == before
    expected = [np.float32(4), np.int64(7), np.int64(8), np.float32(3), np.int64(1)]
    assert [*map(bits, copy.values)] == [value.tobytes() for value in expected]
    arguments.set_scalar("x", 9.0)
    assert bits(copy.values[3]) == np.float32(3).tobytes()
