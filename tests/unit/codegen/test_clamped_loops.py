"""Loops over windows that are clamped at the ends of a range: whole windows without the clamps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.codegen.clamped_loops import with_clamped_loops
from fusionq.ir.nodes import If, Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.ir.walk import statements
from tests.property.running import examples
from tests.unit.frontend.running import binding, define, specialised

N = 14


def split(kernel: Kernel) -> Kernel:
    made = with_clamped_loops(kernel, kernel.body)
    verify(made)
    return made


def branches(kernel: Kernel) -> int:
    return sum(isinstance(s, If) and bool(s.orelse) for s in statements(kernel.body))


def lowered(start: str, stop: str, step: str = "1") -> Kernel:
    """A kernel with a loop of such bounds, of the id ``i`` and a scalar ``n``."""
    text = (
        "def windows(item, x, w, n, out):\n"
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
        for k in range(max(0, i - 2), min(x.shape[0], i + 3)):
            total += x[k]
        out[i] = total

    x = np.zeros(N, np.int64)
    assert print_kernel(split(specialised(sums, (N,), x, x))) == """\
def sums(item, x, out):
    # x: int64[:], out: int64[:]
    i = item.get_id(0)
    total = 0
    if item.get_id(0) - 2 >= 0 and item.get_id(0) + 3 <= x.shape[0]:
        for k_turn in range(5):
            k_own = item.get_id(0) - 2 + k_turn
            total = total + x[k_own]
    else:
        for k in range(max(0, i - 2), min(x.shape[0], i + 3)):
            total = total + x[k]
    out[i] = total
"""


@pytest.mark.parametrize(
    "start, stop",
    (
        ("max(0, i - 3)", "min(x.shape[0], i + 4)"),
        ("max(i - 3, 0)", "i + 1"),
        ("i", "min(i + 5, n)"),
        ("max(0, i - half)", "min(x.shape[0], i + half + 1)"),
        ("max(n - 4, i)", "2 + i"),
        ("max(0, i - n)", "min(x.shape[0], i + n + 1)"),
        ("max(n, i - half)", "min(x.shape[0], i + half)"),
    ),
)
def test_windows(start: str, stop: str) -> None:
    assert branches(split(lowered(start, stop))) == 1


@pytest.mark.parametrize(
    "start, stop",
    (
        ("max(0, 2 * i)", "min(x.shape[0], i + 3)"),  # no window of one size
        ("0", "min(x.shape[0], i + 3)"),
        ("i - 1", "i + 2"),  # not clamped
        ("max(x[0], i - 1)", "i + 2"),  # it may be stored to
        ("min(0, i - 1)", "i + 2"),
        ("max(i - 2, i - 4)", "i + 2"),
        ("max(0, i - n * half)", "min(x.shape[0], i + half)"),  # it may wrap
    ),
)
def test_other_loops_stay(start: str, stop: str) -> None:
    kernel = lowered(start, stop)
    assert with_clamped_loops(kernel, kernel.body) == kernel


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


SCALARS = (-(1 << 63), -(1 << 32), -3, 0, 1, 5, 9, 14, 20, 1 << 40)

BOUND = st.tuples(
    st.sampled_from(("0", "3", "n", "n - 6", "x.shape[0]", "w.shape[0]")),
    st.sampled_from(("i - 2", "i + 3", "i", "i - half", "half + i + 1", "i - half + 4", "7 + i",
                     "i - n", "i + n + 1", "i - half + n")),
    st.booleans(),
    st.sampled_from(("clamped", "clamped", "free")),
)


@examples(200)
@given(BOUND, BOUND, st.integers(1, 3), st.sampled_from(SCALARS))
def test_every_work_item_does_the_same(
    low: tuple[str, str, bool, str], high: tuple[str, str, bool, str], step: int, n: int
) -> None:
    def text(function: str, bound: tuple[str, str, bool, str]) -> str:
        limit, place, swapped, form = bound
        if form == "free":
            return place
        return f"{function}({place}, {limit})" if swapped else f"{function}({limit}, {place})"

    ends = (limit if form == "clamped" else place for limit, place, _, form in (low, high))
    if abs(n) > 20 and any("n" in end for end in ends):
        n = -3  # else it goes on for ever
    kernel = lowered(text("max", low), text("min", high), str(step))
    values = {"x": np.arange(N) * 5 % 11, "w": np.arange(7), "n": n, "out": np.zeros(N, np.int64)}
    np.testing.assert_array_equal(run(split(kernel), values), run(kernel, values))


def test_loops_that_end_early_and_nest() -> None:
    @fq.kernel
    def nested(item: fq.Item, x, w, n, out):
        i = item.get_id(0)
        total = 0
        for a in range(max(0, i - 3), min(n, i + 4)):
            if x[a] == 7:
                continue
            for b in range(max(0, i - 1), min(x.shape[0], i + 2)):
                total += x[b] * (a + 1)
                if total > 200:
                    break
        out[i] = total

    x = np.arange(N) * 5 % 11
    kernel = specialised(nested, (N,), x, x, 9, x)
    made = split(kernel)
    assert branches(made) == 3
    values = {"x": x, "w": x, "n": 9, "out": np.zeros(N, np.int64)}
    np.testing.assert_array_equal(run(made, values), run(kernel, values))
