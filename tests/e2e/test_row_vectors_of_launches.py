"""Launches whose work-groups do several vectors of a row at a time: nothing changes."""

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
from fusionq.planning import row_vector_launches
from tests.e2e import against_reference
from tests.e2e.kernels_from_text import from_text
from tests.property.running import examples

COLUMNS = (1, 15, 16, 17, 130, 256, 257, 383, 400, 1000)


@pytest.fixture(params=[True, False], ids=["splits rows", "masks"])
def queue(
    sycl_queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[fq.FusionQueue]:
    """A queue of a CPU all of whose launches do several vectors at a time that may."""
    shortest = replace(row_vector_launches.CODE_LIMITS, jammed_row_iterations=0)
    monkeypatch.setattr(row_vector_launches, "CODE_LIMITS", shortest)
    monkeypatch.setattr(row_vector_launches, "FEWEST_STEPS", 1)
    backend = sycl_queue._state.launcher.backend
    if not backend.target.device.jams_rows:
        pytest.skip("the device does not do several vectors at a time")
    info = replace(backend.target.device, jams_items=False, splits_rows=request.param)
    costs = replace(backend.target.costs, split_saved_seconds=0.0)
    backend.target = replace(backend.target, device=info, costs=costs, shortest_split_row=1)
    yield sycl_queue


def run(queue: fq.FusionQueue, kernel: Any, extents: tuple[int, ...], *arguments: Any) -> bool:
    """Whether a launch of a kernel over a range does several vectors of rows at a time; what it
    writes to its last argument is what the reference backend makes of it, bit for bit."""
    report = against_reference.run(queue, kernel, extents, *arguments)
    (stage,) = report.stages
    together = stage.vectors_at_once > 1
    assert ("vectors of a row together" in str(report)) == together
    assert report.to_dict()["stages"][0]["vectors_at_once"] == stage.vectors_at_once
    return together


def arrays(rows: int, columns: int, dtype: str = "float32") -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(rows + columns)
    a, c = (rng.standard_normal((rows, columns)).astype(dtype) for _ in range(2))
    return rng.standard_normal(rows).astype(dtype), a, c


@fq.kernel
def sums(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    j = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += x[k] * a[k, j]
    c[0, j] = total


@fq.kernel
def sweep(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """Each row reads what the work-item has written in the iteration before."""
    j = item.get_id(0)
    for k in range(1, a.shape[0]):
        c[k, j] = c[k, j] - a[k, j] * c[k - 1, j]


@fq.kernel
def upwards(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    j = item.get_id(0)
    last = c[a.shape[0] - 1, j]
    for k in range(a.shape[0] - 2, -1, -1):
        last = c[k, j] - a[k, j] * last
        c[k, j] = last


@fq.kernel
def largest(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """A condition on data."""
    j = item.get_id(0)
    most = a[0, j]
    at = 0
    for k in range(1, a.shape[0]):
        if a[k, j] > most:
            most = a[k, j]
            at = k
        elif a[k, j] == most or x[k] > 1:
            at += 1
    c[0, j] = most + a.dtype.type(at)


@fq.kernel
def guarded(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    j = item.get_id(0)
    if 1 <= j < a.shape[1] - 2:
        total = a.dtype.type(0)
        for k in range(a.shape[0]):
            total += a[k, j - 1] - a[k, j + 2]
        c[0, j] = total
    else:
        c[0, j] = x[0]


@fq.kernel
def leaving(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    j = item.get_id(0)
    if j >= a.shape[1] - 3:
        return
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k, j]
    c[0, j] = total


@fq.kernel
def nested(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    j = item.get_id(0)
    total = a.dtype.type(0)
    for turn in range(2):
        for k in range(turn, a.shape[0], 2):
            if x[k] > 0:
                total += a[k, j]
            if j % 3 == turn:
                total = -total
        c[turn % a.shape[0], j] = total


@fq.kernel
def own_length(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """Loops of work-items differ."""
    j = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(min(j, a.shape[0])):
        total += a[k, j]
    c[0, j] = total


@fq.kernel
def until(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    j = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        if a[k, j] > 1:
            break
        total += a[k, j]
    c[0, j] = total


@fq.kernel
def below(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """A loop under a condition on the id."""
    j = item.get_id(0)
    if j % 2 == 0:
        for k in range(a.shape[0]):
            c[k, j] = a[k, j] * 2


@fq.kernel
def at_once(item: fq.Item, x: Array, a: Array, c: Array) -> None:
    """How many there are says what is done."""
    j = item.get_id(0)
    for k in range(a.shape[0]):
        c[k, j] = a[k, j] * item.get_range(0)


TOGETHER = (sums, sweep, upwards, largest, guarded, leaving, nested, at_once)
ONE_BY_ONE = (own_length, until, below)


@pytest.mark.in_turn
@pytest.mark.parametrize("rows", [7, 2, 1])
@pytest.mark.parametrize("kernel", (*TOGETHER, *ONE_BY_ONE), ids=lambda k: k.__name__)
def test_the_result_is_the_same(queue: fq.FusionQueue, kernel: Any, rows: int) -> None:
    for columns in COLUMNS:
        x, a, c = arrays(rows, columns)
        along = run(queue, kernel, (columns,), x, a, c)
        if kernel in ONE_BY_ONE:
            assert not along
        elif columns >= 257 and rows > 1 and kernel is not at_once:
            assert along


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float64", "int16", "int64"])
@pytest.mark.parametrize("kernel", [sums, sweep, largest], ids=lambda k: k.__name__)
def test_dtypes(queue: fq.FusionQueue, kernel: Any, dtype: str) -> None:
    for columns in (300, 523):
        x, a, c = arrays(5, columns)
        x, a, c = (np.rint(part * 3).astype(dtype) for part in (x, a, c))
        assert run(queue, kernel, (columns,), x, a, c)


def test_ranges_end_anywhere(queue: fq.FusionQueue) -> None:
    x, a, c = arrays(4, 600)
    for columns in (*range(250, 290), 511, 512, 513, 599):
        run(queue, sums, (columns,), x, a, c)
        run(queue, guarded, (columns,), x, a, c)


def test_rows_and_planes(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def slabs(item: fq.Item, x: Array, a: Array, c: Array) -> None:
        i, j = item.get_id(0), item.get_id(1)
        total = a.dtype.type(0)
        for k in range(i * 3, min(i * 3 + 3, a.shape[0])):
            total += x[k] * a[k, j]
        c[i, j] = total

    @fq.kernel
    def columns(item: fq.Item, x: Array, a: Array, c: Array) -> None:
        i, j = item.get_id(0), item.get_id(1)
        for k in range(1, a.shape[0]):
            c[k, i, j] = c[k - 1, i, j] * a[k, i, j]

    x, a, c = arrays(11, 700)
    assert run(queue, slabs, (4, 700), x, a, c)
    assert run(queue, columns, (3, 320), x, a.reshape(11, 2, 350)[:, [0, 1, 0]].copy(),
               np.ones((11, 3, 350), "float32"))  # fmt: skip


def test_steps_between_columns_are_left_alone(queue: fq.FusionQueue) -> None:
    x, a, c = arrays(5, 1200)
    assert not run(queue, sums, (600,), x, a[:, ::2], c[:, ::2])
    assert not run(queue, sums, (600,), x, a[:, ::-2], c[:, ::-2])
    run(queue, sums, (600,), x[::-1], a[::-1], c[::-1])
    run(queue, sweep, (600,), x, a[::-1], c[::-1])


def test_one_buffer_is_both_arguments(queue: fq.FusionQueue) -> None:
    """Rows are read that lie in the memory that is written."""

    @fq.kernel
    def moved(item: fq.Item, a: Array, c: Array) -> None:
        j = item.get_id(0)
        for k in range(a.shape[0]):
            c[k, j] = a[k, j] * 2

    held = np.random.default_rng(3).standard_normal((9, 700)).astype("float32")
    wanted = held.copy()
    for k in range(8):
        wanted[k + 1] = wanted[k] * 2
    with fq.fusion(queue, strategy="sequence"):
        queue.submit(moved, 700, held[:-1], held[1:])
    queue.wait()
    np.testing.assert_array_equal(held, wanted)


def test_what_follows_in_a_launch_stays_behind(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def scale(item: fq.Item, c: Array, d: Array) -> None:
        j = item.get_id(0)
        d[0, j] = c[0, j] * np.float32(2) + c[0, j]

    x, a, c = arrays(6, 777)
    outs = []
    for strategy in ("unfused", "fused"):
        out, d = c.copy(), c.copy()
        with fq.fusion(queue, strategy=strategy) as f:
            queue.submit(sums, 777, x, a, out)
            queue.submit(scale, 777, out, d)
        queue.wait()
        outs.append((out, d))
    assert [stage.vectors_at_once for stage in f.report.stages] == [8]
    np.testing.assert_array_equal(outs[0], outs[1])


def test_profiles_have_the_same_result(queue: fq.FusionQueue) -> None:
    x, a, c = arrays(30, 777)
    wanted = c.copy()
    queue.submit(guarded, 777, x, a, wanted)
    with fq.profile(queue) as profile:
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(guarded, 777, x, a, c)
        queue.wait()
    assert f.report.stages[0].vectors_at_once == 8 and "guarded" in str(profile)
    np.testing.assert_array_equal(c, wanted)


def test_along_rows_a_kernel_is_well_formed(queue: fq.FusionQueue) -> None:
    x, a, c = arrays(30, 777)
    lanes = queue._state.launcher.backend.target.sub_group_size
    for kernel in (sums, sweep, largest, guarded):
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(kernel, 777, x, a, c)
        queue.wait()
        (stage,) = f.report.plan.stages
        made = along_rows(stage.kernel)
        verify(made)
        assert made.sub_group_size == lanes
        names = [name for name, _ in made.variables]
        assert len(names) == len(set(names)) and all(map(str.isidentifier, names))


def test_unfused_launches_are_the_users_own(queue: fq.FusionQueue) -> None:
    x, a, c = arrays(6, 777)
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(sums, 777, x, a, c)
    queue.wait()
    assert f.report.stages[0].vectors_at_once == 1


def test_replays_take_other_scalars_and_sizes(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def first(item: fq.Item, n: int, a: Array, c: Array) -> None:
        j = item.get_id(0)
        total = np.float32(0)
        for k in range(n):
            total += a[k, j]
        c[0, j] = total

    for columns in (300, 301, 900, 20):
        _, a, c = arrays(8, columns)
        for n in (8, 3, 0, 5):
            run(queue, first, (columns,), n, a, c)


LINES = st.lists(
    st.sampled_from(
        (
            "s += x[k] * a[k, j]",
            "s = s - a[k, j]",
            "if a[k, j] > 0: s += x[k]",
            "if x[k] > 0: s = max(s, a[k, j])",
            "if j % 2 == 0: s = s * a[k, j]; c[k, j] = s",
            "t = s * a[k, j]; s = t + x[k]",
            "for m in range(2): s += a[k, j] * np.float32(m)",
            "for m in range(k): s += a[m, j]",
            "c[k, j] = s",
            "c[k, j] = c[k, j] * a[k, j] + c[max(k - 1, 0), j]",
            "n += 1",
            "if s > 1: n += k",
        )
    ),
    min_size=1,
    max_size=5,
)
AROUND = (
    "",
    "if 2 <= j < c.shape[1] - limit:",
    "if j > 0:",
    "if j < limit * 40 or limit > 5:",
    "if not (limit >= 3):",
)


@pytest.mark.slow
@examples(150)
@given(LINES, st.sampled_from(AROUND), st.integers(1, 5), st.integers(1, 700), st.integers(0, 9))
def test_random_bodies(
    queue: fq.FusionQueue, lines: list[str], around: str, rows: int, columns: int, limit: int
) -> None:
    pad = "    " if around else ""
    text = [
        "def random_body(item: fq.Item, limit: int, x: Array, a: Array, c: Array) -> None:",
        "    j = item.get_id(0)",
        "    s = np.float32(0)",
        "    n = 0",
        *([f"    {around}"] if around else []),
        f"    {pad}for k in range(a.shape[0]):",
    ]
    for line in lines:
        head, *rest = line.split("; ")
        text.append(f"    {pad}    {head}")
        text += [f"    {pad}    {part}" for part in rest]
    text += ["    c[0, j] = c[0, j] + s + np.float32(n)"]
    kernel = from_text("\n".join(text) + "\n")
    x, a, c = arrays(rows, columns)
    run(queue, kernel, (columns,), limit, x, a, c)
