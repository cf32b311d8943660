"""Plans that a program waits for: questions about their lists are bounded, by counts alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations, isl_texts, stage_relations
from fusionq.base.options import FusionOptions
from fusionq.planning.planner import Planning, make_plan
from tests.unit.lists import submissions
from tests.unit.targets import REFERENCE

N = 64
BIG = 3000
"""More work-items than may run as one group."""
STRIDES = (1, 2, 4, 8, 16, 32)


@fq.kernel
def butterfly(item: fq.Item, x, m: int):
    t = item.get_id(0)
    k = t % m
    i = (t // m) * 2 * m + k
    a = x[i, 0]
    b = x[i + m, 0] * (k + 1)
    c = x[i, 1]
    d = x[i + m, 1]
    x[i, 0] = a + b
    x[i, 1] = c - d
    x[i + m, 0] = a - b
    x[i + m, 1] = c + d


@fq.kernel
def scale(item: fq.Item, x, y):
    i = item.get_id(0)
    y[i] = 2 * x[i]


@fq.kernel
def down_row(item: fq.Item, x, k: int):
    i = item.get_id(0)
    x[i, k] = x[i, k] + x[i, k - 1]


@fq.kernel
def down_column(item: fq.Item, x, k: int):
    j = item.get_id(0)
    x[k, j] = x[k, j] - x[k - 1, j]


def transform(x: Any) -> list[Any]:
    """Each stride is a question of its own, with each of the others."""
    return [(butterfly, N // 2, x, m) for m in STRIDES]


def forget_texts() -> None:
    """isl counts what it takes to read a text, once for a process."""
    isl_texts.map_of.cache_clear()
    isl_texts.set_of.cache_clear()


def waited_for(calls: list[Any], strategy: Any) -> Any:
    options = FusionOptions(strategy=strategy)
    forget_texts()
    plan = Planning(submissions(*calls), options, REFERENCE, is_waited_for=True).go_on()
    assert plan is not None
    return replace(plan, timings={})


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the operations that ``transform`` takes."""
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "1")
    monkeypatch.setattr(isl_operations, "WAITING_OPERATIONS", 600_000)


@pytest.mark.parametrize("strategy", ["sequence", "fused", "megakernel", "overlap", "auto"])
@pytest.mark.usefixtures("few")
def test_a_list_that_is_too_hard_runs_in_more_launches_and_the_plan_says_why(strategy):
    x = np.zeros((N, 2))
    plan = waited_for(transform(x), strategy)
    whole = make_plan(submissions(*transform(x)), FusionOptions(strategy=strategy), REFERENCE)
    assert len(plan.stages) > len(whole.stages) == 1
    unknown = [d for d in plan.dependences if d.scope == "UNKNOWN"]
    assert 0 < len(unknown) < len(plan.dependences)
    assert all("have taken all of the 600,000 steps" in d.reason for d in unknown)
    if strategy == "megakernel":
        assert plan.fallback is not None
        assert "have taken all of the 600,000 steps" in plan.fallback


@pytest.mark.usefixtures("few")
def test_what_is_bounded_is_the_same_on_any_machine(monkeypatch):
    """Whatever the clock says, and however often planning stops in between."""
    x = np.zeros((N, 2))
    first = waited_for(transform(x), "megakernel")
    ticks = count()
    monkeypatch.setattr(isl_operations, "clock", lambda: float(next(ticks)))
    assert waited_for(transform(x), "megakernel") == first
    options = FusionOptions(strategy="megakernel")
    forget_texts()
    planning = Planning(submissions(*transform(x)), options, REFERENCE, is_waited_for=True)
    steps, plan = 0, None
    while plan is None:
        calls = count()
        plan = planning.go_on(lambda: next(calls) > 3)  # noqa: B023  # this round's
        steps += 1
    assert steps > len(STRIDES)
    assert replace(plan, timings={}) == first


