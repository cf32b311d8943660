"""Loads of several turns of a loop together, in loops of any length and step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import LaunchShape
from fusionq.codegen.loads_together import with_loads_together
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import ArrayParam, Kernel
from fusionq.ir.verifier import verify
from tests.unit.frontend.running import binding, specialised

LANES = 32
GROUPS = 2


@fq.kernel
def row_sum(item: fq.NdItem, n, step, a, x, out):
    """By the work-items of a work-group."""
    g = item.get_group().get_group_id(0)
    own = np.float32(0)
    for k in range(item.get_local_id(1), n, 32):
        own += a[g, k] * x[k]
    out[g, item.get_local_id(1)] = own


@fq.kernel
def in_steps(item: fq.NdItem, n, step, a, x, out):
    """In steps that an argument says; the last value of a variable is what is left of it."""
    g, lane = item.get_group().get_group_id(0), item.get_local_id(1)
    own = np.float32(lane)
    last = np.float32(-1)
    for k in range(lane // 4, n, step):
        last = a[g, k]
        own = own * np.float32(0.5) + last * x[k]
    out[g, lane] = own - last


@fq.kernel
def from_the_end(item: fq.NdItem, n, step, a, x, out):
    """Backwards, so that there are no turns to do together."""
    g, lane = item.get_group().get_group_id(0), item.get_local_id(1)
    own = np.float32(0)
    for k in range(n - 1, lane, -step):
        own = own * np.float32(0.5) + a[g, k]
    out[g, lane] = own


@fq.kernel
def scaled(item: fq.NdItem, n, step, a, x, out):
    """Stores to another array in each turn."""
    g, lane = item.get_group().get_group_id(0), item.get_local_id(1)
    for k in range(lane, n, 32):
        out[g, k] = a[g, k] * x[k]


@fq.kernel
def chained(item: fq.NdItem, n, step, a, x, out):
    """Each turn loads what the one before has stored; those of a work-group are in columns."""
    g, lane = item.get_group().get_group_id(0), item.get_local_id(1)
    for k in range(1, n // 32):
        out[g, 32 * k + lane] = out[g, 32 * (k - 1) + lane] + a[g, 32 * k + lane] * x[k]


KERNELS = [row_sum, in_steps, from_the_end, scaled, chained]


def some(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((GROUPS, n)).astype(np.float32)
    x = rng.standard_normal(n).astype(np.float32)
    return [a, x, np.ones((GROUPS, max(n, LANES)), np.float32)]


def of(kernel: fq.KernelFunction, arguments: list, restrict: bool = True) -> Kernel:
    """As one of which all arrays share memory, or none."""
    ir = specialised(kernel, fq.NdRange((GROUPS, LANES), (1, LANES)), *arguments)
    params = tuple(
        replace(p, restrict=restrict) if isinstance(p, ArrayParam) else p for p in ir.params
    )
    return replace(ir, params=params)


def run(ir: Kernel, scalars: list[int], arrays: list[np.ndarray]) -> np.ndarray:
    backend = ReferenceBackend(order="natural")
    bindings = [*map(np.int64, scalars), *map(binding, arrays)]
    shape = LaunchShape((GROUPS, LANES), (1, LANES))
    backend.prepare(backend.build(ir, "strict"), bindings, shape).launch()
    return arrays[-1]


def rewritten(ir: Kernel, most: int = CODE_LIMITS.iterations_together) -> Kernel:
    made = with_loads_together(ir, flatten_blocks(ir.body), most)
    if made is None:
        return ir
    verify(made)
    return made


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize(
    ("n", "step"), [(1, 1), (33, 40), (280, 3), (1023, 33), (1024, 31), (1100, 3)]
)
@pytest.mark.parametrize("restrict", [True, False])
def test_results_have_the_same_bits(kernel, n: int, step: int, restrict: bool) -> None:
    """Of no turn, one, a whole part and what is left of it, with and without shared memory."""
    scalars = [n, step]
    ir = of(kernel, [*scalars, *some(n)], restrict)
    made = rewritten(ir)
    together = {row_sum: 2, in_steps: 2, from_the_end: 1, scaled: 2, chained: 2}[kernel]
    if not restrict and kernel in (scaled, chained):  # the array that is stored to may be the other
        together = 0
    assert len(made.arrays) == together
    expected, found = run(ir, scalars, some(n)), run(made, scalars, some(n))
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(
    ("unwritten", "apart", "together"),
    [
        ((), (), 0),
        (("x",), (), 1),
        (("a", "x"), (), 2),
        ((), ("out",), 2),
        ((), ("a",), 1),
        (("x",), ("a",), 2),
    ],
)  # fmt: skip
def test_stores_do_not_hold_up_loads_of_what_nobody_writes_or_shares(
    unwritten: tuple[str, ...], apart: tuple[str, ...], together: int
) -> None:
    """As a stage's arrays are, which do not say themselves that they share no memory."""
    n = 1100
    ir = of(scaled, [n, 1, *some(n)], restrict=False)
    most = CODE_LIMITS.iterations_together
    body = flatten_blocks(ir.body)
    made = with_loads_together(ir, body, most, frozenset(unwritten), frozenset(apart))
    assert (0 if made is None else len(made.arrays)) == together
    if made is not None:
        verify(made)
        expected, found = run(ir, [n, 1], some(n)), run(made, [n, 1], some(n))
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_loads_of_what_the_loop_stores_to_stay() -> None:
    ir = of(chained, [320, 1, *some(320)], restrict=False)
    every = frozenset({"a", "x", "out"})
    made = with_loads_together(ir, flatten_blocks(ir.body), 16, apart=every)
    assert made is not None
    loaded = {a.name for a in made.arrays}
    assert len(loaded) == 2  # a and x, not out
    expected, found = run(ir, [320, 1], some(320)), run(made, [320, 1], some(320))
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("step", [0, -1, -40, 2**40, 2**63 - 1])
@pytest.mark.parametrize("n", [0, -1, -(2**63), 100])
def test_bounds_and_steps_that_do_nothing_or_leave_31_bits(n: int, step: int) -> None:
    ir = of(in_steps, [n, step, *some(128)])
    if n < -1 and step < 0:
        pytest.skip("leaves the arrays")
    expected, found = (run(each, [n, step], some(128)) for each in (ir, rewritten(ir)))
    np.testing.assert_array_equal(found, expected)


