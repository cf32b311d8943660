"""Planning and building in a worker process, which fills the disk cache.

So neither the interpreter's lock nor a crash of a device's compiler reaches the user.  A process
has one worker at most: it starts when the first list needs it, has a low priority, works on
one request after the other, and ends with its parent.  Nothing here waits for it: its answers are
read when somebody asks for them.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fusionq.analysis.submission import Submission
from fusionq.backends.base import Backend
from fusionq.base.config import disk_cache_settings
from fusionq.base.options import Candidate, FusionOptions
from fusionq.cache.build_requests import keep_request
from fusionq.cache.disk import disk_store
from fusionq.execution.background_support import unavailable

MOST_SECONDS = 300.0
"""That a request may take."""

MOST_CRASHES = 3
"""Workers that may end by themselves; then there are no others."""

MOST_SENT = 8
"""Requests that the worker knows of; a pipe holds them all, so that writing never waits."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from fusionq.execution.background_worker import main; main()"
)


@contextlib.contextmanager
def _vfork() -> Iterator[None]:
    """Processes start as Python has them by default.  dpctl switches that off for debuggers, and a
    fork copies the page tables of all that the user has in memory: 19 ms of the user's thread for
    0.8 GB, and the device's runtime gets ready for it."""
    before = getattr(subprocess, "_USE_VFORK", None)
    if before is None:
        yield
        return
    setattr(subprocess, "_USE_VFORK", True)  # noqa: B010  # typeshed has no such name
    try:
        yield
    finally:
        setattr(subprocess, "_USE_VFORK", before)  # noqa: B010


class BuildAnswer(NamedTuple):
    """What becomes of a request: why it was not done, None where it was; how many times as long as
    what runs now the candidate takes by the cost model, where that is known; and whether the
    reason has nothing to do with the list, since no worker serves anybody."""

    reason: str | None
    slowdown: float | None = None
    is_unserved: bool = False


@dataclass(slots=True, eq=False)
class BuildJob:
    """A request."""

    line: str
    """What the worker is told."""
    answer: BuildAnswer | None = None


class Background:
    """The worker of this process, and what it has been asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: deque[BuildJob] = deque()
        self._sent: deque[BuildJob] = deque()
        self._first_since = 0.0
        """Since when the first of those that were sent is worked on."""
        self._unread = b""
        self._crashes = 0

    def build(
        self,
        backend: Backend,
        submissions: Sequence[Submission],
        options: FusionOptions,
        strategy: Candidate,
        beside: Sequence[Candidate] = (),
    ) -> BuildJob | None:
        """Have a list planned and built by ``strategy``, if that gives other launches than those
        that there are ``beside`` it, of which the first runs now; None where that cannot be asked
        for."""
        store = disk_store()
        if store is None or unavailable(backend) is not None or self._crashes > MOST_CRASHES:
            return None
        key = keep_request(store, backend, submissions, options)
        if key is None:
            return None
        settings = disk_cache_settings()
        told = {
            "key": key,
            "strategy": strategy,
            "beside": list(beside),
            "directory": str(settings.directory.absolute()),
            "max_bytes": settings.max_bytes,
        }
        job = BuildJob(json.dumps(told))
        with self._lock:
            self._waiting.append(job)
            self._go_on()
        return job

    def poll(self) -> None:
        """Read the answers that there are, and send what waits, unless another thread does."""
        if self._lock.acquire(blocking=False):
            try:
                self._go_on()
            finally:
                self._lock.release()

    def _go_on(self) -> None:
        process = self._process
        if process is not None:
            self._read(process)
        if self._sent and time.monotonic() - self._first_since > MOST_SECONDS:
            self._finish(BuildAnswer(f"its build takes longer than {MOST_SECONDS:.0f} s"))
            self._end()
        if self._waiting and len(self._sent) < MOST_SENT:
            self._send()

    def stop(self) -> None:
        """End the worker, and drop what it has been asked for."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        for job in (*self._sent, *self._waiting):
            job.answer = BuildAnswer("the worker process was ended", is_unserved=True)
        self._sent.clear()
        self._waiting.clear()
        self._end()

    # ------------------------------------------------------------------------- inside
    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while True:
            try:
                data = os.read(process.stdout.fileno(), 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                break
            *lines, self._unread = (self._unread + data).split(b"\n")
            for line in lines:
                self._finish(_answer(line))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)  # its output has ended, and so has it
        if process.returncode != 0:
            self._crashes += 1
            ended = f"the worker process that built it ended with {process.returncode}"
            self._finish(BuildAnswer(ended))
        self._end()
        if self._crashes > MOST_CRASHES:
            self._stop()

    def _finish(self, answer: BuildAnswer) -> None:
        """The first of those that were sent has an answer."""
        if self._sent:
            self._sent.popleft().answer = answer
        self._first_since = time.monotonic()

    def _send(self) -> None:
        """Send what waits, to a new worker if there is none."""
        if self._process is None and not self._start():
            self._stop()
            return
        assert self._process is not None and self._process.stdin is not None
        while self._waiting and len(self._sent) < MOST_SENT:
            if not self._sent:
                self._first_since = time.monotonic()
            job = self._waiting.popleft()
            self._sent.append(job)
            with contextlib.suppress(OSError):  # it has ended; the next poll says how
                os.write(self._process.stdin.fileno(), f"{job.line}\n".encode())

    def _start(self) -> bool:
        try:
            with _vfork():
                process = subprocess.Popen(
                    [sys.executable, "-I", *_bytecode_options(), "-c", _START],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the parent
                    # The others would wait busily for 85 ms when NumPy is imported.
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                )
        except OSError:
            return False
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        # It ends when it has nothing to do, and nobody may ask by then: no zombie stays.
        threading.Thread(target=process.wait, daemon=True).start()
        self._unread = b""
        os.set_blocking(process.stdout.fileno(), False)
        with contextlib.suppress(OSError):
            os.write(process.stdin.fileno(), f"{json.dumps(_path())}\n".encode())
        return True

    def _end(self) -> None:
        """Let go of the worker; what it was sent and has not answered waits again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()

    def forget(self) -> None:
        """In a forked process: the worker is the parent's, and its threads are not there."""
        self._lock = threading.Lock()
        process = self._process
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            process.returncode = 0  # nobody here waits for it
        self._process = None
        self._sent.clear()
        self._waiting.clear()


def _bytecode_options() -> list[str]:
    """Where this process keeps the byte code of modules, if it does: a worker, which takes nothing
    from Python's variables of the environment, would compile all modules anew, or write where this
    process may not."""
    options = ["-B"] if sys.dont_write_bytecode else []
    if sys.pycache_prefix is not None:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return options


def _path() -> list[str]:
    """Where this process finds its modules."""
    own = str(Path(__file__).parents[2])
    found = [place for place in sys.path if place]
    return found if own in found else [*found, own]


def _answer(line: bytes) -> BuildAnswer:
    """What the worker wrote, checked."""
    try:
        reason, slowdown, is_unserved = json.loads(line)
    except (TypeError, ValueError):
        return BuildAnswer("the worker process gave no answer")
    return BuildAnswer(
        None if reason is None else str(reason),
        slowdown if isinstance(slowdown, float) else None,
        is_unserved is True,
    )


BACKGROUND = Background()
"""Of the process."""

atexit.register(BACKGROUND.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BACKGROUND.forget)