@pytest.mark.usefixtures("few")
def test_dependences_leave_operations_for_the_launches():
    """The first submissions, whose dependences are known, still become one launch."""
    x, y, z = np.zeros((N, 2)), np.zeros(N), np.zeros(N)
    plan = waited_for([(scale, N, y, z), (scale, N, z, y), *transform(x)], "sequence")
    assert plan.stages[0].submissions[:2] == (0, 1)


def test_nobody_who_does_not_wait_is_bounded_so(few):
    x = np.zeros((N, 2))
    plan = make_plan(submissions(*transform(x)), FusionOptions(strategy="sequence"), REFERENCE)
    assert all(d.scope != "UNKNOWN" for d in plan.dependences)


def test_long_lists_and_programs_that_wait_longer_have_more_operations(monkeypatch):
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "0.1")
    usual = isl_operations.operations_to_wait_for(1)
    assert usual == isl_operations.operations_to_wait_for(isl_operations.WAITING_SUBMISSIONS)
    more = isl_operations.operations_to_wait_for(3 * isl_operations.WAITING_SUBMISSIONS)
    assert more == 3 * usual
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "5")
    assert isl_operations.operations_to_wait_for(1) == 5 * usual
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "inf")
    assert isl_operations.operations_to_wait_for(1) == isl_operations.PLAN_OPERATIONS


@pytest.mark.parametrize("strategy", ["sequence", "fused", "megakernel", "overlap", "auto"])
def test_such_lists_have_the_bits_of_unfused_ones(few, strategy):
    """Also where the operations end in the middle of what is found out."""
    start = np.arange(2 * N, dtype=np.float32).reshape(N, 2)
    results = []
    for name, operations in (("unfused", 1), *((strategy, n) for n in (0, 300_000))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(isl_operations, "WAITING_OPERATIONS", operations)
            x = fq.Buffer(start.copy())
            with fq.FusionQueue("reference") as queue:
                with fq.fusion(queue, strategy=name) as fusion:
                    for kernel, items, *arguments in transform(x):
                        queue.submit(kernel, items, *arguments)
                queue.wait()
            assert fusion.report is not None
            results.append(x.numpy().tobytes())
    assert len(set(results)) == 1


def sweeps(x: Any, n: int) -> list[Any]:
    """Along rows, then down columns: each direction is one stage of work-items by themselves."""
    rows = [(down_row, n, x, k) for k in range(1, 8)]
    return rows + [(down_column, n, x, k) for k in range(n - 7, n)]


def test_stages_of_very_many_submissions_wait_for_all_of_each_other(monkeypatch):
    """Their relation, of a part for each pair, is not put together."""
    asked: list[int] = []
    original = stage_relations._relation

    def counted(analysis: Any, first: Any, second: Any, pairs: Any) -> Any:
        asked.append(len(pairs))
        return original(analysis, first, second, pairs)

    monkeypatch.setattr(stage_relations, "_relation", counted)
    listed = submissions(*sweeps(np.zeros((BIG, BIG)), BIG))
    options = FusionOptions(strategy="megakernel")
    make_plan(listed, options, REFERENCE)
    assert max(asked) > 100
    asked.clear()
    monkeypatch.setattr(stage_relations, "MOST_PAIRS", 100)
    make_plan(listed, options, REFERENCE)
    assert max(asked, default=0) <= 100


@pytest.mark.parametrize("most", [0, 100, 1024])
def test_persistent_kernels_of_such_stages_are_right(monkeypatch, most):
    monkeypatch.setattr(stage_relations, "MOST_PAIRS", most)
    n = 20
    wanted = np.arange(n * n, dtype=np.float32).reshape(n, n)
    x = fq.Buffer(wanted.copy())
    for k in range(1, 8):
        wanted[:, k] += wanted[:, k - 1]
    for k in range(n - 7, n):
        wanted[k] -= wanted[k - 1]
    with fq.FusionQueue("reference") as queue:
        with fq.fusion(queue, strategy="megakernel", barriers="none") as fusion:
            for kernel, items, *arguments in sweeps(x, n):
                queue.submit(kernel, items, *arguments)
        queue.wait()
    assert fusion.report is not None and fusion.report.strategy == "megakernel"
    assert x.numpy().tobytes() == wanted.tobytes()
