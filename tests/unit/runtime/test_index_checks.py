"""Indices that provably leave their array, also where only a scalar has changed since the last
check."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.planning import submission_check
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import scale, shift


@fq.kernel
def take(item: fq.Item, a, first, step, out):
    i = item.get_id(0)
    out[i] = a[first + step * i]


@fq.kernel
def take_far(item: fq.Item, a, far, out):
    i = item.get_id(0)
    out[i] = a[far // 2**60 + i]


@fq.kernel
def some_barriers(item: fq.NdItem, rounds, first, out):
    if item.get_local_id(0) < first:
        fq.group_barrier(item.get_group())
    out[item.get_global_id(0)] = rounds


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The submissions that were analysed."""
    seen: list[object] = []
    original = submission_check.check_submission

    def counting(submission, known):
        seen.append(submission)
        return original(submission, known)

    monkeypatch.setattr(submission_check, "check_submission", counting)
    return seen


def test_another_scalar_that_leaves_the_array(queue):
    a, out = floats(16), empty()
    for first in (0, 8):
        queue.submit(take, 8, a, first, 1, out)
    with pytest.raises(fq.ArgumentError) as raised:
        queue.submit(take, 8, a, 9, 1, out)
    assert "read outside array 'a'" in str(raised.value)
    assert "test_index_checks.py" in str(raised.value).split(":")[0]
    assert "queue.submit(take, 8, a, 9, 1, out)" in str(raised.value)
    for wrong in (-1, 10_000, 2**40):
        with pytest.raises(fq.ArgumentError, match="outside array 'a'"):
            queue.submit(take, 8, a, wrong, 1, out)
    with pytest.raises(fq.ArgumentError, match="outside array 'a'"):
        queue.submit(take, 8, a, 2, np.int64(2), out)
    assert list(out.numpy()) == list(range(9, 17))


def test_a_value_too_large_to_reason_about_says_nothing_of_others(queue, checks):
    a, out = floats(16), empty()
    for far in (2**62, 2**62 + 1, -1 + 2**62):
        queue.submit(take_far, 8, a, far, out)
    assert len(checks) <= 2
    with pytest.raises(fq.ArgumentError, match="outside array 'a'"):
        queue.submit(take_far, 8, a, -1, out)
    assert list(out.numpy()) == list(range(4, 12))


def test_in_a_list_and_in_a_replay(queue):
    a, out, first = floats(16), empty(), 3
    queue.submit(take, 8, a, first, 1, out)
    with fq.fusion(queue) as f:
        with pytest.raises(fq.ArgumentError, match="outside array 'a'"):
            queue.submit(take, 8, a, 12, 1, out)
        queue.submit(take, 8, a, first, 1, out)
    assert len(f.report.submissions) == 1
    f.replay(first=8)
    with pytest.raises(fq.ArgumentError, match="outside array 'a'"):
        f.replay(first=9)
    assert list(out.numpy()) == list(range(9, 17))


def test_a_barrier_that_another_scalar_makes_divergent(queue):
    out = empty()
    for first in (0, 4, 5):
        queue.submit(some_barriers, fq.NdRange(8, 4), 1, first, out)
    with pytest.raises(fq.KernelLanguageError, match=r"never ends(.|\n)*Submitted at .*checks\.py"):
        queue.submit(some_barriers, fq.NdRange(8, 4), 1, 2, out)


def test_values_that_the_proof_covers_are_not_analysed(queue, checks):
    a, out = floats(16), empty()
    queue.submit(take, 8, a, 4, 1, out)
    once = len(checks)
    for first in (3, 5, 6, 2, 8, 3):
        queue.submit(take, 8, a, first, 1, out)
    assert len(checks) == once
    for _ in range(3):  # what was refused is analysed each time, and what passed never again
        with pytest.raises(fq.ArgumentError):
            queue.submit(take, 8, a, 9, 1, out)
        queue.submit(take, 8, a, 7, 1, out)
    assert len(checks) == once + 3


def test_equal_scalars_that_differ_later(queue, checks):
    """The proof for two scalars of one value holds for such only."""
    a, out = floats(32), empty()
    queue.submit(take, 8, a, 2, 2, out)
    queue.submit(take, 8, a, 3, 3, out)
    with pytest.raises(fq.ArgumentError, match="outside array 'a'"):
        queue.submit(take, 8, a, 3, 5, out)
    queue.submit(take, 8, a, 3, 4, out)
    assert list(out.numpy()) == [4, 8, 12, 16, 20, 24, 28, 32]


def test_other_buffers_take_over_the_check(queue, checks):
    queue.submit(take, 8, floats(16), 2, 1, empty())  # equal scalars would be a case of their own
    once = len(checks)
    out = empty()
    queue.submit(take, 8, floats(16), 8, 1, out)
    assert len(checks) == once
    with pytest.raises(fq.ArgumentError):
        queue.submit(take, 8, floats(16), 9, 1, out)


def test_scalars_that_no_index_rests_on_are_not_looked_at(queue, checks):
    a, out = floats(), empty()
    entry_of = queue._known
    for factor in (1, 2, 3):
        queue.submit(scale, 8, a, factor, out)
    (entry,) = [e for e in entry_of.values() if e.submission.name == "scale"]
    assert entry.rests_on == () and entry.passed <= {()}
    queue.submit(shift, 8, a, 1, out)
    (guarded,) = [e for e in entry_of.values() if e.submission.name == "shift"]
    for distance in range(40):
        queue.submit(shift, 8, a, distance, out)
    assert len(guarded.passed) <= 41
