"""What is kept of records where there are many: buffers that are too small, rings, totals, and how
many work-groups record."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.profiling import recorder as recorder_module
from fusionq.profiling.decoding import Decoded
from fusionq.profiling.regions import Region
from fusionq.profiling.sampling import worth_recording
from fusionq.profiling.timeline import INTERVAL
from tests.unit.profiling import kernels as k
from tests.unit.profiling.lists import flipped


def test_truncated_in_loops(sycl_queue: fq.FusionQueue) -> None:
    a, out = fq.Buffer(np.ones(512, np.float32)), fq.Buffer(512, np.float32)
    with fq.profile(sycl_queue, compare=False, occurrences=4) as p:
        sycl_queue.submit(k.turns, 512, a, 10, out)
    groups = p.timeline.launches[0].groups
    assert p.timeline.dropped == {"turns / turn": 6 * groups}
    assert len(p.timeline.of_kinds("region")) == 4 * groups
    assert f"{6 * groups:,} dropped" in p.summary()


def test_the_ring_keeps_the_last(sycl_queue: fq.FusionQueue) -> None:
    a, out = fq.Buffer(np.ones(512, np.float32)), fq.Buffer(512, np.float32)
    found = {}
    for overflow in ("truncate", "ring"):
        with fq.profile(sycl_queue, compare=False, occurrences=4, overflow=overflow) as p:
            sycl_queue.submit(k.long_turns, 512, a, 10, out)
        turn = np.sort(p.timeline.of_kinds("region"), order=["instance", "start"])
        mark = np.sort(p.timeline.of_kinds("mark"), order="instance")
        # How many of the four lie in the second half of the way to the mark.
        ends = turn["end"].reshape(-1, 4)[:, -1]
        begins = turn["start"].reshape(-1, 4)[:, 0]
        found[overflow] = np.median((mark["start"] - ends) / (mark["start"] - begins))
        assert sum(p.timeline.dropped.values()) == 6 * len(mark)
    assert found["ring"] < found["truncate"]


def test_known_trip_counts_need_no_option(sycl_queue: fq.FusionQueue) -> None:
    a, out = fq.Buffer(np.ones(512, np.float32)), fq.Buffer(512, np.float32)
    with fq.profile(sycl_queue, compare=False) as p:
        sycl_queue.submit(k.few_turns, 512, a, out)
    assert len(p.timeline.of_kinds("region")) == 3 * p.timeline.launches[0].groups
    assert p.timeline.dropped == {}


@pytest.mark.parametrize("overflow", ["truncate", "ring"])
def test_a_small_buffer_is_not_left(
    sycl_queue: fq.FusionQueue, overflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words behind the buffer stay as they are, and what does not fit is counted."""
    canary = 64
    guarded = []

    class Guarded:
        def __init__(self, memory, nbytes: int) -> None:
            self.memory, self.nbytes, self.address = memory, nbytes, memory.address
            self.tail = memory.host_view()[nbytes:]
            self.tail[:] = 0xA5

        def host_view(self):
            return self.memory.host_view()[: self.nbytes]

        def zero(self) -> None:
            self.host_view().fill(0)

        def __getattr__(self, name: str):
            return getattr(self.memory, name)

    class Spy:
        def __init__(self, backend) -> None:
            self.backend = backend

        def allocate(self, nbytes: int):
            guarded.append(Guarded(self.backend.allocate(nbytes + canary), nbytes))
            return guarded[-1]

        def __getattr__(self, name: str):
            return getattr(self.backend, name)

    plain = recorder_module.ProfiledRun.__init__
    monkeypatch.setattr(
        recorder_module.ProfiledRun,
        "__init__",
        lambda self, backend, *rest: plain(self, Spy(backend), *rest),
    )
    run, out = flipped(sycl_queue, 64 * 64)
    with fq.profile(sycl_queue, compare=False, overflow=overflow, buffer_bytes=8 * 6 * 10) as p:
        run()
    assert guarded
    assert all((g.tail == 0xA5).all() for g in guarded)
    assert out.numpy()[0] == 63
    dropped = p.timeline.dropped
    assert set(dropped) == {"0: copy_tile", "barrier before 1: flip_tile", "1: flip_tile"}
    if overflow == "truncate":
        assert len(p.timeline.of_kinds("barrier")) == 10
        assert set(dropped.values()) == {54}
    else:  # a group that is held up between clock and store ends a later one's record too early
        assert 8 <= len(p.timeline.of_kinds("barrier")) <= 10
        assert all(43 <= count <= 54 for count in dropped.values())


