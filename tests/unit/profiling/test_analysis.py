"""What follows from records, on timelines made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusionq.profiling.accounting import KINDS, account, overlaps, statistics, tail_ns
from fusionq.profiling.comparison import gaps_ns
from fusionq.profiling.critical_path import critical_path, what_if
from fusionq.profiling.findings import findings
from fusionq.profiling.timeline import assign_workers
from fusionq.profiling.waits import blame, last_arrivers
from tests.unit.profiling.timelines import STAGES, WAITING, launch, timeline

SLICE = 1_000_000
"""Nanoseconds for which a core is taken away."""


def test_each_workers_time_adds_up() -> None:
    accounting = account(WAITING)
    rows = [dict(zip(KINDS, row.tolist(), strict=True)) for row in accounting.table]
    assert rows[0] == {
        "work": 500, "ticket": 0, "wait": 0, "barrier": 0, "publish": 10, "idle": 490,
    }  # fmt: skip
    assert rows[1] == {
        "work": 670, "ticket": 20, "wait": 300, "barrier": 0, "publish": 10, "idle": 0,
    }  # fmt: skip
    assert accounting.window_ns == 1000
    assert sum(accounting.share(kind) for kind in KINDS) == pytest.approx(1)


def test_what_overlaps_counts_once() -> None:
    """An interval lasts until the next one of the same worker begins."""
    table = account(timeline([("a", "stage"), ("b", "barrier")], [(0, 0, 0, 60), (0, 1, 50, 100)]))
    assert table.table[0].tolist() == [50, 0, 0, 50, 0, 0]


def test_the_last_arriver_is_who_published_last() -> None:
    arrivers = last_arrivers(WAITING)
    assert arrivers.tolist() == [-1, -1, -1, -1, -1, -1, 1, -1]
    (found,) = blame(WAITING)
    assert (found.waiter, found.producer, found.count, found.sum_ns) == ("b", "a", 1, 300)
    assert (found.worst_instance, found.worst_producer) == (7, 1)


def test_a_publication_after_the_wait_is_not_to_blame() -> None:
    late = replace(WAITING, intervals=WAITING.intervals.copy())
    late.intervals["start"][1], late.intervals["end"][1] = 600, 610
    assert last_arrivers(late)[6] == 4


def test_other_counters_and_launches_are_not_to_blame() -> None:
    other = replace(WAITING, intervals=WAITING.intervals.copy())
    other.intervals["payload"][1] = 43
    assert last_arrivers(other)[6] == 4
    other.intervals["launch"][4] = 1
    assert last_arrivers(other)[6] == -1
    assert blame(other)[0].producer == "unknown"


def test_what_the_decoder_knows_counts() -> None:
    known = replace(WAITING, intervals=WAITING.intervals.copy())
    known.intervals["producer"][6] = 4
    assert last_arrivers(known)[6] == 4


def test_the_critical_path_goes_through_the_last_arriver() -> None:
    path = critical_path(WAITING, 0)
    # b, what is left of the wait after the publication, the publication, a on worker 0.
    assert path.length_ns == 480 + 10 + 10 + 500 == path.makespan_ns
    assert path.error == 0
    assert path.by_region == {"a": 500, "b": 480, "a (publish)": 10, "b (wait)": 10}
    assert path.steps == 4


def test_the_critical_path_admits_what_it_does_not_explain() -> None:
    path = critical_path(timeline([("a", "stage")], [(0, 0, 0, 40), (0, 0, 60, 100)]), 0)
    assert path.length_ns == 80
    assert path.error == pytest.approx(0.2)


def test_what_if_a_stage_took_no_time() -> None:
    without = {w.stage: w for w in what_if(WAITING, 0)}
    assert without["a"].measured_ns == without["b"].measured_ns == 1000
    assert abs(without["a"].replayed_ns - 1000) <= 20
    # Without a, b can begin at once; without b, a on worker 0 is what is left.
    assert without["a"].without_ns == pytest.approx(480 + 30, abs=20)
    assert without["b"].without_ns == pytest.approx(510 + 20, abs=20)
    assert [w.stage for w in what_if(WAITING, 0)] == ["a", "b"]


def test_free_work_is_shared_out_anew() -> None:
    """Four tasks of 100 on two workers, and one stage of 300 that kept one of them busy."""
    rows = [(0, 1, 0, 300, 9), *((1, 0, 100 * i, 100 * i + 100, i) for i in range(3))]
    rows.append((1, 0, 300, 400, 3))
    found = {w.stage: w for w in what_if(timeline([("a", "stage"), ("b", "stage")], rows), 0)}
    assert found["b"].without_ns == 200
    assert found["b"].replayed_ns == 400


def test_overlap_of_stages() -> None:
    regions = [("a", "stage"), ("b", "stage"), ("c", "stage")]
    rows = [(0, 0, 0, 100), (1, 0, 50, 150), (1, 1, 150, 200), (0, 2, 100, 180)]
    found = {(o.first, o.second): (o.both_ns, o.share) for o in overlaps(timeline(regions, rows))}
    assert found["a", "b"] == (0, 0)
    assert found["a", "c"] == (50, 50 / 80)
    assert found["c", "b"] == (30, 30 / 50)


def test_statistics_and_trust() -> None:
    rows = [(0, 0, 0, 1000, 0), (1, 0, 0, 3000, 1), (0, 1, 1000, 1015, 2)]
    long, short = statistics(timeline([("long", "stage"), ("short", "stage")], rows))
    assert (long.name, long.count, long.sum_ns, long.max_ns) == ("long", 2, 4000, 3000)
    assert long.p50_ns == 2000
    assert long.imbalance == pytest.approx(0.5)
    assert long.trusted
    assert not short.trusted, "15 ns are less than two ticks of 10 ns"


def test_waits_that_need_not_wait_are_nobodys_fault() -> None:
    t = timeline(
        STAGES,
        [
            (0, 0, 0, 500, 1), (0, 2, 500, 510, 1, 42),
            (1, 3, 600, 600, 7, 42), (1, 1, 600, 700, 7),
            (1, 3, 700, 700, 8, 42), (1, 1, 700, 900, 8),
        ],
    )  # fmt: skip
    assert blame(t) == ()
    (waits,) = (s for s in statistics(t) if s.kind == "wait")
    assert waits.trusted, "no length is no measurement"
    assert critical_path(t, 0).by_region == {"b": 300}


def test_tail_and_gaps() -> None:
    regions = [("a", "stage")]
    rows = [(0, 0, 0, 100), (1, 0, 0, 60), (0, 0, 150, 200, 0, 0, 1)]
    two = timeline(regions, rows, [launch(0, 100), launch(150, 200)])
    assert gaps_ns(two.launches) == 50
    assert tail_ns(two, [0]) == 40
    assert tail_ns(two) == 40 + 50, "worker 1 had nothing at all to do in the second"


def test_the_worst_comes_first() -> None:
    def told(one):
        return findings(one, account(one), statistics(one), blame(one), (), SLICE)

    waits = told(WAITING)
    assert waits[0].cost >= waits[-1].cost
    assert any("'b' for 'a'" in f.what and "tile 1" in f.what for f in waits)
    uneven = [(0, 0, 0, 10_000, 0), (1, 0, 0, 1000, 1), (1, 0, 1000, 2000, 2)]
    worst, *_ = told(timeline([("a", "stage")], uneven))
    assert worst.cost == pytest.approx(0.8)
    assert "'a' took up to 10.0 µs" in worst.what
    busy = timeline([("a", "stage")], [(0, 0, 0, 1000, 0), (1, 0, 0, 1000, 1)])
    assert told(busy) == ()


def test_an_interruption_is_told_apart() -> None:
    rows = [(0, 0, 0, 5_000_000, 0), *((1, 0, 100 * i, 100 * i + 100, i) for i in range(1, 99))]
    one = timeline([("a", "stage")], rows)
    worst, *_ = findings(one, account(one), statistics(one), (), (), SLICE)
    assert "did something else" in worst.what


def test_workers_are_as_many_as_ran_at_once() -> None:
    rows = [
        (-1, 0, 0, 10, 0), (-1, 0, 5, 30, 1), (-1, 0, 10, 20, 2), (-1, 0, 21, 40, 3),
        (-1, 1, 30, 35, 1), (-1, 0, 35, 50, 4),
    ]  # fmt: skip
    one = timeline([("a", "stage"), ("b", "stage")], rows)
    assign_workers(one.intervals)
    assert one.workers == 2
    worker = dict(
        zip(one.intervals["instance"].tolist(), one.intervals["worker"].tolist(), strict=True)
    )
    assert worker[0] == worker[2] == worker[3]
    assert worker[1] == worker[4] != worker[0]
    for mine in (one.intervals[one.intervals["worker"] == w] for w in range(2)):
        mine = np.sort(mine, order="start")
        assert (mine["end"][:-1] <= mine["start"][1:]).all()


def test_selecting_launches_keeps_who_waited_for_whom() -> None:
    rows = [(0, 0, 0, 10), (0, 2, 10, 20, 0, 5, 1), (1, 3, 10, 20, 0, 5, 1)]
    regions = [("a", "stage"), ("b", "stage"), ("a", "publish"), ("b", "wait")]
    two = timeline(regions, rows, [launch(0, 10), launch(10, 20)])
    two.intervals["producer"][2] = 1
    part = two.select([1])
    assert part.intervals["producer"].tolist() == [-1, 0]
    assert len(part.launches) == 1
