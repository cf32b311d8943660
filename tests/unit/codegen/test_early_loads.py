"""Loads of a loop's first iterations ahead of the wait for the launch before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.codegen.early_loads import arrays_loaded_early, with_early_loads
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import ArrayParam, Kernel
from fusionq.ir.verifier import verify
from tests.unit.frontend.running import binding, specialised

LANES = 32


@fq.kernel
def product(item: fq.NdItem, a, x, out):
    """Four rows a work-group."""
    row = 4 * item.get_group().get_group_id(0)
    own0 = np.float32(0)
    own1 = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 32):
        own0 += np.float32(a[row, k]) * x[k]
        own1 += np.float32(a[row + 1, k]) * x[k]
    out[row, item.get_local_id(1)] = own0
    out[row + 1, item.get_local_id(1)] = own1


@fq.kernel
def one_row(item: fq.NdItem, a, x, out):
    for k in range(item.get_local_id(1), x.shape[0], 32):
        out[item.get_group().get_group_id(0), k] = a[item.get_group().get_group_id(0), k] + x[k]


@fq.kernel
def behind_a_load(item: fq.NdItem, a, x, out):
    """Which row, memory says."""
    row = int(x[0])
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 32):
        own += np.float32(a[row, k])
    out[item.get_group().get_group_id(0), item.get_local_id(1)] = own


@fq.kernel
def in_a_condition(item: fq.NdItem, a, x, out):
    own = np.float32(0)
    if item.get_group().get_group_id(0) > 0:
        for k in range(item.get_local_id(1), a.shape[1], 32):
            own += np.float32(a[item.get_group().get_group_id(0), k])
    out[item.get_group().get_group_id(0), item.get_local_id(1)] = own


@fq.kernel
def behind_a_barrier(item: fq.NdItem, a, x, out):
    """Two rows one after the other, with other work between."""
    row = item.get_group().get_group_id(0)
    first = np.float32(0)
    for k in range(item.get_local_id(1), x.shape[0], 32):
        first += x[k] * x[k]
    total = fq.reduce_over_group(item.get_group(), first, "add")
    other = 7 - row
    own = total
    for k in range(item.get_local_id(1), a.shape[1], 32):
        own += np.float32(a[row, k]) * x[k]
    fq.group_barrier(item.get_group())
    for k in range(item.get_local_id(1), a.shape[1], 32):
        own += np.float32(a[other, k]) * total
    out[row, item.get_local_id(1)] = own


@fq.kernel
def rows_that_change(item: fq.NdItem, a, x, out):
    """What says which row it is has several values."""
    row = item.get_group().get_group_id(0)
    if x[0] > 0:
        row = row + 1
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 32):
        own += np.float32(a[row, k])
    out[item.get_group().get_group_id(0), item.get_local_id(1)] = own


@fq.kernel
def one_after_the_other(item: fq.NdItem, a, x, out):
    """A work-item goes through a row alone."""
    own = np.float32(0)
    for k in range(a.shape[1]):
        own += np.float32(a[item.get_group().get_group_id(0), k])
    out[item.get_group().get_group_id(0), item.get_local_id(1)] = own


@fq.kernel
def where_positive(item: fq.NdItem, a, x, out):
    """``a`` is loaded in some iterations."""
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 32):
        own += np.float32(a[item.get_group().get_group_id(0), k]) if x[k] > 0 else np.float32(1)
    out[item.get_group().get_group_id(0), item.get_local_id(1)] = own


def some(n: int, dtype: np.dtype = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((8, n)).astype(dtype)
    return [a, rng.standard_normal(n).astype(np.float32), np.zeros((8, max(n, LANES)), np.float32)]


def lone(ir: Kernel, unwritten: set[str]) -> Kernel:
    """``ir``, none of whose arrays shares memory, and of which nobody writes ``unwritten``."""
    params = tuple(
        replace(p, restrict=True, unwritten=p.name in unwritten) if isinstance(p, ArrayParam) else p
        for p in ir.params
    )
    return replace(ir, params=params)


def of(kernel: fq.KernelFunction, arrays: list[np.ndarray], unwritten: set[str]) -> Kernel:
    return lone(specialised(kernel, fq.NdRange((2, LANES), (1, LANES)), *arrays), unwritten)


def run(ir: Kernel, arrays: list[np.ndarray]) -> None:
    backend = ReferenceBackend(order="natural")
    bindings = [binding(array) for array in arrays]
    shape = LaunchShape((2, LANES), (1, LANES))
    backend.prepare(backend.build(ir, "strict"), bindings, shape).launch()


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", [product, one_row, behind_a_barrier], ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [1, 31, 32, 481, 511, 512, 513, 1030])
@pytest.mark.parametrize("unwritten", [{"a"}, {"a", "x"}])
def test_results_have_the_same_bits(kernel: fq.KernelFunction, n: int, unwritten: set[str]) -> None:
    """Of no whole turn of 16 iterations, for none, some and all work-items, of one, and more."""
    expected, found = some(n), some(n)
    ir = of(kernel, expected, unwritten)
    assert arrays_loaded_early(ir) == {"a", "x"}
    early = with_early_loads(ir, flatten_blocks(ir.body))
    assert early is not None
    verify(early.kernel)
    assert early.once == {"a"}  # all work-groups load the same of x
    loads = {product: (2, 3), one_row: (1, 2), behind_a_barrier: (2, 4)}[kernel][len(unwritten) - 1]
    assert [a.shape for a in early.kernel.arrays if a.space == "private"] == [(16,)] * loads
    run(ir, expected)
    run(early.kernel, found)
    np.testing.assert_array_equal(found[2].view(np.uint32), expected[2].view(np.uint32))


@pytest.mark.parametrize(
    "kernel",
    [behind_a_load, in_a_condition, rows_that_change, one_after_the_other, where_positive],
    ids=lambda k: k.__name__,
)
def test_what_might_not_be_loaded_or_is_not_a_row_of_a_group_stays(kernel) -> None:
    ir = of(kernel, some(600), {"a"})
    assert with_early_loads(ir, flatten_blocks(ir.body)) is None
    assert "a" not in arrays_loaded_early(ir)


def test_only_what_nobody_writes_and_shares_no_memory_is_early() -> None:
    ir = of(product, some(600), set())
    assert with_early_loads(ir, flatten_blocks(ir.body)) is None
    shared = tuple(
        replace(p, restrict=False, unwritten=True) if isinstance(p, ArrayParam) else p
        for p in ir.params
    )
    ir = replace(ir, params=shared)
    assert with_early_loads(ir, flatten_blocks(ir.body)) is None
