"""Questions to isl take a bounded number of operations, and so do all of a plan."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations, proof
from fusionq.analysis.isl_operations import (
    TOO_HARD,
    PlanTooHard,
    TooManyOperations,
    answered,
    limited_operations,
    plan_operations,
)
from fusionq.analysis.proof import Proofs
from fusionq.analysis.symbols import Symbols
from fusionq.base.options import FusionOptions
from fusionq.planning.planner import make_plan
from tests.unit.lists import Flagged, submissions
from tests.unit.targets import REFERENCE


def work(operations: int) -> None:
    for _ in range(operations):
        isl.Val.zero(isl.DEFAULT_CONTEXT)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    yield
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0
    assert isl_operations._plan is None


def test_a_question_is_bounded(monkeypatch):
    monkeypatch.setattr(isl_operations, "OPERATIONS", 1000)
    answered(lambda: work(900))
    with pytest.raises(TooManyOperations, match=TOO_HARD):
        answered(lambda: work(1100))
    answered(lambda: work(1900), questions=2)


def test_a_question_is_asked_once_and_no_clock_decides(monkeypatch):
    """A plan is the same on a slow machine."""
    attempts: list[int] = []

    def ask(operations: int) -> str:
        attempts.append(operations)
        work(operations)
        return "known"

    monkeypatch.setattr(isl_operations, "clock", count(step=3600).__next__)
    with plan_operations():
        assert answered(lambda: ask(29_000)) == "known"
        with pytest.raises(TooManyOperations):
            answered(lambda: ask(31_000))
        assert answered(lambda: ask(20_000)) == "known"
    assert attempts == [29_000, 31_000, 20_000]


def test_questions_after_those_without_an_answer_may_take_less(monkeypatch):
    """But not less than ``FEWEST_OPERATIONS``, until the plan has lost all that it may; the checks
    of a submission, which have to be exact, take what they need."""
    with plan_operations() as plan:
        lost = 0
        while plan.left_at_ease >= 8 * isl_operations.FEWEST_OPERATIONS:
            with pytest.raises(TooManyOperations, match=TOO_HARD):
                answered(lambda: work(isl_operations.OPERATIONS + 1))
            lost += 1
        assert 10 < lost < 25
        assert plan.left_to_lose > plan.may_lose - isl_operations.LOST_AT_EASE
        answered(lambda: work(isl_operations.FEWEST_OPERATIONS - 100))
        with pytest.raises(TooManyOperations, match=TOO_HARD):
            answered(lambda: work(isl_operations.FEWEST_OPERATIONS + 100))
        answered(lambda: work(2 * isl_operations.FEWEST_OPERATIONS - 200), questions=2)
    check = isl_operations.PlanOperations(lost=isl_operations.CHECK_LOST)
    with plan_operations(check):
        for _ in range(4):
            with pytest.raises(TooManyOperations, match=TOO_HARD):
                answered(lambda: work(isl_operations.OPERATIONS + 1))
        answered(lambda: work(isl_operations.OPERATIONS - 100))


def test_a_text_that_isl_cannot_read_to_its_end_counts_too():
    """isl then complains about the text."""
    with pytest.raises(TooManyOperations, match=TOO_HARD), limited_operations(20):
        isl.Map("{ [i, j, k] -> [l] : 0 <= i < 7 and 3j = 2k + i and l = i + j }")


def test_other_errors_of_isl_pass_through():
    with pytest.raises(isl.Error):
        answered(lambda: isl.Map("{ [i -> }"))


def test_where_isl_finds_itself_wrong_there_is_no_answer():
    """Found by random lists: ``isl_map_coalesce`` of the elements that a group kernel stores to."""

    def question():
        raise isl.Error(
            "call to isl_map_coalesce failed: original tableau does not correspond to original "
            "basic map in isl_coalesce.c:3157"
        )

    with pytest.raises(TooManyOperations, match="too hard to decide"):
        answered(question)


def test_what_isl_returns_beyond_its_limit_is_not_believed():
    """It returns no text then, and raises no error."""
    values = isl.Set("[n] -> { : n >= 3 }")

    def text() -> str:
        work(limit - 1)
        with suppress(isl.Error):
            work(2)
        return str(values.to_str())

    limit = isl_operations.OPERATIONS
    with pytest.raises(TooManyOperations):
        answered(text)


def test_a_question_beyond_its_limit_asks_no_other():
    with pytest.raises(TooManyOperations), limited_operations(100):
        with suppress(isl.Error):
            work(200)
        with suppress(TooManyOperations):
            answered(lambda: work(10))


def test_a_question_that_failed_for_another_is_not_asked_again():
    attempts = []

    def outer() -> None:
        attempts.append(1)
        answered(lambda: work(isl_operations.OPERATIONS + 1))

    with pytest.raises(TooManyOperations):
        answered(outer)
    assert len(attempts) == 1


@pytest.mark.parametrize("counted", [0, 1, 5, 16, 100, 1000, 5000])
def test_operations_are_found_to_a_factor_of_two(counted):
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    for _ in range(counted):
        isl.Val.zero(context)
    try:
        found = isl_operations._operations(context)
    finally:
        context.reset_operations()
        context.set_max_operations(0)
    assert counted < found <= 2 * (counted + 10)  # trying counts too


def test_a_block_inside_has_operations_of_its_own():
    with limited_operations(1000):
        work(600)
        with limited_operations(1000):
            work(900)
        work(600)
        with pytest.raises(TooManyOperations), limited_operations(1000):
            work(1100)
        work(600)


def test_the_questions_of_a_plan_are_bounded_together(monkeypatch):
    monkeypatch.setattr(isl_operations, "PLAN_OPERATIONS", 5000)
    with plan_operations():
        for _ in range(4):  # what a question takes is rounded up, to twice at most
            answered(lambda: work(1000))
        count = 0
        with pytest.raises(PlanTooHard, match="all of the 5,000 steps"):
            for _ in range(10):
                answered(lambda: work(200))
                count += 1
        assert count <= 5
        with pytest.raises(PlanTooHard):
            answered(lambda: None)
    answered(lambda: work(10))


@pytest.mark.parametrize("operations", [5, 60, 400, 1900])
def test_what_a_question_takes_is_counted_to_within_a_factor_of_two(operations):
    plan = isl_operations.PlanOperations()
    with plan_operations(plan):
        answered(lambda: work(operations))
    found = 10  # operations that finding out takes
    assert operations <= plan.allowed - plan.left <= 2 * (operations + found)


def test_the_operations_of_a_plan_go_on_where_they_were(monkeypatch):
    monkeypatch.setattr(isl_operations, "PLAN_OPERATIONS", 5000)
    operations = isl_operations.PlanOperations()
    with pytest.raises(PlanTooHard):
        for _ in range(10):
            with plan_operations(operations):
                answered(lambda: work(900))
    assert operations.left <= 0


def test_after_its_seconds_a_plan_has_no_answers(monkeypatch):
    now = 100.0
    monkeypatch.setattr(isl_operations, "clock", lambda: now)
    with plan_operations(isl_operations.PlanOperations(seconds=2)):
        now += 2
        answered(lambda: work(10))
        now += 0.1
        with pytest.raises(PlanTooHard, match="have taken the 2 s that they may take together"):
            answered(lambda: work(10))


def test_the_report_of_a_list_that_ran_unfused_is_bounded_in_time(monkeypatch):
    """A clock that says with each look that a second has passed."""
    monkeypatch.setattr(isl_operations, "clock", count().__next__)
    a, b = fq.Buffer(np.zeros(64)), fq.Buffer(np.zeros(64))
    with fq.FusionQueue("reference") as queue:
        queue.start_fusion()
        for _ in range(3):
            queue.submit(twice, 64, a, b)
            queue.submit(twice, 64, b, a)
        queue.cancel_fusion()
        report = queue.last_report
    assert report is not None
    dependences = report.dependences
    assert dependences and {d.scope for d in dependences} == {"UNKNOWN"}
    assert "the 5 s that they may take together" in dependences[-1].reason


def test_one_question_takes_no_more_than_the_plan_has_left(monkeypatch):
    monkeypatch.setattr(isl_operations, "PLAN_OPERATIONS", 500)
    with plan_operations(), pytest.raises(PlanTooHard):
        answered(lambda: work(501))


def test_what_a_question_takes_around_another_counts(monkeypatch):
    monkeypatch.setattr(isl_operations, "PLAN_OPERATIONS", 2000)
    with pytest.raises(PlanTooHard), plan_operations(), limited_operations(30_000):
        for _ in range(3):
            work(700)
            with limited_operations(30_000):
                work(1)


def test_questions_without_an_answer_are_bounded_together():
    """Of those that have one, only what all may take together counts."""

    def hard() -> None:
        asked.append(1)
        work(isl_operations.OPERATIONS + 1)

    asked: list[int] = []
    lost = 5 * isl_operations.OPERATIONS
    with plan_operations(isl_operations.PlanOperations(lost=lost)):
        for _ in range(20):
            answered(lambda: work(isl_operations.OPERATIONS - 100))
        for _ in range(10):
            with suppress(TooManyOperations):
                answered(hard)
        with pytest.raises(PlanTooHard, match=f"too hard to decide have taken the {lost} steps"):
            answered(lambda: work(10))
    assert len(asked) == 5


def test_for_which_other_values_nothing_is_proved_takes_few_operations(monkeypatch):
    """Where it is not known, that nothing is proved holds for all."""
    symbols = Symbols()
    symbols.size(2)
    relation = isl.Map("[n0] -> { [i] -> [j] : 3i < 2j <= 1 + 3i and 0 < i and j <= n0 + 4 }")
    for most, known in ((10, 0), (isl_operations.OPERATIONS_FOR_OTHERS, 1)):
        monkeypatch.setattr(isl_operations, "OPERATIONS_FOR_OTHERS", most)
        proofs = Proofs(symbols)
        with plan_operations() as plan:
            assert not proofs.is_empty(isl.Map("[n0] -> { [i] -> [i] : 0 <= i < n0 - 1 }"))
            assert not proofs.is_empty(relation)
            assert plan.left_to_lose == plan.may_lose
        assert len(proofs.conditions) == known


def test_what_is_too_hard_for_all_scalars_is_proved_for_todays(monkeypatch):
    symbols = Symbols()
    symbols.size(64), symbols.scalar(4)
    relation = isl.Map("[n0, s0] -> { [i] -> [j] : 0 <= i < n0 and j = i + s0 - 4 and j > i }")
    proofs = Proofs(symbols)
    assert proofs.is_empty(relation)
    other, least = Symbols(), Symbols()
    other.size(64), other.scalar(3), least.size(64), least.scalar(5)
    assert Proofs(other).rest_on(proofs.conditions)
    assert not Proofs(least).rest_on(proofs.conditions)

    monkeypatch.setattr(isl_operations, "OPERATIONS_FOR_OTHERS", 1)
    monkeypatch.setattr(isl_operations, "FEWEST_FOR_OTHERS", 1)
    proofs = Proofs(symbols)
    with plan_operations():
        assert proofs.is_empty(relation)
    today = [(name, symbols.values[name]) for name in proofs.today]
    assert today == [("s0", 4)]
    assert proofs.rest_on(proofs.conditions, today)
    assert not Proofs(other).rest_on(proofs.conditions, today)
    larger = Symbols()
    larger.size(1000), larger.scalar(4)
    assert Proofs(larger).rest_on(proofs.conditions, today)


@pytest.mark.parametrize("scalar", [4, None])
def test_a_question_that_was_given_up_leaves_no_conditions(monkeypatch, scalar):
    """Neither for today's scalars, nor where there are none."""
    symbols = Symbols()
    symbols.size(64)
    symbols.scalar(scalar) if scalar else symbols.size(4)
    nonempty = isl.Set(f"[{', '.join(symbols.names)}] -> {{ : n0 < {symbols.names[-1]} - 8 }}")
    original = Proofs._conditions

    def hard(proofs: Proofs, values: isl.Set, inside: bool) -> list[tuple[isl.Set, bool]]:
        found = original(proofs, values, inside)
        assert found
        with suppress(isl.Error):
            work(isl_operations.OPERATIONS + 1)
        return found

    monkeypatch.setattr(Proofs, "_conditions", hard)
    proofs = Proofs(symbols)
    with plan_operations():
        assert not proofs.is_empty(nonempty)
    assert proofs.conditions == []


