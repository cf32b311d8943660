"""Records of persistent kernels: each tile's ticket, wait, work and publication, who is to blame
for a wait, regions inside a stage, and what happens at limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fusionq as fq
from fusionq.profiling import Instrumentation, count
from fusionq.profiling import recorder as recorder_module
from fusionq.profiling.profiles import Profile
from fusionq.profiling.timeline import TILE_BITS, Intervals
from tests.unit.megakernel.plans import waited
from tests.unit.profiling import kernels as k

N = 1 << 18
STAGES = 3


def steps(queue: fq.FusionQueue, n: int = N, kernel=k.neighbours, *scalars: int):
    """STAGES submissions, each of which needs what other tiles made."""
    buffers = [fq.Buffer(np.arange(n)), *(fq.Buffer(n, np.int64) for _ in range(STAGES))]

    def run() -> fq.Fusion:
        with fq.fusion(queue, strategy="megakernel") as f:
            for a, b in pairwise(buffers):
                queue.submit(kernel, n, a, *scalars, b)
        f.event.wait()
        assert f.report.strategy == "megakernel"
        return f

    return run, buffers[-1]


def expected(n: int = N) -> np.ndarray:
    a = np.arange(n)
    for _ in range(STAGES):
        inner = a[:-2] + a[1:-1] + a[2:]
        a = np.concatenate((a[:1], inner, a[-1:]))
    return a


def by_kind(p: Profile, kind: str) -> Intervals:
    return np.sort(p.timeline.of_kinds(kind), order=["launch", "instance"])


def stage_and_tile(intervals: Intervals) -> list[tuple[int, int]]:
    return [divmod(int(instance), 1 << TILE_BITS) for instance in intervals["instance"]]


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The arguments of each decoding of a persistent kernel's records."""
    found = []
    plain = recorder_module.decode_instructions

    def spy(words, *rest):
        found.append((words.copy(), *rest))
        return plain(words, *rest)

    monkeypatch.setattr(recorder_module, "decode_instructions", spy)
    return found


@pytest.mark.slow
# --------------------------------------------------------------------------- what is recorded
def test_every_tile_has_its_records(sycl_queue: fq.FusionQueue, decodings) -> None:
    run, out = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as p:
        run()
        run()
    assert np.array_equal(out.numpy(), expected())
    schedule = decodings[0][2]
    tiles = [(s, t) for s, stage in enumerate(schedule.stages) for t in range(stage.tiles)]
    assert len(tiles) > STAGES
    assert stage_and_tile(by_kind(p, "ticket")) == 2 * tiles
    assert stage_and_tile(by_kind(p, "stage")) == 2 * tiles
    assert stage_and_tile(by_kind(p, "publish")) == 2 * tiles
    waiting = [(s, t) for s, t in tiles if schedule.waits[s]]
    assert stage_and_tile(by_kind(p, "wait")) == 2 * waiting != []
    assert p.timeline.dropped == {}
    assert [launch.groups for launch in p.timeline.launches] == 2 * [len(tiles)]
    for intervals in p.timeline.intervals, p.timeline.accounted():
        assert (intervals["start"] <= intervals["end"]).all()
        assert (intervals["worker"] >= 0).all()


def test_a_worker_does_one_thing_at_a_time(sycl_queue: fq.FusionQueue) -> None:
    """Its records follow each other without a gap, and add up to the makespan with idle time."""
    run, _ = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as p:
        run()
    accounted = p.timeline.accounted()
    for worker in range(p.timeline.workers):
        mine = np.sort(accounted[accounted["worker"] == worker], order=["start", "end"])
        assert (mine["end"][:-1] == mine["start"][1:]).all()
    assert (p.accounting.table.sum(axis=1) == p.accounting.window_ns).all()


