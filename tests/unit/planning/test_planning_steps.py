"""Planning stops between any two of its questions, and goes on to the same plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import questions
from fusionq.base.options import FusionOptions
from fusionq.planning.planner import Planning, make_plan
from tests.unit.lists import Flagged, submissions
from tests.unit.targets import REFERENCE

N = 40


@fq.kernel
def gather(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] + a[(i + 1) % 40] + a[(i + 2) % 40] + a[i // 2]
    if i % 2 == 0:
        b[i] = b[i] + 1
    if i % 3 == 0:
        b[i + 39 - 2 * i] = a[i]


@fq.kernel
def scale(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] * 2


def listed() -> list[Any]:
    a, b, c = (np.zeros(N, np.float32) for _ in range(3))
    tmp = Flagged(np.zeros(N, np.float32), private=True)
    return submissions(
        (scale, N, a, tmp), (scale, N, tmp, b), (gather, N, b, c), (gather, N, c, a),
        (scale, N, a, b),
    )  # fmt: skip


@pytest.mark.parametrize("strategy", ["auto", "megakernel", "overlap"])
def test_it_stops_after_each_question_and_makes_the_same_plan(
    monkeypatch: pytest.MonkeyPatch, strategy: Any
) -> None:
    """No question is answered twice, and between two stops there is no more than one, with what it
    is asked for."""
    found = 0
    original = questions.KnownAnswer

    def counted(*arguments: Any) -> Any:
        nonlocal found
        found += 1
        return original(*arguments)

    monkeypatch.setattr(questions, "KnownAnswer", counted)
    options = FusionOptions(strategy=strategy)
    whole = make_plan(listed(), options, REFERENCE)
    asked, found = found, 0
    planning = Planning(listed(), options, REFERENCE)
    most = stops = 0
    while True:
        before = found
        plan = planning.go_on(lambda: found > before)  # noqa: B023  # this round's
        most = max(most, found - before)
        if plan is not None:
            break
        stops += 1
    assert plan.strategy == whole.strategy
    assert [s.submissions for s in plan.stages] == [s.submissions for s in whole.stages]
    assert [s.kernel for s in plan.stages] == [s.kernel for s in whole.stages]
    assert plan.promotions == whole.promotions
    assert found == asked
    assert stops > 20
    assert most <= 4 < asked
