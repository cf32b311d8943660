"""Producers that are not computed anew, each with its reason, and what is stored beside."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.halo_lists import (
    Lists,
    N,
    all_of_them,
    also,
    at_places,
    chain,
    counted,
    double,
    in_place,
    neighbours,
    same_element,
    two_elements,
    where_positive,
    while_positive,
)


# ----------------------------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("first", "second", "items", "reason"),
    [
        (where_positive, neighbours, N, "submission 0 writes"),
        (two_elements, neighbours, N // 2, "a work-item writes several elements of it"),
        (same_element, neighbours, 4, None),
        (in_place, neighbours, N, "it is updated in place"),
        (double, all_of_them, N, "at no bounded distance"),
        (double, while_positive, N, None),
    ],
)
def test_what_is_not_proved_is_refused(lists, first, second, items, reason):
    report = lists(chain(first, second, items))
    assert report.plan.recomputed == ()
    if reason is not None:
        assert reason in report.fallback


def test_atomic_operations_run_once(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(counted, N, a, t, c)
        queue.submit(neighbours, N, t, b)

    assert "has the atomic operation" in lists(submit).fallback


def test_a_reader_of_elements_that_memory_says(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)
        queue.submit(at_places, N, t, np.arange(N)[::-1].copy(), c)

    assert "is not affine, so its element is unknown" in lists(submit).fallback


def test_a_submission_that_writes_more(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(also, N, a, t, c)
        queue.submit(neighbours, N, t, b)

    (computed,) = lists(submit).plan.recomputed
    assert (computed.buffer, computed.stored) == ("t", False)


def test_an_input_that_the_consumer_overwrites(lists):
    def submit(queue, a, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, a)

    assert "submission 1 writes" in lists(submit).fallback


def test_an_input_that_is_overwritten_between(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(double, N, c, a)
        queue.submit(neighbours, N, t, b)

    assert "submission 1 writes" in lists(submit).fallback


def test_an_input_of_an_input_that_is_overwritten(lists):
    def submit(queue, a, b, c, t, u, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, u)
        queue.submit(double, N, c, a)
        queue.submit(neighbours, N, u, b)

    report = lists(submit)
    assert [r.buffer for r in report.plan.recomputed] == ["u"]
    assert [r.producer for r in report.plan.recomputed] == [1]


def test_an_input_that_is_overwritten_afterwards_is_waited_for(lists, way):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)
        queue.submit(double, N, c, a)

    report = lists(submit)
    assert report.strategy == "overlap"
    if way == "tiled":  # other work-groups' halos are made of it
        assert [stage.submissions for stage in report.stages] == [(0, 1), (2,)]
        return
    (stage,) = report.stages
    (barrier,) = stage.inserted
    assert barrier.reason == "WAR of a, which [0] reads in the same work-group"


def test_an_input_that_overlaps_what_is_written(reference_queue):
    memory = fq.Buffer(np.arange(2 * N))

    def submit(queue, t, **_):
        queue.submit(double, N, memory[:N], t)
        queue.submit(neighbours, N, t, memory[N // 2 : N // 2 + N])

    assert "submission 1 writes" in Lists(reference_queue)(submit).fallback


def test_a_temporary_that_is_written_twice(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)
        queue.submit(double, N, b, t)
        queue.submit(neighbours, N, t, c)

    report = lists(submit)
    made = [(r.buffer, r.producer) for r in report.plan.recomputed]
    assert made == [("t", 0), ("b", 1), ("t", 2)]


def test_a_temporary_that_is_read_first(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(neighbours, N, t, c)
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)

    report = lists(submit)
    assert [r.stored for r in report.plan.recomputed] == [True]
    (kept,) = (p for p in report.promotions if p.buffer == "t")
    assert kept.scope == "global"


def test_a_temporary_read_backwards(lists):
    def submit(queue, a, b, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t[::-1], b)

    assert "views that differ" in lists(submit).fallback


def test_what_is_not_flagged_is_stored_too(reference_queue, way):
    lists = Lists(reference_queue)
    lists._flags = {"t": {}, "u": {}}
    report = lists(chain(double, neighbours))
    assert report.strategy == "overlap"
    assert report.promotions == ()
    assert [r.stored for r in report.plan.recomputed] == [True]
    (stage,) = report.plan.stages
    assert (stage.tiling is not None) == (way == "tiled")
    assert (0, 1) in [(s.submission, s.argument) for s in stage.sources if hasattr(s, "argument")]


def test_no_work_item_reads_what_another_one_writes(reference_queue):
    lists = Lists(reference_queue)
    lists._flags = {"t": {}, "u": {}}
    assert "no work-item reads what another one" in lists(chain(double, double)).fallback


def test_what_is_read_is_not_known(reference_queue):
    @fq.kernel
    def looked_up(item: fq.Item, places, a, out):
        i = item.get_id(0)
        out[i] = a[places[i]]

    n = 5000
    places, a = fq.Buffer(np.arange(n)[::-1].copy()), fq.Buffer(np.arange(n))
    b, c = fq.Buffer(n, np.int64), fq.Buffer(n, np.int64)
    with fq.fusion(reference_queue, strategy="overlap") as f:
        reference_queue.submit(double, n, a, b)
        reference_queue.submit(looked_up, n, places, b, c)
    assert "what submission 1 reads of submission 0 is not known (the index at" in f.report.fallback
    assert np.array_equal(c.numpy(), 2 * np.arange(n)[::-1])


def test_promote_none(lists):
    def run(promote):
        a, b = fq.Buffer(np.arange(N)), fq.Buffer(N, np.int64)
        t = fq.Buffer(N, np.int64, internal=True)
        with fq.fusion(lists._queue, strategy="overlap", promote=promote) as f:
            chain(double, neighbours)(lists._queue, a=a, b=b, t=t)
        return f.report

    for promote, stored in (("none", True), ("flagged", True), ("internal", False)):
        assert [r.stored for r in run(promote).plan.recomputed] == [stored]


def test_promote_none_keeps_what_is_flagged(lists):
    for flag in ("promote_private", "promote_local"):
        a, b = fq.Buffer(np.arange(N)), fq.Buffer(N, np.int64)
        t = fq.Buffer(N, np.int64, **{flag: True})
        with fq.fusion(lists._queue, strategy="overlap", promote="none") as f:
            chain(double, neighbours)(lists._queue, a=a, b=b, t=t)
        assert f.report.strategy == "overlap"
        assert t.numpy().tolist() == (2 * np.arange(N)).tolist()


def test_one_kernel_needs_nothing_computed_anew(lists):
    report = lists(chain(double, double))
    assert report.strategy == "fused"
    assert "nothing has to be computed anew" in report.fallback


def test_require_is_satisfied_by_one_launch(lists):
    assert lists(chain(double, neighbours), require=True).strategy == "overlap"


def test_require_refuses_what_is_not_proved(lists):
    with pytest.raises(fq.FusionRefused, match="a work-item writes several elements"):
        lists(chain(two_elements, neighbours, N // 2), require=True)
