"""Products of ids in kernels with many conditions: a list that random programs found, for which
Intel's compiler computed ``i * 53`` wrong for all but the first vector of a work-group."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.id_variables import with_id_variables
from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Compare,
    Const,
    Expr,
    If,
    ItemQuery,
    Kernel,
    Param,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64

N = 257


@fq.kernel
def first(item: fq.Item, a, o, m, k):
    i = item.get_id(0)
    if i - 3 > 5 or i > m - 1:
        o[i] = o[i] + i + k
    if i < m:
        o[i] = i * 368 + m
    if m - 1 >= i + 17:
        o[i] = o[i] * 3
    o[i] = i * 53 + m


@fq.kernel
def second(item: fq.Item, a, o, m, k):
    i = item.get_id(0)
    if i - 3 > a.shape[0] - 2 and i == k:
        o[i] = o[i] + i + k
    else:
        o[i] = o[i] + i + k
    o[i] = a[i] * 2 + i
    if i + 17 < a.shape[0]:
        o[i] = a[i] * 2 + i
    else:
        o[i] = a[i] * 2 + i


@fq.kernel
def third(item: fq.Item, a, o, m, k):
    i = item.get_id(0)
    if i > a.shape[0] - 2:
        o[i] = o[i] + i + k
    else:
        o[i] = a[i] * 2 + i
    if i + 17 > k:
        o[i] = a[i] * 2 + i
    else:
        o[i] = a[i] * 2 + i
    if i + 1 < m or a.shape[0] >= i + 17:
        o[i] = o[i] * 3
    else:
        o[i] = i * 992 + m
    if i - 3 < m - 1 and i + 1 <= 5:
        o[i] = o[i] + i + k


@fq.kernel
def fourth(item: fq.Item, a, o, m, k):
    i = item.get_id(0)
    if (i <= 5 and i + 17 == k and i + 1 == 5) or m - 1 < i + 17 or (m >= i - 3 and i == m):
        o[i] = i * 506 + m
    if i <= a.shape[0]:
        o[i] = a[i] * 2 + i
    else:
        o[i] = a[i] * 2 + i
    if i - 3 == m - 1:
        o[i] = o[i] * 3
    else:
        o[i] = o[i] * 3


@pytest.mark.slow
@pytest.mark.parametrize("target", ["reference", None])
def test_a_list_with_many_conditions_is_its_unfused_run(target):
    kernels = (first, second, third, fourth)
    scalars = ((0, 0), (16, 0), (1000, 500), (1000, 500))
    a = np.random.default_rng(54).integers(-50, 50, N)
    results = []
    for strategy in ("unfused", "fused"):
        outs = [fq.Buffer(np.zeros(N, np.int64)) for _ in kernels]
        with fq.FusionQueue(target) as queue, fq.fusion(queue, strategy=strategy):
            for _ in range(2):
                for kernel, out, (m, k) in zip(kernels, outs, scalars, strict=True):
                    queue.submit(kernel, N, fq.Buffer(a), out, m, k)
        results.append([out.numpy() for out in outs])
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[1][0], np.arange(N) * 53)


INT = ItemQuery("global_id", 0)
BOUND = Param(INT64, "n")
BARRIER = Barrier()


def stored(value: Expr) -> Store:
    return Store("a", (Const(INT64, 0),), value)


def with_variables(*body: Stmt) -> tuple[tuple[Stmt, ...], set[str]]:
    kernel = Kernel("k", 1, (), (), body)
    found = with_id_variables(kernel, body)
    return found.body, {name for name, _ in found.variables}


def test_parts_between_barriers_have_variables_of_their_own():
    body, names = with_variables(stored(INT), BARRIER, stored(INT), BARRIER, BARRIER)
    first, second = Var(INT64, "global id 0"), Var(INT64, "global id 0 behind 1")
    assert body == (
        Assign(first.name, INT), stored(first), BARRIER,
        Assign(second.name, INT), stored(second), BARRIER, BARRIER,
    )  # fmt: skip
    assert names == {first.name, second.name}


def test_guards_between_barriers_ask_for_the_id():
    guard = Compare("lt", INT, BOUND)
    double = Binary(INT64, "add", INT, INT)
    body, _ = with_variables(
        If(guard, (stored(INT),), (If(guard, (stored(double),)), BARRIER)), BARRIER, stored(BOUND)
    )
    id = Var(INT64, "global id 0")
    inner = If(guard, (stored(Binary(INT64, "add", id, id)),))
    assert body[:2] == (Assign(id.name, INT), If(guard, (stored(id),), (inner, BARRIER)))


def test_other_conditions_between_barriers_do_not():
    condition = Compare("gt", Binary(INT64, "mul", INT, INT), BOUND)
    body, _ = with_variables(If(condition, (stored(INT),)), stored(INT), BARRIER)
    id = Var(INT64, "global id 0")
    assert body[1] == If(Compare("gt", Binary(INT64, "mul", id, id), BOUND), (stored(id),))
