"""Atomic operations on each device: all types and operations, orders and scopes."""

import numpy as np
import pytest

import fusionq as fq
from tests.unit.groups.test_group_functions import made

INTEGERS, FLOATS = ("int32", "int64", "uint32", "uint64"), ("float32", "float64")
UFUNCS = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
CASES = [(dtype, op) for dtype in INTEGERS for op in UFUNCS]
CASES += [(dtype, op) for dtype in FLOATS for op in ("add", "sub", "min", "max")]


def run(queue, line, *arguments, space=((64,), (8,)), parameters="x, cells"):
    queue.submit(made(line, len(space[0]), parameters), fq.NdRange(*space), *arguments)


@pytest.mark.parametrize(("dtype", "op"), CASES)
@pytest.mark.parametrize("memory", ["global", "local"])
def test_operations(queue, dtype, op, memory):
    """64 work-items on 3 cells; whole numbers, so that floating results are exact."""
    x = np.random.default_rng(1).integers(0, 1000, 64).astype(dtype)
    before = np.array([7, 1000, 3], dtype)
    cells, tile = fq.Buffer(before), fq.LocalAccessor(3, dtype)
    if memory == "global":
        run(queue, f"fq.AtomicRef(cells, index[0] % 3).fetch_{op}(x[index])", x, cells)
    else:
        line = (
            "if own < 3:\n        tile[own] = cells[own]\n    fq.group_barrier(group)\n"
            f"    fq.AtomicRef(tile, own % 3).fetch_{op}(x[index])\n    fq.group_barrier(group)\n"
            "    if own < 3:\n        cells[own] = tile[own]"
        )
        run(queue, line, x, tile, cells, space=((64,), (64,)), parameters="x, tile, cells")
    wanted = before
    for k, value in enumerate(x):
        wanted[k % 3] = UFUNCS[op](wanted[k % 3], value)
    assert cells.numpy().tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_the_value_before(queue, dtype):
    """Each work-item takes a number of its own."""
    cells, out = fq.Buffer(np.zeros(2, dtype)), fq.Buffer(64, dtype)
    run(queue, "out[index] = fq.AtomicRef(cells, 1).fetch_add(2)", cells, out,
        parameters="cells, out")  # fmt: skip
    assert np.sort(out.numpy()).tolist() == list(range(0, 128, 2))
    assert cells.numpy().tolist() == [0, 128]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_load_store_and_exchange(queue, dtype):
    cells, out = fq.Buffer(np.array([5, 6, 7], dtype)), fq.Buffer(np.zeros((3, 64), dtype))
    line = (
        "i = index[0]\n    out[0, i] = fq.AtomicRef(cells, 0).load() + 1\n"
        "    fq.AtomicRef(cells, 1).store(9.5)\n"
        "    out[1, i] = fq.AtomicRef(cells, 2).exchange(i)"
    )
    run(queue, line, cells, out, parameters="cells, out")
    left, stored, last = cells.numpy().tolist()
    assert (left, stored) == (5, 9.5 if dtype in FLOATS else 9)
    assert out.numpy()[0].tolist() == [6] * 64
    # What was there first, and every number but the last: each came out exactly once.
    assert sorted([*out.numpy()[1].tolist(), last]) == sorted([7, *range(64)])


@pytest.mark.parametrize("order", ["RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL", "SEQ_CST"])
@pytest.mark.parametrize("scope", ["WORK_ITEM", "SUB_GROUP", "WORK_GROUP", "DEVICE", "SYSTEM"])
def test_orders_and_scopes(queue, order, scope):
    """Each is accepted by the device's compiler, for integers and for the loop of floats."""
    x = np.ones(4, "int32")
    cells, sums = fq.Buffer(np.zeros(4, "int32")), fq.Buffer(np.zeros(4, "float32"))
    line = (
        f"ref = fq.AtomicRef(cells, own, fq.MemoryOrder.{order}, fq.MemoryScope.{scope})\n"
        "    ref.fetch_add(x[index])\n    ref.store(ref.load() + ref.exchange(4))\n"
        f"    fq.AtomicRef(sums, own, fq.MemoryOrder.{order}, fq.MemoryScope.{scope})"
        ".fetch_add(1.5)\n"
        f"    fq.atomic_fence(fq.MemoryOrder.{order}, fq.MemoryScope.{scope})"
    )
    run(queue, line, x, cells, sums, space=((4,), (4,)), parameters="x, cells, sums")
    assert cells.numpy().tolist() == [2] * 4 and sums.numpy().tolist() == [1.5] * 4


@pytest.mark.parametrize("scope", ["WORK_GROUP", "DEVICE", "SYSTEM"])
def test_barriers_with_a_fence_scope(queue, scope):
    """What the group wrote to global memory before a barrier, all of it sees after."""
    cells, out = fq.Buffer(np.zeros(16, "int32")), fq.Buffer(16, np.int32)
    line = (
        f"i = index[0]\n    cells[i] = i\n    fq.group_barrier(group, fq.MemoryScope.{scope})\n"
        "    out[i] = cells[i - own + 3 - own]"
    )
    run(queue, line, cells, out, space=((16,), (4,)), parameters="cells, out")
    assert out.numpy().tolist() == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12]


def test_a_histogram_over_views(queue):
    """Atomic operations reach strided views and single rows."""
    x = np.random.default_rng(4).integers(0, 5, 64).astype("int32")
    wide = fq.Buffer(np.zeros((2, 15), "int32"))
    run(queue, "fq.AtomicRef(cells, (1, x[index])).fetch_add(1)", x, wide[:, ::3])
    run(queue, "fq.AtomicRef(cells[0], 4 - x[index]).fetch_add(1)", x, wide[:, ::-3][:, :5])
    counts = np.bincount(x, minlength=5)
    found = wide.numpy()
    assert found[1, ::3].tolist() == counts.tolist()
    assert found[0, 14::-3].tolist() == counts[::-1].tolist()


def test_atomics_run_over_a_plain_range(queue):
    @fq.kernel
    def count(item: fq.Item, x, total):
        if x[item.get_id(0)] > 0:
            fq.AtomicRef(total, 0).fetch_add(1)

    total = fq.Buffer(np.zeros(1, "int64"))
    queue.submit(count, 7, np.array([1, -1, 2, 0, 3, -2, 4], "float32"), total)
    assert total.numpy()[0] == 4


def test_an_atomic_operation_writes(queue):
    x = np.zeros(2, "int32")
    x.flags.writeable = False
    with pytest.raises(fq.ArgumentError, match=r"stores to argument 'cells'.*read-only"):
        run(queue, "fq.AtomicRef(cells, 0).fetch_add(1)", x, parameters="cells")
    out = fq.Buffer(64, np.int32)
    run(queue, "out[index] = fq.AtomicRef(cells, 0).load()", x, out, parameters="cells, out")
    assert not out.numpy().any()
