"""Bad input: the error says what, where, why and what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.conftest import empty, floats, has_sycl
from tests.unit.runtime.kernels import copy, increment, put


def told(match, call, error=fq.ArgumentError):
    with pytest.raises(error, match=match) as caught:
        call()
    assert f"{__file__}:" in str(caught.value)


def test_ranges():
    for value in (True, np.True_, 3.5, "8", None):
        told("takes integers, not", lambda value=value: fq.Range(value))
    told("cannot be negative", lambda: fq.Range(4, -1))
    for extents in ((2**63,), (2**64,), (2**32, 2**31), (10**30, 1)):
        told(r"at most 2\*\*63 - 1 work-items", lambda extents=extents: fq.Range(*extents))
    told("takes integers, not ndarray", lambda: fq.Range(np.array([4])))
    assert fq.Range(np.int32(3), 2**40).size == 3 << 40
    assert fq.Range(0, 2**62).size == 0
    told("1 to 3 dimensions", lambda: fq.Range(1, 2, 3, 4))
    told("local range must divide", lambda: fq.NdRange(10, 3))
    told("local range are at least 1", lambda: fq.NdRange(8, 0))
    told("same dimensions", lambda: fq.NdRange((4, 4), 4))


def test_ranges_of_submissions(queue):
    out = empty()
    told(r"at most 2\*\*63 - 1", lambda: queue.submit(put, 2**63, 1.0, out))
    told("takes integers", lambda: queue.submit(put, True, 1.0, out))


@pytest.mark.parametrize("size", [2**62, 2**63 - 1])
def test_sizes_that_are_nearly_beyond_int64(sycl_queue, size):
    told_why = "takes 2,147,483,647 in one launch, and fusionq makes at most 1,024 of one"
    told(told_why, lambda: sycl_queue.submit(guarded_put, size, empty()), fq.DeviceError)
    out = empty()
    with pytest.raises(fq.DeviceError, match="at most 1,024"), fq.fusion(sycl_queue):
        sycl_queue.submit(increment, 8, out)
        sycl_queue.submit(guarded_put, size, out)


@fq.kernel
def guarded_put(item, out):
    i = item.get_id(0)
    if i < 4:
        out[i] = 1.0


def test_options(queue):
    told("takes a FusionQueue, not int", lambda: fq.fusion(3))
    told("strategy='quick' is not one of 'auto'", lambda: fq.fusion(queue, strategy="quick"))
    told(r"strategy=\[\] is not one of", lambda: fq.fusion(queue, strategy=[]))
    queue.start_fusion()
    told("'strategi'; did you mean 'strategy'", lambda: queue.complete_fusion(strategi="auto"))
    told("no fusion option 'foo'", lambda: queue.complete_fusion(foo=1))
    queue.cancel_fusion()
    told("tune=True measures", lambda: fq.fusion(queue, strategy="fused", tune=True))


def test_targets():
    missing = "no SYCL device matches 'gpux'" if has_sycl() else "no SYCL device|need dpctl"
    told(missing, lambda: fq.FusionQueue("gpux"), fq.DeviceError)
    told("a dpctl.SyclQueue, a CUDA stream.*not int: 3", lambda: fq.FusionQueue(3))


def test_buffers():
    told("an integer or a tuple of integers, not True", lambda: fq.Buffer(True, np.float32))
    told(r"tuple of integers, not \(1.5, 2\)", lambda: fq.Buffer((1.5, 2), np.float32))
    told("promote_private is True or False", lambda: fq.Buffer(3, int, promote_private="no"))
    masked = np.ma.masked_array(np.ones(4, np.float32), [1, 0, 0, 0])
    told("masked arrays are not supported", lambda: fq.Buffer(masked))
    told("masked arrays are not supported", lambda: fq.Buffer(masked, copy=False))
    buffer = floats()
    told("slice step cannot be zero", lambda: buffer[::0])
    told("slice indices must be integers", lambda: buffer[1.5:])
    told("each at least 1, not -1", lambda: fq.LocalAccessor(-1, np.float32))
    told(r"2\*\*63 bytes or more", lambda: fq.Buffer((2**40, 2**40), np.float32))
    told(r"2\*\*63 bytes or more", lambda: fq.Buffer((0, 2**62, 4), np.int8))
    told("neither true nor false.*numpy", lambda: bool(buffer))
    told(r"written by kernels.*numpy\(\) is an array", lambda: buffer.__setitem__(0, 3))
    told("dtype of a LocalAccessor", lambda: fq.LocalAccessor(4, "x"))


def test_graphs(queue):
    graph = fq.Graph()
    told("record.. takes a FusionQueue, not str", lambda: graph.record("queue"))
    a, out = floats(), empty()
    with graph.record(queue):
        queue.submit(copy, 8, a, out)
    told("dtype is float32, not float64", lambda: graph.update(a=fq.Buffer(8, np.float64)))


def test_private_memory_that_no_device_has(sycl_queue):
    """Intel's runtime runs nothing of such a kernel, and says nothing."""
    told("1,200,000,000 bytes of private memory", lambda: sycl_queue.submit(far, 8, floats()))
    with fq.FusionQueue("reference") as queue:
        told("reference interpreter runs 192 of them", lambda: queue.submit(far, 8, floats()))
        nd = fq.NdRange(1024, 1024)
        told("runs 3,072 of them at once", lambda: queue.submit(near, nd, floats()))
        queue.submit(near, fq.NdRange(1, 1), out := floats())
        assert out.numpy()[0] == 3.0


