"""The target: what the device says, what is measured, and where the rest comes from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

import fusionq as fq
from fusionq.backends.base import Backend, Binding, PreparedLaunch, Program
from fusionq.backends.registry import backend_for
from fusionq.backends.sycl import caches
from fusionq.backends.sycl.caches import cache_sizes, last_level_bytes
from fusionq.base import version
from fusionq.base.assumptions import ASSUMED
from fusionq.base.code_limits import CodeLimits
from fusionq.base.costs import BuildCosts, Costs, Weights
from fusionq.base.target import LaunchShape, Target, target_of
from fusionq.cache.disk import disk_store
from fusionq.cache.keys import code_version
from fusionq.execution import cost_measurement, device_costs
from fusionq.execution.device_costs import measured_target
from tests.unit.targets import REFERENCE, TWO_CORES, device

ROOT = Path(__file__).parents[2]
MEASURED = {
    "launch_seconds", "instruction_seconds", "stage_seconds", "alone_seconds", "memory_bandwidth",
    "cache_bandwidth",
}  # fmt: skip


def test_every_field_is_asked_or_has_a_source() -> None:
    kinds = (Target, Costs, Weights, CodeLimits, BuildCosts)
    names = {f.name for kind in kinds for f in fields(kind)}
    given = {"device", "resident_workers", "costs", "weights", "build", "asked", "measured"}
    assert names == given | ASSUMED.keys()
    assert all(a.source and a.cpu >= 0 and a.gpu >= 0 for a in ASSUMED.values())
    assert all(ASSUMED[f.name].cpu == ASSUMED[f.name].gpu for f in fields(CodeLimits))
    assert {name for name, a in ASSUMED.items() if a.known == "measured"} == MEASURED


def test_the_table_in_the_docs_is_the_one_in_the_code() -> None:
    script = ROOT / "docs" / "make_target.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "column"), [("cpu", "cpu"), ("gpu", "gpu"), ("accelerator", "gpu")]
)
def test_what_the_device_does_not_say_is_assumed(kind: str, column: str) -> None:
    target = target_of(device(kind, compute_units=7), vector_width=4, cache_bytes=0)
    assert (target.vector_width, target.resident_workers) == (4, 7)
    assert target.asked == {"vector_width", "resident_workers"}
    assert target.cache_bytes == getattr(ASSUMED["cache_bytes"], column)
    assert target.costs.launch_seconds == getattr(ASSUMED["launch_seconds"], column)
    assert not target.costs.measured
    assert target.worker_size % target.sub_group_size == 0


def test_occupancy_may_give_other_workers_than_compute_units() -> None:
    target = target_of(device("gpu", compute_units=132), resident_workers=1056, worker_size=256)
    assert (target.resident_workers, target.worker_size) == (1056, 256)


def test_costs_are_no_part_of_what_a_target_is() -> None:
    other = replace(TWO_CORES, costs=replace(TWO_CORES.costs, launch_seconds=1.0))
    assert other == TWO_CORES
    assert hash(other) == hash(TWO_CORES)
    assert target_of(device(compute_units=3)) != TWO_CORES
    assert replace(TWO_CORES, small_stage=1) != TWO_CORES


def test_a_device_answers() -> None:
    try:
        backend = backend_for(None)
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")
    target = backend.target
    assert target.device == backend.info
    assert {"vector_width", "cache_line_bytes"} <= target.asked
    assert target.cache_bytes >= target.worker_cache_bytes >= target.cache_line_bytes >= 16


# ------------------------------------------------------------------------------- caches
def cache(folder: Path, number: int, level: str, kind: str, size: str) -> None:
    own = folder / f"index{number}"
    own.mkdir()
    for name, text in (("level", level), ("type", kind), ("size", size)):
        (own / name).write_text(f"{text}\n")


def test_the_last_level_is_the_one_that_is_shared(tmp_path: Path) -> None:
    cache(tmp_path, 0, "1", "Data", "48K")
    cache(tmp_path, 1, "1", "Instruction", "64M")
    cache(tmp_path, 2, "2", "Unified", "1024K")
    assert last_level_bytes(tmp_path) == 1 << 20
    cache(tmp_path, 3, "3", "Unified", "32M")
    assert last_level_bytes(tmp_path) == 32 << 20


@pytest.mark.parametrize(("level", "size"), [("3", "much"), ("last", "1M"), ("3", "")])
def test_what_linux_writes_otherwise_is_not_taken(tmp_path: Path, level: str, size: str) -> None:
    assert last_level_bytes(tmp_path / "nowhere") == 0
    cache(tmp_path, 0, level, "Unified", size)
    assert last_level_bytes(tmp_path) == 0


def test_a_gpu_says_the_cache_of_all() -> None:
    assert cache_sizes(False, 50 << 20, 80) == {"cache_bytes": 50 << 20}
    assert cache_sizes(True, 1 << 20, 2)["worker_cache_bytes"] == 1 << 20


@pytest.mark.parametrize(("cores", "counted"), [(2, 64 << 20), (64, 480 << 20)])
def test_cores_count_on_their_part_of_a_host_s_cache(
    cores: int, counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual machine is shown all of it: nothing was out of cache, and no list a pipeline."""
    monkeypatch.setattr(caches, "last_level_bytes", lambda: 480 << 20)
    assert cache_sizes(True, 1 << 20, cores)["cache_bytes"] == counted


