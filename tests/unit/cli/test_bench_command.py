"""``fusionq bench`` of what is measured beside the cases, with what it measures made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fusionq as fq
from fusionq.benchmarks.results import Measurement, SpecialResult
from fusionq.cli import bench
from fusionq.cli.main import app


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(app, ["bench", *arguments, "--device", "reference"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


MEASURES = {
    "host_cost": (bench.host_cost, "run_host_cost"),
    "first_fusion": (bench.first_fusion, "run_first_fusion"),
    "warm_start": (bench.warm_start, "run_warm_start"),
    "profiling_overhead": (bench.profiling_overhead, "run_profiling_overhead"),
    "peak_memory": (bench.peak_memory, "run_peak_memory"),
}


def made_up(name: str, monkeypatch: pytest.MonkeyPatch, run: Callable[..., object]) -> None:
    monkeypatch.setattr(*MEASURES[name], run)


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("host_cost", (), 3 * bench.HOST_ROUNDS_FACTOR), ("first_fusion", (), 3),
        ("warm_start", (), 3), ("profiling_overhead", (), 3),
        ("peak_memory", ("--size", "1234"), 1234),
    ],
)  # fmt: skip
def test_each_is_measured_as_often_as_asked_for(
    name: str, given: tuple[str, ...], wanted: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[object] = []

    def measured(*about: object) -> SpecialResult:
        seen.append(about[-1])
        assert about[0] == "reference" or isinstance(about[0], fq.FusionQueue)
        return SpecialResult(name, "what it is", (Measurement("some_seconds", 0.25, "a note"),))

    made_up(name, monkeypatch, measured)
    file = tmp_path / "results.json"
    code, out, _ = run(name, "--rounds", "3", "--json", str(file), *given)
    assert code == 0 and seen == [wanted]
    assert "250 ms" in out and "what it is" in out
    (result,) = json.loads(file.read_text())["results"]
    assert result["case"] == name
    assert result["measurements"][0]["value"] == 0.25


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AssertionError("out[3] is 7"), "a result is wrong: out[3] is 7"),
        (MemoryError(), "there is not enough memory for this size"),
    ],
)
def test_what_goes_wrong_ends_it(
    error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*about: object) -> SpecialResult:
        raise error

    made_up("host_cost", monkeypatch, fails)
    code, _, complaint = run("host_cost")
    assert code == 1
    assert said in " ".join(complaint.split())


def test_lists_are_planned_in_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(device: str, lengths: list[int], doing: Callable[[str], None]) -> object:
        assert (device, list(lengths)) == ("reference", [4, 8])
        for length in lengths:
            doing(f"{length} steps")
            yield SpecialResult("planning", f"of {length}", (Measurement("a_count", 1.0),))

    monkeypatch.setattr(bench.planning, "run_planning", planned)
    code, out, _ = run("planning", "--size", "4", "--size", "8")
    assert code == 0
    assert "of 4" in out and "of 8" in out
