"""What questions to isl may take: its operations are counted, for each question and for a list."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TypeVar

import islpy as isl

from fusionq.base.config import planning_seconds
from fusionq.base.steps import Steps

T = TypeVar("T")

ISL_LOCK = threading.RLock()
"""Held by who asks isl: its context serves one thread at a time."""

OPERATIONS = 30_000
"""isl operations that one question may take.  Ordinary questions take a few hundred; one about
several strides at once can take hours.  An operation takes 0.1 µs where sets are small, and some
microseconds where they have grown."""

OPERATIONS_FOR_OTHERS = 8_000
"""Those for finding out for which other values an answer holds, where there is another way: one
that proves nothing is given for all, another one for today's scalars."""

FEWEST_FOR_OTHERS = 300
"""The same, once ``LOST_FOR_OTHERS`` operations have been taken for that in vain."""

LOST_FOR_OTHERS = 400_000
"""Operations that the questions about a list may take so, each a fiftieth of what is left at most:
0.2 s."""

PLAN_OPERATIONS = 64_000_000
"""isl operations that all questions about a list together may take where nobody waits for its plan.
Equal questions are answered once, so that it does for long lists too."""

WAITING_OPERATIONS = 12_000_000
"""The same where a program waits for the plan: about 5 s."""

WAITING_SUBMISSIONS = 256
"""Submissions of a list for which that is; longer ones may take more in proportion."""

LOOKED_UP = 30
"""Operations as which an answer that is looked up counts: 20 µs of Python."""

ASKED = 400
"""Operations as which a question that is asked counts, beside those of isl."""

PROJECTED = 1_000
"""The same for a part of a set whose quotients are projected out and whose constraints are read."""

FEWEST_OPERATIONS = 3_000
"""The same for each question of a list of which many others have remained without an answer."""

LOST_AT_EASE = 240_000
"""Operations that questions about a list may take in vain, each an eighth of what is left at
most."""

_ORDINARY = 1024
"""More operations than ordinary questions take."""

PLAN_LOST = 600_000
"""Operations that questions without an answer may take together, for a list: 0.3 to 1 s."""

CHECK_LOST = 200_000
"""The same, for the checks of one submission."""

clock: Callable[[], float] = time.thread_time
"""The seconds of reports, which are no plans: of the thread's own work, whatever else runs."""

_ONE = isl.Val.one(isl.DEFAULT_CONTEXT)

TOO_HARD = "the integer sets of this question are too hard to decide"


class TooManyOperations(Exception):
    """A question to isl takes more than it may; the text says why there is no answer."""


class OuterTooHard(TooManyOperations):
    """A question in which another is asked has taken what it may before that."""


class PlanTooHard(TooManyOperations):
    """The questions about a list have together taken what they may: there are no more answers."""


class Interrupted(Exception):
    """It is time to stop; what has been answered is kept."""


class PlanOperations:
    """What the questions about a list may take together, and what is left: operations (None:
    ``PLAN_OPERATIONS``), of which ``lost`` for those that remain without an answer.  None is
    answered ``seconds`` of processor time after the first: never of a plan, which does not depend
    on how fast the machine is."""

    def __init__(
        self, seconds: float = inf, lost: int = PLAN_LOST, operations: int | None = None
    ) -> None:
        self.allowed = self.left = PLAN_OPERATIONS if operations is None else operations
        self.kept_back = 0
        """Of what is left, what is for questions to come."""
        self.may_lose = self.left_to_lose = lost
        self.left_for_others = LOST_FOR_OTHERS
        self.left_at_ease = LOST_AT_EASE
        self.seconds = seconds
        self.until = clock() + seconds
        self.stops: Callable[[], bool] = lambda: False
        """Whether it is time to stop."""
        self.may_stop = False
        """Whether that is possible now."""
        self.asked = 0
        """The questions of the step that is being taken, known ones too, but for those that have
        been asked inside of answers."""
        self._stopped: tuple[int, tuple[int, ...]] | None = None
        """At which question of it that stopped before, and what was left then."""
        self._goes_on = False
        """Whether it is at that question."""

    def begin_step(self) -> tuple[int, ...]:
        """What is left where a step is begun, or begun again."""
        self.asked, self._goes_on = 0, False
        return self.all_left

    @property
    def all_left(self) -> tuple[int, ...]:
        """What is left of each kind."""
        return self.left, self.left_to_lose, self.left_for_others, self.left_at_ease

    def stop_step(self, before: tuple[int, ...]) -> None:
        """Leave what was left ``before`` the step, which is done again: up to the question where it
        stops now it takes what it has taken."""
        asked = self.asked
        self._stopped = asked, self.begin_step()
        self._leave(before)

    def end_step(self) -> None:
        """The step is done."""
        self._stopped = None

    def next_question(self) -> None:
        """A step that has stopped here before goes on with what was left then: how often planning
        has stopped makes no difference to what it finds out."""
        self.asked += 1
        self._goes_on = self._stopped is not None and self.asked == self._stopped[0]
        if self._goes_on and self._stopped is not None:
            self._leave(self._stopped[1])
            self._stopped = None

    @property
    def may_stop_here(self) -> bool:
        """Whether it is possible to stop: not where the step has stopped before, nor once nothing
        is answered any longer, which what is asked again would be."""
        some_left = self.left > self.kept_back and self.left_to_lose > 0
        return self.may_stop and some_left and self._stopped is None and not self._goes_on

    def _leave(self, left: tuple[int, ...]) -> None:
        self.left, self.left_to_lose, self.left_for_others, self.left_at_ease = left

    def spend(self, operations: int) -> None:
        """Take so many; what is kept back is not taken."""
        self.left = max(self.left - operations, min(self.left, self.kept_back))


