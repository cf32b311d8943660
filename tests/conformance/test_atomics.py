"""Atomic operations on each device: all types and operations, orders and scopes."""

import numpy as np
import pytest

import fusionq as fq
from tests.conformance.running import submit
from tests.conformance.test_group_functions import made

INTEGERS, FLOATS = ("int32", "int64", "uint32", "uint64"), ("float32", "float64")
UFUNCS = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
CASES = {
    **dict.fromkeys(INTEGERS, tuple(UFUNCS)),
    **dict.fromkeys(FLOATS, ("add", "sub", "min", "max")),
}
"""The operations on each type; the tests have all of them in one kernel."""


@pytest.fixture
def cases(target):
    """Those that the target has: numba-dpex adds to no unsigned integer."""
    return {d: ops for d, ops in CASES.items() if target != "dpex" or not d.startswith("u")}


ORDERS = ("RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL", "SEQ_CST")
SCOPES = ("WORK_ITEM", "SUB_GROUP", "WORK_GROUP", "DEVICE", "SYSTEM")


def run(queue, line, *arguments, space=((64,), (8,)), parameters="x, cells"):
    submit(queue, made(line, len(space[0]), parameters), fq.NdRange(*space), *arguments)


def run_on_each(queue, lines, arguments, **space):
    """Run ``lines`` for each type, as ``{T}`` in them, with its ``arguments`` by parameter."""
    run(
        queue,
        "\n    ".join(line.format(T=dtype) for dtype in arguments for line in lines[dtype]),
        *(value for own in arguments.values() for value in own.values()),
        parameters=", ".join(f"{p}_{dtype}" for dtype, own in arguments.items() for p in own),
        **space,
    )


@pytest.mark.parametrize("memory", ["global", "local"])
def test_operations(queue, cases, memory):
    """64 work-items on 3 cells, a row of cells an operation; whole numbers, so that floating
    results are exact."""
    lines, arguments = {}, {}
    for dtype, ops in cases.items():
        x = np.random.default_rng(1).integers(0, 1000, 64).astype(dtype)
        cells = fq.Buffer(np.array([[7, 1000, 3]] * len(ops), dtype))
        where = "cells" if memory == "global" else "tile"
        lines[dtype] = [
            f"fq.AtomicRef({where}_{{T}}, ({row}, index[0] % 3)).fetch_{op}(x_{{T}}[index])"
            for row, op in enumerate(ops)
        ]
        arguments[dtype] = {"x": x, "cells": cells}
        if memory == "local":
            rows = [f"    for row in range({len(ops)}):", "if own < 3:"]
            lines[dtype] = [
                *rows[::-1], "        tile_{T}[row, own] = cells_{T}[row, own]",
                "fq.group_barrier(group)", *lines[dtype], "fq.group_barrier(group)",
                *rows[::-1], "        cells_{T}[row, own] = tile_{T}[row, own]",
            ]  # fmt: skip
            arguments[dtype]["tile"] = fq.LocalAccessor((len(ops), 3), dtype)
    run_on_each(queue, lines, arguments, space=((64,), (8 if memory == "global" else 64,)))
    for dtype, ops in cases.items():
        for op, found in zip(ops, arguments[dtype]["cells"].numpy(), strict=True):
            wanted = np.array([7, 1000, 3], dtype)
            for k, value in enumerate(arguments[dtype]["x"]):
                wanted[k % 3] = UFUNCS[op](wanted[k % 3], value)
            assert found.tolist() == wanted.tolist(), (dtype, op)


def test_the_value_before(queue, cases):
    """Each work-item takes a number of its own."""
    arguments = {
        dtype: {"cells": fq.Buffer(np.zeros(2, dtype)), "out": fq.Buffer(64, dtype)}
        for dtype in cases
    }
    lines = dict.fromkeys(cases, ("out_{T}[index] = fq.AtomicRef(cells_{T}, 1).fetch_add(2)",))
    run_on_each(queue, lines, arguments)
    for dtype, own in arguments.items():
        assert np.sort(own["out"].numpy()).tolist() == list(range(0, 128, 2)), dtype
        assert own["cells"].numpy().tolist() == [0, 128], dtype


def test_load_store_and_exchange(queue):
    arguments = {
        dtype: {
            "cells": fq.Buffer(np.array([5, 6, 7], dtype)),
            "out": fq.Buffer(np.zeros((3, 64), dtype)),
        }
        for dtype in CASES
    }
    lines = (
        "out_{T}[0, index[0]] = fq.AtomicRef(cells_{T}, 0).load() + 1",
        "fq.AtomicRef(cells_{T}, 1).store(np.{T}(9.5))",
        "out_{T}[1, index[0]] = fq.AtomicRef(cells_{T}, 2).exchange(np.{T}(index[0]))",
    )
    run_on_each(queue, dict.fromkeys(CASES, lines), arguments)
    for dtype, own in arguments.items():
        left, stored, last = own["cells"].numpy().tolist()
        assert (left, stored) == (5, 9.5 if dtype in FLOATS else 9), dtype
        loaded, exchanged = own["out"].numpy()[:2].tolist()
        assert loaded == [6] * 64, dtype
        # What was there first, and every number but the last: each came out exactly once.
        assert sorted([*exchanged, last]) == sorted([7, *range(64)]), dtype


def test_orders_and_scopes(queue):
    """Each is accepted by the device's compiler, for integers and for the loop of floats; every
    pair has a row of its own."""
    pairs = [(order, scope) for order in ORDERS for scope in SCOPES]
    x = np.ones(4, "int32")
    cells = fq.Buffer(np.zeros((len(pairs), 4), "int32"))
    sums = fq.Buffer(np.zeros((len(pairs), 4), "float32"))
    lines = []
    for row, (order, scope) in enumerate(pairs):
        how = f"fq.MemoryOrder.{order}, fq.MemoryScope.{scope}"
        lines += [
            f"whole_{row} = fq.AtomicRef(cells, ({row}, own), {how})",
            f"whole_{row}.fetch_add(x[index])",
            f"whole_{row}.store(whole_{row}.load() + whole_{row}.exchange(4))",
            f"fq.AtomicRef(sums, ({row}, own), {how}).fetch_add(1.5)",
            f"fq.atomic_fence({how})",
        ]
    run(
        queue, "\n    ".join(lines), x, cells, sums,
        space=((4,), (4,)), parameters="x, cells, sums",
    )  # fmt: skip
    assert cells.numpy().tolist() == [[2] * 4] * len(pairs)
    assert sums.numpy().tolist() == [[1.5] * 4] * len(pairs)


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
    submit(queue, count, 7, np.array([1, -1, 2, 0, 3, -2, 4], "float32"), total)
    assert total.numpy()[0] == 4


def test_an_atomic_operation_writes(queue):
    if not queue.device.host_memory:
        pytest.skip("the device reaches no NumPy arrays, so none that are read-only")
    x = np.zeros(2, "int32")
    x.flags.writeable = False
    count = made("fq.AtomicRef(cells, 0).fetch_add(1)", 1, "cells")
    with pytest.raises(fq.ArgumentError, match=r"stores to argument 'cells'.*read-only"):
        queue.submit(count, fq.NdRange(64, 8), x)
    out = fq.Buffer(64, np.int32)
    look = made("out[index] = fq.AtomicRef(cells, 0).load()", 1, "cells, out")
    queue.submit(look, fq.NdRange(64, 8), x, out)
    assert not out.numpy().any()
