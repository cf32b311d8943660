"""Kernels of which no vectors of work-items are made: whose loops go on as long as memory says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.codegen.scalar_items import is_for_scalars
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import (
    Barrier,
    Call,
    Compare,
    Const,
    For,
    If,
    ItemQuery,
    Kernel,
    Store,
)
from fusionq.ir.types import BOOL, FLOAT32, INT64
from tests.unit.frontend.running import define, specialised
from tests.unit.targets import TWO_CORES

N = 16
ONE = Const(FLOAT32, 1.0)
HINT = "__attribute__((vec_type_hint(float4)))"


def lowered(*lines: str, ndim: int = 1) -> Kernel:
    """A kernel with these ``lines`` over float arrays ``x``, ``y`` and ``a`` of two dimensions and
    of integers ``first`` and ``column``; ``s`` is a float, ``i`` the last id, ``j`` the first."""
    body = "".join(f"    {line}\n" for line in lines)
    text = (
        "def rows(item, first, column, x, a, n, y):\n"
        f"    i, j, s = item.get_id({ndim - 1}), item.get_id(0), np.float32(0)\n"
        f"{body}"
        "    y[i] = s\n"
    )
    numbers, x = np.zeros(N + 1, np.int32), np.zeros(N, np.float32)
    a = np.zeros((N, N), np.float32)
    return specialised(define(text, math=math, fq=fq), (N,) * ndim, numbers, numbers, x, a, 5, x)


def is_scalar(*lines: str, ndim: int = 1) -> bool:
    kernel = lowered(*lines, ndim=ndim)
    return is_for_scalars(kernel, flatten_blocks(kernel.body))


ROWS = "for k in range(first[i], first[i + 1]):"
PRODUCT = "    s += x[column[k]] * x[k]"

SCALAR = {
    "rows of a sparse matrix": (ROWS, PRODUCT),
    "a count": ("for k in range(first[i]):", "    s += a[k, i]"),
    "through variables": ("b = first[i]", "e = b + column[i]", "for k in range(b, e):", PRODUCT),
    "behind a condition": ("if x[i] > 0:", f"    {ROWS}", f"    {PRODUCT}"),
    "in a short loop": ("for d in range(3):", f"    {ROWS}", f"    {PRODUCT}"),
    "in a loop": ("for d in range(n):", f"    {ROWS}", f"    {PRODUCT}"),
    "a list": ("k = int(column[i])", "while k > 0:", "    s += x[k]", "    k = int(column[k])"),
    "a table": ("k = i", "while x[k] > s:", "    k = (k + 1) % 16"),
    "private memory": (
        "w = fq.PrivateArray(4, np.float32)", "for k in range(4):", "    w[k] = x[k] - x[i]",
        "k = 3", "while k > 0 and w[k - 1] > x[i]:", "    w[k] = w[k - 1]", "    k -= 1",
    ),
    "rows of two dimensions, by the last": (
        "for k in range(first[i], first[i + 1]):", "    s += a[j, column[k]]",
    ),
}  # fmt: skip

VECTORS = {
    "counts of arguments": ("for k in range(n):", "    s += x[column[k]]"),
    "counts of ids": ("for k in range(i + 1):", "    s += x[k]"),
    "one count for all": ("for k in range(first[0], first[n]):", PRODUCT),
    "no loop": ("s = x[column[i]]",),
    "much is computed": (ROWS, "    d = x[column[k]]", "    s += d*d*d*d*d*d*d*d*d*d*d*d*d*d*d*d"),
    "functions": (ROWS, "    s += math.exp(x[column[k]])"),
    "a loop of vectors beside it": ("for k in range(n):", "    s += x[k]", ROWS, PRODUCT),
    "functions beside it": (ROWS, PRODUCT, *["s = math.sin(s)"] * 20),
    "nothing new is loaded": ("while s * s > x[i]:", "    s = s - np.float32(0.5)"),
    "a search": (
        "low, high = 0, 16", "while low < high:", "    middle = (low + high) // 2",
        "    if x[middle] < x[i]:", "        low = middle + 1", "    else:",
        "        high = middle",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCALAR)
def test_without_vectors(case):
    assert is_scalar(*SCALAR[case], ndim=2 if "two dimensions" in case else 1)


@pytest.mark.parametrize("case", VECTORS)
def test_with_vectors(case):
    assert not is_scalar(*VECTORS[case])


def test_rows_of_the_first_dimension_are_the_same_for_a_vector():
    by_first = ("for k in range(first[j], first[j + 1]):", "    s += a[column[k], i]")
    assert not is_scalar(*by_first, ndim=2)
    by_order = ("b = first[column[j]]", "for k in range(b, b + 4):", "    s += a[column[k], i]")
    assert not is_scalar(*by_order, ndim=2)


def test_a_reduction_behind_it_is_one_work_items():
    """What the first of a work-group combines, behind a barrier, is little for each."""
    kernel = lowered(*SCALAR["rows of a sparse matrix"])
    dense = lowered("s = x[i]").body
    combine = For("place", Const(INT64, 0), Const(INT64, 128), Const(INT64, 1), dense)
    first = Compare("eq", ItemQuery("local_id", 0), Const(INT64, 0))
    assert is_for_scalars(kernel, (*kernel.body, Barrier(), If(first, (combine,))))
    some = Compare("lt", ItemQuery("local_id", 0), Const(INT64, 16))
    assert not is_for_scalars(kernel, (*kernel.body, Barrier(), If(some, (combine,))))


def test_sub_groups_need_their_lanes():
    kernel = lowered(*SCALAR["rows of a sparse matrix"])
    assert not is_for_scalars(replace(kernel, sub_group_size=16), kernel.body)
    assert not is_for_scalars(replace(kernel, row_lanes=2), kernel.body)


def test_what_it_is_called():
    sparse, dense = (lowered(*case) for case in (SCALAR["a count"], VECTORS["counts of ids"]))
    assert generate(sparse, "strict", TWO_CORES, OPENCL_C).text.count(HINT) == 1
    assert HINT not in generate(dense, "strict", TWO_CORES, OPENCL_C).text
    assert "vec_type_hint" not in generate(sparse, "strict", TWO_CORES, CUDA_CPP).text


def test_profiles_ask_for_the_lanes_of_vectors():
    kernel = lowered(*SCALAR["a count"])
    leads = If(Call(BOOL, "leads_sub_group", ()), (Store("y", (Const(INT64, 0),), ONE),))
    assert is_for_scalars(kernel, kernel.body)
    assert not is_for_scalars(kernel, (*kernel.body, leads))


def of_integers(loop: str, dtype: str = "int32", ndim: int = 2) -> bool:
    """Whether no vectors are made of a kernel that does ``loop``, over arrays of integers ``a`` and
    ``b`` of two dimensions, with ``s`` and ``t`` for sums."""
    text = (
        "def rows(item, a, b, x, n, out):\n"
        f"    i, j, s = item.get_id(0), item.get_id({ndim - 1}), np.{dtype}(0)\n"
        f"    t = s\n    {loop}\n    out[i, j] = s + t\n"
    )
    a, x = np.zeros((N, N), dtype), np.zeros(N, np.float32)
    kernel = specialised(define(text), (N,) * ndim, a, a, x, 5, np.zeros((N, N), np.float64))
    return is_for_scalars(kernel, flatten_blocks(kernel.body))


OVER_ROWS = "for k in range(a.shape[1]): "


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
@pytest.mark.parametrize(
    "line",
    [
        "s += a[i, k] * b[j, k]",
        "s += b[j, k]",
        "s ^= b[j, k] & a[i, k + 1]",
        "s += b[j, k] - a[i, 0]; t |= a[i, k]",
        "s += np.int8(b[j, k] > 3)",
    ],
)
def test_integers_along_rows(line, dtype):
    dtype = "int8" if "np.int8" in line else dtype
    assert of_integers(OVER_ROWS + line, dtype)


@pytest.mark.parametrize(
    "loop",
    [
        OVER_ROWS + "s += a[i, k]",  # one row for all neighbours
        OVER_ROWS + "s += b[k, j]",  # neighbouring elements
        OVER_ROWS + "s += b[j, 2 * k]",
        OVER_ROWS + "s += b[j, a[i, k]]",
        OVER_ROWS + "s += b[j, k] // 3",
        OVER_ROWS + "s = s * 2 + b[j, k]",  # in this order
        OVER_ROWS + "s += b[j, k] + s",
        OVER_ROWS + "s += b[j, k]; t += s",
        OVER_ROWS + "s += np.int32(b[j, k] * x[k])",
        OVER_ROWS + "out[i, j] += b[j, k]",
        "for k in range(0, a.shape[1], 2): s += b[j, k]",
        "for k in range(4): s += b[j, k]",
        OVER_ROWS + "s += b[j, k]\n    for k in range(n): t += a[k, j]",
    ],
)
def test_other_loops_over_integers(loop):
    assert not of_integers(loop)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64"])
@pytest.mark.parametrize("length", [1, 3, 16, 67])
def test_integers_along_rows_give_the_same(dtype, length):
    text = (
        "def rows(item, a, b, out):\n    i, j = item.get_id(0), item.get_id(1)\n"
        f"    s = np.{dtype}(0)\n    for k in range(a.shape[1]):\n        s += a[i, k] * b[j, k]\n"
        "    out[i, j] = s\n"
    )
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 100, (n, length)).astype(dtype) for n in (9, 37))
    with fq.FusionQueue() as queue:
        out = fq.Buffer(np.zeros((9, 37), dtype))
        queue.submit(fq.kernel(define(text)), (9, 37), fq.Buffer(a), fq.Buffer(b), out)
        np.testing.assert_array_equal(out.numpy(), a @ b.T)
