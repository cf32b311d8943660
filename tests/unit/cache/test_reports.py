"""A report reads the same whether the plan was made now, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import fusionq as fq
from tests.unit.cache.conftest import forget
from tests.unit.cache.programs import (
    BASE,
    COPY,
    SECOND,
    Program,
    changed,
    kernels,
    run,
    without_cache,
)

SHIFTED = SECOND.replace("helper(a[i], factor)", "helper(a[a.shape[0] - 1 - i], factor)")
GROUPS = {
    "first": COPY.replace("get_id", "get_global_id"),
    "second": SHIFTED.replace("get_id", "get_global_id"),
}
UNKNOWN = SECOND.replace("helper(a[i], factor)", "helper(a[int(a[i]) % a.shape[0]], factor)")
WIDENED = SECOND.replace("helper(a[i], factor)", "helper(a[i], factor) if i > 3 else np.float64(i)")
PROGRAMS = {
    "a note": changed(second=WIDENED),
    "fused": changed(),
    "promoted": changed(tmp_flags={"promote_private": True}),
    "not promoted, with a reason": changed(second=SHIFTED, tmp_flags={"promote_private": True}),
    "an index that depends on data": changed(second=UNKNOWN, tmp_flags={"promote_private": True}),
    "two launches, with a reason": changed(
        second=SHIFTED, shape=(5000,), options={"strategy": "sequence"}
    ),
    "barriers": changed(**GROUPS, local=(12,)),
    "local memory": changed(**GROUPS, local=(12,), tmp_flags={"promote_local": True}),
    "unfused": changed(options={"strategy": "unfused"}),
    "a fallback": changed(options={"strategy": "megakernel"}),
    "a megakernel": changed(second=SHIFTED, shape=(5000,), options={"strategy": "megakernel"}),
}


def without_times(report: fq.Report) -> dict[str, Any]:
    found = report.to_dict()
    del found["timings_seconds"], found["cache"]
    return found


@pytest.fixture
def target_queue(target: str | None) -> Iterator[fq.FusionQueue]:
    with fq.FusionQueue(target) as made:
        yield made


@pytest.mark.in_turn
@pytest.mark.parametrize("what", PROGRAMS)
def test_the_same_from_everywhere(what: str, target_queue: fq.FusionQueue) -> None:
    program = PROGRAMS[what]
    at_once = run(program_in(program, "<here>"), target_queue)
    in_memory = run(program_in(program, "<here>"), target_queue)
    forget(target_queue)
    on_disk = run(program_in(program, "<here>"), target_queue)
    assert [ran.cache for ran in (at_once, in_memory, on_disk)] == ["miss", "memory", "disk"]
    assert without_times(in_memory.report) == without_times(at_once.report)
    assert without_times(on_disk.report) == without_times(at_once.report)
    assert texts(on_disk.report) == texts(at_once.report)
    assert bool(at_once.report.notes) == (what == "a note")


@pytest.mark.in_turn
@pytest.mark.parametrize("what", PROGRAMS)
def test_places_are_where_the_kernels_stand_now(what: str, target_queue: fq.FusionQueue) -> None:
    program = PROGRAMS[what]
    run(program_in(program, "<here>"), target_queue)
    forget()
    moved = run(program_in(program, "/else/where.py", 50), target_queue)
    assert moved.cache == "disk"
    anew = without_cache(program_in(program, "/else/where.py", 50), target_queue)
    assert without_times(moved.report) == without_times(anew.report)
    assert texts(moved.report) == texts(anew.report)
    assert "<here>" not in str(moved.report.to_dict())


def program_in(program: Program, file: str, line: int = 1) -> Program:
    return replace(program, file=file, line=line)


def texts(report: fq.Report) -> tuple[list[str], str, str]:
    """What people read, without the line that says where the plan comes from."""
    lines = [line for line in str(report).splitlines() if "plan:" not in line]
    return lines, report.source, report.device_source


def test_the_report_says_where_the_plan_comes_from(target_queue: fq.FusionQueue) -> None:
    program = PROGRAMS["fused"]
    assert "made new" in str(run(program, target_queue).report)
    forget()
    report = run(program, target_queue).report
    assert report.cache == report.to_dict()["cache"] == "disk"
    assert "from disk" in str(report)
    assert not {"analysis", "passes"} & set(report.timings)
    assert "disk" in report.timings


def test_the_names_of_buffers_are_those_of_now(target_queue: fq.FusionQueue) -> None:
    """The same kernels and types, submitted elsewhere with arguments of other names."""

    def submitted(n: int) -> fq.Report:
        first, second = kernels(BASE)
        source, between, result = (fq.Buffer(n, "f4") for _ in range(3))
        with fq.fusion(target_queue) as f:
            target_queue.submit(first, n, source, between)
            target_queue.submit(second, n, between, 3.0, result)
        assert f.event is not None
        f.event.wait()
        return f.report

    run(BASE, target_queue)
    forget()
    report = submitted(5)
    assert report.cache == "disk"
    assert [d.buffer for d in report.dependences] == ["between"]
