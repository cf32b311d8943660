"""Kernels whose work-items go through a range in turns, or in chunks: nothing changes where they
are done as work-items of that range, and they are not where something goes from turn to turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array
from tests.in_turn import one_in

SIZES = (1, 2, 7, 16, 63, 100, 1037)
CHUNK = 8


@pytest.fixture
def queue(sycl_queue: fq.FusionQueue) -> Iterator[fq.FusionQueue]:
    """A queue of a CPU with lanes."""
    if not sycl_queue._state.launcher.backend.target.device.jams_rows:
        pytest.skip("turns stay where work-items are no lanes")
    yield sycl_queue


def run(
    queue: fq.FusionQueue, kernels: Any, items: Any, arrays: Any, *more: Any, **options: Any
) -> fq.Report:
    """The report of a list of ``kernels``, each of which has all arrays and ``more``: they become
    what the reference backend makes of them, bit for bit."""
    results = []
    for own in (fq.FusionQueue("reference"), queue):
        buffers = [fq.Buffer(array.copy()) for array in arrays]
        way = options if own is queue or "require" in options else {"strategy": "unfused"}
        with fq.fusion(own, **way) as f:
            for kernel in kernels:
                own.submit(kernel, items, *buffers, *more)
        results.append([buffer.numpy().copy() for buffer in buffers])
        report = f.report
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    return report


def are_items(report: fq.Report) -> bool:
    """Whether all launches are over what their kernels go through."""
    return all(stage.extents for stage in report.plan.stages)


def numbers(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(shape[0]).integers(-99, 99, shape).astype(dtype)


# ------------------------------------------------------------------------------------ strides
@fq.kernel
def strided(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        b[i] = a[i] * 2 + 1


@fq.kernel
def strided_while(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    i = item.get_id(0)
    step = item.get_range(0)
    while i < n:
        b[i] = b[i] + a[i]
        i += step


@fq.kernel
def by_extent(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    factor = np.float32(n) * 3
    for i in range(item.get_id(0), a.shape[0], item.get_range(0)):
        x = a[i]
        for k in range(4):
            if k + i > 5:
                break
            x += factor
        if x > 0:
            b[i] = x
        elif i > 0:
            b[i] = a[i - 1]


@fq.kernel
def narrow(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    i = np.int32(item.get_id(0))
    for k in range(i, n, np.int32(item.get_range(0))):
        b[k] = a[k] - 1


# ------------------------------------------------------------------------------------- chunks
@fq.kernel
def chunk(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for k in range(CHUNK):
        i = item.get_id(0) * CHUNK + k
        if i < n:
            b[i] = a[i] * 2 - b[i]


@fq.kernel
def chunk_of_range(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    start = item.get_id(0) * CHUNK
    for i in range(start, min(start + CHUNK, n)):
        b[i] = a[i] * 3


@fq.kernel
def chunk_by_argument(item: fq.Item, a: Array, b: Array, n: Any, each: Any) -> None:
    i = item.get_id(0)
    for k in range(each * i, min(n, (i + 1) * each)):
        b[k] = a[k] + 7


@pytest.mark.parametrize("kernel", [strided, strided_while, by_extent, narrow])
def test_strides(queue: fq.FusionQueue, kernel: Any) -> None:
    for n in SIZES:
        for items in (1, 3, 64, 2 * n):
            report = run(queue, [kernel], items, [numbers(n), numbers(n) + 1], n)
            assert are_items(report)


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_chunks(queue: fq.FusionQueue, dtype: str) -> None:
    for n in SIZES:
        arrays = [numbers(n, dtype=dtype), numbers(n, dtype=dtype)]
        items = -(-n // CHUNK)
        for kernel in (chunk, chunk_of_range):
            assert are_items(run(queue, [kernel], items, arrays, n))
            assert are_items(run(queue, [kernel], items + 3, arrays, n))
            if items > 1:  # which leave out some
                assert not are_items(run(queue, [kernel], items - 1, arrays, n))
        for items in (1, 4, n):
            each = -(-n // items)
            assert are_items(run(queue, [chunk_by_argument], items, arrays, n, each))
            run(queue, [chunk_by_argument], items, arrays, n, each - 1)
            run(queue, [chunk_by_argument], items, arrays, n, 0)
            run(queue, [chunk_by_argument], items, arrays, n, -3)


@fq.kernel
def of_groups(item: fq.NdItem, a: Array, b: Array, n: Any) -> None:
    group = item.get_group()
    i = group.get_group_id(0) * item.get_local_range(0) + item.get_local_id(0)
    stride = item.get_local_range(0) * group.get_group_range(0)
    while i < n:
        b[i] = a[i] * 5
        i += stride


@fq.kernel
def knows_its_group(item: fq.NdItem, a: Array, b: Array, n: Any) -> None:
    group = item.get_group()
    for i in range(item.get_global_id(0), n, item.get_global_range(0)):
        b[i] = a[i] * 5 + group.get_group_id(0)


def test_work_groups(queue: fq.FusionQueue) -> None:
    for n in SIZES:
        arrays = [numbers(n), numbers(n)]
        for items in (fq.NdRange(16, 16), fq.NdRange(48, 8)):
            assert are_items(run(queue, [of_groups], items, arrays, n))
            assert not are_items(run(queue, [knows_its_group], items, arrays, n))


# ---------------------------------------------------------------------------- what is left alone
@fq.kernel
def carried(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    total = np.float32(0)
    for i in range(item.get_id(0), n, item.get_range(0)):
        total += a[i]
        b[i] = total


@fq.kernel
def kept(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    last = np.float32(3)
    for i in range(item.get_id(0), n, item.get_range(0)):
        if a[i] > 0:
            last = a[i]
        b[i] = last


@fq.kernel
def ended(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        if a[i] < -50:
            break
        b[i] = a[i]


@fq.kernel
def of_the_turn_before(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, 16):
        if i >= 16:
            b[i] = b[i - 16] + a[i]


@fq.kernel
def by_memory(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        b[0] = np.float32(i) if item.get_range(0) == 1 else np.float32(-1)


@fq.kernel
def read_behind(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        if i + 1 < n:
            b[i] = b[i + 1] + a[i]


@fq.kernel
def who_did_it(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    own = np.float32(item.get_id(0))
    for i in range(item.get_id(0), n, item.get_range(0)):
        b[i] = a[i] + own


@fq.kernel
def afterwards(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        b[i] = a[i]
    b[item.get_id(0)] = 9


@fq.kernel
def scattered(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        b[int(abs(a[i])) % n] = 1


@pytest.mark.parametrize(
    "kernel", [carried, kept, ended, by_memory, read_behind, who_did_it, afterwards, scattered]
)
def test_what_goes_from_turn_to_turn(queue: fq.FusionQueue, kernel: Any) -> None:
    for n in (3, 40, 100):
        # One work-item alone: what others would do at the same time may be anything.
        for items in (1, n) if kernel in (carried, kept, ended, who_did_it) else (1,):
            assert not are_items(run(queue, [kernel], items, [numbers(n), numbers(n)], n))


def test_steps_that_are_not_the_range(queue: fq.FusionQueue) -> None:
    report = run(queue, [of_the_turn_before], 16, [numbers(100), numbers(100)], 100)
    assert not are_items(report)


def test_a_part_of_the_arrays(queue: fq.FusionQueue) -> None:
    """No extent says how long the range is; nor does a plan for a whole array serve a part."""
    for n in (100, 99, 0, -5, 100, 1):
        report = run(queue, [strided], 16, [numbers(100), numbers(100)], n)
        assert are_items(report) == (n == 100)


def test_work_items_share_what_they_read(queue: fq.FusionQueue) -> None:
    assert are_items(run(queue, [neighbours], 16, [numbers(100), numbers(100)], 100))
    whole = numbers(101)
    a, b = whole[:100], whole[1:]
    results = []
    for own in (fq.FusionQueue("reference"), queue):
        whole[:] = numbers(101)
        own.submit(strided, 1, a, b, 100).wait()
        results.append(whole.copy())
    np.testing.assert_array_equal(*results)


@fq.kernel
def neighbours(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        if 0 < i < n - 1:
            b[i] = a[i - 1] + a[i + 1] * 2
        else:
            b[i] = a[i]


@fq.kernel
def back(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    for i in range(item.get_id(0), n, item.get_range(0)):
        a[i] = b[i] * 3


@fq.kernel
def plain(item: fq.Item, a: Array, b: Array, n: Any) -> None:
    i = item.get_id(0)
    b[i] = b[i] * 3 + a[i]


STRATEGIES = ("auto", "fused", "unfused", "megakernel", "overlap")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_lists(queue: fq.FusionQueue, strategy: Any) -> None:
    for n in one_in(3, (63, 1, 1037), first=STRATEGIES.index(strategy) % 3):
        arrays = [numbers(n), numbers(n)]
        run(queue, [neighbours, back] * 2, 64, arrays, n, strategy=strategy)
        report = run(queue, [strided, back, strided_while], 64, arrays, n, strategy=strategy)
        assert len(report.stages) == (3 if strategy == "unfused" else 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_beside_kernels_over_the_range(queue: fq.FusionQueue, strategy: Any) -> None:
    """One launch holds both; promotion and sizes that change are what they are elsewhere."""
    for n in one_in(3, (100, 101, 1000), first=STRATEGIES.index(strategy) % 3):
        given = numbers(n)
        results = []
        for own in (fq.FusionQueue("reference"), queue):
            a, b = fq.Buffer(given.copy()), fq.Buffer(n, np.float32, promote_private=True)
            c = fq.Buffer(np.ones(n, np.float32))
            with fq.fusion(own, strategy=strategy) as f:
                own.submit(strided, 16, a, b, n)
                own.submit(plain, n, b, c, n)
                own.submit(chunk, -(-n // CHUNK), c, a, n)
            results.append([a.numpy().copy(), c.numpy().copy()])
            f.replay()
            results[-1] += [a.numpy().copy(), c.numpy().copy()]
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)
        assert len(f.report.stages) == (3 if strategy == "unfused" else 1)


@pytest.mark.parametrize("options", [{"require": True}, {}])
def test_side_by_side(queue: fq.FusionQueue, options: Any) -> None:
    """Ranges of such launches are put together: there the turns stay."""
    arrays = [numbers(300) for _ in range(4)]
    results = []
    for own in (fq.FusionQueue("reference"), queue):
        a, b, c, d = (fq.Buffer(array.copy()) for array in arrays)
        with fq.fusion(own, strategy="fused", **options):
            own.submit(of_groups, fq.NdRange(16, 16), a, b, 300)
            own.submit(knows_its_group, fq.NdRange(64, 16), c, d, 300)
        results.append([x.numpy().copy() for x in (b, d)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
