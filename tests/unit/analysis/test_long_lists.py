"""Questions about long lists: what is compared with what, what is answered once, and for which
other lists an answer holds."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import list_dependences, questions
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.proof import Proofs
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.planning import stages
from fusionq.planning.planner import make_plan
from tests.unit.lists import completed, submissions
from tests.unit.targets import TWO_CORES

N = 32
BIG = 5000
"""More work-items than may run as one group."""


@fq.kernel
def twice(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] * 2


@fq.kernel
def averaged(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < item.get_range(0) - 1:
        b[i] = a[i - 1] + a[i] + a[i + 1]


@fq.kernel
def inner(item: fq.Item, a, b):
    """Less of ``b`` than ``averaged`` writes."""
    i = item.get_id(0)
    if i > 1 and i < item.get_range(0) - 2:
        b[i] = a[i - 2] + a[i + 2]


@fq.kernel
def averaged_with(item: fq.Item, a, b, k):
    i = item.get_id(0)
    if i > 0 and i < item.get_range(0) - 1:
        b[i] = a[i - 1] + a[k] + a[i + 1]


@fq.kernel
def from_behind(item: fq.Item, a):
    i = item.get_id(0)
    a[i] = a[i + item.get_range(0)] * 2


@fq.kernel
def both(item: fq.Item, a, whole, few):
    i = item.get_id(0)
    whole[i] = a[i]
    if i < 3:
        few[i] = a[i]


@fq.kernel
def shorter(item: fq.Item, d, k):
    i = item.get_id(0)
    j = item.get_id(1)
    t = d[i, k] + d[k, j]
    if t < d[i, j]:
        d[i, j] = t


@fq.kernel
def row(item: fq.Item, d, k):
    d[k, item.get_id(0)] = 1


@fq.kernel
def row_from(item: fq.Item, a, d, k):
    d[k, item.get_id(0)] = a[item.get_id(0)]


@fq.kernel
def row_to(item: fq.Item, d, k, a):
    a[item.get_id(0)] = d[k, item.get_id(0)]


@fq.kernel
def part(item: fq.Item, a, size, t):
    a[size * t + item.get_id(0)] = 1


def vector(n=N):
    return np.zeros(n, np.float32)


def in_turn(kernel, length):
    a, b = vector(), vector()
    return submissions(*((kernel, N, *((a, b) if s % 2 == 0 else (b, a))) for s in range(length)))


def paths(length, n=N, first=0):
    d = np.zeros((n, n), np.float32)
    return submissions(*((shorter, (n, n), d, first + k) for k in range(length)))


def pairs(listed):
    found = completed(direct_dependences(Questions(listed)))
    return [{d.producer for d in of_one} for of_one in found]


def needed(*calls):
    """The producers on which each submission depends, by what was found of each pair."""
    found = completed(direct_dependences(Questions(submissions(*calls))))
    return [{d.producer for d in of_one if d.scope != "NONE"} for of_one in found]


# ------------------------------------------------------------------- what is compared
@pytest.mark.parametrize("kernel", [twice, averaged])
def test_two_buffers_in_turn(kernel):
    """The elements at the ends are read by each and written by none."""
    assert pairs(in_turn(kernel, 12))[3:] == [{s - 1, s - 2} for s in range(3, 12)]


def test_an_update_in_place_depends_on_the_last():
    assert pairs(paths(6)) == [set(), {0}, {1}, {2}, {3}, {4}]


def test_what_was_read_matters_until_it_is_overwritten():
    a, outs = vector(), [vector() for _ in range(3)]
    readers = [(twice, N, a, out) for out in outs]
    listed = submissions(*readers, (twice, N, outs[0], a), (twice, N, outs[1], a))
    assert pairs(listed)[3:] == [{0, 1, 2}, {1, 3}]


def test_what_is_written_in_part_stays():
    a, b = vector(), vector()
    listed = submissions((twice, N, b, a), (twice, N // 2, b, a), (twice, N, a, b))
    assert pairs(listed)[2] == {0, 1}


def test_of_what_was_read_and_written_the_rest_still_matters():
    a, b, c, d = vector(2 * N), vector(), vector(), vector()
    front, behind = a[:N], a[N:]
    # Who writes the one half overwrites what was written there, and not what was read.
    calls = [(from_behind, N, a), (twice, N, b, front), (twice, N, c, behind)]
    assert needed(*calls) == [set(), {0}, {0}]
    calls = [(from_behind, N, a), (twice, N, b, behind), (twice, N, front, c), (twice, N, d, front)]
    assert needed(*calls) == [set(), {0}, {0}, {0, 2}]


def test_other_elements_of_a_memory_are_not_overwritten():
    """By a submission of the same kind, whose kernel overwrites its own view."""
    base, a, b, c = vector(2 * N), vector(), vector(), vector()
    low, high = base[:N], base[3 : N + 3]
    calls = [(twice, N, a, b), (twice, N, a, low), (twice, N, a, high), (twice, N, low, c)]
    assert needed(*calls)[3] == {1, 2}
    # The first writes all that there is, the second all but three elements.
    calls = [(both, N, a, high, low), (both, N, a, low, high), (twice, N, high, b)]
    assert needed(*calls)[2] == {0, 1}


def test_a_writer_of_all_ends_the_life_of_other_writers():
    a, b = vector(), vector()
    calls = [(averaged, N, a, b), (averaged, N, b, a), (inner, N, a, b), (inner, N, b, a)]
    found = pairs(submissions(*calls * 3))
    # From 4 and 5 on, nothing before them matters.
    assert found[5:10] == [{1, 2, 3, 4}, {4, 5}, {4, 5, 6}, {4, 5, 6, 7}, {5, 6, 7, 8}]


def test_nothing_matters_before_what_wrote_all_that_is_touched():
    """A step of an elimination touches what the step before wrote, which never writes all that it
    touched itself: the pivot's row and column stay as they are."""
    found = [{d.producer for d in one if d.scope != "NONE"} for one in completed(
        direct_dependences(Questions(factorised(12))))]  # fmt: skip
    assert found[12:] == [{s - 1} if s % 2 == 0 else {s - 2, s - 1} for s in range(12, 22)]


