"""Launches of few work-items load for many iterations of a loop at once: which those are, and
their registers."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.options import FusionOptions
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.cuda.compile_only import ARCHITECTURES, TARGET
from tests.unit.lists import submissions

FEW = CODE_LIMITS.few_items * TARGET.device.compute_units


@fq.kernel
def total(item: fq.Item, a, out):
    s = a.dtype.type(0)
    for k in range(a.shape[0]):
        s += a[k]
    out[item.get_id(0)] = s


@fq.kernel
def dot(item: fq.Item, a, b, out):
    i = item.get_id(0)
    s = a.dtype.type(0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[i, k]
    out[i] = s


@fq.kernel
def eliminated(item: fq.Item, a, out):
    """Of which an iteration loads what the one before has stored; nothing else is loaded."""
    i = item.get_id(0)
    for k in range(1, out.shape[1]):
        out[i, k] = a.dtype.type(1) / (out[i, k - 1] + a.dtype.type(2))


@fq.kernel
def copied(item: fq.Item, a, out):
    out[item.get_id(0)] = a[item.get_id(0)]


def plan_of(*commands: object, strategy: str = "sequence") -> Plan:
    return make_plan(submissions(*commands), FusionOptions(strategy=strategy), TARGET)


@pytest.mark.parametrize("items", [1, 32, FEW, FEW + 1, 1 << 20])
def test_it_depends_on_the_number_of_work_items(items: int) -> None:
    """Which a plan serves on one side only."""
    a, out = np.zeros(100), np.zeros(items)
    plan = plan_of((total, items, a, out))
    (stage,) = plan.stages
    assert stage.kernel.few_items == (items <= FEW)
    for other in (2, FEW, FEW + 1, 1 << 21):
        serves = plan.validity.holds(submissions((total, other, a, np.zeros(other))))
        assert serves == ((other <= FEW) == (items <= FEW))


def test_kernels_without_such_loops_serve_any_number() -> None:
    plan = plan_of((copied, 100, np.zeros(100), np.zeros(100)))
    (stage,) = plan.stages
    assert not stage.kernel.few_items
    other = submissions((copied, 1 << 20, np.zeros(1 << 20), np.zeros(1 << 20)))
    assert plan.validity.holds(other)


def test_unfused_runs_kernels_as_they_are_written() -> None:
    (stage,) = plan_of((total, 1, np.zeros(100), np.zeros(1)), strategy="unfused").stages
    assert not stage.kernel.few_items


def test_what_an_iteration_stores_for_the_next_one_is_in_variables() -> None:
    """In launches of few work-items that are no plain submits."""
    a, out = np.zeros(1), np.zeros((100, 500))
    loads = []
    for strategy in ("sequence", "unfused"):
        (stage,) = plan_of((eliminated, 100, a, out), strategy=strategy).stages
        text = generated(stage.kernel, "strict", TARGET).text
        loads.append(text[text.index("for (") :].count("out["))
    assert loads == [1, 2]


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8"])
def test_registers(dtype: str) -> None:
    a, out = np.zeros((100, 500), dtype), np.zeros(100, dtype)
    for command in ((total, 1, out.copy(), out), (dot, 100, a, a.copy(), out)):
        (stage,) = plan_of(command).stages
        assert stage.kernel.few_items
        source = generated(stage.kernel, "strict", TARGET)
        for architecture in ARCHITECTURES:
            cubin = cubin_of(stage.kernel, source, "strict", architecture)
            assert cubin.resources.spill_stores == cubin.resources.stack_bytes == 0
