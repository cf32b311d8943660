"""Lists that are repeated are CUDA graphs, and do what their launches do."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.repeated import RepeatedLaunches

N = 5000


@fq.kernel
def step(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor + np.float32(1)


@fq.kernel
def stencil(item: fq.Item, a, out):
    i = item.get_id(0)
    left = a[i - 1] if i > 0 else np.float32(0)
    right = a[i + 1] if i + 1 < a.shape[0] else np.float32(0)
    out[i] = left + a[i] + right


@fq.kernel
def spin(item: fq.Item, a, turns):
    i = item.get_id(0)
    x = a[i]
    for _ in range(turns):
        x = x * np.float32(0.999) + np.float32(0.001)
    a[i] = x


def graph_of(fusion):
    return fusion._list.run.one


def test_a_replay_is_one_graph_and_gives_what_launches_give(queue):
    start = np.arange(N, dtype=np.float32)
    a, b = fq.Buffer(start), fq.Buffer(N, np.float32)
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(stencil, N, a, b)
        queue.submit(stencil, N, b, a)
    assert len(f.report.stages) == 2 and graph_of(f) is None
    expected = start
    for _ in range(4):
        left, right = np.roll(expected, 1), np.roll(expected, -1)
        left[0] = right[-1] = 0
        expected = left + expected + right
        left, right = np.roll(expected, 1), np.roll(expected, -1)
        left[0] = right[-1] = 0
        expected = left + expected + right
    for _ in range(3):
        f.replay()
    assert isinstance(graph_of(f), RepeatedLaunches)
    np.testing.assert_array_equal(a.numpy(), expected)


def test_scalars_change_in_place(queue):
    a, b, c = (fq.Buffer(np.ones(N, np.float32)) for _ in range(3))
    factor, other = np.float32(2), np.float32(3)
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(step, N, a, factor, b)
        queue.submit(step, N, b, other, c)
    for one, two in ((2, 3), (5, 3), (5, 7), (2, 3), (-1, 0)):
        f.replay(factor=np.float32(one), other=np.float32(two))
        assert c.numpy()[N // 2] == (one + 1) * two + 1
    graph = graph_of(f)
    f.replay()
    assert c.numpy()[0] == 10 and graph_of(f) is graph


def test_a_change_does_not_reach_a_replay_that_still_runs(queue):
    a, b, c = (fq.Buffer(np.ones(N, np.float32)) for _ in range(3))
    outs = [fq.Buffer(N, np.float32) for _ in range(8)]
    factor = np.float32(1)
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(spin, N, a, 200_000)
        queue.submit(step, N, b, factor, c)
    for k, out in enumerate(outs):
        f.replay(factor=np.float32(k))
        queue.submit(step, N, c, np.float32(1), out)
    assert [out.numpy()[7] for out in outs] == [k + 2 for k in range(8)]


def test_a_list_that_comes_again_is_a_graph_too(queue):
    a, b = fq.Buffer(np.ones(N, np.float32)), fq.Buffer(N, np.float32)
    for _ in range(3):
        with fq.fusion(queue, strategy="unfused") as f:
            queue.submit(stencil, N, a, b)
            queue.submit(stencil, N, b, a)
    assert isinstance(graph_of(f), RepeatedLaunches)
    assert a.numpy()[N // 2] == 3**6


def test_a_launch_that_is_repeated_is_a_graph_until_a_scalar_changes(queue):
    a, b = fq.Buffer(np.zeros(N, np.float32)), fq.Buffer(np.zeros(N, np.float32))
    expected = 0
    for factor in [1] * 30 + [2, 3] + [1] * 30 + [0] * 25 + [5]:
        queue.submit(step, N, a, np.float32(factor), a)
        expected = expected * factor + 1
    assert a.numpy()[N - 1] == expected
    launches = [queue._known[key].plain.single for key in list(queue._known)]
    assert not any(launch._graph is None for launch in launches)
    c = fq.Buffer(np.zeros(N, np.float32))
    for _ in range(50):
        queue.submit(stencil, N, b, a)
        queue.submit(step, N, c, np.float32(1), c)
    assert c.numpy()[N // 2] == 50 and a.numpy()[N // 2] == 0


def test_graphs_are_in_order_with_launches_and_other_queues(queue):
    a, b = fq.Buffer(np.zeros(N, np.float32)), fq.Buffer(np.zeros(N, np.float32))
    with fq.FusionQueue("cuda") as other:
        with fq.fusion(queue, strategy="unfused") as f:
            queue.submit(step, N, a, np.float32(1), a)
            queue.submit(step, N, a, np.float32(1), b)
        for turn in range(20):
            other.submit(step, N, a, np.float32(1), a)
            event = f.replay()
            other.submit(step, N, b, np.float32(1), b)
            assert turn % 5 or event.wait() is None
        assert event.is_complete or event.wait() is None
        assert a.numpy()[3] == 41 and b.numpy()[3] == 43


def test_a_profiling_queue_keeps_its_launches():
    with fq.FusionQueue("cuda", profiling=True) as queue:
        a = fq.Buffer(np.ones(N, np.float32))
        with fq.fusion(queue, strategy="unfused") as f:
            queue.submit(step, N, a, np.float32(1), a)
            queue.submit(step, N, a, np.float32(1), a)
        start, end = f.replay().profiling
        assert graph_of(f) is None and 0 <= start < end


@pytest.mark.parametrize("strategy", ["auto", "unfused"])
def test_a_replay_after_a_buffer_has_died(queue, strategy):
    a, b = fq.Buffer(np.ones(N, np.float32)), fq.Buffer(N, np.float32)
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(stencil, N, a, b)
        queue.submit(stencil, N, b, a)
    del b
    f.replay()
    f.replay()
    assert a.numpy()[N // 2] == 3**6


@fq.kernel
def reversed_slowly(item: fq.Item, a, late, out):
    i = item.get_id(0)
    x = a[a.shape[0] - 1 - i]
    if i >= late:
        for _ in range(2000):
            x = x * np.float32(1) + np.float32(0)
    out[i] = x + np.float32(1)


@pytest.mark.parametrize("n", [3000, 1_000_003])
def test_a_kernel_s_first_blocks_see_what_the_last_ones_before_left(queue, n):
    """Blocks may be there before the kernel in front has ended: its last blocks take longest, and
    those behind read what they write first."""
    a, b = fq.Buffer(np.arange(n, dtype=np.float32)), fq.Buffer(n, np.float32)
    with fq.fusion(queue, strategy="unfused") as f:
        for _ in range(20):
            queue.submit(reversed_slowly, n, a, n - 600, b)
            queue.submit(reversed_slowly, n, b, n - 600, a)
    for _ in range(4):
        f.replay()
    assert isinstance(graph_of(f), RepeatedLaunches)
    np.testing.assert_array_equal(a.numpy(), np.arange(n, dtype=np.float32) + 200)


@fq.kernel
def row_product(item: fq.NdItem, a, x, out):
    row = item.get_group().get_group_id(0)
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], item.get_local_range(1)):
        own += np.float32(a[row, k]) * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[row] = total


def test_rows_that_are_loaded_early_are_those_of_the_last_launch_before_the_list(queue):
    rows, columns = 512, 2048
    space = fq.NdRange((rows, 128), (1, 128))
    a, x = fq.Buffer(np.ones((rows, columns), np.float32)), fq.Buffer(np.ones(columns, np.float32))
    out, more = fq.Buffer(rows, np.float32), fq.Buffer(np.zeros(rows, np.float32))
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(row_product, space, a, x, out)
        queue.submit(spin, rows, more, 200)
        queue.submit(row_product, space, a, x, out)
    for turn in range(1, 40):
        queue.submit(fill_rows, (rows, columns), a, np.float32(turn))
        f.replay()
        if turn % 7 == 0:
            np.testing.assert_array_equal(out.numpy(), np.float32(turn * columns))
    np.testing.assert_array_equal(out.numpy(), np.float32(39 * columns))


@fq.kernel
def fill_rows(item: fq.Item, a, value):
    a[item.get_id(0), item.get_id(1)] = value
