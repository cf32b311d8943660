"""Work-group kernels in fused lists: fused is unfused, bit for bit, and what fuses fuses."""

import numpy as np
import pytest

import fusionq as fq
from tests.unit.groups.kernels import (
    reverse_in_group,
    scale_by_total,
    shift,
    square,
    stencil,
    sum_by_atomics,
    sum_by_group_function,
    sum_by_tree,
    sum_in_one_group,
    sum_of_a_part,
    transpose_tiles,
)

N = 96
RNG = np.random.default_rng(21)


def numbers(n=N, dtype="int32"):
    return RNG.integers(-50, 50, n).astype(dtype)


def both_ways(queue, submit, **options):
    """The outputs of ``submit(queue)``, unfused and fused, and the report.  ``submit`` returns
    the buffers of the outputs, and those of temporaries."""
    unfused = [b.numpy().copy() for b in submit(queue)[0]]
    with fq.fusion(queue, **options) as f:
        outputs, _temporaries = submit(queue)
    f.event.wait()
    fused = [b.numpy() for b in outputs]
    for a, b in zip(unfused, fused, strict=True):
        assert a.tobytes() == b.tobytes(), f"{b} for {a}"
    return fused, f.report


REDUCTIONS = {
    "group function": lambda q, x, t: q.submit(sum_by_group_function, fq.NdRange(N, 16), x, t),
    "tree": lambda q, x, t: q.submit(
        sum_by_tree, fq.NdRange(N, 16), x, fq.LocalAccessor(16, x.dtype), t
    ),
    "atomics": lambda q, x, t: q.submit(sum_by_atomics, fq.NdRange(N, 16), x, t),
    "part": lambda q, x, t: q.submit(sum_of_a_part, fq.NdRange(N, 16), x, 5, 90, t),
    "one group": lambda q, x, t: q.submit(sum_in_one_group, fq.NdRange(N, N), x, t),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["int64", "uint32"])
@pytest.mark.parametrize("strategy", REDUCTIONS)
def test_element_wise_producers_fuse_with_reductions(queue, strategy, dtype):
    """Whole numbers: every order of adding up gives the same."""
    x = fq.Buffer(numbers(dtype="int32").astype(dtype))

    def submit(queue):
        shifted, squared = (fq.Buffer(N, dtype, promote_private=True) for _ in range(2))
        total = fq.Buffer(np.zeros(1, dtype))
        queue.submit(shift, N, x, np.dtype(dtype).type(3), shifted)
        queue.submit(square, N, shifted, squared)
        REDUCTIONS[strategy](queue, squared, total)
        return [total], [shifted, squared]

    (total,), report = both_ways(queue, submit)
    part = x.numpy()[5:90] if strategy == "part" else x.numpy()
    with np.errstate(over="ignore"):
        shifted = part - np.dtype(dtype).type(3)
        assert total[0] == np.add.reduce(shifted * shifted, dtype=dtype)
    assert report.strategy == "fused", report.fallback
    promoted = {p.buffer: p.scope for p in report.promotions}
    if strategy != "part":
        assert promoted == {"shifted": "private", "squared": "private"}, report.promotions


def test_a_reduction_of_a_range_that_the_group_does_not_divide(queue):
    x = fq.Buffer(numbers(90))

    def submit(queue):
        squared, total = fq.Buffer(90, np.int32), fq.Buffer(np.zeros(1, np.int32))
        queue.submit(square, 90, x, squared)
        queue.submit(guarded_sum, fq.NdRange(96, 16), squared, total)
        return [squared, total], []

    (_, total), report = both_ways(queue, submit)
    assert total[0] == (x.numpy() ** 2).sum()
    assert report.strategy == "fused", report.fallback


@fq.kernel
def guarded_sum(item: fq.NdItem, x, total):
    i = item.get_global_id(0)
    group = item.get_group()
    part = fq.reduce_over_group(group, x[i] if i < x.shape[0] else 0)
    if group.leader:
        fq.AtomicRef(total, 0).fetch_add(part)


def test_floating_reductions_are_within_the_bound_of_reordering(queue):
    x = fq.Buffer(RNG.normal(size=N).astype("float32"))
    with fq.fusion(queue) as f:
        squared, total = fq.Buffer(N, np.float32), fq.Buffer(np.zeros(1, np.float32))
        queue.submit(square, N, x, squared)
        REDUCTIONS["group function"](queue, squared, total)
    assert f.report.strategy == "fused"
    squares = x.numpy() ** 2
    bound = N * np.finfo("float32").eps * squares.sum(dtype="float64")
    assert abs(total.numpy()[0] - squares.sum(dtype="float64")) <= bound


def test_what_needs_the_whole_sum_waits_for_it(queue):
    x = fq.Buffer(numbers())

    def submit(queue):
        total, out = fq.Buffer(np.zeros(1, np.int32)), fq.Buffer(N, np.int32)
        queue.submit(sum_by_group_function, fq.NdRange(N, 16), x, total)
        queue.submit(scale_by_total, fq.NdRange(N, 16), x, total, out)
        return [total, out], []

    (total, out), report = both_ways(queue, submit)
    assert (out == x.numpy() * total[0]).all()
    assert report.strategy != "fused"


