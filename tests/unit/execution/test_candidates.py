"""Which strategies need not be made beside what runs first."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fusionq as fq
from fusionq.execution.candidates import choice_text, need_not_be_made
from fusionq.execution.trials import Trials
from fusionq.planning.plan import Plan
from tests.unit.execution.programs import neighbours

N = 64


@fq.kernel
def double(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] + a[i]


def plan_of(kernel: fq.Kernel, strategy: str) -> Plan:
    queue = fq.FusionQueue("reference")
    a, b, c = (fq.Buffer(N, float) for _ in range(3))
    with fq.fusion(queue, strategy=strategy, adapt=False) as fusion:  # type: ignore[arg-type]
        queue.submit(kernel, N, a, b)
        queue.submit(kernel, N, b, c)
    return fusion.report.plan


def test_where_each_work_item_goes_on_with_its_own_nothing_else_is_tried() -> None:
    plan = plan_of(double, "sequence")
    assert len(plan.stages) == 1
    for name in ("megakernel", "overlap", "fused"):
        assert need_not_be_made(name, "sequence", plan) == "all joins"
    assert need_not_be_made("unfused", "sequence", plan) is None, "what a join costs is measured"


@pytest.mark.parametrize("name", ["auto", "megakernel", "overlap", "fused", "unfused"])
def test_where_groups_hold_the_dependences_others_are_tried(name: str) -> None:
    """Groups as large as that leave processors idle, and work-items wait for each other."""
    plan = plan_of(neighbours, "sequence")
    assert len(plan.stages) == 1
    assert {d.scope for d in plan.dependences} == {"GROUP"}
    assert need_not_be_made(name, "sequence", plan) is None  # type: ignore[arg-type]


def test_where_elements_are_computed_anew_others_are_tried() -> None:
    plan = plan_of(neighbours, "overlap")
    assert len(plan.stages) == 1 and plan.recomputed
    joined = replace(plan, strategy="fused")
    assert need_not_be_made("sequence", "auto", joined) is None


def test_where_nothing_joins_that_is_not_tried_again() -> None:
    plan = plan_of(double, "unfused")
    assert need_not_be_made("sequence", "auto", plan) == "nothing joins"
    assert need_not_be_made("unfused", "auto", plan) == "nothing joins"


def test_the_choice_names_the_others_that_are_tried_later() -> None:
    trials = Trials("sequence", ["fused", "unfused"])
    assert "first; fused and unfused are tried when" in choice_text(trials, "sequence", False)
    trials.leave_out("fused", "all joins")
    assert "first; unfused is tried when" in choice_text(trials, "sequence", False)
    trials.leave_out("unfused", "nothing joins")
    assert "tried" not in choice_text(trials, "sequence", False)
