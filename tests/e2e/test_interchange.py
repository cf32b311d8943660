"""Tiles of persistent kernels whose lanes have another dimension than the last one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels.library import Array


@fq.kernel
def distances(item: fq.Item, points: Array, codes: Array, squares: Array) -> None:
    i = item.get_id(0)
    c = item.get_id(1)
    total = 0.0
    for d in range(points.shape[1]):
        difference = points[i, d] - codes[c, d]
        total += difference * difference
    squares[i, c] = total


@fq.kernel
def moved(item: fq.Item, squares: Array, codes: Array) -> None:
    """Makes the next stage wait for all of the one before."""
    c = item.get_id(0)
    n = squares.shape[0]
    for d in range(codes.shape[1]):
        codes[c, d] += squares[n - 1 - c, 0]


@fq.kernel
def edges(item: fq.Item, points: Array, codes: Array, squares: Array) -> None:
    i = item.get_id(0)
    c = item.get_id(1)
    if i > 2 and i < squares.shape[0] - 5 and c != 1:
        squares[i, c] = np.sqrt(codes[c, 0] * points[i, 0] + codes[c, 1] * points[i - 1, 0]) * 3.5
    elif c == 1 and i % 3 == 0:
        squares[i, c] = codes[c, 0] / (points[i, 1] + 1.5)
    else:
        squares[i, c] = -points[i, 0]


@fq.kernel
def sums(item: fq.Item, points: Array, codes: Array, partial: Array) -> None:
    block = item.get_id(0)
    c = item.get_id(1)
    d = item.get_id(2)
    length = points.shape[0] // partial.shape[0]
    total = 0.0
    for i in range(block * length, (block + 1) * length):
        if points[i, 0] * 10.0 > c:
            total += points[i, d]
    partial[block, c, d] = total


@fq.kernel
def columns(item: fq.Item, points: Array, turned: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    turned[j, i] = points[i, j] * 2.0 + turned[j, i]


@fq.kernel
def by_quotients(item: fq.Item, points: Array, turned: Array, m: np.int64) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    turned[j, i] += points[i % m, j] + float(i // m)


STAGES = ("distances", "edges", "sums", "columns", "by_quotients")


def run(
    queue: fq.FusionQueue, n: int, k: int, strategy: Any, more: int = 0, stages: Any = STAGES
) -> tuple[list[Any], str]:
    """``more``: submissions that give a list another structure, and so a plan of its own."""
    rng = np.random.default_rng(n)
    points = fq.Buffer(rng.random((n, 4)))
    codes = fq.Buffer(rng.random((k, 4)))
    squares, partial = fq.Buffer(np.zeros((n, k))), fq.Buffer(np.zeros((max(n // 16, 1), k, 4)))
    turned = fq.Buffer(np.zeros((4, n)))
    with fq.fusion(queue, strategy=strategy, barriers="none") as fused:
        for kernel in (distances, edges):
            if kernel.__name__ in stages:
                queue.submit(kernel, (n, k), points, codes, squares)
                queue.submit(moved, k, squares, codes)
        if "sums" in stages:
            queue.submit(sums, (max(n // 16, 1), k, 4), points, codes, partial)
            queue.submit(moved, k, squares, codes)
        if "columns" in stages:
            queue.submit(columns, (n, 4), points, turned)
            queue.submit(moved, 2, turned, codes)
        for _ in range(more):
            queue.submit(moved, 2, turned, codes)
        if "by_quotients" in stages:
            queue.submit(by_quotients, (n - 1, 3), points, turned, np.int64(20))
    assert strategy == "unfused" or fused.report.strategy == "megakernel", fused.report
    source = fused.report.device_source if strategy == "megakernel" else ""
    return [x.numpy().copy() for x in (codes, squares, partial, turned)], source


@pytest.mark.slow
def test_every_work_item_is_done_once_and_alike(
    sycl_queue: fq.FusionQueue, reference: fq.FusionQueue
) -> None:
    for more, n, k, names in (
        (0, 300, 8, {"distances", "sums", "by_quotients"}),
        (1, 41, 3, {"distances", "edges"}),
        (2, 33, 2, {"edges"}),
        (3, 523, 8, {"sums"}),
    ):
        found, source = run(sycl_queue, n, k, "megakernel", more)
        expected, _ = run(reference, n, k, "unfused", more)
        stages = source.split("static void fq_stage_")[1:]
        apart = {name for s in stages if "fq_strip" in s for name in re.findall(r"// (\w+)\n", s)}
        assert apart >= names, apart
        for number, arrays in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_array_equal(*arrays, err_msg=f"{n, k}, array {number}")


@pytest.mark.slow
def test_the_plan_serves_long_rows_by_rows(
    sycl_queue: fq.FusionQueue, reference: fq.FusionQueue
) -> None:
    """The same plan, whose kernel asks the tile."""
    held = ("distances", "edges")
    run(sycl_queue, 300, 5, "megakernel", 4, held)
    for n, k in ((310, 6), (100, 40), (70, 64)):
        found, _ = run(sycl_queue, n, k, "megakernel", 4, held)
        expected, _ = run(reference, n, k, "unfused", 4, held)
        for number, arrays in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_array_equal(*arrays, err_msg=f"{n, k}, array {number}")


def test_what_lanes_do_apart_is_asked_of_the_tile(sycl_queue: fq.FusionQueue) -> None:
    _, source = run(sycl_queue, 300, 5, "megakernel", 4, ("distances", "edges"))
    stage = next(s for s in source.split("static void fq_stage_")[1:] if "// distances" in s)
    cond = stage.partition("for (")[0]
    assert "(fq_last_0 - fq_first_0 + 1)" in cond and "<= " in cond
    columns, rows = (stage.index(f"const long fq_id_{d} = fq_start + fq_lane") for d in range(2))
    assert columns < rows
