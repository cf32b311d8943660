"""``Fusion.replay``: the launches again, with other scalars, and what it refuses."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.chains import chain
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import copy, increment, scale, shift


@fq.kernel
def weighed(item, a, factor, more, total):
    total.combine(a[item.get_id(0)] * factor + more)


# --------------------------------------------------------------------------------- replay
def test_replay_repeats_the_launches(queue, work):
    total = fq.Buffer(np.zeros(4, np.int64))
    with fq.fusion(queue) as f:
        queue.submit(increment, 4, total)
        queue.submit(increment, 4, total)
    done = dict(work)
    event = f.replay()
    f.replay().wait()
    assert event.is_complete
    assert total.numpy().tolist() == [6] * 4
    assert work == done


def test_replay_with_other_scalars_for_this_time(queue):
    a, out = floats(), empty()
    factor = 2.0
    with fq.fusion(queue) as f:
        queue.submit(scale, 8, a, factor, out)
        queue.submit(scale, 8, out, 10.0, out)
    for change, product in (({}, 20), ({"factor": 3.0}, 30), ({}, 20)):
        f.replay(**change).wait()
        assert np.array_equal(out.numpy(), a.numpy() * product)


def test_replay_with_an_int_that_the_plan_depends_on(queue):
    a, tmp, out = floats(), empty(), empty()
    distance = 0
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, tmp)
        queue.submit(shift, 8, tmp, distance, out)
    for value in (3, 0, 5):
        f.replay(distance=value).wait()
        assert np.array_equal(out.numpy()[: 8 - value], a.numpy()[value:])
    f.replay().wait()
    assert np.array_equal(out.numpy(), a.numpy())


def test_replay_after_other_blocks_have_changed_the_scalars(queue):
    a, out = floats(), empty()

    def block(factor):
        with fq.fusion(queue) as f:
            queue.submit(scale, 8, a, factor, out)
        return f

    two, _ = block(2.0), block(3.0)
    two.replay().wait()
    assert np.array_equal(out.numpy(), a.numpy() * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"other": 1.0}, "no scalar argument 'other'.*factor"),
        ({"a": 1.0}, "no scalar argument 'a'"),
        ({"first": 1}, "takes a float.*not int"),
        ({"factor": 1.0}, "first of submission 0, second of submission 1"),
    ],
)
def test_replay_refuses_what_it_cannot_place(queue, change, message):
    a, out = floats(), empty()
    first, second = 2.0, 3.0
    with fq.fusion(queue) as f:
        queue.submit(scale, 8, a, first, out)
        queue.submit(scale, 8, out, second, out)
    with pytest.raises(fq.ArgumentError, match=message):
        f.replay(**change)


def test_names_are_those_of_the_calls_in_the_block(queue):
    """Also where the same was submitted before, from elsewhere, under other names."""
    a, out = floats(), empty()
    first, second = 2.0, 3.0
    with fq.fusion(queue) as f:
        queue.submit(scale, 8, a, first, out)
        queue.submit(scale, 8, out, second, out)
    second, first = 2.0, 3.0
    for _ in range(2):
        with fq.fusion(queue) as g:
            queue.submit(scale, 8, a, second, out)
            queue.submit(shift, 8, a, 0, a)
            queue.submit(scale, 8, out, first, out)
        g.replay(first=5.0).wait()
        assert np.array_equal(out.numpy(), a.numpy() * 10)
        with pytest.raises(fq.ArgumentError, match=r"'factors'.*it has [a-z].*first.*second"):
            g.replay(factors=1.0)
        f.replay(first=7.0).wait()
        assert np.array_equal(out.numpy(), a.numpy() * 21)
    with fq.fusion(queue) as composed:
        queue.submit(copy, 8, a, out)
        g.replay()
    composed.replay(second=4.0).wait()
    assert np.array_equal(out.numpy(), a.numpy() * 12)


def test_names_of_kernels_with_reductions_are_those_of_the_calls(queue):
    a, total = floats(), empty(1)
    for _ in range(2):
        one, two = 1.0, 2.0
        with fq.fusion(queue) as f:
            queue.submit(weighed, 8, a, one, two, fq.Reduction(total, "add", initialize=True))
        f.replay(one=3.0).wait()
        assert total.numpy()[0] == 36 * 3 + 16
        with fq.fusion(queue) as f:
            queue.submit(weighed, 8, a, two, one, fq.Reduction(total, "add", initialize=True))
        f.replay(one=3.0).wait()
        assert total.numpy()[0] == 36 * 2 + 24


def test_replay_before_the_end_of_the_block(queue):
    a, out = floats(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
        with pytest.raises(fq.FusionStateError, match="replay"):
            f.replay()
        with pytest.raises(fq.FusionStateError, match="report"):
            f.report  # noqa: B018


def test_replay_after_a_buffer_was_deleted(queue):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    f = chain(queue, a, tmp, out)
    del tmp
    gc.collect()
    f.replay().wait()
    out.write(np.zeros(8, np.float32))
    del a
    gc.collect()
    f.replay().wait()
    assert (out.numpy() == 2 * np.arange(1, 9)).all()


def test_replay_ends_another_queues_list_that_it_depends_on(queue):
    a, b, out = floats(), empty(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
    with fq.FusionQueue(queue.device.filter_string) as second, fq.fusion(second) as other:
        second.submit(copy, 8, out, b)
        with pytest.warns(fq.FusionAborted):
            f.replay()
    assert other.report.strategy == "unfused"


def test_replay_keeps_numpy_arrays(queue):
    a, out = np.arange(8.0), np.zeros(8)
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
    alive = weakref.ref(a)
    del a
    gc.collect()
    out[...] = 0
    f.replay().wait()
    assert alive() is not None
    assert out[7] == 7
