"""The proof refuses plans whose waits are not enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import islpy as isl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.analysis.isl_operations import TOO_HARD, PlanTooHard, TooManyOperations, answered
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.ir.nodes import (
    Binary,
    Call,
    Const,
    Expr,
    ItemQuery,
    Param,
    Persistent,
    StageCode,
    TileWait,
)
from fusionq.ir.types import INT64
from fusionq.megakernel import proof
from fusionq.passes.fuse import FusedKernel
from fusionq.planning import persistent as planning
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.megakernel.cases import (
    Calls,
    blur,
    periodic,
    remainders,
    reverse,
    reversed_copy,
    shift,
    shifted,
    spread,
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

    def wrong(*arguments: Any) -> Steps[FusedKernel]:
        fused = yield from persist(*arguments)
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


def in_stage(stage: int, change: Callable[[StageCode], StageCode]) -> Change:
    """``stage`` gets code of its own."""

    def changed_body(body: Persistent) -> Persistent:
        stages = list(body.stages)
        code = change(body.codes[stages[stage].code])
        stages[stage] = replace(stages[stage], code=len(body.codes))
        return replace(body, codes=(*body.codes, code), stages=tuple(stages))

    return changed_body


def with_one_more_wait(stage: int, producer: int) -> Change:
    """``stage`` waits for a stage on which it does not depend."""

    def change(body: Persistent) -> Persistent:
        first = ItemQuery("tile_first", 0), ItemQuery("tile_first", 0)
        added = in_stage(stage, lambda c: replace(c, waits=(*c.waits, TileWait((first,)))))(body)
        stages = list(added.stages)
        producers = (*stages[stage].producers, producer)
        stages[stage] = replace(stages[stage], producers=producers)
        return replace(added, stages=tuple(stages))

    return change


def halves(n: int) -> Calls:
    """Every second element comes from half as many work-items: bounds are rounded quotients."""
    a, b, c, d = (np.zeros(n) for _ in range(4))
    return [(spread, n, a, b), (reverse, n, b, c), (spread, n, c, d), (reverse, n, d, a)]


BOXED = [
    stencil(40), stencil_2d(9), reversed_copy(40), transposes(9), halves(40), periodic(40),
    remainders(200),
]  # fmt: skip
NAMES = ["stencil", "stencil_2d", "reversed", "transposes", "halves", "periodic", "remainders"]


@pytest.mark.parametrize("calls", BOXED, ids=NAMES)
def test_the_plan_itself_is_proved(calls: Calls) -> None:
    assert plan_of(calls).strategy == "megakernel"
    with changed(narrower((0, 0), 0)):
        assert plan_of(calls).strategy == "megakernel"


@pytest.mark.parametrize("by", [(1, 0), (0, 1)])
@pytest.mark.parametrize("calls", BOXED, ids=NAMES)
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


@pytest.mark.parametrize("calls", [periodic(40), remainders(200)], ids=NAMES[-2:])
@pytest.mark.parametrize("left_out", range(3))
def test_each_of_the_boxes_around_what_is_far_apart_is_needed(left_out: int, calls: Calls) -> None:
    """Of a ring: the neighbours, the first element, and the last."""
    plan = plan_of(calls)
    body = plan.stages[0].kernel.body[0]
    assert isinstance(body, Persistent)
    assert body.stages[1].producers == (0, 0, 0)

    def without(body: Persistent) -> Persistent:
        def fewer(code: StageCode) -> StageCode:
            return replace(code, waits=_without(code.waits, left_out))

        changed_body = in_stage(1, fewer)(body)
        stages = list(changed_body.stages)
        stages[1] = replace(stages[1], producers=_without(stages[1].producers, left_out))
        return replace(changed_body, stages=tuple(stages))

    with changed(without):
        plan = plan_of(calls)
    assert plan.strategy != "megakernel"
    assert plan.fallback == "stage 1 may not wait for all that it depends on of stage 0"


def _without(values: tuple[Any, ...], position: int) -> tuple[Any, ...]:
    return values[:position] + values[position + 1 :]


def test_boxes_together_are_no_more_than_each_holds() -> None:
    """Two that leave out an element between them."""

    def apart(body: Persistent) -> Persistent:
        def of_stage(code: StageCode) -> StageCode:
            (wait,) = code.waits
            assert wait.bounds is not None
            ((low, high),) = wait.bounds
            first = ItemQuery("tile_first", 0)
            before = Binary(INT64, "add", first, Const(INT64, -1))
            after = Binary(INT64, "add", first, Const(INT64, 1))
            both = (TileWait(((low, before),)), TileWait(((after, high),)))
            return replace(code, waits=both)

        changed_body = in_stage(1, of_stage)(body)
        stages = list(changed_body.stages)
        stages[1] = replace(stages[1], producers=(0, 0))
        return replace(changed_body, stages=tuple(stages))

    with changed(apart):
        plan = plan_of(stencil(40))
    assert plan.fallback == "stage 1 may not wait for all that it depends on of stage 0"


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


def test_waiting_for_more_is_right() -> None:
    apart = [*stencil(40), *stencil(40)]
    with changed(with_one_more_wait(5, 0)):
        assert plan_of(apart).strategy == "megakernel"


def test_one_wait_that_is_enough_says_nothing_of_the_next() -> None:
    """Of equal stages."""
    nothing = ItemQuery("tile_last", 0), ItemQuery("tile_first", 0)
    narrow = TileWait((nothing,))
    with changed(in_stage(3, lambda code: replace(code, waits=(narrow,)))):
        plan = plan_of(stencil(40))
    assert plan.fallback == "stage 3 may not wait for all that it depends on of stage 2"


def test_the_same_wait_may_be_enough_for_one_stage_only() -> None:
    """The same kernel on the same memory, whose elements others have written each time."""

    @fq.kernel
    def reverse_into(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
        i = item.get_id(0)
        b[b.shape[0] - 1 - i] = a[i]

    a, b, c = np.zeros(40), np.zeros(40), np.zeros(40)
    calls = [(reverse, 40, a, b), (blur, 40, b, c), (reverse_into, 40, a, b), (blur, 40, b, c)]
    assert plan_of(calls).strategy == "megakernel"

    def change(body: Persistent) -> Persistent:
        first, last = body.stages[1], body.stages[3]
        wait = body.codes[first.code].waits[first.producers.index(0)]

        def as_the_first(code: StageCode) -> StageCode:
            waits = list(code.waits)
            waits[last.producers.index(2)] = wait
            return replace(code, waits=tuple(waits))

        return in_stage(3, as_the_first)(body)

    with changed(change):
        plan = plan_of(calls)
    assert plan.fallback == "stage 3 may not wait for all that it depends on of stage 2"


def test_what_takes_too_long_to_prove_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(question: object, questions: int = 1) -> None:
        raise PlanTooHard("no operations are left")

    monkeypatch.setattr(proof, "answered", none_left)
    plan = plan_of(stencil(40))
    assert plan.strategy != "megakernel"
    assert plan.fallback == (
        "whether every tile waits for what it depends on takes too long to prove: no operations "
        "are left"
    )


@contextmanager
def too_hard(times: int) -> Iterator[None]:
    """As many questions of the proof as ``times`` are, then no more."""
    left = [TooManyOperations(TOO_HARD)] * times

    def some(question: Callable[[], bool], questions: int = 1) -> bool:
        if left:
            raise left.pop()
        return answered(question, questions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "answered", some)
        yield


def unlike(n: int = 40) -> Calls:
    rng = np.random.default_rng(n)
    a, b, c, d = (rng.integers(0, 1 << 40, n) for _ in range(4))
    return [(blur, n, a, b), (reverse, n, b, c), (shift, n, c, d, 3), (blur, n, d, a)]


def waits_of(plan: Plan) -> list[tuple[int, int, bool]]:
    """Consumer, producer, and whether it is a wait for a part of it."""
    (stage,) = plan.stages
    body = stage.kernel.body[0]
    assert isinstance(body, Persistent)
    return [
        (consumer, producer, wait.bounds is not None)
        for consumer, use in enumerate(body.stages)
        for producer, wait in zip(use.producers, body.codes[use.code].waits, strict=True)
    ]


def test_where_that_is_too_hard_to_decide_tiles_wait_for_all_of_a_stage() -> None:
    usual = waits_of(plan_of(unlike()))
    assert all(bounded for *_, bounded in usual) and len(usual) > 3
    with too_hard(1):
        plan = plan_of(unlike())
    assert plan.strategy == "megakernel" and plan.fallback is None
    assert waits_of(plan) == [(1, 0, False), *usual[1:]]


def test_but_not_for_most_waits() -> None:
    with too_hard(3):
        plan = plan_of(unlike())
    assert plan.strategy != "megakernel"
    assert plan.fallback is not None and plan.fallback.endswith(TOO_HARD)


def test_what_waits_for_all_gives_the_same() -> None:
    found = []
    for hard in (0, 1):
        calls = unlike(1000)
        buffers = {id(x): fq.Buffer(x) for _, _, *arrays in calls for x in arrays[:2]}
        with (
            fq.FusionQueue("reference") as queue,
            too_hard(hard),
            fq.fusion(queue, strategy="megakernel", barriers="none", require=True) as f,
        ):
            for kernel, range_, *arguments in calls:
                queue.submit(kernel, range_, *(buffers.get(id(x), x) for x in arguments))
        assert f.report.strategy == "megakernel"
        found.append([buffer.numpy().copy() for buffer in buffers.values()])
    np.testing.assert_array_equal(*found)


def closed_forms() -> st.SearchStrategy[Expr]:
    """Bounds of boxes: extrema and quotients of each other, at any depth."""
    constants = st.integers(-70, 70).map(lambda value: Const(INT64, value))
    leaves = st.sampled_from(
        [ItemQuery("tile_first", 0), ItemQuery("tile_last", 0), Param(INT64, "n")]
    )

    def larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        extrema = st.sampled_from(["maximum", "minimum"])
        return st.one_of(
            st.builds(lambda f, a, b: Call(INT64, f, (a, b)), extrema, inner, inner),
            st.builds(lambda a, b: Binary(INT64, "add", a, b), inner, constants),
            st.builds(
                lambda a, d: Binary(INT64, "floordiv", a, Const(INT64, d)),
                inner,
                st.integers(1, 9),
            ),
        )

    return st.recursive(st.one_of(constants, leaves), larger, max_leaves=5)


@given(low=closed_forms(), high=closed_forms())
def test_a_box_is_what_its_bounds_say(low: Expr, high: Expr) -> None:
    """Written down as several affine constraints, it is the set that isl makes of the bounds."""
    names = {"n": "n0"}
    box = proof._boxed(((low, high),), names)
    said = f"{proof._text(low, names)} <= o0 <= {proof._text(high, names)}"
    parameters = isl.Set("[first_0, last_0, n0] -> { [o0] }").get_space()
    whole = isl.Set(f"[first_0, last_0, n0] -> {{ [o0] : {said} }}")
    assert box.align_params(parameters).is_equal(whole)


@pytest.mark.parametrize("extremum", ["maximum", "minimum"])
def test_bounds_of_boxes_are_one_piece(extremum: str) -> None:
    """isl makes a union of a piece for each argument of the text as it is, and proves several times
    as long."""
    first, zero = ItemQuery("tile_first", 0), Const(INT64, 0)
    half = Binary(INT64, "floordiv", first, Const(INT64, 2))
    bound = Call(INT64, extremum, (Call(INT64, extremum, (half, zero)), Param(INT64, "n")))
    pair = (bound, Const(INT64, 99)) if extremum == "maximum" else (Const(INT64, -99), bound)
    assert proof._boxed((pair,), {"n": "n0"}).n_basic_set() == 1


def test_a_bound_that_is_no_closed_form_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="no closed form has Binary"):
        proof._text(Binary(INT64, "mod", ItemQuery("tile_first", 0), Const(INT64, 2)), {})
