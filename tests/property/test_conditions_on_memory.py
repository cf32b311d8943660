"""Loads behind conditions: plain launches, along rows too, and fusions, against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.poisoned import poisoned
from tests.property.launches import Array
from tests.property.memory_conditions import MemoryConditions, memory_conditions
from tests.property.running import assert_identical, examples, needs_device
from tests.unit.tables import defined

LISTS = st.lists(memory_conditions(), min_size=1, max_size=3)
STRATEGIES = st.sampled_from(("unfused", "fused", "overlap", "megakernel"))


@needs_device
@examples(30)
@given(LISTS, STRATEGIES)
def test_conditions_on_neighbours(kernels: list[MemoryConditions], strategy: fq.Strategy) -> None:
    expected = run(kernels, "reference", "unfused", is_new=False)
    assert_identical(run(kernels, None, "unfused"), expected)
    assert_identical(run(kernels, None, strategy), expected)


def run(
    kernels: list[MemoryConditions], target: str | None, strategy: fq.Strategy, is_new: bool = True
) -> list[Array]:
    """All outputs, of launches that go along rows wherever they can; ``is_new``: into memory that
    has zeros only where somebody might read them."""
    made = [defined(kernel.text) for kernel in kernels]
    outputs = [
        fq.Buffer(kernel.shape, np.int32) if is_new else fq.Buffer(np.zeros(kernel.shape, np.int32))
        for kernel in kernels
    ]
    with fq.FusionQueue(target) as queue, poisoned(queue):
        backend = queue._state.launcher.backend
        costs = replace(backend.target.costs, split_saved_seconds=0.0)
        backend.target = replace(
            backend.target, costs=costs, shortest_split_row=0, least_split_share=-np.inf
        )
        with fq.fusion(queue, strategy=strategy):
            for kernel, function, out in zip(kernels, made, outputs, strict=True):
                a = (np.arange(out.size).reshape(kernel.shape) * 7919 % 5).astype(kernel.dtype)
                range_ = kernel.shape[0], kernel.shape[1] - kernel.first
                queue.submit(function, range_, fq.Buffer(a), out, a.dtype.type(1))
    return [out.numpy() for out in outputs]
