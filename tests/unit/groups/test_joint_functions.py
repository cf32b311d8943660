"""Group algorithms over arrays: sub-groups, fusing, and what is refused."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from tests.unit.groups.test_sub_groups import same, values


def of_sub_groups(item, x, sums, scans):
    group = item.get_sub_group()
    i = item.get_global_linear_id()
    row = 2 * (i // group.get_local_linear_range())
    sums[0, i] = fq.joint_reduce(group, x)
    sums[1, i] = fq.joint_reduce(group, x, "min", init=2)
    sums[2, i] = 1 if fq.joint_any_of(group, x, large) else 0
    sums[3, i] = fq.exclusive_scan_over_group(group, x[i], "max", init=1)
    fq.joint_inclusive_scan(group, x, scans[row], "max")
    fq.joint_exclusive_scan(group, x, scans[row + 1], init=1)
    if row % 4 == 0:
        sums[4, i] = fq.joint_reduce(group, scans[row + 1, 3:40], "max")


def large(x):
    return x > 1


@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_sub_groups(target, dtype):
    space = fq.NdRange((2, 16), (1, 16))
    arrays = [values(dtype, 70), np.zeros((5, 32), dtype), np.zeros((8, 70), dtype)]
    kernel = fq.kernel(sub_group_size=8)(of_sub_groups)
    with fq.FusionQueue(target) as queue:
        buffers = [fq.Buffer(a) for a in arrays]
        queue.submit(kernel, space, *buffers)
        run_function(of_sub_groups, space, arrays, sub_group_size=8)
        for buffer, array in zip(buffers, arrays, strict=True):
            same(buffer.numpy(), array)


@fq.kernel
def scaled(item: fq.Item, x, y):
    i, j = item.get_id(0), item.get_id(1)
    y[i, j] = x[i, j] * 0.5


@fq.kernel
def row_sums(item: fq.NdItem, y, out):
    group = item.get_group()
    row = group.get_group_id(0)
    total = fq.joint_reduce(group, y[row])
    out[row, item.get_local_id(1)] = y[row, item.get_local_id(1)] / total


@pytest.mark.parametrize("target", ["reference", None])
def test_fuses_with_its_producer(target):
    """A group sums the row that it has made: one launch, the row in local memory, and the same
    result as unfused."""
    x = np.random.default_rng(3).random((6, 32)).astype("float32")
    with fq.FusionQueue(target) as queue:
        found = []
        for strategy in ("unfused", "fused"):
            y = fq.Buffer(x.shape, "float32", promote_local=True)
            out = fq.Buffer(x.shape, "float32")
            with fq.fusion(queue, strategy=strategy) as f:
                queue.submit(scaled, x.shape, x, y)
                queue.submit(row_sums, fq.NdRange((6, 32), (1, 32)), y, out)
            found.append(out.numpy().tobytes())
        assert found[0] == found[1]
        assert len(f.report.stages) == 1, f.report
        assert not y.is_allocated, f.report


def not_an_array(item, x):
    x[0] = fq.joint_reduce(item.get_group(), x[0])


def of_two_dimensions(item, x):
    x[0] = fq.joint_reduce(item.get_group(), 3)


def other_dtype(item, x):
    fq.joint_inclusive_scan(item.get_group(), x, x, "add", np.float64(1))


def float_for_int(item, x):
    x[0] = fq.reduce_over_group(item.get_group(), np.int32(1), init=0.5)


def bitwise(item, x):
    x[0] = fq.joint_reduce(item.get_group(), x, "xor")


def predicate(item, x):
    x[0] = 1 if fq.joint_any_of(item.get_group(), x, x) else 0


def in_a_condition(item, x):
    if item.get_local_id(0) < 2:
        x[0] = fq.joint_reduce(item.get_group(), x)


def no_group(item, x):
    x[0] = fq.joint_reduce(item, x)


REFUSED = {
    not_an_array: "a one-dimensional array is needed here, not a number of type float32",
    of_two_dimensions: "a one-dimensional array is needed here",
    other_dtype: "init is of type float64, what is combined of float32",
    float_for_int: "init is a float, what is combined of int32",
    bitwise: "'xor' of float32 over a group",
    predicate: "a predicate is a plain Python function",
    in_a_condition: "some work-items of a work-group",
    no_group: "a group is needed here, not the NdItem",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_refused(function):
    """With the line of the user's call, also where what is wrong lies in the language's own
    functions."""
    with fq.FusionQueue("reference") as queue, pytest.raises(fq.KernelLanguageError) as caught:
        queue.submit(fq.kernel(function), fq.NdRange(16, 8), fq.Buffer(np.zeros(16, "float32")))
    message = str(caught.value)
    assert REFUSED[function] in message
    assert f"{__file__}:{function.__code__.co_firstlineno + 1}" in message or (
        function is in_a_condition and __file__ in message
    )
    assert "joint_bodies" not in message
