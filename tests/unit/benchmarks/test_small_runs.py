"""Benchmarks that have files of their own, as small as they run, in this process."""

from __future__ import annotations

import json
import runpy
import sys
import time
from typing import Any

import pytest

import fusionq as fq
from fusionq.benchmarks import planning, planning_lists, profiling_accuracy
from fusionq.benchmarks.planning import PARTS, run_planning
from fusionq.benchmarks.planning_lists import FAMILIES
from fusionq.benchmarks.profiling_accuracy import Row
from fusionq.benchmarks.profiling_overhead import (
    Overhead,
    _interleaved,
    run_profiling_overhead,
)
from tests.property.running import needs_device


def printed(module, monkeypatch, capsys, *arguments):
    """What a script of a child process prints, as the JSON that it is."""
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    runpy.run_module(f"fusionq.benchmarks.{module}", run_name="child")
    return json.loads(capsys.readouterr().out)


def test_the_script_of_peak_memory(monkeypatch, capsys):
    found = printed("peak_memory_child", monkeypatch, capsys, "1000", "reference")
    assert found["allocated_bytes"] == 5 * 4 * 1000  # four inputs, one output
    assert found["temporaries_bytes"] == 0
    assert found["growth_bytes"] >= 0


def test_the_script_of_the_first_fusion(monkeypatch, capsys):
    began = str(time.time())
    found = printed("first_fusion_child", monkeypatch, capsys, began, "reference")
    total = found.pop("total")
    assert total == pytest.approx(sum(found.values()))
    assert {"interpreter", "import_fusionq", "analysis", "run"} <= set(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_of_planning(family, monkeypatch, capsys):
    """The lists are those of the family; each part is measured, and the unfused run is right."""
    monkeypatch.setattr(planning_lists, "ITEMS", 8)
    monkeypatch.setattr(planning_lists, "NODES", 4)
    monkeypatch.setattr(planning_lists, "WIDTH", 4)
    found = printed("planning_child", monkeypatch, capsys, family, "6", "reference")
    assert found.keys() == {*PARTS, "strategy"}
    assert 1 <= found["kernels"] <= found["launches"] <= 6
    assert found["planned_seconds"] >= found["analysis_seconds"] + found["passes_seconds"]
    assert found["entry_bytes"] > 0


def test_planning_has_a_result_for_each_family_and_length(monkeypatch):
    """Each in a process of its own, which is told the device."""
    asked = []

    def child(script, *arguments):
        asked.append((script, *arguments))
        return {**dict.fromkeys(PARTS, 1.0), "strategy": "fused"}

    monkeypatch.setattr(planning, "run_child", child)
    doing = []
    results = list(run_planning("reference", (5, 7), ("chain", "tree"), doing.append))
    assert asked == [
        ("planning_child.py", family, length, "reference")
        for family in ("chain", "tree")
        for length in ("5", "7")
    ]
    assert doing == [result.description for result in results]
    assert doing[0] == "chain, 5 submissions"
    assert [m.name for m in results[0].measurements] == list(PARTS)


def test_what_profiling_costs():
    queue = fq.FusionQueue("reference")
    result = run_profiling_overhead(queue, 1, [Overhead("seeds", 60)])
    assert [m.name for m in result.measurements] == [
        "seeds_60_ratio", "seeds_60_cpu_ratio", "seeds_60_null_ratio",
    ]  # fmt: skip
    assert all(m.value > 0 for m in result.measurements)
    assert queue._state.launcher.profiler is None


def test_no_sample_of_what_profiling_costs_reads_records() -> None:
    """That takes the host far longer than a launch takes the device."""
    seen: list[tuple[str, int]] = []

    class Done:
        def wait(self) -> None:
            seen.append(("wait", 1))

    def start() -> Any:
        return Done()

    def sampler(_: Any) -> Any:
        return lambda runs: seen.append(("sample", runs)) or 1.0

    def between() -> None:
        seen.append(("dropped", 0))

    samples = _interleaved((start, start, start), sampler, between, 2, 3)
    assert samples.shape == (2, 3, 2)
    _, *rest = seen  # the first is how long a run takes
    assert rest == [("dropped", 0), ("wait", 1), ("dropped", 0), ("sample", 3)] * 6


# ---------------------------------------------------------------------- the profiler's times
def test_a_row_is_wrong_where_it_differs_by_more_than_is_allowed():
    assert Row("a", 100.0, 103.0, "µs", 0.02).is_wrong
    assert not Row("a", 100.0, 98.5, "µs", 0.02).is_wrong
    assert not Row("a", 100.0, 300.0, "µs", None).is_wrong
    assert str(Row("a", 100.0, 103.0, "µs", 0.02)).endswith("MORE THAN 2%")


@pytest.mark.slow
@needs_device
@pytest.mark.parametrize("case", ["regions", "imbalanced"])
def test_kernels_of_a_known_time(case, monkeypatch):
    """That there is a time for each; how right it is takes longer to say."""
    for name, value in (("SHORT", 200), ("LONG", 400), ("LOOPS", 1), ("GROUPS", 2)):
        monkeypatch.setattr(profiling_accuracy, name, value)
    with fq.FusionQueue() as queue:
        rows = profiling_accuracy.CASES[case](queue, 1)
    found = {row.name: row for row in rows}
    expected = {
        "regions": ["region of 200 turns", "region of 1,200 turns"],
        "imbalanced": ["work-group of 200 turns", "work-group of 400 turns"],
    }
    assert set(expected[case]) <= set(found)
    assert all(found[name].measured > 0 for name in expected[case])


def test_the_table_of_known_times(monkeypatch, capsys):
    cases = {
        "good": lambda queue, rounds: [Row("right", 1.0, 1.0, "µs", 0.02)],
        "bad": lambda queue, rounds: [Row("wrong", 1.0, 2.0 * rounds, "µs", 0.02)],
    }
    monkeypatch.setattr(profiling_accuracy, "CASES", cases)
    for name, status in (("good", 0), ("bad", 1)):
        monkeypatch.setattr(sys, "argv", ["accuracy", name, "--rounds", "3"])
        with pytest.raises(SystemExit) as end:
            profiling_accuracy.main()
        assert end.value.code == status
    out = capsys.readouterr().out
    assert "right" in out and "500.00%  MORE THAN 2%" in out
