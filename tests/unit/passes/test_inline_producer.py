"""Inlining of producers, as printed Python before and after."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.index_sums import index_sum
from fusionq.ir.nodes import Binary, Const, ItemQuery, Unary, Var
from fusionq.ir.printer import print_expr, print_kernel
from fusionq.ir.types import INT64
from fusionq.ir.verifier import verify
from fusionq.passes import inline_producer as inlining
from fusionq.passes.inline_producer import NotInlined, Producer, index_of, inline_producer
from tests.unit.lists import submission

N = 16
T, A, B = np.zeros(N, np.int64), np.zeros(N, np.int64), np.zeros(N, np.int64)


@fq.kernel
def blur(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = a[i - 1] + a[i + 1]


@fq.kernel
def guarded(item: fq.Item, a, t):
    i = item.get_id(0) + 1
    if a[i] > 3:
        t[i] = a[i]
    else:
        t[i] = 3


@fq.kernel
def edge(item: fq.Item, t, b):
    i = item.get_id(0)
    b[i] = t[i - 1] - t[i + 1] + t[i - 1]


@fq.kernel
def lazy(item: fq.Item, t, b):
    i = item.get_id(0)
    b[i] = t[i - 1] if i > 0 and t[i] > 2 else 7


@fq.kernel
def looped(item: fq.Item, t, b):
    i = item.get_id(0)
    s = t[i]
    for k in range(3):
        s += t[i + k] + t[i]
        i += 1
    b[i] = s + t[i]


@fq.kernel
def until(item: fq.Item, t, b):
    i = item.get_id(0)
    while t[i] > b[i]:
        b[i] += 1


def inlined(producer, consumer, ids=None):
    """The consumer with the producer's body, its lines after those of the parameters."""
    first = submission(producer, N, A, T).ir
    second = submission(consumer, N, T, B).ir
    result = inline_producer(second, {"t": "t"}, Producer(first, {"t": (ids or index_of(0),)}))
    verify(result.kernel)
    assert result.params == {"a": "a"}
    return [line.strip() for line in print_kernel(result.kernel).splitlines()[2:]]


def test_each_element_is_computed_once_before_it_is_read():
    assert inlined(blur, edge) == [
        "t_1 = a[item.get_id(0) - 2] + a[item.get_id(0)]",
        "t_2 = a[item.get_id(0)] + a[item.get_id(0) + 2]",
        "b[item.get_id(0)] = t_1 - t_2 + t_1",
    ]


def test_statements_are_those_of_the_work_item_that_writes_it():
    ids = Binary(INT64, "sub", index_of(0), Const(INT64, 1))
    assert inlined(guarded, edge, ids)[:4] == [
        "if a[item.get_id(0) - 1] > 3:",
        "t_1 = a[item.get_id(0) - 1]",
        "else:",
        "t_1 = 3",
    ]


def test_nothing_is_computed_that_was_not_read():
    assert inlined(blur, lazy) == [
        "holds = item.get_id(0) > 0",
        "if holds:",
        "t_1 = a[item.get_id(0) - 1] + a[item.get_id(0) + 1]",
        "holds = t_1 > 2",
        "if holds:",
        "t_2 = a[item.get_id(0) - 2] + a[item.get_id(0)]",
        "chosen = t_2",
        "else:",
        "chosen = 7",
        "b[item.get_id(0)] = chosen",
    ]


def test_what_is_known_ends_where_an_index_changes():
    text = inlined(blur, looped)
    assert sum(line.startswith("t_") for line in text) == 4


def test_a_loop_s_condition_is_refused():
    with pytest.raises(NotInlined, match="the condition of the loop at"):
        inlined(blur, until)


def test_a_kernel_that_would_become_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(inlining, "MOST_NODES", 20)
    with pytest.raises(NotInlined, match="more than 20 expressions"):
        inlined(blur, edge)


def test_sums_in_normal_form():
    i, k = ItemQuery("global_id", 0), Var(INT64, "k")

    def number(value):
        return Const(INT64, value)

    def of(op, lhs, rhs):
        return Binary(INT64, op, lhs, rhs)

    assert index_sum(of("add", of("sub", i, number(1)), number(1))) == i
    twice = of("add", of("add", k, i), k)
    assert index_sum(twice) == index_sum(of("add", of("mul", k, number(2)), i))
    assert print_expr(index_sum(of("sub", of("sub", i, k), number(3)))).endswith("- k - 3")
    assert index_sum(of("sub", i, i)) == number(0)
    assert index_sum(Unary(INT64, "neg", of("sub", k, i))) == index_sum(of("sub", i, k))
    inner = of("floordiv", of("sub", of("add", i, number(2)), number(2)), number(2))
    assert index_sum(inner) == of("floordiv", i, number(2))
    most = number((1 << 63) - 1)
    assert index_sum(of("add", most, number(1))) == number(-(1 << 63))
