"""``x.view(dtype)`` and ``x.astype(dtype)``: on the reference backend, the device and in plain
Python the same bits."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from fusionq.ir.printer import print_kernel
from tests.unit.frontend.running import define, run_both, specialised

BY_SIZE = (
    ("int8", "uint8"),
    ("int16", "uint16", "float16"),
    ("int32", "uint32", "float32"),
    ("int64", "uint64", "float64"),
)
PAIRS = [(a, b) for types in BY_SIZE for a in types for b in types]
TYPES = [name for types in BY_SIZE for name in types]


def viewed(item, a, out):
    i = item.get_id(0)
    out[i] = a[i].view(out.dtype)


def through_arithmetic(item, a, out):
    i = item.get_id(0)
    out[i] = (a[i] + a[i]).view(out.dtype)


def converted(item, a, out):
    i = item.get_id(0)
    out[i] = (a[i] - a[0]).astype(out.dtype)


def fast_inverse_root(item, x, out):
    i = item.get_id(0)
    bits = np.uint32(0x5F3759DF) - (x[i].view(np.uint32) >> 1)
    y = bits.view(np.float32)
    out[i] = y * (np.float32(1.5) - np.float32(0.5) * x[i] * y * y)


def sortable(item, x, keys):
    i = item.get_id(0)
    bits = x[i].view(np.uint64)
    sign = np.uint64(0x8000000000000000)
    keys[i] = ~bits if bits & sign else bits | sign



def random_bits(dtype, count=64):
    """Numbers of any bits but NaN, whose bits are no part of a number's value."""
    found = np.random.default_rng(5).integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8)
    values = found.view(dtype)
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), 1, values).astype(dtype)
    return values


def on_device(function, count, *arguments):
    with fq.FusionQueue() as queue:
        own = [fq.Buffer(a) for a in arguments]
        queue.submit(fq.kernel(function), count, *own)
        return own[-1].numpy().copy()


def same_bits(function, count, *arguments):
    """The output, of the same bits by plain Python, the IR and the device."""
    *inputs, out = arguments
    run_both(function, count, *inputs, out.copy())
    device = on_device(function, count, *inputs, out)
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(function), count, *arguments)
        queue.wait()
    assert device.tobytes() == out.tobytes()
    return out


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_view_has_the_same_bits(source, target):
    values = random_bits(source)
    if target.startswith("float"):
        values = random_bits(target).view(source)
    found = same_bits(viewed, 64, values, np.zeros(64, target))
    assert found.tobytes() == values.tobytes()


@pytest.mark.parametrize("source", ["int8", "int16", "uint16", "float16", "int32"])
def test_of_what_is_computed_in_wider_registers(source):
    target = f"uint{np.dtype(source).itemsize * 8}"
    values = random_bits(source) // 4
    found = same_bits(through_arithmetic, 64, values, np.zeros(64, target))
    np.testing.assert_array_equal(found, (values + values).view(target))


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", ["float32", "int64", "uint16", "bool"])
def test_astype_converts(source, target):
    values = np.random.default_rng(6).integers(1, 50, 64).astype(source)
    values[0] = 0
    found = same_bits(converted, 64, values, np.zeros(64, target))
    np.testing.assert_array_equal(found, values.astype(target))


def test_what_such_casts_are_for():
    x = np.random.default_rng(7).uniform(0.1, 100, 200).astype(np.float32)
    found = same_bits(fast_inverse_root, 200, x, np.zeros(200, np.float32))
    np.testing.assert_allclose(found, 1 / np.sqrt(x), rtol=2e-3)
    y = np.random.default_rng(8).standard_normal(200)
    keys = same_bits(sortable, 200, y, np.zeros(200, np.uint64))
    np.testing.assert_array_equal(np.argsort(keys), np.argsort(y))


def test_constants_are_folded_and_the_ir_prints_as_python():
    text = "def k(item, out):\n    out[0] = np.float32(1).view(np.uint32)\n"
    assert "1065353216" in print_kernel(specialised(define(text), 1, np.zeros(1, np.uint32)))
    of = np.zeros(4, np.float32), np.zeros(4, np.int32)
    assert ".view(np.int32)" in print_kernel(specialised(viewed, 4, *of))


REFUSED = [
    ("x[i].view(np.int64)", "x[i].view of 32 bits as int64, which has 64"),
    ("x[i].view(np.bool_)", "of 32 bits as bool"),
    ("x[i].view()", "view takes a type"),
    ("x[i].view(3)", "x[i].view takes a type"),
    ("x[i].astype(x)", "x[i].astype takes a type"),
    ("(1.5).view(np.int64)", "Python's numbers have no such method"),
    ("np.int8(i).view(np.bool_)", "a view of or as bool"),
    ("fq.bfloat16(x[i]).view(np.int16)", "a view of or as bfloat16"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED, ids=[e for e, _ in REFUSED])
def test_what_has_no_such_view(expression, message):
    text = f"def k(item, x):\n    i = item.get_id(0)\n    x[i] = {expression}\n"
    with pytest.raises(KernelLanguageError, match=re.escape(message)):
        specialised(define(text, fq=fq), 4, np.zeros(4, np.float32))


def as_pythons(item, a, x, m, out):
    i = item.get_id(0)
    out[i] = a[i].item() * 1000 + x[i].item() * 0.1 if m[i].item() else i.item()


def test_numbers_of_pythons_own():
    """``item()``: an integer of any size and a float64."""
    a, x = np.array([100, -3, 7], np.int8), np.array([0.1, 2.5, -1], np.float32)
    run_both(as_pythons, 3, a, x, np.array([True, True, False]), np.zeros(3))


@pytest.mark.parametrize("call", ["a[i].item(0)", "(2).item()"])
def test_item_takes_nothing_and_is_of_numpys_numbers(call):
    made = define(f"def k(item, a):\n    i = item.get_id(0)\n    a[i] = {call}\n")
    with pytest.raises(KernelLanguageError, match="item"):
        specialised(made, 2, np.zeros(2))
