"""The reference backend: memory, checked accesses, orders, control flow, arguments."""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusionq.backends.base import ArrayBinding, Binding
from fusionq.backends.reference import OutOfBounds, ReferenceBackend
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.base.span import Span
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Binary,
    Break,
    Compare,
    Const,
    Expr,
    Extent,
    If,
    ItemQuery,
    Kernel,
    Load,
    Param,
    ScalarParam,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import BOOL, FLOAT32, INT64, ScalarType
from fusionq.ir.verifier import VerificationError

ID = ItemQuery("global_id", 0)
I64_ONE, I64_ZERO = Const(INT64, 1), Const(INT64, 0)


def bind(array: npt.NDArray[Any]) -> ArrayBinding:
    strides = tuple(s // array.itemsize for s in array.strides)
    return ArrayBinding(array.__array_interface__["data"][0], array.shape, strides)


def run(
    kernel: Kernel,
    arguments: list[npt.NDArray[Any] | bool | int | float],
    global_range: tuple[int, ...],
    local_range: tuple[int, ...] | None = None,
    backend: ReferenceBackend | None = None,
) -> None:
    backend = backend or ReferenceBackend()
    bindings: list[Binding] = [bind(a) if isinstance(a, np.ndarray) else a for a in arguments]
    shape = LaunchShape(global_range, local_range or (1,) * len(global_range))
    backend.prepare(backend.build(kernel, "strict"), bindings, shape).launch()


def one_array(*body: Stmt, dtype: ScalarType = INT64, ndim: int = 1, **rest: Any) -> Kernel:
    return Kernel(
        "k", ndim, (ArrayParam("a", dtype, ndim),), body=body, **{"variables": (), **rest}
    )


def add(lhs: Expr, rhs: Expr) -> Binary:
    return Binary(INT64, "add", lhs, rhs)


# ------------------------------------------------------------------------- memory
def test_memory_is_page_aligned_and_shared_with_its_host_view() -> None:
    memory = ReferenceBackend().allocate(5000)
    assert memory.address % mmap.PAGESIZE == 0
    assert memory.nbytes == memory.host_view().nbytes == 5000
    memory.host_view()[:] = 7
    again = ArrayBinding(memory.address, (5000 // 8,), (1,))
    kernel = one_array(Store("a", (ID,), add(Load(INT64, "a", (ID,)), I64_ONE)))
    backend = ReferenceBackend()
    backend.prepare(backend.build(kernel, "strict"), [again], LaunchShape((1,), (1,))).launch()
    assert memory.host_view()[0] == 8
    assert memory.host_view()[8] == 7


# ----------------------------------------------------------------- checked accesses
@pytest.mark.parametrize(("index", "shown"), [(5, "a[5]"), (-1, "a[-1]")])
def test_an_access_outside_the_extents_names_kernel_array_index_and_line(
    index: int, shown: str
) -> None:
    span = Span("user.py", 12, "    a[i] = 0")
    kernel = one_array(Store("a", (Const(INT64, index),), I64_ZERO, span=span))
    with pytest.raises(OutOfBounds) as error:
        run(kernel, [np.zeros(5, np.int64)], (1,))
    message = str(error.value)
    assert isinstance(error.value, IndexError)
    for part in ("kernel 'k'", shown, "(5,)", "user.py:12: a[i] = 0"):
        assert part in message


def test_a_load_outside_the_extents_is_refused_too() -> None:
    kernel = one_array(Store("a", (I64_ZERO,), Load(INT64, "a", (Extent("a", 0),))))
    with pytest.raises(OutOfBounds, match=r"a\[5\]"):
        run(kernel, [np.zeros(5, np.int64)], (1,))


def test_a_variable_read_before_it_is_assigned_is_a_device_error() -> None:
    kernel = one_array(Store("a", (ID,), Var(INT64, "x")), variables=(("x", INT64),))
    with pytest.raises(DeviceError, match="has not assigned"):
        run(kernel, [np.zeros(1, np.int64)], (1,))


def test_malformed_ir_is_not_built() -> None:
    with pytest.raises(VerificationError):
        ReferenceBackend().build(one_array(Break()), "strict")


# ---------------------------------------------------------------------------- order
def in_order_of_execution(backend: ReferenceBackend, n: int, local: int) -> list[int]:
    """The global ids in the order in which a backend runs the work-items."""
    counter, log = np.zeros(1, np.int64), np.zeros(n, np.int64)
    next_ = Load(INT64, "counter", (I64_ZERO,))
    kernel = Kernel(
        "k",
        1,
        (ArrayParam("counter", INT64, 1), ArrayParam("log", INT64, 1)),
        (),
        (Store("log", (next_,), ID), Store("counter", (I64_ZERO,), add(next_, I64_ONE))),
    )
    run(kernel, [counter, log], (n,), (local,), backend)
    return [int(i) for i in log]


def test_orders() -> None:
    assert in_order_of_execution(ReferenceBackend("natural"), 12, 3) == list(range(12))
    assert in_order_of_execution(ReferenceBackend("reversed"), 12, 3) == list(range(11, -1, -1))
    shuffled = in_order_of_execution(ReferenceBackend(), 12, 3)
    assert shuffled != sorted(shuffled) == list(range(12))
    groups = [i // 3 for i in shuffled]
    assert all(len(set(groups[k : k + 3])) == 1 for k in range(0, 12, 3))
    assert in_order_of_execution(ReferenceBackend(), 12, 3) == shuffled
    assert in_order_of_execution(ReferenceBackend(seed=1), 12, 3) != shuffled


# --------------------------------------------------------------------- control flow
def test_private_arrays_belong_to_the_item_and_hold_nothing_useful_at_first() -> None:
    kernel = one_array(
        If(
            Compare("eq", ID, I64_ZERO),
            (Store("own", (I64_ZERO,), Const(FLOAT32, 1.0)),),
        ),
        Store("a", (ID,), Load(FLOAT32, "own", (I64_ZERO,))),
        dtype=FLOAT32,
        arrays=(ArrayDecl("own", FLOAT32, (2,), "private"),),
    )
    out = np.zeros(3, np.float32)
    run(kernel, [out], (3,), (3,))
    assert out[0] == 1
    assert np.isnan(out[1:]).all()


# ------------------------------------------------------------------------ arguments
SCALED = Kernel(
    "scaled",
    1,
    (ArrayParam("a", FLOAT32, 1), ScalarParam("s", FLOAT32), ScalarParam("p", BOOL)),
    (),
    (
        If(
            Param(BOOL, "p"),
            (
                Store(
                    "a",
                    (ID,),
                    Binary(FLOAT32, "mul", Load(FLOAT32, "a", (ID,)), Param(FLOAT32, "s")),
                ),
            ),
        ),
    ),
)  # fmt: skip


def test_a_launch_has_run_when_it_returns() -> None:
    backend, array = ReferenceBackend(), np.ones(3, np.float32)
    program = backend.build(SCALED, "strict")
    assert program.source.startswith("def scaled(item, a, s, p):")
    launch = backend.prepare(program, [bind(array), 2.0, True], LaunchShape((3,), (1,)))
    assert launch.launch().complete
    assert list(array) == [2, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", np.float64(2), True], "'s' of kernel 'scaled': np.float64(2.0)"),
        (["a", 2.0, 1], "'p' of kernel 'scaled': 1 (int) is no bool"),
        (["a", True, True], "'s' of kernel 'scaled': True (bool) is no float32"),
    ],
)
def test_scalars_have_exactly_their_type(arguments: list[Any], message: str) -> None:
    backend, array = ReferenceBackend(), np.ones((3,), np.float32)
    bindings = [bind(array) if a == "a" else a for a in arguments]
    program = backend.build(SCALED, "strict")
    with pytest.raises(ArgumentError) as error:
        backend.prepare(program, bindings, LaunchShape((3,), (1,)))
    assert message in str(error.value)


@pytest.mark.parametrize("shape", [((4,), (3,)), ((4, 4), (2, 2)), ((4,), (0,))])
def test_launch_shapes_that_do_not_fit_are_refused(shape: tuple[Any, Any]) -> None:
    backend, array = ReferenceBackend(), np.ones((4,), np.float32)
    program = backend.build(SCALED, "strict")
    with pytest.raises(DeviceError, match="cannot run over the global range"):
        backend.prepare(program, [bind(array), 1.0, True], LaunchShape(*shape))
