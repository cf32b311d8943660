"""The worker process: what it does, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fusionq as fq
from fusionq.analysis.submission import Submission
from fusionq.backends.registry import backend_for
from fusionq.base.options import FusionOptions, Strategy
from fusionq.cache.build_requests import keep_request, kept_request
from fusionq.cache.disk import disk_store
from fusionq.execution import background
from fusionq.execution.background import Background, BuildAnswer, BuildJob
from fusionq.execution.background_support import unavailable
from fusionq.execution.background_worker import NICENESS
from tests.unit.execution.programs import captured

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="workers are started on POSIX only"),
    pytest.mark.usefixtures("disk_cache"),
]


@pytest.fixture
def own() -> Iterator[Background]:
    own = Background()
    yield own
    own.stop()
    assert own._process is None


def ended(own: Background, *jobs: BuildJob, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not all(job.answer is not None for job in jobs):
        assert time.monotonic() < end, "no answer"
        own.poll()
        time.sleep(0.02)


def one(own: Background, submissions: tuple[Submission, ...], queue: fq.FusionQueue) -> BuildJob:
    job = own.build(queue._state.launcher.backend, submissions, FusionOptions(), "fused")
    assert job is not None
    return job


@pytest.mark.parametrize(
    ("prefix", "never", "options"),
    [
        (None, False, []),
        (None, True, ["-B"]),
        ("kept", False, ["-X", "pycache_prefix=kept"]),
    ],
)
def test_byte_code_is_where_the_program_has_it(prefix, never, options, own, monkeypatch) -> None:
    """The worker takes no variables of Python's from the environment."""
    started: list[list[str]] = []

    def start(command: list[str], **rest: object) -> None:
        started.append(command)
        raise OSError("no process for this test")

    monkeypatch.setattr(sys, "pycache_prefix", prefix)
    monkeypatch.setattr(sys, "dont_write_bytecode", never)
    monkeypatch.setattr(subprocess, "Popen", start)
    assert not own._start()
    assert started[0][1:-2] == ["-I", *options]


@pytest.mark.slow
def test_what_the_program_may_wait_for_is_no_bound_of_the_worker(own, monkeypatch) -> None:
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "0")
    submissions, queue = captured()
    job = one(own, submissions, queue)
    ended(own, job)
    assert job.answer is not None and job.answer.reason is None


# ------------------------------------------------------------------------------ requests
def test_a_request_comes_back_as_it_was() -> None:
    submissions, queue = captured()
    backend = queue._state.launcher.backend
    options = FusionOptions(barriers="all", promote="internal")
    store = disk_store()
    assert store is not None
    key = keep_request(store, backend, submissions, options._replace(strategy="megakernel"))
    assert key is not None
    found = kept_request(store, key)
    assert found is not None and found.options == options
    for was, now in zip(submissions, found.submissions, strict=True):
        assert (was.ir, was.signature, was.range, was.arguments, was.text) == (
            now.ir, now.signature, now.range, now.arguments, now.text
        )  # fmt: skip
        assert [type(a.value) for a in was.arguments if hasattr(a, "value")] == [
            type(a.value) for a in now.arguments if hasattr(a, "value")
        ]
    assert kept_request(store, "0" * 64) is None


def test_a_damaged_request_is_none() -> None:
    store = disk_store()
    assert store is not None
    for contents in (b"", b"{}", b'{"data": [], "shared": []}', b"\xff"):
        store.put("1" * 64, "request", contents)
        assert kept_request(store, "1" * 64) is None


