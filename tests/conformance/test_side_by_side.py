"""Kernels side by side in one launch: ids, local memory and functions of work-groups are those of
each kernel by itself."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

pytestmark = pytest.mark.usefixtures("group_functions")


@fq.kernel
def of_groups(item: fq.NdItem, x, local, out):
    """A sum over each work-group by way of local memory, and all ids."""
    group = item.get_group()
    i = item.get_global_id(0)
    at = item.get_local_linear_id()
    local[at] = x[i]
    fq.group_barrier(group)
    total = local[at] + 10 * local[group.get_local_linear_range() - 1 - at]
    out[i, 0] = total + fq.reduce_over_group(group, x[i], "max")
    out[i, 1] = group.get_group_id(0) * 1_000 + group.get_group_range(0)
    out[i, 2] = item.get_global_range(0) * 1_000 + item.get_local_id(0)


@fq.kernel
def of_floats(item: fq.NdItem, x, local, out):
    """Sums whose order shows, and the local memory of another type."""
    group = item.get_group()
    i = item.get_global_id(0)
    own = np.float32(x[i]) / np.float32(7)
    local[item.get_local_id(0)] = own
    total = fq.reduce_over_group(group, own, "add")
    fq.group_barrier(group)
    below = fq.inclusive_scan_over_group(group, own, "add")
    out[i] = total * local[item.get_local_range(0) - 1 - item.get_local_id(0)] + below


@fq.kernel
def of_rows(item: fq.NdItem, x, out):
    group = item.get_group()
    i, j = item.get_global_id(0), item.get_global_id(1)
    total = fq.reduce_over_group(group, x[i, j], "add")
    out[i, j] = total * 100 + group.get_group_id(0) * 10 + group.get_group_id(1)


@fq.kernel
def of_items(item: fq.Item, x, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = x[i, j] * 100 + item.get_linear_id() + item.get_range(0) * item.get_range(1)


def both(queue: fq.FusionQueue, submit, *shapes):
    """What ``submit`` leaves in arrays of ``shapes`` as one list and submission by submission; the
    list's report."""
    found = []
    report = None
    for fused in (False, True):
        outs = [fq.Buffer(shape, dtype) for shape, dtype in shapes]
        if fused:
            with fq.fusion(queue, strategy="fused") as f:
                submit(outs)
            f.event.wait()
            report = f.report
        else:
            submit(outs)
            queue.wait()
        found.append([np.array(out.numpy()) for out in outs])
    return found, report


def assert_same(found) -> None:
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


def test_work_groups_of_several_kernels(queue: fq.FusionQueue) -> None:
    sizes = 48, 16, 32
    x = fq.Buffer(np.arange(48, dtype=np.int64))

    def submit(outs):
        for n, out in zip(sizes, outs, strict=True):
            local = fq.LocalAccessor(16, np.int64)
            queue.submit(of_groups, fq.NdRange(n, 16), x, local, out)

    found, report = both(queue, submit, *(((n, 3), np.int64) for n in sizes))
    assert_same(found)
    (stage,) = report.stages
    assert [len(part) for part in stage.side_by_side] == [1, 2] or len(stage.side_by_side) == 3


def test_other_kernels_share_local_memory(queue: fq.FusionQueue) -> None:
    x = fq.Buffer(np.arange(64, dtype=np.int64))

    def submit(outs):
        queue.submit(
            of_groups, fq.NdRange(64, 16), x, fq.LocalAccessor(16, np.int64), outs[0]
        )
        queue.submit(
            of_floats, fq.NdRange(32, 16), x, fq.LocalAccessor(16, np.float32), outs[1]
        )

    found, report = both(queue, submit, ((64, 3), np.int64), ((32,), np.float32))
    assert_same(found)
    (stage,) = report.stages
    assert stage.side_by_side == ((0,), (1,))


def test_rows(queue: fq.FusionQueue) -> None:
    x = fq.Buffer(np.arange(240, dtype=np.int64).reshape(10, 24))

    def submit(outs):
        queue.submit(of_rows, fq.NdRange((4, 24), (2, 8)), x, outs[0])
        queue.submit(of_rows, fq.NdRange((10, 24), (2, 8)), x, outs[1])
        queue.submit(of_rows, fq.NdRange((6, 24), (2, 8)), x, outs[2])

    shapes = ((n, 24) for n in (4, 10, 6))
    found, report = both(queue, submit, *((shape, np.int64) for shape in shapes))
    assert_same(found)
    (stage,) = report.stages
    assert len(stage.side_by_side) > 1


def test_a_kernel_without_work_items(queue: fq.FusionQueue) -> None:
    x = fq.Buffer(np.arange(64, dtype=np.int64))

    def submit(outs):
        for n, out in zip((32, 0, 16), outs, strict=True):
            local = fq.LocalAccessor(16, np.int64)
            queue.submit(of_groups, fq.NdRange(n, 16), x, local, out)

    found, _ = both(queue, submit, *(((n, 3), np.int64) for n in (32, 0, 16)))
    assert_same(found)


@pytest.mark.parametrize("sizes", [(48, 16), (16, 64), (128, 32)])
def test_a_plan_serves_other_sizes(queue: fq.FusionQueue, sizes: tuple[int, int]) -> None:
    x = fq.Buffer(np.arange(128, dtype=np.int64))

    def submit(outs):
        for n, out in zip(sizes, outs, strict=True):
            local = fq.LocalAccessor(16, np.float32)
            queue.submit(of_floats, fq.NdRange(n, 16), x, local, out)

    found, report = both(queue, submit, *((n, np.float32) for n in sizes))
    assert_same(found)
    assert len(report.stages) == 1


def test_a_profile_of_it(queue: fq.FusionQueue) -> None:
    if queue.device.filter_string.startswith("dpex"):
        pytest.skip("no profiles there")
    x = fq.Buffer(np.arange(64, dtype=np.int64))
    outs = [fq.Buffer((n, 3), np.int64) for n in (64, 32)]
    with fq.fusion(queue, strategy="fused") as f:
        for n, out in zip((64, 32), outs, strict=True):
            local = fq.LocalAccessor(16, np.int64)
            queue.submit(of_groups, fq.NdRange(n, 16), x, local, out)
    f.event.wait()
    expected = [np.array(out.numpy()) for out in outs]
    for out in outs:
        out.write(np.zeros(out.shape, np.int64))
    with fq.profile(queue, compare=False):
        f.replay().wait()
    for out, right in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(out.numpy(), right)
