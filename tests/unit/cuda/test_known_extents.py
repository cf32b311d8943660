"""Persistent kernels that stream operands have the sizes of their first list as constants: which
do, what the plan serves then, and what the next one is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.ir.nodes import ArrayParam, Kernel, ScalarParam
from fusionq.passes.sources import ArgumentSource, RangeSource
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.cuda.compile_only import TARGET, architectures_of
from tests.unit.cuda.test_streams import product
from tests.unit.lists import submissions
from tests.unit.megakernel.cases import reverse

ROWS, COLUMNS = 64, 2048


def calls(rows: int = ROWS, columns: int = COLUMNS) -> list[tuple[object, ...]]:
    """Two products, of which the second one's vector is the first one's result."""
    space = fq.NdRange((rows, 128), (1, 128))
    one, other = (np.zeros((2 * rows, columns), np.float32) for _ in range(2))
    x, y = np.zeros(columns, np.float32), np.zeros(columns, np.float32)
    out = np.zeros(rows, np.float32)
    return [(product, space, one, x, y[:rows]), (product, space, other, y, out)]


def plan_of(
    commands: list[tuple[object, ...]], known: tuple[Plan, ...] = (), target: Target = TARGET
) -> Plan:
    options = FusionOptions(strategy="megakernel")
    plan = make_plan(submissions(*commands), options, target, known)
    assert plan.strategy == "megakernel", plan.fallback
    return plan


def constants(kernel: Kernel) -> set[str]:
    """The parameters whose extents, or values, are constants."""
    arrays = {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.extents}
    return arrays | {
        p.name
        for p in kernel.params
        if isinstance(p, ScalarParam) and p.bounds is not None and p.bounds[0] == p.bounds[1]
    }


def test_all_sizes_are_constants() -> None:
    plan = plan_of(calls())
    (stage,) = plan.stages
    of_list = submissions(*calls())
    for param, source in zip(stage.kernel.params, stage.sources, strict=True):
        match param, source:
            case ArrayParam(), ArgumentSource(s, k):
                assert param.extents == of_list[s].arguments[k].shape
            case ScalarParam(), RangeSource(s, dim):
                size = of_list[s].number(None, dim)
                assert param.bounds == (size, size)
    text = generated(stage.kernel, "strict", TARGET).text
    head = text[text.index("megakernel2_product(") :]
    assert "_shape" not in head[: head.index(") {")]
    assert f"_shape1 = {COLUMNS}" in text


def test_the_plan_serves_these_sizes_only() -> None:
    plan = plan_of(calls())
    assert plan.validity.holds(submissions(*calls()))
    assert not plan.validity.holds(submissions(*calls(ROWS + 1)))
    assert not plan.validity.holds(submissions(*calls(ROWS, COLUMNS + 128)))


def test_the_next_plan_has_parameters() -> None:
    """And serves the first one's sizes, too."""
    first = plan_of(calls())
    plan = plan_of(calls(ROWS, 2 * COLUMNS), known=(first,))
    (stage,) = plan.stages
    assert constants(stage.kernel) == set()
    for rows, columns in ((ROWS, COLUMNS), (ROWS + 16, 2 * COLUMNS)):
        assert plan.validity.holds(submissions(*calls(rows, columns)))


def test_kernels_that_stream_nothing_have_parameters() -> None:
    n = 100_000
    x, y, z = (np.zeros(n, np.int32) for _ in range(3))
    (stage,) = plan_of([(reverse, n, x, y), (reverse, n, y, z)]).stages
    assert constants(stage.kernel) == set()


def test_devices_without_rings_have_parameters() -> None:
    device = replace(TARGET.device, streams_rows=False)
    (stage,) = plan_of(calls(), target=replace(TARGET, device=device)).stages
    assert constants(stage.kernel) == set()


@pytest.mark.usefixtures("nvrtc")
def test_both_kernels_compile() -> None:
    first = plan_of(calls())
    for number, plan in enumerate((first, plan_of(calls(ROWS, 2 * COLUMNS), known=(first,)))):
        (stage,) = plan.stages
        source = generated(stage.kernel, "strict", TARGET)
        for architecture in architectures_of(number + 1):
            assert cubin_of(stage.kernel, source, "strict", architecture).resources.registers