def test_scalars_that_vary_are_not_those_of_today(monkeypatch):
    symbols = Symbols(varying=frozenset([4]))
    symbols.size(64), symbols.scalar(4)
    assert not symbols.scalars_of(frozenset({"n0", "s0"}))
    assert not symbols.scalars_of(frozenset({"n0"}))
    steady = Symbols()
    steady.size(64), steady.scalar(4)
    found = steady.scalars_of(frozenset({"n0", "s0"}))
    assert found == {"s0"}
    assert steady.at_today(found).is_equal(isl.Set("[n0, s0] -> { : s0 = 4 }"))


def test_what_is_tried_in_vain_is_tried_with_less_later(monkeypatch):
    most: list[int] = []
    original = limited_operations.__init__

    def limited(block: limited_operations, operations: int) -> None:
        most.append(operations)
        original(block, operations)

    def vain(values: isl.Set, inside: bool) -> list[tuple[isl.Set, bool]]:
        work(isl_operations.OPERATIONS_FOR_OTHERS + 1)

    symbols = Symbols()
    symbols.size(2)
    proofs = Proofs(symbols)
    values = isl.Set("[n0] -> { : n0 >= 2 }")
    monkeypatch.setattr(proofs, "_conditions", vain)
    monkeypatch.setattr(isl_operations, "LOST_FOR_OTHERS", 3 * isl_operations.OPERATIONS_FOR_OTHERS)
    monkeypatch.setattr(limited_operations, "__init__", limited)
    with plan_operations() as plan:
        while plan.left_for_others > 0:
            proofs._try_to_remember(values, inside=True)
    assert most == sorted(most, reverse=True)
    assert most[0] == 3 * isl_operations.OPERATIONS_FOR_OTHERS // 50
    assert most[-1] == isl_operations.FEWEST_FOR_OTHERS
    assert sum(most) < 3 * isl_operations.OPERATIONS_FOR_OTHERS + isl_operations.FEWEST_FOR_OTHERS
    assert proofs.conditions == []