def test_aggregates(sycl_queue: fq.FusionQueue) -> None:
    run, out = flipped(sycl_queue)
    with fq.profile(sycl_queue, compare=False, overflow="aggregate") as p:
        run()
    assert out.numpy()[0] == 63
    assert len(p.timeline.intervals) == 0
    by_name = {str(p.timeline.regions[a.region]): a for a in p.timeline.aggregates}
    assert set(by_name) == {"0: copy_tile", "barrier before 1: flip_tile", "1: flip_tile"}
    for total in by_name.values():
        assert total.count == 64
        # A barrier may be shorter than a step of the clock.
        assert 0 <= total.min <= total.sum / total.count <= total.max
        assert total.max > 0
    (launch,) = p.timeline.launches
    assert launch.makespan_ns >= max(a.max for a in by_name.values())
    assert {s.name for s in p.statistics} == set(by_name)


def test_some_work_groups_stand_for_all(sycl_queue: fq.FusionQueue) -> None:
    run, out = flipped(sycl_queue)
    with fq.profile(sycl_queue, compare=False, every=10) as p:
        run()
    assert out.numpy()[0] == 63
    stages = p.timeline.of_kinds("stage")
    assert sorted(set(stages["instance"])) == list(range(0, 64, 10))
    assert p.timeline.dropped == {}
    assert p.accounting.estimated
    assert p.accounting.table.sum() == p.accounting.window_ns
    assert "average worker" in p.summary()
    assert p.critical_path is None


def test_many_launches_share_one_buffer(sycl_queue: fq.FusionQueue) -> None:
    a, out = fq.Buffer(np.ones(64, np.float32)), fq.Buffer(64, np.float32)
    with fq.profile(sycl_queue, compare=False) as p:
        for _ in range(200):
            sycl_queue.submit(k.scale, 64, a, 2.0, out)
    assert len(p.timeline.launches) == 200
    starts = [launch.start_ns for launch in p.timeline.launches]
    assert starts == sorted(starts)
    assert [launch.run for launch in p.timeline.launches] == list(range(200))


# ---------------------------------------------------------------------- how many groups record
def worth_if(spent: int, groups: int, record_ns: float) -> int:
    """What is worth recording if each of ``groups`` took ``spent``."""
    intervals = np.zeros(groups, INTERVAL)
    intervals["instance"] = np.arange(groups)
    intervals["end"] = spent
    return worth_recording(Decoded(intervals), [Region("k", "stage")], groups, record_ns)


def test_short_work_groups_need_not_all_record() -> None:
    assert worth_if(1_000_000, 100_000, 30) == 1
    assert worth_if(1_000, 100_000, 30) == 16  # two clock reads, 60 of 1000; 60 / 16 is below 0.4 %
    assert worth_if(1_000, 100_000, 0) == 1
    assert worth_if(1, 1024, 30) == 4, "some record in any case"
    assert worth_if(1, 200, 30) == 1


def test_of_many_short_work_groups_the_first_launch_records_all(
    sycl_queue: fq.FusionQueue,
) -> None:
    groups = 1 << 14
    run, out = flipped(sycl_queue, groups * 16, 16)
    with fq.profile(sycl_queue, compare=False) as p:
        f = run()
        f.replay().wait()
        f.replay().wait()
    assert out.numpy()[0] == 15
    first, *later = p.timeline.launches
    assert first.every == 1
    assert {launch.every for launch in later} != {1}
    for number, launch in enumerate(p.timeline.launches):
        mine = p.timeline.intervals[p.timeline.intervals["launch"] == number]
        assert sorted(set(mine["instance"])) == list(range(0, groups, launch.every))
    assert p.accounting.estimated
    assert p.critical_path is not None, "that of the first"
    assert f"one in {later[0].every} recorded" in p.summary()


def test_a_comparison_says_how_many_record(sycl_queue: fq.FusionQueue) -> None:
    run, out = flipped(sycl_queue, (1 << 14) * 16, 16)
    with fq.profile(sycl_queue) as p:
        run()
    assert out.numpy()[0] == 15
    (launch,) = p.timeline.launches
    assert launch.every > 1
    assert p.comparisons[0].speedup > 0
