"""Scalars on whose values a plan depends: after a few of them there is a plan for all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import validity
from fusionq.cache.plan_cache import PLANS
from fusionq.planning import planner, submission_check
from fusionq.planning.specialise import MOST_VALUES

WIDTH, ROWS = 24, 40


@fq.kernel
def double_row(item: fq.Item, size, t, a, b):
    i = item.get_id(0)
    b[size * t + i] = a[size * t + i] * 2 + 1


@fq.kernel
def reverse_row(item: fq.Item, size, t, a, b):
    i = item.get_id(0)
    b[size * t + i] = a[size * t + size - 1 - i] + 1


@fq.kernel
def spread_row(item: fq.Item, size, t, a, b):
    i = item.get_id(0)
    if i > 0 and i < size - 1:
        b[size * t + i] = a[size * t + i - 1] + a[size * t + i + 1]
    else:
        b[size * t + i] = a[size * t + i]


@fq.kernel
def shift_row(item: fq.Item, t, u, a, b):
    i = item.get_id(0)
    b[t * u + i] = a[t * u + i] + 1


@fq.kernel
def shifted_by(item: fq.Item, t, a, b):
    i = item.get_id(0)
    b[i] = a[i + t]


@fq.kernel
def scaled_by(item: fq.Item, factor, b):
    i = item.get_id(0)
    b[i] = b[i] * factor


@pytest.fixture
def counts(monkeypatch):
    """How many plans and checks are made; starts with empty caches."""
    PLANS.clear()
    found = {"plans": 0, "checks": 0}

    def counted(name, original):
        def call(*arguments, **options):
            found[name] += 1
            return original(*arguments, **options)

        return call

    monkeypatch.setattr(planner, "Planning", counted("plans", planner.Planning))
    check = submission_check.check_submission
    monkeypatch.setattr(submission_check, "check_submission", counted("checks", check))
    return found


def numbered():
    return np.arange(WIDTH * ROWS, dtype=np.int64)


def rows(buffer):
    return buffer.numpy().reshape(ROWS, WIDTH)


def test_one_submission(queue, counts):
    a, b = fq.Buffer(numbered()), fq.Buffer(WIDTH * ROWS, np.int64)
    for t in range(ROWS):
        queue.submit(reverse_row, WIDTH, WIDTH, t, a, b)
    queue.wait()
    assert (rows(b) == rows(a)[:, ::-1] + 1).all()
    assert counts["plans"] == 1
    assert counts["checks"] <= 3


@pytest.mark.parametrize("strategy", ["auto", "unfused"])
def test_a_list(queue, counts, strategy):
    a, b, c = fq.Buffer(numbered()), *(fq.Buffer(WIDTH * ROWS, np.int64) for _ in range(2))
    for t in range(ROWS):
        with fq.fusion(queue, strategy=strategy):
            queue.submit(double_row, WIDTH, WIDTH, t, a, b)
            queue.submit(reverse_row, WIDTH, WIDTH, t, b, c)
    queue.wait()
    assert (rows(c) == rows(a)[:, ::-1] * 2 + 2).all()
    # What runs unfused is planned without dependences, so that its plan holds for all scalars.
    assert counts["plans"] == (1 if strategy == "unfused" else MOST_VALUES + 1)


def test_promotion(queue, counts):
    a, c = fq.Buffer(numbered()), fq.Buffer(WIDTH * ROWS, np.int64)
    for t in range(ROWS):
        between = fq.Buffer(WIDTH * ROWS, np.int64, promote_private=True)
        with fq.fusion(queue) as f:
            queue.submit(double_row, WIDTH, WIDTH, t, a, between)
            queue.submit(double_row, WIDTH, WIDTH, t, between, c)
        assert [p.scope for p in f.report.promotions] == ["private"]
    assert (rows(c) == rows(a) * 4 + 3).all()
    assert counts["plans"] == MOST_VALUES + 1


@pytest.mark.slow
def test_a_persistent_kernel(queue, counts):
    a, b = fq.Buffer(numbered()), fq.Buffer(WIDTH * ROWS, np.int64)
    for t in range(ROWS):
        with fq.fusion(queue, strategy="megakernel", barriers="none") as f:
            for source, out in [(a, b), (b, a)] * 2:
                queue.submit(spread_row, WIDTH, WIDTH, t, source, out)
        f.event.wait()
        assert f.report.strategy == "megakernel"
    expected = numbered().reshape(ROWS, WIDTH)
    for _ in range(4):
        inside = expected[:, :-2] + expected[:, 2:]
        expected = np.concatenate([expected[:, :1], inside, expected[:, -1:]], 1)
    assert (rows(a) == expected).all()
    assert counts["plans"] == MOST_VALUES + 1


def test_two_that_vary_are_not_pinned_in_turn(queue, counts):
    """Nothing is known of a product of two scalars that vary: the list still becomes launches, and
    the right ones."""
    a, b = fq.Buffer(numbered()), fq.Buffer(WIDTH * ROWS, np.int64)
    c = fq.Buffer(WIDTH * ROWS, np.int64)
    values = [(t, u) for t in range(2, 8) for u in range(8, 14)]
    for t, u in values:
        with fq.fusion(queue) as f:
            queue.submit(shift_row, WIDTH, t, u, a, b)
            queue.submit(shift_row, WIDTH, t, u, b, c)
    f.event.wait()
    touched = {t * u + i for t, u in values for i in range(WIDTH)}
    expected = np.where(np.isin(numbered(), list(touched)), numbered() + 2, 0)
    assert (c.numpy() == expected).all()
    assert counts["plans"] <= 2 * MOST_VALUES + 2


def test_a_few_values_keep_plans_of_their_own(queue, counts):
    a, b = fq.Buffer(numbered()), fq.Buffer(WIDTH * ROWS, np.int64)
    for _ in range(5):
        for t in range(MOST_VALUES):
            with fq.fusion(queue):
                queue.submit(double_row, WIDTH, WIDTH, t, a, b)
                queue.submit(double_row, WIDTH, WIDTH, t, b, a)
    queue.wait()
    assert counts["plans"] == MOST_VALUES


def test_sizes_do_not_count_as_values(queue, counts):
    """A list over other sizes gets a plan for its scalars as they are."""
    for size in (3, 5, 9, 17, 33, 65):
        a, b = (fq.Buffer(np.arange(2 * size, dtype=np.int64)) for _ in range(2))
        with fq.fusion(queue) as f:
            queue.submit(double_row, size, size, 1, a, b)
            queue.submit(double_row, size, size, 1, b, a)
        assert f.report.strategy == "fused"
        assert (a.numpy()[size:] == np.arange(size, 2 * size) * 4 + 3).all()


@pytest.mark.parametrize("value", [700, np.int64(700), 0, np.int64(0), 2.5, np.float32(2.5)])
def test_equal_scalars_that_are_new_objects_are_no_other_scalars(value, monkeypatch):
    """Of a list that is submitted again with numbers that were computed anew, nothing is checked
    again, and nothing bound."""
    held = []
    original = validity.Validity.holds
    monkeypatch.setattr(
        validity.Validity, "holds", lambda self, s: held.append(1) or original(self, s)
    )
    a, b = fq.Buffer(np.ones(2000, np.float32)), fq.Buffer(2000, np.float32)
    kind, queue = type(value), fq.FusionQueue("reference")
    for turn in range(4):
        if turn == 2:
            held.clear()
        with fq.fusion(queue):
            queue.submit(shifted_by, 100, int("700"), a, b)  # a new object each time
            queue.submit(scaled_by, 100, kind(float(str(value))), b)
    assert not held
    assert (b.numpy()[:100] == np.float32(value)).all()


@fq.kernel
def from_on(item: fq.Item, a, k, b):
    i = item.get_id(0)
    if i >= k:
        b[i] = a[i] + k


@pytest.mark.parametrize("kernels", ["items", "shifts"])
def test_scalars_that_are_equal_by_chance_are_planned_once_for_all(counts, queue, kernels):
    """Which of them are equal is another one in each list, and all or none of them in some."""
    chance, size, length = np.random.default_rng(3), 12, 5
    chances = [chance.integers(0, 4, length) for _ in range(24)]
    chances[9], chances[15], chances[20] = [np.full(length, n) for n in (0, 3, 11)]
    chances[22] = np.arange(length)
    made = []
    for scalars in chances:
        buffers = [fq.Buffer(np.arange(2 * size, dtype=np.int64) * n) for n in (1, 10)]
        now, then = [buffer.numpy().copy() for buffer in buffers]
        before = counts["plans"]
        with fq.fusion(queue, strategy="fused"):
            for s, k in enumerate(map(int, scalars)):
                a, b = buffers[s % 2], buffers[1 - s % 2]
                if kernels == "items":
                    queue.submit(from_on, size, a, k, b)
                    then[k:size] = now[k:size] + k
                else:
                    queue.submit(shifted_by, size, k, a, b)
                    then[:size] = now[k : k + size]
                now, then = then, now
        made.append(counts["plans"] - before)
        left = now if length % 2 == 0 else then
        right = then if length % 2 == 0 else now
        assert np.array_equal(buffers[0].numpy(), left)
        assert np.array_equal(buffers[1].numpy(), right)
    assert sum(made) <= MOST_VALUES + 4, made
    assert not any(made[12:]), made


@fq.kernel
def summed(item: fq.Item, a, times, b):
    i = item.get_id(0)
    total = a[i]
    for _ in range(times):
        total = total + a[i]
    b[i] = total


def test_a_plan_that_does_not_serve_its_list_is_made_anew_with_its_values(queue, monkeypatch):
    """``times`` is a constant of the kernel that is made for other values."""

    def others(submissions, varying, known):
        return tuple([
            replace(s, arguments=(s.arguments[0], replace(s.arguments[1], value=7), s.arguments[2]))
            for s in submissions
        ])  # fmt: skip

    monkeypatch.setattr(planner, "with_values_apart", others)
    a, between, b = fq.Buffer(np.arange(9.0)), fq.Buffer(9, np.float64), fq.Buffer(9, np.float64)
    for times in (2, 7, 3):
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(summed, 9, a, times, between)
            queue.submit(summed, 9, between, times, b)
        assert np.array_equal(b.numpy(), np.arange(9.0) * (times + 1) ** 2)
        assert f.report.strategy == "fused"