@fq.kernel
def one_element(item: fq.Item, a, k):
    a[k] = 1


@fq.kernel
def from_here(item: fq.Item, a, k, out):
    i = item.get_id(0)
    out[i] = a[k + i]


def test_what_others_wrote_in_part_matters():
    """Of the elements read the last writer wrote all but one, the first, whose writer is older."""
    a, out = vector(), vector()
    ones = [(one_element, 1, a, k) for k in range(8)]
    found = needed(*ones, (from_here, 3, a, 2, out), (from_here, 1, a, 4, vector()))
    assert found[8] == {2, 3, 4}
    assert found[9] == {4}


def test_accesses_are_covered_by_different_writers():
    """Each of two memories by the last writer of its own."""
    a, b, outs = vector(), vector(), [vector() for _ in range(6)]
    early = [(twice, N, a, out) for out in outs] + [(twice, N, b, out) for out in outs]
    found = needed(*early, (twice, N, outs[0], a), (twice, N, outs[0], b), (twice, N, a, b))
    assert found[14] == {12, 13}


def test_an_elimination_serves_other_lists_only_that_shrink_alike():
    """What was covered in the list that was asked about is written again there."""
    def listed(least):
        """The fourth from last step's update writes rows and columns from there on."""
        a = np.zeros((12, 12))
        calls = [(minus_outer_product, (11 - k, 11 - k), a, k) for k in range(11)]
        calls[8] = minus_outer_product, (3, 3), a, least
        return submissions(*calls)

    asked = Questions(listed(8))
    completed(direct_dependences(asked))
    serves = asked.validity.result()
    assert serves.holds(listed(8))
    assert not serves.holds(listed(7))
    assert not serves.holds(listed(5))


def test_of_many_kinds_of_writers_none_is_taken_to_write_all(monkeypatch):
    monkeypatch.setattr(list_dependences, "MOST_WRITERS", 1)
    a, b, c = vector(), vector(), vector()
    assert needed((twice, N, a, b), (averaged, N, c, b), (twice, N, b, vector()))[2] == {0, 1}
    assert pairs(in_turn(averaged, 8))[3:] == [{s - 1, s - 2} for s in range(3, 8)]


def test_scalars_that_only_reads_depend_on_make_no_other_writer(monkeypatch):
    monkeypatch.setattr(list_dependences, "MOST_WRITERS", 1)
    a, b = vector(), vector()
    calls = [(averaged_with, N, *((a, b), (b, a))[s % 2], s + 2) for s in range(6)]
    assert pairs(submissions(*calls))[3:] == [{s - 1, s - 2} for s in range(3, 6)]


