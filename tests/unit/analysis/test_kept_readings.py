"""What is found out once for all plans of a process, and that no plan notices."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations, kept_readings
from fusionq.analysis.isl_operations import (
    OPERATIONS,
    PlanOperations,
    TooManyOperations,
    answered,
    plan_operations,
)
from fusionq.analysis.kept_blocks import KeptBlocks
from fusionq.analysis.kernel_accesses import KernelAccesses
from fusionq.analysis.list_analysis import KernelsRead, analyse
from fusionq.analysis.submission import Submission
from fusionq.planning.submission_check import check_submission
from tests.unit.analysis.test_readings import Counted
from tests.unit.lists import submissions


@fq.kernel
def strided(item: fq.Item, a, b, distance):
    i = item.get_id(0)
    if distance * i < a.shape[0]:
        b[i] = a[distance * i]


@fq.kernel
def hard(item: fq.Item, a, b):
    j = item.get_id(0)
    for _ in range(3):
        if j % 7 > 3:
            j = j // 2 + 5
        if j % 11 > 4:
            j = j // 3 + 9
    b[item.get_id(0)] = a[j]


@pytest.fixture(autouse=True)
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    """How often kernels are read; none has been."""
    monkeypatch.setattr(kept_readings, "_KEPT", {})
    yield Counted(monkeypatch, kept_readings, "read_accesses")


def strides(distance: int, size: int = 100) -> Submission:
    (found,) = submissions((strided, 10, np.zeros(size), np.zeros(size), distance))
    return found


def plan(submission: Submission, plan: PlanOperations | None = None, **read: bool) -> int:
    """Read the kernel for a plan; the operations that it has taken."""
    plan = plan or PlanOperations()
    before = plan.left
    with plan_operations(plan):
        assert len(accesses(submission, **read).accesses)
    return before - plan.left


def accesses(submission: Submission, own_arrays: bool = False) -> KernelAccesses:
    (found,) = analyse([submission], read=KernelsRead(own_arrays)).accesses
    return found


def test_another_plan_takes_over_what_was_read_and_what_it_took(read: Counted) -> None:
    taken = plan(strides(2))
    assert taken > 0 and read.calls == 1
    assert plan(strides(2, 200)) == taken, "of other sizes"
    assert plan(strides(2), own_arrays=True) == taken, "it has no arrays of its own"
    assert read.calls == 1


def test_submit_has_read_what_is_planned(read: Counted) -> None:
    check_submission(strides(2))
    calls = read.calls
    plan(strides(2))
    assert read.calls == calls


def test_values_that_accesses_rest_on_are_read_for_each(read: Counted) -> None:
    assert plan(strides(2)) and plan(strides(3)) and read.calls == 2
    assert plan(strides(2)) and plan(strides(3)) and read.calls == 2


def test_what_is_equal_today_is_read_by_itself(read: Counted) -> None:
    """Symbols are of equal sizes."""
    plan(strides(2))
    plan(strides(2, 10))
    assert read.calls == 2


def test_where_something_else_bounds_what_is_asked_it_is_read_anew(read: Counted) -> None:
    taken = plan(strides(2))
    calls = read.calls
    for left in (taken + OPERATIONS + 1, taken + OPERATIONS):
        plan(strides(2), PlanOperations(operations=left))
    assert read.calls == calls + 1, "of the second alone, whose last question could take less"
    many = PlanOperations()
    many.left_at_ease = 8 * OPERATIONS - 8
    assert plan(strides(2), many) and read.calls == calls + 2, "many have taken theirs in vain"
    assert plan(strides(2), PlanOperations(60.0)) and read.calls == calls + 3, "a report's"
    with plan_operations():
        answered(lambda: accesses(strides(2)))
    accesses(strides(2))
    assert read.calls == calls + 5, "inside a question, and of no plan"


def test_what_was_too_hard_is_not_kept(read: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isl_operations, "OPERATIONS", 128)
    (submission,) = submissions((hard, 100, np.zeros(100), np.zeros(100)))
    lost = []
    for _ in range(2):
        of_plan = PlanOperations()
        plan(submission, of_plan)
        lost.append(of_plan.may_lose - of_plan.left_to_lose)
    assert read.calls == 2 and lost[0] == lost[1] > 0


def test_beyond_some_all_are_forgotten(read: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_readings, "MOST", 1)
    for submission in (strides(2), strides(2, 10), strides(2)):
        plan(submission)
    assert read.calls == 3


class Even:
    """What is found of a set, with the work that it takes."""

    def __init__(self, works: int = 1) -> None:
        self.works, self.calls = works, 0

    def __call__(self) -> str:
        self.calls += 1
        for _ in range(self.works):
            isl.Set("[n] -> { : exists k : n = 2k and 3k < n + 8 }").is_empty()
        return "even"


def of(text: str) -> isl.Set:
    return isl.Set(text)


def test_blocks_find_the_same_with_as_many_operations_in_every_plan() -> None:
    kept: KeptBlocks[str] = KeptBlocks()
    find, taken = Even(), []
    for text in ("[n] -> { : n > 3 }", "[n] -> { : n > 3 }", "[n] -> { : n > 4 }"):
        with plan_operations() as plan:
            before = plan.left
            assert kept.find(1_000, of(text), "it", find) == "even"
            taken.append(before - plan.left)
    assert find.calls == 2 and taken[0] == taken[1] > 1


def test_blocks_are_told_apart() -> None:
    kept: KeptBlocks[str] = KeptBlocks()
    find, values = Even(), of("[n] -> { : n > 3 }")
    with plan_operations() as plan:
        for most, about in ((1_000, "it"), (1_000, "other"), (2_000, "it"), (1_000, "it")):
            kept.find(most, values, about, find)
        assert find.calls == 3
        plan.left = plan.kept_back + 2_000
        assert kept.find(1_000, values, "it", find) and find.calls == 4, "which could take less"
    assert kept.find(1_000, values, "it", find) and find.calls == 5, "of no plan"


def test_what_took_too_much_is_not_tried_again() -> None:
    kept: KeptBlocks[str] = KeptBlocks()
    find, values, taken = Even(1_000), of("[n] -> { : n > 3 }"), []
    for _ in range(2):
        with plan_operations() as plan:
            before = plan.left
            with pytest.raises(TooManyOperations):
                kept.answered(values, "it", find)
            taken.append((before - plan.left, plan.may_lose - plan.left_to_lose))
    assert find.calls == 1 and taken[0] == taken[1] and taken[0][1] == OPERATIONS


def test_a_question_around_a_block_has_taken_its_own() -> None:
    """As much as where the block is not known yet."""
    kept: KeptBlocks[str] = KeptBlocks()
    values, taken = of("[n] -> { : n > 3 }"), []

    def question() -> None:
        Even(3)()
        kept.find(1_000, values, "it", Even())
        Even(3)()

    for _ in range(2):
        with plan_operations() as plan:
            before = plan.left
            answered(question)
            taken.append(before - plan.left)
    assert taken[0] == taken[1] > 1


def test_blocks_beyond_some_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeptBlocks, "MOST", 1)
    kept: KeptBlocks[str] = KeptBlocks()
    find = Even()
    with plan_operations():
        for size in (3, 4, 5, 3):
            kept.find(1_000, of(f"[n] -> {{ : n > {size} }}"), "it", find)
    assert find.calls == 4
