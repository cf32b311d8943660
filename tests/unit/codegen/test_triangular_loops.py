"""Loops whose bounds move with the id: what a sub-group's work-items do together, and the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.codegen.triangular_loops import with_triangular_loops
from fusionq.ir.nodes import Binary, Call, Const, Expr, For, Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.types import INT64
from fusionq.ir.verifier import verify
from fusionq.ir.walk import rewrite_body, statements
from tests.property.running import examples
from tests.unit.frontend.running import binding, define, specialised

N = 14


def peeled(kernel: Kernel) -> Kernel:
    made = with_triangular_loops(kernel, kernel.body)
    verify(made)
    return made


def loops(kernel: Kernel) -> int:
    return sum(isinstance(s, For) for s in statements(kernel.body))


def lowered(start: str, stop: str, step: str = "1") -> Kernel:
    """A kernel with a loop of such bounds, of the id ``i`` and a scalar ``n``."""
    text = (
        "def triangle(item, x, w, n, out):\n"
        "    i = item.get_id(0)\n"
        "    half, t = w.shape[0] // 2, 0\n"
        f"    for k in range({start}, {stop}, {step}):\n"
        "        t = t * 3 % 1009 + x[k % 14] + k\n"
        "    out[i] = t\n"
    )
    x = np.zeros(N, np.int64)
    return specialised(define(text), (N,), x, x, 5, x)


def test_what_it_becomes() -> None:
    @fq.kernel
    def sums(item: fq.Item, x, out):
        i = item.get_id(0)
        total = 0
        for j in range(i + 1):
            total += x[j]
        for j in range(i, x.shape[0]):
            total -= x[j]
        out[i] = total

    x = np.zeros(N, np.int64)
    assert print_kernel(peeled(specialised(sums, (N,), x, x))) == """\
def sums(item, x, out):
    # x: int64[:], out: int64[:]
    i = item.get_id(0)
    total = 0
    j_common = first_of_sub_group(item.get_id(0)) + 1
    for j in range(j_common):
        total = total + x[j]
    for j in range(np.maximum(0, j_common), i + 1):
        total = total + x[j]
    j_1_common = np.minimum(first_of_sub_group(item.get_id(0)) + (sub_group_local_range() - 1), x.shape[0])
    for j_1 in range(i, j_1_common):
        total = total - x[j_1]
    for j_1 in range(j_1_common, x.shape[0]):
        total = total - x[j_1]
    out[i] = total