def operations_to_wait_for(submissions: int) -> int:
    """The operations of so many submissions where a program waits for their plan, with the seconds
    that it may wait (``planning_seconds``): in proportion, where these are more than usual."""
    share = max(submissions / WAITING_SUBMISSIONS, 1.0) * max(planning_seconds(), 1.0)
    return int(min(WAITING_OPERATIONS * share, PLAN_OPERATIONS))


_plan: PlanOperations | None = None
"""Of the list that is being analysed now; isl's context, too, serves one at a time."""


def plan_now() -> PlanOperations | None:
    """What is left to the plan that is made now."""
    return _plan


@contextmanager
def plan_operations(plan: PlanOperations | None = None) -> Iterator[PlanOperations]:
    """Bound what the questions inside the block, about one list, take together: what ``plan`` has
    left.  Once they have taken it, they raise PlanTooHard."""
    global _plan
    plan = plan or PlanOperations()
    outer, _plan = _plan, plan
    try:
        yield plan
    finally:
        _plan = outer


@contextmanager
def keeping_back(share: float) -> Iterator[None]:
    """Leave a share of what the plan has left now to the questions that come after the block."""
    plan = _plan
    if plan is None:
        yield
        return
    before = plan.kept_back
    plan.kept_back = max(before, int(plan.left * share))
    try:
        yield
    finally:
        plan.kept_back = before


def count_operations(operations: int) -> None:
    """What is done beside isl counts as so many of the plan's operations."""
    if _plan is not None:
        _plan.spend(operations)


def in_steps(find: Callable[[], T]) -> Steps[T]:
    """What ``find`` returns, which asks any number of questions: where it is time to stop between
    two of them, that is a step, and it is called again, which finds their answers known."""
    while True:
        plan = _plan
        if plan is None:
            return find()
        plan.may_stop = True
        before = plan.begin_step()
        try:
            found = find()
            plan.end_step()
            return found
        except Interrupted:
            plan.stop_step(before)
        finally:
            plan.may_stop = False
        yield "analysis"


def stop_if_late(is_new: bool = True) -> None:
    """To be called before each question; inside ``in_steps`` raise Interrupted if it ``is_new`` and
    it is time to stop."""
    if _plan is not None:
        _plan.next_question()
        if is_new and _plan.may_stop_here and _plan.stops():
            raise Interrupted


@contextmanager
def inside_answer() -> Iterator[None]:
    """What is asked inside the block is part of an answer, and asked no more once that is known."""
    plan = _plan
    asked = 0 if plan is None else plan.asked
    yield
    if plan is not None:
        plan.asked = asked


def answered(question: Callable[[], T], questions: int = 1) -> T:
    """What ``question``, which asks isl about that many ``questions``, returns.  TooManyOperations
    where it takes too many; PlanTooHard where the plan has none left.  Inside it others may be
    answered, with operations of their own."""
    most = questions * of_one_question()
    try:
        with limited_operations(most):
            return question()
    except LimitReached as error:
        raise lost(most) from error


def lost(most: int) -> TooManyOperations:
    """A question has taken ``most`` operations in vain; what it raises."""
    if _plan is not None:
        _plan.left_to_lose -= most
        _plan.left_at_ease -= most
    return TooManyOperations(TOO_HARD)


def found_within(operations: int, find: Callable[[], T]) -> T | None:
    """What ``find`` returns, if isl takes so many operations at most; None if not, and nobody else
    may take fewer for that."""
    try:
        with limited_operations(operations):
            return find()
    except LimitReached:
        return None