def compare_three(monkeypatch):
    monkeypatch.setattr(list_dependences, "FEWEST_COMPARED", 3)
    monkeypatch.setattr(list_dependences, "ALL_COMPARED", 0)


def unknown(*calls):
    """Of each dependence that is not known: (producer, consumer, kind, arguments)."""
    listed = submissions(*calls)
    found = []
    for d in [d for of_one in completed(direct_dependences(Questions(listed))) for d in of_one]:
        if d.scope == "UNKNOWN":
            assert d.reason == (
                "more than 3 submissions use this memory and nothing overwrites all of it: "
                "they are too many to compare"
            )
            assert d.producer_span == listed[d.producer].ir.span
            assert d.consumer_span == listed[d.consumer].ir.span
            arguments = d.producer_argument, d.consumer_argument
            found.append((d.producer, d.consumer, d.kind, arguments))
    return found


def test_what_depends_on_what_where_too_many_are_not_compared(monkeypatch):
    compare_three(monkeypatch)
    d, e, once = np.zeros((N, N), np.float32), vector(), vector()
    rows = [(row, N, d, k) for k in range(4)]
    # Four write; one reads or writes; who reads or writes later depends on that one.
    later = [(row_to, N, d, 2, e), (row, N, d, 5)]
    assert unknown(*rows, (row_to, N, d, 1, once), *later) == [
        *((k, 4, "RAW", (0, 0)) for k in range(4)),
        (4, 5, "RAW", (0, 0)), (4, 6, "WAR", (0, 0)),
    ]  # fmt: skip
    assert unknown(*rows, (row_from, N, e, d, 4), (row, N, d, 6), (row_to, N, d, 6, once)) == [
        *((k, 4, "WAW", (0, 1)) for k in range(4)),
        (4, 5, "WAW", (1, 0)), (4, 6, "RAW", (1, 0)),
    ]  # fmt: skip


def test_memory_that_is_only_read_is_never_too_much_to_compare(monkeypatch):
    compare_three(monkeypatch)
    a, b, d = vector(), vector(), np.zeros((N, N), np.float32)
    calls = [(row_from, N, a, d, k) for k in range(5)]
    assert unknown(*calls, (twice, N, a, b)) == [(k, 4, "WAW", (1, 1)) for k in range(4)]
    outs = [vector() for _ in range(6)]
    assert unknown(*[(twice, N, a, out) for out in outs], (both, N, a, outs[0], outs[1])) == []


def test_who_overwrites_all_ends_what_was_not_compared(monkeypatch):
    compare_three(monkeypatch)
    d = np.zeros((N, N), np.float32)
    calls = [(row, N, d, k) for k in range(5)]
    calls += [(shorter, (N, N), d, 0), (row, N, d, 7), (row, N, d, 8)]
    assert pairs(submissions(*calls))[5:] == [{4}, {5}, {5, 6}]


def test_too_many_are_not_compared(monkeypatch):
    compare_three(monkeypatch)
    d = np.zeros((N, N), np.float32)
    listed = submissions(*((row, N, d, k) for k in range(8)))
    found = completed(direct_dependences(Questions(listed)))
    scopes = [[(d.producer, d.scope) for d in of_one] for of_one in found]
    assert scopes[3] == [(0, "NONE"), (1, "NONE"), (2, "NONE")]
    assert scopes[4] == [(k, "UNKNOWN") for k in range(4)]
    assert scopes[5] == [(4, "UNKNOWN")]
    assert scopes[6] == [(4, "UNKNOWN"), (5, "NONE")]
    assert "more than 3 submissions use this memory" in found[4][0].reason
    plan = make_plan(listed, FusionOptions(strategy="fused"), TWO_CORES)
    assert [s.submissions for s in plan.stages] == [(0, 1, 2, 3), (4,), (5, 6, 7)]


# --------------------------------------------------------------- what is answered once
@pytest.mark.parametrize("listed", [lambda n: in_turn(averaged, n), paths])
def test_equal_questions_are_answered_once(monkeypatch, listed):
    analysed = []
    original = questions.analyse
    monkeypatch.setattr(questions, "analyse", lambda *a: analysed.append(1) or original(*a))

    def answers(length):
        analysed.clear()
        make_plan(listed(length), FusionOptions(strategy="megakernel"), TWO_CORES)
        return len(analysed)

    # With other scalars the kernels of single submissions are looked at, once for each.
    each = 1 if listed is paths else 0
    assert answers(28) <= answers(8) + each * 20