def test_two_sums_into_one_total(queue):
    x = fq.Buffer(numbers())

    def submit(queue):
        total = fq.Buffer(np.zeros(1, np.int32))
        for strategy in ("group function", "atomics", "tree"):
            REDUCTIONS[strategy](queue, x, total)
        return [total], []

    (total,), _ = both_ways(queue, submit)
    assert total[0] == 3 * x.numpy().sum()


def test_kernels_with_local_memory_fuse(queue):
    """Both kernels bring their own local array and barrier; twice reversed is as before."""
    x = fq.Buffer(numbers())

    def submit(queue):
        squared, reversed_, out = (fq.Buffer(N, np.int32) for _ in range(3))
        tile = fq.LocalAccessor(16, np.int32)
        queue.submit(square, N, x, squared)
        queue.submit(reverse_in_group, fq.NdRange(N, 16), squared, tile, reversed_)
        queue.submit(reverse_in_group, fq.NdRange(N, 16), reversed_, tile, out)
        return [reversed_, out], [squared]

    (reversed_, out), report = both_ways(queue, submit)
    squares = x.numpy() ** 2
    assert (out == squares).all()
    assert (reversed_ == squares.reshape(-1, 16)[:, ::-1].ravel()).all()
    assert report.strategy == "fused", report.fallback


def test_tiles_and_halos_after_element_wise_kernels(queue):
    x, matrix = fq.Buffer(numbers().astype("float32")), fq.Buffer(numbers().reshape(8, 12))

    def submit(queue):
        squared, mean = fq.Buffer(N, np.float32), fq.Buffer(N, np.float32)
        queue.submit(square, N, x, squared)
        queue.submit(stencil, fq.NdRange(N, 16), squared, fq.LocalAccessor(18, np.float32), mean)
        turned = fq.Buffer((12, 8), np.int32)
        tile = fq.LocalAccessor((4, 4), np.int32)
        queue.submit(transpose_tiles, fq.NdRange((8, 12), (4, 4)), matrix, tile, turned)
        return [mean, turned], [squared]

    (mean, turned), report = both_ways(queue, submit)
    padded = np.pad(x.numpy() ** 2, 1)
    assert (mean == (padded[:-2] + padded[1:-1] + padded[2:]) / np.float32(3)).all()
    assert (turned == matrix.numpy().T).all()
    assert report.strategy != "fused"  # a halo needs other groups' elements


def test_replay_with_another_scalar(queue):
    x, shifted = fq.Buffer(numbers()), fq.Buffer(N, np.int32, promote_private=True)
    total, offset = fq.Buffer(np.zeros(1, np.int32)), 3
    with fq.fusion(queue) as f:
        queue.submit(shift, N, x, offset, shifted)
        REDUCTIONS["group function"](queue, shifted, total)
    f.event.wait()
    assert total.numpy()[0] == x.numpy().sum() - 3 * N
    total.write(np.zeros(1, np.int32))
    f.replay(offset=5).wait()
    assert total.numpy()[0] == x.numpy().sum() - 5 * N


def test_the_shape_of_local_memory_is_part_of_the_plan(queue):
    x = fq.Buffer(numbers())
    for size in (4, 16, 4, 8):
        squared, out = fq.Buffer(N, np.int32), fq.Buffer(N, np.int32)
        with fq.fusion(queue):
            queue.submit(square, N, x, squared)
            tile = fq.LocalAccessor(size, np.int32)
            queue.submit(reverse_in_group, fq.NdRange(N, size), squared, tile, out)
        squares = x.numpy() ** 2
        assert (out.numpy() == squares.reshape(-1, size)[:, ::-1].ravel()).all()


def test_sources_show_the_work_group_language(queue):
    x, total = fq.Buffer(numbers()), fq.Buffer(np.zeros(1, np.int32))
    with fq.fusion(queue) as f:
        squared = fq.Buffer(N, np.int32)
        queue.submit(square, N, x, squared)
        REDUCTIONS["tree"](queue, squared, total)
    for part in (
        "tile = LocalAccessor(16, np.int32)", "group_barrier(item.get_group())",
        "AtomicRef(total, 0, MemoryOrder.RELAXED, MemoryScope.DEVICE).fetch_add(",
    ):  # fmt: skip
        assert part in f.report.source


def test_local_memory_of_a_launch_is_limited(queue):
    """Each kernel's own fits the device; both together do not."""
    x, n = fq.Buffer(numbers()), queue.device.local_memory_bytes // 8 + 64

    def submit(queue):
        turned, out = fq.Buffer(N, np.int32), fq.Buffer(N, np.int32)
        for source, target in ((x, turned), (turned, out)):
            tile = fq.LocalAccessor(n, np.int32)
            queue.submit(reverse_in_group, fq.NdRange(N, 16), source, tile, target)
        return [out], [turned]

    (out,), report = both_ways(queue, submit)
    assert (out == x.numpy()).all()
    assert f"{8 * n} bytes of local memory" in report.fallback
