"""Lists that learn, in a background that builds at once, by times that tests make up."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import (
    candidate_runs,
    list_record,
)
from fusionq.execution.background_worker import MOST_PLANNING
from fusionq.execution.candidate_plans import NOT_REQUESTED
from fusionq.execution.candidates import superfluous
from fusionq.execution.compile import built_plan, planned
from tests.unit.execution.programs import neighbours, scale

LARGEST_GROUP = 128
"""In place of 1,024: small lists, which the interpreter runs sooner, then need several."""
N = 140
"""More than a work-group: what depends on neighbours does not join."""
STEPS = 3


class Immediate:
    """Candidates that are planned and built in this process, when it is looked whether they are
    there."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refusing: dict[str, str] = {}
        self.works = True
        self.is_busy = False
        self.binds = True

    def __call__(self, backend, submissions, options, name, beside, arguments):  # type: ignore[no-untyped-def]
        self.asked.append(name)
        options = options.of_candidate(name)
        return Made(self, backend, submissions, options, beside, arguments)


class Made:
    built, run, reason, slowdown = None, None, None, None
    is_unserved = False

    def __init__(self, background, backend, submissions, options, beside, arguments) -> None:  # type: ignore[no-untyped-def]
        self.background, self.what = background, (backend, submissions, options)
        self.beside, self.arguments = beside, arguments

    def poll(self) -> bool:
        if not self.background.works:
            return False
        strategy = self.what[2].strategy
        self.reason = self.background.refusing.get(strategy)
        if self.reason is not None:
            self.is_unserved = self.reason == NOT_REQUESTED
        else:
            built, _ = built_plan(*self.what, {}, may_fall_back=False)
            if strategy in ("overlap", "megakernel") and built.plan.strategy != strategy:
                self.reason = built.plan.fallback
            elif self.beside:
                others = {name: self.planned(name) for name in self.beside}
                self.reason = superfluous(built.plan, others, self.beside[0])
            if self.reason is None:
                self.built = built
                if self.background.binds:
                    self.run = self.arguments.bound(built, "strict")
        return True

    def planned(self, name: str):  # type: ignore[no-untyped-def]
        backend, submissions, options = self.what
        return planned(backend, submissions, options.of_candidate(name), MOST_PLANNING)


class Times(dict[str, float]):
    """Seconds by candidate; what ran, in order."""

    def __init__(self, **seconds: float) -> None:
        super().__init__(seconds)
        self.ran: list[str] = []
        self.prepared: list[float] = []
        """Of each of these, for how many seconds it is told to have been prepared."""


class Program:
    """A stencil's steps on its own buffers; every run's result is checked."""

    def __init__(self, n: int = N, target: str = "reference", **options: object) -> None:
        self.queue = fq.FusionQueue(target)
        self.n, self.options = n, options
        self.a, self.b = (fq.Buffer(np.zeros(n, np.float32)) for _ in range(2))
        self.host = [np.zeros(n, np.float32), np.zeros(n, np.float32)]

    def steps(self) -> None:
        a, b = self.a, self.b
        for _ in range(STEPS):
            self.queue.submit(neighbours, self.n, a, b)
            a, b = b, a

    def run(self) -> fq.Fusion:
        self.begin()
        with fq.fusion(self.queue, **self.options) as fusion:  # type: ignore[arg-type]
            self.steps()
        self.check(fusion)
        return fusion

    def begin(self) -> None:
        start = np.random.default_rng(0).integers(0, 9, self.n).astype(np.float32)
        self.a.write(start)
        self.b.write(start)
        self.host = [start.copy(), start.copy()]

    def check(self, fusion: fq.Fusion) -> None:
        fusion.event.wait()
        a, b = self.host
        for _ in range(STEPS):
            b[1:-1] = a[:-2] + a[2:]
            a, b = b, a
        assert np.array_equal(self.a.numpy(), self.host[0])
        assert np.array_equal(self.b.numpy(), self.host[1])


class Joined(Program):
    """What joins whatever is around it."""

    def steps(self) -> None:
        self.queue.submit(scale, self.n, self.a, self.b, np.float32(2))
        self.queue.submit(scale, self.n, self.b, self.b, np.float32(3))

    def check(self, fusion: fq.Fusion) -> None:
        fusion.event.wait()
        assert np.array_equal(self.b.numpy(), 6 * self.host[0])


def chosen_of(program: Program, most: int = 30) -> str:
    """What is chosen at last."""
    (record,) = list_record.RECORDS._records.values()
    for _ in range(most):
        if record.trials.chosen is not None:
            break
        program.run()
    assert record.trials.chosen is not None
    return record.trials.chosen


def run_often(program: Program, times: int) -> None:
    """So many times."""
    for _ in range(times):
        program.run()


def bound_where_wanted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The strategies of the plans whose launches were bound when a run was wanted."""
    prepared: list[str] = []
    bind = candidate_runs.bind

    def counted(backend, run, pending, fp):  # type: ignore[no-untyped-def]
        prepared.append(run.built.plan.strategy)
        bind(backend, run, pending, fp)

    monkeypatch.setattr(candidate_runs, "bind", counted)
    return prepared
