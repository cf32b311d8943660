"""Measures forms of one program against PyTorch, in a process of its own: ``python -m`` this module
REQUEST.

It prepares everything, which other processes may do at the same time, says that it is READY, and
measures once standard input has a line.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import fusionq as fq
from fusionq.base.options import Strategy
from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.corpus.against.results import AUTO
from fusionq.benchmarks.corpus.against.torch_program import TorchProgram, imported_torch
from fusionq.benchmarks.corpus.measure import Event, Tell, events_alone
from fusionq.benchmarks.corpus.program import CorpusProgram, Form, WorkingSet
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import FormResult
from fusionq.benchmarks.corpus.torch_forms import TORCH_FORMS
from fusionq.benchmarks.corpus.workload import CorpusWorkload, Problem
from fusionq.benchmarks.gpu import GRAPH, by_events
from fusionq.benchmarks.results import VariantResult
from fusionq.benchmarks.runner import measure
from fusionq.benchmarks.timing import Sampler, Start
from fusionq.benchmarks.variants import MissingVariant, Variant, launches
from fusionq.execution.list_record import RECORDS

READY = "ready"
STRATEGIES: tuple[Strategy, ...] = ("auto", "fused", "sequence", "overlap", "megakernel")
"""Whose plans are made beforehand, so that auto has all to choose from."""
MOST_LEARNING = 4.0
"""Seconds for which auto learns; what is the fastest known then is timed."""
SAMPLE = 20
"""Replays without a wait while it does."""


@dataclass(frozen=True)
class AgainstRequest:
    """Forms of a program, and at which sizes."""

    program: str
    forms: tuple[str, ...]
    working_sets: tuple[WorkingSet, ...]
    device: str
    rounds: int


class Both:
    """What ``runner.measure`` asks of a workload: fusionq's; PyTorch's restores itself."""

    def __init__(self, workload: CorpusWorkload) -> None:
        self.workload = workload
        queue, buffers = workload.queue, workload.buffers
        self._first = {
            name: fq.Buffer(array)
            for name, array in workload.problem.initial.items()
            if name not in workload.problem.program.inputs
        }
        with fq.fusion(queue, strategy="unfused") as self._restored:
            for name, first in self._first.items():
                queue.memcpy(buffers[name], first)

    def spoil(self) -> None:
        """The contents that a run begins with, by copies on the device."""
        self._restored.replay()

    def check(self, bit_for_bit: bool) -> str:
        """See ``CorpusWorkload.check``."""
        return self.workload.check(bit_for_bit)


class Comparison:
    """A program at one size, prepared."""

    def __init__(
        self,
        torch: Any,
        request: AgainstRequest,
        working_set: WorkingSet,
        queue: fq.FusionQueue,
        tell: Tell,
    ) -> None:
        self.request, self.working_set, self.queue, self._tell = request, working_set, queue, tell
        self.program: CorpusProgram = PROGRAMS[request.program]
        self.form = next(f for f in self.program.forms if f.name in request.forms)
        self.tell("making data")
        self.problem = Problem(self.program, self.program.sizes[working_set])
        device = queue.device.filter_string
        self._sampler = by_events(queue)
        self.workloads = {
            form.name: Both(CorpusWorkload(self.problem, form, queue))
            for form in self.program.forms
            if form.name in request.forms
        }
        for name, both in self.workloads.items():
            for strategy in STRATEGIES:
                self.tell(f"{name}: {strategy}")
                both.spoil()
                self.fused(both, strategy).event.wait()
        self.tell("PyTorch")
        stream = torch.cuda.ExternalStream(queue.__cuda_stream__()[1], device=device)
        with torch.cuda.stream(stream):
            program = TorchProgram(torch, self.problem, TORCH_FORMS[self.program.name], device)
            self.torch = list(program.variants(stream, self._sampler, self.tell))

    def tell(self, doing: str) -> None:
        self._tell(Event(self.form.name, doing=f"{self.working_set}: {doing}"))

    def fused(self, both: Both, strategy: Strategy, adapt: bool = False) -> fq.Fusion:
        with fq.fusion(self.queue, strategy=strategy, adapt=adapt) as fusion:
            both.workload.submit()
        return fusion

    def results(self) -> Iterator[FormResult]:
        """Measure each form."""
        for form in self.program.forms:
            if form.name in self.workloads:
                self.form = form
                yield self._result(form)

    def _result(self, form: Form) -> FormResult:
        program, problem = self.program, self.problem
        size, nbytes = problem.size, problem.nbytes
        blank = FormResult(program.name, form.name, program.half, self.working_set, size, nbytes)
        try:
            return FormResult(**{**vars(blank), **self._measured(self.workloads[form.name])})
        except AssertionError as error:
            return FormResult(**{**vars(blank), "error": f"a result is wrong: {error}"})
        except fq.FusionqError as error:
            return FormResult(**{**vars(blank), "error": f"{type(error).__name__}: {error}"})

    def _measured(self, both: Both) -> dict[str, Any]:
        both.spoil()
        unfused = self.fused(both, "unfused")
        submissions = len(unfused.report.submissions)
        graph = self._own(both, GRAPH, unfused)
        self.tell("learning")
        found = [self._own(both, AUTO, self._learned(both)), graph, *self.torch]
        ready = [v for v in found if isinstance(v, Variant)]

        def progress(doing: str, done: int, total: int) -> None:
            self.tell(f"{doing} {done}/{total}" if total else doing)

        measured = measure(both, ready, self.request.rounds, progress)
        by_name = {result.name: result for result in measured}
        for variant in found:
            if isinstance(variant, MissingVariant):
                reason = variant.reason
                missing = VariantResult(variant.name, variant.group, unavailable=reason)
                by_name[variant.name] = missing
        variants = tuple(by_name[variant.name] for variant in found)
        return {"submissions": submissions, "variants": variants}

    def _own(self, both: Both, name: str, fusion: fq.Fusion) -> Variant:
        report = fusion.report
        sample = self._restoring(both, fusion.replay)
        return Variant(
            name, "fusionq", "unfused", fusion.replay, lambda: launches(report), report.strategy,
            sampler=sample,
        )  # fmt: skip

    def _restoring(self, both: Both, start: Start) -> Sampler:
        timed = self._sampler(start)

        def sample(runs: int) -> float:
            both.spoil()
            return timed(runs)

        return sample

    def _learned(self, both: Both) -> fq.Fusion:
        """Auto, when it has learned what is the fastest, or as far as it has."""
        end = time.monotonic() + MOST_LEARNING
        both.spoil()
        fusion = self.fused(both, "auto", adapt=True)
        sample = self._restoring(both, fusion.replay)
        while time.monotonic() < end:
            sample(SAMPLE)
            record = RECORDS.latest
            if record is None or record.trials.chosen is not None:
                break
            if record.making is not None:
                time.sleep(0.01)
        both.spoil()
        return self.fused(both, "auto", adapt=True)


def serve(request: AgainstRequest, tell: Tell) -> None:
    """Prepare, wait for the line, measure; ``tell`` has the results."""
    first = request.forms[0]
    tell(Event(first, doing="importing PyTorch"))
    torch = imported_torch()
    queue = fq.FusionQueue(request.device)
    prepared = [Comparison(torch, request, size, queue, tell) for size in request.working_sets]
    tell(Event(first, doing=READY))
    if not sys.stdin.readline():
        return
    for comparison in prepared:
        for result in comparison.results():
            tell(Event(result.form, result=asdict(result)))


def main() -> None:
    """Serve the request in the first argument."""
    data = json.loads(sys.argv[1])
    data |= {name: tuple(data[name]) for name in ("forms", "working_sets")}
    with events_alone() as tell, suppress(BrokenPipeError):
        try:
            serve(AgainstRequest(**data), tell)
        except Unavailable as reason:
            sys.exit(str(reason))


if __name__ == "__main__":
    main()
