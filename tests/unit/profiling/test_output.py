"""Ways to show a profile: they say the same."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.profiling.accounting import KINDS
from fusionq.profiling.profiles import Profile, profile
from fusionq.profiling.timeline import ACCOUNTED, WORK_NAMES
from tests.unit.profiling import kernels as k
from tests.unit.profiling.test_profile import flipped
from tests.unit.profiling.timelines import WAITING, launch, timeline


def of(timeline) -> Profile:
    """A profile with this timeline."""
    made = profile(None)
    made._everything = timeline
    return made


def parsed(path: Path):
    trace = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    message = trace.Trace()
    message.ParseFromString(path.read_bytes())
    return trace, message


def slices(path: Path):
    """(track, category, name, start, end, flows out, flows in) of each slice, by Perfetto's rule:
    an end closes what was begun last on its track."""
    trace, message = parsed(path)
    names = {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in message.packet
        if p.HasField("track_descriptor")
    }
    open_: dict[int, list] = {}
    found = []
    time = 0
    for packet in message.packet:
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= time, "packets are in order of time"
        time = packet.timestamp
        event = packet.track_event
        if event.type == trace.TrackEvent.TYPE_SLICE_BEGIN:
            open_.setdefault(event.track_uuid, []).append((time, event))
        elif event.type == trace.TrackEvent.TYPE_SLICE_END:
            start, begun = open_[event.track_uuid].pop()
            found.append(
                (
                    names[begun.track_uuid], begun.categories[0], begun.name, start, time,
                    list(begun.flow_ids), list(begun.terminating_flow_ids),
                )
            )  # fmt: skip
    assert not any(open_.values())
    return found


def assert_totals_agree(p: Profile, path: Path) -> None:
    totals: dict[tuple[str, str], int] = {}
    for track, category, _, start, end, _, _ in slices(path):
        if category in ACCOUNTED:
            key = track, WORK_NAMES.get(category, category)
            totals[key] = totals.get(key, 0) + end - start
    for worker, row in enumerate(p.accounting.table):
        for kind, ns in zip(KINDS, row, strict=True):
            if kind != "idle":
                assert totals.get((f"worker {worker}", kind), 0) == ns


def test_the_trace_holds_what_the_summary_says(sycl_queue: fq.FusionQueue, tmp_path: Path) -> None:
    run, _ = flipped(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as p:
        run()
        run()
    path = tmp_path / "a.pftrace"
    p.trace(path)
    assert_totals_agree(p, path)
    launches = [s for s in slices(path) if s[0] == "launches"]
    assert [end - start for *_, start, end, _, _ in launches] == [
        launch.makespan_ns for launch in p.timeline.launches
    ]


def test_arrows_lead_from_the_last_arriver_to_the_waiter(tmp_path: Path) -> None:
    path = tmp_path / "a.pftrace"
    p = of(WAITING)
    p.trace(path)
    assert_totals_agree(p, path)
    found = slices(path)
    (source,) = [s for s in found if s[5]]
    (target,) = [s for s in found if s[6]]
    assert source[5] == target[6]
    assert (source[0], source[1], source[2]) == ("worker 0", "publish", "a (publish)")
    assert (target[0], target[1], target[2]) == ("worker 1", "wait", "b (wait)")


def test_a_record_before_the_submission_by_the_devices_clock(tmp_path: Path) -> None:
    """Clocks agree within microseconds: a trace has no times before its first."""
    path = tmp_path / "a.pftrace"
    late = replace(launch(1000, 2000), submitted_ns=1500)
    rows = [(0, 0, 900, 1400, 0), (1, 0, 1400, 2000, 1)]
    of(timeline([("a", "stage")], rows, [late])).trace(path)
    starts = {name: start for _, _, name, start, *_ in slices(path)}
    assert starts == {"k": 100, "a": 500}
    assert_totals_agree(of(timeline([("a", "stage")], rows, [late])), path)


def test_marks_and_regions_have_tracks_of_their_own(
    sycl_queue: fq.FusionQueue, tmp_path: Path
) -> None:
    a, out = fq.Buffer(np.ones(64, np.float32)), fq.Buffer(64, np.float32)
    with fq.profile(sycl_queue, compare=False) as p:
        sycl_queue.submit(k.turns, 64, a, 3, out)
    path = tmp_path / "a.pftrace"
    p.trace(path)
    trace, message = parsed(path)
    inside = [s for s in slices(path) if s[1] == "region"]
    assert {s[0] for s in inside} == {"worker 0: regions"}
    assert len(inside) == 3 * p.timeline.launches[0].groups
    instants = [
        e.track_event for e in message.packet if e.track_event.type == trace.TrackEvent.TYPE_INSTANT
    ]
    assert {e.name for e in instants} == {"turns done"}
    (values,) = {tuple((d.name, d.int_value) for d in e.debug_annotations) for e in instants[:1]}
    assert ("payload", 3) in values


def test_the_summary(sycl_queue: fq.FusionQueue) -> None:
    run, _ = flipped(sycl_queue)
    with fq.profile(sycl_queue) as p:
        run()
    text = p.summary()
    assert text == str(p)
    lines = text.splitlines()
    assert lines[0].startswith("profile: 1 launch, ")
    assert lines[2].startswith(("worst: ", "nothing stands out"))
    for part in (
        "time of each worker", "0: copy_tile", "barrier before 1: flip_tile", "critical path",
        "if a stage took no time", "fused against unfused: 0: copy_tile + 1: flip_tile",
        "clock: tick",
    ):  # fmt: skip
        assert part in text
    shares = next(line for line in lines if line.strip().startswith("worker 0")).split("%")[:6]
    assert sum(float(s.split()[-1]) for s in shares) == pytest.approx(100, abs=0.4)


@pytest.mark.slow
def test_equal_steps_are_a_line_a_kernel(sycl_queue: fq.FusionQueue) -> None:
    """In a persistent kernel, in launches, and timed by the host."""
    steps, n = 32, 1 << 14
    for queue, strategy in (
        (sycl_queue, "megakernel"), (sycl_queue, "sequence"), (fq.FusionQueue("reference"), "auto"),
    ):  # fmt: skip
        n = n if queue is sycl_queue else 4
        x, out = fq.Buffer(np.ones(n, np.float32)), fq.Buffer(n, np.float32)
        with fq.profile(queue, compare=False) as p:
            with fq.fusion(queue, strategy=strategy):
                for _ in range(steps):
                    queue.submit(k.neighbours, n, x, out)
                    x, out = out, x
            queue.wait()
        text = p.summary()
        assert len(text.splitlines()) < 40, text
        if queue is not sycl_queue:
            continue
        (row,) = [line for line in text.splitlines() if line.startswith("  32 × neighbours  ")]
        stages = p.timeline.of_kinds("stage")
        assert f"  {len(stages):,}  " in row
        assert len([s for s in p.statistics if s.kind == "stage"]) == steps, "the data has all"
        assert len(p.to_dict()["regions"]) >= steps


def test_plain_types(sycl_queue: fq.FusionQueue) -> None:
    run, _ = flipped(sycl_queue)
    with fq.profile(sycl_queue) as p:
        run()
    data = json.loads(json.dumps(p.to_dict()))
    for worker in data["workers"]:
        assert sum(worker.values()) == data["window_ns"]
    (comparison,) = data["comparisons"]
    assert comparison["unfused"]["traffic_bytes"] == 4 * 4096 * 8
    assert comparison["fused"]["traffic_bytes"] == 3 * 4096 * 8
    assert data["clock"]["tick_ns"] > 0
    units = ("_ns", "_bytes", "_share", "_ratio")
    for row in data["regions"]:
        numbers = {n for n, v in row.items() if isinstance(v, float)}
        assert all(name.endswith(units) for name in numbers)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"a.{suffix}"
    of(WAITING).plot(path)
    assert path.stat().st_size > 5000


def test_no_picture_of_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with profile(None) as p:
        pass
    with pytest.raises(fq.FusionqError, match="no timeline"):
        p.plot(tmp_path / "a.png")


SCRIPT = """
import sys
import numpy as np
import fusionq as fq

