"""``fusionq bench corpus --against torch``: the forms, the figures, and what is missing.

tests/cuda/test_torch_forms.py measures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from fusionq.benchmarks.corpus.against import runner
from fusionq.benchmarks.corpus.against.child import READY, AgainstRequest
from fusionq.benchmarks.corpus.against.results import (
    AUTO,
    COMPILED,
    COMPILED_GRAPH,
    EAGER,
    TORCH,
    AgainstSummary,
    fastest,
    gain,
)
from fusionq.benchmarks.corpus.against.torch_program import TorchProgram
from fusionq.benchmarks.corpus.measure import Event
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import FormResult
from fusionq.benchmarks.corpus.runner import Selection
from fusionq.benchmarks.corpus.torch_forms import TORCH_FORMS, WITHOUT_FORM, TorchForm
from fusionq.benchmarks.corpus.workload import Problem
from fusionq.benchmarks.gpu import GRAPH
from fusionq.benchmarks.results import VariantResult
from fusionq.benchmarks.timing import Timing
from fusionq.benchmarks.variants import MissingVariant, Variant
from fusionq.cli import bench_against
from fusionq.cli.main import app


# ------------------------------------------------------------------------------------- forms
def test_each_program_has_a_form_or_a_reason() -> None:
    assert not TORCH_FORMS.keys() & WITHOUT_FORM.keys()
    assert TORCH_FORMS.keys() | WITHOUT_FORM.keys() == PROGRAMS.keys()
    assert all(WITHOUT_FORM.values())


def test_forms_are_imported_without_pytorch() -> None:
    lines = (
        "import sys",
        "sys.modules['torch'] = None",
        "from fusionq.benchmarks.corpus.against import child, torch_program",
        "from fusionq.benchmarks.case import Unavailable",
        "try:",
        "    torch_program.imported_torch()",
        "except Unavailable as reason:",
        "    print(reason)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("PyTorch is not installed")


@pytest.mark.parametrize("name", TORCH_FORMS)
def test_forms_agree_with_numpy_on_the_cpu(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    program = PROGRAMS[name]
    problem = Problem(program, program.sizes["tiny"])
    torch_program = TorchProgram(torch, problem, TORCH_FORMS[name], "cpu")
    assert "NumPy" in torch_program.check()
    torch_program.restore()


def without_torch(name: str, thresholds: float = 0.0) -> TorchProgram:
    """A program that needs no PyTorch, since its results are made up."""
    made = object.__new__(TorchProgram)
    problem = Problem(PROGRAMS[name], PROGRAMS[name].sizes["tiny"])
    made.torch = SimpleNamespace(
        no_grad=nullcontext, cuda=SimpleNamespace(stream=lambda stream: nullcontext())
    )
    made.problem, made.form = problem, TorchForm(lambda *_: (), thresholds=thresholds)
    made._first = {}
    return made


class Result:
    """Stands for a tensor."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def cpu(self) -> Result:
        return self

    def numpy(self) -> np.ndarray:
        return self._array


def test_few_elements_may_differ_at_thresholds() -> None:
    program = without_torch("unsharp_mask", thresholds=0.02)
    right = program.problem.expected["out"]
    for wrong, found in ((0, True), (1, True), (3, False)):
        out = right.copy()
        out.reshape(-1)[20 : 20 + wrong] += 0.5
        program._found = (Result(out),)
        with nullcontext() if found else pytest.raises(AssertionError, match="3 wrong elements"):
            program.check()
    out.reshape(-1)[:] = np.nan
    with pytest.raises(AssertionError, match="wrong elements"):
        program.check()


def test_a_variant_that_computes_something_else_is_left_out() -> None:
    program = without_torch("atax")
    stream = SimpleNamespace(synchronize=lambda: None)

    def variant(more: float) -> Variant | MissingVariant:
        def start() -> None:
            program._found = (Result(program.problem.expected["y"] + more),)

        return program._variant("x", lambda: start, stream, lambda start: lambda runs: 1.0, print)

    assert isinstance(variant(0.0), Variant)
    left_out = variant(0.5)
    assert isinstance(left_out, MissingVariant)
    assert "wrong elements" in left_out.reason


# ----------------------------------------------------------------------------------- figures
def timed(name: str, *seconds: float) -> VariantResult:
    group = "fusionq" if name in (AUTO, GRAPH) else "baseline"
    return VariantResult(name, group, timing=Timing(seconds, 1), launches=2)


def result_of(program: str, *variants: VariantResult, error: str | None = None) -> FormResult:
    form = PROGRAMS[program].forms[0].name
    return FormResult(
        program, form, "fit", "tiny", (8, 8), 1 << 10, submissions=4, variants=variants,
        error=error,
    )  # fmt: skip


MEASURED = (
    result_of(
        "atax",
        timed(AUTO, 2.0, 9.0, 1.0),
        timed(GRAPH, 3.0),
        timed(EAGER, 8.0),
        VariantResult(COMPILED, "baseline", unavailable="BackendError: no such operation"),
        timed(COMPILED_GRAPH, 1.0),
    ),
    result_of("mlp", timed(AUTO, 1.0), timed(GRAPH, 1.0), timed(EAGER, 8.0), timed(COMPILED, 4.0)),
    result_of("lloyd", error="a result is wrong: element 3"),
)


