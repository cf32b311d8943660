"""Mixed ranges: every id is the one of the unfused run; what has no common range runs apart."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq import NdRange

ROOM = 512


@fq.kernel
def ids(item: fq.Item, out):
    k = item.get_linear_id()
    out[k] = item.get_id(0) * 1_000 + item.get_linear_range()


@fq.kernel
def ids_2d(item: fq.Item, out):
    k = item.get_linear_id()
    out[k] = item.get_id(0) * 1_000_000 + item.get_id(1) * 1_000 + item.get_range(1)


@fq.kernel
def ids_3d(item: fq.Item, out):
    k = item.get_linear_id()
    out[k] = (item.get_id(0) * 100 + item.get_id(1)) * 100 + item.get_id(2)


@fq.kernel
def nd_ids(item: fq.NdItem, out):
    group = item.get_group()
    where = item.get_global_id(0) * 1_000_000 + item.get_local_id(0) * 10_000
    extents = item.get_global_range(0) * 10 + item.get_local_range(0)
    out[item.get_global_linear_id()] = where + group.get_group_id(0) * 100_000_000 + extents


@fq.kernel
def nd_ids_2d(item: fq.NdItem, out):
    group = item.get_group()
    where = item.get_global_id(1) * 1_000_000 + item.get_local_linear_id() * 10_000
    out[item.get_global_linear_id()] = where + group.get_group_id(1) * 100 + group.get_group_id(0)


MIXES = {
    "equal": ([(ids, 64), (ids, 64)], 1),
    "smaller after larger": ([(ids, 64), (ids, 17)], 1),
    "larger after smaller": ([(ids, 17), (ids, 64)], 1),
    "three sizes": ([(ids, 100), (ids, 33), (ids, 257)], 1),
    "empty beside full": ([(ids, 0), (ids, 5)], 1),
    "one dimension and two": ([(ids, 64), (ids_2d, (4, 9))], 1),
    "one, two and three dimensions": ([(ids, 64), (ids_2d, (4, 9)), (ids_3d, (3, 5, 7))], 1),
    "two dimensions, other first extent": ([(ids_2d, (4, 9)), (ids_2d, (7, 9))], 1),
    "two dimensions, other last extent": ([(ids_2d, (4, 9)), (ids_2d, (4, 5))], 1),
    "unspecified and explicit": ([(ids, 64), (nd_ids, NdRange(64, 8))], 1),
    "smaller unspecified, explicit": ([(ids, 23), (nd_ids, NdRange(64, 8))], 1),
    "larger unspecified, explicit": ([(ids, 100), (nd_ids, NdRange(64, 8))], 1),
    "explicit, other global": ([(nd_ids, NdRange(64, 8)), (nd_ids, NdRange(24, 8))], 1),
    "explicit, other local": ([(nd_ids, NdRange(64, 8)), (nd_ids, NdRange(64, 16))], 2),
    "explicit in two dimensions": (
        [(nd_ids_2d, NdRange((4, 8), (2, 4))), (nd_ids_2d, NdRange((8, 8), (2, 4)))],
        1,
    ),
    "explicit in two dimensions, other last extent": (
        [(nd_ids_2d, NdRange((4, 8), (2, 4))), (nd_ids_2d, NdRange((4, 16), (2, 4)))],
        2,
    ),
    "explicit in one dimension and in two": (
        [(nd_ids, NdRange(32, 8)), (nd_ids_2d, NdRange((4, 8), (2, 4)))],
        2,
    ),
    "unspecified and explicit in two dimensions": (
        [(ids_2d, (3, 8)), (nd_ids_2d, NdRange((4, 8), (2, 4)))],
        1,
    ),
    "unspecified and explicit, other last extent": (
        [(ids_2d, (3, 5)), (nd_ids_2d, NdRange((4, 8), (2, 4)))],
        2,
    ),
}


def run(queue, submissions, **options):
    outputs = [fq.Buffer(np.full(ROOM, -1)) for _ in submissions]
    with fq.fusion(queue, **options) as f:
        for (kernel, space), out in zip(submissions, outputs, strict=True):
            queue.submit(kernel, space, out)
    return f.report, [out.numpy() for out in outputs]


@pytest.mark.parametrize("mix", MIXES)
def test_ids_are_those_of_the_unfused_run(queue, mix):
    submissions, stages = MIXES[mix]
    report, fused = run(queue, submissions)
    _, unfused = run(queue, submissions, strategy="unfused")
    for one, other in zip(fused, unfused, strict=True):
        assert np.array_equal(one, other)
    assert len(report.stages) == stages
    assert (report.fallback is None) == (stages == 1)


@pytest.mark.parametrize("barriers", ["all", "auto"])
@pytest.mark.parametrize("mix", ["three sizes", "larger unspecified, explicit"])
def test_barriers_between_mixed_ranges(queue, mix, barriers):
    submissions, _ = MIXES[mix]
    report, fused = run(queue, submissions, barriers=barriers)
    _, unfused = run(queue, submissions, strategy="unfused")
    assert all(np.array_equal(a, b) for a, b in zip(fused, unfused, strict=True))
    assert report.stages[0].barriers == (len(submissions) - 1 if barriers == "all" else 0)


def test_the_reason_why_there_is_no_common_range(queue):
    report, _ = run(queue, MIXES["explicit, other local"][0])
    assert report.strategy == "unfused"
    assert report.stages[1].boundary == "explicit work-group sizes differ ((8,) and (16,))"
    report, _ = run(queue, MIXES["unspecified and explicit, other last extent"][0])
    assert "no common index space" in report.stages[1].boundary


@fq.kernel
def from_the_other_end(item: fq.Item, a, width, out):
    i = item.get_id(0)
    out[i] = a[i // width * width + width - 1 - i % width] + 1


@pytest.mark.parametrize("width", [4, 64, 256])
def test_a_range_takes_the_group_size_that_a_dependence_needs(queue, width):
    n = 2560
    a, middle, out = (fq.Buffer(np.arange(n)) for _ in range(3))
    with fq.fusion(queue) as f:
        queue.submit(from_the_other_end, n, a, 1, middle)
        queue.submit(from_the_other_end, n, middle, width, out)
    (stage,) = f.report.stages
    assert stage.work_group is not None
    assert stage.work_group[0] % width == 0
    assert stage.barriers == 1
    (dependence,) = f.report.dependences
    assert dependence.scope == "GROUP"
    assert f"of {stage.work_group[0]}" in dependence.reason
    assert "the size that fusionq chose" in dependence.reason
    expected = np.arange(n).reshape(-1, width)[:, ::-1].ravel() + 2
    assert np.array_equal(out.numpy(), expected)


def test_an_explicit_group_size_is_kept(queue):
    submissions = [(ids, 64), (nd_ids, NdRange(64, 8))]
    report, _ = run(queue, submissions)
    assert report.stages[0].work_group == (8,)