def of_one_question() -> int:
    """The operations that a question may take: fewer where many have taken theirs in vain, since
    those that follow are mostly like them."""
    if _plan is None or _plan.may_lose != PLAN_LOST:
        return OPERATIONS
    return min(OPERATIONS, max(_plan.left_at_ease // 8, FEWEST_OPERATIONS))


_ISL_IS_WRONG = "tableau does not correspond to original basic map"
"""What isl (0.27) says where it finds an error of its own, in ``isl_coalesce.c``, rarely: the
question has no answer then."""


class LimitReached(TooManyOperations):
    """A block has reached its own limit."""


class limited_operations:
    """Raise TooManyOperations where isl takes more than ``most`` operations inside the block; a
    block inside it has operations of its own.  PlanTooHard where the plan has none left.

    A class, as contextlib's take twice as long, and there are some thousands for a list.
    """

    __slots__ = ("_limit", "_most", "_outer", "_plan")

    def __init__(self, most: int) -> None:
        self._most = most

    def __enter__(self) -> None:
        context = isl.DEFAULT_CONTEXT
        self._plan, self._outer = _plan, context.get_max_operations()
        plan, outer, self._limit = self._plan, self._outer, self._most
        if outer and _reached(context, outer):
            raise OuterTooHard(TOO_HARD)
        if plan is not None:
            if outer:
                plan.spend(_operations(context))
                context.set_max_operations(outer)
            _check(plan)
            self._limit = min(self._limit, plan.left - plan.kept_back)
        context.reset_operations()
        context.set_max_operations(self._limit)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        context = isl.DEFAULT_CONTEXT
        try:
            if error is None:
                _check_limit(context, self._limit, self._most)
            elif isinstance(error, Exception) and not isinstance(error, TooManyOperations):
                # isl says where it could not go on by an error, or by None for a text.
                _check_limit(context, self._limit, self._most, error)
                if isinstance(error, isl.Error) and _ISL_IS_WRONG in str(error):
                    raise LimitReached(TOO_HARD) from error
        finally:
            if self._plan is not None:
                self._plan.spend(_operations(context))
            context.reset_operations()
            context.set_max_operations(self._outer)


def _check_limit(
    context: isl.Context, limit: int, most: int, cause: Exception | None = None
) -> None:
    """Raise if isl has reached its limit: what it returned since may be wrong."""
    if not _reached(context, limit):
        return
    if _plan is not None and limit < most:
        _plan.left = min(_plan.left, _plan.kept_back)
        _check(_plan)
    raise LimitReached(TOO_HARD) from cause


def nothing_left() -> str | None:
    """Why no question about the list is answered any longer; None if they are."""
    try:
        if _plan is not None:
            _check(_plan)
    except PlanTooHard as error:
        return str(error)
    return None


def _check(plan: PlanOperations) -> None:
    if plan.until < inf and clock() > plan.until:
        raise PlanTooHard(
            f"the questions about this list have taken the {plan.seconds:g} s that they may take "
            "together"
        )
    if plan.left_to_lose <= 0:
        raise PlanTooHard(
            "questions about this list that are too hard to decide have taken the "
            f"{plan.may_lose} steps that they may take together"
        )
    if plan.left <= plan.kept_back:
        raise PlanTooHard(
            f"the questions about this list have taken all of the {plan.allowed:,} steps that they "
            "may take together"
        )


def _operations(context: isl.Context) -> int:
    """About how many operations isl has counted since the last reset: at most twice what it
    has, found by trying, as it does not tell.  Sets another limit."""
    most, steps = _ORDINARY, _ORDINARY.bit_length() - 1
    if _has_counted(context, most):
        while _has_counted(context, most):
            most *= 2
        return most
    counted = 0
    while steps > counted:  # fewer than two to the power of ``steps``
        middle = (counted + steps) // 2
        if _has_counted(context, 1 << middle):
            counted = middle + 1
        else:
            steps = middle
    return 1 << steps


def _has_counted(context: isl.Context, operations: int) -> bool:
    """As ``_reached``, for what is likely to be: isl says it by None for a text, 40 times as fast
    as by an error."""
    context.set_max_operations(operations)
    try:
        return _ONE.to_str() is None
    except isl.Error:
        return True


def _reached(context: isl.Context, operations: int) -> bool:
    """Whether isl has counted so many since the last reset.  Sets another limit."""
    context.set_max_operations(operations)
    try:
        isl.Val.zero(context)  # an operation
    except isl.Error:
        return True
    return False


def most_for_others() -> int:
    """The operations that it may take to find out for which other values an answer holds."""
    if _plan is None:
        return OPERATIONS_FOR_OTHERS
    return min(OPERATIONS_FOR_OTHERS, max(_plan.left_for_others // 50, FEWEST_FOR_OTHERS))


def lose_for_others(operations: int) -> None:
    """These were taken in vain."""
    if _plan is not None:
        _plan.left_for_others -= operations
