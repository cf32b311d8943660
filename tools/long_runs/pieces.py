"""A long run in pieces: each in a process of its own, resumed where it was left, bounded in time.

The process of piece N writes the case that it is about to run to ``COMMAND-N.case``: what a process
that dies, or never ends, has left there is the finding.  The result is ``COMMAND-N.json``: counts
by name, and findings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock

POLL_SECONDS = 0.5
MOST_FINDINGS = 20
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Finding:
    """What went wrong, and the case's own text, to become a test of its own."""

    error: str
    case: str


@dataclass
class PieceResult:
    """What one piece counted and found; ``cases`` is how much of the whole run it was."""

    piece: int
    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def write(self, directory: Path, command: str) -> None:
        """Keep it, whole or not at all."""
        path = directory / f"{command}-{self.piece}.json"
        findings = [asdict(finding) for finding in self.findings]
        text = json.dumps({**vars(self), "counts": dict(self.counts), "findings": findings})
        path.with_suffix(".part").write_text(text, encoding="utf-8")
        path.with_suffix(".part").replace(path)


def results(directory: Path, command: str) -> Iterator[PieceResult]:
    """What is there of a run, in no order."""
    for path in directory.glob(f"{command}-*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        findings = [Finding(**finding) for finding in data["findings"]]
        yield PieceResult(data["piece"], data["cases"], Counter(data["counts"]), findings)


@dataclass(frozen=True)
class Run:
    """A run's settings; ``arguments`` go to each piece's process as they are.

    It ends after ``cases`` cases or ``seconds``, whichever is first; a case that takes more than
    ``case_seconds`` is a finding.  ``jobs``: how many pieces at once.
    """

    command: str
    directory: Path
    cases: int
    seconds: float
    case_seconds: float
    jobs: int
    arguments: Sequence[str]

    def go(self) -> int:
        """Run the pieces that are missing; 1 if anything was found, now or before."""
        self.directory.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        done = {result.piece: result for result in results(self.directory, self.command)}
        missing = (piece for piece in count() if piece not in done)
        lock = Lock()

        def work() -> None:
            while True:
                with lock:
                    if self._is_done(done.values()) or time.monotonic() - start > self.seconds:
                        return
                    piece = next(missing)
                result = self._piece(piece)
                with lock:
                    done[piece] = result
                    self._tell(result, done.values())

        with ThreadPoolExecutor(self.jobs) as pool:
            for worker in [pool.submit(work) for _ in range(self.jobs)]:
                worker.result()
        total = _total(done.values())
        print(json.dumps({**total, "seconds": round(time.monotonic() - start)}))
        return 1 if any(result.findings for result in done.values()) else 0

    def _is_done(self, done: Collection[PieceResult]) -> bool:
        """Whether there are enough cases, or more findings than anybody wants to read."""
        findings = sum(len(result.findings) for result in done)
        return sum(result.cases for result in done) >= self.cases or findings > MOST_FINDINGS

    def _piece(self, piece: int) -> PieceResult:
        case = self.directory / f"{self.command}-{piece}.case"
        case.write_text("(nothing was begun)", encoding="utf-8")
        said = self.directory / case.with_suffix(".stderr")
        with said.open("w", encoding="utf-8") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "tools.long_runs", self.command, "--piece", str(piece),
                 "--directory", str(self.directory), *self.arguments],
                cwd=ROOT, stderr=stderr,
            )  # fmt: skip
        limit = round(self.case_seconds / POLL_SECONDS)
        polls, seen = 0, case.stat().st_mtime_ns
        try:
            while process.poll() is None and polls < limit:
                time.sleep(POLL_SECONDS)
                # Polls, not seconds: a run may be stopped and continued.
                now = case.stat().st_mtime_ns
                polls = polls + 1 if now == seen else 0
                seen = now
        finally:
            stuck = process.poll() is None
            if stuck:
                process.kill()
            code = process.wait()
        path = self.directory / f"{self.command}-{piece}.json"
        if not path.exists():
            error = f"no end within {self.case_seconds:g} s" if stuck else f"exit status {code}"
            last = said.read_text(encoding="utf-8", errors="replace")[-4000:]
            found = Finding(f"{error}\n{last}", case.read_text(encoding="utf-8"))
            PieceResult(piece, 1, Counter(), [found]).write(self.directory, self.command)
        case.unlink()
        said.unlink()
        return next(r for r in results(self.directory, self.command) if r.piece == piece)

    def _tell(self, result: PieceResult, done: Collection[PieceResult]) -> None:
        for finding in result.findings:
            print(f"--- piece {result.piece}\n{finding.case}\n{finding.error}")
        cases = sum(r.cases for r in done)
        findings = sum(len(r.findings) for r in done)
        print(
            f"{time.strftime('%H:%M:%S')} {self.command} piece {result.piece}: {cases} of "
            f"{self.cases} cases, {findings} findings",
            flush=True,
        )


def _total(done: Collection[PieceResult]) -> dict[str, object]:
    counts: Counter[str] = Counter()
    for result in done:
        counts.update(result.counts)
    return {
        "cases": sum(r.cases for r in done),
        "findings": sum(len(r.findings) for r in done),
        "counts": dict(sorted(counts.items())),
    }
