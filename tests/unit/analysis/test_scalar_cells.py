"""Cells of scalars: answers that were too hard to write down for all values of scalars that kernels
ask for their sign or phase serve the values on today's side, and no others."""

from __future__ import annotations

import random
from contextlib import suppress

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations, list_dependences
from fusionq.analysis.isl_operations import plan_operations
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.proof import Proofs
from fusionq.analysis.questions import Questions
from fusionq.analysis.scalar_cells import cell_of, cell_outside
from fusionq.analysis.stage_relations import stage_items
from fusionq.analysis.stage_waits import StageRelations
from fusionq.analysis.symbols import Symbols
from tests.unit.lists import completed, submissions

SCALARS = frozenset({"s0", "s1"})


def contains(values: isl.Set, point: dict[str, int]) -> bool:
    names = [values.get_dim_name(isl.dim_type.param, k) for k in range(len(point))]
    equal = " and ".join(f"{n} = {point[n]}" for n in names)
    return not values.intersect(isl.Set(f"[{', '.join(names)}] -> {{ : {equal} }}")).is_empty()


@pytest.mark.parametrize("seed", range(8))
def test_in_a_cell_each_constraint_on_scalars_says_what_it_says_today(seed):
    draw = random.Random(seed)

    def constraint() -> str:
        a, b, c = (draw.randint(-2, 2) for _ in range(3))
        return f"{a} * s0 + {b} * s1 + {c} {draw.choice(['>=', '=', '>', '<'])} 0"

    alone = [" and ".join(constraint() for _ in range(draw.randint(1, 2))) for _ in range(3)]
    text = " or ".join(f"({part} and n0 + s0 >= {draw.randint(-3, 3)})" for part in alone)
    values = isl.Set(f"[n0, s0, s1] -> {{ : {text} }}")
    today = {"n0": 3, "s0": draw.randint(-3, 3), "s1": draw.randint(-3, 3)}
    cell = cell_of([values], SCALARS, today)
    if cell is None:
        return
    assert contains(cell, today)
    assert not cell.involves_dims(isl.dim_type.param, 0, 1)
    constraints = [
        isl.Set.from_basic_set(isl.BasicSet.from_constraint(c))
        for part in values.get_basic_sets()
        for c in part.get_constraints()
        if not c.involves_dims(isl.dim_type.param, 0, 1)
    ]
    said = [contains(one, today) for one in constraints]
    for s0 in range(-3, 4):
        for s1 in range(-3, 4):
            other = {"n0": 3, "s0": s0, "s1": s1}
            if contains(cell, other):
                assert [contains(one, other) for one in constraints] == said


def test_only_constraints_on_scalars_alone_have_sides():
    today = {"n0": 8, "s0": 2, "s1": 5}
    for text in ("n0 > s0", "s0 mod 2 = 0", "n0 > 3", "s1 > 4 and s0 > n0"):
        values = isl.Set(f"[n0, s0, s1] -> {{ : {text} }}")
        assert cell_of([values], {"s0"}, today) is None, text
    elements = isl.Set("[n0, s0, s1] -> { [i] : i > s0 and s0 > 0; [i] : i = s1 and s0 <= 0 }")
    cell = cell_of([elements], SCALARS, today)
    assert cell is not None
    assert cell.is_equal(isl.Set("[n0, s0, s1] -> { : s0 > 0 }"))


def test_values_on_todays_side_of_a_constraint_of_each_part_are_outside():
    draw = random.Random(0)

    def constraint() -> str:
        a, b, c, d = (draw.randint(-2, 2) for _ in range(4))
        left = f"{a} * n0 + {b} * s0 + {c} * s1 + {d}"
        if draw.random() < 0.2:
            return f"({left}) mod {draw.randint(2, 3)} = 0"
        return f"{left} {draw.choice(['>=', '=', '>', '<'])} 0"

    found = 0
    for _ in range(40):
        parts = [" and ".join(constraint() for _ in range(draw.randint(1, 3))) for _ in range(4)]
        values = isl.Set(f"[n0, s0, s1] -> {{ : {' or '.join(f'({part})' for part in parts)} }}")
        for _ in range(10):
            today = {"n0": draw.randint(1, 6), "s0": draw.randint(-4, 4), "s1": draw.randint(-4, 4)}
            cell = cell_outside(values, SCALARS, today)
            if cell is not None:
                found += 1
                assert contains(cell, today)
                assert cell.intersect(values).is_empty()
            elif not any(word in str(values) for word in ("floor", "mod", "exists")):
                assert contains(values, today)
    assert found > 50


