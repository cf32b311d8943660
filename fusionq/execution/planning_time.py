"""How long planning may keep a list from its first result, and lists whose planning goes on later.

Planning that takes longer stops between two of its steps.  The list runs unfused; the next list of
its structure goes on where planning stopped, until there is a plan.  With ``strategy="auto"``,
which asks for no more than speed, that keeps each of the next lists for a few times its run at
most.  Launches one by one, of ``"unfused"``, are planned without what depends on what.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.base.config import planning_seconds
from fusionq.base.costs import Costs
from fusionq.base.phases import add_seconds

if TYPE_CHECKING:
    from fusionq.planning.plan import Plan
    from fusionq.planning.planner import Planning
    from fusionq.submission.run import RunChooser

UNFUSED_RUNS = 2.0
"""Planning may take that many times what the list takes unfused, and ``planning_seconds``."""

clock: Callable[[], float] = time.thread_time
"""The seconds of planning: of the thread's own work, so that a busy machine decides alike."""


class PlanningStopped(Exception):
    """There is no plan yet; the text says why.  ``chooser`` times the list's run, where it learns
    from runs.  ``timings``: what planning has taken this time, in seconds by phase."""

    def __init__(
        self,
        reason: str,
        chooser: RunChooser | None = None,
        timings: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(reason)
        self.chooser = chooser
        self.timings = timings or {}


def seconds_allowed(
    submissions: Sequence[Submission], costs: Costs, goes_on: bool = False
) -> float:
    """How long planning a list may keep it from its first result; or from the next one, where
    planning ``goes_on``."""
    seconds = planning_seconds()
    return (0.0 if goes_on and seconds < inf else seconds) + UNFUSED_RUNS * unfused_seconds(
        submissions, costs
    )


def unfused_seconds(submissions: Sequence[Submission], costs: Costs) -> float:
    """About what a list takes unfused, by the costs of launches and memory."""
    return sum(
        max(costs.launch_seconds, _bytes_moved(submission) / costs.memory_bandwidth)
        for submission in submissions
    )


def _bytes_moved(submission: Submission) -> int:
    """About what a submission reads and writes: of each array what it has, or an element for each
    work-item."""
    items = global_range(submission).size
    return sum(
        min(prod(argument.shape), items) * argument.dtype.nbytes
        for argument in submission.arguments
        if isinstance(argument, ArrayArgument)
    )


@dataclass(frozen=True)
class _Stopped:
    """Planning that has stopped, with the plans that were ``known`` to it."""

    planning: Planning
    known: tuple[Plan, ...]
    beyond: float = 0.0
    """Seconds that it took longer than it may, since it stops between two steps: later lists wait
    for so much less."""


class UnfinishedPlans:
    """Planning that has stopped, by the structure of its list; the least recent beyond ``capacity``
    are forgotten."""

    def __init__(self, capacity: int = 32) -> None:
        self.capacity = capacity
        self._stopped: OrderedDict[Hashable, _Stopped] = OrderedDict()
        self._measuring = 0.0
        """Seconds that devices were measured for, once for all lists: no list's planning."""

    @contextmanager
    def unbounded(self) -> Iterator[None]:
        """What the block takes is no planning: no list that is planned then is stopped for it."""
        before = clock()
        try:
            yield
        finally:
            self._measuring += clock() - before

    def has(self, key: Hashable) -> bool:
        """Whether planning of such lists has stopped."""
        return key in self._stopped

    def plan(
        self,
        key: Hashable,
        submissions: Sequence[Submission],
        known: tuple[Plan, ...],
        start: Callable[[tuple[Plan, ...]], Planning],
        seconds: float,
        timings: dict[str, float],
        stops: Callable[[Planning], bool] = lambda planning: False,
    ) -> Plan:
        """The plan that serves ``submissions``; PlanningStopped where it is not there after
        ``seconds``, or planning ``stops`` by what it has found.  ``start`` begins planning where
        none was left; it gets the plans that do not serve the list, ``known`` and those that were
        made for others of its structure meanwhile.

        Adds the seconds by phase to ``timings``.
        """
        stopped = self._stopped.pop(key, None) or _Stopped(start(known), known)
        planning, known = stopped.planning, stopped.known
        end = self._planned() + seconds - stopped.beyond

        def is_over() -> bool:
            return self._planned() >= end or stops(planning)

        while True:
            before = dict(planning.timings)
            plan = planning.go_on(is_over)
            for phase, total in planning.timings.items():
                add_seconds(timings, phase, total - before.get(phase, 0.0))
            if plan is None:
                self._stopped[key] = _Stopped(planning, known, max(self._planned() - end, 0.0))
                if len(self._stopped) > self.capacity:
                    self._stopped.popitem(last=False)
                raise PlanningStopped(
                    f"planning is not done after {seconds:.2g} s, all that this list may wait for "
                    "it; the next run of such a list goes on where it stopped "
                    "(FUSIONQ_PLANNING_SECONDS allows more)",
                    timings=timings,
                )
            if plan.validity.holds(submissions):
                return plan
            known = (plan, *known)
            planning = start(known)

    def clear(self) -> None:
        """Forget all."""
        self._stopped.clear()

    def _planned(self) -> float:
        return clock() - self._measuring


UNFINISHED = UnfinishedPlans()
"""Of the process."""