def test_where_it_is_too_hard_to_say_for_which_values_nothing_is_there_fewer_are_served(
    monkeypatch,
):
    """Those for which there is nothing without quotients either: more than those of today's
    scalars, and none for which there is something."""
    original = Proofs._conditions

    def hard(proofs: Proofs, values: isl.Set, inside: bool) -> list[tuple[isl.Set, bool]]:
        if any(part.dim(isl.dim_type.div) for part in values.get_basic_sets()):
            with suppress(isl.Error):
                work(isl_operations.OPERATIONS_FOR_OTHERS + 1)
        return original(proofs, values, inside)

    def symbols_of(size: int, scalar: int) -> Symbols:
        symbols = Symbols()
        symbols.size(size), symbols.scalar(scalar)
        return symbols

    monkeypatch.setattr(Proofs, "_conditions", hard)
    some = isl.Set("[n0, s0] -> { : n0 > 8 and s0 - 3*floor(s0/3) = 1 }")
    proofs = Proofs(symbols_of(4, 7))
    with plan_operations():
        assert proofs.is_empty(some)
    assert proofs.conditions
    assert Proofs(symbols_of(4, 9)).rest_on(proofs.conditions)
    assert Proofs(symbols_of(8, 10)).rest_on(proofs.conditions)
    assert not Proofs(symbols_of(9, 10)).rest_on(proofs.conditions)
    assert not Proofs(symbols_of(9, 7)).rest_on(proofs.conditions)

    today = Proofs(symbols_of(20, 6))  # inside of what is there without quotients
    with plan_operations():
        assert today.is_empty(some)
    scalar = [(name, 6) for name in today.today]
    assert scalar == [("s0", 6)]
    assert Proofs(symbols_of(30, 6)).rest_on(today.conditions, scalar)
    assert not Proofs(symbols_of(4, 9)).rest_on(today.conditions, scalar)
    assert not Proofs(symbols_of(20, 7)).rest_on(today.conditions, scalar)