def test_constraints_on_scalars_alone_come_first():
    today = {"n0": 8, "s0": 2, "s1": 9}
    text = "n0 > 8 and s1 <= s0 + 2; : n0 < 8 and s1 <= s0 + 2 and s0 > n0; : s1 = s0 and n0 > 3"
    cell = cell_outside(isl.Set(f"[n0, s0, s1] -> {{ : {text} }}"), SCALARS, today)
    assert cell is not None
    assert cell.is_equal(isl.Set("[n0, s0, s1] -> { : s1 > s0 + 2 }"))
    of_sizes = isl.Set("[n0, s0, s1] -> { : n0 > 8 and s1 > s0 }")
    cell = cell_outside(of_sizes, SCALARS, today)
    assert cell is not None
    assert cell.is_equal(isl.Set("[n0, s0, s1] -> { : n0 <= 8 }"))


def test_no_cell_is_outside_where_quotients_decide():
    """What is left without the quotients has today's values in it."""
    today = {"n0": 8, "s0": 2, "s1": 5}
    values = isl.Set("[n0, s0, s1] -> { : s1 mod 2 = 0; : s0 > 7 }")
    assert cell_outside(values, SCALARS, today) is None
    points = " or ".join(f"s0 = {10 + k * k}" for k in range(300))
    assert cell_outside(isl.Set(f"[n0, s0, s1] -> {{ : {points} }}"), SCALARS, today) is None


def hard_where(monkeypatch, is_hard):
    """Let it be too hard to write down values for which ``is_hard`` says so."""
    original = Proofs._conditions

    def conditions(proofs: Proofs, values: isl.Set, inside: bool) -> list[tuple[isl.Set, bool]]:
        if is_hard(values):
            with suppress(isl.Error):
                isl_work = isl_operations.OPERATIONS_FOR_OTHERS + 1
                for _ in range(isl_work):
                    isl.Val.zero(isl.DEFAULT_CONTEXT)
        return original(proofs, values, inside)

    monkeypatch.setattr(Proofs, "_conditions", conditions)


def symbols_of(size: int, *scalars: int) -> Symbols:
    symbols = Symbols()
    symbols.size(size)
    for value in scalars:
        symbols.scalar(value)
    return symbols


SOME = isl.Set("[n0, s0, s1] -> { : s0 > 0 and s1 > n0; : s0 <= 0 and n0 - 3*floor(n0/3) = 1 }")


def test_what_is_too_hard_for_all_scalars_serves_those_of_todays_cell(monkeypatch):
    hard_where(monkeypatch, lambda values: values.n_basic_set() > 1)
    proofs = Proofs(symbols_of(10, 1, 7))
    with plan_operations():
        assert proofs.is_empty(SOME)
    assert not proofs.today
    assert Proofs(symbols_of(10, 3, 9)).rest_on(proofs.conditions)
    assert not Proofs(symbols_of(10, 3, 11)).rest_on(proofs.conditions)
    assert not Proofs(symbols_of(10, -1, 7)).rest_on(proofs.conditions)
    assert not Proofs(symbols_of(12, -1, 7)).rest_on(proofs.conditions)  # empty, but not proved


def test_pairs_of_steps_that_are_too_hard_for_all_serve_others_as_far_apart(monkeypatch):
    """Anti-diagonals that are further apart than they reach: one answer, whichever they are."""
    hard_where(monkeypatch, lambda values: values.n_basic_set() > 1)
    near = isl.Set("[n0, s0, s1] -> { : s0 <= s1 <= s0 + 2 and s0 < n0; : s1 = s0 - 1 and s1 > 0 }")
    proofs = Proofs(symbols_of(10, 1, 7))
    with plan_operations():
        assert proofs.is_empty(near)
    for first, second, holds in ((3, 9, True), (1, 4, True), (1, 3, False), (5, 4, False)):
        assert Proofs(symbols_of(10, first, second)).rest_on(proofs.conditions) is holds


def test_what_is_too_hard_in_the_cell_too_is_proved_for_todays(monkeypatch):
    hard_where(monkeypatch, lambda values: values.involves_dims(isl.dim_type.param, 2, 1))
    monkeypatch.setattr(isl_operations, "OPERATIONS", 10 * isl_operations.OPERATIONS_FOR_OTHERS)
    proofs = Proofs(symbols_of(10, 1, 7))
    with plan_operations():
        assert proofs.is_empty(SOME)
    assert proofs.today == {"s0", "s1"}


