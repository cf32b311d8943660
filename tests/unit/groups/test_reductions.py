"""Sums by the usual strategies, over many work-group sizes, on each device."""

import numpy as np
import pytest

import fusionq as fq
from tests.unit.groups.kernels import (
    square,
    sum_by_atomics,
    sum_by_group_function,
    sum_by_tree,
    sum_in_one_group,
    sum_of_a_part,
)

N = 192
RNG = np.random.default_rng(11)


def by_group_function(queue, x, total, size):
    queue.submit(sum_by_group_function, fq.NdRange(x.shape[0], size), x, total)


def by_tree(queue, x, total, size):
    tile = fq.LocalAccessor(size, x.dtype)
    queue.submit(sum_by_tree, fq.NdRange(x.shape[0], size), x, tile, total)


def in_one_group(queue, x, total, size):
    queue.submit(sum_in_one_group, fq.NdRange(size, size), x, total)


def of_a_part(queue, x, total, size):
    wide = np.concatenate([np.full(size, 7, x.dtype), x, np.full(size, 9, x.dtype)])
    queue.submit(sum_of_a_part, fq.NdRange(wide.size, size), wide, size, size + x.shape[0], total)


def by_atomics(queue, x, total, size):
    queue.submit(sum_by_atomics, fq.NdRange(x.shape[0], size), x, total)


STRATEGIES = {
    by_group_function: (1, 2, 3, 8, 16, 48, 64),
    by_tree: (1, 2, 4, 16, 64),
    in_one_group: (1, 3, 16, 100),
    of_a_part: (1, 3, 16, 64),
    by_atomics: (1, 6, 64),
}
CASES = [(strategy, size) for strategy, sizes in STRATEGIES.items() for size in sizes]


@pytest.mark.parametrize(("strategy", "size"), CASES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_integer_sums_are_exact(queue, strategy, size, dtype):
    x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, N, dtype)
    total = fq.Buffer(np.zeros(1, dtype))
    strategy(queue, x, total, size)
    with np.errstate(over="ignore"):
        assert total.numpy()[0] == np.add.reduce(x, dtype=dtype)


@pytest.mark.parametrize(("strategy", "size"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floating_sums_are_within_the_bound_of_reordering(queue, strategy, size, dtype):
    x = RNG.normal(size=N).astype(dtype)
    total = fq.Buffer(np.zeros(1, dtype))
    strategy(queue, x, total, size)
    exact = np.add.reduce(x, dtype=np.longdouble)
    bound = N * np.finfo(dtype).eps * np.abs(x).sum(dtype=np.longdouble)
    assert abs(total.numpy()[0] - exact) <= bound


def test_large_sums(sycl_queue):
    """Many groups at once, on several compute units."""
    x = RNG.integers(-1000, 1000, 1 << 18).astype("int32")
    for strategy, size in ((by_group_function, 256), (by_tree, 256), (by_atomics, 64)):
        total = fq.Buffer(np.zeros(1, "int32"))
        strategy(sycl_queue, x, total, size)
        assert total.numpy()[0] == x.sum()


@pytest.mark.parametrize(("strategy", "size"), [c for c in CASES if c[0] is not of_a_part])
@pytest.mark.parametrize("end", ["complete_fusion", "cancel_fusion"])
def test_fused_and_cancelled(queue, strategy, size, end):
    """After an element-wise producer, in a list that is fused, and in one that is cancelled."""
    x = RNG.integers(-100, 100, N).astype("int32")
    squared, total = fq.Buffer(np.full(N, -1, "int32")), fq.Buffer(np.zeros(1, "int32"))
    queue.start_fusion()
    queue.submit(square, N, x, squared)
    strategy(queue, squared, total, size)
    getattr(queue, end)().wait()
    assert total.numpy()[0] == (x * x).sum()
    assert squared.numpy().tolist() == (x * x).tolist()
