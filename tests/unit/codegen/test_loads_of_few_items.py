"""Loads of many iterations of a loop together, in launches of few work-items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import LaunchShape
from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.loads_together import (
    has_loads_together,
    rows_loaded,
    with_loads_together,
)
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import ArrayParam, For, Kernel
from fusionq.ir.verifier import verify
from fusionq.ir.walk import statements
from tests.unit.cuda.compile_only import TARGET
from tests.unit.frontend.running import binding, specialised

ITEMS = 3
MOST = CODE_LIMITS.iterations_together
AT_ONCE = CODE_LIMITS.few_times_together * MOST
MASKED = CODE_LIMITS.masked_together
LENGTHS = (0, 1, MASKED - 1, MASKED, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE + MASKED + 2)


@fq.kernel
def row_sum(item: fq.Item, n, step, a, x, out):
    i = item.get_id(0)
    own = np.float32(0)
    for k in range(n):
        own += a[i, k]
    out[i, 0] = own


@fq.kernel
def largest_product(item: fq.Item, n, step, a, x, out):
    i = item.get_id(0)
    own = np.float32(-9)
    for k in range(i, n):
        own = max(own, a[i, k] * x[k])
    out[i, 0] = own


@fq.kernel
def in_steps(item: fq.Item, n, step, a, x, out):
    """In steps that an argument says; the last values of variables are what is left of them, and
    the loop's own variable is among the terms."""
    i = item.get_id(0)
    own = np.float32(i)
    last = np.float32(-1)
    for k in range(i, n, step):
        last = a[i, k]
        own = own * np.float32(0.5) + last * x[k] + np.float32(k)
    out[i, 0] = own - last


@fq.kernel
def running_sum(item: fq.Item, n, step, a, x, out):
    """Stores to another array in each iteration."""
    i = item.get_id(0)
    own = np.float32(0)
    for k in range(n):
        out[i, k] = own
        own += a[i, k]


@fq.kernel
def chained(item: fq.Item, n, step, a, x, out):
    """Each iteration loads what the one before has stored."""
    i = item.get_id(0)
    for k in range(1, n):
        out[i, k] = out[i, k - 1] + a[i, k] * x[k]


@fq.kernel
def nested(item: fq.Item, n, step, a, x, out):
    """A loop in a loop and one behind, guarded."""
    i = item.get_id(0)
    for j in range(i, 3):
        own = np.float32(0)
        for k in range(n):
            own += a[i, k] * a[j, k]
        out[i, j] = own
    if i > 0:
        for k in range(0, n, 2):
            out[i, 0] += x[k]


@fq.kernel
def from_the_end(item: fq.Item, n, step, a, x, out):
    i = item.get_id(0)
    own = np.float32(0)
    for k in range(n - 1, i, -step):
        own = own * np.float32(0.5) + a[i, k]
    out[i, 0] = own


TOGETHER = {row_sum: 1, largest_product: 2, in_steps: 2, running_sum: 1, chained: 2, nested: 3}
"""Kernels, and the loads that are together in each."""


