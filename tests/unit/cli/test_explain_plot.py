"""``fusionq explain --plot``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fusionq.cli.explain import MOST_PICTURES
from tests.unit.cli.test_command_line import run

SCRIPT = """
import sys
import numpy as np
import fusionq as fq

@fq.kernel
def twice(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * 2

queue = fq.FusionQueue("reference")

def fuse(n):
    a, middle, out = (fq.Buffer(np.ones(n)) for _ in range(3))
    with fq.fusion(queue):
        queue.submit(twice, n, a, middle)
        queue.submit(twice, n, middle, out)

for n in map(int, sys.argv[1].split(",")):
    fuse(n)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def pictures(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".py")


def test_one_fusion_is_drawn_to_the_file(script: Path) -> None:
    pytest.importorskip("matplotlib")
    plan = script.with_name("plan.png")
    code, out, err = run("explain", str(script), "4", "--plot", str(plan))
    assert code == 0, err
    assert pictures(script.parent) == ["plan.png"]
    assert out.endswith(f"{plan}: fusion 1\n")


def test_fusions_that_differ_are_numbered_and_alike_ones_drawn_once(script: Path) -> None:
    pytest.importorskip("matplotlib")
    plan = script.with_name("plan.svg")
    code, out, err = run("explain", "--plot", str(plan), str(script), "4,5,4,4,6")
    assert code == 0, err
    assert pictures(script.parent) == ["plan-1.svg", "plan-2.svg", "plan-5.svg"]
    assert "plan-1.svg: fusion 1 and 2 more like it\n" in out
    assert "plan-5.svg: fusion 5\n" in out


def test_no_more_pictures_than_anybody_looks_at(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("fusionq.report.report.Report.plot", lambda self, path: path.touch())
    sizes = ",".join(map(str, range(1, MOST_PICTURES + 4)))
    code, out, _ = run("explain", "--plot", str(script.with_name("plan.png")), str(script), sizes)
    assert code == 0
    assert len(pictures(script.parent)) == MOST_PICTURES
    assert "3 more are not drawn" in out


def test_a_script_that_fuses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "script.py").write_text("raise SystemExit(3)")
    code, out, _ = run("explain", "--plot", str(tmp_path / "plan.png"), str(tmp_path / "script.py"))
    assert (code, out) == (3, "no picture: the script fused nothing\n")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("plan.txt", "--plot: cannot draw"), ("no/such/plan.png", "there is no folder")],
)
def test_a_bad_file_stops_before_the_script_runs(script: Path, name: str, complaint: str) -> None:
    code, out, err = run("explain", "--plot", str(script.parent / name), str(script), "4")
    assert code == 2
    assert complaint in err
    assert out == ""


def test_without_matplotlib(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run("explain", "--plot", str(script.with_name("plan.png")), str(script), "4")
    assert code == 1
    assert "pip install matplotlib" in err
    assert out == ""


def test_the_scripts_own_option_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nprint(sys.argv[1:])")
    script = str(tmp_path / "script.py")
    assert run("explain", script, "--", "--plot", "x")[:2] == (0, "['--plot', 'x']\n")
