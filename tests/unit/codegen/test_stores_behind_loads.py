"""Stores to rows of few elements behind the loads before them: the same bits, and what stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.codegen.scoping import flatten_blocks
from fusionq.codegen.stores_behind_loads import with_stores_behind_loads
from fusionq.ir.nodes import ArrayParam, Assign, Const, Extent, For, Kernel, Store
from fusionq.ir.verifier import verify
from fusionq.ir.walk import rewrite_body, statements
from tests.unit.frontend.running import binding, define, specialised

ITEMS, ROW = 4, 3


@fq.kernel
def inverted(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for c in range(p.shape[1]):
        p[i, c] = 1 - a[i, c]


@fq.kernel
def moved(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for c in range(p.shape[1]):
        q[i, c] += a[i, c] * n
        p[i, c] += q[i, c]


@fq.kernel
def rotated(item: fq.Item, n, a, p, q):
    """Each loads what another one has stored before."""
    i = item.get_id(0)
    first = p[i, 0]
    p[i, 0] = p[i, 1] + a[i, 0]
    p[i, 1] = p[i, 2] + a[i, 1]
    p[i, 2] = first + p[i, 0]


@fq.kernel
def accumulated(item: fq.Item, n, a, p, q):
    """A variable that goes from one iteration to the next, and one that indices are made of."""
    i = item.get_id(0)
    total = 0.0
    place = 0
    for c in range(2):
        total += a[i, c]
        p[i, place] = total
        place = place + 1
        q[i, 2 - c] = total * a[i, place]


@fq.kernel
def nested(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    if i < n:
        for r in range(2):
            for c in range(3):
                p[i, c] = p[i, c] * 0.5 + a[i, r]
    for k in range(n):
        q[i, k % 3] = q[i, 2] + 1.0
        q[i, 0] = a[i, k % 3]


SCHEDULED = (inverted, moved, rotated, accumulated, nested)


def arrays(dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.integers(0, 9, (ITEMS, ROW)).astype(dtype) for _ in range(3)]


def of(kernel: fq.KernelFunction, given: list, restrict: bool = True, known: bool = True) -> Kernel:
    """The kernel whose arrays have rows of so many elements as a constant."""
    ir = specialised(kernel, fq.Range(ITEMS), *given)
    extents = (ROW,) if known else ()
    params = tuple(
        replace(p, restrict=restrict, extents=extents) if isinstance(p, ArrayParam) else p
        for p in ir.params
    )
    body = rewrite_body(
        ir.body, lambda e: Const(e.type, ROW) if isinstance(e, Extent) and e.dim == 1 else e
    )
    return replace(ir, params=params, body=body)


def scheduled(ir: Kernel) -> Kernel:
    made = with_stores_behind_loads(ir, flatten_blocks(ir.body))
    verify(made)
    return made


def run(ir: Kernel, n: int, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    found = [array.copy() for array in given]
    backend = ReferenceBackend(order="natural")
    bindings = [np.int64(n), *map(binding, found)]
    backend.prepare(backend.build(ir, "strict"), bindings, LaunchShape((ITEMS,), (1,))).launch()
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("kernel", SCHEDULED, ids=lambda k: k.__name__)
def test_results_have_the_same_bits(kernel: fq.KernelFunction, dtype: str) -> None:
    given = arrays(dtype)
    ir = of(kernel, [3, *given])
    made = scheduled(ir)
    assert made.body != flatten_blocks(ir.body)
    for one, other in zip(run(made, 3, given), run(ir, 3, given), strict=True):
        np.testing.assert_array_equal(one, other)


def order(kernel: Kernel) -> str:
    """What the kernel does one after the other: ``=`` for variables, arrays by their names."""
    kinds = (s for s in statements(kernel.body) if isinstance(s, Assign | Store | For))
    return "".join(
        "=" if isinstance(s, Assign) else s.array if isinstance(s, Store) else "~" for s in kinds
    )


def test_loops_are_unrolled_and_stores_stand_together() -> None:
    assert order(scheduled(of(inverted, [3, *arrays()]))).endswith("===ppp")


def test_a_store_waits_for_loads_of_other_elements_only() -> None:
    """Of the third line of ``rotated``, which loads what the first one stores."""
    assert order(scheduled(of(rotated, [3, *arrays()]))).endswith("==pp=p")


@pytest.mark.parametrize("kernel", SCHEDULED, ids=lambda k: k.__name__)
@pytest.mark.parametrize(("restrict", "known"), [(False, True), (True, False)])
def test_other_arrays_are_left_alone(kernel, restrict: bool, known: bool) -> None:
    """Those that may share memory, and those whose rows may be long."""
    ir = of(kernel, [3, *arrays()], restrict, known)
    assert scheduled(ir).body == flatten_blocks(ir.body)


def test_a_loop_of_many_statements_is_left_alone() -> None:
    lines = "\n".join(f"        p[i, c] += a[i, {c % 3}]" for c in range(11))
    kernel = define(
        "def made(item, n, a, p, q):\n    i = item.get_id(0)\n    for c in range(3):\n"
        f"{lines}\n    p[i, 0] = 1.0\n    p[i, 1] = a[i, 0]\n"
    )
    made = order(scheduled(of(kernel, [3, *arrays()])))
    assert made.count("~") == 1 and made.endswith("==pp")


PLACES = st.sampled_from(["0", "1", "2", "c", "2 - c", "k", "(i + c) % 3"])
ARRAYS = st.sampled_from("pq")


@given(
    st.lists(st.tuples(ARRAYS, PLACES, ARRAYS, PLACES, PLACES), min_size=1, max_size=4),
    st.lists(st.tuples(ARRAYS, PLACES, ARRAYS, PLACES, PLACES), min_size=0, max_size=3),
    st.integers(0, 2),
)
def test_random_rows(inside: list, behind: list, n: int) -> None:
    """Loads and stores at any elements of rows, in a loop and behind it, with a variable between
    them that is an index."""
    def line(indent: str, stored, at, loaded, one, other) -> str:
        return (
            f"{indent}{stored}[i, {at}] = {loaded}[i, {one}] * 2 + a[i, {other}]\n"
            f"{indent}k = (k + 1) % 3\n"
        )

    text = "def made(item, n, a, p, q):\n    i = item.get_id(0)\n    k = n\n    c = 0\n"
    text += "    for c in range(3):\n" + "".join(line("        ", *each) for each in inside)
    text += "".join(line("    ", *each) for each in behind)
    given = arrays()
    ir = of(define(text), [n, *given])
    for one, other in zip(run(scheduled(ir), n, given), run(ir, n, given), strict=True):
        np.testing.assert_array_equal(one, other)
