"""Persistent kernels in a second language: run on the host, their workers groups of threads.

What the queue protocol takes of a language it takes here of C11 and POSIX threads, whose lanes go
through the code by themselves, as those of a block on a GPU do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusionq.backends.reference import run_function
from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.device_source import DeviceSource, ExtentArgument, Pointer, Scalar, Stride
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.kernel_source import generate
from fusionq.ir.nodes import ArrayParam, InstructionRecords, Kernel, Persistent, ScalarParam
from fusionq.ir.types import INT64
from fusionq.language.ranges import as_range
from fusionq.megakernel.schedule import Schedule
from fusionq.megakernel.tiling import Assignment, Tiling
from fusionq.passes.sources import QueueSource
from tests.unit.codegen.host_dialect import COMPILER, HOST, HostKernel, built
from tests.unit.lists import root
from tests.unit.megakernel.cases import CASES
from tests.unit.megakernel.plans import PersistentPlan, persistent
from tests.unit.targets import REFERENCE

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")

WORKERS, LANES, SPIN_LIMIT = 3, 4, 1 << 22
TARGET = replace(
    REFERENCE, resident_workers=WORKERS, worker_size=LANES, sub_group_size=LANES,
    start_spin_limit=1 << 16, polls_between_checks=16,
)  # fmt: skip
WORDS_OF_ROW = 6


@dataclass
class Run:
    """A persistent kernel with its memory."""

    plan: PersistentPlan
    schedule: Schedule
    source: DeviceSource
    kernel: HostKernel
    control: np.ndarray[Any, np.dtype[np.uint32]]
    records: np.ndarray[Any, np.dtype[np.int64]]

    def launch(self, resident: int = WORKERS, spin_limit: int = SPIN_LIMIT) -> None:
        """The next launch, which the workers count; at most ``resident`` of them run at once."""
        values: dict[str, Any] = {"kept": self.records, "base": 0, "rows": self.rows}
        own = {
            "schedule": self.schedule.words, "control": self.control,
            "epoch": 0, "spin_limit": spin_limit,
        }  # fmt: skip
        stage = self.plan.stage
        for param, source in zip(stage.kernel.params, stage.sources, strict=True):
            queue = isinstance(source, QueueSource)
            values[param.name] = own[source.what] if queue else self.plan.value(source)
        arguments = [_passed(slot, values[slot.param]) for slot in self.source.slots]
        self.kernel.launch(WORKERS, resident, LANES, arguments)

    @property
    def rows(self) -> int:
        """Rows of each stage in the records."""
        return max(stage.tiles for stage in self.schedule.stages)

    def line(self, number: int) -> list[int]:
        """A line of the control memory."""
        size = TARGET.control_line
        return [int(word) for word in self.control[number * size : (number + 1) * size]]


def _passed(slot: Pointer | ExtentArgument | Stride | Scalar, value: Any) -> int:
    match slot:
        case Pointer():
            return int(value.__array_interface__["data"][0])
        case ExtentArgument():
            return int(value.shape[slot.dim])
        case Stride():
            return int(value.strides[slot.dim]) // int(value.itemsize)
    return int(value)


def recorded(kernel: Kernel) -> Kernel:
    """The kernel with records."""
    body = kernel.body[0]
    assert isinstance(body, Persistent)
    records = InstructionRecords("clock", "kept", "base", "rows", 0, WORDS_OF_ROW)
    more = (ArrayParam("kept", INT64, 1), ScalarParam("base", INT64), ScalarParam("rows", INT64))
    return replace(kernel, params=(*kernel.params, *more), body=(replace(body, records=records),))


def run_of(name: str, folder: Path, assignment: Assignment, records: bool = False) -> Run:
    """The run of one of the lists of ``CASES``."""
    return run(persistent(*CASES[name](24)), folder, assignment, records)


def run(
    plan: PersistentPlan,
    folder: Path,
    assignment: Assignment,
    records: bool = False,
    target: Target = TARGET,
    row: int = 5,
    dialect: Dialect = HOST,
) -> Run:
    """A list's persistent kernel, in tiles of few work-items, so many in a ``row``."""
    extents = [stage.extents for stage in plan.schedule().stages]
    tiles = tuple(tuple([*(2 for _ in e[:-1]), row]) for e in extents)
    schedule = plan.schedule(Tiling(tiles, 2, assignment), WORKERS)
    kernel = recorded(plan.stage.kernel) if records else plan.stage.kernel
    schedule.words[q.AHEAD] = target.read_ahead_bytes // WORKERS
    source = generate(kernel, "strict", target, dialect)
    control = np.zeros(schedule.control_words, np.uint32)
    rows = np.zeros(len(schedule.stages) * max(s.tiles for s in schedule.stages) * WORDS_OF_ROW)
    return Run(plan, schedule, source, built(source, folder), control, rows.astype(np.int64))


