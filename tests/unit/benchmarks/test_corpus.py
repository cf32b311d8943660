"""``fusionq bench corpus``: what is measured, what is left out and why, figures, files."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fusionq as fq
from fusionq.benchmarks.corpus import measure, runner
from fusionq.benchmarks.corpus.measure import Event, Request, measure_forms
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import FormResult, Learning, Summary
from fusionq.benchmarks.corpus.runner import Selection, run_corpus
from fusionq.benchmarks.corpus.table import results_notes
from fusionq.benchmarks.results import VariantResult
from fusionq.benchmarks.timing import Timing
from fusionq.cli.main import app


def timed(name: str, *seconds: float, launches: int | None = None) -> VariantResult:
    return VariantResult(name, "fusionq", timing=Timing(seconds, 1), launches=launches)


def form_result(form: str, *variants: VariantResult, **fields: object) -> FormResult:
    blank = FormResult("heat_3d", form, "fit", "in cache", (8, 2), 1 << 20, submissions=4)
    return replace(blank, variants=variants, **fields)  # type: ignore[arg-type]  # any field


MIXED = (
    form_result(
        "guarded",
        timed("unfused", 4.0),
        timed("fused", 2.0),
        VariantResult("megakernel", "fusionq", unavailable="no result within 5 s"),
        timed("auto", 3.0, 1.0, 2.5, launches=1),
        timed("auto, learning", 1.6),
        first_calls={"unfused": 1.0, "auto": 3.0, "auto, learning": 1.05},
        learning=Learning(7, 1.25),
    ),
    form_result(
        "interior", timed("unfused", 1.0), timed("fused", 4.0), timed("auto", 4.0, launches=2)
    ),
    form_result("linear", error="a result is wrong: element 3"),
    form_result("slow", timed("unfused", 1.0)),
)


def test_figures_of_a_form() -> None:
    guarded, interior, wrong, slow = MIXED
    assert guarded.speed_up("auto") == 4.0 / 2.5
    assert guarded.speed_up("megakernel") is None
    assert guarded.best is not None and guarded.best.name == "fused"
    assert guarded.regret() == pytest.approx(0.25)
    assert guarded.first_call_ratio() == 3.0
    assert interior.best is not None and interior.best.name == "unfused"
    assert interior.regret() == pytest.approx(3.0)
    assert wrong.best is None and wrong.regret() is None
    assert slow.regret() is None and slow.first_call_ratio() is None
    assert FormResult.from_dict(json.loads(json.dumps(asdict(guarded)))) == guarded


def test_the_summary() -> None:
    summary = Summary.of(MIXED)
    assert summary.mean_speed_up == pytest.approx((1.6 * 0.25) ** 0.5)
    assert summary.worst_speed_up is not None
    assert summary.worst_speed_up.name == "heat_3d/interior, in cache"
    assert summary.mean_regret == pytest.approx((1.25 * 4.0) ** 0.5 - 1)
    assert summary.worst_regret is not None and summary.worst_regret.value == pytest.approx(3.0)
    assert summary.mean_speed_up_of_best == pytest.approx(2.0 ** (1 / 3))
    assert (summary.submissions, summary.launches) == (8, 3)
    assert summary.without_auto == ("heat_3d/slow, in cache",)
    assert summary.errors == ("heat_3d/linear, in cache: a result is wrong: element 3",)
    learned = summary.learned
    assert learned.results == 1 and learned.mean_speed_up == pytest.approx(2.5)
    assert learned.worst_regret is not None and learned.worst_regret.value == pytest.approx(-0.2)
    assert learned.mean_first_call_ratio == pytest.approx(1.05) and learned.median_runs == 7
    assert learned.most_cost is not None
    assert learned.most_cost.value == learned.median_cost == 1.25
    nothing = Summary.of([])
    assert nothing.mean_speed_up is None and nothing.worst_regret is None


def test_what_has_no_time_is_said() -> None:
    notes = list(results_notes(MIXED))
    assert "guarded, megakernel: no result within 5 s" in notes
    assert "linear: a result is wrong: element 3" in notes


# ------------------------------------------------------------------------------- selection
def test_filters_and_halves() -> None:
    one = Selection(("jacobi_2d/interior",), working_sets=("tiny",))
    assert one.requests == (("jacobi_2d", "tiny", ("interior",)),)
    stars = Selection(("jacobi_?d", "*/local"), working_sets=("tiny",))
    forms = {name: found for name, _, found in stars.requests}
    assert forms["jacobi_3d"] == ("guarded", "interior")
    assert forms["hotspot"] == ("local",)
    assert Selection(("nonsense", "adi")).unknown == ("nonsense",)
    fit = {name for name, *_ in Selection(half="fit").requests}
    report = {name for name, *_ in Selection(half="report").requests}
    assert not fit & report
    assert fit | report == set(PROGRAMS)


@pytest.mark.parametrize(
    ("program", "half"),
    [("jacobi_1d", "fit"), ("hotspot", "fit"), ("adi", "report"), ("mlp", "report")],
)
def test_a_program_stays_in_its_half(program: str, half: str) -> None:
    assert PROGRAMS[program].half == half


# --------------------------------------------------------------------------------- measuring
def results_of(request: Request) -> list[FormResult]:
    events: list[Event] = []
    measure_forms(request, events.append)
    return [FormResult.from_dict(e.result) for e in events if e.result is not None]


def test_every_strategy_of_the_library_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("numba") is not None:  # test_bench.py compiles loops of Numba
        monkeypatch.setattr("numba.njit", lambda **options: lambda function: function)
    (result,) = results_of(Request("wave_2d", ("interior",), "tiny", "reference", 1))
    names = [v.name for v in result.variants]
    assert names == [
        "unfused", *measure.strategies(), "auto", "auto, learning", "Numba, parallel"
    ]  # fmt: skip
    assert result.error is None and result.submissions == 6
    assert set(result.first_calls or ()) == {"unfused", "auto", "auto, learning"}
    auto, unfused = result.variant("auto"), result.variant("unfused")
    assert auto is not None and auto.timing is not None and auto.launches == 1
    assert unfused is not None and unfused.launches == 6
    assert all(v.timing is not None or v.unavailable for v in result.variants)


@pytest.mark.parametrize("options", [{}, {"single": True}, {"replay": True}], ids=str)
def test_what_auto_learns_is_measured_alone(options: dict[str, bool]) -> None:
    request = Request(
        "wave_2d", ("interior",), "tiny", "reference", 1, learning_only=True, **options
    )
    (result,) = results_of(request)
    names = [v.name for v in result.variants]
    assert names == ["unfused", *measure.strategies(), "auto, learning"]
    assert result.error is None and result.first_calls is None
    learned = result.variant("auto, learning")
    assert learned is not None and (learned.timing is not None or learned.unavailable)
    if result.learning is not None:
        assert "auto runs" in result.learning.choice


def test_replays_are_timed_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed: list[str] = []
    replay = fq.Fusion.replay

    def counted(self: fq.Fusion, *args: Any, **named: Any) -> fq.Event:
        replayed.append(self.report.strategy)
        return replay(self, *args, **named)

    monkeypatch.setattr(fq.Fusion, "replay", counted)
    for asked in (False, True):
        request = Request(
            "wave_2d", ("interior",), "tiny", "reference", 1, learning_only=True, replay=asked
        )
        (result,) = results_of(request)
        assert result.error is None
        timed = {v.strategy or v.name for v in result.variants if v.timing is not None}
        assert set(replayed) == (timed if asked else set())


def test_a_skipped_candidate_is_not_tried() -> None:
    left_out = {
        "auto": "too slow", "auto, learning": "ended", "fused": "ended", "Numba, parallel": "ended",
    }  # fmt: skip
    skipped = {"interior": left_out}
    request = Request("wave_2d", ("interior",), "tiny", "reference", 1, skipped)
    (result,) = results_of(request)
    assert set(result.first_calls or ()) == {"unfused"}
    for name, reason in skipped["interior"].items():
        variant = result.variant(name)
        assert variant is not None and variant.unavailable == reason


def test_a_wrong_result_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS["pathfinder"]

    def off_by_one(size: tuple[int, ...], *arrays: np.ndarray) -> None:
        program.reference(size, *arrays)
        arrays[1][4] += 1

    monkeypatch.setitem(PROGRAMS, "pathfinder", replace(program, reference=off_by_one))
    forms = tuple(form.name for form in program.forms)
    for result in results_of(Request("pathfinder", forms, "tiny", "reference", 1)):
        assert result.error is not None
        assert re.search(r"a result is wrong: pathfinder/.* 1 wrong elements.* 4", result.error)


def test_numba_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    (result,) = results_of(Request("pathfinder", ("clamped",), "tiny", "reference", 1))
    numba = result.variant("Numba, parallel")
    assert numba is not None and numba.unavailable is not None
    assert "pip install numba" in numba.unavailable


@pytest.mark.parametrize("name", [p.name for p in PROGRAMS.values() if p.loop is not None])
def test_loops_of_numba_are_right(name: str) -> None:
    """Without compiling them: as the Python functions that they are."""

    class Plain:
        prange = range

    program = PROGRAMS[name]
    size = program.sizes["tiny"]
    assert program.loop is not None
    arrays = dict(program.arrays(size, np.random.default_rng(0)))
    expected = {key: array.copy() for key, array in arrays.items()}
    program.loop(Plain)(*size, *arrays.values())
    program.reference(size, *expected.values())
    for output in program.outputs:
        tolerance = max(program.tolerance, 1e-12)
        assert np.allclose(arrays[output], expected[output], tolerance, tolerance), output


# -------------------------------------------------------------------- processes that fail
class Scripted:
    """Stands for the measuring process: each one made plays the next script."""

    scripts: Iterator[list[Event | str]]
    requests: list[Request]

    def __init__(self, module: str, request: Request) -> None:
        self.requests.append(request)
        self._script = iter(next(self.scripts))

    def event(self, limit: float) -> Event | str:
        return next(self._script)

    def end(self) -> None:
        """Nothing to end."""


def played(monkeypatch: pytest.MonkeyPatch, *scripts: list[Event | str]) -> list[FormResult]:
    Scripted.scripts, Scripted.requests = iter(scripts), []
    monkeypatch.setattr(runner, "MeasuringProcess", Scripted)
    selection = Selection(("fdtd_2d",), working_sets=("tiny",))
    return list(run_corpus(selection, None, 1, 5, lambda doing: None))


def done(form: str) -> Event:
    return Event(form, result=asdict(form_result(form, timed("unfused", 1.0))))


def test_a_candidate_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    results = played(
        monkeypatch,
        [done("guarded"), Event("interior", "auto", "first call"), "no result within 5 s"],
        [Event("interior", "megakernel", "megakernel"), "the process ended with code -11"],
        [done("interior")],
    )
    assert [r.form for r in results] == ["guarded", "interior"]
    first, second, third = Scripted.requests
    assert first.forms == ("guarded", "interior") and not first.skipped
    assert second.forms == ("interior",)
    assert second.skipped == {"interior": {"auto": "no result within 5 s"}}
    assert third.skipped["interior"]["megakernel"] == "the process ended with code -11"


def test_a_form_that_does_not_even_run_unfused_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong, right = played(
        monkeypatch,
        [Event("guarded", "unfused", "unfused"), "the process ended with code 1"],
        [done("interior")],
    )
    assert wrong.error == "unfused: the process ended with code 1"
    assert right.error is None


def test_a_process_that_ends_between_two_forms_costs_the_next_one_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right, wrong = played(
        monkeypatch, [done("guarded"), "the process ended with code 1"], [done("interior")]
    )
    assert (right.form, right.error) == ("guarded", None)
    assert (wrong.form, wrong.error) == ("interior", "start: the process ended with code 1")


# ------------------------------------------------------------------------------ command line
def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bench", "corpus", *arguments])
    return result.exit_code, result.output


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """A small part of the corpus, in a process of its own, with files."""
    data, picture = tmp_path / "corpus.json", tmp_path / "corpus.png"
    code, out = run(
        *("atax", "--working-set", "tiny", "--device", "reference", "--rounds", "1"),
        *("--json", str(data), "--plot", str(picture)),
    )
    assert code == 0, out
    for text in ("atax, tiny", "rows", "groups", "megakernel", "geometric mean", "regret"):
        assert text in out
    found = json.loads(data.read_text())
    assert found["summary"]["results"] == 2
    assert [r["form"] for r in found["results"]] == ["rows", "groups"]
    assert picture.read_bytes().startswith(b"\x89PNG")
