"""Atomic operations of a persistent kernel that its workers do on copies of a small array: the
results are those of one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array
from tests.property.running import needs_device

TARGETS = ["reference", pytest.param(None, marks=needs_device)]


@fq.kernel
def spread(item: fq.Item, a: Array, b: Array) -> None:
    """Makes the next stage wait."""
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] * 3 + 1


@fq.kernel
def added(item: fq.Item, a: Array, bins: Array) -> None:
    i = item.get_id(0)
    fq.AtomicRef(bins, a[i] % bins.shape[0]).fetch_add(a[i])


@fq.kernel
def subtracted(item: fq.Item, a: Array, bins: Array) -> None:
    i = item.get_id(0)
    if a[i] % 3 > 0:
        fq.AtomicRef(bins, i % bins.shape[0]).fetch_sub(a[i])
    else:
        fq.AtomicRef(bins, 0).fetch_add(1)


@fq.kernel
def least(item: fq.Item, a: Array, bins: Array) -> None:
    i = item.get_id(0)
    fq.AtomicRef(bins, a[i] % bins.shape[0]).fetch_min(-a[i])


@fq.kernel
def most(item: fq.Item, a: Array, bins: Array) -> None:
    i = item.get_id(0)
    for k in range(3):
        fq.AtomicRef(bins, (a[i] + k) % bins.shape[0]).fetch_max(a[i] - k)


@fq.kernel
def bits(item: fq.Item, a: Array, bins: Array) -> None:
    i = item.get_id(0)
    fq.AtomicRef(bins, a[i] % bins.shape[0]).fetch_xor(a[i])


@fq.kernel
def taken(item: fq.Item, a: Array, bins: Array) -> None:
    """Asks for a result."""
    i = item.get_id(0)
    if fq.AtomicRef(bins, 0).fetch_add(0) >= 0:
        fq.AtomicRef(bins, a[i] % bins.shape[0]).fetch_add(1)


@fq.kernel
def released(item: fq.Item, a: Array, bins: Array) -> None:
    i = item.get_id(0)
    fq.AtomicRef(bins, a[i] % bins.shape[0], fq.MemoryOrder.ACQ_REL).fetch_add(1)


@fq.kernel
def two_kinds(item: fq.Item, a: Array, bins: Array) -> None:
    i = item.get_id(0)
    fq.AtomicRef(bins, 0).fetch_add(a[i])
    fq.AtomicRef(bins, 1).fetch_max(a[i])


@fq.kernel
def of_pairs(item: fq.Item, a: Array, bins: Array, counts: Array) -> None:
    """A table of two dimensions by one linear id, and a second array."""
    n = item.get_linear_id()
    i = n // 40
    j = n % 40
    if i > 0 and j < 39:
        fq.AtomicRef(bins, (a[n] % bins.shape[0], j % bins.shape[1])).fetch_add(1)
    fq.AtomicRef(counts, j % counts.shape[0]).fetch_or(1 << (i % 20))


def run(
    target: str | None, strategy: Any, kernel: Any, n: int, *bins: Any, dtype: Any = np.int64
) -> tuple[list[Any], str]:
    """The arrays behind a list with ``kernel`` between others, run twice, and its source."""
    with fq.FusionQueue(target) as queue:
        a = fq.Buffer(((np.arange(n) * 7919 + 13) % 1009 - 300).astype(dtype))
        b = fq.Buffer(np.zeros(n, dtype))
        changed = [fq.Buffer(array.copy()) for array in bins]
        with fq.fusion(queue, strategy=strategy, barriers="none") as f:
            queue.submit(spread, n, a, b)
            queue.submit(kernel, n, b, *changed)
            queue.submit(spread, n, b, a)
            queue.submit(kernel, n, a, *changed)
        f.replay()
        queue.wait()
        assert strategy == "unfused" or f.report.strategy == "megakernel"
        source = f.report.device_source if strategy == "megakernel" else ""
        return [array.numpy().copy() for array in (a, b, *changed)], source


OPERATIONS = (added, subtracted, least, most, bits)


def run_all(target: str | None, strategy: Any, n: int, start: Array) -> tuple[list[Any], str]:
    """As ``run``, with each of ``OPERATIONS`` on an array of its own; stages of one kernel."""
    with fq.FusionQueue(target) as queue:
        a = fq.Buffer(((np.arange(n) * 7919 + 13) % 1009 - 300).astype(start.dtype))
        b = fq.Buffer(np.zeros(n, start.dtype))
        changed = [fq.Buffer(start.copy()) for _ in OPERATIONS]
        with fq.fusion(queue, strategy=strategy, barriers="none") as f:
            for kernel, bins in zip(OPERATIONS, changed, strict=True):
                queue.submit(spread, n, a, b)
                queue.submit(kernel, n, b, bins)
                queue.submit(spread, n, b, a)
                queue.submit(kernel, n, a, bins)
        f.replay()
        queue.wait()
        assert strategy == "unfused" or f.report.strategy == "megakernel"
        source = f.report.device_source if strategy == "megakernel" else ""
        return [array.numpy().copy() for array in (a, b, *changed)], source


def check(target: str | None, own: bool, kernel: Any, n: int, *bins: Any, **more: Any) -> None:
    expected, _ = run(target, "unfused", kernel, n, *bins, **more)
    found, source = run(target, "megakernel", kernel, n, *bins, **more)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    if target is None:
        assert ("reduction_copy" in source) == own


@pytest.mark.in_turn
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
@pytest.mark.parametrize(("n", "size"), [(6000, 5), (900, 600), (30, 4)])
def test_every_operation(target: str | None, dtype: Any, n: int, size: int) -> None:
    start = np.arange(size).astype(dtype)
    n = n if target is None else n // 6
    expected, _ = run_all(target, "unfused", n, start)
    found, source = run_all(target, "megakernel", n, start)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    if target is None:
        stages = source.split("static void fq_stage_")[1:]
        for kernel in OPERATIONS:
            own = next(stage for stage in stages if f"// {kernel.__name__}\n" in stage)
            assert "reduction_copy" in own, kernel.__name__


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [3, 60])
def test_tables_by_linear_ids(target: str | None, rows: int) -> None:
    check(target, True, of_pairs, 4000, np.zeros((rows, 6), np.int64), np.zeros(9, np.int64))


@needs_device
def test_an_empty_array() -> None:
    @fq.kernel
    def nowhere(item: fq.Item, a: Array, bins: Array) -> None:
        if bins.shape[0] > 0:
            fq.AtomicRef(bins, 0).fetch_add(a[item.get_id(0)])

    check(None, True, nowhere, 500, np.zeros(0, np.int64))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [taken, released, two_kinds])
def test_what_shows_the_order_stays(target: str | None, kernel: Any) -> None:
    check(target, False, kernel, 600, np.arange(7))


@needs_device
def test_arrays_that_share_memory_stay() -> None:
    @fq.kernel
    def shares(item: fq.Item, a: Array, bins: Array, others: Array) -> None:
        i = item.get_id(0)
        fq.AtomicRef(bins, a[i] % bins.shape[0]).fetch_add(1)
        fq.AtomicRef(others, a[i] % others.shape[0]).fetch_add(2)

    def of(strategy: Any) -> tuple[Any, str]:
        with fq.FusionQueue() as queue:
            a, b = fq.Buffer(np.arange(800)), fq.Buffer(np.zeros(800, np.int64))
            bins = fq.Buffer(np.zeros(12, np.int64))
            with fq.fusion(queue, strategy=strategy) as f:
                queue.submit(spread, 800, a, b)
                queue.submit(shares, 800, b, bins[:8], bins[4:])
            queue.wait()
            return bins.numpy().copy(), f.report.device_source

    found, source = of("megakernel")
    np.testing.assert_array_equal(found, of("unfused")[0])
    assert "reduction_copy" not in source
