"""Launches whose work-items go along rows of their own, without vectors: nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.ir.verifier import verify
from fusionq.kernels.library import Array
from fusionq.planning import own_row_launches
from tests.e2e import against_reference
from tests.e2e.kernels_from_text import from_text
from tests.property.running import examples

ROWS = (1, 3, 4, 5, 31, 32, 37, 130)
COLUMNS = CODE_LIMITS.own_row_iterations


@pytest.fixture
def queue(
    sycl_queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fq.FusionQueue]:
    """A queue of a CPU all of whose launches go along rows that may."""
    backend = sycl_queue._state.launcher.backend
    if not backend.target.device.jams_rows:
        pytest.skip("the device has no vectors of work-items")
    monkeypatch.setattr(own_row_launches, "_SHARES", 0)
    info = replace(backend.target.device, jams_items=False)
    backend.target = replace(backend.target, device=info)
    yield sycl_queue


def run(queue: fq.FusionQueue, kernel: Any, extents: tuple[int, ...], *arguments: Any) -> int:
    """How many work-items a launch does together, 0 where they are vectors; what it writes to its
    last argument is what the reference backend makes of it, bit for bit."""
    report = against_reference.run(queue, kernel, extents, *arguments)
    (stage,) = report.stages
    assert ("along rows: without vectors" in str(report)) == stage.one_by_one
    assert report.to_dict()["stages"][0]["one_by_one"] == stage.one_by_one
    assert stage.one_by_one or not stage.items_at_once
    return (stage.items_at_once or (1,))[-1] if stage.one_by_one else 0


def arrays(rows: int, columns: int, dtype: str = "float32") -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(rows + columns)
    a, c = (rng.standard_normal((rows, columns)).astype(dtype) for _ in range(2))
    return rng.standard_normal(columns).astype(dtype), a, c


@fq.kernel
def sums(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    i = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += x[k] * a[i, k]
    c[i, 0] = total


@fq.kernel
def sweep(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """Each element needs what the work-item has written in the iteration before."""
    i = item.get_id(0)
    for k in range(1, a.shape[1]):
        c[i, k] = c[i, k] - a[i, k] * c[i, k - 1]


@fq.kernel
def nearest(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    i = item.get_id(0)
    least = a.dtype.type(0)
    at = 0
    for j in range(a.shape[0]):
        far = a.dtype.type(0)
        for k in range(a.shape[1]):
            far += (a[i, k] - a[j, k]) * (a[i, k] - a[j, k])
        if j == 0 or far < least:
            least = far
            at = j
    c[i, 1] = a.dtype.type(at) + x[0]


@fq.kernel
def but_one(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    i = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        if k != i:
            total += a[i, k]
        elif x[k] > 0:
            total -= x[k]
    c[i, 2] = total


@fq.kernel
def guarded(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        total = a.dtype.type(0)
        for k in range(a.shape[1]):
            total += a[i - 1, k] - a[i + 1, k]
        c[i, 0] = total


@fq.kernel
def leaving(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    i = item.get_id(0)
    if i >= a.shape[0] - 2:
        return
    for k in range(a.shape[1]):
        c[i, k] = a[i, k] * a.dtype.type(2)


@fq.kernel
def red(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """Where a loop begins is each work-item's own."""
    i = item.get_id(0)
    for k in range(i % 2, a.shape[1], 2):
        c[i, k] = a[i, k] + x[0]


