"""Persistent kernels through the public interface: right, whatever depends on whatever."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq
from fusionq.base.options import Strategy
from fusionq.base.target import Target
from fusionq.cache.plan_cache import PLANS
from fusionq.kernels.library import Array
from fusionq.megakernel import schedule, tiling
from fusionq.megakernel.order import waves

Floats = npt.NDArray[np.float32]
Submit = Callable[[fq.FusionQueue, list[fq.Buffer]], None]


@fq.kernel
def blur(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i] + a[i + 1]
    else:
        b[i] = a[i]


@fq.kernel
def five_point(item: fq.Item, a: Array, b: Array, scale: np.float32) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = scale * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    else:
        b[i, j] = a[i, j]


@fq.kernel
def seven_point(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    k = item.get_id(2)
    inside = i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1
    if inside and k > 0 and k < a.shape[2] - 1:
        b[i, j, k] = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j, k + 1]


@fq.kernel
def reversed_copy(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    b[i] = a[item.get_range(0) - 1 - i] + 1


@fq.kernel
def transposed(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    b[j, i] = a[i, j] + 1


@fq.kernel
def slab_sums(item: fq.Item, a: Array, sums: Array, length: np.int64) -> None:
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(i * length, (i + 1) * length):
        total = total + a[k]
    sums[i] = total


@fq.kernel
def total_of(item: fq.Item, sums: Array, total: Array) -> None:
    value = np.float32(0)
    for k in range(sums.shape[0]):
        value = value + sums[k]
    total[item.get_id(0)] = value


@fq.kernel
def divided(item: fq.Item, a: Array, total: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = a[i] / total[0]


@fq.kernel
def gathered(item: fq.Item, a: Array, places: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = a[places[i]]


@fq.kernel
def group_sum(item: fq.NdItem, a: Array, out: Array) -> None:
    i = item.get_global_id(0)
    out[i] = fq.reduce_over_group(item.get_group(), a[i], "add")


@fq.kernel
def ring(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    up = i - 1 if i > 0 else n - 1
    down = i + 1 if i < n - 1 else 0
    b[i] = 0.5 * a[up] + a[i] - 0.25 * a[down]


@fq.kernel
def inner(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    b[i, j] = a[i - 1, j] + 0.5 * a[i + 1, j] - a[i, j - 1] + 0.25 * a[i, j + 1]


@fq.kernel
def border_rows(item: fq.Item, a: Array) -> None:
    j = item.get_id(0)
    n = a.shape[0]
    a[0, j] = a[n - 2, j]
    a[n - 1, j] = a[1, j]


@fq.kernel
def border_columns(item: fq.Item, a: Array) -> None:
    i = item.get_id(0)
    m = a.shape[1]
    a[i, 0] = a[i, m - 2]
    a[i, m - 1] = a[i, 1]


def steps(kernel: object, count: int, shape: tuple[int, ...], *scalars: float) -> Submit:
    def submit(queue: fq.FusionQueue, buffers: list[fq.Buffer]) -> None:
        a, b = buffers
        for _ in range(count):
            queue.submit(kernel, shape, a, b, *scalars)
            a, b = b, a

    return submit


def bordered(queue: fq.FusionQueue, buffers: list[fq.Buffer]) -> None:
    a, b = buffers
    n, m = a.shape
    for _ in range(5):
        queue.submit(border_columns, n, a)
        queue.submit(border_rows, m, a)
        queue.submit(inner, (n - 2, m - 2), a, b)
        a, b = b, a
    queue.submit(border_rows, m, a)


def normalise(queue: fq.FusionQueue, buffers: list[fq.Buffer]) -> None:
    a, sums, total, out = buffers
    queue.submit(slab_sums, sums.shape[0], a, sums, a.shape[0] // sums.shape[0])
    queue.submit(total_of, 1, sums, total)
    queue.submit(divided, a.shape[0], a, total, out)


def transposes(queue: fq.FusionQueue, buffers: list[fq.Buffer]) -> None:
    for a, b in itertools.pairwise(buffers):
        queue.submit(transposed, a.shape, a, b)


def gathers(queue: fq.FusionQueue, buffers: list[fq.Buffer]) -> None:
    a, b, places, out = buffers
    queue.submit(reversed_copy, a.shape[0], a, b)
    queue.submit(gathered, a.shape[0], b, places, out)
    queue.submit(reversed_copy, a.shape[0], out, a)


def overlapping(queue: fq.FusionQueue, buffers: list[fq.Buffer]) -> None:
    (a,) = buffers
    half = a.shape[0] // 2
    for k in range(4):
        queue.submit(reversed_copy, half - 8, a[k : half - 8 + k], a[half - k : 2 * half - 8 - k])


def numbers(*shape: int) -> Floats:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 13


def zeros(*shape: int) -> Floats:
    return np.zeros(shape, np.float32)


CASES: dict[str, tuple[Submit, list[npt.NDArray[np.generic]]]] = {
    "1-D stencil": (steps(blur, 7, (1301,)), [numbers(1301), zeros(1301)]),
    "2-D stencil": (steps(five_point, 5, (37, 53), 0.25), [numbers(37, 53), zeros(37, 53)]),
    "3-D stencil": (steps(seven_point, 3, (12, 10, 17)), [numbers(12, 10, 17), zeros(12, 10, 17)]),
    "reversed": (steps(reversed_copy, 4, (2047,)), [numbers(2047), zeros(2047)]),
    "transposes": (transposes, [numbers(40, 60), zeros(60, 40), zeros(40, 60)]),
    "normalise": (normalise, [numbers(6400), zeros(64), zeros(1), zeros(6400)]),
    "gathers": (
        gathers,
        [numbers(1500), zeros(1500), np.random.default_rng(0).permutation(1500), zeros(1500)],
    ),
    "overlapping views": (overlapping, [numbers(5000)]),
    "ring": (steps(ring, 6, (9000,)), [numbers(9000), zeros(9000)]),
    "borders": (bordered, [numbers(70, 63), zeros(70, 63)]),
}


PIPELINES = {"1-D stencil", "2-D stencil", "ring", "borders"}


def outcome(
    queue: fq.FusionQueue, name: str, strategy: Strategy
) -> tuple[list[npt.NDArray[np.generic]], fq.Report]:
    submit, arrays = CASES[name]
    buffers = [fq.Buffer(array) for array in arrays]
    with fq.fusion(queue, strategy=strategy) as f:
        submit(queue, buffers)
    f.replay().wait()
    return [buffer.numpy().copy() for buffer in buffers], f.report


@pytest.mark.parametrize("name", CASES)
def test_equals_the_unfused_run(queue: fq.FusionQueue, name: str) -> None:
    expected, _ = outcome(queue, name, "unfused")
    found, report = outcome(queue, name, "megakernel")
    assert report.strategy == "megakernel", report.fallback
    assert len(report.stages) == 1
    assert "waits for" in str(report)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", CASES)
def test_so_does_what_leaves_the_caches(
    queue: fq.FusionQueue, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists that are pipelines go through memory once for several stages, in a skewed order."""
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    monkeypatch.setattr(PLANS, "_plans", OrderedDict())
    monkeypatch.setattr(Target, "held_bytes", 0)
    large = tiling._large

    def not_small(extents: Any, tiles: Any, target: Target) -> Any:
        return large(extents, tiles, replace(target, small_stage_parts=4))

    monkeypatch.setattr(tiling, "_large", not_small)
    monkeypatch.setattr(tiling, "_pipelined_items", lambda *_: 100)
    blocks: list[int] = []

    def seen(*given: Any) -> Any:
        blocks.append(given[2])
        return waves(*given)

    monkeypatch.setattr(schedule, "waves", seen)
    expected, _ = outcome(queue, name, "unfused")
    found, report = outcome(queue, name, "megakernel")
    assert report.strategy == "megakernel", report.fallback
    assert max(blocks) > 1 or name not in PIPELINES
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_size_is_the_same_plan(queue: fq.FusionQueue) -> None:
    caches = []
    for n in (5003, 7001):
        a, b = fq.Buffer(numbers(n)), fq.Buffer(n, np.float32)
        with fq.fusion(queue, strategy="megakernel") as f:
            steps(blur, 3, (n,))(queue, [a, b])
        caches.append(f.report.cache)
        c, d = fq.Buffer(numbers(n)), fq.Buffer(n, np.float32)
        steps(blur, 3, (n,))(queue, [c, d])
        np.testing.assert_array_equal(b.numpy(), d.numpy())
    assert caches[1:] == ["memory"]