def test_scalars_that_vary_have_no_cell():
    symbols = Symbols(varying=frozenset([1]), for_all=True)
    symbols.size(10), symbols.scalar(1), symbols.scalar(7)
    proofs = Proofs(symbols)
    with plan_operations():
        assert not proofs.is_empty_in_cell((SOME,), lambda sets: sets[0])
    assert not proofs.conditions


@fq.kernel
def sweep(item: fq.Item, u, d, sy, sx):
    """An anti-diagonal, from one of the four corners."""
    k = item.get_id(0)
    n = u.shape[0]
    b = d - k
    if b < 0 or b >= n:
        return
    y = k if sy > 0 else n - 1 - k
    x = b if sx > 0 else n - 1 - b
    if x > 0:
        u[y, x] += u[y, x - 1]
    else:
        u[y, x] += 1


@fq.kernel
def half(item: fq.Item, u, phase):
    """The first or the second half of the rows, all of each."""
    k = item.get_id(0)
    n = u.shape[0]
    for x in range(n):
        if phase == 0:
            u[k, x] = 1
        else:
            u[n - 1 - k, x] = 2


def touched(call, n):
    kernel, *scalars = call
    if kernel is half:
        rows = range((n + 1) // 2) if scalars[0] == 0 else range(n // 2, n)
        written = {(y, x) for y in rows for x in range(n)}
        return set(), written
    d, sy, sx = scalars
    written, read = set(), set()
    for k in range(n):
        b = d - k
        if 0 <= b < n:
            y, x = (k if sy > 0 else n - 1 - k), (b if sx > 0 else n - 1 - b)
            written.add((y, x))
            read |= {(y, x), (y, x - 1)} if x > 0 else {(y, x)}
    return read, written


def listed(calls, n):
    u = np.zeros((n, n), np.int32)
    ranges = {half: (n + 1) // 2, sweep: n}
    return submissions(*((k, ranges[k], u, *scalars) for k, *scalars in calls))


def missed(calls, found, n):
    """Pairs that touch an element, which one of them writes, and that nothing found orders."""
    of = [touched(call, n) for call in calls]
    direct = {(d.producer, s) for s, ds in enumerate(found) for d in ds if d.scope != "NONE"}
    before: list[set[int]] = []
    wrong = set()
    for s in range(len(calls)):
        reached = set()
        for p in range(s):
            if (p, s) in direct:
                reached |= {p} | before[p]
        before.append(reached)
        wrong |= {
            (p, s)
            for p in range(s)
            if p not in reached and (of[p][1] & (of[s][0] | of[s][1]) or of[p][0] & of[s][1])
        }
    return wrong


def found_of(calls, n):
    questions = Questions(listed(calls, n))
    return completed(direct_dependences(questions)), questions


@pytest.mark.parametrize("few", [0, 4])
@pytest.mark.parametrize("seed", range(2))
def test_random_sweeps(monkeypatch, seed, few):
    """Answers found for some directions serve others only where they hold there, if each is too
    hard for all."""
    monkeypatch.setattr(list_dependences, "FEW_LIVE", few)
    monkeypatch.setattr(Proofs, "_try_to_remember", lambda *_, inside: inside)
    draw = random.Random(seed)
    n = draw.choice([4, 5])
    calls = []
    for _ in range(8):
        if draw.random() < 0.3:
            calls.append((half, draw.choice([0, 1, 2])))
        else:
            signs = draw.choice([1, -1]), draw.choice([1, -1, 2])
            calls.append((sweep, draw.randrange(2 * n - 1), *signs))
    found, questions = found_of(calls, n)
    assert not missed(calls, found, n)
    validity = questions.validity.result()
    for _ in range(30):
        others = [
            (k, *(v if draw.random() < 0.8 else draw.choice([v + 1, -v]) for v in scalars))
            for k, *scalars in calls
        ]
        m = draw.choice([n, n, n + 1, n + 2])
        if validity.holds(listed(others, m)):
            assert not missed(others, found, m)


def items_touched(call, n):
    """What each work-item of a submission reads and writes, by its id."""
    kernel, *scalars = call
    if kernel is half:
        ids = range((n + 1) // 2)
        rows = {k: k if scalars[0] == 0 else n - 1 - k for k in ids}
        return {k: (set(), {(y, x) for x in range(n)}) for k, y in rows.items()}
    d, sy, sx = scalars
    found = {}
    for k in range(n):
        b = d - k
        if 0 <= b < n:
            y, x = (k if sy > 0 else n - 1 - k), (b if sx > 0 else n - 1 - b)
            found[k] = ({(y, x), (y, x - 1)} if x > 0 else {(y, x)}), {(y, x)}
    return found


def items_not_waited_for(calls, waits, n):
    """Work-items that have to come one after the other and need not, where a work-item of a stage
    waits for those of the stages in ``waits`` that it shares elements with, and they did before."""
    of = [items_touched(call, n) for call in calls]
    reached: dict[tuple[int, int], set[tuple[int, int]]] = {}
    wrong = set()
    for s, own in enumerate(of):
        for k, (reads, writes) in own.items():
            needed = {
                (p, j)
                for p in range(s)
                for j, (read, written) in of[p].items()
                if written & (reads | writes) or read & writes
            }
            near = {one for one in needed if one[0] in waits[s]}
            reached[s, k] = near.union(*(reached[one] for one in near))
            wrong |= {(one, (s, k)) for one in needed - reached[s, k]}
    return wrong


@pytest.mark.parametrize("is_hard", [False, True])
def test_waits_of_random_sweeps(monkeypatch, is_hard):
    """Stages wait for enough, for these scalars and those for which the answers say that they
    hold; also where it is often too hard to say what is implied for others."""
    if is_hard:
        original = Proofs.holds_for_others
        asked = []

        def seldom(proofs, question):
            asked.append(question)
            return len(asked) % 3 > 0 and original(proofs, question)

        monkeypatch.setattr(Proofs, "holds_for_others", seldom)
    held = 0
    for seed in range(4):
        draw = random.Random(seed)
        n = draw.choice([4, 5])
        calls = []
        for _ in range(2):
            signs, first = (draw.choice([1, -1]), draw.choice([1, -1])), draw.randrange(2, n)
            calls += [(sweep, first + k, *signs) for k in range(draw.randint(2, 3))]
        submitted = listed(calls, n)
        questions = Questions(submitted)
        dependences = completed(direct_dependences(questions))
        stages = [stage_items(submitted, [s], "ids") for s in range(len(calls))]
        relations = StageRelations(questions, stages, dependences)
        waits = [relations.waits(s) for s in range(len(calls))]
        assert not items_not_waited_for(calls, waits, n)
        validity = questions.validity.result()
        for _ in range(60):
            by = draw.choice([0, 1, 2])
            others = [(k, d + by if draw.random() < 0.95 else d, *sign) for k, d, *sign in calls]
            m = n + draw.choice([0, by, by + 1])
            if validity.holds(listed(others, m)):
                held += others != calls
                assert not items_not_waited_for(others, waits, m)
    assert held


def test_too_much_is_not_said_of_other_directions(monkeypatch):
    """That two anti-diagonals share elements, where it is too hard to say for which scalars, is not
    said of those of other directions."""
    monkeypatch.setattr(list_dependences, "FEW_LIVE", 0)
    monkeypatch.setattr(Proofs, "_try_to_remember", lambda *_, inside: False)
    n = 6
    calls = [(sweep, d, sy, 1) for sy in (1, -1) for d in (2, 3, 7, 8)]
    found, _ = found_of(calls, n)
    assert not missed(calls, found, n)
    of = [touched(call, n) for call in calls]
    apart = {
        (p, s)
        for s in range(len(calls))
        for p in range(s)
        if not of[p][1] & of[s][0] and not of[p][1] & of[s][1] and not of[p][0] & of[s][1]
    }
    said = {(d.producer, s) for s, ds in enumerate(found) for d in ds if d.scope != "NONE"}
    assert (0, 2) in apart and (0, 2) not in said
    assert len(apart & said) <= len(apart) // 4


def test_sweeps_are_not_asked_diagonal_by_diagonal():
    """Of four sweeps over anti-diagonals answers serve other diagonals of the same directions."""
    n = 9
    calls = [(sweep, d, sy, 1) for sy in (1, -1) for d in range(n - 5, n + 5)]
    found, questions = found_of(calls, n)
    assert not missed(calls, found, n)
    pairs = sum(len(ds) for ds in found)
    asked = [k for k in questions.answers.found if k[1][0] == "dependences"]
    assert sum(len(questions.answers.found[k]) for k in asked) < pairs / 2


def test_sets_of_many_parts_have_no_cell():
    """Reading their constraints takes as long as nothing bounds."""
    few = isl.Set("[s0, s1] -> { [i] : s0 > 0 and i > 3 }")
    assert cell_of([few], SCALARS, {"s0": 1, "s1": 0}) is not None
    points = " or ".join(f"i = {k * k}" for k in range(300))
    many = isl.Set(f"[s0, s1] -> {{ [i] : s0 > 0 and ({points}) }}")
    assert many.n_basic_set() > 256
    assert cell_of([few, many], SCALARS, {"s0": 1, "s1": 0}) is None
