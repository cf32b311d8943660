"""Sums by the usual strategies, over many work-group sizes, on each device."""

import inspect

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
from tests.unit.tables import for_each

N = 192
RNG = np.random.default_rng(11)


def by_group_function(x, total, size):
    """The range, kernel and arguments of the sum over ``x`` by work-groups of ``size``."""
    return fq.NdRange(x.shape[0], size), sum_by_group_function, (x, total)


def by_tree(x, total, size):
    tile = fq.LocalAccessor(size, x.dtype)
    return fq.NdRange(x.shape[0], size), sum_by_tree, (x, tile, total)


def in_one_group(x, total, size):
    return fq.NdRange(size, size), sum_in_one_group, (x, total)


def of_a_part(x, total, size):
    wide = np.concatenate([np.full(size, 7, x.dtype), x, np.full(size, 9, x.dtype)])
    arguments = (wide, size, size + x.shape[0], total)
    return fq.NdRange(wide.size, size), sum_of_a_part, arguments


def by_atomics(x, total, size):
    return fq.NdRange(x.shape[0], size), sum_by_atomics, (x, total)


STRATEGIES = {
    by_group_function: (1, 3, 16, 48),
    by_tree: (1, 4, 64),
    in_one_group: (1, 16, 100),
    of_a_part: (3, 64),
    by_atomics: (1, 6),
}
CASES = [(strategy, size) for strategy, sizes in STRATEGIES.items() for size in sizes]
INTEGERS, FLOATS = ("int32", "int64", "uint32", "uint64"), ("float32", "float64")


def submit(queue, strategy, x, total, size):
    space, kernel, arguments = strategy(x, total, size)
    queue.submit(kernel, space, *arguments)


@pytest.mark.in_turn
@pytest.mark.parametrize(("strategy", "size"), CASES)
def test_sums(queue, strategy, size):
    """Each type in one kernel.  Integer sums are exact, floating ones within the bound of
    reordering."""
    inputs = {
        dtype: RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, N, dtype)
        for dtype in INTEGERS
    }
    inputs |= {dtype: RNG.normal(size=N).astype(dtype) for dtype in FLOATS}
    totals = {dtype: fq.Buffer(np.zeros(1, dtype)) for dtype in inputs}
    submissions = [strategy(x, totals[dtype], size) for dtype, x in inputs.items()]
    space, kernel, _ = submissions[0]
    parameters = tuple(inspect.signature(kernel.function).parameters)[1:]
    arguments = [argument for _, _, own in submissions for argument in own]
    queue.submit(for_each(kernel, parameters, tuple(inputs)), space, *arguments)
    for dtype, x in inputs.items():
        total = totals[dtype].numpy()[0]
        if dtype in INTEGERS:
            with np.errstate(over="ignore"):
                assert total == np.add.reduce(x, dtype=dtype), dtype
        else:
            exact = np.add.reduce(x, dtype=np.longdouble)
            bound = N * np.finfo(dtype).eps * np.abs(x).sum(dtype=np.longdouble)
            assert abs(total - exact) <= bound, dtype


def test_large_sums(sycl_queue):
    """Many groups at once, on several compute units."""
    x = RNG.integers(-1000, 1000, 1 << 18).astype("int32")
    for strategy, size in ((by_group_function, 256), (by_tree, 256), (by_atomics, 64)):
        total = fq.Buffer(np.zeros(1, "int32"))
        submit(sycl_queue, strategy, x, total, size)
        assert total.numpy()[0] == x.sum()


@pytest.mark.in_turn
@pytest.mark.parametrize(("strategy", "size"), [c for c in CASES if c[0] is not of_a_part])
@pytest.mark.parametrize("end", ["complete_fusion", "cancel_fusion"])
def test_fused_and_cancelled(queue, strategy, size, end):
    """After an element-wise producer, in a list that is fused, and in one that is cancelled."""
    x = RNG.integers(-100, 100, N).astype("int32")
    squared, total = fq.Buffer(np.full(N, -1, "int32")), fq.Buffer(np.zeros(1, "int32"))
    queue.start_fusion()
    queue.submit(square, N, x, squared)
    submit(queue, strategy, squared, total, size)
    getattr(queue, end)().wait()
    assert total.numpy()[0] == (x * x).sum()
    assert squared.numpy().tolist() == (x * x).tolist()
