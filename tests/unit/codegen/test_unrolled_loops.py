"""How many iterations of loops over memory are unrolled: fewer, the more of them a kernel has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.unrolled_loops import most_unrolled
from fusionq.ir.nodes import For
from fusionq.ir.walk import expressions, statements
from tests.unit.cuda.compile_only import TARGET
from tests.unit.frontend.running import specialised

N = 64


@fq.kernel
def product(item: fq.Item, a, x, out):
    i = item.get_id(0)
    own = np.float32(0)
    for k in range(x.shape[0]):
        own += a[i, k] * x[k]
    out[i] = own


@fq.kernel
def no_loops_over_memory(item: fq.Item, a, x, out):
    i = item.get_id(0)
    own = np.float32(0)
    for k in range(8):
        own += x[k]
    for k in range(x.shape[0]):
        own = own * np.float32(0.5) + np.float32(k)
    for row in range(a.shape[0]):
        if a[row, i] > own:
            own = a[row, i]
    out[i] = own


def arguments() -> list[np.ndarray]:
    return [np.zeros(shape, np.float32) for shape in ((N, N), N, N)]


def most_of(loops: int) -> int:
    """Of a kernel with so many loops of the product's size."""
    ir = specialised(product, fq.Range(N), *arguments())
    return most_unrolled(ir, ir.body * loops)


def test_one_loop_has_as_many_as_there_may_be() -> None:
    assert most_of(0) == most_of(1) == CODE_LIMITS.iterations_together


def test_all_loops_together_stay_within_the_limit() -> None:
    ir = specialised(product, fq.Range(N), *arguments())
    (loop,) = (s for s in statements(ir.body) if isinstance(s, For))
    size = len(list(expressions(loop.body)))
    found = [most_of(loops) for loops in range(1, 100)]
    assert found == sorted(found, reverse=True)
    assert set(found) == {4, 8, 16, 32}
    for loops, most in enumerate(found, start=1):
        whole = loops * size
        assert most == CODE_LIMITS.fewest_ahead or most * whole <= CODE_LIMITS.unrolled_expressions
        assert most == 32 or 2 * most * whole > CODE_LIMITS.unrolled_expressions


def test_other_loops_do_not_count() -> None:
    """Of constants, without loads, and with conditions."""
    ir = specialised(no_loops_over_memory, fq.Range(N), *arguments())
    assert most_unrolled(ir, ir.body * 100) == CODE_LIMITS.iterations_together


@pytest.mark.parametrize("loops", [1, 15, 25, 60])
def test_the_source_says_so(loops: int) -> None:
    pytest.importorskip("cuda.bindings")
    from fusionq.backends.cuda.program import generated

    ir = specialised(product, fq.Range(N), *arguments())
    unrolled = min(16, most_of(loops))
    text = generated(replace(ir, body=ir.body * loops), "strict", TARGET).text
    assert text.count("#pragma unroll ") == text.count(f"#pragma unroll {unrolled}\n") == loops
