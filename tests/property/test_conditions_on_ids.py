"""Functions of ids under conditions on ids: fused against unfused, device against reference."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.poisoned import poisoned
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


@examples(40)
@given(LISTS, STRATEGIES)
def test_into_new_memory_on_the_reference_device(
    kernels: list[ConditionKernel], strategy: fq.Strategy
) -> None:
    assert_identical(
        run(kernels, "reference", strategy, True), run(kernels, "reference", "unfused")
    )


@needs_device
@examples(40)
@given(LISTS, STRATEGIES)
def test_into_new_memory_on_the_device(
    kernels: list[ConditionKernel], strategy: fq.Strategy
) -> None:
    expected = run(kernels, "reference", "unfused")
    for one in ("unfused", strategy):
        assert_identical(run(kernels, None, one, True), expected)


def run(
    kernels: list[ConditionKernel], target: str | None, strategy: fq.Strategy, is_new: bool = False
) -> list[Array]:
    """All outputs after each kernel ran twice; ``is_new``: into memory that has zeros only where
    somebody might read them."""
    made = [defined(kernel.text) for kernel in kernels]
    outputs = [
        fq.Buffer(kernel.shape, np.int64) if is_new else fq.Buffer(np.zeros(kernel.shape, np.int64))
        for kernel in kernels
    ]
    with (
        fq.FusionQueue(target) as queue,
        poisoned(queue) if is_new else nullcontext(),
        fq.fusion(queue, strategy=strategy),
    ):
        for _ in range(2):
            for kernel, function, out in zip(kernels, made, outputs, strict=True):
                a = np.arange(out.size).reshape(kernel.shape) % 101 - 50
                queue.submit(function, kernel.range, fq.Buffer(a), out, *kernel.scalars)
    return [out.numpy() for out in outputs]
