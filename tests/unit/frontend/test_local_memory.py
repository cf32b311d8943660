"""LocalAccessor and PrivateArray in kernels."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError
from fusionq.frontend import kernel
from fusionq.frontend.signature import ArrayType, LocalType, Signature
from fusionq.ir.nodes import (
    ArrayDecl,
    Barrier,
    Const,
    For,
    Store,
)
from fusionq.ir.printer import print_kernel
from fusionq.ir.types import FLOAT32, INT64
from tests.unit.frontend.group_bodies import SPACE, TILE, X, both, found, ir_of, kernel_of, refused
from tests.unit.frontend.running import define, run_both, specialised


def test_a_local_accessor_is_a_declared_array():
    k = kernel_of(
        "tile[l] = x[i]", "fq.group_barrier(group)", "out[i] = tile[tile.shape[0] - 1 - l]",
        parameters="x, tile, out",
    )  # fmt: skip
    ir = specialised(k, SPACE, X, TILE, np.zeros(8, "float32"))
    assert ir.arrays == (ArrayDecl("tile", FLOAT32, (4,), "local"),)
    assert [p.name for p in ir.params] == ["x", "out"]
    assert found(Barrier, ir) == [Barrier(True, True)]
    assert "3 - l" in print_kernel(ir) or "4 - 1" in print_kernel(ir)
    out = run_both(k, SPACE, X, TILE, np.zeros(8, "float32"))[1]
    assert out.tolist() == [1, 4, -1, 3, 6, 2, 9, -5]


def test_a_local_accessors_shape_is_known_when_compiling():
    lines = (
        "out[i] = len(tile) + 10 * tile.size + 1000 * tile.ndim",
        "for k in range(tile.shape[1]):", "    tile[l, k] = k",
    )  # fmt: skip
    k = kernel_of(*lines, parameters="tile, out")
    ir = specialised(k, SPACE, fq.LocalAccessor((4, 3), np.int32), np.zeros(8))
    (loop,) = found(For, ir)
    assert loop.stop == Const(INT64, 3)
    assert found(Store, ir)[0].value.value == 4 + 120 + 2000


def test_each_shape_is_a_specialisation():
    k = kernel(kernel_of("tile[0] = 1", "out[i] = tile.shape[0]", parameters="tile, out"))

    def signature(n):
        return Signature("nd_item", 1, (LocalType(FLOAT32, (n,)), ArrayType(FLOAT32, 1)))

    assert k.specialise(signature(4)) is k.specialise(signature(4))
    assert k.specialise(signature(4)).arrays != k.specialise(signature(5)).arrays
    assert str(LocalType(FLOAT32, (4, 3))) == "local float32[4, 3]"


def test_a_local_accessor_needs_an_nd_range():
    k = kernel(define("def k(item, tile, out):\n    out[item.get_id(0)] = 1\n"))
    with pytest.raises(ArgumentError, match=r"'tile'.* over a Range; .*NdRange"):
        specialised(k, 4, TILE, np.zeros(4))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("out[i] = tile[4]", "the index 4 is outside 'tile', which has 4 elements there"),
        ("tile[7] = 1", "Indices go from 0 to 3"),
        ("out[i] = tile[-5]", "or from -4 to -1 from the end"),
        ("out[i] = tile[0, 0]", "2 indices for the 1-d array 'tile'"),
        ("out[i] = tile", "a number is needed here, not a 1-d array"),
        ("t = fq.LocalAccessor(4, np.float32)", "made on the host"),
    ],
)
def test_local_accessors_refused(line, message):
    arguments = (TILE, np.zeros(8, "float32"))
    assert message in refused(line, parameters="tile, out", arguments=arguments)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        (0, "f4", "at least 1"), ((4, 0), "f4", "at least 1"), (2.0, "f4", "int"),
        ((1, 2, 3, 4), "f4", "1 to 3 dimensions"), ((), "f4", "1 to 3"), (4, "c32", "the dtype"),
        (4, ">f4", "the dtype"), (4, None, "the dtype"), (4, "M8[s]", "the dtype"),
        (4, "nonsense", "the dtype"),
    ],
)  # fmt: skip
def test_local_accessors_that_cannot_be_made(shape, dtype, message):
    with pytest.raises(ArgumentError, match=message):
        fq.LocalAccessor(shape, dtype)


def test_equal_local_accessors_are_equal():
    one, other = fq.LocalAccessor(4, np.float32), fq.LocalAccessor([np.int64(4)], "float32")
    assert one == other and hash(one) == hash(other) and one.nbytes == 16
    assert one != fq.LocalAccessor(4, np.int32) and one != fq.LocalAccessor((4, 1), np.float32)
    with pytest.raises(TypeError, match="inside a kernel only"):
        one[0]
    with pytest.raises(TypeError, match="inside a kernel only"):
        one[0] = 1
    assert repr(fq.LocalAccessor((4, 2), bool)) == "LocalAccessor((4, 2), bool)"


# ------------------------------------------------------------------------- private arrays
def test_private_arrays():
    lines = (
        "p = fq.PrivateArray((2, 3), np.float32)",
        "for r in range(2):", "    for k in range(p.shape[1]):", "        p[r, k] = x[i] * (r + k)",
        "out[i] = p[1, 2] + p[0, 0]",
    )  # fmt: skip
    assert ir_of(*lines).arrays == (ArrayDecl("p", FLOAT32, (2, 3), "private"),)
    assert both(*lines).tolist() == (3 * X).tolist()


@pytest.mark.parametrize("shape", ["3", "(3,)", "(3, 2)", "(1, 2, 3)", "N", "(N, x.ndim)", "1"])
@pytest.mark.parametrize("dtype", ["np.int8", "x.dtype", "float", "np.uint64", "bool"])
def test_private_arrays_of_zeros(shape, dtype):
    extents = np.zeros(eval(shape, {"N": 3, "x": X})).shape
    each = [f"for k{d} in range({n}):" for d, n in enumerate(extents)]
    lines = [f"{'    ' * d}{loop}" for d, loop in enumerate(each)]
    indices = ", ".join(f"k{d}" for d in range(len(extents)))
    out = both(
        f"p = fq.PrivateArray({shape}, {dtype}, fill_zeros=True)", "n = 0", *lines,
        f"{'    ' * len(each)}n += 1 if p[{indices}] == 0 else 100", "out[i] = n", N=3,
    )  # fmt: skip
    assert out.tolist() == [np.prod(extents)] * 8


def test_zeros_come_back_in_each_turn_of_a_loop():
    out = both(
        "total = np.float32(0)", "for k in range(3):",
        "    p = fq.PrivateArray(2, np.float32, True)", "    p[k % 2] += k + 1",
        "    total += p[0] * 10 + p[1]", "out[i] = total",
    )  # fmt: skip
    assert out.tolist() == [42] * 8
    ir = ir_of("n = 0", "for k in range(3):", "    p = fq.PrivateArray(2, np.float32)",
               "    n = n * 1.5", "    p[0] = n", "    out[i] = p[0]")  # fmt: skip
    assert len(ir.arrays) == 1


def test_names_of_private_arrays():
    lines = (
        "p = q = fq.PrivateArray(2, int, True)", "q[0] = 4", "r, s = p, fq.PrivateArray(1, int)",
        "s[0] = r[0]", "t = fq.PrivateArray(1, int)", "t[0] = 7",
        "t = fq.PrivateArray(1, int)", "t[0] = 1", "out[i] = p[0] + s[0] + t[0]",
    )  # fmt: skip
    assert both(*lines).tolist() == [9] * 8
    assert [a.name for a in ir_of(*lines).arrays] == ["private", "private_1", "t", "t_1"]


def test_private_arrays_in_functions():
    fill = define(
        "def fill(p, value):\n    for k in range(len(p)):\n        p[k] = value\n    return p\n"
    )
    made = define(
        "def made(v):\n    p = fq.PrivateArray(2, int)\n    p[1] = v\n    return p\n", fq=fq
    )
    out = both(
        "p = fill(fq.PrivateArray(3, int), 4)", "a = made(1)", "b = made(2)",
        "out[i] = p[2] + 10 * a[1] + 100 * b[1]", fill=fill, made=made,
    )  # fmt: skip
    assert out.tolist() == [214] * 8


def test_private_arrays_need_no_nd_range():
    k = define(
        "def k(item, out):\n    i = item.get_id(0)\n    p = fq.PrivateArray(4, int)\n"
        "    p[i] = i\n    out[i] = p[i]\n", fq=fq,
    )  # fmt: skip
    assert run_both(k, 4, np.zeros(4))[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("p = fq.PrivateArray(i, int)", "the shape of a PrivateArray must be an integer constant",
         "literal"),
        ("p = fq.PrivateArray(x.shape[0], int)", "must be an integer constant", "literal"),
        ("p = fq.PrivateArray(0, int)", "the shape (0,)", "at least 1"),
        ("p = fq.PrivateArray((1, 2, 3, 4), int)", "the shape (1, 2, 3, 4)", "three extents"),
        ("p = fq.PrivateArray((), int)", "the shape ()", "one to three"),
        ("p = fq.PrivateArray(4, 'floaty')", "no dtype of the kernel language", "np.float32"),
        ("p = fq.PrivateArray(4, x)", "no dtype of the kernel language", "np.float32"),
        ("p = fq.PrivateArray(4)", "missing a required argument: 'dtype'", "fill_zeros=…"),
        ("p = fq.PrivateArray(4, int, i > 2)", "fill_zeros is a constant", "True"),
        ("p = fq.PrivateArray(4, int); out[i] = p[4]", "the index 4 is outside 'p'", "0 to 3"),
        ("p = fq.PrivateArray((4, 2), int); p[3][2] = 1", "the index 2 is outside 'p'", "0 to 1"),
        ("out[i] = fq.PrivateArray(4, int)[0]", "a PrivateArray that has no name yet", "Index"),
        ("out[i] = fq.PrivateArray(4, int) + 1", "not a PrivateArray", "Assign it to a name"),
        ("p = fq.PrivateArray(4, int) if i > 2 else x[i]", "not a PrivateArray", "Assign"),
    ],
)  # fmt: skip
def test_private_arrays_refused(line, message, hint):
    text = refused(*line.split("; "))
    assert message in text and hint in text


def test_a_private_array_that_differs_between_paths_cannot_be_used():
    text = refused(
        "p = fq.PrivateArray(2, int)", "if i > 2:", "    p = fq.PrivateArray(2, int)",
        "out[i] = p[0]",
    )  # fmt: skip
    assert re.search("'p' has no single type here: it is a 1-d array", text)


@pytest.mark.parametrize("line", [
    "out[i, :] = np.array((1.0, 2.0, 3.0, x[i])) * x[i]", "out[i] = np.full(4, x[i])",
    "out[i] += np.ones(4)", "out[i, 0] = np.sum(np.ones(3) * x[i])",
    "out[i, 0] = np.array((x[i], 1.5))[1]", "out[i, 0] = np.array((x[i], 1.5)).max()",
    "out[i, 0] = np.array((x[i], 1.5)) @ np.array((2.0, x[i]))",
    "t, u = np.array((x[i], 2.0))\n    out[i] = t * u",
    "for v in np.array((x[i], 2.0)):\n        out[i, 1] = out[i, 1] * 2 + v",
    "def f(p):\n        p[0] += 1\n        return p\n    out[i] = f(np.zeros(4)) + f(np.ones(4))",
    "for k in range(3):\n        t = np.zeros(2) + k\n        out[i, k] = t[1]",
    "t = -np.sqrt(np.array((4.0, 9.0)))\n    out[i, :2] = t",
])  # fmt: skip
def test_arrays_that_are_made_where_they_are_used(line):
    made = define(f"def k(item, x, out):\n    i = item.get_id(0)\n    {line}\n")
    run_both(made, 4, np.array([0.5, 2.0, -1.0, 3.0]), np.ones((4, 4)))
