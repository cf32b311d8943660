"""Which loads of a list's kernels stand before the wait for the launch before."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.base.options import FusionOptions
from fusionq.codegen.cuda.unit import IN_TURN, LOADS_EARLY
from fusionq.ir.nodes import ArrayParam, Kernel
from fusionq.planning.planner import make_plan
from tests.unit.cuda.compile_only import TARGET
from tests.unit.cuda.test_compiles import intermediate_text
from tests.unit.lists import submissions

LANES = 32
SPACE = fq.NdRange((2, LANES), (1, LANES))


@fq.kernel
def upside_down(item: fq.NdItem, a, x, out):
    """Products with two rows a work-group, which its own are not."""
    row = 7 - 4 * item.get_group().get_group_id(0)
    own0 = np.float32(0)
    own1 = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], item.get_local_range(1)):
        own0 += np.float32(a[row, k]) * x[k]
        own1 += np.float32(a[row - 1, k]) * x[k]
    out[10 - row, item.get_local_id(1)] = own0
    out[9 - row, item.get_local_id(1)] = own1


@fq.kernel
def negate(item: fq.Item, x):
    x[item.get_id(0)] = -x[item.get_id(0)]


def kernels_of(*calls: Any) -> list[Kernel]:
    """The kernels of a list, each call a kernel, its range and its arguments."""
    options = FusionOptions(strategy="sequence")
    return [stage.kernel for stage in make_plan(submissions(*calls), options, TARGET).stages]


def unwritten_of(kernel: Kernel) -> set[str]:
    return {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.unwritten}


def matrix(dtype: Any = np.float32) -> np.ndarray:
    return np.zeros((8, 600), dtype)


def vector() -> np.ndarray:
    return np.zeros(600, np.float32)


def product(*arrays: np.ndarray) -> tuple[Any, ...]:
    return (upside_down, SPACE, *arrays)


def test_arrays_that_no_submission_of_the_list_writes_are_known() -> None:
    a, out, last, x, y = matrix(), matrix(), matrix(), vector(), vector()
    one, two = kernels_of(product(a, x, out), product(out, y, last))
    assert unwritten_of(one) == {"a", "x"} and unwritten_of(two) == {"x"}
    one, two = kernels_of(product(a, x, out), product(out, y, a))  # which is written behind it
    assert unwritten_of(one) == {"x"} and unwritten_of(two) == {"x"}


def test_a_view_of_what_is_written_is_written() -> None:
    whole, x, out = np.zeros((16, 600), np.float32), vector(), matrix()
    one, two = kernels_of(product(whole[:8], x, out), product(out, x, whole[4:12]))
    assert unwritten_of(one) == {"x"} and unwritten_of(two) == {"x"}


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("dtype", [fq.bfloat16, np.float16, np.float32], ids=str)
def test_only_they_are_loaded_before_the_wait(dtype: Any) -> None:
    a, x, out, last = matrix(dtype), vector(), matrix(), matrix()
    calls = product(a, x, out), (negate, fq.Range(600), x), product(out, x, last)
    first, *others = kernels_of(*calls)
    assert unwritten_of(first) == {"a"} and not any(map(unwritten_of, others))
    source = generated(first, "strict", TARGET)
    assert source.text.index(LOADS_EARLY) < source.text.index(IN_TURN)
    before, wait, after = intermediate_text(source.text).partition("griddepcontrol.wait;")
    assert wait and len(re.findall(r"ld\.global", before)) == 32
    assert "st.global" not in before and "st.global" in after
    assert re.search(r"const fq_read_once(_half|<.*>) a,", source.text)
    assert len(re.findall(r"ld\.global\.cs", before)) == 32
    resources = cubin_of(first, source, "strict", "sm_90").resources
    assert resources.stack_bytes == resources.spill_stores == 0
    assert LOADS_EARLY not in generated(others[-1], "strict", TARGET).text
