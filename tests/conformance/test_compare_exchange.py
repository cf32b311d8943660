"""compare_exchange on each device: what it stores, what it says, and loops that try again."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from tests.conformance.running import submit
from tests.unit.tables import for_each

TYPES = ("int32", "uint32", "int64", "uint64", "float32", "float64")


@pytest.fixture(autouse=True)
def _where_there_is_one(target):
    if target == "dpex":
        pytest.skip("numba-dpex knows compare_exchange with arrays only")


def once(item, a, wanted, out):
    i = item.get_id(0)
    expected = fq.PrivateArray(2, a.dtype)
    expected[1] = wanted[i]
    swapped = fq.AtomicRef(a, i).compare_exchange(expected, 9, 1)
    out[0, i] = 1 if swapped else 0
    out[1, i] = expected[1]


def products(item, a, wanted, out):
    """Multiplies, by trying again with what was seen, and counts in local places."""
    i = item.get_id(0)
    ref = fq.AtomicRef(wanted, 0, fq.MemoryOrder.ACQ_REL)
    expected = fq.PrivateArray(1, a.dtype)
    expected[0] = ref.load()
    factor = a[i]
    while not ref.compare_exchange(expected, expected[0] * factor):
        pass
    while True:
        expected[0] = fq.AtomicRef(out, (0, 0)).load()
        if fq.AtomicRef(out, (0, 0)).compare_exchange(expected, expected[0] + factor):
            break


PARAMETERS = ("a", "wanted", "out")


def run(queue, function, n, inputs):
    """The function once for each type, on the device and as plain Python."""
    buffers = {dtype: [fq.Buffer(a) for a in arrays] for dtype, arrays in inputs.items()}
    kernel = for_each(fq.kernel(function), PARAMETERS, tuple(inputs))
    submit(queue, kernel, fq.Range(n), *(b for own in buffers.values() for b in own))
    for dtype, arrays in inputs.items():
        run_function(function, fq.Range(n), arrays)
        for buffer, array in zip(buffers[dtype], arrays, strict=True):
            np.testing.assert_array_equal(buffer.numpy(), array, dtype)


def test_once(queue):
    inputs = {}
    for dtype in TYPES:
        a, wanted = np.arange(6).astype(dtype), np.array([0, 7, 2, 7, 7, 7]).astype(dtype)
        if np.dtype(dtype).kind == "f":
            a[3:], wanted[3:] = [-0.0, np.nan, np.inf], [0.0, np.nan, np.nan]
        inputs[dtype] = [a, wanted, np.full((2, 6), 5, dtype)]
    run(queue, once, 6, inputs)
    out = inputs["float32"][2]
    assert out[0].tolist() == [1, 0, 1, 1, 1, 0] and inputs["int32"][2][1].tolist()[1] == 1


def test_trying_again_with_what_was_seen(queue):
    """Every factor counts once; powers of two multiply exactly in any order."""
    inputs = {
        dtype: [
            np.where(np.arange(200) % 10 == 0, 2, 1).astype(dtype),
            np.full(1, 3, dtype),
            np.zeros((1, 1), dtype),
        ]
        for dtype in TYPES
    }
    run(queue, products, 200, inputs)
    assert inputs["float64"][1][0] == 3 * 2.0**20 and inputs["int64"][2][0, 0] == 220
