"""Stages whose work-items read rows of their own: which they are, and what one lane does then."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.item_steps import FAR, ItemSteps
from fusionq.codegen.own_rows import OwnRows, own_rows
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Assign, Binary, Const, ItemQuery, Kernel, Param, Var
from fusionq.ir.types import INT64
from tests.unit.frontend.running import define, specialised

N = 32
AT_ONCE = CODE_LIMITS.own_rows_at_once


def lowered(*lines: str, ndim: int = 1) -> Kernel:
    """A kernel with these ``lines`` over float arrays ``x`` and ``y``, ``a`` and ``b`` of two
    dimensions, and integers ``at``; ``s`` is a float, ``i`` the last id, ``n`` a length."""
    body = "".join(f"    {line}\n" for line in lines)
    text = (
        "def rows(item, at, x, a, b, n, y):\n"
        f"    i, j, s = item.get_id({ndim - 1}), item.get_id(0), np.float32(0)\n"
        f"{body}"
        "    y[i] = s\n"
    )
    x, a = np.zeros(N, np.float32), np.zeros((N, N), np.float32)
    at = np.zeros(N, np.int32)
    return specialised(define(text, math=math, fq=fq), (N,) * ndim, at, x, a, a, 5, x)


def found(*lines: str, ndim: int = 1) -> OwnRows | None:
    kernel = lowered(*lines, ndim=ndim)
    return own_rows(kernel, flatten_blocks(kernel.body))


ROW = "for k in range(a.shape[1]):"
TAKEN = {
    "sum": (ROW, "    s += a[i, k]"),
    "product": (ROW, "    s += a[i, k] * x[k]"),
    "own element beside": (ROW, "    s += a[i, k] - x[i]"),
    "linear": ("for k in range(n):", "    s += x[i * n + k]"),
    "linear, in a variable": ("row = i * n", "for k in range(n):", "    s += x[row + k]"),
    "far by a constant's name": ("m = a.shape[1]", "for k in range(m):", "    s += a[i, k]"),
    "stored": (ROW, "    b[i, k] = a[i, k] + s"),
    "in place": ("for k in range(1, n):", "    b[i, k] = b[i, k - 1] + b[i, k]"),
    "from the end": (ROW, "    s += a[i, n - 1 - k]"),
    "nested": ("for m in range(n):", f"    {ROW}", "        s += a[i, k] * b[m, k]"),
    "long by itself": ("for k in range(16):", "    s += a[i, k]"),
    "every other": ("for k in range(n):", "    s += a[i, 2 * k]"),
    "in steps": ("for k in range(0, n, 4):", "    s += a[i, k]"),
    "a division beside much else": (ROW, "    s += a[i, k] / (b[i, k] + a[i + 1, k])"),
}
LEFT = {
    "neighbours": (ROW, "    s += a[k, i]"),
    "neighbours beside": (ROW, "    s += a[i, k] + b[k, i]"),
    "near": ("for k in range(n):", "    s += x[2 * i + k]"),
    "columns of its own": (ROW, "    s += a[i, k] + b[i * 2, 5] + b[k, 2 * i]"),
    "by memory": (ROW, "    s += a[at[i], k]"),
    "for all the same": (ROW, "    s += a[n, k]"),
    "a function": (ROW, "    s += math.exp(a[i, k])"),
    "a square root": (ROW, "    s += math.sqrt(a[i, k])"),
    "a division": (ROW, "    b[i, k] = a[i, k] / s"),
    "much is computed": (ROW, "    s = s * s + s * a[i, k] + s * s - s * s * s + s * x[k]"),
    "as many as the id": ("for k in range(i):", "    s += a[i, k]"),
    "short": ("for k in range(3):", "    s += a[i, k]"),
    "in long steps": ("for k in range(0, n, 8):", "    s += a[i, k]"),
    "far apart": ("for k in range(n):", "    s += a[i, 5 * k]"),
    "as far as memory says": ("for k in range(at[i], n):", "    b[i, k] = a[i, k]"),
    "sums to the id": ("for k in range(i % 2, n, 2):", "    s += a[i, k]"),
    "waiting": ("for k in range(i, n):", "    b[i, k] = a[i, k] + s", "    s = b[i, k]"),
    "atomic": (ROW, "    fq.AtomicRef(x, k).fetch_add(a[i, k])"),
    "no loop": ("s = a[i, 0]",),
}


@pytest.mark.parametrize("lines", TAKEN.values(), ids=TAKEN)
def test_rows_of_its_own(lines: tuple[str, ...]) -> None:
    rows = found(*lines)
    assert rows is not None
    assert rows.jammed.items == AT_ONCE
    assert rows.lengths


ALONE = {
    "red and black": ("for k in range(1 + i % 2, n, 2):", "    b[i, k] = a[i - 1, k] + s"),
    "a triangle": ("for k in range(i + 1):", "    b[i, k] = a[i, k]"),
    "down": ("for k in range(n, i, -1):", "    t = a[i, k]", "    b[i, k] = t * t"),
}


@pytest.mark.parametrize("lines", ALONE.values(), ids=ALONE)
def test_bounds_of_its_own(lines: tuple[str, ...]) -> None:
    """Each work-item by itself, where its iterations do not wait for each other."""
    rows = found(*lines)
    assert rows is not None
    assert rows.jammed is None
    assert rows.lengths


@pytest.mark.parametrize("lines", LEFT.values(), ids=LEFT)
def test_vectors_of_work_items(lines: tuple[str, ...]) -> None:
    assert found(*lines) is None


def test_conditions_of_one_lane() -> None:
    """They are masks in a loop that one lane does, and none where all do the same."""
    kernel = lowered(ROW, "    if k != i:", "        s += a[i, k]")
    body = flatten_blocks(kernel.body)
    assert own_rows(kernel, body) is not None
    assert own_rows(kernel, body, is_masked=True) is None


def test_rows_of_planes() -> None:
    """The last id decides: neighbours in the first have other planes."""
    assert found(ROW, "    s += a[i, k] + x[j]", ndim=2) is not None
    assert found(ROW, "    s += a[j, k]", ndim=2) is None


def test_as_long_as_is_known() -> None:
    rows = found("for k in range(16):", "    s += a[i, k]")
    assert rows is not None
    assert rows.lengths == (Const(INT64, 16),)
    rows = found(ROW, "    s += a[i, k]")
    assert rows is not None
    assert not isinstance(rows.lengths[0], Const)


def test_large_kernels_do_fewer_at_once() -> None:
    many = [f"    s += a[i, k + {m}] * b[i, k + {m}]" for m in range(12)]
    rows = found(ROW, *many)
    assert rows is not None
    assert rows.jammed.items < AT_ONCE


def test_steps() -> None:
    own, n, k = ItemQuery("global_id", 0), Param(INT64, "n"), Var(INT64, "k")
    row = Var(INT64, "row")
    body = (Assign("row", Binary(INT64, "mul", n, own)), Assign("k", Const(INT64, 1)))
    body = (*body, Assign("k", own))
    steps = ItemSteps(body, own, lambda e: e == n or isinstance(e, Const))
    assert steps.of(own) == 1
    assert steps.of(Binary(INT64, "mul", own, Const(INT64, -3))) == -3
    assert steps.of(row) == FAR
    two = Binary(INT64, "sub", row, Binary(INT64, "mul", Const(INT64, 2), own))
    assert steps.of(two) == FAR - 2
    assert steps.of(Binary(INT64, "mul", own, own)) is None
    assert steps.of(k) is None