def test_why_no_question_is_answered_any_longer():
    assert isl_operations.nothing_left() is None
    with plan_operations() as plan:
        assert isl_operations.nothing_left() is None
        plan.left = 0
        assert str(isl_operations.nothing_left()).endswith("steps that they may take together")
        plan.left_to_lose = 0
        why = str(isl_operations.nothing_left())
        assert why.startswith("questions about this list that are too hard")


def test_a_plan_stops_in_steps_only():
    with plan_operations() as plan:
        plan.stops = lambda: True
        isl_operations.stop_if_late()
        with pytest.raises(StopIteration):
            next(isl_operations.in_steps(lambda: None))
        isl_operations.stop_if_late()


def test_steps_stop_between_questions_and_answer_all(monkeypatch):
    """It is time to stop after every second look; where it has stopped nobody looks again."""
    known: list[int] = []
    attempts = []

    def find() -> list[int]:
        attempts.append(1)
        for k in range(5):
            isl_operations.stop_if_late(k not in known)
            if k not in known:
                known.append(k)
        return known

    looks = count(1)
    operations = isl_operations.PlanOperations()
    operations.stops = lambda: next(looks) % 2 == 0
    steps = isl_operations.in_steps(find)
    with plan_operations(operations):
        assert list(steps) == ["analysis"] * 2
        isl_operations.stop_if_late()
        isl_operations.stop_if_late()  # outside it is never time to stop
    assert known == [0, 1, 2, 3, 4]
    assert len(attempts) == 3


