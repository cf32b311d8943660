"""The proof refuses plans whose waits are not enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import Binary, Const, Persistent, StageCode, TileWait
from fusionq.ir.types import INT64
from fusionq.passes.fuse import FusedKernel
from fusionq.planning import persistent as planning
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.megakernel.cases import (
    Calls,
    reversed_copy,
    shifted,
    stencil,
    stencil_2d,
    transposes,
)
from tests.unit.targets import REFERENCE

Change = Callable[[Persistent], Persistent]


def plan_of(calls: Calls) -> Plan:
    options = FusionOptions(strategy="megakernel", barriers="none")
    return make_plan(submissions(*calls), options, REFERENCE)


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """The kernel that the proof is about is not the one that the waits were made for."""
    persist = planning.persist

    def wrong(*arguments: Any) -> FusedKernel:
        fused = persist(*arguments)
        body = fused.kernel.body[0]
        assert isinstance(body, Persistent)
        return replace(fused, kernel=replace(fused.kernel, body=(change(body),)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "persist", wrong)
        yield


def in_codes(change: Callable[[StageCode], StageCode]) -> Change:
    return lambda body: replace(body, codes=tuple(change(code) for code in body.codes))


def narrower(by: tuple[int, int], dim: int) -> Change:
    """Every box begins later and ends earlier in a dimension."""

    def one(wait: TileWait) -> TileWait:
        assert wait.bounds is not None
        bounds = list(wait.bounds)
        low, high = bounds[dim]
        bounds[dim] = (
            Binary(INT64, "add", low, Const(INT64, by[0])),
            Binary(INT64, "add", high, Const(INT64, -by[1])),
        )
        return TileWait(tuple(bounds))

    return in_codes(lambda code: replace(code, waits=tuple(map(one, code.waits))))


def without_last_wait(body: Persistent) -> Persistent:
    last = body.stages[-1]
    code = body.codes[last.code]
    codes = (*body.codes, replace(code, waits=code.waits[:-1]))
    stage = replace(last, code=len(body.codes), producers=last.producers[:-1])
    return replace(body, codes=codes, stages=(*body.stages[:-1], stage))


def with_producer(stage: int, producer: int) -> Change:
    def change(body: Persistent) -> Persistent:
        stages = list(body.stages)
        stages[stage] = replace(stages[stage], producers=(producer,))
        return replace(body, stages=tuple(stages))

    return change


BOXED = [stencil(40), stencil_2d(9), reversed_copy(40), transposes(9)]


@pytest.mark.parametrize("calls", BOXED, ids=["stencil", "stencil_2d", "reversed", "transposes"])
def test_the_plan_itself_is_proved(calls: Calls) -> None:
    assert plan_of(calls).strategy == "megakernel"
    with changed(narrower((0, 0), 0)):
        assert plan_of(calls).strategy == "megakernel"


@pytest.mark.parametrize("by", [(1, 0), (0, 1)])
@pytest.mark.parametrize("calls", BOXED, ids=["stencil", "stencil_2d", "reversed", "transposes"])
def test_a_narrower_box_is_refused(calls: Calls, by: tuple[int, int]) -> None:
    ndim = 1 if isinstance(calls[0][1], int) else len(calls[0][1])
    for dim in range(ndim):
        with changed(narrower(by, dim)):
            plan = plan_of(calls)
        assert plan.strategy != "megakernel"
        assert plan.fallback is not None
        assert "may not wait for all that it depends on of stage" in plan.fallback


@pytest.mark.parametrize("calls", [stencil(40), shifted(40), reversed_copy(40)])
def test_a_missing_wait_is_refused(calls: Calls) -> None:
    with changed(without_last_wait):
        plan = plan_of(calls)
    assert plan.strategy != "megakernel"
    assert plan.fallback is not None
    assert "does not wait for it" in plan.fallback


def test_a_wait_for_another_stage_is_refused() -> None:
    with changed(with_producer(3, 1)):
        plan = plan_of(stencil(40))
    assert plan.strategy != "megakernel"
    assert plan.fallback == "stage 3 depends on stage 2 and does not wait for it"


@pytest.mark.parametrize("producer", [2, 3])
def test_a_wait_for_a_later_stage_is_refused(producer: int) -> None:
    with changed(with_producer(2, producer)):
        plan = plan_of(stencil(40))
    assert plan.strategy != "megakernel"
    assert plan.fallback == f"stage 2 waits for stage {producer}, which comes after it"
