"""The stages of one kernel as one region: nothing is lost, and other kernels stay apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fusionq.profiling.accounting import account, overlaps, statistics
from fusionq.profiling.by_kernel import by_kernel, overlaps_by_kernel
from fusionq.profiling.critical_path import critical_path, what_if
from fusionq.profiling.regions import Region
from fusionq.profiling.timeline import Aggregate
from fusionq.profiling.waits import blame
from tests.unit.profiling.test_output import of
from tests.unit.profiling.timelines import timeline

# Two workers, two tiles a stage.  Stage 1 waits for stage 0, stage 2 for stage 1.
STEPS = timeline(
    [
        ("0: step", "stage"), ("1: step", "stage"), ("2: norm", "stage"), ("3: step", "stage"),
        ("1: step", "wait"), ("2: norm", "wait"), ("0: step", "publish"), ("1: step", "publish"),
    ],
    [
        (0, 0, 0, 100, 0), (0, 6, 100, 110, 0, 7),
        (1, 0, 0, 200, 1), (1, 6, 200, 210, 1, 7),
        (0, 4, 110, 210, 0, 7), (0, 1, 210, 300, 0), (0, 7, 300, 310, 0, 8),
        (1, 1, 210, 400, 1), (1, 7, 400, 410, 1, 8),
        (0, 5, 310, 410, 0, 8), (0, 2, 410, 500, 0),
        (1, 3, 410, 600, 0),
    ],
)  # fmt: skip


def test_regions_of_a_kernel_are_one() -> None:
    merged = by_kernel(STEPS)
    assert [str(r) for r in merged.regions] == [
        "3 × step", "2: norm", "1: step (wait)", "2: norm (wait)", "2 × step (publish)",
    ]  # fmt: skip
    for name in STEPS.intervals.dtype.names:
        if name != "region":
            assert np.array_equal(merged.intervals[name], STEPS.intervals[name])
    found = {s.name: s for s in statistics(merged) if s.kind == "stage"}
    assert (found["3 × step"].count, found["3 × step"].max_ns) == (5, 200)
    assert found["3 × step"].sum_ns == 100 + 200 + 90 + 190 + 190
    assert found["2: norm"].sum_ns == 90
    assert np.array_equal(account(merged).table, account(STEPS).table)


def test_what_is_no_stage_of_many_stays_as_it_is() -> None:
    one = timeline([("0: a", "stage"), ("1: b", "stage")], [(0, 0, 0, 5), (0, 1, 5, 9)])
    assert by_kernel(one).regions == one.regions
    assert np.array_equal(by_kernel(one).intervals, one.intervals)


def test_names_of_several_kernels_and_of_regions_inside() -> None:
    regions = (
        Region("0: a + 1: b", "stage"),
        Region("2: a + 3: b", "stage"),
        Region("turns", "region", "0: a", (0,), sampled=True),
        Region("turns", "region", "2: a", (2,), sampled=True),
        Region("turns", "region", "4: other", (4,), sampled=True),
    )
    rows = [(0, k, 10 * k, 10 * k + 9) for k in range(5)]
    whole = replace(timeline([("", "stage")] * 5, rows), regions=regions)
    dropped = {str(regions[2]): 3, str(regions[3]): 4, "elsewhere": 1}
    total = Aggregate(3, 0, 9, 9, 9, 1, 30, 39)
    merged = by_kernel(replace(whole, dropped=dropped, aggregates=(total,)))
    assert [str(r) for r in merged.regions] == [
        "2 × (a + b)", "2 × a / turns", "4: other / turns",
    ]  # fmt: skip
    assert merged.regions[1].submissions == (0, 2)
    assert merged.dropped == {"2 × a / turns": 7, "elsewhere": 1}
    assert merged.aggregates == (replace(total, region=1),)


def test_waits_paths_and_what_if_are_summed() -> None:
    merged = by_kernel(STEPS)
    assert sum(b.sum_ns for b in blame(merged)) == sum(b.sum_ns for b in blame(STEPS))
    assert {(b.waiter, b.producer) for b in blame(merged)} == {
        ("1: step", "2 × step"), ("2: norm", "2 × step"),
    }  # fmt: skip
    one, summed = critical_path(STEPS, 0), critical_path(merged, 0)
    assert summed.length_ns == one.length_ns
    assert summed.by_region["3 × step"] == sum(
        ns for name, ns in one.by_region.items() if name.endswith(": step")
    )
    saved = {w.stage: w.without_ns for w in what_if(merged, 0)}
    assert saved["3 × step"] < min(w.without_ns for w in what_if(STEPS, 0))


def test_overlaps_of_equal_stages_are_kept() -> None:
    two = timeline(
        [("0: step", "stage"), ("1: step", "stage"), ("2: norm", "stage")],
        [(0, 0, 0, 100), (1, 1, 60, 200), (0, 2, 150, 170)],
    )
    found = overlaps_by_kernel(overlaps(two), two, by_kernel(two))
    assert {(o.first, o.second): (o.both_ns, o.share) for o in found if o.both_ns} == {
        ("2 × step", "2 × step"): (40, 0.4),
        ("2 × step", "2: norm"): (20, 20 / 40),
    }


def test_the_summary_names_the_stages_of_the_longest_wait() -> None:
    text = of(STEPS).summary()
    rows = [line.split("  ") for line in text.splitlines()]
    assert any(row[1:2] == ["3 × step"] for row in rows)
    assert "1: step for 2 × step" in text
    assert "1: step, tile 0, for 0: step, tile 1" in text
    assert "if a stage took no time" in text
