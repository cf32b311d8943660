"""Launches whose neighbouring work-items go along rows of their own load 16 bytes at a time: which
those are, what they compute, and their registers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.options import FusionOptions
from fusionq.base.target import LaunchShape
from fusionq.codegen.loads_together import with_loads_together
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Kernel
from fusionq.ir.verifier import verify
from fusionq.planning.planner import make_plan
from tests.unit.cuda.compile_only import ARCHITECTURES, TARGET
from tests.unit.frontend.running import binding
from tests.unit.lists import submissions

ROWS = 200
"""Of which all pairs are more work-items than count as few."""


@fq.kernel
def products(item: fq.Item, a, b, out):
    """Of all pairs of rows, by linear ids: neighbours have other rows of ``b``."""
    i = item.get_id(0) // out.shape[1]
    j = item.get_id(0) % out.shape[1]
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[j, k]
    out[i, j] = total


@fq.kernel
def of_one_row(item: fq.Item, a, b, out):
    """Neighbours read the same row, and neighbouring elements of columns."""
    i = item.get_id(0) // out.shape[1]
    j = item.get_id(0) % out.shape[1]
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    out[i, j] = total


@fq.kernel
def written(item: fq.Item, a, b, out):
    """Rows to which the loop stores."""
    i = item.get_id(0)
    for k in range(a.shape[1]):
        a[i % a.shape[0], k] = a[i % a.shape[0], k] * 2


@fq.kernel
def by_groups(item: fq.NdItem, a, b, out):
    i = item.get_global_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += b[i % b.shape[0], k]
    out[i // out.shape[1], i % out.shape[1]] = total + item.get_local_id(0)


def kernel_of(
    kernel: fq.KernelFunction, columns: int, dtype: str = "float32", strategy: str = "sequence",
    rows: int = ROWS,
) -> Kernel:  # fmt: skip
    a, b = np.zeros((rows, columns), dtype), np.zeros((max(rows, columns), rows), dtype)
    b = b if kernel is of_one_row else np.zeros((rows, columns), dtype)
    items = rows * rows
    space = fq.NdRange(items, 100) if kernel is by_groups else items
    listed = submissions((kernel, space, a, b, np.zeros((rows, rows), dtype)))
    (stage,) = make_plan(listed, FusionOptions(strategy=strategy), TARGET).stages
    return stage.kernel


@pytest.mark.parametrize(
    ("columns", "turns"), [(1, None), (4, None), (5, 4), (15, 8), (16, 16), (31, 16), (2048, 16)]
)
def test_as_many_iterations_at_once_as_rows_have(columns: int, turns: int | None) -> None:
    """Four are constants, which the compiler unrolls."""
    kernel = kernel_of(products, columns)
    assert kernel.row_turns == turns
    assert ("fq_load_row(" in generated(kernel, "strict", TARGET).text) == (turns is not None)


@pytest.mark.parametrize("kernel", [of_one_row, written, by_groups], ids=lambda k: k.__name__)
def test_other_loops_are_left_alone(kernel: fq.KernelFunction) -> None:
    assert kernel_of(kernel, 64).row_turns is None


def test_few_work_items_have_more() -> None:
    made = kernel_of(products, 64, rows=20)
    assert made.few_items and made.row_turns is None


def test_unfused_runs_kernels_as_they_are_written() -> None:
    assert kernel_of(products, 64, strategy="unfused").row_turns is None


@pytest.mark.parametrize("columns", [0, 1, 3, 4, 15, 16, 17, 40])
@pytest.mark.parametrize("turns", [4, 16])
def test_results_have_the_same_bits(columns: int, turns: int) -> None:
    """Of rows of any length: the plan serves all of them."""
    rows = 6
    rng = np.random.default_rng(columns)
    a, b = (rng.standard_normal((rows, columns)).astype(np.float32) for _ in range(2))
    kernel = replace(kernel_of(products, 16), row_turns=turns)
    made = with_loads_together(kernel, flatten_blocks(kernel.body), CODE_LIMITS.iterations_together)
    assert made is not None
    verify(made)
    assert {array.shape for array in made.arrays} == {(turns,)}
    found = []
    for ir in (kernel, made):
        out = np.zeros((rows, rows), np.float32)
        backend = ReferenceBackend(order="natural")
        given = {"a": binding(a), "b": binding(b), "out": binding(out)}
        bindings = [given.get(p.name, np.int64(rows * rows)) for p in ir.params]
        shape = LaunchShape((rows * rows,), (1,))
        backend.prepare(backend.build(ir, "strict"), bindings, shape).launch()
        found.append(out)
    np.testing.assert_array_equal(found[0].view(np.uint32), found[1].view(np.uint32))


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_registers(dtype: str) -> None:
    kernel = kernel_of(products, 64, dtype)
    source = generated(kernel, "strict", TARGET)
    for architecture in ARCHITECTURES:
        resources = cubin_of(kernel, source, "strict", architecture).resources
        assert resources.spill_stores == resources.stack_bytes == 0
        assert resources.registers <= 128, resources
