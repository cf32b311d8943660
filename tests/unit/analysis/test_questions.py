"""Which questions are equal, so that one answer serves them, and what each answer rests on."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import list_analysis
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from tests.unit.lists import Flagged, completed, submissions

N = 12


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def row(item: fq.Item, d, k):
    d[k, item.get_id(0)] = 1


@fq.kernel
def part(item: fq.Item, a, size, t):
    a[size * t + item.get_id(0)] = 1


def vectors(count, n=N):
    return [np.zeros(n, np.float32) for _ in range(count)]


@fq.kernel
def low(item: fq.Item, a):
    a[item.get_id(0)] = 1


@fq.kernel
def from_fourth(item: fq.Item, a):
    a[item.get_id(0) + 4] = 1


@fq.kernel
def in_groups(item: fq.NdItem, a):
    a[item.get_global_id(0)] = 1


class Counted:
    """Answers with the number of the question that was the first of its kind."""

    def __init__(self):
        self.calls = 0

    def __call__(self, analysis):
        self.calls += 1
        return self.calls


# ----------------------------------------------------------------------- which are equal
def kinds(*calls):
    questions = Questions(submissions(*calls))
    return [questions.kind(s) for s in range(len(calls))]


def test_submissions_of_one_kind():
    a, b, c, _ = vectors(4)
    (longer,) = vectors(1, 3 * N)
    same = [(copy, N, a, b), (copy, N, b, c)]
    assert kinds(*same) == [0, 0]
    for other in (
        (copy, N - 1, a, b),
        (copy, N, longer, b),
        (copy, N, longer[::3], b),
        (copy, N, Flagged(a, private=True), b),
        (copy, N, Flagged(a, access="local"), b),
        (copy, N, Flagged(a, internal=True), b),
    ):
        assert kinds(*same, other) == [0, 0, 1]
    d = np.zeros((N, N), np.float32)
    assert kinds((row, N, d, 3), (row, N, d, 4)) == [0, 0]


def asked(listed, members, arguments=None):
    """Which of several questions about ``members`` have one answer."""
    questions, answer = Questions(listed), Counted()
    return [questions.ask(of_one, "question", answer, arguments) for of_one in members]


def test_memory_that_a_question_is_not_about_does_not_matter():
    a, b, c, d = vectors(4)
    listed = submissions((copy, N, a, b), (copy, N, b, c), (copy, N, c, d), (copy, N, a, d))
    pairs = [(0, 1), (1, 2), (0, 3), (1, 3)]
    assert asked(listed, pairs) == [1, 1, 2, 3]
    assert asked(listed, pairs, ((), ())) == [1, 1, 1, 1]
    assert asked(listed, pairs, ((1,), (0,))) == [1, 1, 2, 2]


def test_an_answer_knows_only_the_memory_that_it_may_depend_on():
    a, b, c, _ = vectors(4)
    questions = Questions(submissions((copy, N, a, b), (copy, N, b, c)))
    found = questions.ask((0, 1), "places", lambda analysis: set(analysis.place), ((1,), (0,)))
    assert found == {(0, 1), (1, 0)}


def test_views_that_lie_alike_are_equal_wherever_they_lie():
    """Each memory from its own first view on."""
    a, b = vectors(2, 80)
    starts = [(8, 30), (12, 40), (16, 50), (20, 61)]
    listed = submissions(*((copy, N, a[k : k + N], b[j : j + N]) for k, j in starts))
    pairs = [(0, 1), (1, 2), (2, 3)]
    assert asked(listed, pairs) == [1, 1, 2]
    assert asked(listed, pairs, ((0,), (0,))) == [1, 1, 1]


def test_kernels_are_read_once(monkeypatch):
    read = []
    original = list_analysis.known_accesses
    monkeypatch.setattr(list_analysis, "known_accesses", lambda *a: read.append(1) or original(*a))
    a, b, c, _ = vectors(4)
    questions = Questions(submissions((copy, N, a, b), (copy, N, b, c), (copy, N, a, c)))
    for k, pair in enumerate([(0, 1), (0, 1), (1, 2), (0, 2)]):
        questions.ask(pair, k, lambda analysis: len(analysis.accesses))
    assert len(read) == 1


def test_lists_of_one_plan_have_answers_in_common():
    """Kinds are numbered over all of them: equal questions are told from others in any list."""
    a, b, c, d = vectors(4)
    other = np.zeros(2 * N, np.float32)
    first, answer = Questions(submissions((copy, N, a, b), (copy, N, b, c))), Counted()
    assert first.ask((0, 1), "question", answer) == 1
    listed = submissions((copy, N, other, b), (copy, N, b, c), (copy, N, c, d), (copy, N, b, d))
    second = Questions(listed, answers=first.answers)
    assert [second.ask(pair, "question", answer) for pair in [(1, 2), (0, 1), (1, 3)]] == [1, 2, 3]
    assert first.ask((0, 1), "question", answer) == 1
    assert [second.kind(s) for s in range(4)] == [1, 0, 0, 0]
    apart = Questions(listed, readings=first.readings)
    assert apart.ask((1, 2), "question", answer) == 4


# --------------------------------------------------------------------- what they rest on
def rows(*numbers):
    d = np.zeros((N, N), np.float32)
    return submissions(*((row, N, d, k) for k in numbers))


def is_empty(analysis):
    """Whether the first and the second submission share no element."""
    first, second = (analysis.elements(s, analysis.accesses[s].accesses[0]) for s in (0, 1))
    return analysis.proofs.is_empty(first.range().intersect(second.range()))


def test_an_answer_found_for_other_scalars_serves_where_it_holds():
    answer = Counted()

    def found(analysis):
        answer(analysis)
        return is_empty(analysis)

    questions = Questions(rows(3, 4, 4, 5))
    members = [(0, 1), (1, 3), (1, 2), (0, 2)]
    assert [questions.ask(pair, "shared", found) for pair in members] == [True, True, False, True]
    assert answer.calls == 2


def test_answers_of_another_list_serve_scalars_for_which_they_hold():
    answer = Counted()

    def found(analysis):
        answer(analysis)
        return is_empty(analysis)

    first = Questions(rows(3, 4))
    assert first.ask((0, 1), "shared", found)
    second = Questions(rows(5, 5, 6), answers=first.answers)
    asked = [second.ask(pair, "shared", found) for pair in [(0, 1), (0, 2), (1, 2)]]
    assert (asked, answer.calls) == ([False, True, True], 2)
    assert second.validity.result().sources  # of what the first list's answer rests on, too


def ranges(*sizes):
    """Of each pair one that writes as many elements, and one that writes from the fourth on."""
    a = np.zeros(N, np.float32)
    kernels = (low, from_fourth) * len(sizes)
    return submissions(*((kernel, n, a) for kernel, n in zip(kernels, sizes, strict=False)))


def ask_of_ranges(*sizes, **options):
    """For each pair of sizes whether it shares no element, the number of questions asked, and what
    the answers rest on."""
    answer = Counted()

    def found(analysis):
        answer(analysis)
        return is_empty(analysis)

    questions = Questions(ranges(*sizes))
    pairs = [(s, s + 1) for s in range(0, len(sizes), 2)]
    answers = [questions.ask(pair, "apart", found, **options) for pair in pairs]
    return answers, answer.calls, questions.validity.result()


def test_an_answer_found_for_other_sizes_serves_where_it_holds():
    assert ask_of_ranges(4, 3, 3, 2)[:2] == ([True, True], 2)
    assert ask_of_ranges(4, 3, 3, 2, other_sizes=True)[:2] == ([True, True], 1)
    # What it rests on does not hold, or sizes are in another order, or equal.
    assert ask_of_ranges(4, 3, 6, 5, other_sizes=True)[:2] == ([True, False], 2)
    assert ask_of_ranges(4, 3, 2, 3, other_sizes=True)[:2] == ([True, True], 2)
    assert ask_of_ranges(4, 3, 3, 3, other_sizes=True)[:2] == ([True, True], 2)
    assert ask_of_ranges(4, 3, N, 3, other_sizes=True)[:2] == ([True, False], 2)


SERVED = [((4, 1, 3, 2), (6, 1, 3, 2)), ((2, 1, 4, 3), (2, 1, 6, 3))]
"""Sizes, and others in the same order of which one pair has elements in common."""


@pytest.mark.parametrize(("sizes", "wrong"), SERVED)
def test_an_answer_that_serves_other_sizes_rests_on_all_of_them(sizes, wrong):
    _, calls, validity = ask_of_ranges(*sizes, other_sizes=True)
    assert calls == 1
    assert validity.holds(ranges(*sizes))
    assert not validity.holds(ranges(*wrong))


@pytest.mark.parametrize(("sizes", "wrong"), SERVED)
def test_an_answer_that_serves_other_sizes_is_part_of_others(sizes, wrong):
    questions = Questions(ranges(*sizes))

    def both(_):
        return [questions.ask(pair, "apart", is_empty, other_sizes=True) for pair in pairs]

    pairs = (0, 1), (2, 3)
    assert questions.ask(range(4), "all apart", both) == [True, True]
    validity = questions.validity.result()
    assert validity.holds(ranges(*sizes))
    assert not validity.holds(ranges(*wrong))


def test_explicit_work_groups_are_no_sizes_that_may_differ():
    answer = Counted()
    a = np.zeros(N, np.float32)
    ranges_ = [fq.NdRange(12, 4), fq.NdRange(8, 4), fq.NdRange(8, 2)]
    questions = Questions(submissions(*((in_groups, r, a) for r in ranges_)))
    found = [questions.ask((s,), "any", answer, other_sizes=True) for s in range(3)]
    assert found == [1, 2, 3]


def test_an_answer_rests_on_those_that_it_was_found_by():
    """However deep they lie, and also where it is used again."""
    questions = Questions(rows(3, 4, 5, 6, 7))

    def of(analysis, pair, question="shared"):
        return questions.ask(pair, question, is_empty)

    def middle(pair):
        return lambda analysis: of(analysis, pair)

    def outer(members):
        first, second = members[:2], members[1:]

        def answer(analysis):
            return questions.ask(first, "middle", middle(first)) and of(analysis, second)

        return answer

    for members in ((0, 1, 2), (1, 2, 3)):
        assert questions.ask(members, "outer", outer(members))
    validity = questions.validity.result()
    assert validity.holds(rows(1, 2, 3, 4, 5))
    for wrong in ((1, 1, 3, 4, 5), (1, 2, 2, 4, 5), (1, 2, 3, 3, 5)):
        assert not validity.holds(rows(*wrong))
    # The last two are in no question.
    assert validity.holds(rows(1, 2, 3, 4, 4))
    # An answer that was found for other scalars serves only where what it rests on holds.
    alike = Questions(rows(3, 4, 5, 5, 6))
    calls = []

    def whole(members):
        def answer(analysis):
            calls.append(members)
            pairs = members[:2], members[1:]
            return [alike.ask(pair, "middle", lambda _, p=pair: alike.ask(p, "shared", is_empty))
                    for pair in pairs]  # fmt: skip

        return answer

    found = [alike.ask(m, "whole", whole(m)) for m in ((0, 1, 2), (1, 2, 3), (2, 3, 4), (0, 1, 4))]
    assert found == [[True, True], [True, False], [False, True], [True, True]]
    assert calls == [(0, 1, 2), (1, 2, 3), (2, 3, 4)]


@pytest.mark.parametrize("first", [0, 1])
def test_what_varies_is_never_pinned(first):
    """``size * t`` is affine where one of the two has today's value; where ``t`` varies that is
    ``size``, also for those who ask after a submission whose ``t`` does not vary."""
    a = np.zeros(8 * N, np.float32)
    listed = submissions((part, N, a, N, 2), (part, N, a, N, 3))
    questions = Questions(listed, varying=[(1, 2)])

    def pinned(analysis):
        assert analysis.accesses
        return {analysis.symbols.values[name] for name in analysis.pinned}

    order = (first, 1 - first)
    found = {s: questions.ask((s,), "pinned", pinned) for s in order}
    assert found[1] == {N}
    assert questions.validity.result().holds(submissions((part, N, a, N, 2), (part, N, a, N, 5)))


def test_an_answer_knows_which_of_two_varies():
    a = np.zeros(8 * N, np.float32)
    listed = submissions(*((part, N, a, N, t) for t in (2, 3, 2, 3)))
    questions, answer = Questions(listed, varying=[(1, 2), (2, 2)]), Counted()
    found = [questions.ask(pair, "question", answer) for pair in ((0, 1), (2, 3), (0, 3), (0, 1))]
    assert found == [1, 2, 3, 1]


def test_what_is_found_holds_for_all_values_of_what_varies():
    """Whether two rows are one is not known where one of them may be any."""
    questions = Questions(rows(3, 4, 5), varying=[(2, 1)])
    assert questions.ask((0, 1), "shared", is_empty)
    assert not questions.ask((1, 2), "shared", is_empty)
    assert questions.validity.result().holds(rows(3, 4, 4))


@fq.kernel
def column_over_pivot(item: fq.Item, a, k):
    i = item.get_id(0) + k + 1
    a[i, k] = a[i, k] / a[k, k]


@fq.kernel
def minus_outer_product(item: fq.Item, a, b, k, sign):
    i = item.get_id(0) + k + 1
    j = item.get_id(1) + k + 1
    if sign > 0:
        a[i, j] = a[i, j] - a[i, k] * b[k, j]
    else:
        a[i, j] = a[i, j] + a[k, i] * b[k, j]


@pytest.mark.slow
def test_whether_an_answer_serves_is_what_its_validity_says(monkeypatch):
    """Of other members, sizes and scalars, in lists over shrinking ranges."""
    said = []
    original = Questions._known

    def known(questions, answers, members, other_sizes):
        numbers = [n for m in members for n in questions._shapes[m].numbers]
        listed = [questions.submissions[m] for m in members]
        for answer in answers:
            serves = answer.serves.holds(numbers)
            assert serves == answer.validity.holds(listed)
            said.append(serves)
        return original(questions, answers, members, other_sizes)

    monkeypatch.setattr(Questions, "_known", known)
    n = 12
    a, b, index = np.zeros((n, n)), np.zeros((n, n + 1)), np.zeros(n)
    calls = []
    for k in range(n - 1):
        left = n - 1 - k
        calls.append((column_over_pivot, left, a, k))
        calls.append((minus_outer_product, (left, left), a, (a, b)[k % 2], k, 1 - 2 * (k % 3)))
        calls.append((in_groups, fq.NdRange((n,), (n,)), index))
    questions = Questions(submissions(*calls))
    completed(direct_dependences(questions))
    assert said.count(True) > 50 and said.count(False) > 20


def test_what_has_been_asked_is_known():
    questions = Questions(rows(3, 4, 5, 6))
    assert not questions.known((0, 1), "shared")
    said = questions.ask((0, 1), "shared", is_empty)
    assert questions.known((0, 1), "shared") == questions.known((2, 3), "shared") == (said,)
    assert not questions.known((0, 1), "other")
    assert not questions.known((0, 1), "shared", other_sizes=True)