# ------------------------------------------------------------------------------- answers
def test_no_worker_without_programs_that_can_be_handed_over(
    monkeypatch: pytest.MonkeyPatch, own: Background
) -> None:
    submissions, queue = captured()
    backend = queue._state.launcher.backend
    assert "cannot be handed" in str(unavailable(backend_for("reference")))
    with monkeypatch.context() as patch:
        patch.setenv("FUSIONQ_CACHE", "off")
        assert unavailable(backend) == "the disk cache is off"
        assert own.build(backend, submissions, FusionOptions(), "fused") is None
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/usr/bin/blender")
        assert unavailable(backend) == "the interpreter is part of another program"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "frozen", True, raising=False)
        assert "no worker process" in str(unavailable(backend))
    assert own._process is None


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Workers that run a script of the test's instead; the scripts are used up."""
    scripts: list[str] = []

    def start(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        head = "import sys, os; sys.stdin.readline();"
        return original([command[0], "-c", head + scripts.pop(0)], **options)  # type: ignore[call-overload,no-any-return]

    original = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(background, "unavailable", lambda backend: None)
    yield scripts


def test_a_crash_is_the_end_of_one_request_only(own: Background, scripted: list[str]) -> None:
    submissions, queue = captured()
    scripted += [
        "sys.stdin.readline(); os.kill(os.getpid(), 11)",
        "sys.stdin.readline(); print('[null, 1.5, false]', flush=True); sys.stdin.read()",
    ]
    crashing, other = (one(own, submissions, queue) for _ in range(2))
    ended(own, crashing, other, seconds=60)
    assert crashing.answer is not None and "-11" in str(crashing.answer.reason)
    assert not crashing.answer.is_unserved, "it is a matter of the list"
    assert other.answer == BuildAnswer(None, 1.5)


def test_a_worker_starts_without_a_copy_of_the_program(
    own: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever dpctl has set; and it is as it was afterwards."""
    submissions, queue = captured()
    starts = []

    def start(command: list[str], **options: dict[str, str]) -> subprocess.Popen[bytes]:
        starts.append((vars(subprocess)["_USE_VFORK"], options["env"]["OPENBLAS_NUM_THREADS"]))
        raise OSError("no process today")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(background, "unavailable", lambda backend: None)
    for before in (False, True):
        monkeypatch.setattr(subprocess, "_USE_VFORK", before, raising=False)
        job = one(own, submissions, queue)
        ended(own, job, seconds=60)
        assert starts.pop() == (True, "1") and not starts
        assert vars(subprocess)["_USE_VFORK"] is before


def test_after_some_crashes_there_are_no_other_workers(
    own: Background, scripted: list[str]
) -> None:
    submissions, queue = captured()
    scripted += ["sys.stdin.readline(); os._exit(3)"] * 9
    jobs = []
    for _ in range(background.MOST_CRASHES + 1):
        job = one(own, submissions, queue)
        jobs.append(job)
        ended(own, job, seconds=60)
    backend = queue._state.launcher.backend
    assert own.build(backend, submissions, FusionOptions(), "fused") is None
    assert own._process is None


def test_a_worker_that_had_nothing_to_do_is_replaced(
    own: Background, scripted: list[str]
) -> None:
    submissions, queue = captured()
    scripted += ["os._exit(0)", "sys.stdin.readline(); print('[\"no\", null, true]', flush=True)"]
    job = one(own, submissions, queue)
    ended(own, job, seconds=60)
    assert job.answer == BuildAnswer("no", is_unserved=True) and own._crashes == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_worker_that_has_ended_is_no_zombie(own: Background, scripted: list[str]) -> None:
    submissions, queue = captured()
    scripted += ["sys.stdin.readline(); print('[null, null, false]', flush=True); sys.stdin.read()"]
    ended(own, one(own, submissions, queue), seconds=60)
    process = own._process
    assert process is not None
    os.kill(process.pid, signal.SIGTERM)
    end = time.monotonic() + 60
    while os.path.isdir(f"/proc/{process.pid}"):  # and nobody polls
        assert time.monotonic() < end, "the worker has ended, and nobody has waited for it"
        time.sleep(0.02)


def test_a_request_that_takes_too_long_is_given_away(
    own: Background, scripted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    submissions, queue = captured()
    scripted += ["import time; time.sleep(600)"]
    job = one(own, submissions, queue)
    process = own._process
    assert process is not None
    monkeypatch.setattr(background, "MOST_SECONDS", 0.0)
    time.sleep(0.01)
    own.poll()
    assert job.answer is not None and "longer than" in str(job.answer.reason)
    assert process.returncode == -signal.SIGKILL


# ----------------------------------------------------------------------- real ones, on the device
@pytest.mark.slow
def test_the_worker_builds_what_this_process_then_finds(own: Background) -> None:
    from fusionq.execution.compile import built_plan, finished_plan

    submissions, queue = captured()
    backend = queue._state.launcher.backend
    options = FusionOptions(strategy="sequence")
    built_plan(backend, submissions, FusionOptions(), {})  # auto's, which is no candidate
    assert finished_plan(backend, submissions, options, {}) is None
    strategies: tuple[Strategy, ...] = ("sequence", "fused", "megakernel")
    jobs = [
        own.build(backend, submissions, FusionOptions(), name, strategies[:k])
        for k, name in enumerate(strategies)
    ]
    sequence, fused, megakernel = (job for job in jobs if job is not None)
    process = own._process
    assert process is not None
    own_priority = os.getpriority(os.PRIO_PROCESS, 0)
    ended(own, sequence, fused, megakernel)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(own_priority + NICENESS, 19)
    assert sequence.answer == BuildAnswer(None)
    assert fused.answer == BuildAnswer("it is the same launches as sequence")
    assert megakernel.answer is not None and "not needed" in str(megakernel.answer.reason)
    found = finished_plan(backend, submissions, options, {})
    assert found is not None and found[1] == "disk"


@pytest.mark.slow
def test_the_worker_takes_each_request_from_its_own_cache(
    own: Background, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submissions, queue = captured()
    for name in ("one", "other"):
        monkeypatch.setenv("FUSIONQ_CACHE_DIR", str(tmp_path / name))
        job = one(own, submissions, queue)
        ended(own, job)
        assert job.answer is not None and job.answer.reason is None
        store = disk_store()
        assert store is not None and {"plan", "program"} <= set(store.usage())
        assert "request" not in store.usage(), "it is done with"
    assert own._crashes == 0


PARENT = """
import os, sys, time
from tests.unit.execution.programs import captured
from fusionq.execution.background import BACKGROUND
from fusionq.base.options import FusionOptions
submissions, queue = captured()
BACKGROUND.build(queue._state.launcher.backend, submissions, FusionOptions(), "fused")
print(BACKGROUND._process.pid, flush=True)
{end}
"""


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
@pytest.mark.parametrize(
    "end",
    [
        "",
        "os.kill(os.getpid(), 9)",
        "raise KeyboardInterrupt",
        # A fork holds no pipe to the worker.
        "os._exit(0) if os.fork() else time.sleep(60)",
    ],
)
def test_the_worker_ends_with_its_parent(end: str) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(end=end)], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert started.stdout is not None
    try:
        pid = int(started.stdout.readline())
        started.wait(60)
        deadline = time.monotonic() + 60
        while not _gone(pid):
            assert time.monotonic() < deadline, "the worker goes on without its parent"
            time.sleep(0.05)
        if end == "":
            assert started.stderr is not None and started.stderr.read() == ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)

