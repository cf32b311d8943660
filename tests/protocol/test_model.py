"""Spin verifies the megakernel's queue protocol, and finds the error in every broken one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.in_turn import is_whole

MODEL = Path(__file__).parent / "queue.pml"
HAZARD_WAITS = ((1, 0), (2, 0), (3, 1), (4, 2), (4, 3), (5, 4), (5, 5))
HAZARD_COUNTERS = 6
"""Of hazards.pml: which instruction waits on which counter."""
WRONG_CELL = "assertion violated (cell[at]==version)"
DEADLOCK = "invalid end state"
WHOLE = is_whole()
"""Whether every search is of three workers and two launches.  Else those of the largest state
spaces are of fewer: three workers stall over two launches by the plan of a reduction, the plan
of hazards runs once with three and twice with two, and fair runs have two workers."""
LONG_SEARCHES = (
    "STENCIL BOUNDED",
    "STENCIL FIRST_EPOCH=255",
    "HAZARDS",
    "REDUCTION BOUNDED",
    "REDUCTION RENEWED",
    "REDUCTION POLLING WORKERS=3 LAUNCHES=1",
)
"""Worth the compiler's optimisation, which takes half a second: half a million states or more."""


def unless_whole(define: str) -> str:
    """The macro of a smaller search."""
    return "" if WHOLE else f" {define}"


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    missing = [name for name in ("spin", "cc") if shutil.which(name) is None]
    if missing:
        pytest.skip(
            f"needs {' and '.join(missing)}: Spin checks the protocol's model and a C compiler "
            "builds its verifier (on Debian: apt-get install spin gcc)"
        )


def run(directory: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env=dict(os.environ) | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{output}"
    return output


def verdict(directory: Path, *defines: str) -> str:
    """The error that Spin finds in the model with those macros, or an empty string after a
    complete search without one.  With POLLING, Spin also looks for a fair run in which a launch
    never ends."""
    build_verifier(directory, *defines)
    return searched(directory, *(["-a", "-f"] if "POLLING" in defines else []))


def build_verifier(directory: Path, *defines: str) -> None:
    """The program that searches the states of the model with those macros."""
    macros = [f"-D{define}" for define in defines]
    run(directory, "spin", "-Pcc -E -x c", "-a", *macros, str(MODEL))
    flags = [] if "POLLING" in defines else ["-DSAFETY"]
    optimisation = "-O1" if " ".join(defines) in LONG_SEARCHES else "-O0"
    run(directory, "cc", optimisation, *flags, "-o", "pan", "pan.c")


def searched(directory: Path, *options: str, **environment: str) -> str:
    """As ``verdict``, by the verifier that has been built there."""
    output = run(directory, "./pan", "-b", "-m100000", "-w22", *options, **environment)
    errors = re.search(r"errors: (\d+)", output)
    assert errors, output
    if errors[1] == "0":
        assert "Search not completed" not in output, output
        return ""
    found = re.search(r"pan:\d+: (.+) \(at depth", output)
    assert found, output
    return " ".join(found[1].split())


@pytest.mark.parametrize(
    "variant",
    [
        "STENCIL BOUNDED" + unless_whole("WORKERS=2"),
        "STENCIL FIRST_EPOCH=255",
        "REDUCTION BOUNDED",
        "REDUCTION RENEWED" + unless_whole("WORKERS=2"),
        "REDUCTION COUNTED FIRST_EPOCH=255",
    ],
)
def test_every_read_finds_its_producer_and_nothing_deadlocks(variant: str, tmp_path: Path) -> None:
    assert verdict(tmp_path, *variant.split()) == ""


def test_three_launches_on_the_same_counters(tmp_path: Path) -> None:
    assert verdict(tmp_path, "REDUCTION", "LAUNCHES=3", "FIRST_EPOCH=254") == ""


@pytest.mark.parametrize(
    ("plan", "workers", "launches"),
    [
        ("STENCIL", 1, 2),
        ("STENCIL", 2, 2),
        ("HAZARDS", 2, 2),
        ("REDUCTION", 2, 2),
        *([("REDUCTION", 3, 1)] if WHOLE else []),
    ],
)
def test_every_launch_ends(plan: str, workers: int, launches: int, tmp_path: Path) -> None:
    assert verdict(tmp_path, plan, "POLLING", f"WORKERS={workers}", f"LAUNCHES={launches}") == ""


@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        # Completions and their memory order.
        ("STENCIL COUNT_CLAIMS", WRONG_CELL),
        *([("REDUCTION COUNT_CLAIMS", WRONG_CELL)] if WHOLE else []),
        ("STENCIL RELAXED_PUBLISH", WRONG_CELL),
        ("STENCIL RELAXED_WAIT", WRONG_CELL),
        # Epochs.
        ("STENCIL COUNTERS_WITHOUT_EPOCH", WRONG_CELL),
        ("STENCIL HEAD_WITHOUT_EPOCH", "assertion violated (ran==((1<<6)-1))"),
        ("REDUCTION MODE_WITHOUT_EPOCH", DEADLOCK),
        ("REDUCTION COUNTED FIRST_TO_LEAVE_COUNTS", "assertion violated ((launches=="),
        ("STENCIL PLAIN_COMPARE FIRST_EPOCH=255", WRONG_CELL),
        ("REDUCTION NO_LAST_TICKET", "assertion violated (head=="),
        ("REDUCTION STATIC_LEAVES_HEAD", "assertion violated (head=="),
        # Order and residence.
        ("STENCIL CONSUMER_FIRST", DEADLOCK),
        *([("STENCIL CONSUMER_FIRST POLLING WORKERS=2", "acceptance cycle")] if WHOLE else []),
        ("STENCIL STATIC_WITHOUT_RESIDENCE", DEADLOCK),
        ("STENCIL STATIC_WITHOUT_RESIDENCE POLLING WORKERS=2", "acceptance cycle"),
        ("STENCIL MODE_WITHOUT_SWAP", "assertion violated !(((ran>>i)&1))"),
        # Stalls.
        ("REDUCTION BOUNDED STALL_NOT_LOOKED_AT", "assertion violated !(stalled_before)"),
        ("STENCIL BOUNDED EVERY_STALL_RECORDED", "assertion violated ((waits[record_instruction]"),
        ("REDUCTION RENEWED RENEWED_IN_FLIGHT", "assertion violated !(((ran>>i)&1))"),
    ],
)
def test_a_broken_protocol_is_caught(mutation: str, error: str, tmp_path: Path) -> None:
    assert verdict(tmp_path, *mutation.split()).startswith(error)


@pytest.fixture(scope="module")
def without_a_wait(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the verifier is of a launch without the wait that the environment names."""
    directory = tmp_path_factory.mktemp("hazards")
    build_verifier(directory, "HAZARDS", "DROPPED_WAIT", "LAUNCHES=1")
    return directory


@pytest.mark.parametrize(("instruction", "counter"), HAZARD_WAITS)
def test_a_missing_wait_is_caught(instruction: int, counter: int, without_a_wait: Path) -> None:
    dropped = str(instruction * HAZARD_COUNTERS + counter)
    assert searched(without_a_wait, DROPPED_WAIT=dropped) == WRONG_CELL


def test_with_all_waits_nothing_is_caught(tmp_path: Path) -> None:
    assert verdict(tmp_path, "HAZARDS", *unless_whole("LAUNCHES=1").split()) == ""
