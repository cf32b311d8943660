"""What an iteration stores and the next one loads, in variables: the same bits, and loops that are
left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import LaunchShape
from fusionq.codegen.carried_values import with_carried_values
from fusionq.codegen.loads_together import with_loads_together
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import ArrayParam, Kernel, Load
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.ir.walk import expressions
from tests.unit.frontend.running import binding, define, specialised

ROWS, COLUMNS = 3, 40


@fq.kernel
def recurrence(item: fq.Item, n, a, p, q):
    """The elimination of a tridiagonal system: two arrays, the one of which is in the other."""
    i = item.get_id(0)
    for j in range(1, n):
        p[i, j] = 0.5 / (p[i, j - 1] + 2.0)
        q[i, j] = (a[i, j] - q[i, j - 1]) / (p[i, j - 1] + 3.0)


@fq.kernel
def substitution(item: fq.Item, n, a, p, q):
    """Its other half, from the last column on, by a variable of the loop."""
    i = item.get_id(0)
    for k in range(1, n):
        j = n - 1 - k
        m = j + 1
        p[i, j] = a[i, j] * p[i, m] + q[i, m - 1]


@fq.kernel
def backwards(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for j in range(n - 3, -1, -2):
        p[i, j] = p[i, j + 2] * 0.5 + a[i, j]


@fq.kernel
def accumulated(item: fq.Item, n, a, p, q):
    """In memory, at one place, and read again behind the store."""
    i = item.get_id(0)
    for j in range(n):
        p[i, 0] = p[i, 0] * 0.75 + a[i, j]
        q[i, j] = p[i, 0]


@fq.kernel
def running_sum(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for j in range(1, n):
        p[i, j] = p[i, j - 1] + a[i, j]
        q[i, j] = p[i, j] + p[i, j - 1]


@fq.kernel
def in_a_loop(item: fq.Item, n, a, p, q):
    """Rows of a loop outside, below a condition."""
    i = item.get_id(0)
    for r in range(3):
        if (i + r) % 2 == 0:
            for j in range(r + 3, n, 3):
                p[i, j] = p[i, j - 3] + a[r, j]


CARRIED = {
    recurrence: ["p", "q"], substitution: ["p"], backwards: ["p"], accumulated: ["p"],
    running_sum: ["p"], in_a_loop: ["p"],
}  # fmt: skip


@fq.kernel
def two_stores(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for j in range(1, n):
        p[i, j] = p[i, j - 1] + a[i, j]
        p[i, 0] = a[i, j]


@fq.kernel
def another_element(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for j in range(2, n):
        p[i, j] = p[i, j - 1] + p[i, j - 2]


@fq.kernel
def ahead_of_the_store(item: fq.Item, n, a, p, q):
    """What this iteration stores, before it has."""
    i = item.get_id(0)
    for j in range(1, n):
        q[i, j] = p[i, j]
        p[i, j] = p[i, j - 1] + a[i, j]


@fq.kernel
def perhaps(item: fq.Item, n, a, p, q):
    """Whose first iteration reads nothing before the row."""
    i = item.get_id(0)
    for j in range(n):
        p[i, j] = (p[i, j - 1] if j > 0 else 0.0) + a[i, j]


@fq.kernel
def below_a_condition(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for j in range(1, n):
        if a[i, j] > 0:
            p[i, j] = p[i, j - 1] + a[i, j]


@fq.kernel
def by_memory(item: fq.Item, n, a, p, q):
    i = item.get_id(0)
    for j in range(1, n):
        p[i, int(a[i, j])] = p[i, int(a[i, j - 1])] + 1.0


@fq.kernel
def by_a_variable(item: fq.Item, n, a, p, q):
    """That the loop changes as it goes."""
    i = item.get_id(0)
    place = 0
    for j in range(1, n):
        p[i, place + 1] = p[i, place] + a[i, j]
        place += j % 2


@fq.kernel
def by_steps(item: fq.Item, n, a, p, q):
    """Steps that are not known."""
    i = item.get_id(0)
    for j in range(n // 40, n, n // 40):
        p[i, j] = p[i, j - n // 40] + a[i, j]


LEFT_ALONE = (
    two_stores, another_element, ahead_of_the_store, perhaps, below_a_condition, by_memory,
    by_a_variable, by_steps,
)  # fmt: skip


def arrays(columns: int = COLUMNS, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(columns)
    return [rng.random((ROWS, max(columns, 1))).astype(dtype) for _ in range(3)]


def of(kernel: fq.KernelFunction, given: list, restrict: bool = True) -> Kernel:
    ir = specialised(kernel, fq.Range(ROWS), *given)
    params = tuple(
        replace(p, restrict=restrict) if isinstance(p, ArrayParam) else p for p in ir.params
    )
    return replace(ir, params=params)


def carried(ir: Kernel) -> Kernel | None:
    made = with_carried_values(ir, flatten_blocks(ir.body))
    if made is not None:
        verify(made)
    return made


def together(ir: Kernel) -> Kernel:
    """With loads of several iterations ahead as well, as launches of few work-items have them."""
    few = replace(ir, few_items=True)
    made = with_loads_together(few, flatten_blocks(ir.body), CODE_LIMITS.iterations_together // 8)
    return ir if made is None else made


def run(ir: Kernel, n: int, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    found = [array.copy() for array in given]
    backend = ReferenceBackend(order="natural")
    bindings = [np.int64(n), *map(binding, found)]
    backend.prepare(backend.build(ir, "strict"), bindings, LaunchShape((ROWS,), (1,))).launch()
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        *((kernel, dtype) for kernel in CARRIED for dtype in ("float32", "float64")),
        *((running_sum, dtype) for dtype in ("int64", "uint32")),
    ],
)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 39, 40])
def test_results_have_the_same_bits(kernel: fq.KernelFunction, dtype: str, n: int) -> None:
    given = arrays(dtype=dtype)
    ir = of(kernel, [n, *given])
    made = carried(ir)
    assert made is not None
    names = {name for name, _ in made.variables} - {name for name, _ in ir.variables}
    assert names == {f"{a}_{what}" for a in CARRIED[kernel] for what in ("before", "value")}
    expected = run(ir, n, given)
    for rewritten in (made, together(made)):
        for one, other in zip(run(rewritten, n, given), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_loops_load_nothing_that_they_have_stored() -> None:
    made = carried(of(recurrence, [COLUMNS, *arrays()]))
    assert made is not None
    text = print_kernel(made)
    loop = text[text.index("for ") :]
    assert "p[" in loop and loop.count("p[") == loop.count("q[") == 1, text
    (count,) = {sum(isinstance(e, Load) for e in expressions(made.body))}
    assert count == 3, "a, and what the first iteration begins with"


def test_other_loads_of_such_loops_can_be_made_ahead() -> None:
    """Their indices by way of variables of the loop, too."""
    ir = of(substitution, [COLUMNS, *arrays()])
    made = carried(ir)
    assert made is not None
    assert len(together(made).arrays) == 2
    assert together(ir).arrays == ()


@pytest.mark.parametrize("kernel", LEFT_ALONE, ids=lambda k: k.__name__)
def test_loops_that_are_left_alone(kernel: fq.KernelFunction) -> None:
    assert carried(of(kernel, [COLUMNS, *arrays()])) is None


@pytest.mark.parametrize("kernel", CARRIED, ids=lambda k: k.__name__)
def test_arrays_that_may_share_memory_are_left_alone(kernel: fq.KernelFunction) -> None:
    assert carried(of(kernel, [COLUMNS, *arrays()], restrict=False)) is None


def test_types_that_registers_hold_in_another_form_are_left_alone() -> None:
    assert carried(of(running_sum, [COLUMNS, *arrays(dtype="float16")])) is None


INDICES = st.sampled_from(["j", "j - 1", "n - 1 - j", "n - j", "0"])


@given(
    st.lists(st.tuples(INDICES, INDICES, INDICES, st.booleans()), min_size=1, max_size=3),
    st.sampled_from([1, 2, -1]),
    st.integers(0, 12),
)
def test_random_loops(lines: list[tuple[str, str, str, bool]], step: int, n: int) -> None:
    """Stores and loads at elements of rows and their neighbours."""
    bounds = "n - 1, 0, -1" if step < 0 else f"1, n, {step}"
    body = "\n".join(
        f"        {'p' if first else 'q'}[i, {stored}] = p[i, {one}] * 0.5 + q[i, {other}]"
        for stored, one, other, first in lines
    )
    text = f"def made(item, n, a, p, q):\n    i = item.get_id(0)\n    for j in range({bounds}):\n"
    kernel = define(text + body + "\n")
    given = arrays(16)
    ir = of(kernel, [n, *given])
    made = carried(ir)
    if made is None:
        return
    expected = run(ir, n, given)
    for rewritten in (made, together(made)):
        for one, other in zip(run(rewritten, n, given), expected, strict=True):
            np.testing.assert_array_equal(one, other)