@fq.kernel
def twice(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * 2

queue = fq.FusionQueue()
a, middle, out = (fq.Buffer(np.ones(1000)) for _ in range(3))
with fq.fusion(queue):
    queue.submit(twice, 1000, a, middle)
    queue.submit(twice, 1000, middle, out)
print(out.numpy()[0], sys.argv[1:])
sys.exit(3)
"""


@pytest.mark.slow
def test_the_command(sycl_queue: fq.FusionQueue, tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    pytest.importorskip("matplotlib")
    (tmp_path / "script.py").write_text(SCRIPT)
    files = ("--trace", "t.pftrace", "--plot", "t.png", "--json", "t.json")
    run = subprocess.run(
        [sys.executable, "-m", "fusionq", "profile", "script.py", *files, "--", "--mine", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 3, run.stderr
    assert run.stdout.startswith("4.0 ['--mine', 'x']\nprofile: 1 launch, ")
    assert "0: twice + 1: twice" in run.stdout
    data = json.loads((tmp_path / "t.json").read_text())
    assert data["launches"][0]["makespan_ns"] > 0
    assert slices(tmp_path / "t.pftrace")
    assert (tmp_path / "t.png").stat().st_size > 5000


@pytest.mark.slow
def test_the_command_needs_a_script(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "fusionq", "profile", "nowhere.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 2
    assert "nowhere.py" in run.stderr
