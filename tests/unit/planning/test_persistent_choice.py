"""Persistent kernels are proved where they are wanted, before they become part of a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.megakernel.proof import Undecided
from fusionq.planning import persistent
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

N = 300


@fq.kernel
def blur(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i + 1]
    else:
        b[i] = a[i]


def in_turn(count):
    a, b = np.zeros(N, np.float32), np.zeros(N, np.float32)
    return submissions(*((blur, N, *((a, b) if k % 2 else (b, a))) for k in range(count)))


def planned(strategy, launch_seconds):
    target = replace(TWO_CORES, costs=replace(TWO_CORES.costs, launch_seconds=launch_seconds))
    options = FusionOptions(strategy=strategy)
    return make_plan(in_turn(12), options, target, (), lambda: target)


@pytest.fixture
def proved(monkeypatch):
    """How often waits were asked to be proved; what the proofs are to say can be appended."""
    asked, said = [], []
    check = persistent.check_plan

    def counted(relations, made, identity):
        asked.append(made)
        reason = yield from check(relations, made, identity)
        return said.pop(0) if said else reason

    monkeypatch.setattr(persistent, "check_plan", counted)
    return asked, said


def test_what_the_model_prefers_is_proved(proved):
    assert planned("auto", 1e-3).strategy == "megakernel"
    assert len(proved[0]) == 1


def test_what_launches_are_faster_than_is_not_proved(proved):
    plan = planned("auto", 1e-9)
    assert plan.strategy != "megakernel"
    assert "as one persistent kernel against" in plan.choice
    assert proved[0] == []


def test_what_is_asked_for_is_proved(proved):
    assert planned("megakernel", 1e-9).strategy == "megakernel"
    assert len(proved[0]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", "megakernel"])
def test_what_is_not_proved_is_no_part_of_a_plan(proved, strategy):
    proved[1].append("a wait is missing")
    plan = planned(strategy, 1e-3)
    assert plan.strategy != "megakernel"
    assert all(not stage.inner for stage in plan.stages)
    if strategy == "megakernel":
        assert plan.fallback == "a wait is missing"


def test_waits_that_are_too_hard_to_prove_become_waits_for_all(proved):
    proved[1].append(Undecided(frozenset({(0, 1)})))
    plan = planned("megakernel", 1e-3)
    assert plan.strategy == "megakernel"
    assert len(proved[0]) == 2
    body = plan.stages[0].kernel.body[0]
    bounds = [w.bounds for s in body.stages for w in body.codes[s.code].waits]
    assert None in bounds and any(bounds)

