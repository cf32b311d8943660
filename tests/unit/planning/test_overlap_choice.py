"""Among launches, a persistent kernel and halos computed anew, ``auto`` takes what is predicted to
take least."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.isl_operations import PlanTooHard
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.planning import overlap, overlap_choice
from fusionq.planning.cost import Estimate, OverlapEstimate, with_persistent
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from fusionq.planning.versions import Version, Versions
from fusionq.planning.work import work_of
from tests.unit.lists import Flagged, submissions
from tests.unit.targets import TWO_CORES

N = 1 << 20
MOST_LONGER = overlap_choice.MOST_LONGER


@fq.kernel
def blur(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i + 1]
    else:
        b[i] = a[i]


def chain(count: int, flagged: bool, n: int = N) -> Plan:
    """The plan of a chain of stencils over temporaries."""
    arrays: list[object] = [np.empty(n, np.float32) for _ in range(count + 1)]
    if flagged:
        arrays[1:-1] = [Flagged(array, private=True) for array in arrays[1:-1]]
    listed = submissions(*((blur, n, a, b) for a, b in pairwise(arrays)))
    return make_plan(listed, FusionOptions(), TWO_CORES, (), lambda: TWO_CORES)


def predicted(plan: Plan) -> dict[str, int]:
    """Microseconds by the model."""
    assert plan.choice is not None
    found = re.findall(r"estimated (\d+) µs (as one persistent|with halos)", plan.choice)
    return {way: int(number) for number, way in found}


def test_halos_are_computed_anew_where_that_takes_less_than_a_persistent_kernel() -> None:
    plan = chain(4, flagged=True)
    seconds = predicted(plan)
    assert seconds["with halos"] < seconds["as one persistent"]
    assert plan.strategy == "overlap"


def test_where_no_question_is_answered_any_longer_there_are_no_halos(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error went to whoever ran the list."""

    def rows_list(*_: object) -> None:
        raise PlanTooHard("nothing is left")

    monkeypatch.setattr(overlap, "rows_list", rows_list)
    a, b, c = (np.empty(N, np.float32) for _ in range(3))
    listed = submissions((blur, N, a, b), (blur, N, b, c))
    plan = make_plan(listed, FusionOptions(strategy="overlap"), TWO_CORES)
    assert (len(plan.stages), plan.fallback) == (2, "nothing is left")


def test_halos_are_not_looked_for_where_they_could_save_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overlap, "with_overlap", lambda *_: pytest.fail("it was looked for"))
    plan = chain(4, flagged=False, n=1 << 10)
    assert plan.strategy == "megakernel"
    assert plan.choice is not None
    assert re.search(r"halos computed anew would save less than \d+ µs a run", plan.choice)
    assert "strategy='overlap'" in plan.choice


def test_halos_that_can_save_nothing_are_not_advised() -> None:
    plan = chain(3, flagged=False, n=64)
    assert (plan.strategy, plan.choice) == ("fused", "halos computed anew would save no time")


def test_halos_of_flagged_buffers_are_looked_for_however_little_they_save() -> None:
    assert "with halos" in predicted(chain(2, flagged=True, n=1 << 12))


def test_inlining_is_tried_only_where_it_may_take_less_than_tiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[bool] = []
    way = overlap._Ways._way

    def counted(self: overlap._Ways, found: Versions, tiled: bool) -> Any:
        tried.append(tiled)
        return way(self, found, tiled)

    monkeypatch.setattr(overlap._Ways, "_way", counted)
    for items, ways in ((1, [True, False]), (10**6, [True])):
        each = dict.fromkeys(range(3), items)
        monkeypatch.setattr(Versions, "items_by_producer", lambda _, each=each: each)
        assert chain(4, flagged=True).strategy == "overlap"
        assert tried == ways
        tried.clear()


