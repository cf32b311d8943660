"""Launches whose work-items do several neighbours together: nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.kernels.library import Array
from fusionq.planning import jammed_launches
from tests.e2e.against_reference import run
from tests.e2e.kernels_from_text import from_text
from tests.property.running import examples

SHAPES = ((1, 1, 1), (3, 5, 2), (8, 7, 16), (9, 1, 17), (10, 6, 33), (33, 3, 5), (64, 8, 32))
"""Rows, length of the sums, columns."""


@pytest.fixture
def queue(
    sycl_queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fq.FusionQueue]:
    """A queue of a CPU all of whose launches do several items at once that may."""
    shortest = replace(jammed_launches.CODE_LIMITS, jammed_iterations=0)
    monkeypatch.setattr(jammed_launches, "CODE_LIMITS", shortest)
    backend = sycl_queue._state.launcher.backend
    if not backend.target.device.jams_items:
        pytest.skip("the device does not do several work-items at once")
    info = replace(backend.target.device, splits_rows=False)
    costs = replace(backend.target.costs, split_saved_seconds=0.0)
    backend.target = replace(backend.target, device=info, costs=costs, preferred_work_group=1)
    yield sycl_queue


def at_once(report: fq.Report) -> tuple[int, ...]:
    (stage,) = report.stages
    assert (f"{' × '.join(map(str, stage.items_at_once))} neighbours" in str(report)) == bool(
        stage.items_at_once
    )
    assert report.to_dict()["stages"][0]["items_at_once"] == list(stage.items_at_once)
    return stage.items_at_once


def arrays(rows: int, length: int, columns: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(rows + length)
    made = [rng.standard_normal(shape).astype("float32") for shape in (
        (rows, length), (length, columns), (rows, columns)
    )]  # fmt: skip
    return made[0], made[1], made[2]


@fq.kernel
def product(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    s = np.float32(0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@fq.kernel
def guarded(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if i < c.shape[0] - 1 and j < c.shape[1] - 1 and i >= 1:
        n = a.shape[1]
        s = c[i, j]
        for k in range(n):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@fq.kernel
def early(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    if i >= c.shape[0] - 2 or j >= c.shape[1]:
        return
    s = np.float32(0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@fq.kernel
def nearest(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """Conditions on data inside of the loop, and a variable that lives through it."""
    i, j = item.get_id(0), item.get_id(1)
    best = np.float32(1e30)
    at = 0
    for k in range(a.shape[1]):
        d = a[i, k] - b[k, j]
        if d * d < best:
            best = d * d
            at = k
    c[i, j] = best + np.float32(at)


@fq.kernel
def of_rows(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """Neighbours in the last dimension read elements that are far from each other."""
    i, j = item.get_id(0), item.get_id(1)
    s = np.float32(0)
    for k in range(min(a.shape[1], b.shape[1])):
        s += a[i, k] * b[j % b.shape[0], k]
    c[i, j] = s


@fq.kernel
def own_length(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """The loop of each row has a length of its own."""
    i, j = item.get_id(0), item.get_id(1)
    s = np.float32(0)
    for k in range(min(i, a.shape[1])):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@fq.kernel
def leaving(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    s = np.float32(0)
    t = 0
    for k in range(a.shape[1]):
        t += 1
        if a[i, k] > 0:
            break
        s += b[k, j]
    c[i, j] = s + np.float32(t)


@fq.kernel
def nested(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """Values that all rows share, a condition on the row around a part of the statements, and loops
    inside of each other, one of them downwards."""
    i, j = item.get_id(0), item.get_id(1)
    total = np.float32(0)
    count = 0
    for turn in range(2):
        count += 1
        for k in range(a.shape[1] - 1, -1, -1):
            total += a[i, k] * b[k, j]
        if i % 3 == turn:
            total = -total
        else:
            for k in range(i):
                total += np.float32(k)
    c[i, j] = total
    if i + 1 < c.shape[0] and count > 1:
        c[i, j] = total + np.float32(count)


@fq.kernel
def either(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """Both sides of a condition on the row have a loop, so that rows share little."""
    i, j = item.get_id(0), item.get_id(1)
    s = np.float32(0)
    if i < 4:
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
    else:
        for k in range(a.shape[1]):
            s -= b[k, j]
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@fq.kernel
def of_both_ids(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """A condition on both ids: of a triangle."""
    i, j = item.get_id(0), item.get_id(1)
    if j <= i:
        s = np.float32(0)
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@fq.kernel
def summed_in_memory(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """Each row reads what it has written in the iteration before."""
    i, j = item.get_id(0), item.get_id(1)
    for k in range(b.shape[0]):
        c[i, j] = c[i, j] * b[k, j] + np.float32(1)


@fq.kernel
def compared(item: fq.Item, a: Array, b: Array, c: Array) -> None:
    """What rows have in common is read once before the loop."""
    i, j = item.get_id(0), item.get_id(1)
    count = np.float32(0)
    for k in range(a.shape[1]):
        if a[i, k] < b[0, j]:
            count += np.float32(1)
    c[i, j] = count


JAMMED = (product, guarded, early, nearest, of_rows, nested, summed_in_memory)
LEFT_ALONE = (own_length, leaving, of_both_ids, either, compared)


@pytest.mark.in_turn
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", (*JAMMED, *LEFT_ALONE), ids=lambda k: k.__name__)
def test_the_result_is_the_same(
    queue: fq.FusionQueue, kernel: Any, shape: tuple[int, int, int]
) -> None:
    a, b, c = arrays(*shape)
    found = at_once(run(queue, kernel, c.shape, a, b, c))
    if kernel in LEFT_ALONE:
        assert not found
    elif shape[0] >= 33:
        assert found == ((2, 1) if kernel is nearest else (4, 1))


@pytest.mark.parametrize("rows", range(1, 13))
def test_ranges_and_arrays_end_anywhere(queue: fq.FusionQueue, rows: int) -> None:
    a, b, c = arrays(rows + 3, 4, 40)
    run(queue, guarded, (rows, 39), a, b, c)
    run(queue, early, (rows + 3, 40), a, b, c)


def test_negative_steps_and_columns(queue: fq.FusionQueue) -> None:
    a, b, c = arrays(23, 5, 64)
    run(queue, product, (23, 32), a[::-1], b[::-1, ::-2], c[::-1, ::2])


def test_one_buffer_is_both_arguments(queue: fq.FusionQueue) -> None:
    """What all rows read lies in the memory that they write, in columns that nobody reads."""

    @fq.kernel
    def beside(item: fq.Item, b: Array, c: Array) -> None:
        i, j = item.get_id(0), item.get_id(1)
        s = np.float32(0)
        for k in range(b.shape[0]):
            s += b[k, j]
            c[i, j] = s

    base = np.random.default_rng(1).standard_normal((24, 64)).astype("float32")
    expected = base.copy()
    with fq.FusionQueue("reference") as reference:
        reference.submit(beside, (24, 32), expected[:, :32], expected[:, 32:])
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(beside, (24, 32), base[:, :32], base[:, 32:])
    queue.wait()
    np.testing.assert_array_equal(base, expected)
    assert at_once(f.report) == (4, 1)


def test_the_dimension_that_shares_most_is_taken(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def channels(item: fq.Item, x: Array, w: Array, out: Array) -> None:
        o, i, j = item.get_id(0), item.get_id(1), item.get_id(2)
        s = np.float32(0)
        for c in range(x.shape[0]):
            for d in range(3):
                s += x[c, i + d, j] * w[o, c, d]
        out[o, i, j] = s

    rng = np.random.default_rng(5)
    x = rng.standard_normal((3, 12, 20)).astype("float32")
    w = rng.standard_normal((9, 3, 3)).astype("float32")
    out = np.zeros((9, 10, 20), "float32")
    assert at_once(run(queue, channels, out.shape, x, w, out)) == (4, 1, 1)


def test_what_follows_in_a_launch_stays_behind(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def scale(item: fq.Item, c: Array, d: Array) -> None:
        i, j = item.get_id(0), item.get_id(1)
        d[i, j] = c[i, j] * np.float32(2) + c[i, j]

    a, b, c = arrays(22, 4, 50)
    outs = []
    for strategy in ("unfused", "fused"):
        out, d = c.copy(), c.copy()
        with fq.fusion(queue, strategy=strategy) as f:
            queue.submit(guarded, c.shape, a, b, out)
            queue.submit(scale, c.shape, out, d)
        queue.wait()
        outs.append((out, d))
    assert [stage.items_at_once for stage in f.report.stages] == [(4, 1)]
    np.testing.assert_array_equal(outs[0], outs[1])


def test_unfused_launches_are_the_users_own(queue: fq.FusionQueue) -> None:
    a, b, c = arrays(64, 8, 64)
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(product, c.shape, a, b, c)
    queue.wait()
    assert not at_once(f.report)


def test_replays_take_other_scalars(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def scaled(item: fq.Item, n: int, a: Array, b: Array, c: Array) -> None:
        i, j = item.get_id(0), item.get_id(1)
        s = np.float32(0)
        for k in range(n):
            s += a[i, k] * b[k, j]
        c[i, j] = s

    a, b, c = arrays(30, 8, 40)
    for n in (8, 3, 0, 5):
        run(queue, scaled, c.shape, n, a, b, c)


OPERATIONS = st.lists(
    st.sampled_from(
        (
            "s += a[i, k] * b[k, j]",
            "s = s - b[k, j]",
            "if a[i, k] > 0: s += b[k, j]",
            "if j % 2 == 0: s = max(s, b[k, j])",
            "if i % 3 == 1: s -= a[i, k]",
            "t = s * b[k, j]; s = t + a[i, k]",
            "if i < j: s += np.float32(i)",
            "for m in range(2): s += b[k, j] * np.float32(m)",
            "for m in range(i % 2): s += b[k, j]",
            "c[i, j] = s",
            "n += 1",
        )
    ),
    min_size=1,
    max_size=5,
)
AROUND = (
    "",
    "if i < c.shape[0] - 1 and j > 0:",
    "if i > 1:",
    "if i < limit or j < 3:",
    "if not (i >= limit):",
    "if i % 4 != 1:",
)


@examples(150)
@given(
    OPERATIONS, st.sampled_from(AROUND), st.integers(1, 21), st.integers(1, 5), st.integers(0, 9)
)
def test_random_bodies(
    queue: fq.FusionQueue, lines: list[str], around: str, rows: int, length: int, limit: int
) -> None:
    pad = "    " if around else ""
    text = [
        "def random_body(item: fq.Item, limit: int, a: Array, b: Array, c: Array) -> None:",
        "    i, j = item.get_id(0), item.get_id(1)",
        "    s = np.float32(0)",
        "    n = 0",
        *([f"    {around}"] if around else []),
        f"    {pad}for k in range(a.shape[1]):",
    ]
    for line in lines:
        text += [f"    {pad}    {part}" for part in line.split("; ")]
    text += ["    c[i, j] = c[i, j] + s + np.float32(n)"]
    kernel = from_text("\n".join(text) + "\n")
    a, b, c = arrays(rows, length, 19)
    run(queue, kernel, c.shape, limit, a, b, c)