@pytest.mark.parametrize("looks", [1, 2, 3, 10])
def test_how_often_steps_stop_makes_no_difference_to_what_they_take(looks):
    """What is asked inside of an answer is asked no more once that is known; what has been found
    out takes less the next time."""
    known: set[str] = set()

    def ask(question: str, inner: int = 0) -> None:
        is_new = question not in known
        isl_operations.stop_if_late(is_new)
        if not is_new:
            isl_operations.count_operations(1)
            return
        isl_operations.count_operations(100)
        with isl_operations.inside_answer():
            for k in range(inner):
                ask(f"{question} {k}")
        known.add(question)

    def find() -> None:
        for k in range(4):
            ask(f"{k}", inner=3)
            ask("0")

    operations = isl_operations.PlanOperations()
    left = count()
    operations.stops = lambda: next(left) % looks == looks - 1
    with plan_operations(operations):
        stops = len(list(isl_operations.in_steps(find)))
    assert operations.allowed - operations.left == 4 * 400 + 4
    assert stops > 0


def test_what_is_kept_back_is_for_later_questions():
    operations = isl_operations.PlanOperations(operations=1000)
    with plan_operations(operations):
        too_hard = pytest.raises(PlanTooHard, match="all of the 1,000 steps")
        with isl_operations.keeping_back(0.25), too_hard:
            isl_operations.count_operations(5000)
            answered(lambda: None)
        assert operations.left == 250
        assert answered(lambda: 1) == 1
        with isl_operations.keeping_back(0.0):
            isl_operations.count_operations(250)
        assert isl_operations.nothing_left() is not None
    with isl_operations.keeping_back(0.5):  # of nobody's operations
        isl_operations.count_operations(1)


def test_too_hard_is_not_proved(monkeypatch):
    symbols = Symbols()
    symbols.size(2)
    proofs = Proofs(symbols)
    relation = isl.Map("[n0] -> { [i] -> [j] : 3i < 2j <= 1 + 3i and 0 < i and j <= n0 - 4 }")
    monkeypatch.setattr(isl_operations, "OPERATIONS", 10)
    assert not proofs.is_empty(relation) and proofs.conditions == []
    monkeypatch.undo()
    assert proofs.is_empty(relation) and len(proofs.conditions) == 1
    monkeypatch.setattr(isl_operations, "PLAN_OPERATIONS", 10)
    with plan_operations(), pytest.raises(PlanTooHard):
        proofs.is_empty(relation)