def test_what_saves_neither_launches_nor_memory_is_refused() -> None:
    """A consumer of so few work-items that it is not joined, of a result that is stored."""

    @fq.kernel
    def halved(item: fq.Item, a, b):
        i, j = item.get_id(0), item.get_id(1)
        b[i, j] = a[2 * i, 2 * j] + a[2 * i + 1, 2 * j + 1]

    @fq.kernel
    def doubled(item: fq.Item, a, b):
        i, j = item.get_id(0), item.get_id(1)
        b[i, j] = a[i, j] * 2

    n = 1 << 12
    a, b = (np.empty((n, n), np.float32) for _ in range(2))
    c = np.empty((n // 2, n // 2), np.float32)
    for flagged in (False, True):
        between = Flagged(b, private=True) if flagged else b
        listed = submissions((doubled, (n, n), a, between), (halved, c.shape, between, c))
        plan = make_plan(listed, FusionOptions(strategy="overlap"), TWO_CORES)
        if flagged:
            assert [r.stored for r in plan.recomputed] == [False]
        else:
            assert plan.recomputed == ()
            reason = "2 launches with halos computed anew, and 2 without, and as much in memory"
            assert plan.fallback == reason


def test_boxes_of_halos_add_up() -> None:
    first = Version(0, 0, 1, {1: (3, 1), 2: (1, 5)}, False, False, True)
    second = Version(1, 1, 1, {2: (2, 7)}, False, False, True)
    found = Versions({first.key: first, second.key: second})
    assert found.items_by_producer() == {1: 2 * 7, 0: 4 * 7}


def test_whose_work_items_do_the_work_of_versions_that_are_made_of_others() -> None:
    first = Version(0, 0, 1, {1: (3,), 2: (1,)}, False, False, True)
    second = Version(1, 1, 1, {2: (2,), 3: (1,)}, False, False, True)
    found = Versions({first.key: first, second.key: second})
    assert found.last_readers() == {1: frozenset({2, 3}), 0: frozenset({2, 3})}


def test_what_nobody_reads_is_not_exchanged_and_computed_where_it_stands() -> None:
    """Who reads it reads a part of a later version, too, so the producer does its own work."""
    first = Version(0, 0, 1, {1: (3,)}, False, False, True, frozenset({1}))
    second = Version(1, 1, 1, {}, False, False, True)
    found = Versions({first.key: first, second.key: second})
    assert not second.is_exchanged
    assert list(found.needed().found) == [first.key]
    assert found.last_readers() == {0: frozenset({1})}


@fq.kernel
def every_other(item: fq.Item, a, b):
    i = item.get_id(0)
    b[2 * i] = a[i]


def test_a_version_that_is_overwritten_in_part_before_it_is_read() -> None:
    """Planning asked for the largest of no readers."""
    a, u, t, out = (np.empty(1 << 16, np.float32) for _ in range(4))
    flagged = [Flagged(array, private=True) for array in (u, t)]
    n = a.size
    listed = submissions(
        (blur, n, a, flagged[0]), (blur, n, *flagged), (every_other, n // 2, a, flagged[1]),
        (blur, n, flagged[1], out),
    )  # fmt: skip
    for strategy in ("overlap", "auto"):
        plan = make_plan(listed, FusionOptions(strategy=strategy), TWO_CORES, (), lambda: TWO_CORES)
        assert 1 not in {r.producer for r in plan.recomputed}
        assert plan.recomputed or strategy == "auto"


@fq.kernel
def quartered(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[4 * i] + a[4 * i + 5 if 4 * i + 5 < a.shape[0] else 0]


def test_work_items_that_compute_much_more_than_once_are_known_before_they_are_looked_at() -> None:
    """By how many elements each needs, and how many work-items need some."""
    n = 1 << 16
    a, b, c = (np.empty(size, np.float32) for size in (n, n, n // 4))
    for reader, last, items in ((blur, np.empty(n, np.float32), 1.0), (quartered, c, 1 / 4)):
        listed = submissions((blur, n, a, b), (reader, last.size, b, last))
        questions = Questions(listed)
        version = Version(0, 1, 1, {1: (40,)}, False, False, True)
        found = Versions({version.key: version})
        work = [work_of(one) for one in listed]
        most = items * 40 * work[0] + work[1]
        rate = TWO_CORES.machine_balance * TWO_CORES.costs.memory_bandwidth
        for operations, seconds in ((0.0, most / rate), (sum(work), (most - sum(work)) / rate)):
            for factor, longer in ((1 - 1e-9, True), (1 + 1e-9, False)):
                bound = (seconds * factor, operations)
                taken = overlap_choice.inlined_takes_longer
                assert taken(questions, found, [bound], TWO_CORES) is longer
                assert taken(questions, found, [(np.inf, 0.0), bound], TWO_CORES) is longer
        assert not overlap_choice.inlined_takes_longer(questions, found, [], TWO_CORES)


def test_a_way_that_takes_too_long_is_refused_before_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overlap_choice, "MOST_LONGER", MOST_LONGER)
    monkeypatch.setattr(overlap, "WAYS", ("inlined",))
    each = lambda found: dict.fromkeys(found.last_readers(), 10**6)  # noqa: E731
    monkeypatch.setattr(Versions, "items_by_producer", each)
    monkeypatch.setattr(overlap._Ways, "_way", lambda *_: pytest.fail("it was looked at"))
    arrays = [np.empty(N, np.float32) for _ in range(5)]
    listed = submissions(*((blur, N, a, b) for a, b in pairwise(arrays)))
    options = FusionOptions(strategy="overlap")
    plan = make_plan(listed, options, TWO_CORES, (), lambda: TWO_CORES)
    assert plan.strategy == "unfused"
    assert plan.fallback == overlap_choice.INLINED_TAKES_LONGER


def test_a_persistent_kernel_is_taken_where_it_takes_less() -> None:
    turns = [np.empty(1 << 10, np.float32) for _ in range(2)] * 17
    listed = submissions(*((blur, 1 << 10, a, b) for a, b in pairwise(turns)))
    plan = make_plan(listed, FusionOptions(), TWO_CORES, (), lambda: TWO_CORES)
    assert "with halos" not in predicted(plan)
    assert plan.choice is not None
    assert "halos computed anew would save less than" in plan.choice
    assert plan.strategy == "megakernel"


def test_steps_of_many_work_items_stay_a_persistent_kernel_whose_inside_has_no_masks() -> None:
    turns = [np.empty(1 << 20, np.float32) for _ in range(2)] * 17
    listed = submissions(*((blur, 1 << 20, a, b) for a, b in pairwise(turns)))
    plan = make_plan(listed, FusionOptions(), TWO_CORES, (), lambda: TWO_CORES)
    seconds = predicted(plan)
    assert seconds["as one persistent"] < seconds["with halos"]
    assert plan.strategy == "megakernel"


@fq.kernel
def blur_columns(item: fq.Item, a, b, m):
    """By a scalar, which is no extent: the ids stay linear."""
    i = item.get_linear_id() // m
    j = item.get_linear_id() % m
    above = a[max(i - 1, 0), j]
    b[i, j] = above + a[i, j] + a[min(i + 1, a.shape[0] - 1), j]


@pytest.mark.parametrize("require", [False, True])
def test_halos_that_take_many_times_as_long_are_refused_where_they_are_asked_for(
    require: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlap_choice, "MOST_LONGER", MOST_LONGER)
    arrays = [np.empty((1 << 11, 1 << 11), np.float32) for _ in range(6)]
    chained = submissions(*((blur_columns, 1 << 22, a, b, 1 << 11) for a, b in pairwise(arrays)))
    options = FusionOptions(strategy="overlap", require=require)
    if require:
        with pytest.raises(fq.FusionRefused, match="times as long as launches without"):
            make_plan(chained, options, TWO_CORES, (), lambda: TWO_CORES)
        return
    plan = make_plan(chained, options, TWO_CORES, (), lambda: TWO_CORES)
    assert plan.strategy == "unfused"
    assert plan.fallback is not None
    assert re.fullmatch(
        r"what would be computed anew takes (more than )?[\d.e+]+ times as long as launches "
        "without that",
        plan.fallback,
    )


def test_launches_beside_persistent_kernels_count() -> None:
    replaced = [Estimate(4.0, 1.0), Estimate(2.0, 1.0)]
    assert with_persistent(replaced, OverlapEstimate(10.0, 5.0)) == 6.0
    assert with_persistent(replaced, OverlapEstimate(5.0, 1.0)) == 2.0


@fq.kernel
def before(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i - 1] if i > 0 else 0


@fq.kernel
def turned(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i]


@pytest.mark.parametrize("reader", [before, turned])
def test_single_elements_of_other_work_items_are_computed_anew_where_that_is_asked_for(
    reader: Any,
) -> None:
    a, b, c = (np.empty(1 << 24, np.float32) for _ in range(3))
    listed = submissions((turned, a.size, a, b), (reader, a.size, b, c))
    launches = {}
    for strategy in ("overlap", "auto"):
        plan = make_plan(listed, FusionOptions(strategy=strategy), TWO_CORES, (), lambda: TWO_CORES)
        launches[strategy] = len(plan.stages), len(plan.recomputed)
    assert launches == {"overlap": (1, 1), "auto": (2, 0)}


@fq.kernel
def inside(item: fq.Item, a, b):
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i + 1]


@fq.kernel
def halved(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] / 2


def test_guards_that_differ_are_no_masks_where_launches_are_by_tiles() -> None:
    """Their rows are split: without registers for masks launches stay apart, tiles do not."""
    device = replace(TWO_CORES.device, masks_vectors=False)
    unmasked = replace(TWO_CORES, device=device)
    a, t, u, out = (np.empty(1 << 22, np.float32) for _ in range(4))
    stencils = (inside, a.size, a, t), (inside, a.size, t, u)
    listed = submissions(*stencils, (halved, a.size, u, out))
    launches = {}
    for strategy in ("overlap", "fused"):
        options = FusionOptions(strategy=strategy)
        plan = make_plan(listed, options, unmasked, (), lambda: unmasked)
        launches[strategy] = len(plan.stages), bool(plan.recomputed)
    assert launches == {"overlap": (1, True), "fused": (3, False)}