def test_scalars_of_each_step(queue: fq.FusionQueue) -> None:
    shape = (33, 47)
    found = []
    for strategy in ("unfused", "megakernel"):
        a, b = fq.Buffer(numbers(*shape)), fq.Buffer(zeros(*shape))
        with fq.fusion(queue, strategy=strategy) as f:  # type: ignore[arg-type]
            for k in range(4):
                queue.submit(five_point, shape, a, b, np.float32(0.25 + k))
                a, b = b, a
        assert f.report.strategy == strategy
        found.append((a.numpy().copy(), b.numpy().copy()))
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_scalar_that_the_waits_depend_on_may_change(queue: fq.FusionQueue) -> None:
    n = 1280
    for length in (20, 10, 5):
        found = []
        for strategy in ("unfused", "megakernel"):
            a, sums = fq.Buffer(numbers(n)), fq.Buffer(zeros(64))
            out = fq.Buffer(zeros(n))
            with fq.fusion(queue, strategy=strategy):  # type: ignore[arg-type]
                queue.submit(reversed_copy, n, a, out)
                queue.submit(slab_sums, 64, out, sums, length)
                queue.submit(divided, n, out, sums, a)
            found.append((a.numpy().copy(), sums.numpy().copy()))
        for x, y in zip(*found, strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_stage_with_group_functions_is_one_of_the_kernels(queue: fq.FusionQueue) -> None:
    n = 2048
    found = []
    for strategy in ("unfused", "megakernel"):
        a, b, c = (fq.Buffer(numbers(n).astype(np.int64)) for _ in range(3))
        with fq.fusion(queue, strategy=strategy) as f:  # type: ignore[arg-type]
            queue.submit(reversed_copy, n, a, b)
            queue.submit(reversed_copy, n, b, c)
            queue.submit(group_sum, fq.NdRange((n,), (64,)), c, a)
            queue.submit(reversed_copy, n, a, b)
            queue.submit(reversed_copy, n, b, c)
        found.append([x.numpy().copy() for x in (a, b, c)])
    assert [len(stage.submissions) for stage in f.report.stages] == [5]
    assert f.report.fallback is None
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


def test_an_empty_range_runs_as_launches(queue: fq.FusionQueue) -> None:
    n = 1500
    a, b = fq.Buffer(numbers(n)), fq.Buffer(zeros(n))
    with fq.fusion(queue, strategy="megakernel") as f:
        queue.submit(reversed_copy, n, a, b)
        queue.submit(reversed_copy, 0, b, a)
        queue.submit(reversed_copy, n, b, a)
    assert f.report.strategy != "megakernel"
    assert "empty" in (f.report.fallback or "")
    np.testing.assert_array_equal(a.numpy(), numbers(n) + 2)


def test_promoted_temporaries_inside_a_stage(queue: fq.FusionQueue) -> None:
    n = 3000
    a, c, d = fq.Buffer(numbers(n)), fq.Buffer(n, np.float32), fq.Buffer(n, np.float32)
    t = fq.Buffer(np.full(n, -1, np.float32), promote_private=True)
    with fq.fusion(queue, strategy="megakernel") as f:
        queue.submit(doubled, n, a, t)
        queue.submit(doubled, n, t, c)
        queue.submit(reversed_copy, n, c, d)
        queue.submit(reversed_copy, n, d, a)
    assert f.report.strategy == "megakernel"
    assert [p.scope for p in f.report.promotions] == ["private"]
    np.testing.assert_array_equal(a.numpy(), 4 * numbers(n) + 2)
    np.testing.assert_array_equal(t.numpy(), -1)


@fq.kernel
def doubled(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    b[i] = a[i] + a[i]
