"""Rows that come to workers by rings: long lists of products, whose tables leave one worker of a
multiprocessor, have the bits of the unfused run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import MegakernelStalled
from fusionq.base.options import SLOT_BYTES, Candidate
from fusionq.cache.plan_cache import PLANS
from fusionq.codegen import queue_layout as q
from fusionq.codegen.cuda import rings
from fusionq.codegen.ring_shape import ring_shape
from fusionq.ir.nodes import Persistent
from fusionq.megakernel.launch import PersistentLaunch
from tests.conformance.test_persistent import control_words, made
from tests.unit.cuda.test_streams import product, weighed

__all__ = ["made"]

STAGES = 256


@pytest.fixture(params=[rings.BULK_COPIES, "false"], ids=["bulk", "16 bytes"], autouse=True)
def copies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """How rings are filled: as the GPU can, and as GPUs before sm_90 do."""
    monkeypatch.setattr(rings, "BULK_COPIES", request.param)
    PLANS.clear()  # what was compiled the other way
    yield
    PLANS.clear()


@fq.kernel
def product_of_two(item: fq.NdItem, a, b, x, out):
    """Two loops of a work-group over the same vector, to another end each; of bfloat16."""
    row = item.get_global_id(0)
    one = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        one += np.float32(a[row, k]) * x[k]
    total = fq.reduce_over_group(item.get_group(), one, "add")
    other = np.float32(0)
    for k in range(item.get_local_id(1), b.shape[1], 128):
        other += np.float32(b[row, k]) * x[k]
    total -= fq.reduce_over_group(item.get_group(), other, "add")
    if item.get_local_id(1) == 0:
        out[row] = total / (np.float32(1) + abs(total))  # never too large


def matrix(rng: np.random.Generator, rows: int, columns: int) -> Any:
    return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)


@pytest.mark.parametrize("width", [1024, 1000, 1500, 4100, 96])
def test_products(queue: fq.FusionQueue, width: int) -> None:
    """Rows of whole slots, with a rest, of less than a slot; and such that begin where bulk copies
    cannot, which are read where they lie."""
    rng = np.random.default_rng(width)
    n = 2 * width
    weights = [fq.Buffer(matrix(rng, n, width)) for _ in range(4)]
    start = rng.standard_normal(width).astype(np.float32)
    results = []
    for strategy in ("unfused", "megakernel"):
        x, y = fq.Buffer(start), fq.Buffer(np.zeros(width, np.float32))
        with fq.fusion(queue, strategy=strategy, require=strategy == "megakernel") as f:
            for k in range(STAGES):
                queue.submit(
                    product, fq.NdRange((width, 128), (1, 128)), weights[k % 4], x, y
                )
                x, y = y, x
        for _ in range(3):
            f.replay()
        results.append((x.numpy().copy(), y.numpy().copy()))
    assert "fq_ring_full" in str(f.report.device_source)
    for one, other in zip(*results, strict=True):
        assert np.isfinite(one).all() and one.any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("widths", [(2048, 1024), (1032, 2056), (700, 1024)])
def test_loops_of_one_stage(queue: fq.FusionQueue, widths: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(widths))
    n = max(widths)
    pairs = [
        [fq.Buffer(matrix(rng, n, columns), fq.bfloat16) for columns in widths] for _ in range(3)
    ]
    start = rng.standard_normal(n).astype(np.float32)
    results = []
    for strategy in ("unfused", "megakernel"):
        x, y = fq.Buffer(start), fq.Buffer(np.zeros(n, np.float32))
        with fq.fusion(queue, strategy=strategy, require=strategy == "megakernel") as f:
            for k in range(STAGES):
                a, b = pairs[k % 3]
                queue.submit(product_of_two, fq.NdRange((n, 128), (1, 128)), a, b, x, y)
                x, y = y, x
        f.replay()
        results.append((x.numpy().copy(), y.numpy().copy()))
    for one, other in zip(*results, strict=True):
        assert np.isfinite(one).all() and one.any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", SLOT_BYTES)
@pytest.mark.parametrize("width", [1024, 1500, 4100])
def test_slots_of_other_sizes(queue: fq.FusionQueue, width: int, name: Candidate) -> None:
    """Rows of whole slots, with a rest, of less than a slot."""
    rng = np.random.default_rng(width)
    weights = [fq.Buffer(matrix(rng, 2 * width, width)) for _ in range(4)]
    start = rng.standard_normal(width).astype(np.float32)
    results = []
    candidates: tuple[Candidate, ...] = ("unfused", name)
    for candidate in candidates:
        x, y = fq.Buffer(start), fq.Buffer(np.zeros(width, np.float32))
        fusion = fq.fusion(queue)
        fusion._options = fusion._options.of_candidate(candidate)
        with fusion:
            for k in range(STAGES):
                queue.submit(product, fq.NdRange((width, 128), (1, 128)), weights[k % 4], x, y)
                x, y = y, x
        for _ in range(3):
            fusion.replay()
        results.append((x.numpy().copy(), y.numpy().copy()))
    report, slots = fusion.report, SLOT_BYTES[name]
    assert report.strategy == "megakernel"
    ((body,),) = (stage.kernel.body for stage in report.plan.stages)
    assert isinstance(body, Persistent)
    if ring_shape(replace(body, slot_bytes=slots), queue._state.target) is not None:
        assert f"slots of {slots:,} bytes" in str(report)
    for one, other in zip(*results, strict=True):
        assert np.isfinite(one).all() and one.any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("count", [0, 1, 100, 119, 2048, 2100])
def test_stages_that_read_no_rows(queue: fq.FusionQueue, count: int) -> None:
    """Their loops load for many iterations together, what is left over under masks; replays have
    other numbers of iterations."""
    width = 2176
    rng = np.random.default_rng(count)
    weights = [fq.Buffer(matrix(rng, 2 * 128, width)) for _ in range(4)]
    start = rng.standard_normal(width).astype(np.float32)
    results = []
    for strategy in ("unfused", "megakernel"):
        x, y = fq.Buffer(start), fq.Buffer(np.flip(start).copy())
        sums = fq.Buffer(np.zeros(STAGES // 2, np.float32))
        with fq.fusion(queue, strategy=strategy, require=strategy == "megakernel") as f:
            for k in range(STAGES):
                space = fq.NdRange((128, 128), (1, 128))
                queue.submit(product, space, weights[k % 4], x, y)
                x, y = y, x
                if k % 16 == 0:
                    one = fq.NdRange((8, 128), (1, 128))
                    queue.submit(weighed, one, count, x, y, sums[k // 2 : k // 2 + 8])
        for more in (count, 130):
            f.replay(count=more)
            results.append((x.numpy().copy(), y.numpy().copy(), sums.numpy().copy()))
    assert "together_1_0" in str(f.report.device_source)
    for unfused, fused in zip(results[:2], results[2:], strict=True):
        for one, other in zip(unfused, fused, strict=True):
            assert np.isfinite(one).all() and (one.any() or count == 0)
            np.testing.assert_array_equal(one, other)


@fq.kernel
def slow_product(item: fq.NdItem, a, x, out, rounds):
    """Takes long, for an unknown number of rounds, in its last work-group only."""
    row = item.get_global_id(0)
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        own += a[row, k] * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        turns = 0
        k = 0
        while row == out.shape[0] - 1 and k < rounds:
            turns += (turns ^ k) & 1
            k += 1
        out[row] = total / (np.float32(1) + abs(total)) + np.float32(0) * np.float32(turns)


def slow_list(queue: fq.FusionQueue, width: int = 96) -> tuple[fq.Fusion, fq.Buffer, fq.Buffer]:
    """A list of products, of which only the first may take long, and its two vectors."""
    rng = np.random.default_rng(width)
    weights = [fq.Buffer(matrix(rng, width, width)) for _ in range(4)]
    x = fq.Buffer(rng.standard_normal(width).astype(np.float32))
    y = fq.Buffer(np.zeros(width, np.float32))
    space = fq.NdRange((width, 128), (1, 128))
    with fq.fusion(queue, strategy="megakernel", require=True) as f:
        for k in range(STAGES):
            source, to = (x, y) if k % 2 == 0 else (y, x)
            queue.submit(slow_product, space, weights[k % 4], source, to, 10 if k == 0 else 0)
    f.event.wait()
    assert "fq_ring_full" in str(f.report.device_source)
    return f, x, y


def test_a_stall_says_where_and_the_queue_goes_on(
    queue: fq.FusionQueue, made: list[PersistentLaunch]
) -> None:
    f, x, y = slow_list(queue)
    start, (launch,) = (x.numpy().copy(), y.numpy().copy()), made
    f.replay().wait()
    expected = x.numpy().copy(), y.numpy().copy()
    launch.set_scalar("spin_limit", 3)
    with control_words(launch) as words:
        words[q.FIRST_COUNTER :, 0] -= np.uint32(1)
    event = f.replay()
    with pytest.raises(MegakernelStalled, match=r"gave up waiting for stage \d+"):
        event.wait()
    launch.set_scalar("spin_limit", 1 << 30)
    for vector, values in zip((x, y), start, strict=True):
        vector.write(values)
    f.replay().wait()
    for vector, values in zip((x, y), expected, strict=True):
        np.testing.assert_array_equal(vector.numpy(), values)


def test_a_tile_that_takes_long_is_no_stall(
    queue: fq.FusionQueue, made: list[PersistentLaunch]
) -> None:
    """Pollers wait for the next instruction while their worker does a long one."""
    f, x, y = slow_list(queue)
    start, (launch,) = (x.numpy().copy(), y.numpy().copy()), made
    f.replay().wait()
    expected = x.numpy().copy(), y.numpy().copy()
    launch.set_scalar("spin_limit", 2000)  # stalls when it has seen nobody at work twice
    for vector, values in zip((x, y), start, strict=True):
        vector.write(values)
    f.replay(rounds=20_000_000).wait()
    for vector, values in zip((x, y), expected, strict=True):
        np.testing.assert_array_equal(vector.numpy(), values)
