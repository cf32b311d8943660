"""Bad input: the error says what, where, why and what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.conftest import empty, floats
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
    assert fq.Range(np.int32(3), 2**40).size == 3 << 40
    assert fq.Range(0, 2**62).size == 0
    told("1 to 3 dimensions", lambda: fq.Range(1, 2, 3, 4))
    told("local range must divide", lambda: fq.NdRange(10, 3))
    told("same dimensions", lambda: fq.NdRange((4, 4), 4))


def test_ranges_of_submissions(queue):
    out = empty()
    told(r"at most 2\*\*63 - 1", lambda: queue.submit(put, 2**63, 1.0, out))
    told("takes integers", lambda: queue.submit(put, True, 1.0, out))


def test_a_launch_that_the_device_refuses(sycl_queue):
    out = empty()
    told_why = r"refuses to launch kernel 'guarded_put'.*fewer than 2\*\*31"
    with pytest.raises(fq.DeviceError, match=told_why):
        sycl_queue.submit(guarded_put, 2**31 - 1024, out)
    sycl_queue.submit(put, 8, 3.0, out).wait()
    assert (out.numpy() == 3).all()
    with pytest.raises(fq.DeviceError, match="refuses"), fq.fusion(sycl_queue):
        sycl_queue.submit(increment, 8, out)
        sycl_queue.submit(guarded_put, 2**32 + 3, out)


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
