"""The ``fusionq`` command: what it prints, what it refuses, its exit codes."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import fusionq as fq
from fusionq.base.device_info import DeviceInfo
from fusionq.benchmarks import planning
from fusionq.benchmarks.planning_lists import FAMILIES
from fusionq.cli import devices
from fusionq.cli.main import app, parse_size
from fusionq.runtime.ended_lists import report_listeners

SCRIPT = """
import sys
import numpy as np
import fusionq as fq

@fq.kernel
def double(item, x, out):
    i = item.get_id(0)
    out[i] = x[i] + x[i]

queue = fq.FusionQueue("reference")
x, middle, out = (fq.Buffer(np.ones(4, np.float32)) for _ in range(3))
for _ in range(2):
    with fq.fusion(queue):
        queue.submit(double, 4, x, middle)
        queue.submit(double, 4, middle, out)
print("result", out.numpy().tolist(), sys.argv[1:], __name__)
"""


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1000", 1000), ("1_000", 1000), ("1k", 1000), ("1.5k", 1500), ("100M", 100_000_000),
        ("2G", 2_000_000_000),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "x", "1.5", "1.0001k", "0", "-3", "1m", "1 k 2"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_size(text)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "Usage"),
        (("fly",), "fly"),
        (("bench", "nonsense"), "there is no case nonsense; see fusionq bench --list"),
        (("bench", "seeds", "--size", "many"), "many"),
        (("bench", "seeds", "--rounds", "0"), "rounds"),
        (("bench", "seeds", "--half", "fit"), "are for: fusionq bench"),
        (("bench", "seeds", "--device", "no:such"), "no:such"),
        (("bench", "seeds", "--json", "/no/such/folder/file.json"), "there is no folder"),
        (("explain",), "SCRIPT.py"),
        (("explain", "/no/such/script.py"), "there is no file /no/such/script.py"),
        (("devices", "extra"), "extra"),
    ],
)
def test_bad_use_exits_with_2(arguments: tuple[str, ...], complaint: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert complaint in re.sub(r"\x1b\[[0-9;]*m", "", out + err)


@pytest.mark.slow
def test_python_dash_m() -> None:
    command = [sys.executable, "-m", "fusionq", "bench", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "seeds" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_module_is_the_command(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["fusionq", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("fusionq", run_name="__main__")
    assert not ended.value.code
    assert fq.__version__ in capsys.readouterr().out


def test_list_names_every_case() -> None:
    code, out, _ = run("bench", "--list")
    assert code == 0
    for name in ("seeds", "axpy_chain", "host_cost", "first_fusion", "warm_start", "peak_memory"):
        assert name in out
    assert "planning" in out


def test_planning_shows_a_table_for_each_family(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {**dict.fromkeys(planning.PARTS, 0.5), "strategy": "sequence"}
    monkeypatch.setattr(planning, "run_child", lambda *_: found)
    results = tmp_path / "planning.json"
    code, out, _ = run(
        "bench", "planning", "--size", "12", "--device", "reference", "--json", str(results)
    )
    assert code == 0
    described = [f"{family}, 12 submissions" for family in FAMILIES]
    assert all(what in out for what in described)
    assert [r["description"] for r in json.loads(results.read_text())["results"]] == described


def test_devices() -> None:
    code, out, _ = run("devices")
    assert code == 0
    assert "reference" in out
    assert "fp64" in out


def test_devices_without_sycl_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    only = fq.FusionQueue("reference").device

    def missing(target: object) -> None:
        raise fq.DeviceError("install it with pip install 'fusionq[sycl]'")

    monkeypatch.setattr(devices, "list_devices", lambda: [only])
    monkeypatch.setattr(devices, "backend_for", missing)
    code, out, _ = run("devices")
    assert code == 0
    assert "No SYCL device: install it with pip install 'fusionq[sycl]'" in out


def test_devices_says_what_is_better_than_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "advice", lambda: ["NVRTC 13.0 [old] is worse than 13.4"])
    code, out, _ = run("devices")
    assert code == 0
    assert "NVRTC 13.0 [old] is worse than 13.4" in out


def test_explain_prints_the_report_of_each_fusion(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    code, out, _ = run("explain", str(script), "--size", "3")
    assert code == 0
    assert out.count("fusionq: fused, 2 submissions → 1 kernel") == 2
    assert out.count("made new") == out.count("from the cache in memory") == 1
    assert f"{script}:15" in out
    assert "result [4.0, 4.0, 4.0, 4.0] ['--size', '3'] __main__" in out
    assert report_listeners == []


@pytest.mark.parametrize(
    ("ending", "code"),
    [("raise SystemExit(5)", 5), ("raise SystemExit()", 0), ("raise SystemExit('no')", 1)],
)
def test_explain_keeps_the_exit_code(tmp_path: Path, ending: str, code: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(ending)
    assert run("explain", str(script))[0] == code


def test_explain_shows_the_scripts_own_traceback(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def f():\n    raise ValueError('wrong turn')\n\nf()\n")
    arguments, path = list(sys.argv), list(sys.path)
    code, _, err = run("explain", str(script))
    assert code == 1
    assert "ValueError: wrong turn" in err
    assert f'File "{script}", line 4' in err
    assert "runpy" not in err
    assert "cli" not in err
    assert (sys.argv, sys.path) == (arguments, path)
    assert report_listeners == []


def test_profile_prints_the_summary_and_writes_files(tmp_path: Path) -> None:
    """With the exit code of the script."""
    script, told = tmp_path / "script.py", tmp_path / "told.json"
    script.write_text(SCRIPT + "raise SystemExit(3)\n")
    code, out, err = run("profile", str(script), "--json", str(told))
    assert code == 3
    assert "result [4.0, 4.0, 4.0, 4.0]" in out and "double" in out
    assert {"clock", "findings"} <= set(json.loads(told.read_text()))
    assert err == ""


@pytest.mark.parametrize("command", ["explain", "profile"])
def test_a_file_that_is_no_script_is_named(command: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    code, out, err = run(command, str(picture))
    assert code == 2
    assert "picture.png is no Python script: " in (out + err).replace("\n", "")


def test_explain_finds_modules_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "beside_the_script.py").write_text("VALUE = 41\n")
    script = tmp_path / "script.py"
    script.write_text("import beside_the_script\nprint(beside_the_script.VALUE + 1)\n")
    code, out, _ = run("explain", str(script))
    assert (code, out) == (0, "42\n")


def test_device_info_is_what_the_table_shows() -> None:
    info = fq.FusionQueue("reference").device
    assert isinstance(info, DeviceInfo)
    assert info.filter_string in run("devices")[1]


def test_the_version():
    assert run("--version") == (0, f"fusionq {fq.__version__}\n", "")


def test_a_script_that_fuses_nothing_is_told_so(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text("print('done')\n")
    code, printed, complaint = run("explain", str(script))
    assert (code, printed) == (0, "done\n")
    assert "nothing to explain" in complaint and "with fusion(queue)" in complaint


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("--json", "none/a.json", "there is no folder"),
        ("--json", ".", "is a folder"),
        ("--trace", "none/a.pftrace", "there is no folder"),
        ("--plot", "none/a.png", "there is no folder"),
        ("--plot", "a.doc", "is one of .png"),
    ],
)
def test_files_that_no_profile_can_write_are_refused_before_the_script_runs(
    tmp_path, option, name, why
):
    script = tmp_path / "plain.py"
    script.write_text("print('done')\n")
    code, printed, complaint = run("profile", str(script), option, str(tmp_path / name))
    assert (code, printed) == (2, "")
    assert why in complaint


@pytest.mark.parametrize("case", ["axpy_chain", "corpus"])
@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("--json", "none/a.json", "there is no folder"),
        ("--plot", "none/a.png", "there is no folder"),
        ("--plot", "a.doc", "is one of .png"),
    ],
)
def test_files_that_no_benchmark_can_write_are_refused_before_anything_is_measured(
    tmp_path, case, option, name, why
):
    code, printed, complaint = run("bench", case, option, str(tmp_path / name))
    assert (code, printed) == (2, "")
    assert why in complaint


def test_a_device_that_there_is_not_has_no_line_of_a_program():
    code, _, complaint = run("bench", "axpy_chain", "--device", "nope")
    assert code == 2
    assert complaint.startswith("fusionq: no SYCL device matches 'nope'")