def some(n: int) -> list[np.ndarray]:
    """Arrays in which no element is behind the last iteration's."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((ITEMS, n)).astype(np.float32)
    x = rng.standard_normal(n).astype(np.float32)
    return [a, x, np.ones((ITEMS, max(n, ITEMS)), np.float32)]


def of(kernel: fq.KernelFunction, arguments: list, restrict: bool = True) -> Kernel:
    """As one of which all arrays share memory, or none."""
    ir = specialised(kernel, fq.Range(ITEMS), *arguments)
    params = tuple(
        replace(p, restrict=restrict) if isinstance(p, ArrayParam) else p for p in ir.params
    )
    return replace(ir, params=params)


def rewritten(ir: Kernel) -> Kernel:
    made = with_loads_together(replace(ir, few_items=True), flatten_blocks(ir.body), MOST)
    if made is None:
        return ir
    verify(made)
    return made


def run(ir: Kernel, scalars: list[int], arrays: list[np.ndarray]) -> np.ndarray:
    backend = ReferenceBackend(order="natural")
    bindings = [*map(np.int64, scalars), *map(binding, arrays)]
    shape = LaunchShape((ITEMS,), (1,))
    backend.prepare(backend.build(ir, "strict"), bindings, shape).launch()
    return arrays[-1]


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", TOGETHER, ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("step", [1, 3, AT_ONCE])
@pytest.mark.parametrize("restrict", [True, False])
def test_results_have_the_same_bits(kernel, n: int, step: int, restrict: bool) -> None:
    """Of no whole part, several and what is left, with and without shared memory."""
    ir = of(kernel, [n, step, *some(n)], restrict)
    made = rewritten(ir)
    loads = TOGETHER[kernel]
    if not restrict:  # the array that is stored to may be the other
        loads = {running_sum: 0, chained: 0, nested: 2}.get(kernel, loads)
    assert len(made.arrays) == loads
    assert has_loads_together(ir) == bool(loads)
    expected, found = (run(each, [n, step], some(n)) for each in (ir, made))
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def rows_in(ir: Kernel) -> list[str]:
    """The arrays of which neighbouring elements are loaded as such."""
    loops = (s for s in statements(rewritten(ir).body) if isinstance(s, For))
    return [row.array for loop in loops for _, row in rows_loaded(loop)]


@pytest.mark.parametrize(
    ("kernel", "arrays"),
    [
        (row_sum, ["a"]), (largest_product, ["a", "x"]), (in_steps, []), (running_sum, ["a"]),
        (chained, ["a", "x"]), (nested, ["a", "a"]), (from_the_end, []),
    ],
    ids=lambda k: getattr(k, "__name__", None),
)  # fmt: skip
def test_neighbours_are_loaded_by_sixteen_bytes(kernel, arrays: list[str]) -> None:
    """In steps of one, from the element on that the first iteration loads."""
    ir = of(kernel, [100, 1, *some(100)])
    assert rows_in(ir) == arrays
    text = generate(replace(ir, few_items=True), "strict", TARGET, CUDA_CPP).text
    assert text.count("fq_load_row(together") == len(arrays)


def test_but_not_where_work_groups_or_small_types_are_loaded() -> None:
    a, x, out = some(100)
    assert rows_in(of(row_sum, [100, 1, a.astype(np.float16), x, out])) == []
    assert rows_in(of(row_sum, [100, 1, a.astype(bool), x, out])) == []
    ir = of(row_sum, [100, 1, a, x, out])
    for form, arrays in (
        ({"contiguous": False}, []),
        ({"contiguous": False, "unit_stride": True}, ["a"]),
        ({"contiguous": False, "alignment": 2}, []),
    ):
        params = tuple(replace(p, **form) if p.name == "a" else p for p in ir.params)
        assert rows_in(replace(ir, params=params)) == arrays
    assert with_loads_together(ir, flatten_blocks(ir.body), MOST) is None  # work-items are many


@pytest.mark.parametrize("step", [0, -1, -40, 2**31 - 1, 2**31, 2**63 - 1])
@pytest.mark.parametrize("n", [0, -1, -(2**63), 100])
def test_bounds_and_steps_that_do_nothing_or_leave_31_bits(n: int, step: int) -> None:
    ir = of(in_steps, [n, step, *some(128)])
    if n < -1 and step < 0:
        pytest.skip("leaves the arrays")
    expected, found = (run(each, [n, step], some(128)) for each in (ir, rewritten(ir)))
    np.testing.assert_array_equal(found, expected)


def test_elements_of_memory_that_arrays_share_are_loaded_behind_stores() -> None:
    """Each element is made of the one before, by way of another view."""
    results = []
    for together in (False, True):
        whole = some(200)[0]
        arrays = [whole[:, :-1], np.zeros(1, np.float32), whole[:, 1:]]
        ir = of(running_sum, [199, 1, *arrays], restrict=False)
        run(rewritten(ir) if together else ir, [199, 1], arrays)
        results.append(whole)
    np.testing.assert_array_equal(*results)


def test_wide_elements_are_fewer() -> None:
    """So that a work-item has registers for them."""

    @fq.kernel
    def of_four(item: fq.Item, n, a, b, c, d, out):
        own = 0.0
        for k in range(n):
            own += a[k] * b[k] - c[k] * d[k]
        out[item.get_id(0)] = own

    ir = specialised(of_four, fq.Range(1), 100, *(np.zeros(100) for _ in range(5)))
    made = rewritten(ir)
    assert [a.shape[0] for a in made.arrays] == 4 * [AT_ONCE // 4]
    assert sum(a.nbytes for a in made.arrays) == CODE_LIMITS.few_bytes


@fq.kernel
def until_negative(item: fq.Item, n, a, out):
    own = np.float32(0)
    for k in range(n):
        if a[k] < 0:
            break
        own += a[k]
    out[item.get_id(0)] = own


@fq.kernel
def guarded(item: fq.Item, n, a, out):
    own = np.float32(0)
    for k in range(n):
        if k % 3 != 0:
            own += a[k]
    out[item.get_id(0)] = own


@fq.kernel
def in_one_of_two(item: fq.Item, n, a, out):
    """What a condition leaves out is not loaded."""
    own = np.float32(0)
    for k in range(n):
        own += a[k] if k > 3 else np.float32(1)
    out[item.get_id(0)] = own


@fq.kernel
def followed(item: fq.Item, n, a, out):
    """The next element is where the last one says."""
    place = item.get_id(0)
    for _k in range(n):
        place = int(a[place])
    out[item.get_id(0)] = np.float32(place)


@fq.kernel
def of_constants(item: fq.Item, n, a, out):
    own = np.float32(0)
    for k in range(40):
        own += a[k]
    out[item.get_id(0)] = own


@fq.kernel
def counted_by_memory(item: fq.Item, n, a, out):
    own = np.float32(0)
    for k in range(int(a[0])):
        own += a[k]
    out[item.get_id(0)] = own


STAY = [until_negative, guarded, in_one_of_two, followed, of_constants]


@pytest.mark.parametrize("kernel", STAY, ids=lambda k: k.__name__)
def test_loops_that_stay(kernel) -> None:
    ir = specialised(kernel, fq.Range(4), 64, *(np.zeros(64, np.float32) for _ in range(2)))
    assert not has_loads_together(ir)


@pytest.mark.parametrize("n", [0, 1, 100])
def test_bounds_from_memory_and_backwards(n: int) -> None:
    """Whatever they become, the result is the same."""
    a = np.full(max(n, 1), n, np.float32)
    for kernel, arguments in (
        (counted_by_memory, [n, a, np.zeros(ITEMS, np.float32)]),
        (from_the_end, [n, 2, *some(max(n, 1))]),
    ):
        ir = specialised(kernel, fq.Range(ITEMS), *arguments)
        scalars = [x for x in arguments if isinstance(x, int)]
        arrays = [x for x in arguments if isinstance(x, np.ndarray)]
        expected = run(ir, scalars, [x.copy() for x in arrays])
        found = run(rewritten(ir), scalars, [x.copy() for x in arrays])
        np.testing.assert_array_equal(found, expected)


def test_only_launches_of_few_items_have_such_code() -> None:
    ir = of(row_sum, [100, 1, *some(100)])
    for few in (False, True):
        source = generate(replace(ir, few_items=few), "strict", TARGET, CUDA_CPP)
        assert source.keeps_loads == few
        assert ("together_" in source.text) == few
