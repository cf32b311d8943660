"""Runs the comparison with PyTorch: processes that prepare side by side and are timed alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from fusionq.benchmarks.corpus.against.child import READY, AgainstRequest
from fusionq.benchmarks.corpus.process import MeasuringProcess
from fusionq.benchmarks.corpus.program import WorkingSet
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import FormResult
from fusionq.benchmarks.corpus.runner import OnDoing, Selection
from fusionq.benchmarks.corpus.torch_forms import TORCH_FORMS

CHILD = "fusionq.benchmarks.corpus.against.child"


def requests(selection: Selection, device: str, rounds: int) -> tuple[AgainstRequest, ...]:
    """One for each selected program that has a form of PyTorch."""
    return tuple(
        AgainstRequest(name, forms, selection.working_sets, device, rounds)
        for name, program in PROGRAMS.items()
        if name in TORCH_FORMS and (forms := selection.forms(program))
    )


def run_against(
    requests: Sequence[AgainstRequest], limit: float, jobs: int, on_doing: OnDoing
) -> Iterator[FormResult]:
    """The results, as they are measured.

    ``jobs`` programs are planned and compiled at the same time, and measured when all of them are
    ready, one by one.  ``limit``: seconds without a sign of life, after which a process is ended.
    """
    for begin in range(0, len(requests), jobs):
        part = requests[begin : begin + jobs]
        running = [_Running(request, limit, on_doing) for request in part]
        try:
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(_Running.prepare, running))
            for process in running:
                yield from process.results()
        finally:
            for process in running:
                process.end()


class _Running:
    """A process that serves one request."""

    def __init__(self, request: AgainstRequest, limit: float, on_doing: OnDoing) -> None:
        self.request, self._limit, self._on_doing = request, limit, on_doing
        self._process: MeasuringProcess | None = None
        self._ended = ""
        """Why there is nothing to come."""
        self._doing = ""

    def prepare(self) -> None:
        """Start it, until it is ready or has ended."""
        self._process = MeasuringProcess(CHILD, self.request)
        while not self._ended and self._doing != READY:
            self._next()

    def results(self) -> Iterator[FormResult]:
        """Let it measure; what it did not come to has the reason."""
        assert self._process is not None
        if not self._ended:
            self._process.go()
        forms = self.request.forms
        left = [(size, form) for size in self.request.working_sets for form in forms]
        while left and not self._ended:
            found = self._next()
            if found is not None:
                left.remove((found.working_set, found.form))
                yield found
        yield from map(self._nothing, left)

    def _next(self) -> FormResult | None:
        assert self._process is not None
        event = self._process.event(self._limit)
        if isinstance(event, str):
            self._ended = event
        elif event.result is not None:
            return FormResult.from_dict(event.result)
        else:
            self._doing = event.doing
            self._on_doing(f"{self.request.program}/{event.form}, {event.doing}")
        return None

    def _nothing(self, which: tuple[WorkingSet, str]) -> FormResult:
        working_set, form = which
        program = PROGRAMS[self.request.program]
        error = f"{self._doing or 'start'}: {self._ended}"
        size = program.sizes[working_set]
        return FormResult(program.name, form, program.half, working_set, size, 0, error=error)

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.end()
