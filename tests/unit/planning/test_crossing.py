"""Work-group sizes for dependences between different work-items: of which the answers are the
same, and of which they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations, proof
from fusionq.analysis.item_space import ItemSpace
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.proof import Proofs
from fusionq.analysis.questions import Questions
from fusionq.analysis.work_groups import stays_inside
from fusionq.base.options import FusionOptions
from fusionq.planning import crossing, stages
from fusionq.planning.crossing import different, group_sizes, keeps_inside, proved_sizes
from fusionq.planning.planner import make_plan
from tests.unit.lists import completed, submissions
from tests.unit.targets import TWO_CORES

N = 48


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def mirrored(item: fq.Item, a, far, out):
    """Exchanges ``a`` inside fours and ``far`` inside twelves."""
    i = item.get_id(0)
    out[i] = a[i // 4 * 4 + 3 - i % 4] + far[i // 12 * 12 + 11 - i % 12]


@fq.kernel
def both(item: fq.Item, a, first, second):
    i = item.get_id(0)
    first[i] = a[i]
    second[i] = a[i]


@fq.kernel
def reversed_whole(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[a.shape[0] - 1 - i]


@fq.kernel
def gather(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


@fq.kernel
def shifted(item: fq.Item, a, by, out):
    i = item.get_id(0)
    out[i] = a[i] + a[(i + by) % 4]


@fq.kernel
def rows_turned(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, item.get_range(1) - 1 - j]


@fq.kernel
def spread(item: fq.Item, ends, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = ends[item.get_range(0) - 1 - i]


def vectors(count):
    return [np.zeros(N, np.float32) for _ in range(count)]


def asked(*calls):
    questions = Questions(submissions(*calls))
    found = completed(direct_dependences(questions))
    return questions, [d for of_one in found for d in of_one if d.scope not in ("NONE", "ITEM")]


def exchanges():
    a, b, c, out = vectors(4)
    questions, found = asked((both, N, a, b, c), (mirrored, N, b, c, out))
    assert [(d.scope, d.consumer_argument) for d in found] == [("GLOBAL", 0), ("GLOBAL", 1)]
    return questions, found


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_dependence_has_work_groups_of_its_own(order):
    questions, found = exchanges()
    inside = {k: [keeps_inside(questions, [found[k]], "ids", (size,)) for size in (4, 12, 16, 24)]
              for k in order}  # fmt: skip
    assert inside == {0: [True, True, True, True], 1: [False, True, False, True]}
    assert keeps_inside(questions, found, "ids", (12,))
    assert not keeps_inside(questions, found, "ids", (4,))
    space = ItemSpace("ids", 1, None)
    sizes = {k: next(group_sizes(questions, [found[k]], space, (N,), TWO_CORES)) for k in order}
    assert sizes[0][0] % 4 == 0
    assert sizes[1][0] % 12 == 0


def test_multiples_of_a_proved_work_group_need_no_proof(monkeypatch):
    sizes = [(256,), (6,), (4,), (512,), (10,), (3,)]
    asked_about = []

    def proved(questions, crossing, mode, local, known):
        asked_about.append(local)
        return local in ((4,), (3,))

    monkeypatch.setattr(crossing, "keeps_inside", proved)
    found = list(proved_sizes(None, [], "ids", sizes))
    assert found == [(256,), (4,), (512,), (6,), (3,)]
    assert (512,) not in asked_about


def test_multiples_count_in_each_dimension(monkeypatch):
    sizes = [(8, 16), (4, 24), (4, 8), (8, 8)]
    monkeypatch.setattr(crossing, "keeps_inside", lambda q, c, m, local, known: local == (8, 8))
    assert list(proved_sizes(None, [], "ids", sizes)) == [(8, 16), (8, 8)]


def test_what_leaves_work_groups_leaves_those_that_they_consist_of(monkeypatch):
    asked = []
    original = proof.Proofs.decide
    monkeypatch.setattr(proof.Proofs, "decide", lambda *a: asked.append(1) or original(*a))
    questions, (near, far) = exchanges()
    asked.clear()
    assert not keeps_inside(questions, [far], "ids", (16,))
    assert len(asked) == 1
    assert not any(keeps_inside(questions, [far], "ids", (size,)) for size in (8, 4, 2, 1))
    assert len(asked) == 1
    # Others are no parts of that, and another dependence may stay in them.
    assert keeps_inside(questions, [far], "ids", (12,))
    assert not keeps_inside(questions, [far], "ids", (32,))
    assert keeps_inside(questions, [near], "ids", (8,))
    assert len(asked) == 4


def test_what_leaves_work_groups_today_does_so_where_it_is_too_hard_for_all_sizes(monkeypatch):
    original = proof.Proofs.decide

    def decide(self, *about):
        asked.append(1)
        if len(asked) == 1:
            raise isl_operations.TooManyOperations("too hard")
        return original(self, *about)

    asked: list[int] = []
    questions, (near, far) = exchanges()
    monkeypatch.setattr(proof.Proofs, "decide", decide)
    assert not keeps_inside(questions, [far], "ids", (16,))
    assert not keeps_inside(questions, [far], "ids", (4,))
    assert len(asked) == 1
    asked.clear()
    assert not keeps_inside(questions, [near], "ids", (16,))  # which it stays in, unproved
    assert keeps_inside(questions, [near], "ids", (4,))
    assert len(asked) == 2


def test_what_is_not_known_stays_inside_the_work_group_of_all_work_items():
    a, b, out = vectors(3)
    questions, found = asked((copy, N, a, b), (gather, N, np.zeros(N, np.int64), b, out))
    assert [d.scope for d in found] == ["UNKNOWN"]
    assert not keeps_inside(questions, found, "ids", (N - 1,))
    assert not keeps_inside(questions, found, "ids", (N // 2,))
    assert keeps_inside(questions, found, "ids", (N,))
    assert keeps_inside(questions, found, "ids", (N + 1,))


def test_dependences_about_which_the_answers_are_the_same_count_once():
    a, b, c, d, out = vectors(5)
    calls = [(both, N, a, b, c), (mirrored, N, b, c, out)]
    more = [(both, N, a, d, out), (mirrored, N, d, out, a)]
    questions, found = asked(*calls, *more)
    pairs = [d for d in found if d.kind == "RAW"]
    assert len(pairs) == 4
    kept = different(questions, pairs)
    assert len(kept) == 2
    assert {id(d.items) for d in kept} == {id(d.items) for d in pairs}


def test_memory_that_the_work_items_do_not_share_asks_nothing_new(monkeypatch):
    calls = []
    for name in ("tiles_of", "stays_inside"):
        original = getattr(crossing, name)
        monkeypatch.setattr(crossing, name, lambda *a, f=original, n=name: calls.append(n) or f(*a))
    a, b, c, d, e, out = vectors(6)
    again = [(both, N, a, d, e), (mirrored, N, d, e, a)]
    questions, found = asked((both, N, a, b, c), (mirrored, N, b, c, out), *again)
    pairs = [p for p in found if p.kind == "RAW"]
    assert keeps_inside(questions, pairs, "ids", (12,))
    assert list(group_sizes(questions, pairs, ItemSpace("ids", 1, None), (N,), TWO_CORES))
    assert sorted(calls) == ["stays_inside"] * 2 + ["tiles_of"] * 2


def test_where_an_answer_may_rest_on_scalars_each_pair_counts():
    a, b, c, out, other = vectors(5)
    calls = [(copy, N, a, b), (shifted, N, b, 1, out), (copy, N, a, c), (shifted, N, c, 2, other)]
    questions, found = asked(*calls)
    first, second = (d for d in found if d.kind == "RAW")
    second = replace(second, items=first.items)
    assert different(questions, [first, second, first]) == (first, second)


def test_one_relation_of_symbols_counts_for_each_of_their_values():
    (a, b, out), (c, d, other) = vectors(3), (np.zeros(8, np.float32) for _ in range(3))
    calls = [(copy, N, a, b), (reversed_whole, N, b, out), (copy, 8, c, d)]
    questions, found = asked(*calls, (reversed_whole, 8, d, other))
    longer, shorter = (d for d in found if d.kind == "RAW")
    assert longer.items is shorter.items
    assert different(questions, [longer, shorter]) == (longer, shorter)
    assert not keeps_inside(questions, [longer], "ids", (8,))
    assert keeps_inside(questions, [shorter], "ids", (8,))


@pytest.mark.parametrize("sizes", [(1000, 64), (64, 1000)])
def test_a_launch_of_shorter_lists_has_the_work_groups_of_the_longest(sizes):
    queue = fq.FusionQueue("reference")
    sets = [[fq.Buffer(np.arange(n, dtype=np.float32) - k) for k in range(3)] for n in sizes]
    with fq.fusion(queue, strategy="fused"):
        for a, b, out in sets:
            queue.submit(copy, a.shape[0], a, b)
            queue.submit(reversed_whole, a.shape[0], b, out)
    for a, _, out in sets:
        np.testing.assert_array_equal(out.numpy(), a.numpy()[::-1])


def test_what_is_not_known_counts_for_each_pair():
    a, b, out, other = vectors(4)
    index = np.zeros(N, np.int64)
    calls = [(copy, N, a, b), (gather, N, index, b, out), (gather, N, index, b, other)]
    questions, found = asked(*calls)
    assert [d.scope for d in found] == ["UNKNOWN"] * 2
    assert len(different(questions, found)) == 1  # which work-items there are is the same of both


def test_what_stays_inside_by_linear_ids_does_so_for_rows_of_this_length():
    def calls(shape):
        a, b, c = (np.zeros(shape, np.float32) for _ in range(3))
        return [(copy, b.size, a.reshape(-1), b.reshape(-1)), (rows_turned, shape, b, c)]

    questions, (one,) = asked(*calls((6, 8)))
    assert keeps_inside(questions, [one], "linear", (8,))
    assert not keeps_inside(questions, [one], "linear", (6,))
    validity = questions.validity.result()
    assert validity.holds(submissions(*calls((6, 8))))
    assert not validity.holds(submissions(*calls((8, 6))))
    # Two that meet by ids, where a third makes the ids of all linear.
    a, b, c = (np.zeros((6, 8), np.float32) for _ in range(3))
    questions, (one,) = asked((rows_turned, (6, 8), a, b), (rows_turned, (6, 8), b, c))
    assert 8 not in dict(questions.validity.result().pinned).values()
    assert keeps_inside(questions, [one], "linear", (8,))
    assert 8 in dict(questions.validity.result().pinned).values()
    # Of two of which one alone has rows.
    ends = np.zeros(6, np.float32)
    questions, (one,) = asked((copy, 6, np.zeros(6), ends), (spread, (6, 8), ends, c))
    assert keeps_inside(questions, [one], "linear", (48,))
    assert 8 in dict(questions.validity.result().pinned).values()


def test_what_takes_too_long_to_decide_stays_inside_nothing(monkeypatch):
    questions, found = exchanges()
    monkeypatch.setattr(isl_operations, "OPERATIONS", 1)
    assert not keeps_inside(questions, found[:1], "ids", (4,))
    assert list(group_sizes(questions, found, ItemSpace("ids", 1, None), (N,), TWO_CORES))


@fq.kernel
def rolled_back(item: fq.Item, src, dst, step):
    i = item.get_id(0)
    dst[i] = src[i + 1] + src[i] * step


def rolled(steps):
    a, b = np.zeros(steps + 2, np.float32), np.zeros(steps + 2, np.float32)
    return [(rolled_back, n, *((a, b) if n % 2 else (b, a)), n) for n in range(steps, 0, -1)]


def test_shrinking_ranges_are_asked_about_once(monkeypatch):
    """As many questions for twice as many of them, each with a scalar of its own."""
    counts = []
    for steps in (12, 24):
        asks = []

        def inside(*about, asks=asks):
            asks.append(about)
            return stays_inside(*about)

        monkeypatch.setattr(crossing, "stays_inside", inside)
        questions, found = asked(*rolled(steps))
        assert len(found) > steps
        assert keeps_inside(questions, found, "ids", (32,))
        assert not keeps_inside(questions, found, "ids", (4,))
        counts.append(len(asks))
    assert counts[0] == counts[1]


@fq.kernel
def first_reversed(item: fq.Item, a, k, out):
    i = item.get_id(0)
    if i < k:
        out[i] = a[k - 1 - i]
    else:
        out[i] = a[i]


@pytest.mark.parametrize("is_hard", [False, True])
def test_what_is_answered_for_todays_scalars_is_not_for_others(monkeypatch, is_hard):
    """Where it is too hard to say for which scalars it holds, as it is the first time, too."""
    if is_hard:
        tried = Proofs._try_to_remember

        def try_to_remember(proofs, values, inside):
            return inside and tried(proofs, values, inside)

        monkeypatch.setattr(Proofs, "_try_to_remember", try_to_remember)
    shorter = (9, 5, 8, 3, 33, 7, 32, 64, 16, 2)

    def calls(scalars):
        a = np.zeros(96, np.float32)
        for k in scalars:
            b, c = np.zeros(96, np.float32), np.zeros(96, np.float32)
            yield from ((copy, 96, a, b), (first_reversed, 96, b, k, c))

    questions, found = asked(*calls(shorter))
    assert len(found) == len(shorter)
    for size in (8, 32):
        for d, k in zip(found, shorter, strict=True):
            assert keeps_inside(questions, [d], "ids", (size,)) == (k <= size)
    readings = questions.readings
    assert bool(readings.hard) == is_hard
    validity = questions.validity.result()
    assert validity.holds(submissions(*calls(shorter)))
    others = [(*shorter[:place], k, *shorter[place + 1 :]) for place, k in ((0, 33), (4, 12))]
    assert not any(validity.holds(submissions(*calls(scalars))) for scalars in others)


def test_other_sizes_are_asked_about_where_they_decide():
    """Pairs that are alike but for their sizes, which are ordered alike: an answer about one is
    that of another only for sizes for which it is proved."""
    small, large = ([np.zeros(n + 1, np.float32) for _ in range(3)] for n in (8, 20))
    questions, found = asked(
        *((rolled_back, n, a, b, 1) for n, (a, b, _) in ((8, small), (20, large))),
        *((rolled_back, n - 1, b, c, 1) for n, (_, b, c) in ((8, small), (20, large))),
    )
    inside = {
        (d.producer, d.consumer): [
            keeps_inside(questions, [d], "ids", (size,)) for size in (8, 16, 32)
        ]
        for d in found
    }
    assert inside == {(0, 2): [True, True, True], (1, 3): [False, False, True]}


@fq.kernel
def summed(item: fq.Item, a, out):
    i = item.get_id(0)
    s = np.float32(0)
    for _ in range(200):
        s = s * np.float32(0.5) + a[a.shape[0] - 1 - i]
    out[i] = s


def test_few_proofs_are_asked_for_work_groups_that_are_slow(monkeypatch):
    """The whole range as one group is the only one in which the exchange stays, and leaves a core
    idle: one proof says that, and the others are of groups that might be of use."""
    asks, tried = [], []

    def inside(analysis, items, mode, local, *pair):
        asks.append(local)
        return stays_inside(analysis, items, mode, local, *pair)

    def sizes(*about):
        for local in group_sizes(*about):
            tried.append(local)
            yield local

    monkeypatch.setattr(crossing, "stays_inside", inside)
    monkeypatch.setattr(stages, "group_sizes", sizes)
    a, b, c = (np.zeros(250, np.float32) for _ in range(3))
    plan = make_plan(
        submissions((summed, 250, a, b), (summed, 250, b, c)),
        FusionOptions(strategy="sequence"),
        TWO_CORES,
    )
    assert len(plan.stages) == 2
    assert plan.stages[1].boundary is not None
    assert "there are 1 of them for 2 compute units" in plan.stages[1].boundary
    whole = [local for local in tried if local[0] >= 250]
    assert len(whole) > 1
    assert len(set(asks).intersection(whole)) == 1
