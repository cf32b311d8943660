"""Conditions on tiles that are inside of all bounds, and the loops of these."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from fusionq.codegen.interior import Interior
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Param,
    Stmt,
    Store,
    Unary,
    Var,
)
from fusionq.ir.types import BOOL, FLOAT32, INT64
from fusionq.passes.whole_tiles import (
    Box,
    copies,
    is_inside,
    may_be_whole,
    strongest,
    unclamped,
    whole_loops,
)

N, START = Param(INT64, "n"), Var(INT64, "start")
FAR = 1 << 62


def constant(value: int) -> Const:
    return Const(INT64, value)


def plus(e: Expr, value: int) -> Expr:
    return Binary(INT64, "add", e, constant(value))


def id_of(dim: int) -> ItemQuery:
    return ItemQuery("global_id", dim)


ROWS = Box(Var(INT64, "row"), 6, 1, None)
COLUMNS = Box(START, 20, 8, ItemQuery("local_id", 1))


def asked(*where: Expr, boxes: tuple[Box, ...] = (ROWS, COLUMNS)) -> list[Expr] | None:
    return is_inside(Interior((constant(1),), (plus(N, -1),), where, ()), boxes)


@pytest.mark.parametrize(
    "cond, expected",
    [
        (Compare("lt", id_of(0), N), Compare("lt", plus(ROWS.start, 5), N)),
        (Compare("le", constant(2), id_of(0)), Compare("ge", ROWS.start, constant(2))),
        (Compare("gt", plus(id_of(0), -3), N), Compare("gt", plus(ROWS.start, -3), N)),
        (Compare("ge", N, plus(id_of(0), 1)), Compare("le", plus(plus(ROWS.start, 5), 1), N)),
        (Compare("lt", N, constant(4)), Compare("lt", N, constant(4))),
        (
            Unary(BOOL, "not", Compare("ge", id_of(0), N)),
            Compare("lt", plus(ROWS.start, 5), N),
        ),
    ],
)
def test_conditions_hold_for_all_of_a_box(cond: Expr, expected: Expr) -> None:
    row = [
        Compare("ge", START, constant(1)),
        Compare("le", plus(START, 19), plus(N, -1)),
    ]
    assert asked(cond) == [*row, expected]


def test_what_is_unlike_a_bound_is_before_or_behind() -> None:
    for cond in (
        Compare("ne", id_of(0), N), Unary(BOOL, "not", Compare("eq", id_of(0), N)),
    ):  # fmt: skip
        found = asked(cond)
        assert found is not None
        assert str(found[-1]).count("Compare") == 2 and "or" in str(found[-1])


@pytest.mark.parametrize(
    "cond",
    [
        Compare("eq", id_of(0), N),
        Compare("lt", id_of(0), id_of(0)),
        Compare("lt", Binary(INT64, "add", id_of(0), N), constant(3)),
        Compare("lt", Binary(INT64, "mod", id_of(0), constant(3)), constant(1)),
        Compare("lt", plus(id_of(0), 1 << 40), N),
    ],
)
def test_there_is_no_telling(cond: Expr) -> None:
    assert asked(cond) is None


def test_bounds_by_other_ids() -> None:
    inner = Interior((id_of(0),), (), (), ())
    assert is_inside(inner, (ROWS, COLUMNS)) is None


def test_kernels_of_which_tiles_may_be_whole() -> None:
    stored = Store("a", (id_of(0), id_of(1)), Const(FLOAT32, 1.0))
    kernel = Kernel("k", 2, (ArrayParam("a", FLOAT32, 2),), (), (stored,))
    plain = Interior((), (), (), kernel.body)
    assert may_be_whole(plain, kernel)
    assert not may_be_whole(replace(plain, where=(Compare("eq", id_of(0), N),)), kernel)
    assert not may_be_whole(plain, replace(kernel, body=(stored,) * 40)), "it is too large"


def test_the_strongest_of_each_kind_is_left() -> None:
    found = strongest([
        Compare("lt", plus(START, 3), N),
        Compare("le", plus(START, 1), N),
        Compare("ge", START, constant(1)),
        Compare("gt", plus(START, -2), constant(0)),
        Compare("le", START, plus(N, -1)),
        Compare("ge", plus(START, 4), constant(1)),
        Compare("ne", START, N),
    ])  # fmt: skip
    assert found == [
        Compare("le", plus(START, 4), N),
        Compare("ge", plus(START, -3), constant(0)),
        Compare("le", START, plus(N, -1)),
        Compare("ne", START, N),
    ]


@pytest.mark.parametrize("start, n", list(product(range(-3, 9), range(8))))
def test_the_strongest_mean_what_all_did(start: int, n: int) -> None:
    conditions: list[Compare] = [
        Compare("lt", plus(START, 3), N), Compare("le", plus(START, 1), N),
        Compare("ge", START, constant(1)), Compare("gt", plus(START, -2), constant(0)),
        Compare("ge", plus(START, 4), constant(1)), Compare("gt", N, constant(2)),
    ]  # fmt: skip

    def value(e: Expr) -> int:
        match e:
            case Const():
                return int(e.value)
            case Binary():
                return value(e.lhs) + value(e.rhs)
        return start if e == START else n

    def holds(cond: Expr) -> bool:
        assert isinstance(cond, Compare)
        a, b = value(cond.lhs), value(cond.rhs)
        return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[cond.op]

    assert all(map(holds, strongest(conditions))) == all(map(holds, conditions))


def test_limits_around_sizes_go() -> None:
    near = Call(INT64, "minimum", (Call(INT64, "maximum", (N, constant(-FAR))), constant(FAR)))
    assert unclamped(plus(near, -1), lambda e: e == N) == plus(N, -1)
    assert unclamped(plus(near, -1), lambda e: False) == plus(near, -1)
    small = Call(INT64, "minimum", (N, constant(7)))
    assert unclamped(small, lambda e: True) == small


def test_each_item_of_a_box_is_done_once() -> None:
    """By the lanes of a work-group, each with its own number."""
    names = iter(f"v{k}" for k in range(20))
    boxes = (replace_lane(ROWS, 4, 0), COLUMNS)
    made = whole_loops(
        boxes, lambda ids: (Assign("done", ids[0]), Assign("done", ids[1])),
        lambda wanted: next(names), lambda wanted: next(names),
    )  # fmt: skip
    assert copies(boxes) == 4
    done: list[tuple[int, int]] = []

    def run(body: tuple[Stmt, ...], known: dict[str, int], lanes: tuple[int, int]) -> None:
        pair: list[int] = []

        def value(e: Expr) -> int:
            match e:
                case Const():
                    return int(e.value)
                case Binary():
                    return value(e.lhs) + value(e.rhs)
                case ItemQuery(_, dim):
                    return lanes[dim]
                case Var():
                    return known[e.name]
            raise AssertionError(e)

        for s in body:
            match s:
                case Assign("done", e):
                    pair.append(value(e))
                case Assign(name, e):
                    known[name] = value(e)
                case For():
                    for k in range(value(s.start), value(s.stop), value(s.step)):
                        known[s.var] = k
                        run(s.body, known, lanes)
                case If(Compare("lt", lhs, rhs), then):
                    if value(lhs) < value(rhs):
                        run(then, known, lanes)
        if pair:
            done.append((pair[0], pair[1]))

    for lanes in product(range(4), range(8)):
        run(made, {"row": 100, "start": 1000}, lanes)
    assert sorted(done) == [(100 + i, 1000 + j) for i in range(6) for j in range(20)]


def replace_lane(box: Box, lanes: int, dim: int) -> Box:
    return Box(box.start, box.length, lanes, ItemQuery("local_id", dim))
