"""Runs the corpus: a process for each program and size, which is ended where it takes too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from fusionq.benchmarks.corpus.measure import Event, Request
from fusionq.benchmarks.corpus.process import MeasuringProcess
from fusionq.benchmarks.corpus.program import CorpusHalf, CorpusProgram, WorkingSet
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import FormResult

MEASURE = "fusionq.benchmarks.corpus.measure"
"""The module that measures."""
OnDoing = Callable[[str], object]
"""Told what is being done."""


@dataclass(frozen=True)
class Selection:
    """Which part of the corpus: ``filters`` are patterns (``jacobi*``) for names of programs, or
    of a form (``jacobi_2d/interior``); none means all."""

    filters: tuple[str, ...] = ()
    half: CorpusHalf = "all"
    working_sets: tuple[WorkingSet, ...] = ("in cache", "out of cache")

    def forms(self, program: CorpusProgram) -> tuple[str, ...]:
        """The names of the program's forms that belong to it."""
        if self.half not in ("all", program.half):
            return ()
        return tuple(
            form.name
            for form in program.forms
            if not self.filters
            or any(
                fnmatchcase(name, wanted)
                for wanted in self.filters
                for name in (program.name, f"{program.name}/{form.name}")
            )
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """The filters that no program or form of the corpus meets."""
        names = [p.name for p in PROGRAMS.values()]
        names += [f"{p.name}/{f.name}" for p in PROGRAMS.values() for f in p.forms]
        return tuple(f for f in self.filters if not any(fnmatchcase(n, f) for n in names))

    @property
    def requests(self) -> tuple[tuple[str, WorkingSet, tuple[str, ...]], ...]:
        """Programs and sizes, with their forms, in the order of the corpus."""
        return tuple(
            (program.name, working_set, forms)
            for program in PROGRAMS.values()
            if (forms := self.forms(program))
            for working_set in self.working_sets
        )


def run_corpus(
    selection: Selection,
    device: str | None,
    rounds: int,
    limit: float,
    on_doing: OnDoing,
    *,
    learning_only: bool = False,
    single: bool = False,
    replay: bool = False,
) -> Iterator[FormResult]:
    """The results of the selected forms, as they are measured; ``learning_only``, ``single``,
    ``replay``: see ``Request``.

    ``limit``: seconds; a candidate whose first run takes longer is left out, with that as the
    reason, and so is one that ends the process.
    """
    for program, working_set, forms in selection.requests:
        request = Request(
            program, forms, working_set, device, rounds,
            learning_only=learning_only, single=single, replay=replay,
        )  # fmt: skip
        yield from _results(request, limit, on_doing)


def _results(request: Request, limit: float, on_doing: OnDoing) -> Iterator[FormResult]:
    """As long as forms are left: a process that measures them; one that fails is started anew
    without the candidate that it failed at."""
    while request.forms:
        process = MeasuringProcess(MEASURE, request)
        last = Event(request.forms[0])
        ended = ""
        try:
            while not ended:
                found = process.event(limit)
                if isinstance(found, str):
                    ended = found
                elif found.result is None:
                    last = found
                    where = f"{request.program}/{found.form}, {request.working_set}"
                    on_doing(f"{where}: {found.doing}")
                else:
                    yield FormResult.from_dict(found.result)
                    request = _without(request, found.form)
                    if not request.forms:
                        return
                    last = Event(request.forms[0])
        finally:
            process.end()
        if last.candidate is None or last.candidate == "unfused":
            yield _nothing(request, last, ended)
            request = _without(request, last.form)
        else:
            of_form = {**request.skipped.get(last.form, {}), last.candidate: ended}
            request = replace(request, skipped={**request.skipped, last.form: of_form})


def _without(request: Request, form: str) -> Request:
    return replace(request, forms=tuple(f for f in request.forms if f != form))


def _nothing(request: Request, last: Event, reason: str) -> FormResult:
    """The result of a form that could not be measured at all."""
    program = PROGRAMS[request.program]
    size = program.sizes[request.working_set]
    error = f"{last.doing or 'start'}: {reason}"
    return FormResult(
        program.name, last.form, program.half, request.working_set, size, 0, error=error
    )