@fq.kernel
def many(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """How many there are says what is done."""
    i = item.get_id(0)
    for k in range(a.shape[1]):
        c[i, k] = a[i, k] * a.dtype.type(item.get_range(0))


@fq.kernel
def columns_too(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """Neighbours read neighbouring elements beside."""
    i = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[i, k] * a[k % a.shape[0], i % a.shape[1]]
    c[i, 0] = total


@fq.kernel
def up_to(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """Sums of different lengths."""
    i = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(i % a.shape[1]):
        total += a[i, k]
    c[i, 0] = total


TOGETHER = (sums, but_one, guarded, leaving, many)
ALONE = (red,)
VECTORS = (columns_too, up_to, sweep, nearest)


@pytest.mark.in_turn
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS + 5])
@pytest.mark.parametrize("kernel", (*TOGETHER, *ALONE, *VECTORS), ids=lambda k: k.__name__)
def test_the_result_is_the_same(queue: fq.FusionQueue, kernel: Any, columns: int) -> None:
    for rows in ROWS:
        together = run(queue, kernel, (rows,), *arrays(rows, columns))
        if kernel in VECTORS:
            assert together == 0
        elif kernel in ALONE:
            assert together == 1
        else:
            assert together > 1


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float64", "int16", "int64", "uint8"])
@pytest.mark.parametrize("kernel", [sums, but_one, leaving], ids=lambda k: k.__name__)
def test_dtypes(queue: fq.FusionQueue, kernel: Any, dtype: str) -> None:
    x, a, c = arrays(37, 20)
    x, a, c = (np.rint(part * 3).astype(dtype) for part in (x, a, c))
    assert run(queue, kernel, (37,), x, a, c) > 1


def test_short_rows_have_vectors(queue: fq.FusionQueue) -> None:
    for columns in (1, 3, COLUMNS - 1):
        assert run(queue, sums, (70,), *arrays(70, columns)) == 0
    assert run(queue, sums, (70,), *arrays(70, COLUMNS)) > 1
    assert run(queue, sums, (70,), *arrays(70, 2)) == 0


def test_few_rows_have_vectors(queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    @fq.kernel
    def of_few(item: fq.Item, x: Array, a: Array, c: Array) -> None:
        i = item.get_id(0)
        for k in range(a.shape[1]):
            c[i, k] = a[i, k] + x[k]

    monkeypatch.setattr(own_row_launches, "_SHARES", 4)
    parts = queue._state.launcher.backend.target.throughput_parts
    enough = 4 * parts * CODE_LIMITS.own_rows_at_once
    assert run(queue, of_few, (enough - 1,), *arrays(enough - 1, 40)) == 0
    assert run(queue, of_few, (enough,), *arrays(enough, 40)) > 1


def test_planes(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def planes(item: fq.Item, a: Array, c: Array) -> None:
        i, j = item.get_id(0), item.get_id(1)
        total = a.dtype.type(0)
        for k in range(a.shape[2]):
            total += a[i, j, k]
        c[i, j] = total

    a = np.random.default_rng(1).standard_normal((3, 37, 18)).astype("float32")
    assert run(queue, planes, (3, 37), a, np.zeros((3, 37), "float32")) > 1


def test_views(queue: fq.FusionQueue) -> None:
    x, a, c = arrays(74, 60)
    assert run(queue, sums, (37,), x[::-1], a[::2], c[1::2]) > 1
    assert run(queue, sums, (37,), x, a[::-2, 3:40], c[:37]) > 1
    run(queue, sums, (37,), x, a[:37, ::-1], c[:37])
    run(queue, sums, (37,), x, a[:37, ::2], c[:37])
    run(queue, sweep, (37,), x, a[37:], c[1:38])


def test_one_buffer_is_both_arguments(queue: fq.FusionQueue) -> None:
    """A work-item writes the row that it reads, one element further."""

    @fq.kernel
    def moved(item: fq.Item, a: Array, c: Array) -> None:
        i = item.get_id(0)
        for k in range(a.shape[1]):
            c[i, k] = a[i, k] * 2

    held = np.random.default_rng(3).standard_normal((41, 20)).astype("float32")
    wanted = held.copy()
    for k in range(19):
        wanted[:, k + 1] = wanted[:, k] * 2
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(moved, 41, held[:, :-1], held[:, 1:])
    queue.wait()
    assert f.report.stages[0].one_by_one
    np.testing.assert_array_equal(held, wanted)


def test_joined_kernels(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def scale(item: fq.Item, a: Array, c: Array, d: Array) -> None:
        i = item.get_id(0)
        for k in range(a.shape[1]):
            d[i, k] = a[i, k] * c[i, 0]

    x, a, c = arrays(70, 40)
    outs = []
    for strategy in ("unfused", "fused"):
        out, d = c.copy(), c.copy()
        with fq.fusion(queue, strategy=strategy) as f:
            queue.submit(sums, 70, x, a, out)
            queue.submit(scale, 70, a, out, d)
        queue.wait()
        outs.append(d)
    assert [stage.one_by_one for stage in f.report.stages] == [True]
    np.testing.assert_array_equal(*outs)


def test_profiles_checks_and_replays(queue: fq.FusionQueue) -> None:
    x, a, c = arrays(70, 40)
    wanted = c.copy()
    queue.submit(guarded, 70, x, a, wanted)
    queue.wait()
    found = []
    for options in ({"strategy": "sequence"}, {"check": True}, {"tune": True}):
        out = c.copy()
        with fq.profile(queue):
            with fq.fusion(queue, **options):
                queue.submit(guarded, 70, x, a, out)
            queue.wait()
        with fq.fusion(queue, **options) as f:
            queue.submit(guarded, 70, x, a, out)
        f.replay().wait()
        found.append(out)
    for out in found:
        np.testing.assert_array_equal(out, wanted)


def test_sizes_and_scalars_vary(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def first(item: fq.Item, n: int, a: Array, c: Array) -> None:
        i = item.get_id(0)
        total = np.float32(0)
        for k in range(n):
            total += a[i, k]
        c[i, 0] = total

    for rows in (70, 71, 300, 5):
        _, a, c = arrays(rows, 50)
        for n in (50, 16, 3, 0, 49):
            run(queue, first, (rows,), n, a, c)


def test_unfused_launches_are_the_users_own(queue: fq.FusionQueue) -> None:
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(sums, 70, *arrays(70, 40))
    queue.wait()
    assert not f.report.stages[0].one_by_one


def test_the_kernels_are_well_formed(queue: fq.FusionQueue) -> None:
    for kernel in (*TOGETHER, *ALONE):
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(kernel, 70, *arrays(70, 40))
        queue.wait()
        (stage,) = f.report.plan.stages
        assert stage.kernel.one_by_one
        verify(stage.kernel)


LINES = st.lists(
    st.sampled_from(
        (
            "s += x[k] * a[i, k]",
            "s = s - a[i, k]",
            "t = a[i, k] * s",
            "c[i, k] = t + a[i, k]",
            "c[i, k] = c[i, k] * x[k]",
            "s += c[i, k]",
            "if a[i, k] > t:\n            s += t",
            "if k == i:\n            t = s\n        else:\n            t = t - x[k]",
            "if i % 3 == 1:\n            c[i, k] = s",
        )
    ),
    min_size=1,
    max_size=4,
)
LOOPS = st.lists(
    st.sampled_from(
        (
            "range(a.shape[1])",
            "range(1, a.shape[1] - 1)",
            "range(a.shape[1] - 1, -1, -1)",
            "range(0, a.shape[1], 3)",
            "range(i % 2, a.shape[1], 2)",
            "range(min(i, a.shape[1]))",
        )
    ),
    min_size=1,
    max_size=2,
)
GUARDS = st.sampled_from(("", "if i > 0:", "if 0 < i < a.shape[0] - 1:", "if x[0] < 0.5:"))


@given(loops=LOOPS, lines=st.lists(LINES, min_size=2, max_size=2), guard=GUARDS,
       rows=st.sampled_from(ROWS))  # fmt: skip
@examples(12)
def test_random_kernels(
    queue: fq.FusionQueue, loops: list[str], lines: list[list[str]], guard: str, rows: int
) -> None:
    text = ["def random_body(item, x, a, c):", "    i = item.get_id(0)"]
    text += ["    s = a.dtype.type(1)", "    t = a.dtype.type(0.5)"]
    pad = "    "
    if guard:
        text.append(f"    {guard}")
        pad = "        "
    for loop, inside in zip(loops, lines, strict=False):
        text.append(f"{pad}for k in {loop}:")
        for line in inside:
            moved = line.replace("\n", "\n" + pad[4:])
            text.append(f"{pad}    {moved}")
    text.append(f"{pad}c[i, 0] = s + t")
    run(queue, from_text("\n".join(text)), (rows,), *arrays(rows, 21))
