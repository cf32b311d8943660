"""Which work-items of earlier stages a work-item of a later one waits for."""

from __future__ import annotations

from types import SimpleNamespace

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.proof import Proofs
from fusionq.analysis.questions import Questions
from fusionq.analysis.stage_relations import StageItems, is_implied, relation_between, stage_items
from fusionq.analysis.stage_waits import StageRelations
from fusionq.analysis.symbols import Symbols
from tests.unit.lists import completed, submissions

N = 12


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def gather(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


@fq.kernel
def scatter(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[index[i]] = a[i]


@fq.kernel
def flat(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i * 4 + j] = a[i * 4 + j]


@fq.kernel
def flat_gather(item: fq.Item, index, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[index[i, j]]


@fq.kernel
def joined(item: fq.Item, first, second, out):
    i = item.get_id(0)
    out[i] = first[i] + second[i]


@fq.kernel
def butterflies(item: fq.Item, x, y, half):
    i = item.get_id(0)
    j = i % half
    first = 2 * (i - j) + j
    y[first] = x[first] + x[first + half]
    y[first + half] = x[first] - x[first + half]


@fq.kernel
def beside(item: fq.Item, other, first, a, out):
    """``other`` has another length, which comes first."""
    i = item.get_id(0)
    if i < other.shape[0]:
        other[i] = 1
    out[i] = first[i] + a[i]


def vectors(count, n=N):
    return [np.zeros(n, np.float32) for _ in range(count)]


def stage(*members, extents=(N,), mode="ids"):
    return StageItems(members, mode, extents)


def today(analysis, items):
    """A relation for today's sizes, without parameters."""
    items = items.intersect_params(analysis.symbols.point)
    return items.project_out(isl.dim_type.param, 0, items.dim(isl.dim_type.param))


def same(analysis, items, text):
    return today(analysis, items).is_equal(isl.Map(text))


# ----------------------------------------------------------------------------- one relation
def test_the_range_of_a_stage():
    a, b = vectors(2)
    listed = submissions((flat, (2, 4), a, b), (flat, (3, 4), a, b), (copy, 5, a, b))
    assert stage_items(listed, [0, 1], "ids") == stage(0, 1, extents=(3, 4))
    assert stage_items(listed, [0, 2], "linear") == stage(0, 2, extents=(8,), mode="linear")


def test_work_items_that_touch_the_same_element():
    a, b, c = vectors(3)
    analysis = analyse(submissions((copy, N, a, b), (copy, 5, b[3:], c)))
    found = relation_between(analysis, stage(0), stage(1, extents=(5,)))
    assert found.exact
    assert same(analysis, found.items, "{ [i] -> [i + 3] : 0 <= i < 5 }")
    analysis = analyse(submissions((copy, N, a, b), (copy, 5, a, c)))
    assert relation_between(analysis, stage(0), stage(1, extents=(5,))) is None


def test_where_an_index_is_not_known_all_wait_for_all():
    a, b, c = vectors(3)
    index = np.zeros(N, np.int64)
    for calls in (
        [(copy, N, a, b), (gather, 5, index, b, c)],
        [(scatter, N, index, a, b), (copy, 5, b, c)],
        [(scatter, N, index, a, b), (gather, 5, index, b, c)],
    ):
        analysis = analyse(submissions(*calls))
        found = relation_between(analysis, stage(0), stage(1, extents=(5,)))
        assert not found.exact
        # For all sizes, not for those of today.
        symbols = analysis.symbols
        everything = f"0 <= i < {symbols.size(5)} and 0 <= j < {symbols.size(N)}"
        parameters = ", ".join(symbols.names)
        assert found.items.is_equal(isl.Map(f"[{parameters}] -> {{ [i] -> [j] : {everything} }}"))
        assert not analysis.pinned


def test_a_product_of_extents_holds_for_todays_extents_only():
    a, b = vectors(2, 50)
    index = np.zeros((3, 4), np.int64)
    listed = submissions(
        (flat_gather, (3, 4), index, a, np.zeros((3, 4), np.float32)), (copy, 50, b, a)
    )
    analysis = analyse(listed)
    second = stage(1, extents=(50,), mode="linear")
    found = relation_between(analysis, stage(0, mode="linear"), second)
    assert same(analysis, found.items, f"{{ [i] -> [j] : 0 <= i < 50 and 0 <= j < {N} }}")
    assert {analysis.symbols.values[name] for name in analysis.pinned} == {3, 4}


def test_what_takes_too_long_to_decide_waits_for_all(monkeypatch):
    a, b, c = vectors(3)
    analysis = analyse(submissions((copy, N, a, b), (copy, 5, b, c)))
    assert analysis.accesses
    monkeypatch.setattr(isl_operations, "OPERATIONS", 1)
    found = relation_between(analysis, stage(0), stage(1, extents=(5,)))
    assert not found.exact
    assert same(analysis, found.items, f"{{ [i] -> [j] : 0 <= i < 5 and 0 <= j < {N} }}")


def test_linear_ids_hold_for_todays_rows():
    """Of one member of a stage, whatever the others are."""
    a, b, c, d, out = vectors(5)
    calls = [(flat, (3, 4), a, b), (copy, N, a, c), (joined, N, b, c, out), (copy, N, b, d)]
    for members, later in (((0, 1), 2), ((0,), 3), ((1, 0), 2)):
        analysis = analyse(submissions(*calls))
        first = stage(*members, mode="linear")
        found = relation_between(analysis, first, stage(later, mode="linear"))
        assert same(analysis, found.items, f"{{ [i] -> [i] : 0 <= i < {N} }}")
        assert {analysis.symbols.values[name] for name in analysis.pinned} == {4}


def test_what_takes_too_long_to_decide_is_not_implied(monkeypatch):
    proofs = analyse(submissions((copy, N, *vectors(2)))).proofs
    same_item = isl.Map("[n0] -> { [i] -> [i] : 0 <= i < n0 }")
    assert is_implied(proofs, same_item, [(same_item, same_item)])
    monkeypatch.setattr(isl_operations, "OPERATIONS", 1)
    assert not is_implied(proofs, same_item, [(same_item, same_item)])


def test_what_todays_sizes_refute_is_not_asked_for_all():
    """Of strided relations that took a minute for 14 steps of a Fourier transform."""
    today = SimpleNamespace(point=isl.Set("[n0] -> { : n0 = 12 }"))  # and no context
    neighbour = isl.Map("[n0] -> { [i] -> [i + 1] : 0 <= i < n0 }")
    assert not is_implied(Proofs(today), neighbour, [(neighbour, neighbour)])


@pytest.mark.parametrize("back", ["s0", "1"])
@pytest.mark.parametrize("value", [1, 2])
def test_what_follows_for_todays_scalars_only_serves_no_others(back, value):
    """Forth by a scalar and back by it, or by one."""
    symbols = Symbols()
    symbols.scalar(value)
    proofs = Proofs(symbols)
    same = isl.Map("[s0] -> { [i] -> [i] }")
    ways = [(isl.Map("[s0] -> { [i] -> [i + s0] }"), isl.Map(f"[s0] -> {{ [i] -> [i - {back}] }}"))]
    assert is_implied(proofs, same, ways) == (back == "s0" or value == 1)
    assert proofs.today == ({"s0"} if back == "1" and value == 1 else set())
    varying = Symbols(frozenset({value}), True)
    varying.scalar(value)
    proofs = Proofs(varying)
    assert is_implied(proofs, same, ways) == (back == "s0")
    assert not proofs.conditions and not proofs.today


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_what_follows_for_scalars_as_far_apart_as_todays_serves_these(ahead):
    """Forth by one scalar and back by another, and a step between."""
    symbols = Symbols()
    symbols.size(9), symbols.scalar(5), symbols.scalar(5 + ahead)
    proofs = Proofs(symbols)
    same = isl.Map("[n0, s0, s1] -> { [i] -> [i] : 0 <= i < n0 }")
    forth = isl.Map("[n0, s0, s1] -> { [i] -> [i + s1 - s0] }")
    back = isl.Map("[n0, s0, s1] -> { [i] -> [i - 2] }")
    assert is_implied(proofs, same, [(forth, back)]) == (ahead == 2)
    if ahead != 2:
        return
    assert not proofs.today

    def serves(*scalars):
        other = Symbols()
        other.size(9)
        for scalar in scalars:
            other.scalar(scalar)
        return Proofs(other).rest_on(proofs.conditions)

    assert serves(5, 7) and serves(-1, 1) and serves(100, 102)
    assert not serves(5, 6) and not serves(7, 5) and not serves(1, 4)


@pytest.mark.parametrize("sizes_as_scalars", [False, True])
def test_what_follows_for_scalars_in_todays_order_serves_these(sizes_as_scalars):
    """Steps before another one, however far; a scalar that all steps have numbers nothing."""
    symbols = Symbols()
    symbols.size(9)
    for value in (5, 6, 8, 9):
        symbols.scalar(value)
    proofs = Proofs(symbols)
    head = "[n0, s0, s1, s2, s3] -> "
    inside = "s3" if sizes_as_scalars else "n0"
    needed = isl.Map(head + f"{{ [i] -> [j] : s0 < i < {inside} and s0 < j < {inside} }}")
    near = isl.Map(head + f"{{ [i] -> [j] : s0 < i < {inside} and s0 < j < {inside} and s1 < s2 }}")
    far = isl.Map(head + f"{{ [i] -> [j] : s0 < i < {inside} and s0 < j < {inside} and s0 < s1 }}")
    assert is_implied(proofs, needed, [(near, far)], [{"s0", "s1", "s2"}])
    assert not proofs.today

    def serves(*scalars):
        other = Symbols()
        other.size(9)
        for scalar in scalars:
            other.scalar(scalar)
        return Proofs(other).rest_on(proofs.conditions)

    assert serves(5, 6, 8, 9) and serves(1, 6, 7, 20) and serves(2, 30, 40, 9)
    assert not serves(6, 5, 8, 9) and not serves(5, 8, 6, 9)


# ---------------------------------------------------------------------------- several stages
def relations(*calls, stages=None, questions=None):
    listed = submissions(*calls)
    questions = questions or Questions(listed)
    alone = [stage_items(listed, [s], "ids") for s in range(len(listed))]
    dependences = completed(direct_dependences(questions))
    return StageRelations(questions, stages or alone, dependences)


def test_a_stage_waits_for_several_that_have_nothing_to_do_with_each_other():
    a, b, c, out = vectors(4)
    found = relations((copy, N, a, b), (copy, N, a, c), (joined, N, b, c, out))
    assert [found.waits(k) for k in range(3)] == [[], [], [1, 0]]
    assert not found.covered(0, [1], 2)
    # Nothing is waited for where nothing is needed.
    assert found.covered(0, [2], 1)


def test_who_waited_for_the_same_work_items_has_waited_for_all():
    """Also where the sizes of two of three stages have other symbols than those of all three."""
    a, b, c, out = vectors(4)
    (few,) = vectors(1, 5)
    found = relations((copy, N, a, b), (beside, N, few, b, a, c), (joined, N, b, c, out))
    assert found.producers(2) == [1, 0]
    assert found.waits(2) == [1]
    found = relations((copy, N, a, b), (beside, 5, few, b, a, c), (joined, N, b, c, out))
    assert found.waits(2) == [1, 0]


def test_known_answers_count_towards_the_bound_of_planning():
    """Of a long list there are very many triples of stages, and most answers are known."""
    a, b = vectors(2)
    calls = [(copy, N, a, b) if k % 2 else (copy, N, b, a) for k in range(12)]
    with isl_operations.plan_operations() as plan:
        found = relations(*calls)
        first, spent = [found.waits(k) for k in range(12)], plan.allowed - plan.left
        again = StageRelations(found.questions, found.stages, [()] * 12)
        left = plan.left
        covered = [again.covered(k, [k + 1], k + 2) for k in range(10)]
        assert left - plan.left >= 10 * 4 * isl_operations.LOOKED_UP
        assert left - plan.left < spent
    assert covered == [k + 1 in first[k + 2] and k not in first[k + 2] for k in range(10)]


def test_several_together_may_have_waited_for_all():
    """A step's inside and its ends are two stages; what the next but one overwrites was read by
    one, and each part of it by another of those between."""

    @fq.kernel
    def inside(item: fq.Item, a, b):
        i = item.get_id(0)
        if 0 < i < a.shape[0] - 1:
            b[i] = a[i] + 1

    @fq.kernel
    def ends(item: fq.Item, a, b):
        n = a.shape[0]
        b[0] = a[0]
        b[n - 1] = a[n - 1]

    a, b, c = vectors(3)
    calls = [(copy, N, a, b), (inside, N, b, c), (ends, 1, b, c), (copy, N, a, b)]
    found = relations(*calls)
    assert found.producers(3) == [2, 1, 0]
    assert not any(found.covered(0, [k], 3) for k in (1, 2))
    assert found.covered(0, [2, 1], 3)
    assert found.waits(3) == [2, 1]
    # Without one of them a part is left.
    some = [calls[0], calls[1], calls[3]]
    assert relations(*some).waits(2) == [1, 0]


@pytest.mark.slow
def test_steps_of_a_fourier_transform_wait_for_all_that_share_elements():
    x, y = vectors(2, 64)
    turns = [(butterflies, 32, *((x, y) if k % 2 == 0 else (y, x)), 1 << k) for k in range(4)]
    found = relations(*turns)
    assert [found.waits(k) for k in range(4)] == [[], [0], [1, 0], [2, 1, 0]]


def test_waits_of_steps_that_scalars_number_serve_scalars_as_far_apart_only():
    """Each step reads what the two before have left and waits for the last of them alone, which
    waited for the other; steps in another order wait for others."""

    @fq.kernel
    def row(item: fq.Item, h, d):
        i = item.get_id(0)
        h[d + 1, i] = h[d, i] + h[d - 1, i]

    h = np.zeros((N, N))

    def listed(*steps):
        return [(row, N, h, d) for d in steps]

    calls = listed(5, 6, 7, 8)
    questions = Questions(submissions(*calls))
    found = relations(*calls, questions=questions)
    assert [found.waits(k) for k in range(4)] == [[], [0], [1], [2]]
    validity = questions.validity.result()
    assert validity.holds(submissions(*calls))
    assert validity.holds(submissions(*listed(2, 3, 4, 5)))
    others = listed(5, 6, 2, 7)
    assert [relations(*others).waits(k) for k in range(4)] == [[], [0], [], [1]]
    assert not validity.holds(submissions(*others))
    apart = listed(5, 6, 8, 7)  # the last overwrites what the third has read
    assert relations(*apart).waits(3) == [2, 0]
    assert not validity.holds(submissions(*apart))


def test_stages_outside_are_not_waited_for():
    a, b, c, d = vectors(4)
    calls = [(copy, N, a, b), (copy, N, b, c), (copy, N, c, d)]
    found = relations(*calls, stages=[stage(1), stage(2)])
    assert [found.waits(k) for k in range(2)] == [[], [0]]


def test_the_same_submissions_in_other_stages():
    """The relation of two stages is a question about who is in which, and in which space."""
    a, b, c, d, e = vectors(5)
    listed = submissions((copy, N, a, b), (copy, N, c, d), (copy, 5, b[3:], e))
    questions = Questions(listed)
    dependences = completed(direct_dependences(questions))

    def needed(*stages):
        found = StageRelations(questions, stages, dependences)
        return found.between(0, 1)

    assert needed(stage(0, 1), stage(2, extents=(5,))) is not None
    assert needed(stage(0), stage(1, 2)) is not None
    index = np.zeros(N, np.int64)
    listed = submissions((scatter, N, index, a, b), (copy, N, c, d), (copy, N, b, d))
    questions = Questions(listed)
    dependences = completed(direct_dependences(questions))
    exact = [
        needed(stage(0, 1), stage(2)).exact,
        needed(stage(1), stage(2)).exact,
        needed(stage(1, 0), stage(2)).exact,
    ]
    assert exact == [False, True, False]
    first, second = needed(stage(0), stage(1, 2)), needed(stage(0, 1), stage(2))
    assert (first.exact, second.exact) == (False, False)
    flats = submissions((flat, (3, 4), a, b), (flat, (3, 4), b, c))
    questions = Questions(flats)
    dependences = completed(direct_dependences(questions))
    of_ids = needed(stage(0, extents=(3, 4)), stage(1, extents=(3, 4)))
    of_linear = needed(stage(0, mode="linear"), stage(1, mode="linear"))
    dims = [r.items.dim(isl.dim_type.in_) for r in (of_ids, of_linear)]
    assert dims == [2, 1]