def memory(plan: PersistentPlan) -> list[np.ndarray[Any, Any]]:
    """The arrays of a list, each once."""
    arrays = [a for call in plan.calls for a in call[2:] if isinstance(a, np.ndarray)]
    return list({id(root(a)): root(a) for a in arrays}.values())


def results(plan: PersistentPlan, launches: int) -> list[list[np.ndarray[Any, Any]]]:
    """All memory after each of ``launches`` runs of the Python functions; it is left as it was."""
    before = [a.copy() for a in memory(plan)]
    found = []
    for _ in range(launches):
        for kernel, range_, *arguments in plan.calls:
            run_function(kernel.function, as_range(range_), arguments)
        found.append([a.copy() for a in memory(plan)])
    restore(plan, before)
    return found


def restore(plan: PersistentPlan, values: Sequence[np.ndarray[Any, Any]]) -> None:
    for array, value in zip(memory(plan), values, strict=True):
        array[...] = value


def assert_memory(plan: PersistentPlan, wanted: Sequence[np.ndarray[Any, Any]]) -> None:
    for found, expected in zip(memory(plan), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "assignment"),
    [("strided", "turns"), ("stencil_2d", "tickets"), ("sum_then_scale", "stages"),
     ("views", "turns")],
)  # fmt: skip
def test_launches_give_the_lists_results(tmp_path: Path, name: str, assignment: Assignment) -> None:
    """With all workers at once and, from tickets, with fewer; nothing is reset in between."""
    run = run_of(name, tmp_path, assignment)
    residents = (WORKERS, 1, WORKERS, 2)
    for resident, wanted in zip(residents, results(run.plan, len(residents)), strict=True):
        run.launch(resident)
        assert_memory(run.plan, wanted)
    instructions = len(run.schedule.stage)
    assert run.line(q.HEAD)[0] == len(residents) * (instructions + WORKERS)
    assert run.line(q.ARRIVED)[0] in (0, len(residents) * WORKERS)
    assert run.line(q.ARRIVED)[q.LEFT] == len(residents) * WORKERS
    assert run.line(q.MODE)[q.LAUNCHES] == len(residents)
    assert run.line(q.STALL)[q.FLAG] == 0


def test_a_wait_that_runs_out_is_recorded_and_ends_the_launch(tmp_path: Path) -> None:
    """One worker that has a consumer before its producer; the launch behind does nothing."""
    run = run_of("stencil_2d", tmp_path, "tickets")
    order = int(run.schedule.words[q.ORDER])
    words = run.schedule.words[order : order + len(run.schedule.stage)]
    words[:] = words[::-1].copy()
    for _ in range(2):
        before = [a.copy() for a in memory(run.plan)]
        run.launch(resident=1, spin_limit=100)
        assert_memory(run.plan, before)
    assert run.line(q.MODE)[q.LAUNCHES] == 2
    stall = run.line(q.STALL)
    last = len(run.schedule.stages) - 1
    assert (stall[q.FLAG], stall[q.CLAIM], stall[q.STALL_STAGE]) == (1, 1, last)
    assert stall[q.STALL_EXPECTED] > 0 == stall[q.STALL_SEEN]
    assert stall[q.STALL_COUNTER] >= q.FIRST_COUNTER


@pytest.mark.slow
def test_records_have_a_row_for_each_tile(tmp_path: Path) -> None:
    """The worker's number, and times in order."""
    run = run_of("sum_then_scale", tmp_path, "turns", records=True)
    (wanted,) = results(run.plan, 1)
    run.launch()
    assert_memory(run.plan, wanted)
    rows = run.records.reshape(len(run.schedule.stages), run.rows, WORDS_OF_ROW)
    for stage, own in zip(run.schedule.stages, rows, strict=True):
        assert set(own[: stage.tiles, 0]) <= set(range(1, WORKERS + 1))
        assert (np.diff(own[: stage.tiles, 1:]) >= 0).all() and (own[: stage.tiles, 1] > 0).all()
        assert not own[stage.tiles :].any()
