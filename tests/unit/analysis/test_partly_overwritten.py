"""Lists whose submissions write a part of a memory each: what is not compared any longer follows
from what was, element by element, for today's sizes and all others that the answers serve."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import list_dependences
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from tests.in_turn import one_in
from tests.unit.lists import completed, submissions


@fq.kernel
def odd(item: fq.Item, x, s):
    i = item.get_id(0)
    x[(2 * i + 1) * s] += x[2 * i * s]


@fq.kernel
def even(item: fq.Item, x, s):
    i = item.get_id(0)
    x[2 * i * s] += x[(2 * i + 1) * s]


@fq.kernel
def line(item: fq.Item, x, first):
    x[item.get_id(0) + first] += 1


@fq.kernel
def look(item: fq.Item, x, first, y):
    i = item.get_id(0)
    y[i] = x[i + first]


@fq.kernel
def butterfly(item: fq.Item, x, half):
    k = item.get_id(0)
    a = k // half * half * 2 + k % half
    u, v = x[a], x[a + half]
    x[a] = u + v
    x[a + half] = u - v


@fq.kernel
def link(item: fq.Item, u, which: int, colour: int):
    k = item.get_id(0)
    j = (k + 1) % 16
    if k % 2 == colour:
        u[which, k] = u[which, k] * 3 + u[0, k] * u[1, j] + u[1, k] * u[2, j] + u[2, k] * u[0, j]


def touched(kernel, n, *scalars):
    """The elements of ``x`` that the work-items read, and that they write."""
    if kernel is link:
        which, colour = scalars
        sites = range(colour, n, 2)
        return {(w, (k + d) % 16) for k in sites for w in range(3) for d in (0, 1)}, {
            (which, k) for k in sites
        }
    if kernel is line or kernel is look:
        read = {i + scalars[0] for i in range(n)}
        return read, read if kernel is line else set()
    if kernel is butterfly:
        half = scalars[0]
        low = {k // half * half * 2 + k % half for k in range(n)}
        both = low | {a + half for a in low}
        return both, both
    s = scalars[0]
    evens, odds = {2 * i * s for i in range(n)}, {(2 * i + 1) * s for i in range(n)}
    return evens | odds, odds if kernel is odd else evens


def listed(calls, n):
    """Submissions, of ``(kernel, items, scalar)``."""
    x, y = np.zeros(n, np.int32), np.zeros(n, np.int32)
    return submissions(*((k, m, x, s, y) if k is look else (k, m, x, s) for k, m, s in calls))


def missed(calls, found):
    """Pairs that touch an element, which one of them writes, and that nothing found orders by way
    of submissions that touch it, too; or of which it was found that they share none."""
    of = [touched(*call) for call in calls]
    direct = {(d.producer, s) for s, ds in enumerate(found) for d in ds if d.scope != "NONE"}
    related = {(d.producer, s) for s, ds in enumerate(found) for d in ds}
    wrong = {
        (p, s)
        for p, s in related - direct
        if of[p][1] & (of[s][0] | of[s][1]) or of[p][0] & of[s][1]
    }
    for e in set().union(*(read | written for read, written in of)):
        users = [s for s, (read, written) in enumerate(of) if e in read or e in written]
        before: dict[int, set[int]] = {}
        for s in users:
            conflicts = [p for p in before if e in of[p][1] or e in of[s][1]]
            ordered = {p for p in conflicts if (p, s) in direct}
            reached = ordered.union(*(before[p] for p in ordered))
            wrong |= {(p, s) for p in conflicts if p not in reached}
            before[s] = reached
    return wrong


def lifting(n):
    calls, s = [], 1
    while s < n:
        calls += [(odd, n // (2 * s), s), (even, n // (2 * s), s)]
        s *= 2
    return calls


def transform(n):
    return [(butterfly, n // 2, 1 << k) for k in range(n.bit_length() - 1)]


def found_of(calls, n):
    questions = Questions(listed(calls, n))
    return completed(direct_dependences(questions)), questions


def test_parts_that_cover_what_was_touched_end_its_life():
    """Each step of a lifting scheme touches what the two of the step before left."""
    calls = lifting(256)
    found, _ = found_of(calls, 256)
    assert not missed(calls, found)
    needed = [{d.producer for d in ds if d.scope != "NONE"} for ds in found]
    assert all(len(of_one) <= list_dependences.FEW_LIVE for of_one in needed[8:])


def test_a_step_of_a_transform_overwrites_the_one_before():
    calls = transform(1 << 8)
    found, _ = found_of(calls, 1 << 8)
    assert not missed(calls, found)
    assert [{d.producer for d in of_one} for of_one in found[6:]] == [{5}, {6}]


def links(calls):
    """What direct dependences are found of updates of one memory, each of another part."""
    u = np.zeros((3, 16), np.int32)
    listed = submissions(*((kernel, items, u, *scalars) for kernel, items, *scalars in calls))
    return completed(direct_dependences(Questions(listed)))


def test_that_others_do_not_overwrite_says_nothing_of_these():
    """Two of six parts are like two others, of which the second does not write what the first
    touched: each time that all six have been updated, all that was touched before is over."""
    calls = [(link, 16, k % 3, k // 3 % 2) for k in range(32)]
    found = links(calls)
    assert not missed(calls, found)
    assert {len({d.producer for d in of_one}) for of_one in found[18:]} == {
        len({d.producer for d in of_one}) for of_one in found[12:18]
    }
    assert all(s - d.producer <= 9 for s, of_one in enumerate(found[12:], 12) for d in of_one)


@pytest.mark.parametrize("seed", one_in(2, range(2)))
def test_parts_that_are_updated_in_any_order(seed):
    order = random.Random(seed)
    calls = [
        (link, order.choice((10, 16)), order.randrange(3), order.randrange(2)) for _ in range(16)
    ]
    assert not missed(calls, links(calls))


def test_what_is_covered_by_two_but_for_one_element_stays():
    n = 40
    parts = [(line, 19, 0), (line, 20, 20)]
    others = [(line, 1, k) for k in range(30, 36)]
    calls = [(look, n, 0), *others, *parts, (line, 1, 19), (line, n, 0)]
    found, _ = found_of(calls, n)
    assert not missed(calls, found)
    assert 0 in {d.producer for d in found[len(calls) - 2] if d.scope != "NONE"}


def random_calls(draw, n):
    calls = []
    for _ in range(draw.randint(7, 10)):
        kernel = draw.choice([odd, even, line, line, look, butterfly])
        if kernel in (line, look):
            first = draw.choice([0, 0, 1, n // 2, draw.randrange(n)])
            calls.append((kernel, draw.choice([n - first, max((n - first) // 2, 1)]), first))
        elif kernel is butterfly:
            half = 1 << draw.randint(0, 3)
            calls.append((kernel, n // 2 // half * half, half))
        else:
            s = 1 << draw.randint(0, 3)
            calls.append((kernel, n // (2 * s), s))
    return calls


def resized(calls, n, more):
    """The same list over another length: ranges that end where the memory does still do."""
    made = []
    for kernel, items, scalar in calls:
        if kernel in (line, look):
            made.append((kernel, items + more if items + scalar == n else items, scalar))
        else:
            per = 2 if kernel is butterfly else 2 * scalar
            made.append((kernel, items + more // per if items == n // per else items, scalar))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_random_parts(monkeypatch, seed, few):
    monkeypatch.setattr(list_dependences, "FEW_LIVE", few)
    draw = random.Random(seed)
    n = draw.choice([16, 32, 48, 37])
    calls = random_calls(draw, n)
    found, questions = found_of(calls, n)
    assert not missed(calls, found)
    validity = questions.validity.result()
    for more in (1, 2, 3, 5, 8, 16, 32, 64, n):
        others = resized(calls, n, more)
        if validity.holds(listed(others, n + more)):
            assert not missed(others, found), more


def test_answers_for_todays_sizes_do_not_serve_others():
    """Two halves cover a line of one length, and not of another."""
    n = 32
    looks = [(look, n, 0)] * 6
    halves = [(line, n // 2, 0), (line, n // 2, n // 2)]
    calls = [*looks, *halves, (line, n, 0)]
    found, questions = found_of(calls, n)
    last = len(calls) - 1
    assert 0 not in {d.producer for d in found[last] if d.scope != "NONE"}
    validity = questions.validity.result()
    assert validity.holds(listed(calls, n))
    longer = [(look, n + 4, 0)] * 6 + [*halves, (line, n + 4, 0)]
    assert missed(longer, found)
    assert not validity.holds(listed(longer, n + 4))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_few_together(monkeypatch, most):
    """However many are asked together, nothing is missed."""
    monkeypatch.setattr(list_dependences, "FEW_LIVE", 0)
    monkeypatch.setattr(list_dependences, "MOST_TOGETHER", most)
    n = 24
    cuts = [0, 5, 12, 17, 24]
    calls = [(look, n, 0)] + [(line, b - a, a) for a, b in pairwise(cuts)] + [(line, n, 0)] * 2
    found, _ = found_of(calls, n)
    assert not missed(calls, found)
