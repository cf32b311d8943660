"""``fusionq bench corpus``: options, tables and files, with results that nothing has measured.
tests/unit/benchmarks/test_corpus.py measures."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fusionq.benchmarks import busy
from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.corpus.plot import save_plot
from fusionq.benchmarks.corpus.results import FormResult
from fusionq.benchmarks.results import VariantResult
from fusionq.benchmarks.timing import Timing
from fusionq.cli import bench_corpus
from fusionq.cli.main import app


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bench", "corpus", *arguments])
    return result.exit_code, result.output


def result_of(form: str, unfused: float, auto: float | None, error: str | None = None):
    times = {"unfused": unfused, "fused": unfused / 2, "auto": auto}
    variants = tuple(
        VariantResult(name, "fusionq", timing=Timing((seconds,), 1), launches=1)
        for name, seconds in times.items()
        if seconds is not None
    )
    return FormResult(
        "atax", form, "fit", "tiny", (8, 8), 1 << 10, submissions=2, variants=variants, error=error
    )


@pytest.fixture
def measured(monkeypatch):
    """Stands for measuring: the results that the test puts in."""
    results: list[FormResult] = []
    monkeypatch.setattr(bench_corpus, "run_corpus", lambda *_, **options: iter(results))
    return results


def test_tables_and_files(measured, tmp_path: Path) -> None:
    measured += [result_of("rows", 4.0, 1.0), result_of("groups", 3.0, 4.0)]
    data, picture = tmp_path / "corpus.json", tmp_path / "corpus.svg"
    options = ("--working-set", "tiny", "--device", "reference")
    code, out = run("atax", *options, "--json", str(data), "--plot", str(picture))
    assert code == 0, out
    for text in ("atax, tiny", "rows", "groups", "geometric mean", "4.00×", "0.75×"):
        assert text in out, out
    found = json.loads(data.read_text())
    assert [r["form"] for r in found["results"]] == ["rows", "groups"]
    assert "<svg" in picture.read_text()


def test_others_compute_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as asked for, and no longer."""
    running: list[int] = []
    started: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def popen(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(begin(*args, **options))
        return started[-1]

    def measured(*_: object, **options: object) -> Iterator[FormResult]:
        running.append(sum(process.poll() is None for process in started))
        yield result_of("rows", 4.0, 1.0)

    monkeypatch.setattr(busy.subprocess, "Popen", popen)
    monkeypatch.setattr(bench_corpus, "run_corpus", measured)
    code, out = run("atax/rows", "--working-set", "tiny", "--device", "reference", "--busy", "2")
    assert code == 0, out
    assert running == [2] and all(process.poll() is not None for process in started)


def test_a_wrong_result_fails(measured) -> None:
    measured += [result_of("rows", 4.0, None, "a result is wrong: element 3")]
    code, out = run("atax/rows", "--working-set", "tiny", "--device", "reference")
    assert code == 1
    assert "a result is wrong: element 3" in out


def test_nothing_to_plot_is_said(measured, tmp_path: Path) -> None:
    measured += [result_of("rows", 4.0, None)]
    with pytest.raises(Unavailable, match="auto has no result"):
        save_plot(measured, tmp_path / "none.png")
    options = ("--working-set", "tiny", "--device", "reference", "--plot", str(tmp_path / "a.png"))
    code, out = run("atax/rows", *options)
    assert code == 1
    assert "no plot: there is nothing to plot" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nonsense",), "no program of the corpus is called nonsense"),
        (("adi", "--half", "fit"), "none of these programs is in the half 'fit'"),
        (("adi", "--half", "both"), "both"),
        (("adi", "--size", "1k"), "not for the corpus"),
        (("adi", "--json", "/no/such/folder/file.json"), "there is no folder"),
        (("adi", "--device", "no:such"), "no:such"),
    ],
)
def test_bad_use(arguments: tuple[str, ...], complaint: str) -> None:
    code, out = run(*arguments)
    assert code == 2
    assert complaint in re.sub(r"\x1b\[[0-9;]*m", "", out)


def test_the_list() -> None:
    code, out = run("--list", "--half", "report")
    assert code == 0
    assert "horizontal_diffusion" in out and "jacobi_1d" not in out
    result = CliRunner().invoke(app, ["bench", "--list"])
    assert "corpus" in result.output