def test_turns_are_in_their_order() -> None:
    """What is left over behind whole parts is masked, and nothing is loaded beyond the end."""
    at_once = CODE_LIMITS.iterations_together
    for n in (0, 1, 7, 8, 9, at_once - 1, at_once, at_once + 1, 2 * at_once + 10):
        step = 1 + n % 2
        ir = of(in_steps, [n, step, *some(max(n, 1))])
        expected, found = (run(each, [n, step], some(max(n, 1))) for each in (ir, rewritten(ir)))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("most", [4, 8, 16])
def test_fewer_turns_are_asked_for(most: int) -> None:
    """Of a kernel with many loops; what is left over has no more turns than whole parts."""
    for n in (0, 3, most, 10 * most + 3):
        ir = of(row_sum, [n, 1, *some(max(n, 1))])
        made = rewritten(ir, most)
        assert {array.shape for array in made.arrays} == {(most,)}
        expected, found = (run(each, [n, 1], some(max(n, 1))) for each in (ir, made))
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@fq.kernel
def alone(item: fq.Item, n, a, out):
    i = item.get_id(0)
    own = np.float32(0)
    for k in range(n):
        own += a[k]
    out[i] = own


@fq.kernel
def until_negative(item: fq.NdItem, n, a, out):
    i = item.get_local_id(0)
    own = np.float32(0)
    for k in range(i, n, 32):
        if a[k] < 0:
            break
        own += a[k]
    out[i] = own


@fq.kernel
def followed(item: fq.NdItem, n, a, out):
    """The next element is where the last one says."""
    i = item.get_local_id(0)
    place = i
    for _k in range(n):
        place = int(a[place])
    out[i] = np.float32(place)


@pytest.mark.parametrize("kernel", [alone, until_negative, followed], ids=lambda k: k.__name__)
def test_loops_without_work_groups_or_with_loads_that_depend_on_turns_stay(kernel) -> None:
    arrays = [np.zeros(64, np.float32) for _ in range(2)]
    space = fq.Range(64) if kernel is alone else fq.NdRange(64, 32)
    ir = specialised(kernel, space, 64, *arrays)
    assert with_loads_together(ir, flatten_blocks(ir.body), CODE_LIMITS.iterations_together) is None
