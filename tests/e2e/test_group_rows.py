"""The kernels' own barriers, local memory and group functions in a fused kernel."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.kernels import N, empty, increment, numbers, preset, untouched

GROUP = 16


@fq.kernel
def turn_through_local(item: fq.NdItem, a, tile, out):
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    tile[k] = a[i]
    fq.group_barrier(item.get_group())
    out[i] = tile[item.get_local_range(0) - 1 - k]


@fq.kernel
def groups_of_values(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    group = item.get_group()
    x = a[i]
    first = fq.group_broadcast(group, x, 0)
    before = fq.exclusive_scan_over_group(group, x, "add")
    some = fq.any_of_group(group, x > 40)
    every = fq.all_of_group(group, x > 40)
    out[i] = first * 1_000_000 + before * 100 + some * 10 + every


def in_groups(values):
    return values.reshape(-1, GROUP)


def group_values(values):
    tiles = in_groups(values)
    before = np.cumsum(tiles, axis=1) - tiles
    flags = (tiles > 40).any(axis=1) * 10 + (tiles > 40).all(axis=1)
    return (tiles[:, :1] * 1_000_000 + before * 100 + flags[:, None]).ravel()


@pytest.mark.parametrize("n", [N, N - 24])
def test_a_kernels_own_barrier_is_kept(queue, n):
    # The second range is smaller where n is: the barrier must stand outside its guard.
    space = fq.NdRange(N, GROUP)
    a, middle, out = numbers(), empty(), empty()
    with fq.fusion(queue) as f:
        queue.submit(turn_through_local, space, a, fq.LocalAccessor(GROUP, np.int64), middle)
        queue.submit(increment, n, a, out)
    assert f.report.strategy == "fused"
    (stage,) = f.report.stages
    assert stage.barriers == 1
    assert stage.inserted == ()
    assert np.array_equal(middle.numpy(), in_groups(np.arange(N))[:, ::-1].ravel())
    assert np.array_equal(out.numpy()[:n], np.arange(n) + 1)
    assert not out.numpy()[n:].any()


@pytest.mark.parametrize("flag", ["promote_private", "promote_local"])
def test_local_memory_beside_a_promoted_buffer(queue, flag):
    space = fq.NdRange(N, GROUP)
    a, temporary, out = numbers(), preset(**{flag: True}), empty()
    with fq.fusion(queue) as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(turn_through_local, space, temporary, fq.LocalAccessor(GROUP, np.int64), out)
    assert f.report.strategy == "fused"
    assert [p.scope for p in f.report.promotions] == [flag.removeprefix("promote_")]
    assert untouched(temporary)
    assert np.array_equal(out.numpy(), in_groups(np.arange(N) + 1)[:, ::-1].ravel())


def test_group_functions_after_an_element_wise_kernel(queue):
    space = fq.NdRange(N, GROUP)
    a, temporary, out = numbers(), preset(promote_private=True), empty()
    with fq.fusion(queue) as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(groups_of_values, space, temporary, out)
    assert f.report.strategy == "fused"
    assert untouched(temporary)
    assert np.array_equal(out.numpy(), group_values(np.arange(N) + 1))


# --------------------------------------------------------------------------------- reductions
@fq.kernel
def reduce_then_atomic(item: fq.NdItem, a, out):
    group = item.get_group()
    total = fq.reduce_over_group(group, a[item.get_global_id(0)], "add")
    if group.leader:
        fq.AtomicRef(out, 0).fetch_add(total)


@fq.kernel
def tree_then_atomic(item: fq.NdItem, a, tile, out):
    group = item.get_group()
    k = item.get_local_id(0)
    tile[k] = a[item.get_global_id(0)]
    step = item.get_local_range(0) // 2
    for _ in range(4):
        fq.group_barrier(group)
        if k < step:
            tile[k] = tile[k] + tile[k + step]
        step = step // 2
    fq.group_barrier(group)
    if k == 0:
        fq.AtomicRef(out, 0).fetch_add(tile[0])


@fq.kernel
def each_atomic(item: fq.Item, a, out):
    fq.AtomicRef(out, 0).fetch_add(a[item.get_id(0)])


@fq.kernel
def one_group(item: fq.NdItem, a, out):
    k = item.get_local_id(0)
    size = item.get_local_range(0)
    own = a[k]
    for step in range(1, 4):
        own = own + a[k + step * size]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_group().leader:
        out[0] = total


@fq.kernel
def scan_in_local(item: fq.NdItem, a, tile, out):
    # Each work-item adds up its predecessors; the last one of the group adds to the sum.
    k = item.get_local_id(0)
    tile[k] = a[item.get_global_id(0)]
    fq.group_barrier(item.get_group())
    total = tile[0]
    for j in range(1, 16):
        total = total + tile[j]
    if k == 15:
        fq.AtomicRef(out, 0).fetch_add(total)


STRATEGIES = {
    "group reduce, then atomic": (reduce_then_atomic, fq.NdRange(N, GROUP), False),
    "tree in local memory, then atomic": (tree_then_atomic, fq.NdRange(N, GROUP), True),
    "an atomic for each": (each_atomic, fq.Range(N), False),
    "one group": (one_group, fq.NdRange(GROUP, GROUP), False),
    "in local memory, then atomic": (scan_in_local, fq.NdRange(N, GROUP), True),
}
FUSES = set(STRATEGIES) - {"one group"}
"""One group reads what every group of its producer wrote: it computes that anew."""


@pytest.mark.parametrize("end", ["complete", "cancel"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reductions_fuse_with_their_producer(queue, strategy, end):
    kernel, space, needs_local = STRATEGIES[strategy]
    a, temporary, out = numbers(), preset(promote_private=True), fq.Buffer(np.zeros(1, np.int64))
    local = [fq.LocalAccessor(GROUP, np.int64)] if needs_local else []
    queue.start_fusion()
    queue.submit(increment, N, a, temporary)
    queue.submit(kernel, space, temporary, *local, out)
    if end == "complete":
        queue.complete_fusion()
        chosen = queue.last_report.strategy
        assert chosen == ("fused" if strategy in FUSES else "overlap"), queue.last_report
        assert untouched(temporary)
    else:
        queue.cancel_fusion()
    assert out.numpy()[0] == np.arange(1, N + 1).sum()


@pytest.mark.parametrize("group", [1, 2, 4, 8, 32, 64])
def test_reductions_over_many_group_sizes(queue, group):
    a, temporary, out = numbers(), preset(promote_private=True), fq.Buffer(np.zeros(1, np.int64))
    with fq.fusion(queue) as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(reduce_then_atomic, fq.NdRange(N, group), temporary, out)
    assert f.report.strategy == "fused"
    assert out.numpy()[0] == np.arange(1, N + 1).sum()


@fq.kernel
def stray_barrier(item: fq.NdItem, out):
    if item.get_local_id(0) < 3:
        fq.group_barrier(item.get_group())
    out[item.get_global_id(0)] = 1


def test_a_divergent_barrier_is_refused(queue):
    with pytest.raises(fq.KernelLanguageError, match="and others do not") as error:
        queue.submit(stray_barrier, fq.NdRange(N, GROUP), empty())
    assert "test_group_rows.py" in str(error.value)
