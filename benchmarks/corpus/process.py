"""A process that measures a part of the corpus, and says what it is doing."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict
from typing import IO, TYPE_CHECKING

from fusionq.benchmarks.corpus.measure import Event

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class MeasuringProcess:
    """``python -m module REQUEST``, whose lines of standard output are Events."""

    def __init__(self, module: str, request: DataclassInstance) -> None:
        command = [sys.executable, "-m", module]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by end()
        # close_fds=False spawns without a fork, which thread pools in this process complain of.
        self._process = subprocess.Popen(
            [*command, json.dumps(asdict(request))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            close_fds=False,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        output = self._process.stdout
        assert output is not None
        self._reader = threading.Thread(target=self._read, args=(output,), daemon=True)
        self._reader.start()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self._lines.put(line)
        self._lines.put("")

    def event(self, limit: float) -> Event | str:
        """The next event; or how the process ended, or that there was none for ``limit``
        seconds."""
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            return f"no result within {limit:g} s"
        if line:
            return Event(**json.loads(line))
        code = self._process.wait()
        self._errors.seek(0)
        written = self._errors.read().strip().splitlines()
        return f"the process ended with code {code}: {written[-1] if written else 'no message'}"

    def go(self) -> None:
        """A line of standard input, for a process that waits for it."""
        given = self._process.stdin
        assert given is not None
        with suppress(BrokenPipeError):  # it has ended: the next event says how
            given.write("go\n")
            given.flush()

    def end(self) -> None:
        """End the process and wait for it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._errors.close()