# -------------------------------------------------------------------------------- costs
class Clocked:
    """A backend as far as costs go."""

    def __init__(self, target: Target, asynchronous: bool = True) -> None:
        self.target = target
        self.abilities = type("", (), {"asynchronous": asynchronous, "launches": True})


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch, disk_cache: Path) -> list[Target]:
    """The targets that were measured: the first with 1 second a launch, the next with 2, …"""
    done: list[Target] = []

    def measure(backend: Backend) -> Costs | None:
        done.append(backend.target)
        if backend.target.device.name == "busy":
            return None
        return replace(backend.target.costs, launch_seconds=float(len(done)), measured=True)

    monkeypatch.setattr(cost_measurement, "measure", measure)
    monkeypatch.setattr(device_costs, "_known", {})
    monkeypatch.setattr(device_costs, "_missing", {})
    return done


def seconds(target: Target, again: bool = True) -> float:
    """What a launch costs on ``target``, for a new process if ``again``."""
    if again:
        device_costs._known.clear()
    found = measured_target(Clocked(target))  # type: ignore[arg-type]  # all it takes
    assert found == target
    assert found.costs.measured == (target.device.name != "busy")
    return found.costs.launch_seconds


def test_costs_are_measured_once(measurements: list[Target]) -> None:
    assert disk_store() is not None
    assert [seconds(TWO_CORES, again=k > 1) for k in range(4)] == [1.0] * 4
    assert len(measurements) == 1


def test_costs_that_nobody_has_measured_are_not_measured_to_be_known(
    measurements: list[Target],
) -> None:
    backend: Any = Clocked(TWO_CORES)
    assert device_costs.known_costs(backend) == TWO_CORES.costs and measurements == []
    assert seconds(TWO_CORES) == 1.0
    for _ in range(2):
        assert device_costs.known_costs(backend).launch_seconds == 1.0
        device_costs._known.clear()  # a new process, which has the disk
    assert len(measurements) == 1


