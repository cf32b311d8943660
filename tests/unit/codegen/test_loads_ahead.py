"""Loads of a loop's next iterations before what is done with the first ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.codegen.loads_ahead import LoadsAhead
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Kernel
from fusionq.ir.verifier import verify
from tests.unit.frontend.running import binding, specialised

LANES = 8
LARGEST = 300


@fq.kernel
def scaled(item: fq.NdItem, a, gain, out):
    for k in range(item.get_local_id(0), a.shape[0], 8):
        out[k] = a[k] * gain[k] + np.float32(k)


@fq.kernel
def summed(item: fq.NdItem, a, gain, out):
    own = np.float32(0)
    for k in range(item.get_local_id(0), a.shape[0], 8):
        own += a[k] * gain[k]
    out[item.get_local_id(0)] = own


@fq.kernel
def of_each_row(item: fq.NdItem, a, gain, out):
    """A loop in a loop, from a constant on, whose variables are set in it."""
    for k in range(item.get_local_id(0), 20, 8):
        own = np.float32(0)
        for j in range(a.shape[0]):
            x = a[j] * np.float32(k)
            own += x * gain[j]
        out[k] = own


@fq.kernel
def one_after_the_other(item: fq.NdItem, a, gain, out):
    if item.get_local_id(0) == 0:
        for k in range(a.shape[0]):
            out[k] = a[k] * np.float32(0.5) + gain[k]


@fq.kernel
def where_positive(item: fq.NdItem, a, gain, out):
    """``a`` may have fewer elements."""
    for k in range(item.get_local_id(0), gain.shape[0], 8):
        out[k] = a[k] if gain[k] > 0 else np.float32(-1)


@fq.kernel
def by_places(item: fq.NdItem, a, gain, out):
    for k in range(item.get_local_id(0), a.shape[0], 8):
        out[k] = a[int(abs(gain[k])) % a.shape[0]]


@fq.kernel
def beyond_a_step(item: fq.NdItem, a, gain, out):
    for k in range(item.get_local_id(0), a.shape[0], 4):
        out[k] = a[k] + gain[k]


@fq.kernel
def in_conditions(item: fq.NdItem, a, gain, out):
    for k in range(item.get_local_id(0), a.shape[0], 8):
        if gain[k] > 0:
            out[k] = a[k]


def ahead_of(ir: Kernel, most: int, apart: set[str], unwritten: set[str]) -> Kernel:
    """``ir`` with loads ahead."""
    ahead = LoadsAhead(ir, (LANES,), most, frozenset(unwritten), frozenset(apart))
    body = ahead.rewritten(flatten_blocks(ir.body))
    found = replace(ahead.kernel, body=body)
    verify(found)
    return found


def run(ir: Kernel, arrays: list[np.ndarray]) -> None:
    backend = ReferenceBackend(order="natural")
    bindings = [binding(array) for array in arrays]
    shape = LaunchShape((LANES,), (LANES,))
    backend.prepare(backend.build(ir, "strict"), bindings, shape).launch()


def some(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [*rng.standard_normal((2, n)).astype(np.float32), np.zeros(max(n, 20), np.float32)]


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", [scaled, summed, of_each_row], ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [1, 7, 8, 127, 128, 129, LARGEST])
@pytest.mark.parametrize("most", [8, 20, 64])
def test_results_have_the_same_bits(kernel: fq.KernelFunction, n: int, most: int) -> None:
    """Of whole turns of 4, 8 or 16 iterations, a rest, and a rest only."""
    expected, found = some(n), some(n)
    ir = specialised(kernel, fq.NdRange(LANES, LANES), *expected)
    ahead = ahead_of(ir, most, {"a", "gain", "out"}, set())
    assert [a.shape for a in ahead.arrays] == [({8: 4, 20: 8, 64: 16}[most],)] * 2
    run(ir, expected)
    run(ahead, found)
    np.testing.assert_array_equal(found[2].view(np.uint32), expected[2].view(np.uint32))


@pytest.mark.parametrize("unwritten", [set(), {"gain"}])
def test_what_may_have_been_stored_is_loaded_behind(unwritten: set[str]) -> None:
    """Each element is made of the one before."""
    results = []
    for ahead in (False, True):
        whole, gain = some(LARGEST)[:2]
        arrays = [whole[:-1], gain[:-1], whole[1:]]
        ir = specialised(one_after_the_other, fq.NdRange(LANES, LANES), *arrays)
        if ahead:
            ir = ahead_of(ir, 64, {"gain"}, unwritten)
            assert len(ir.arrays) == 1
        run(ir, arrays)
        results.append(whole)
    np.testing.assert_array_equal(*results)


def test_without_knowledge_of_memory_nothing_goes_before_a_store() -> None:
    ir = specialised(scaled, fq.NdRange(LANES, LANES), *some(LARGEST))
    assert not ahead_of(ir, 64, set(), set()).arrays
    assert len(ahead_of(ir, 64, {"out"}, set()).arrays) == 2
    assert len(ahead_of(ir, 64, set(), {"a"}).arrays) == 1


def test_what_a_condition_leaves_out_is_not_loaded() -> None:
    a, gain, out = some(LARGEST)
    gain[40:] = -1
    arrays = [a[:40].copy(), gain, out]
    ir = specialised(where_positive, fq.NdRange(LANES, LANES), *arrays)
    ahead = ahead_of(ir, 64, {"a", "gain", "out"}, set())
    assert len(ahead.arrays) == 1
    run(ahead, arrays)  # and every access is inside
    np.testing.assert_array_equal(out, np.where(gain > 0, a, np.float32(-1)))


@pytest.mark.parametrize(
    ("kernel", "kept"), [(by_places, 1), (beyond_a_step, 0), (in_conditions, 0)]
)
def test_loads_by_places_and_loops_of_other_forms(kernel: fq.KernelFunction, kept: int) -> None:
    """Places that are loaded themselves; lanes that begin beyond a step; conditions."""
    ir = specialised(kernel, fq.NdRange(LANES, LANES), *some(LARGEST))
    assert len(ahead_of(ir, 64, {"a", "gain", "out"}, set()).arrays) == kept


def test_few_registers() -> None:
    ir = specialised(scaled, fq.NdRange(LANES, LANES), *some(LARGEST))
    for most in (0, 7):
        assert not ahead_of(ir, most, {"a", "gain", "out"}, set()).arrays
