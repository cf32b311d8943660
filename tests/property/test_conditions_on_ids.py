"""Functions of ids under conditions on ids: fused against unfused, device against reference."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.property.condition_kernels import ConditionKernel, condition_kernels
from tests.property.launches import Array
from tests.property.running import assert_identical, examples, needs_device
from tests.unit.tables import defined

LISTS = st.lists(condition_kernels(), min_size=1, max_size=4)
STRATEGIES = st.sampled_from(("fused", "megakernel", "sequence"))


@examples(40)
@given(LISTS, STRATEGIES)
def test_on_the_reference_device(kernels: list[ConditionKernel], strategy: fq.Strategy) -> None:
    assert_identical(run(kernels, "reference", strategy), run(kernels, "reference", "unfused"))


@needs_device
@examples(40)
@given(LISTS, STRATEGIES)
def test_on_the_device(kernels: list[ConditionKernel], strategy: fq.Strategy) -> None:
    unfused = run(kernels, None, "unfused")
    assert_identical(unfused, run(kernels, "reference", "unfused"))
    assert_identical(run(kernels, None, strategy), unfused)


def run(
    kernels: list[ConditionKernel], target: str | None, strategy: fq.Strategy
) -> list[Array]:
    """All outputs after each kernel ran twice."""
    made = [defined(kernel.text) for kernel in kernels]
    outputs = [fq.Buffer(np.zeros(kernel.shape, np.int64)) for kernel in kernels]
    with fq.FusionQueue(target) as queue, fq.fusion(queue, strategy=strategy):
        for _ in range(2):
            for kernel, function, out in zip(kernels, made, outputs, strict=True):
                a = np.arange(out.size).reshape(kernel.shape) % 101 - 50
                queue.submit(function, kernel.range, fq.Buffer(a), out, *kernel.scalars)
    return [out.numpy() for out in outputs]