@fq.kernel
def column_over_pivot(item: fq.Item, a, k):
    i = item.get_id(0) + k + 1
    a[i, k] = a[i, k] / a[k, k]


@fq.kernel
def minus_outer_product(item: fq.Item, a, k):
    i = item.get_id(0) + k + 1
    j = item.get_id(1) + k + 1
    a[i, j] = a[i, j] - a[i, k] * a[k, j]


def factorised(n):
    """LU decomposition: each submission has ranges and a scalar of its own."""
    a = np.zeros((n, n))
    return submissions(*(
        one for k in range(n - 1) for one in (
            (column_over_pivot, n - 1 - k, a, k),
            (minus_outer_product, (n - 1 - k, n - 1 - k), a, k),
        )
    ))  # fmt: skip


def test_what_is_too_hard_to_say_for_all_scalars_is_not_tried_for_each(monkeypatch):
    """Whether work-groups hold a dependence: once it was too hard to say for which scalars they do,
    it is asked for those of each pair of submissions only."""
    tried = []
    original = Proofs._remember_cell

    def counted(proofs, values, scalars):
        tried.append(values)
        return original(proofs, values, scalars)

    monkeypatch.setattr(Proofs, "_remember_cell", counted)
    counts, stages = [], []
    for n in (8, 14):
        tried.clear()
        plan = make_plan(factorised(n), FusionOptions(strategy="sequence"), TWO_CORES)
        counts.append(len(tried))
        stages.append(len(plan.stages))
    assert 0 < counts[1] <= counts[0] + 4
    assert stages == [1, 3]


def test_stages_that_are_alike_have_one_kernel():
    a = [vector(BIG) for _ in range(9)]
    calls = []
    for k in range(4):
        calls += [
            (twice, BIG, a[2 * k], a[2 * k + 1]), (averaged, BIG, a[2 * k + 1], a[2 * k + 2])
        ]  # fmt: skip
    plan = make_plan(submissions(*calls), FusionOptions(strategy="sequence"), TWO_CORES)
    members = [s.submissions for s in plan.stages]
    assert members == [(0,), (1, 2), (3, 4), (5, 6), (7,)]
    assert plan.stages[1].kernel is plan.stages[2].kernel is plan.stages[3].kernel
    assert "3: averaged" in repr(plan.stages[2].numbered_kernel)
    assert plan.stages[2].sources[0].submission == 3


# --------------------------------------------------------------- for which lists it holds
def test_other_scalars_of_the_same_kind():
    plan = make_plan(paths(5), FusionOptions(), TWO_CORES)
    assert plan.validity.holds(paths(5, first=7))
    assert not plan.validity.holds(paths(5, first=N - 3))  # outside the array


def test_scalars_that_were_equal_have_to_be():
    d = np.zeros((N, N), np.float32)

    def rows(*numbers):
        return submissions(*((row, N, d, k) for k in numbers))

    plan = make_plan(rows(3, 3, 4), FusionOptions(), TWO_CORES)
    assert [d.scope for d in plan.dependences] == ["ITEM", "NONE"]
    assert plan.validity.holds(rows(5, 5, 8))
    assert not plan.validity.holds(rows(5, 6, 8))
    assert not plan.validity.holds(rows(5, 5, 5))


def test_a_pinned_scalar_keeps_its_value():
    a = vector(8 * N)

    def parts(*numbers):
        return submissions(*((part, N, a, N, t) for t in numbers))

    plan = make_plan(parts(0, 1, 2), FusionOptions(), TWO_CORES)
    assert {d.scope for d in plan.dependences} == {"NONE"}
    assert plan.validity.holds(parts(0, 1, 2))
    assert not plan.validity.holds(parts(0, 1, 3))


def test_a_launch_joins_a_bounded_number(monkeypatch):
    """Its kernel is fused in one step; who asks for one kernel gets it."""
    monkeypatch.setattr(stages, "MOST_JOINED", 3)
    a, b = np.zeros(N), np.zeros(N)
    listed = submissions(*[(twice, N, a, b), (twice, N, b, a)] * 4)
    plan = make_plan(listed, FusionOptions(strategy="sequence"), TWO_CORES)
    assert [stage.submissions for stage in plan.stages] == [(0, 1, 2), (3, 4, 5), (6, 7)]
    assert plan.stages[1].boundary == "a launch joins 3 submissions at most"
    for options in (FusionOptions(strategy="fused"), FusionOptions(require=True)):
        assert len(make_plan(listed, options, TWO_CORES).stages) == 1
