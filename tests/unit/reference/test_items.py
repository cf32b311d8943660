"""Running some work-items of a kernel on the reference backend, in an order of one's own."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusionq.backends.base import ArrayBinding
from fusionq.backends.reference import ReferenceBackend
from fusionq.backends.reference.launch import ReferenceLaunch
from fusionq.base.errors import DeviceError
from fusionq.base.span import Span
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Barrier,
    Binary,
    Compare,
    Const,
    Expr,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64

ROW, COLUMN = ItemQuery("global_id", 0), ItemQuery("global_id", 1)


def const(value: int) -> Const:
    return Const(INT64, value)


def add(lhs: Expr, rhs: Expr) -> Binary:
    return Binary(INT64, "add", lhs, rhs)


def prepared(
    array: npt.NDArray[Any],
    *body: Stmt,
    shape: tuple[int, ...],
    local_range: tuple[int, ...] | None = None,
    **rest: Any,
) -> ReferenceLaunch:
    """A kernel over the int64 array ``a``."""
    rest = {"variables": (), **rest}
    kernel = Kernel("k", len(shape), (ArrayParam("a", INT64, array.ndim),), body=body, **rest)
    backend = ReferenceBackend()
    strides = tuple(s // array.itemsize for s in array.strides)
    binding = ArrayBinding(array.ctypes.data, array.shape, strides)
    launch_shape = LaunchShape(shape, local_range or (1,) * len(shape))
    return backend.prepare(backend.build(kernel, "strict"), [binding], launch_shape)


def increment() -> Store:
    return Store("a", (ROW, COLUMN), add(Load(INT64, "a", (ROW, COLUMN)), const(1)))


def test_only_the_items_of_the_boxes_run_each_once() -> None:
    a = np.zeros((5, 6), np.int64)
    launch = prepared(a, increment(), shape=(5, 6))
    launch.run_items([(range(1, 3), range(2, 6)), (range(2, 4), range(0, 6, 3))])
    expected = np.zeros_like(a)
    expected[1:3, 2:6] = 1
    expected[2:4, 0:6:3] = 1
    np.testing.assert_array_equal(a, expected)


def test_boxes_that_cover_the_range_are_a_launch() -> None:
    a, b = np.zeros((4, 6), np.int64), np.zeros((4, 6), np.int64)
    value = add(ROW, add(COLUMN, ItemQuery("global_range", 1)))
    prepared(a, Store("a", (ROW, COLUMN), value), shape=(4, 6)).launch()
    launch = prepared(b, Store("a", (ROW, COLUMN), value), shape=(4, 6))
    for column in range(0, 6, 2):
        launch.run_items([(range(4), range(column, column + 2))])
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("order", "seed", "expected"),
    [
        ("natural", 0, [0, 1, 2, 5, 6]),
        ("reversed", 0, [6, 5, 2, 1, 0]),
        (lambda ids: [ids[k] for k in (3, 0, 4, 2, 1)], 0, [5, 0, 6, 2, 1]),
    ],
)
def test_items_run_in_the_order_asked_for(order: Any, seed: int, expected: list[int]) -> None:
    a = np.full(8, -1, np.int64)
    # Item i appends itself: a[7] counts the items before it.
    body = (
        Assign("at", Load(INT64, "a", (const(7),))),
        Store("a", (Var(INT64, "at"),), ROW),
        Store("a", (const(7),), add(Var(INT64, "at"), const(1))),
    )
    launch = prepared(a, *body, shape=(7,), variables=(("at", INT64),))
    a[7] = 0
    launch.run_items([(range(3),), (range(5, 7),)], order, seed)
    assert a[:5].tolist() == expected


def test_a_seed_determines_the_shuffled_order() -> None:
    launch = prepared(np.zeros((3, 3), np.int64), increment(), shape=(3, 3))
    boxes = [(range(3), range(3))]
    orders = [list(launch.item_steps(boxes, seed=seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_a_step_runs_one_item() -> None:
    a = np.zeros((2, 2), np.int64)
    steps = prepared(a, increment(), shape=(2, 2)).item_steps([(range(2), range(2))], "natural")
    assert a.sum() == 0
    assert next(steps) == (0, 0)
    assert a.tolist() == [[1, 0], [0, 0]]
    assert next(steps) == (0, 1)
    assert a.tolist() == [[1, 1], [0, 0]]


def test_local_and_group_ids_are_those_of_the_launch() -> None:
    a = np.zeros(6, np.int64)
    parts = [ItemQuery("group_id", 0), ItemQuery("local_id", 0), ItemQuery("local_range", 0)]
    value: Expr = ItemQuery("group_range", 0)
    for part in parts:
        value = add(Binary(INT64, "mul", value, const(10)), part)
    launch = prepared(a, Store("a", (ROW,), value), shape=(6,), local_range=(3,))
    launch.run_items([(range(2, 5),)])
    assert a.tolist() == [0, 0, 2023, 2103, 2113, 0]


@pytest.mark.parametrize(
    "box", [(range(3), range(7)), (range(-1, 2), range(2)), (range(3),)], ids=str
)
def test_a_box_outside_the_range_is_refused(box: tuple[range, ...]) -> None:
    launch = prepared(np.zeros((5, 6), np.int64), increment(), shape=(5, 6))
    with pytest.raises(DeviceError, match=r"kernel 'k'.*outside the global range \(5, 6\)"):
        launch.item_steps([box])


def test_an_empty_box_is_nothing() -> None:
    launch = prepared(np.zeros((5, 6), np.int64), increment(), shape=(5, 6))
    assert list(launch.item_steps([(range(9, 9), range(6))])) == []


def test_items_that_meet_are_refused() -> None:
    body = (Barrier(span=Span("f.py", 3)),)
    launch = prepared(np.zeros(4, np.int64), *body, shape=(4,))
    with pytest.raises(DeviceError, match=r"they meet at f\.py:3"):
        launch.item_steps([(range(4),)])


def test_items_that_share_local_memory_are_refused() -> None:
    tile = ArrayDecl("tile", INT64, (4,), "local")
    launch = prepared(np.zeros(4, np.int64), shape=(4,), arrays=(tile,))
    with pytest.raises(DeviceError, match="they share 'tile'"):
        launch.item_steps([(range(4),)])


def test_an_item_that_goes_wrong_says_so() -> None:
    body = (
        If(Compare("gt", ROW, const(1)), (Assign("x", const(1)),)),
        Store("a", (ROW,), Var(INT64, "x")),
    )
    launch = prepared(np.zeros(4, np.int64), *body, shape=(4,), variables=(("x", INT64),))
    launch.run_items([(range(2, 4),)])
    with pytest.raises(DeviceError, match="has not assigned"):
        launch.run_items([(range(1, 2),)])
