"""Launches over ids that they divide, along rows that are cut where quotients change: nothing
changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.codegen.along_rows import along_rows
from fusionq.ir.verifier import verify
from fusionq.kernels.library import Array
from tests.e2e import against_reference
from tests.e2e.kernels_from_text import from_text
from tests.in_turn import one_in
from tests.property.running import examples

WIDTHS = (32, 33, 47, 48, 64, 100, 257, 1000)


@pytest.fixture
def queue(sycl_queue: fq.FusionQueue) -> Iterator[fq.FusionQueue]:
    """A queue of a CPU all of whose launches are in segments that may."""
    backend = sycl_queue._state.launcher.backend
    if not backend.target.device.jams_rows:
        pytest.skip("the device's launches do not go along rows")
    costs = replace(backend.target.costs, split_saved_seconds=0.0)
    backend.target = replace(backend.target, costs=costs)
    yield sycl_queue


def run(queue: fq.FusionQueue, kernel: Any, extents: tuple[int, ...], *arguments: Any) -> bool:
    """Whether a launch of a kernel over a range is in segments; what it writes to its last argument
    is what the reference backend makes of it, bit for bit."""
    report = against_reference.run(queue, kernel, extents, *arguments)
    (stage,) = report.plan.stages
    cut = stage.kernel.cuts_rows
    assert ("divided by once for a segment of a row" in str(report)) == cut
    assert bool(report.to_dict()["stages"][0]["divisors"]) == cut
    return cut


def numbers(count: int, dtype: str = "int64") -> Array:
    return (np.random.default_rng(count).standard_normal(count) * 50).astype(dtype)


@fq.kernel
def places(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    i, j = n // m, n % m
    c[n] = a[n] + i * 1_000_003 + j * 7


@fq.kernel
def inside(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    i, j = n // m, n % m
    if i > 0 and j > 0 and j < m - 1 and n + m < a.shape[0]:
        c[n] = a[n - 1] + 2 * a[n + 1] + 3 * a[n - m] + 5 * a[n + m]
    else:
        c[n] = -a[n]


@fq.kernel
def remainders(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    c[n] = max(a[n] + a[n % m], 0)


@fq.kernel
def quotients(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    c[n] = a[n] * a[n // m]


@fq.kernel
def behind(item: fq.Item, m: int, a: Array, c: Array) -> None:
    """What is divided is less than 0 for the first ones."""
    n = item.get_id(0)
    i, j = (n - 70) // m, (n - 70) % m
    c[n] = a[n] + i * 1000 + j
    if j > 2 and i > 0:
        c[n] += j


@fq.kernel
def boxes(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    k, j, i = n % m, n // m % 3, n // (m * 3)
    c[n] = a[n] + k * 3 + j * 1000 + i * 100_000


@fq.kernel
def halves(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    w = m // 2 * 2
    i, j = n // w, n % w
    c[n] = a[i * w + w - 1 - j] if (i + 1) * w <= a.shape[0] else a[n]


@fq.kernel
def updated(item: fq.Item, m: int, a: Array, c: Array) -> None:
    """Doing an item twice would make a difference."""
    n = item.get_id(0)
    if n % m < m - 1:
        c[n] = c[n] * 3 + n // m


@fq.kernel
def leaving(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    if n // m > 3:
        return
    c[n] = a[n] + n % m


@fq.kernel
def sums(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    i, j = n // m, n % m
    total = a.dtype.type(0)
    for k in range(min(5, a.shape[0] // m)):
        total += a[k * m + j] * a[i]
    c[n] = total


KERNELS = (
    places, inside, remainders, quotients, behind, boxes, halves, updated, leaving, sums,
)  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_the_result_is_the_same(queue: fq.FusionQueue, kernel: Any) -> None:
    for m in one_in(2, WIDTHS, first=KERNELS.index(kernel) % 2):
        for n in (m * 5, m * 3 + 17, max(m - 5, 1)):
            assert run(queue, kernel, (n,), m, numbers(n), numbers(n + 1)[1:])


@pytest.mark.parametrize("m", (1, 2, 7, 16, 31, 0, -1, -40, (1 << 63) - 1, -(1 << 63)))
def test_short_segments_and_odd_divisors_are_left_alone(queue: fq.FusionQueue, m: int) -> None:
    with np.errstate(all="ignore"):
        assert not run(queue, places, (333,), m, numbers(333), numbers(333))


def test_a_plan_serves_its_side_of_the_shortest_segment(queue: fq.FusionQueue) -> None:
    for m in (100, 8, 33, 31, 32, 1 << 61, 1 << 62, -100, 64):
        cut = run(queue, places, (400,), m, numbers(400), numbers(400))
        assert cut == (32 <= m < 1 << 62)


def test_plain_submits_and_replays_take_other_divisors(queue: fq.FusionQueue) -> None:
    a = numbers(500)
    for m in (64, 3, 50, 0, 99):
        found, n = np.zeros(500, np.int64), np.arange(500)
        queue.submit(places, 500, m, a, found)
        queue.wait()
        i, j = (n // m, n % m) if m else (0 * n, 0 * n)
        np.testing.assert_array_equal(found, a + i * 1_000_003 + j * 7)
    found = np.zeros(500, np.int64)
    with fq.fusion(queue) as f:
        queue.submit(places, 500, m, a, found)
    for m in (64, 5, 33):
        f.replay(m=m)
        queue.wait()
        np.testing.assert_array_equal(found, a + n // m * 1_000_003 + n % m * 7)


@fq.kernel
def around(item: fq.Item, a: Array, b: Array) -> None:
    n = item.get_linear_id()
    i, j = n // a.shape[1], n % a.shape[1]
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j] + 2 * a[i + 1, j] + 3 * a[i, j - 1] + 5 * a[i, j + 1]
    else:
        b[i, j] = -a[i, j]


def test_planes(queue: fq.FusionQueue) -> None:
    for shape in ((40, 33), (3, 100), (1, 400), (9, 130)):
        a = numbers(shape[0] * shape[1]).reshape(shape)
        assert run(queue, around, (a.size,), a, np.zeros(shape, np.int64))
    for shape in ((40, 31), (400, 1)):
        a = numbers(shape[0] * shape[1]).reshape(shape)
        assert not run(queue, around, (a.size,), a, np.zeros(shape, np.int64))


def test_one_array_is_both_arguments(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def raised(item: fq.Item, m: int, a: Array, c: Array) -> None:
        n = item.get_id(0)
        c[n] = a[n] * 2 + n // m

    held, n = numbers(900), np.arange(840)
    wanted = held[:840] * 2 + n // 40
    queue.submit(raised, 840, 40, held, held)
    queue.wait()
    np.testing.assert_array_equal(held[:840], wanted)


def test_steps_between_elements(queue: fq.FusionQueue) -> None:
    a, c = numbers(1200), numbers(1200)
    assert run(queue, inside, (600,), 50, a[::2], c[::2])
    assert run(queue, inside, (600,), 50, a[::-2], c[::-2])
    assert run(queue, inside, (600,), 50, a[:600][::-1], c[600:])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_dtypes(queue: fq.FusionQueue, dtype: str) -> None:
    @fq.kernel
    def weighted(item: fq.Item, m: int, a: Array, c: Array) -> None:
        n = item.get_id(0)
        if n % m > 0:
            c[n] = a[n] + a[n - 1] * a[n % m]

    assert run(queue, weighted, (777,), 60, numbers(777, dtype), numbers(777, dtype))


def test_submissions_that_are_one_launch(queue: fq.FusionQueue) -> None:
    a, results = numbers(700, "float32"), []
    for strategy in ("unfused", "fused"):
        t = fq.Buffer(700, np.float32, promote_private=True)
        c = np.zeros(700, np.float32)
        with fq.fusion(queue, strategy=strategy) as f:
            queue.submit(remainders, 700, 70, a, t)
            queue.submit(places, 700, 35, t, c)
        queue.wait()
        results.append(c)
    (stage,) = f.report.plan.stages
    assert stage.kernel.cuts_rows and len(f.report.stages[0].divisors) == 2
    np.testing.assert_array_equal(*results)


@fq.kernel
def products(item: fq.Item, a: Array, w: Array, c: Array) -> None:
    i, j = item.get_linear_id() // c.shape[1], item.get_linear_id() % c.shape[1]
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * w[k, j]
    c[i, j] = total


@pytest.mark.parametrize("strategy", ["fused", "sequence"])
def test_no_work_groups_of_ids_that_are_divided(queue: fq.FusionQueue, strategy: Any) -> None:
    """A work-group of rows would keep the dependence inside, and divide for each work-item."""
    a, w = numbers(64 * 128, "float32").reshape(64, 128), numbers(128 * 128, "float32")
    results = []
    for asked in ("unfused", strategy):
        b, c = np.zeros((2, 64, 128), np.float32)
        with fq.fusion(queue, strategy=asked) as f:
            queue.submit(products, 64 * 128, a, w.reshape(128, 128), b)
            queue.submit(products, 64 * 128, b, w.reshape(128, 128), c)
        queue.wait()
        results.append(c)
    assert len(f.report.stages) == 2
    assert all(stage.kernel.cuts_rows for stage in f.report.plan.stages)
    assert "would divide its id" in str(f.report) or strategy == "sequence"
    np.testing.assert_array_equal(*results)


def test_profiles_and_checks_have_the_same_result(queue: fq.FusionQueue) -> None:
    a, wanted, c = numbers(777), np.zeros(777, np.int64), np.zeros(777, np.int64)
    queue.submit(inside, 777, 50, a, wanted)
    with fq.profile(queue) as profile:
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(inside, 777, 50, a, c)
        queue.wait()
    assert f.report.plan.stages[0].kernel.cuts_rows and "inside" in str(profile)
    np.testing.assert_array_equal(c, wanted)
    c[:] = 0
    with fq.fusion(queue, check=True):
        queue.submit(inside, 777, 50, a, c)
    queue.wait()
    np.testing.assert_array_equal(c, wanted)


def test_in_segments_a_kernel_is_well_formed(queue: fq.FusionQueue) -> None:
    for kernel in KERNELS:
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(kernel, 777, 50, numbers(777), numbers(777))
        queue.wait()
        (stage,) = f.report.plan.stages
        made = along_rows(stage.kernel)
        verify(made)
        names = [name for name, _ in made.variables]
        assert len(names) == len(set(names)) and all(map(str.isidentifier, names))


def test_few_work_items_are_left_alone(sycl_queue: fq.FusionQueue) -> None:
    @fq.kernel
    def few(item: fq.Item, m: int, a: Array, c: Array) -> None:
        n = item.get_id(0)
        c[n] = a[n] - n // m

    assert not run(sycl_queue, few, (333,), 64, numbers(333), numbers(333))


@fq.kernel
def counted(item: fq.Item, m: int, a: Array, c: Array) -> None:
    n = item.get_id(0)
    fq.AtomicRef(c, n % m).fetch_add(a[n])


def test_atomic_operations_are_left_alone(queue: fq.FusionQueue) -> None:
    assert not run(queue, counted, (777,), 50, numbers(777), np.zeros(777, np.int64))


LINES = st.lists(
    st.sampled_from(
        (
            "s += a[n]",
            "s += i * 3 + j",
            "s = s - (n + 3) // m",
            "s += (n - m) % m",
            "s += n // (m * 2) % 5",
            "if j > 0: s += a[n - 1]",
            "if j < m - 1 and n + 1 < a.shape[0]: s -= a[n + 1]",
            "if i > 0: s += a[n - m] * 2",
            "s += a[min(i * m + max(j - 2, 0), a.shape[0] - 1)]",
            "s += a[n % limit]",
            "if a[n] > 0: s = -s",
            "c[n] = s",
            "s += c[n]",
            "if (j + i) % 2 == 0: s *= 3",
            "for k in range(3): s += a[(j + k) % m % a.shape[0]]",
        )
    ),
    min_size=1,
    max_size=6,
)
AROUND = ("", "if 1 <= j < m - 1:", "if i > 0:", "if n < a.shape[0] - limit:", "if j >= limit:")


@pytest.mark.slow
@examples(150)
@given(LINES, st.sampled_from(AROUND), st.integers(32, 90), st.integers(1, 700), st.integers(1, 40))
def test_random_bodies(
    queue: fq.FusionQueue, lines: list[str], around: str, m: int, count: int, limit: int
) -> None:
    pad = "    " if around else ""
    text = [
        "def random_body(item: fq.Item, m: int, limit: int, a: Array, c: Array) -> None:",
        "    n = item.get_id(0)",
        "    i = n // m",
        "    j = n % m",
        "    s = np.int64(0)",
        *([f"    {around}"] if around else []),
        *(f"    {pad}{line}" for line in lines),
        "    c[n] = c[n] + s",
    ]
    kernel = from_text("\n".join(text) + "\n")
    run(queue, kernel, (count,), m, limit, numbers(count), numbers(count))
