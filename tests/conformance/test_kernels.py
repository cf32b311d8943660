"""Whole kernels: ids, control flow, views of arrays, against what is written down or the reference
backend, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.base import Backend
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import FloatMode, LaunchShape
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Binary,
    Break,
    Compare,
    Continue,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.types import FLOAT32, INT32, INT64, ScalarType
from tests.conformance.running import Array, Scalar, different, run
from tests.unit.codegen import built_kernels
from tests.unit.codegen.built_kernels import IDS, ITEM, add, const, elementwise, load, mul, sub

ID, ZERO, ONE = ItemQuery("global_id", 0), const(0), const(1)


def one_array(*body: Stmt, dtype: ScalarType = INT64, ndim: int = 1, **rest: Any) -> Kernel:
    """A kernel of the array ``a``."""
    return Kernel(
        "k", ndim, (ArrayParam("a", dtype, ndim, contiguous=False),), body=body,
        **{"variables": (), **rest},
    )  # fmt: skip


def one_by_one(n: int) -> LaunchShape:
    """Work-groups of one work-item, so that none is too many."""
    return LaunchShape((n,), (1,))


# ---------------------------------------------------------------------------- ids, views
def test_ids_and_ranges_in_two_dimensions(backend: Backend) -> None:
    queries = [
        ItemQuery(q, d)
        for q in ("global_id", "global_range", "local_id", "local_range", "group_id", "group_range")
        for d in (0, 1)
    ]
    i, j = queries[:2]
    stores = tuple(Store("a", (i, j, const(n)), q) for n, q in enumerate(queries))
    kernel = Kernel("k", 2, (ArrayParam("a", INT64, 3),), (), stores)
    out = np.zeros((4, 6, 12), np.int64)
    run(backend, kernel, out, items=(4, 6), shape=LaunchShape((4, 6), (2, 3)))
    for r in range(4):
        for c in range(6):
            assert list(out[r, c]) == [r, c, 4, 6, r % 2, c % 3, 2, 3, r // 2, c // 3, 2, 2]


def test_strided_and_reversed_views_are_reached_through_their_strides(backend: Backend) -> None:
    base = np.zeros((6, 8), np.int64)
    view = base[::-2, 1:7:3]
    i, j = ID, ItemQuery("global_id", 1)
    kernel = one_array(Store("a", (i, j), add(mul(i, const(10)), j)), ndim=2)
    run(backend, kernel, view, items=view.shape, shape=LaunchShape(view.shape, (1, 1)))
    expected = np.zeros((6, 8), np.int64)
    expected[::-2, 1:7:3] = [[10 * r + c for c in range(2)] for r in range(3)]
    assert np.array_equal(base, expected)


def test_one_memory_seen_as_two_types(backend: Backend) -> None:
    """A compiler may not assume that a float and an int array are different memory."""
    a, out = np.zeros(16, np.float32), np.zeros(16, np.float32)
    types = {"a": FLOAT32, "bits": INT32, "out": FLOAT32}
    body = (
        Store("a", (ITEM,), const(1.0, FLOAT32)),
        Store("bits", (ITEM,), const(0x40000000, INT32)),
        Store("out", (ITEM,), load("a", ITEM)),
    )
    params = tuple(ArrayParam(name, type, 1) for name, type in types.items())
    kernel = Kernel("k", 1, params, (("i", INT64),), (IDS[0], *body))
    shape = LaunchShape((16,), (16,))
    run(backend, kernel, a, a.view(np.int32), out, items=16, shape=shape)
    assert (out == 2).all()
    assert (a == 2).all()


# -------------------------------------------------------------------------- control flow
def _counting(*loops: Stmt) -> Kernel:
    """``total`` from 0, after the loops, in ``a[0]``; ``a[1]`` is 0."""
    total = Var(INT64, "total")
    body = (Assign("total", ZERO), *loops, Store("a", (ZERO,), total))
    return one_array(*body, variables=(("total", INT64),))


def _count(value: Expr) -> Stmt:
    return Assign("total", add(Var(INT64, "total"), value))


def _leave(stmt: Stmt, at: int) -> Stmt:
    return If(Compare("eq", Var(INT64, "k"), const(at)), (stmt,))


def test_loops(backend: Backend) -> None:
    k, total = Var(INT64, "k"), Var(INT64, "total")
    kernel = _counting(
        For("k", ZERO, const(5), ONE, (_leave(Continue(), 1), _count(k))),  # 0 + 2 + 3 + 4
        For("k", ZERO, const(9), ONE, (_leave(Break(), 3), _count(k))),  # 0 + 1 + 2
        For("k", const(3), ZERO, const(-1), (_count(k),)),  # 3 + 2 + 1
        For("k", ZERO, const(3), Load(INT64, "a", (ONE,)), (_count(const(-99)),)),  # by 0: never
        While(Compare("lt", total, const(100)), (Assign("total", mul(total, const(2))),)),
    )
    out = np.zeros(2, np.int64)
    run(backend, kernel, out, items=1, shape=one_by_one(1))
    assert list(out) == [144, 0]


def test_a_loop_with_break_and_continue(backend: Backend, target: str) -> None:
    if target == "dpex":
        pytest.skip("the compiler of oneAPI 2024.2 crashes on what numba-dpex makes of it")
    body = (_leave(Continue(), 1), _leave(Break(), 4), _count(Var(INT64, "k")))
    kernel = _counting(For("k", ZERO, const(10), ONE, body))
    out = np.zeros(2, np.int64)
    run(backend, kernel, out, items=1, shape=one_by_one(1))
    assert out[0] == 0 + 2 + 3


def test_loop_bounds_are_evaluated_once(backend: Backend) -> None:
    n = Var(INT64, "n")
    kernel = one_array(
        Assign("n", const(3)),
        For("k", ZERO, n, ONE, (Assign("n", add(n, ONE)),)),
        Store("a", (ID,), n),
        variables=(("n", INT64),),
    )
    out = np.zeros(1, np.int64)
    run(backend, kernel, out, items=1, shape=one_by_one(1))
    assert out[0] == 6


def test_and_does_not_evaluate_what_it_need_not(backend: Backend) -> None:
    inside = Compare("lt", ID, Extent("a", 0))
    positive = Compare("gt", Load(INT64, "a", (ID,)), ZERO)
    kernel = one_array(If(Logical("and", inside, positive), (Store("a", (ID,), ZERO),)))
    array = np.array([3, -4], np.int64)
    run(backend, kernel, array, items=6, shape=one_by_one(6))
    assert list(array) == [0, -4]


def test_private_arrays_belong_to_the_work_item(backend: Backend) -> None:
    own = (Var(INT64, "k"),)
    kernel = one_array(
        For("k", ZERO, const(4), ONE, (Store("own", own, add(mul(ID, const(10)), own[0])),)),
        Store("a", (ID,), Load(INT64, "own", (Binary(INT64, "mod", ID, const(4)),))),
        arrays=(ArrayDecl("own", INT64, (4,), "private"),),
    )
    out = np.zeros(16, np.int64)
    run(backend, kernel, out, items=16, shape=LaunchShape((16,), (8,)))
    assert list(out) == [10 * i + i % 4 for i in range(16)]


# --------------------------------------------------------------------------- arithmetic
@pytest.mark.parametrize("fp", ["strict", "fast"])
def test_both_float_modes(backend: Backend, fp: FloatMode) -> None:
    a, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    run(backend, built_kernels.fused_example(), a, a, a, a, out, 64, items=64, fp=fp)
    assert (out == 1).all()


def test_strict_mode_does_not_contract(backend: Backend) -> None:
    x = np.float32(1 + 2**-12)
    a = load("a", ITEM)
    square = const(float(x * x), FLOAT32)
    kernel = elementwise("k", {"a": FLOAT32}, FLOAT32, sub(mul(a, a), square))
    values, out = np.full(64, x), np.ones(64, np.float32)
    run(backend, kernel, values, out, 64, items=64)
    assert (out == 0).all()  # contracted, it would be the rounding error of x * x


@fq.kernel
def sums(item: fq.NdItem, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    total = x.dtype.type(0)
    for k in range(x.shape[0]):
        total += x[k]
    out[0, i] = total
    total = x.dtype.type(0)
    k = 0
    while k < x.shape[0]:
        total += x[k]
        k += 1
    out[1, i] = total
    total = x.dtype.type(0)
    for k in range(0, x.shape[0], 2):
        total += x[k]
        total += x[k + 1]
    out[2, i] = total
    out[3, i] = 0.0
    for k in range(x.shape[0]):
        out[3, i] += x[k]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("group", [1, 7, 16, 17])
def test_floating_sums_keep_the_order_of_a_loops_turns(
    queue: fq.FusionQueue, group: int, dtype: type[np.floating[Any]]
) -> None:
    """Work-items that do not fill a vector run in other code than the rest."""
    terms = (np.random.default_rng(0).random(64) - 0.5).astype(dtype)
    wanted = dtype(0)
    for term in terms:
        wanted += term
    out = fq.Buffer(np.zeros((4, group), dtype))
    queue.submit(sums, fq.NdRange(group, group), fq.Buffer(terms), out)
    assert out.numpy().tolist() == [[wanted] * group] * 4


# ------------------------------------------------------------- kernels of the golden texts
Case = tuple[int | tuple[int, ...], list[Array | Scalar]]


def _floats(*shape: int, dtype: Any = np.float32) -> Array:
    drawn: Array = np.random.default_rng(17).standard_normal(shape).astype(dtype)
    return drawn


def _branches() -> Case:
    random = np.random.default_rng(17)
    values = np.where(random.random(300) < 0.2, np.nan, _floats(300, dtype=np.float64) * 2)
    return 300, [values, random.random(300) < 0.5, np.zeros(300), True, 297]


def _integers(low: int, high: int, n: int, dtype: Any) -> Array:
    return np.random.default_rng(17).integers(low, high, n, dtype=dtype)


CASES: dict[str, Callable[[], Case]] = {
    "fused_example": lambda: (
        1000, [*(_floats(1000) * k for k in (1, 2, 3, 4)), np.zeros(1000, np.float32), 990]),
    "strided_2d": lambda: (
        (37, 21), [_floats(78, 46)[::-2, ::2], np.zeros((37, 21), np.float32)]),
    "loops": lambda: (40, [_integers(-3, 9, 50, np.int32), np.zeros(40, np.int32), 50, 3]),
    "branches": _branches,
    "private_array": lambda: (
        30, [_integers(0, 256, 120, np.uint8), np.zeros(120, np.uint8), 30]),
    "awkward_names": lambda: (9, [_floats(3, 3, 2, dtype=np.float16), 3, np.float16(0.5)]),
}  # fmt: skip
UNGUARDED = ("loops", "awkward_names")
"""Kernels for exactly as many work-items as there are elements."""


@pytest.mark.parametrize("name", CASES)
def test_same_as_the_reference(backend: Backend, name: str) -> None:
    if name == "awkward_names" and not backend.info.has_fp16:
        pytest.skip("float16, which the backend lacks")
    kernel = getattr(built_kernels, name)()
    results = []
    for one in (backend, ReferenceBackend()):
        items, arguments = CASES[name]()
        shape = one_by_one(items) if isinstance(items, int) and name in UNGUARDED else None
        run(one, kernel, *arguments, items=items, shape=shape)
        results.append([a for a in arguments if isinstance(a, np.ndarray)])
    for got, wanted in zip(*results, strict=True):
        assert not len(different(got, wanted))


@fq.kernel
def chosen(item: fq.Item, a: Any, b: Any, last: np.int64) -> None:
    i = item.get_id(0)
    a[i] = np.float32(7)
    a[i] = (a[i] if i < last else b[i]) + np.float32(1)


@fq.kernel
def branched(item: fq.Item, a: Any, b: Any, last: np.int64) -> None:
    i = item.get_id(0)
    a[i] = np.float32(7)
    if i < last:  # noqa: SIM108  # a branch, as compilers see it
        x = a[i]
    else:
        x = b[i]
    a[i] = x + np.float32(1)


@pytest.mark.parametrize("kernel", [chosen, branched], ids=["selected", "branches"])
def test_a_load_of_one_array_or_another_sees_the_store_before(
    queue: fq.FusionQueue, kernel: Any
) -> None:
    """Compilers make one load of the two."""
    numbers = np.arange(64, dtype=np.float32)
    a, b = fq.Buffer(-numbers), fq.Buffer(numbers)
    queue.submit(kernel, 64, a, b, 40).wait()
    assert a.numpy().tolist() == [8.0] * 40 + [n + 1.0 for n in range(40, 64)]