def test_regions_inside_a_stage(sycl_queue: fq.FusionQueue) -> None:
    run, _ = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as p:
        run()
    work, sums, marks = (by_kind(p, kind) for kind in ("stage", "region", "mark"))
    for own in sums, marks:
        assert (own["instance"] == work["instance"]).all()
        assert (own["worker"] == work["worker"]).all()
        assert (own["start"] >= work["start"]).all()
        assert (own["end"] <= work["end"]).all()
    assert (marks["payload"] == 7).all()
    assert (sums["end"] <= marks["start"]).all()
    regions = {r for r in p.timeline.regions if r.kind in ("region", "mark")}
    assert {(r.name, r.submissions) for r in regions} == {
        (name, (stage,)) for name in ("sum", "summed") for stage in range(STAGES)
    }
    assert all(r.sampled for r in regions)


# ------------------------------------------------------------------------------ who is to blame
def test_the_last_arriver_is_to_blame(sycl_queue: fq.FusionQueue, decodings) -> None:
    run, _ = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as p:
        for _ in range(3):
            run()
    needs = waited(decodings[0][2])
    everything, published = p.timeline.intervals, by_kind(p, "publish")
    waits = by_kind(p, "wait")
    for launch in range(3):
        when = {
            place: one["start"]
            for one, place in zip(published, stage_and_tile(published), strict=True)
            if one["launch"] == launch
        }
        mine = waits[waits["launch"] == launch]
        for wait, place in zip(mine, stage_and_tile(mine), strict=True):
            culprit = everything[wait["producer"]]
            assert p.timeline.regions[culprit["region"]].kind == "publish"
            assert culprit["launch"] == launch
            (theirs,) = stage_and_tile(culprit.reshape(1))
            assert theirs in needs[place]
            assert culprit["start"] == max(when[one] for one in needs[place])
            assert culprit["payload"] == wait["payload"]


@pytest.mark.parametrize("late", [0, 1, 3])
def test_a_late_tile_is_to_blame_by_those_that_need_it(
    sycl_queue: fq.FusionQueue, decodings, late: int
) -> None:
    """Made-up records in which one tile of the first stage takes long; the others take 10."""
    run, _ = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False):
        run()
    _, lowered, schedule, rows = decodings[0]
    layout = lowered.layout
    words = np.zeros(layout.words(STAGES, rows), np.int64)
    table = words[layout.rows_at :].reshape(STAGES, rows, layout.row_words)
    for stage, tiled in enumerate(schedule.stages):
        for tile in range(tiled.tiles):
            begin = 1000 + 100 * stage + tile
            done = 50_000 if (stage, tile) == (0, late) else begin + 10
            table[stage, tile, :6] = 1, begin, begin + 1, begin + 2, done, done + 1
    decoded, regions = recorder_module.decode_instructions(words, lowered, schedule, rows)
    needs = waited(schedule)
    intervals = decoded.intervals
    blamed = {}
    for wait in intervals[[regions[r].kind == "wait" for r in intervals["region"]]]:
        culprit = intervals[wait["producer"]].reshape(1)
        (mine,), (theirs,) = stage_and_tile(wait.reshape(1)), stage_and_tile(culprit)
        blamed[mine] = theirs
    assert (0, late) in blamed.values()
    for mine, theirs in blamed.items():
        latest = max(needs[mine], key=lambda p: (p == (0, late), *p))
        assert theirs == latest


def test_who_takes_long_is_found(sycl_queue: fq.FusionQueue) -> None:
    """All of the second stage needs the one slow work-item's tile."""
    n = 1 << 14
    turns = np.zeros(n, np.int64)
    turns[n // 2] = 2_000_000
    given, made, out = fq.Buffer(turns), fq.Buffer(n, np.int64), fq.Buffer(n, np.int64)
    with fq.profile(sycl_queue, compare=False) as p:
        with fq.fusion(sycl_queue, strategy="megakernel") as f:
            sycl_queue.submit(k.slow, n, given, made)
            sycl_queue.submit(k.total, n, made, out)
        f.event.wait()
    assert f.report.strategy == "megakernel"
    work = by_kind(p, "stage")
    slowest = work[(work["end"] - work["start"]).argmax()]
    assert (slowest["instance"] >> TILE_BITS) == 0
    waits = by_kind(p, "wait")
    during = waits[(waits["start"] < slowest["end"]) & (waits["end"] >= slowest["end"])]
    last = work[work["instance"] >> TILE_BITS == 0]["end"].max()
    if last == slowest["end"]:  # nobody else of its stage was interrupted for longer
        culprits = p.timeline.intervals[during["producer"]]
        assert (culprits["instance"] == slowest["instance"]).all()
        assert all(b.producer == "0: slow" for b in p.waits)


# -------------------------------------------------------------------------------- at the limits
def test_tiles_without_a_place_are_counted(sycl_queue: fq.FusionQueue, decodings) -> None:
    run, out = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False):
        run()
    _, lowered, schedule, _ = decodings[0]
    places = 2
    size = 8 * lowered.layout.words(STAGES, places)
    with fq.profile(sycl_queue, compare=False, buffer_bytes=size) as p:
        run()
    assert np.array_equal(out.numpy(), expected())
    assert decodings[-1][3] == places
    tiles = [stage.tiles for stage in schedule.stages]
    assert min(tiles) > places
    assert len(by_kind(p, "stage")) == places * STAGES
    for number, n in enumerate(tiles):
        assert p.timeline.dropped[f"{number}: neighbours"] == n - places
    assert "not kept" in p.summary()


