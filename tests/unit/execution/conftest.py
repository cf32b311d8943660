"""A background that builds at once, and times that tests make up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fusionq.base.assumptions import ASSUMED
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import (
    adaptive,
    candidate_plans,
    first_plan,
    later_comparisons,
    list_record,
    run_timer,
    trial_cost,
)
from fusionq.execution.run_times import Sample, Told
from tests.unit.execution.adaptive_lists import (
    LARGEST_GROUP,
    Immediate,
    Times,
)


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch, disk_cache: Path) -> Iterator[Immediate]:
    background = Immediate()
    monkeypatch.setenv("FUSIONQ_ADAPT", "1")
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "1")
    monkeypatch.setattr(adaptive, "unavailable", lambda backend: None)
    monkeypatch.setattr(candidate_plans, "CandidatePlan", background)
    monkeypatch.setattr(list_record, "WORTH_LEARNING", 1e-9)
    monkeypatch.setattr(trial_cost, "SHARE", 1e9)  # preparing takes more than made-up runs
    monkeypatch.setattr(later_comparisons, "SHARE", 0.0)  # none but what drifts
    monkeypatch.setattr(first_plan, "STEP", 1e9)  # nothing is planned where the user waits
    monkeypatch.setattr(adaptive, "is_busy", lambda: background.is_busy)
    group = replace(ASSUMED["largest_barrier_group"], cpu=LARGEST_GROUP)
    monkeypatch.setitem(ASSUMED, "largest_barrier_group", group)
    list_record.RECORDS.clear()
    PLANS.clear()
    yield background
    list_record.RECORDS.clear()


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    times = Times(auto=2.0, sequence=2.0, unfused=3.0, fused=2.0, megakernel=1.0)

    def launch(launch, depends, before, told: Told, prepared):  # type: ignore[no-untyped-def]
        times.ran.append(told._name)  # type: ignore[attr-defined]
        times.prepared.append(prepared)
        told.took(times[times.ran[-1]])
        return launch(depends)

    class MadeUp(Sample):
        def launch(self, launch, depends, before, prepared):  # type: ignore[no-untyped-def]
            launched = launch(depends)
            self.left -= 1
            times.ran.append(self._told._name)  # type: ignore[union-attr]
            times.prepared.append(prepared)
            self.took(times[times.ran[-1]])
            return launched

    monkeypatch.setattr(run_timer, "timed_launch", launch)
    monkeypatch.setattr(list_record, "Sample", MadeUp)
    return times