@fq.kernel
def far(item, a):
    t = fq.PrivateArray(300_000_000, np.float32)
    t[int(a[0]) * 1_000_000] = 3.0
    a[item.get_id(0)] = t[int(a[1]) * 1_000_000]


@fq.kernel
def near(item: fq.NdItem, a):
    t = fq.PrivateArray(1_000_000, np.float32)
    t[item.get_global_id(0)] = 3.0
    a[item.get_global_id(0)] = t[item.get_global_id(0)]


def test_kernels():
    for value in (3, len, "put"):
        told("made from a Python function, not from", lambda v=value: fq.kernel(v), LANGUAGE)
    told("has no elements.*numba's\n  Submit it: queue.submit", lambda: copy[8], LANGUAGE)


LANGUAGE = fq.KernelLanguageError


@pytest.mark.parametrize(
    "interface",
    [
        {"data": (0, False)},
        {"data": 16, "shape": (4,), "typestr": "<f4", "syclobj": None},
        {"data": (16, False), "shape": "x", "typestr": "<f4", "syclobj": None},
        {"data": (16, False), "shape": (4,), "typestr": "zzz", "syclobj": None},
        {"data": (16, False), "shape": (4,), "strides": 1, "typestr": "<f4", "syclobj": None},
        {},
        3,
    ],
)
def test_malformed_interfaces(queue, interface):
    class Array:
        __sycl_usm_array_interface__ = interface

    why = "is malformed" if isinstance(interface, dict) else "is of type Array"
    told(f"argument 'a'.*{why}", lambda: queue.submit(copy, 4, Array(), empty()))


def test_integers_that_do_not_fit(queue):
    small = fq.Buffer(np.ones(4, np.int8))
    told(r"is 300, outside -128 … 127.*pass np\.int16\(300\)", lambda: with_int8(queue, small, 300))
    told(r"pass np\.int64\(1099511627776\)", lambda: with_int8(queue, small, 2**40))
    told("no integer type can; pass a float", lambda: with_int8(queue, small, 10**30))
    with_int8(queue, small, np.int16(300)).wait()
    assert (small.numpy() == np.int16(301).astype(np.int8)).all()


def with_int8(queue, small, value):
    return queue.submit(add_to, 4, small, value)


@fq.kernel
def add_to(item, a, value):
    i = item.get_id(0)
    a[i] = a[i] + value


HUGE = 10**5000  # with more digits than Python writes


@fq.kernel
def equal_to_huge(item: fq.Item, a):
    a[item.get_id(0)] = HUGE


@fq.kernel
def store(item: fq.Item, a, value):
    a[item.get_id(0)] = value


def test_integers_with_more_digits_than_python_writes(queue):
    buffer = floats()
    about = r"about 2\*\*16609"
    told(about, lambda: queue.fill(buffer, HUGE))
    told(about, lambda: fq.Buffer(HUGE, np.float32))
    told(about, lambda: fq.Range(HUGE))
    told(about, lambda: buffer[HUGE])
    told("about -2", lambda: queue.submit(store, 4, buffer, -HUGE))
    told(about, lambda: queue.submit(equal_to_huge, 4, buffer), fq.KernelLanguageError)


def test_names_that_there_are_not():
    with pytest.raises(AttributeError, match="did you mean 'reduce_over_group'"):
        _ = fq.reduce_over_groups


def test_the_report_of_a_list_that_ended_says_why(queue):
    a, out = floats(), empty()
    queue.start_fusion()
    queue.submit(copy, 8, a, out)
    queue.submit(increment, 8, out)
    with pytest.warns(fq.FusionAborted):
        out.numpy()
    text = str(queue.last_report)
    assert "apart because: fusion mode ended: Buffer.numpy()" in text
    assert "was asked for" not in text


def test_the_line_of_the_user_where_numpy_called(queue):
    out = empty()
    queue.start_fusion()
    queue.submit(put, 8, 1.0, out)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert np.add(out, 1).sum() == 16
    (warning,) = caught
    assert warning.filename == __file__ and f"{__file__}:" in str(warning.message)


def test_a_bad_choice_of_threads_is_told_where_a_queue_is_made(monkeypatch):
    monkeypatch.setenv("FUSIONQ_THREADS", "some")
    with pytest.raises(fq.ArgumentError, match=r"FUSIONQ_THREADS='some'.*apart nor free"):
        fq.FusionQueue("reference")
