"""check=True: the first access outside its array is told, and does not happen."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment


@fq.kernel
def gather(item, index, a, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


@fq.kernel
def scatter(item, index, a, out):
    i = item.get_id(0)
    out[index[i]] = a[i]


@fq.kernel
def histogram(item, index, counts):
    i = item.get_id(0)
    fq.AtomicRef(counts, index[i]).fetch_add(1)


@fq.kernel
def twice_indirect(item, first, second, a, out):
    i = item.get_id(0)
    out[i] = a[second[first[i]]] if first[i] >= 0 else 7.0


@fq.kernel
def until(item, a, out):
    i = item.get_id(0)
    k = i
    while a[k] > 0.0:
        k += 1
    out[i] = k


@fq.kernel
def private(item, index, out):
    i = item.get_id(0)
    own = fq.PrivateArray(4, np.float32, fill_zeros=True)
    own[index[i]] = 5.0
    out[i] = own[0] + own[3]


@fq.kernel
def plane(item, index, out):
    i, j = item.get_id(0), item.get_id(1)
    out[index[i], j] = 1.0


def integers(*values):
    return fq.Buffer(np.array(values, np.int64))


def checked(queue, kernel, range_, *args):
    with fq.fusion(queue, check=True) as f:
        queue.submit(kernel, range_, *args)
    return f


CASES = {
    "gather": (gather, (2, 0, 8, 1), "read", r"work-item \(2\) reads element \[8\] .* \(8\)"),
    "negative": (gather, (2, -1, 3, 1), "read", r"work-item \(1\) reads element \[-1\]"),
    "scatter": (scatter, (0, 1, 2, 99), "write", r"work-item \(3\) writes element \[99\]"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_index_from_memory(queue, case):
    kernel, index, kind, told = CASES[case]
    a, out = floats(8), empty(8)
    with pytest.raises(fq.ArgumentError, match=told) as caught:
        checked(queue, kernel, 4, integers(*index), a, out)
    message = str(caught.value)
    assert message.startswith(f"{kernel.name}: {kind} outside array")
    assert __file__ in message and "in the kernel at" in message and "submitted at" in message
    assert (a.numpy() == np.arange(1, 9)).all()


@fq.kernel
def store_there(item: fq.Item, a, places):
    i = item.get_id(0)
    a[places[i]] = np.float32(1)


@fq.kernel
def add_there(item: fq.Item, a, places):
    fq.AtomicRef(a, places[item.get_id(0)]).fetch_add(np.float32(1))


@fq.kernel
def load_there(item: fq.Item, a, places):
    i = item.get_id(0)
    a[i] = a[places[i]]


@pytest.mark.parametrize("kernel", [store_there, add_there, load_there])
@pytest.mark.parametrize(
    ("dtype", "shown"), [(np.uint64, "18446744073709551615"), (np.int64, "-1"), (np.uint8, "255")]
)
def test_an_index_is_shown_as_the_number_that_it_is(queue, kernel, dtype, shown):
    a, places = floats(8), fq.Buffer(np.full(4, -1).astype(dtype))
    with pytest.raises(fq.ArgumentError) as caught, fq.fusion(queue, check=True):
        queue.submit(kernel, 4, a, places)
    assert f" element [{shown}] of an array of shape (8)" in str(caught.value)


def test_right_programs_run_as_without(queue):
    a, out, other = floats(8), empty(8), empty(8)
    with fq.fusion(queue, check=True) as f:
        queue.submit(copy, 8, a, out)
        queue.submit(add, 8, out, a, other)
        queue.submit(gather, 8, integers(*range(7, -1, -1)), other, out)
        queue.submit(increment, 4, out[2:6])
    expected = 2 * np.arange(8, 0, -1)
    expected[2:6] += 1
    assert (out.numpy() == expected).all()
    assert f.report.strategy == "unfused" and "check=True" in f.report.fallback
    f.replay().wait()
    assert (out.numpy() == expected).all()


def test_nothing_is_overwritten_and_nothing_runs_after_it(queue):
    whole = fq.Buffer(np.zeros(16, np.float32))
    after = empty(4)
    with (
        pytest.raises(fq.ArgumentError, match=r"element \[4\].*\n.*\n.*\n.*nothing after"),
        fq.fusion(queue, check=True) as f,
    ):
        queue.submit(scatter, 4, integers(0, 1, 4, 5), floats(4), whole[4:8])
        queue.submit(copy, 4, whole[4:8], after)
    assert whole.numpy().tolist() == [0] * 4 + [1, 2] + [0] * 10
    assert not after.numpy().any()
    with pytest.raises(fq.ArgumentError):
        f.event.wait()


def test_atomics_loops_conditions_private_arrays_and_planes(queue):
    counts = fq.Buffer(4, np.int32)
    with pytest.raises(fq.ArgumentError, match=r"update outside array 'counts'.*\[4\]"):
        checked(queue, histogram, 3, integers(1, 1, 4), counts)
    assert counts.numpy().tolist() == [0, 2, 0, 0]
    out = empty(4)
    checked(queue, twice_indirect, 3, integers(0, -5, 1), integers(2, 3), floats(4), out)
    assert out.numpy().tolist() == [3, 7, 4, 0]
    with pytest.raises(fq.ArgumentError, match=r"outside array 'a'.*\[9\]"):
        checked(queue, twice_indirect, 2, integers(0, 1), integers(2, 9), floats(4), out)
    with pytest.raises(fq.ArgumentError, match=r"read outside array 'a'.*\[4\]"):
        checked(queue, until, 4, floats(4), fq.Buffer(4, np.int64))
    stops = fq.Buffer(4, np.int64)
    checked(queue, until, 4, fq.Buffer(np.array([1, 0, 1, 0], np.float32)), stops)
    assert stops.numpy().tolist() == [1, 1, 3, 3]
    with pytest.raises(fq.ArgumentError, match=r"write outside array 'own'.*\[4\].*shape \(4\)"):
        checked(queue, private, 3, integers(0, 3, 4), out)
    with pytest.raises(fq.ArgumentError, match=r"work-item \(1, \d\) writes element \[3, \d\]"):
        checked(queue, plane, (2, 2), integers(0, 3), fq.Buffer((3, 2), np.float32))


def test_the_environment_checks_plain_submissions_too(queue, monkeypatch):
    monkeypatch.setenv("FUSIONQ_CHECK", "1")
    with pytest.raises(fq.ArgumentError, match=r"reads element \[8\]"):
        queue.submit(gather, 1, integers(8), floats(8), empty(8))
    with pytest.raises(fq.ArgumentError, match=r"reads element \[9\]"), fq.fusion(queue):
        queue.submit(gather, 1, integers(9), floats(8), empty(8))


def test_options_that_contradict_it(queue):
    for other in ("tune", "require"):
        with pytest.raises(fq.ArgumentError, match=f"leave out {other}=True"):
            fq.fusion(queue, check=True, **{other: True})


@fq.kernel
def scan_rows(item: fq.NdItem, a, sums, out):
    i = item.get_global_id(0)
    value = a[i] if i < a.size else np.int32(0)
    earlier = fq.exclusive_scan_over_group(item.get_group(), value, "add")
    total = fq.reduce_over_group(item.get_group(), value, "add")
    scanned = fq.inclusive_scan_over_group(item.get_group(), value, "add")
    if i < a.size:
        out[i] = scanned * 1000 + earlier
        sums[i] = total


@pytest.mark.parametrize("check", [True, "initialized"])
def test_group_functions_of_several_sub_groups(queue, check):
    ones, sums, out = (fq.Buffer(np.ones(50, np.int32)) for _ in range(3))
    with fq.fusion(queue, check=check):
        queue.submit(scan_rows, fq.NdRange((64,), (32,)), ones, sums, out)
    place = np.arange(50) % 32
    assert (out.numpy() == (place + 1) * 1000 + place).all()
    assert (sums.numpy() == np.where(np.arange(50) < 32, 32, 18)).all()
