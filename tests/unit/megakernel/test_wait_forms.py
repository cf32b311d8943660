"""Waits that differ in their parameters only have one text, however many steps a list has."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.codegen.stage_tables import wait_forms
from fusionq.ir.nodes import Persistent
from fusionq.planning.build_cost import build_work
from fusionq.planning.plan import StagePlan
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.megakernel.cases import eliminate, eliminations, multipliers
from tests.unit.targets import REFERENCE


def eliminating(steps: int) -> StagePlan:
    """The persistent kernel of so many steps of an elimination."""
    options = FusionOptions(strategy="megakernel")
    plan = make_plan(submissions(*eliminations(64, steps)), options, REFERENCE)
    assert plan.strategy == "megakernel"
    (stage,) = plan.stages
    return stage


def body_of(stage: StagePlan) -> Persistent:
    body = stage.kernel.body[0]
    assert isinstance(body, Persistent)
    return body


def test_the_forms_of_many_steps_are_those_of_few() -> None:
    few, many = (wait_forms(body_of(eliminating(steps))) for steps in (3, 12))
    assert few.forms == many.forms and few.values == many.values


def test_steps_have_the_code_of_the_one_before() -> None:
    """Who has waited for a step has waited for those before it, whichever scalars say so."""
    few, many = (body_of(eliminating(steps)) for steps in (3, 12))
    assert len(many.codes) == len(few.codes) < 6
    assert len(many.stages) == 4 * len(few.stages) == 24


def test_the_text_of_waits_does_not_grow() -> None:
    few, many = (eliminating(steps) for steps in (3, 12))

    def waits(stage: StagePlan) -> str:
        text = generate(stage.kernel, "strict", REFERENCE, OPENCL_C).text
        found = text.partition("switch ((int)(fq_awaited[")[2].partition("return state;")[0]
        assert found
        return found

    assert waits(few) == waits(many)
    assert build_work(few.kernel).waits == build_work(many.kernel).waits


@pytest.mark.slow
@pytest.mark.parametrize("target", ["reference", None])
def test_a_kernel_of_many_steps_has_the_results_of_launches(target: str | None) -> None:
    steps, n = 12, 33
    start = np.random.default_rng(3).integers(-9, 9, (n, n))
    found = []
    for strategy in ("unfused", "megakernel"):
        a, m = fq.Buffer(start.copy()), fq.Buffer(np.zeros_like(start))
        with fq.FusionQueue(target) as queue:
            for first in (0, 2, 0):  # other values in the same kernel
                with fq.fusion(queue, strategy=strategy) as f:
                    for t in range(first, first + steps):
                        queue.submit(multipliers, n, t, a, m)
                        queue.submit(eliminate, (n, n), t, m, a)
                assert f.report.strategy == strategy
            f.replay()
            found.append((a.numpy().tolist(), m.numpy().tolist()))
    assert found[0] == found[1]
