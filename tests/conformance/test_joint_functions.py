"""Group algorithms over arrays on each device, against plain Python: bit for bit."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from tests.conformance.running import submit
from tests.unit.tables import for_each

pytestmark = pytest.mark.usefixtures("group_functions")

LENGTHS = (0, 200, 300)
TYPES = ("int8", "float32")
"""The types of the functions of groups themselves are those of test_group_functions.py."""


def positive(x):
    return x > 0


def joint(item, x, sums, scans):
    group = item.get_group()
    i, row = item.get_global_linear_id(), group.get_group_linear_id()
    sums[0, i] = fq.joint_reduce(group, x)
    sums[1, i] = fq.joint_reduce(group, x, "max", init=3)
    fq.joint_exclusive_scan(group, x, scans[row])
    fq.joint_inclusive_scan(group, scans[row], scans[row], "min", init=1)
    sums[2, i] = sums[1, i] * i
    sums[4, i] = 1 if fq.joint_any_of(group, x, positive) else 0
    sums[5, i] = 1 if fq.joint_all_of(group, x) else 0
    sums[6, i] = 1 if fq.joint_none_of(group, x, predicate=positive) else 0
    sums[7, i] = fq.reduce_over_group(group, sums[2, i], "max", init=1)
    sums[8, i] = fq.inclusive_scan_over_group(group, sums[2, i], "min", 2)
    sums[9, i] = 1 if fq.none_of_group(group, sums[0, i], positive) else 0


def bits(item, x, truths, out):
    group = item.get_group()
    out[0] = fq.joint_reduce(group, x, "and", init=12)
    out[1] = fq.joint_reduce(group, x, "or")
    out[2] = fq.joint_reduce(group, x, "xor")
    fq.joint_exclusive_scan(group, truths, truths, "or")


PARAMETERS = ("x", "sums", "scans")


def values(dtype, n):
    random = np.random.default_rng(n)
    if np.dtype(dtype).kind != "f":
        return random.integers(0, 100, n).astype(dtype)
    x = random.standard_normal(n).astype(dtype)
    if n > 20:
        x[[3, 11]] = np.nan, -0.0
    return x


def same(a, b):
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        numbers = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])


@pytest.mark.parametrize("n", LENGTHS)
def test_as_in_python(queue, n):
    """Every type in one kernel, with fewer elements than lanes and with more."""
    space, arrays = fq.NdRange((2, 3), (1, 3)), []
    for dtype in TYPES:
        arrays += [values(dtype, n), np.zeros((10, 6), dtype), np.zeros((2, n + 1), dtype)]
    buffers = [fq.Buffer(a) for a in arrays]
    # A slice, since an empty array has no memory.
    buffers[::3] = [fq.Buffer(np.append(a, a.dtype.type(0)))[:n] for a in arrays[::3]]
    submit(queue, for_each(fq.kernel(joint), PARAMETERS, TYPES), space, *buffers)
    for place in range(0, len(arrays), 3):
        wanted = [a.copy() for a in arrays[place : place + 3]]
        run_function(joint, space, wanted)
        for buffer, array in zip(buffers[place + 1 : place + 3], wanted[1:], strict=True):
            same(buffer.numpy(), array)


def test_the_size_of_the_group_does_not_matter(queue):
    x, found = values("float32", 300), []
    kernel = fq.kernel(total_and_scan)
    for size in (1, 7, 32):
        total, scan = fq.Buffer(1, "float32"), fq.Buffer(300, "float32")
        submit(queue, kernel, fq.NdRange(size, size), np.nan_to_num(x), total, scan)
        found.append((total.numpy().tobytes(), scan.numpy().tobytes()))
    assert len(set(found)) == 1


def total_and_scan(item, x, total, scan):
    total[0] = fq.joint_reduce(item.get_group(), x)
    fq.joint_inclusive_scan(item.get_group(), x, scan)


def test_bits(queue):
    space = fq.NdRange(5, 5)
    arrays = [values("uint32", 300), np.arange(300) == 77, np.zeros(3, "uint32")]
    buffers = [fq.Buffer(a) for a in arrays]
    submit(queue, fq.kernel(bits), space, *buffers)
    run_function(bits, space, arrays)
    for buffer, array in zip(buffers, arrays, strict=True):
        same(buffer.numpy(), array)
