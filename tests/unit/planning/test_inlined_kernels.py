"""Producers are inlined once for a list, however many submissions and depths need them."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.passes.inline_producer import NotInlined, Producer
from fusionq.planning import inlined_kernels
from fusionq.planning.inlined_kernels import InlinedKernels
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES


@fq.kernel
def average(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = (a[i - 1] + a[i + 1]) / 2


def steps(number: int):
    a, b = np.zeros(4096), np.zeros(4096)
    return submissions(
        *((average, 4096, *((a, b) if k % 2 == 0 else (b, a))) for k in range(number))
    )


def inlined(monkeypatch: pytest.MonkeyPatch, number: int) -> int:
    """How often a producer is inlined while so many steps are planned."""
    calls = []
    original = inlined_kernels.inline_producer

    def counting(*arguments):
        calls.append(arguments)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(inlined_kernels, "inline_producer", counting)
        plan = make_plan(steps(number), FusionOptions(strategy="overlap"), TWO_CORES)
    assert plan.strategy == "overlap"
    return len(calls)


@pytest.mark.slow
def test_more_steps_inline_no_more(monkeypatch):
    assert inlined(monkeypatch, 11) == inlined(monkeypatch, 22) > 0


def test_equal_kernels_are_one_object():
    (first,), (second,) = steps(1), steps(1)
    kernels = InlinedKernels()
    assert kernels.kernel(first.ir) is kernels.kernel(second.ir)
    other = steps(1)[0].ir
    assert kernels.producer(first.ir, {"b": ()}) is kernels.producer(other, {"b": ()})
    assert kernels.loaded(first.ir) == {"a"}


def test_a_refusal_is_remembered(monkeypatch):
    calls = []

    def refuse(*arguments):
        calls.append(arguments)
        raise NotInlined("too long")

    monkeypatch.setattr(inlined_kernels, "inline_producer", refuse)
    kernels = InlinedKernels()
    kernel = kernels.kernel(steps(1)[0].ir)
    producer: Producer = kernels.producer(kernel, {"b": ()})
    for _ in range(2):
        with pytest.raises(NotInlined, match="too long"):
            kernels.inlined(kernel, {"a": "b"}, producer)
    assert len(calls) == 1
