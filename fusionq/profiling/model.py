"""The results of a profile: what was recorded, and what follows from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from fusionq.profiling.accounting import (
    Accounting,
    RegionStatistics,
    StageOverlap,
    account,
    overlaps,
    statistics,
)
from fusionq.profiling.by_kernel import by_kernel, overlaps_by_kernel
from fusionq.profiling.comparison import Comparison, comparisons
from fusionq.profiling.critical_path import CriticalPath, WhatIf, critical_path, what_if
from fusionq.profiling.findings import Finding, findings
from fusionq.profiling.session import ProfiledList
from fusionq.profiling.timeline import Timeline
from fusionq.profiling.waits import Blame, blame


class ProfileResults(ABC):
    """What was measured and what it means; nanoseconds.  Each result is computed once."""

    works: list[ProfiledList]
    """The lists that ran."""

    @property
    @abstractmethod
    def everything(self) -> Timeline:
        """All that was recorded."""

    @property
    @abstractmethod
    def _compute_units(self) -> int:
        """The most that one of the profiled devices has."""

    @property
    @abstractmethod
    def _time_slice_ns(self) -> int:
        """For how long a core is taken away, at least."""

    @cached_property
    def timeline(self) -> Timeline:
        """What the program's own launches recorded."""
        return self.everything.only("")

    @property
    def counters(self) -> Mapping[str, int]:
        """The sums of the program's own launches, by counter."""
        return self.everything.counters

    @cached_property
    def accounting(self) -> Accounting:
        """Each worker's time by kind."""
        return account(self.timeline, self._compute_units)

    @cached_property
    def statistics(self) -> tuple[RegionStatistics, ...]:
        """How long each region took."""
        used = set(self.timeline.intervals["region"].tolist())
        used |= {a.region for a in self.timeline.aggregates}
        return tuple(s for s in statistics(self.timeline) if s.region in used)

    @cached_property
    def overlaps(self) -> tuple[StageOverlap, ...]:
        """Which stages were at work at the same time."""
        return () if self.timeline.is_sampled else overlaps(self.timeline)

    @cached_property
    def waits(self) -> tuple[Blame, ...]:
        """Who waited for whom."""
        return blame(self.timeline)

    @property
    def _longest(self) -> int | None:
        """The launch that took longest, of those of which all work-groups recorded."""
        launches = self.timeline.launches
        recorded = set(self.timeline.accounted()["launch"].tolist())
        found = [k for k in recorded if launches[k].every == 1]
        return max(found, key=lambda k: launches[k].makespan_ns, default=None)

    @cached_property
    def critical_path(self) -> CriticalPath | None:
        """Of the longest launch; None without records."""
        longest = self._longest
        return None if longest is None else critical_path(self.timeline, longest)

    @cached_property
    def what_if(self) -> tuple[WhatIf, ...]:
        """How long the longest launch would take without each stage."""
        longest = self._longest
        return () if longest is None else what_if(self.timeline, longest)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each fused list against its unfused form."""
        return comparisons(self.everything, self.works)

    @cached_property
    def by_kernel(self) -> ProfileResults:
        """The same with the stages of each kernel as one."""
        return ResultsByKernel(self)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What costs time, the worst first; of equal stages as of one."""
        summed = self.by_kernel
        return findings(
            summed.timeline,
            self.accounting,
            summed.statistics,
            summed.waits,
            self.comparisons,
            self._time_slice_ns,
        )


class ResultsByKernel(ProfileResults):
    """The results of a profile of whose program's own launches the stages of one kernel, such as
    the steps of a loop, are one."""

    def __init__(self, results: ProfileResults) -> None:
        self._results = results
        self.works = results.works

    @property
    def everything(self) -> Timeline:
        """All that was recorded, stage by stage."""
        return self._results.everything

    @property
    def _compute_units(self) -> int:
        return self._results._compute_units

    @property
    def _time_slice_ns(self) -> int:
        return self._results._time_slice_ns

    @cached_property
    def timeline(self) -> Timeline:
        """What the program's own launches recorded."""
        return by_kernel(self._results.timeline)

    @cached_property
    def overlaps(self) -> tuple[StageOverlap, ...]:
        """Which kernels' stages were at work at the same time; stages of one kernel, too."""
        results = self._results
        return overlaps_by_kernel(results.overlaps, results.timeline, self.timeline)

    @cached_property
    def by_kernel(self) -> ProfileResults:
        """These."""
        return self