def test_occurrences_that_do_not_fit_are_counted(sycl_queue: fq.FusionQueue) -> None:
    run, out = steps(sycl_queue, N, k.counted, 10)
    with fq.profile(sycl_queue, compare=False, occurrences=4) as p:
        run()
    tiles = len(by_kind(p, "stage"))
    assert len(by_kind(p, "region")) == 4 * tiles
    assert sum(p.timeline.dropped.values()) == 6 * tiles
    assert set(p.timeline.dropped) == {f"{s}: counted / turn" for s in range(STAGES)}
    assert (out.numpy() == np.arange(N)[::-1] + STAGES * 45).all()


@pytest.mark.parametrize("overflow", ["ring", "aggregate"])
def test_there_is_nothing_to_overwrite_or_to_add_up(queue: fq.FusionQueue, overflow) -> None:
    n = 3000 if queue.device.kind == "reference" else N
    run, out = steps(queue, n)
    with (
        fq.profile(queue, compare=False, overflow=overflow),
        pytest.raises(fq.ArgumentError, match="persistent kernel") as error,
    ):
        run()
    assert repr(overflow) in str(error.value)
    assert "sequence" in str(error.value)
    run()
    assert np.array_equal(out.numpy(), expected(n))


def test_all_tiles_record_whatever_every_says(sycl_queue: fq.FusionQueue) -> None:
    run, _ = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False, every=10) as p:
        run()
    assert {launch.every for launch in p.timeline.launches} == {1}
    assert len(by_kind(p, "stage")) == p.timeline.launches[0].groups
    assert p.critical_path is not None


def test_counters_in_stages(queue: fq.FusionQueue) -> None:
    """Also where there is no clock."""

    class CountItems(Instrumentation):
        def instrument(self, kernel, scope):
            return replace(kernel, body=(count("items"), *kernel.body))

    n = 3000 if queue.device.kind == "reference" else N
    run, out = steps(queue, n)
    with fq.profile(queue, passes=[CountItems()], compare=False) as p:
        run()
        run()
    assert p.counters["items"] == 2 * STAGES * n
    assert np.array_equal(out.numpy(), expected(n))


def test_without_a_clock_the_host_times_them() -> None:
    with fq.FusionQueue("reference") as queue:
        run, out = steps(queue, 3000)
        with fq.profile(queue, compare=False) as p:
            run()
    assert np.array_equal(out.numpy(), expected(3000))
    assert [launch.source for launch in p.timeline.launches] == ["host"]
    assert len(p.timeline.intervals) == 0


def test_a_wait_that_need_not_wait_has_no_length(sycl_queue: fq.FusionQueue) -> None:
    run, out = steps(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as p:
        for _ in range(5):
            run()
    assert np.array_equal(out.numpy(), expected())
    waits, stages = by_kind(p, "wait"), by_kind(p, "stage")
    assert (waits["end"] >= waits["start"]).all()
    assert (waits["end"] == waits["start"]).any()
    known = {(i["launch"], i["instance"]): i["start"] for i in stages}
    assert all(known[w["launch"], w["instance"]] == w["end"] for w in waits)