def test_costs_that_are_not_on_disk_are_looked_for_once_in_a_while(
    measurements: list[Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have measured them."""
    now, looked = [5.0], []
    kept = device_costs._kept
    monkeypatch.setattr(device_costs.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(device_costs, "_kept", lambda target: looked.append(now[0]) or kept(target))
    backend: Any = Clocked(TWO_CORES)
    for _ in range(3):
        assert not device_costs.known_costs(backend).measured
    assert looked == [5.0]
    device_costs._keep(TWO_CORES, replace(TWO_CORES.costs, launch_seconds=9.0, measured=True))
    now[0] += device_costs.LOOK_AGAIN / 2
    assert not device_costs.known_costs(backend).measured
    now[0] += device_costs.LOOK_AGAIN
    for _ in range(3):
        assert device_costs.known_costs(backend).launch_seconds == 9.0
    assert len(looked) == 2


def test_what_the_kept_costs_depend_on(
    measurements: list[Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seconds(TWO_CORES) == 1.0
    three = replace(TWO_CORES, device=replace(TWO_CORES.device, compute_units=3))
    assert seconds(three) == 2.0
    assert seconds(replace(TWO_CORES, largest_plain_group=512)) == 3.0
    assert seconds(TWO_CORES) == 1.0
    code_version.cache_clear()
    monkeypatch.setattr(version, "__version__", "99.0")
    assert seconds(TWO_CORES) == 4.0
    code_version.cache_clear()


def test_costs_of_a_busy_machine_are_assumed_and_measured_by_the_next_process(
    measurements: list[Target],
) -> None:
    busy = replace(TWO_CORES, device=replace(TWO_CORES.device, name="busy"))
    assumed = ASSUMED["launch_seconds"].cpu
    for again, made in ((True, 1), (False, 1), (True, 2)):
        assert seconds(busy, again) == assumed
        assert len(measurements) == made


def test_a_worker_measures_once_others_leave_it_the_processors(
    measurements: list[Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a program whose kernels took both of two cores measuring had not ended after 16 s, in
    which nothing was learned."""
    looks = iter([False, False, True, *[False] * device_costs.QUIET_LOOKS])
    now = [5.0]
    monkeypatch.setattr(device_costs, "is_busy", lambda: next(looks))
    monkeypatch.setattr(device_costs, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(device_costs, "_is_worker", False)
    monkeypatch.setattr(device_costs, "_busy_until", 0.0)
    monkeypatch.setattr(device_costs.time, "monotonic", lambda: now[0])
    device_costs.in_worker()
    backend: Any = Clocked(TWO_CORES)
    for _ in range(2):  # the second time it does not look
        assert measured_target(backend).costs == TWO_CORES.costs and not measurements
    now[0] += device_costs.LOOK_AGAIN
    assert measured_target(backend).costs.measured and len(measurements) == 1
    assert next(looks, None) is None
    assert measured_target(backend).costs.measured, "nobody looks again"


@pytest.mark.parametrize(
    ("rounds", "found"),
    [
        ([(1.0, 5.0), (1.2, 4.5)], (1.0, 4.5)),
        ([(1.0, 5.0), (1.0, 9.0), (1.1, 5.5)], (1.0, 5.0)),  # the last and the first
        ([(1.0, 5.0), (1.0, 9.0), (1.1, 8.0)], (1.0, 8.0)),
        ([(1.0, 5.0), (2.0, 9.0), (3.0, 9.0), (1.0, 5.0), (3.0, 9.9)], (3.0, 9.0)),
        ([(1.0, 5.0), (2.0, 5.0), (1.5, 5.0), (1.0, 5.0), (2.0, 5.0), (1.5, 5.0)], None),
        ([(1.0, 1.0), (1.0, 2.0), (1.0, 4.0), (1.0, 1.0), (1.0, 2.0), (1.0, 4.0)], None),
    ],
)
def test_times_are_taken_that_came_twice(
    rounds: list[tuple[float, ...]], found: tuple[float, ...] | None
) -> None:
    coming = iter(rounds)
    assert cost_measurement.stable(lambda: next(coming)) == found
    assert next(coming, None) is None


class OtherClock:
    """The reference backend by a clock of the test's, which is all that says what a launch takes;
    ``slower``: how many times as long the n-th launch takes as it should."""

    def __init__(self, slower: Callable[[int], float]) -> None:
        self._backend = backend_for("reference")
        self._slower, self._launches = slower, 0
        device = replace(self._backend.target.device, persistent_kernels=False)
        self.target = replace(self._backend.target, device=device, cache_bytes=1 << 20)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def prepare(
        self, program: Program, bindings: Sequence[Binding], shape: LaunchShape
    ) -> PreparedLaunch:
        return _ClockedLaunch(self, prod(shape.global_range))

    def seconds(self, run: Callable[[], object]) -> float:
        self.now = 0.0
        run()
        return self.now

    def launched(self, items: int) -> None:
        self._launches += 1
        inside = items * 8 <= self.target.cache_bytes
        bandwidth = 100e9 if inside else 20e9
        self.now += (3e-6 + 8 * items / bandwidth) * self._slower(self._launches)


@dataclass(frozen=True)
class _ClockedLaunch:
    clock: OtherClock
    items: int

    def launch(self) -> None:
        self.clock.launched(self.items)


def test_what_a_clock_says_is_measured() -> None:
    costs = cost_measurement.measure(OtherClock(lambda n: 1.0))  # type: ignore[arg-type]
    assert costs is not None
    assert costs.measured
    assert costs.memory_bandwidth == pytest.approx(20e9, rel=0.02)
    assert 20e9 < costs.cache_bandwidth < 120e9
    assert 3e-6 < costs.launch_seconds < 2e-5


def test_what_interrupts_some_launches_changes_nothing() -> None:
    """One in seven takes a hundred times as long, the first over each size among them."""
    for phase in range(7):
        clock = OtherClock(lambda n, phase=phase: 100.0 if n % 7 == phase else 1.0)
        found = cost_measurement.measure(clock)  # type: ignore[arg-type]
        assert found is not None, phase
        assert found.memory_bandwidth == pytest.approx(20e9, rel=0.02), phase


def test_measuring_ends_where_others_are_busy() -> None:
    """Each launch takes half a second on the wall, whatever the device says."""
    asked = iter(range(100))
    costs = cost_measurement.measure(
        OtherClock(lambda n: 1.0),  # type: ignore[arg-type]
        lambda: next(asked) / 2,
    )
    assert costs is None
    assert next(asked) <= 2 * cost_measurement._SECONDS_IN_ALL + 3


def test_a_device_that_is_slower_each_time_is_not_measured() -> None:
    clock = OtherClock(lambda n: 1.35 ** (n / 300))
    assert cost_measurement.measure(clock) is None  # type: ignore[arg-type]


class PersistentClock(OtherClock):
    """The same, of a device that runs persistent kernels."""

    def __init__(self) -> None:
        super().__init__(lambda n: 1.0)
        device = replace(self.target.device, persistent_kernels=True, chooses_persistent=True)
        self.target = replace(self.target, device=device)


class _Stages:
    """A persistent kernel each of whose tiles takes a worker 2 µs, after 5 µs; by one worker it
    takes 0.5 µs a stage."""

    slower = 2e-6

    def __init__(self, clock: PersistentClock, *about: Any) -> None:
        tiles = about[3][4] // clock.target.worker_size
        self.clock, self.is_alone = clock, tiles == 1
        self.tiles = max(tiles // clock.target.resident_workers, 1)

    def launch(self) -> None:
        each = 5e-7 if self.is_alone else self.slower
        self.clock.now += 5e-6 + cost_measurement._STAGES * self.tiles * each


def test_what_persistent_kernels_cost_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_measurement, "PersistentLaunch", _Stages)
    clock = PersistentClock()
    assert clock.target.resident_workers > 1
    costs = cost_measurement.measure(clock)  # type: ignore[arg-type]
    assert costs is not None and costs.measured
    assert costs.instruction_seconds == pytest.approx(2e-6)
    assert costs.stage_seconds == pytest.approx(2e-6, rel=0.2)
    assert 0 < costs.alone_seconds < 1e-6
    monkeypatch.setattr(_Stages, "slower", 0.0)
    assert cost_measurement.measure(clock) is None, "somebody else had a core"  # type: ignore[arg-type]


@pytest.mark.parametrize("contents", [b"", b"{}", b'["Costs", "no", 1]', b"\xff", b"[]"])
def test_damaged_costs_are_measured_again(measurements: list[Target], contents: bytes) -> None:
    assert seconds(TWO_CORES) == 1.0
    store = disk_store()
    assert store is not None
    store.put(device_costs._entry(TWO_CORES), "costs", contents)
    assert seconds(TWO_CORES) == 2.0


def test_the_interpreter_s_costs_are_assumed(measurements: list[Target]) -> None:
    found = measured_target(Clocked(REFERENCE, asynchronous=False))  # type: ignore[arg-type]
    assert found is REFERENCE
    assert measurements == []


@pytest.mark.slow
def test_a_device_is_measured() -> None:
    try:
        backend = backend_for(None)
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")
    costs = cost_measurement.measure(backend)
    if costs is None:  # others are busy
        costs = backend.target.costs
    assert 1e-8 < costs.launch_seconds < 1
    assert 0 < costs.instruction_seconds <= costs.stage_seconds
    assert 0 < costs.alone_seconds <= costs.stage_seconds
    assert 1e6 < costs.memory_bandwidth <= costs.cache_bandwidth < 1e15
    assert costs.serial_slowdown == backend.target.costs.serial_slowdown


@pytest.mark.slow
def test_a_slow_device_is_measured_with_few_work_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter, which takes microseconds for a work-item."""
    monkeypatch.setattr(cost_measurement, "_LONGEST", 0.005)
    monkeypatch.setattr(cost_measurement, "_ALIKE", 1e9)  # others may be busy
    backend = backend_for("reference")
    items: list[int] = []
    prepare = backend.prepare

    def counted(
        program: Program, bindings: Sequence[Binding], shape: LaunchShape
    ) -> PreparedLaunch:
        items.append(prod(shape.global_range))
        return prepare(program, bindings, shape)

    monkeypatch.setattr(backend, "prepare", counted)
    costs = cost_measurement.measure(backend)
    assert costs is not None
    assert max(items) < backend.target.cache_bytes // 8
    assert 0 < costs.memory_bandwidth <= costs.cache_bandwidth
    assumed = backend.target.costs
    assert costs.instruction_seconds == assumed.instruction_seconds
    assert costs.stage_seconds == assumed.stage_seconds


def test_as_many_work_items_as_take_the_time() -> None:
    def most(seconds: float) -> int:
        asked: list[int] = []

        def each(items: int) -> float:
            asked.append(items)
            return items * seconds

        found = cost_measurement._most_in_time(each, 100, 1_000_000)
        assert asked in ([], [100]) or sum(asked) * seconds <= cost_measurement._LONGEST
        return found

    assert most(1.0) == 100
    assert most(1e-12) == 1_000_000
    assert cost_measurement._LONGEST / 8 < most(1e-5) * 1e-5 <= cost_measurement._LONGEST
