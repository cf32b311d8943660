"""The steady state: what is found again, what is not, and that nothing is kept alive."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from tests.unit.runtime.chains import chain
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import copy, put, scale, shift


def test_the_same_call_does_nothing_new(queue, work):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    first = chain(queue, a, tmp, out)
    assert first.report.cache == "miss"
    done = dict(work)
    assert done == {"plan": 1, "build": 1, "prepare": 1}
    second = chain(queue, a, tmp, out)
    assert work == done
    assert second.report.cache == "memory"
    assert np.array_equal(out.numpy(), a.numpy() * 2)


def test_the_report_is_the_same_from_the_cache(queue):
    PLANS.clear()
    a, tmp, out = floats(), empty(promote_private=True), empty()
    reports = [chain(queue, a, tmp, out).report for _ in range(2)]
    first, second = (r.to_dict() for r in reports)
    for key in ("cache", "timings_seconds"):
        assert first.pop(key) != second.pop(key)
    assert first == second
    assert {"frontend", "analysis", "passes", "codegen", "build", "prepare"} <= set(
        reports[0].timings
    )
    assert reports[1].timings == {}


def test_other_buffers_and_sizes_need_no_plan_and_no_build(queue, work):
    first = chain(queue, floats(), empty(promote_private=True), empty())
    done = dict(work)
    a, tmp, out = floats(19), empty(19, promote_private=True), empty(19)
    f = chain(queue, a, tmp, out, n=19)
    assert f.report.cache == "memory"
    assert (work["plan"], work["build"]) == (done["plan"], done["build"])
    assert np.array_equal(out.numpy(), a.numpy() * 2)
    assert [d.buffer for d in f.report.dependences] == [d.buffer for d in first.report.dependences]


def test_a_second_queue_shares_plans_and_programs(target, queue, work):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    chain(queue, a, tmp, out)
    done = dict(work)
    with fq.FusionQueue(target) as other:
        assert chain(other, a, tmp, out).report.cache == "memory"
    assert (work["plan"], work["build"]) == (done["plan"], done["build"])


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "unfused"},
        {"promote": "none"},
        {"fp": "fast"},
        {"strategy": "sequence"},
    ],
    ids=str,
)
def test_other_options_are_other_plans(queue, change):
    PLANS.clear()
    a, tmp, out = floats(), empty(promote_private=True), empty()
    chain(queue, a, tmp, out)
    assert chain(queue, a, tmp, out, **change).report.cache == "miss"
    assert chain(queue, a, tmp, out, **change).report.cache == "memory"


def test_other_flags_are_other_plans(queue):
    PLANS.clear()
    a, out = floats(), empty()
    chain(queue, a, empty(promote_private=True), out)
    tmp = empty()
    assert chain(queue, a, tmp, out).report.cache == "miss"
    assert np.array_equal(tmp.numpy(), a.numpy())


def test_other_aliasing_is_another_plan(queue):
    PLANS.clear()
    a, tmp, out = floats(), empty(), empty()
    chain(queue, a, tmp, out)
    assert chain(queue, a, tmp, tmp).report.cache == "miss"
    assert np.array_equal(tmp.numpy(), a.numpy() * 2)


def test_views_made_anew_are_found_again(queue, work):
    a, out = floats(), empty()
    for _ in range(3):
        queue.submit(copy, 4, a[::2], out[4:])
    assert work == {"plan": 1, "build": 1, "prepare": 1}
    queue.submit(copy, 4, a[1::2], out[4:])
    assert out.numpy()[4:].tolist() == [2, 4, 6, 8]


def test_numpy_arrays_are_found_by_their_memory(queue, work):
    a, b, out = np.arange(8.0), np.arange(8.0) * 10, np.zeros(8)
    for array in (a, a[:], b, a):
        queue.submit(copy, 8, array, out)
        queue.wait()
        assert np.array_equal(out, array)
    assert work["prepare"] == 2


# -------------------------------------------------------------------------------- scalars
def bits(value):
    return np.array(value).tobytes()


@pytest.mark.parametrize("fused", [False, True])
def test_every_value_reaches_the_kernel_bit_for_bit(queue, fused):
    out = fq.Buffer(1, np.float64)
    nan = float("nan")
    for value in (0.0, -0.0, 0.0, nan, -nan, nan, 1.0, math.inf, -0.0):
        if fused:
            with fq.fusion(queue):
                queue.submit(put, 1, value, out)
        else:
            queue.submit(put, 1, value, out)
        assert bits(out.numpy()[0]) == bits(value)


def test_values_that_compare_equal_keep_their_types(queue):
    a = fq.Buffer(np.array([3], np.int32))
    results = []
    for factor in (True, 1, 1.0, np.float32(1), np.int8(1), True, 1):
        out = fq.Buffer(1, np.float64)
        queue.submit(scale, 1, a, factor, out)
        results.append((out.numpy()[0], queue._state.launcher.cache.known.__len__()))
    assert [r[0] for r in results] == [3] * 7
    assert len({type(k[4]) for k in queue._state.launcher.cache.known if k[0] is scale}) == 1
    assert {k[4] for k in queue._state.launcher.cache.known if k[0] is scale} == {
        bool, int, float, np.float32, np.int8,
    }  # fmt: skip


def test_float_scalars_change_without_a_plan(queue, work):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    for factor in (2.0, 3.0, 0.5, 3.0):
        with fq.fusion(queue) as f:
            queue.submit(scale, 8, a, factor, tmp)
            queue.submit(scale, 8, tmp, factor, out)
        assert np.array_equal(out.numpy(), a.numpy() * np.float32(factor) ** 2)
    assert work == {"plan": 1, "build": 1, "prepare": 1}
    assert f.report.cache == "memory"


def test_int_scalars_that_the_plan_depends_on_are_checked(queue):
    a = floats()
    for distance in (0, 3, 0, 1, 3, 7):
        tmp, out = empty(), empty()
        with fq.fusion(queue):
            queue.submit(copy, 8, a, tmp)
            queue.submit(shift, 8, tmp, distance, out)
        assert np.array_equal(out.numpy()[: 8 - distance], a.numpy()[distance:]), distance


def test_int_scalars_change_with_the_same_buffers(queue):
    a, tmp, out = floats(), empty(), empty()
    for distance in (0, 3, 0, 1, 3, 7):
        out.write(np.zeros(8, np.float32))
        with fq.fusion(queue):
            queue.submit(copy, 8, a, tmp)
            queue.submit(shift, 8, tmp, distance, out)
        assert np.array_equal(out.numpy()[: 8 - distance], a.numpy()[distance:]), distance
        assert not out.numpy()[8 - distance :].any()


@fq.kernel
def starts_of_blocks(item: fq.Item, width, a, out):
    i = item.get_id(0)
    out[i] = a[i // width * width]


def test_a_submission_alone_has_one_plan_for_all_scalars(queue, work):
    """Even for a divisor, which an analysis could only take at its present value: nothing is
    decided between submissions, so more values than a structure keeps plans for need no other."""
    a, out = fq.Buffer(np.arange(40)), fq.Buffer(40, np.int64)
    for width in range(1, 41):
        queue.submit(starts_of_blocks, 40, width, a, out)
        assert np.array_equal(out.numpy(), np.arange(40) // width * width)
    assert work["plan"] == work["build"] == work["prepare"] == 1


def test_an_int_that_does_not_fit_is_refused_on_the_fast_path(queue):
    small = fq.Buffer(np.zeros(4, np.int8))
    for _ in range(2):
        queue.submit(scale, 4, small, 5, small)
    with fq.fusion(queue) as f:
        queue.submit(scale, 4, small, 5, small)
        with pytest.raises(fq.ArgumentError, match="300"):
            queue.submit(scale, 4, small, 300, small)
    assert len(f.report.submissions) == 1