def test_what_rests_on_proofs_serves_the_values_of_a_range():
    symbols = Symbols()
    n, m = symbols.size(9), symbols.size(4)
    proofs = Proofs(symbols)
    proofs.add([(isl.Set(f"[{n}, {m}] -> {{ : 8 <= {n} < 16 }}"), True)])
    ((values, inside),) = proofs.conditions
    assert inside and values.is_equal(isl.Set(f"[{n}, {m}] -> {{ : 8 <= {n} < 16 }}"))
    assert proofs.rest_on(proofs.conditions)
    assert not proofs.rest_on([(values, False)])
    assert not proofs.rest_on(
        [*proofs.conditions, (isl.Set(f"[{n}, {m}] -> {{ : {m} > 4 }}"), True)]
    )


def test_every_condition_is_remembered_once():
    """Two answers that hold for different sizes, and one that is never in doubt."""
    symbols = Symbols()
    n, m = symbols.size(9), symbols.size(4)
    proofs = Proofs(symbols)
    longer = isl.Set(f"[{n}, {m}] -> {{ [i] : 5 <= i < {n} }}")
    shorter = isl.Set(f"[{n}, {m}] -> {{ [i] : 2 <= i < {m} }}")
    nothing = isl.Set(f"[{n}, {m}] -> {{ [i] : 8 <= i < {m} }}")
    for _ in range(2):
        assert not proofs.is_empty(longer)
        assert not proofs.is_empty(shorter)
        assert proofs.is_empty(nothing)
        assert not proofs.is_empty(isl.Set(f"[{n}, {m}] -> {{ [i] : 0 <= i < {n} }}"))
    wanted = [(f"{n} >= 6", True), (f"{m} >= 3", True), (f"{m} >= 9", False)]
    assert len(proofs.conditions) == len(wanted)
    for (values, inside), (text, where) in zip(proofs.conditions, wanted, strict=True):
        assert values.is_equal(isl.Set(f"[{n}, {m}] -> {{ : {text} }}"))
        assert inside is where
    assert {name for values, _ in proofs.conditions for name in proof.symbols_of(values)} == {n, m}


# ---------------------------------------------------------------------------------- plans
@fq.kernel
def twice(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * 2


def chain(length: int, **flags: bool):
    arrays = [np.zeros(8) for _ in range(length + 1)]
    made = [Flagged(a, **flags) if 0 < k < length else a for k, a in enumerate(arrays)]
    return submissions(*((twice, 8, made[k], made[k + 1]) for k in range(length)))


def test_a_plan_without_operations_left_is_right_and_says_why(monkeypatch):
    """Every question is unknown: nothing fuses, nothing is promoted, and the plan is there."""
    monkeypatch.setattr(isl_operations, "PLAN_OPERATIONS", 0)
    plan = make_plan(chain(3, private=True), FusionOptions(strategy="fused"), REFERENCE)
    assert [len(stage.submissions) for stage in plan.stages] == [1, 1, 1]
    assert {d.scope for d in plan.dependences} == {"UNKNOWN"}
    assert all("all of the 0 steps that they may take together" in d.reason
               for d in plan.dependences)  # fmt: skip
    assert {p.scope for p in plan.promotions} == {"global"}


def test_the_operations_of_a_plan_are_enough_for_long_lists(monkeypatch):
    """No list of ordinary questions comes near the bound."""
    spent: list[int] = []
    original = isl_operations._operations

    def counted(context):
        spent.append(original(context))
        return spent[-1]

    monkeypatch.setattr(isl_operations, "_operations", counted)
    for length in (4, 40):
        spent.clear()
        plan = make_plan(chain(length, private=True), FusionOptions(), REFERENCE)
        assert plan.strategy == "fused"
        assert sum(spent) < 0.03 * isl_operations.PLAN_OPERATIONS