"""  # noqa: E501  # as it is printed


MOVING = (
    ("0", "i + 1", "1"),
    ("n", "i", "1"),
    ("i + 1", "x.shape[0]", "1"),
    ("x.shape[0] - 1", "i", "-1"),
    ("i - 1", "-1", "-1"),
    ("0", "x.shape[0] - i", "1"),
    ("x.shape[0] - i", "n", "1"),
    ("2 * i", "x.shape[0]", "1"),
    ("0", "min(i + half, x.shape[0])", "1"),
    ("max(i // 2 - 1, 0)", "n", "1"),
    ("0", "min(n, i + 1)", "1"),
    ("n - 6", "i // w.shape[0] + 1", "1"),
)


@pytest.mark.parametrize("start, stop, step", MOVING)
def test_bounds_that_move_with_the_id(start: str, stop: str, step: str) -> None:
    assert loops(peeled(lowered(start, stop, step))) == 2


@pytest.mark.parametrize(
    "start, stop, step",
    (
        ("0", "n", "1"),  # the same for all
        ("i", "i + 4", "1"),  # as long for all
        ("i - n", "x.shape[0]", "1"),  # any integer, which may wrap
        ("0", "i * n", "1"),  # falls, or rises
        ("0", "min(i, n) + i", "1"),
        ("0", "i % 5", "1"),
        ("0", "i - i // 2", "1"),
        ("0", "x[i]", "1"),
        ("0", "i + 1", "2"),
        ("0", "i + 1", "n"),
        ("0", "i * -3 + 40", "1"),
        ("0", "(i << 61) + i", "1"),
        ("0", "i * (1 << 20)", "1"),
    ),
)
def test_other_loops_stay(start: str, stop: str, step: str) -> None:
    kernel = lowered(start, stop, step)
    assert with_triangular_loops(kernel, kernel.body) == kernel


def test_loops_that_end_early_stay() -> None:
    @fq.kernel
    def first(item: fq.Item, x, out):
        i = item.get_id(0)
        found = -1
        for j in range(i + 1):
            if x[j] == 7:
                found = j
                break
        out[i] = found

    x = np.zeros(N, np.int64)
    kernel = specialised(first, (N,), x, x)
    assert with_triangular_loops(kernel, kernel.body) == kernel


def test_loops_whose_names_are_read_behind_them_stay() -> None:
    @fq.kernel
    def last(item: fq.Item, x, out):
        i = item.get_id(0)
        for j in range(i + 1):
            found = x[j]
        out[i] = found

    x = np.zeros(N, np.int64)
    kernel = specialised(last, (N,), x, x)
    assert with_triangular_loops(kernel, kernel.body) == kernel


def test_the_id_is_that_of_the_last_dimension() -> None:
    @fq.kernel
    def sums(item: fq.Item, x, out):
        i, j = item.get_id(0), item.get_id(1)
        total = 0
        for k in range(i + 1):
            total += x[k]
        for k in range(i, j + 1):
            total += x[k]
        out[i, j] = total

    x = np.zeros(N, np.int64)
    kernel = specialised(sums, (N, N), x, np.zeros((N, N), np.int64))
    assert loops(peeled(kernel)) == 3


def on_host(kernel: Kernel, size: int) -> Kernel:
    """``kernel`` of which sub-groups have ``size`` work-items."""

    def expr(e: Expr) -> Expr:
        match e:
            case Call(function="first_of_sub_group", args=(id,)):
                place = Binary(INT64, "mod", id, Const(INT64, size))
                return Binary(INT64, "sub", id, place)
            case Call(function="sub_group_local_range"):
                return Const(INT64, size)
        return e

    return replace(kernel, body=rewrite_body(kernel.body, expr))


def run(kernel: Kernel, values: dict[str, Any]) -> np.ndarray:
    arguments = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()}
    backend = ReferenceBackend(order="natural")
    bindings = [
        binding(arguments[p.name]) if isinstance(arguments[p.name], np.ndarray)
        else arguments[p.name]
        for p in kernel.params
    ]  # fmt: skip
    built = backend.build(kernel, "strict")
    backend.prepare(built, bindings, LaunchShape((N,), (N,))).launch()
    return arguments["out"]


ONE = st.sampled_from(("0", "-1", "3", "n", "n + 2", "x.shape[0]", "w.shape[0] - 1"))
OF_ID = st.sampled_from((
    "i", "i + 1", "i - 3", "x.shape[0] - i", "8 - i", "2 * i", "i // 2", "i // w.shape[0]",
    "min(i, w.shape[0])", "max(n, i)", "max(i - 2, 4)", "min(9 - i, x.shape[0] - 2 * i)",
    "i + half",
))  # fmt: skip


@examples(200)
@given(ONE, OF_ID, st.booleans(), st.sampled_from(("1", "-1")), st.integers(1, 9),
       st.sampled_from((-3, 0, 5, 9, 14, 20)))  # fmt: skip
def test_every_work_item_does_the_same(
    one: str, moving: str, swapped: bool, step: str, size: int, n: int
) -> None:
    start, stop = (moving, one) if swapped else (one, moving)
    kernel = lowered(start, stop, step)
    made = peeled(kernel)
    assert loops(made) == 2
    values = {"x": np.arange(N) * 5 % 11, "w": np.arange(7), "n": n, "out": np.zeros(N, np.int64)}
    np.testing.assert_array_equal(run(on_host(made, size), values), run(kernel, values))


def test_loops_in_loops() -> None:
    @fq.kernel
    def nested(item: fq.Item, x, n, out):
        i = item.get_id(0)
        total = 0
        for a in range(i + 1):
            if x[a] == 7:
                continue
            for b in range(n - 2, i, -1):
                total += x[b] * (a + 1)
                if total > 200:
                    total -= 190
            for b in range(a, n):
                total += b
        out[i] = total

    x = np.arange(N) * 5 % 11
    kernel = specialised(nested, (N,), x, 9, x)
    made = peeled(kernel)
    assert loops(made) == 8
    values = {"x": x, "n": 9, "out": np.zeros(N, np.int64)}
    for size in (1, 4, 8):
        np.testing.assert_array_equal(run(on_host(made, size), values), run(kernel, values))
