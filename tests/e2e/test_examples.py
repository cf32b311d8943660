"""The programs in examples/ run as they stand, with a SYCL device and without one: at the sizes
that they take without one, and a round each, but in the profile ``nightly``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device_programs import IN_A_CHILD
from tests.in_turn import is_whole
from tests.unit.runtime.conftest import has_sycl

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p for p in (ROOT / "examples").glob("*.py") if p.stem != "example_tools")
NOWHERE = {"OCL_ICD_FILENAMES": "/nowhere/libnone.so"}
"""With this there is no SYCL device."""

ALL_IN_ONE_PROCESS = """
import io, json, runpy, sys
from contextlib import redirect_stdout
from pathlib import Path

printed = {}
sys.path.insert(0, str(Path(sys.argv[1]).parent))
FEW_ROUNDSfor path in sys.argv[1:]:
    with redirect_stdout(io.StringIO()) as text:
        runpy.run_path(path, run_name="__main__")
    printed[path] = text.getvalue()
print(json.dumps(printed))
"""

SMALL_AND_ONE_ROUND = """
import example_tools
open_queue = example_tools.open_queue
example_tools.open_queue = lambda size, small: (open_queue(size, small)[0], small)
example_tools.MOST_SECONDS = 0
"""


def output(folder: Path, *arguments: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=dict(os.environ) | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    assert not list(folder.iterdir()), "an example leaves no files behind"
    return run.stdout


def check(text: str) -> None:
    """What each example says: that the result is right, and a time."""
    assert "equal to" in text
    assert "False" not in "\n".join(line for line in text.splitlines() if "equal to" in line)
    assert " ms" in text.splitlines()[-1]


def test_there_are_six() -> None:
    assert len(EXAMPLES) == 6


def printed(folder: Path, *start: str, **environment: str) -> list[str]:
    """What each example prints, all of them in one process, which begins with the program ``start``
    and its arguments."""
    program, arguments = "".join((*start[:1], ALL_IN_ONE_PROCESS)), start[1:]
    program = program.replace("FEW_ROUNDS", "" if is_whole() else SMALL_AND_ONE_ROUND)
    text = output(folder, "-c", program, *arguments, *map(str, EXAMPLES), **environment)
    return [json.loads(text)[str(example)] for example in EXAMPLES]


def test_examples_on_the_device(tmp_path: Path, program_folder: Path) -> None:
    if not has_sycl():
        pytest.skip("no SYCL device")
    start = f"{IN_A_CHILD}\nDevicePrograms.optimised = {is_whole()}\n"
    for text in printed(tmp_path, start, str(program_folder)):
        assert text.startswith("device: ")
        check(text)


def test_examples_without_a_device_say_so(tmp_path: Path) -> None:
    for text in printed(tmp_path, **NOWHERE):
        assert text.startswith("No SYCL device was found: ")
        assert "The reference backend runs the example" in text
        check(text)


def test_the_documentation_lists_them() -> None:
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for example in EXAMPLES:
        assert f"(../examples/{example.name})" in text
