"""A candidate on its way: looked for on disk, else made by the worker process, then loaded.

All of it happens in threads of its own, and nobody waits for them but a fork, which comes between
two, and the interpreter's end.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock, Thread

from fusionq.analysis.submission import Submission
from fusionq.backends.base import Backend
from fusionq.base.errors import FusionqError
from fusionq.base.options import FusionOptions
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.background import BACKGROUND, BuildJob
from fusionq.execution.bind_ahead import ArgumentsAhead
from fusionq.execution.compile import loaded_plan, remember
from fusionq.execution.contender import Candidate
from fusionq.submission.run import PreparedRun

_working = Lock()
"""Held by the thread that is at work."""

NOT_REQUESTED = "it cannot be built in the background"


class CandidatePlan:
    """A candidate ``name`` of a list, which becomes ready step by step; ``beside``: the candidates
    that the list has already, of which the first is what runs first.  ``arguments``: what its
    launches are bound to before one is wanted."""

    def __init__(
        self,
        backend: Backend,
        submissions: tuple[Submission, ...],
        options: FusionOptions,
        name: Candidate,
        beside: Sequence[Candidate],
        arguments: ArgumentsAhead | None = None,
    ) -> None:
        self._backend, self._submissions = backend, submissions
        self.arguments = arguments
        self._options, self._name, self._beside = options, name, beside
        self._works = False
        """Whether a thread is at work."""
        self._job: BuildJob | None = None
        """What the worker process has been asked for."""
        self.built: BuiltPlan | None = None
        self.run: PreparedRun | None = None
        """Its launches, where they could be bound ahead."""
        self.reason: str | None = None
        """Why there is none."""
        self.is_unserved = False
        """Whether that has nothing to do with the list: nothing is made in the background."""
        self.slowdown: float | None = None
        """How many times as long as the first it takes by the cost model."""
        self._start()

    def poll(self) -> bool:
        """Whether it is ready or known not to be; goes on where it may."""
        if self._works:
            return False
        job = self._job
        if job is not None and self.built is None and self.reason is None:
            BACKGROUND.poll()
            if job.answer is None:
                return False
            self.reason, self.slowdown, self.is_unserved = job.answer
            if self.reason is None:
                self._start()
                return False
        if self.built is not None:
            remember(self._backend, self._submissions, self._own_options, self.built)
        return True

    @property
    def _own_options(self) -> FusionOptions:
        return self._options.of_candidate(self._name)

    def _start(self) -> None:
        self._works = True
        try:
            Thread(target=self._work, name="fusionq-candidate").start()
        except RuntimeError as error:  # there is no room for a thread, or the process ends
            self.reason, self.is_unserved, self._works = str(error), True, False

    def _work(self) -> None:
        try:
            with _working:
                self._load_or_request()
        except FusionqError as error:
            self.reason = next(iter(str(error).splitlines()), type(error).__name__)
        except Exception as error:  # a thread has nobody to tell
            self.reason = f"{type(error).__name__}: {error}"
        finally:
            self._works = False

    def _load_or_request(self) -> None:
        built = loaded_plan(self._backend, self._submissions, self._own_options)
        if built is not None:
            if any(stage.inner for stage in built.plan.stages):
                from fusionq.execution.schedule_ahead import make_schedules

                make_schedules(self._backend, built, self._submissions)
            if self.arguments is not None:
                self.run = self.arguments.bound(built, self._options.fp)
            self.built = built
        elif self._job is not None:
            self.reason = "what was built is not in the disk cache"
            self.is_unserved = True
        else:
            self._job = BACKGROUND.build(
                self._backend, self._submissions, self._options, self._name, self._beside
            )
            if self._job is None:
                self.reason, self.is_unserved = NOT_REQUESTED, True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_working.acquire,
        after_in_parent=_working.release,
        after_in_child=_working.release,
    )