def test_figures_of_a_result() -> None:
    atax, mlp, wrong = MEASURED
    assert fastest(atax, TORCH) == COMPILED_GRAPH
    assert gain(atax, *TORCH) == 0.5
    assert gain(atax, GRAPH) == 1.5
    assert gain(atax, COMPILED) is None
    assert gain(mlp, EAGER, COMPILED) == 4.0
    assert fastest(wrong, TORCH) is None and gain(wrong, EAGER) is None


def test_figures_of_all() -> None:
    summary = AgainstSummary.of(MEASURED)
    all_of_torch = summary.gains["the fastest by PyTorch"]
    assert all_of_torch.results == 2
    assert all_of_torch.mean == pytest.approx(2.0**0.5)
    assert all_of_torch.worst.value == 0.5 and all_of_torch.worst.name.startswith("atax/")
    assert [extreme.value for extreme in all_of_torch.slower] == [0.5]
    assert summary.gains[COMPILED].results == 1
    assert summary.errors == ("lloyd/rows, tiny: a result is wrong: element 3",)


# ----------------------------------------------------------------------------------- command
def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bench", "corpus", "--against", "torch", *arguments])
    return result.exit_code, result.output


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(bench_against, "version", version)
    assert run("atax") == (1, "fusionq: PyTorch is not installed: pip install torch\n")
    monkeypatch.setattr(bench_against, "version", lambda name: "2.99")
    code, out = run("atax", "--device", "reference")
    assert code == 2 and "for NVIDIA GPUs" in out


@pytest.mark.parametrize("option", [("--single",), ("--busy", "1"), ("--plot", "a.svg")])
def test_options_of_other_measurements_are_refused(option: tuple[str, ...]) -> None:
    code, out = run("atax", *option)
    assert code == 2 and option[0] in out
    plain = CliRunner().invoke(app, ["bench", "corpus", "atax", "--jobs", "2"])
    assert plain.exit_code == 2 and "--against" in plain.output


def test_tables_and_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_against, "version", lambda name: "2.99")
    monkeypatch.setattr(bench_against, "is_gpu", lambda queue: True)
    monkeypatch.setattr(bench_against, "run_against", lambda *_: iter(MEASURED))
    path = tmp_path / "against.json"
    code, out = run("atax", "mlp", "adi", "--device", "reference", "--json", str(path))
    assert code == 1  # a result is wrong
    for text in ("2.00 s", "0.50", "no such operation", "PyTorch 2.99", "adi has no form", "1.41"):
        assert text in out, out
    found = json.loads(path.read_text())
    assert found["torch"] == "2.99"
    assert found["summary"]["tiny"]["gains"][GRAPH]["results"] == 2
    assert [r["program"] for r in found["results"]] == ["atax", "mlp", "lloyd"]


# ------------------------------------------------------------------------------------ runner
class Scripted:
    """Stands for a process: what it says until it waits for its line, and then."""

    before: dict[str, list[Event | str]]
    after: dict[str, list[Event | str]]
    log: list[str]

    def __init__(self, module: str, request: AgainstRequest) -> None:
        self.name = request.program
        self._script: Iterator[Event | str] = iter(self.before[self.name])

    def event(self, limit: float) -> Event | str:
        return next(self._script)

    def go(self) -> None:
        self.log.append(f"go {self.name}")
        self._script = iter(self.after[self.name])

    def end(self) -> None:
        self.log.append(f"end {self.name}")


def test_processes_are_timed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    atax, mlp, _ = MEASURED
    selection = Selection(("atax/rows", "mlp/layers", "adi"), working_sets=("tiny",))
    asked = runner.requests(selection, "cuda:0", 3)
    assert [r.program for r in asked] == ["atax", "mlp"]  # adi has no form of PyTorch
    ready = Event("rows", doing=READY)
    Scripted.log = []
    Scripted.before = {"atax": [Event("rows", doing="x"), ready], "mlp": [ready]}
    Scripted.after = {r.program: [Event(r.form, result=asdict(r))] for r in (atax, mlp)}
    monkeypatch.setattr(runner, "MeasuringProcess", Scripted)
    found = list(runner.run_against(asked, 5, 2, lambda doing: None))
    assert found == [atax, mlp]
    assert Scripted.log == ["go atax", "go mlp", "end atax", "end mlp"]
    Scripted.log = []
    assert list(runner.run_against(asked, 5, 1, lambda doing: None)) == [atax, mlp]
    assert Scripted.log == ["go atax", "end atax", "go mlp", "end mlp"]


def test_what_a_process_does_not_come_to_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    selection = Selection(("atax", "mlp/layers"), working_sets=("tiny",))
    asked = runner.requests(selection, "cuda:0", 3)
    first = replace(MEASURED[0], form="rows")
    Scripted.log = []
    ready = Event("rows", doing=READY)
    Scripted.before = {"atax": [ready], "mlp": [Event("layers", doing="y"), "no result within 5 s"]}
    ended = "the process ended with code -11: no message"
    timing = Event("groups", doing="timing")
    Scripted.after = {"atax": [Event("rows", result=asdict(first)), timing, ended]}
    monkeypatch.setattr(runner, "MeasuringProcess", Scripted)
    found = list(runner.run_against(asked, 5, 2, lambda doing: None))
    assert found[0] == first
    assert [(r.form, r.error) for r in found[1:]] == [
        ("groups", f"timing: {ended}"),
        ("layers", "y: no result within 5 s"),
    ]
    assert Scripted.log == ["go atax", "end atax", "end mlp"]
