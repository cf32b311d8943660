"""Kernels that keep rows in registers spill none, whatever they keep."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import Kernel
from fusionq.planning.planner import make_plan
from tests.conformance.test_kept_rows import GROUP, distances, maxima, scale, weigh
from tests.unit.cuda.compile_only import TARGET, architectures_of
from tests.unit.lists import submissions

ROWS = 4
SPACE = fq.NdRange((ROWS, GROUP), (1, GROUP))


def kernel_of(columns: int, dtype: str, is_weighed: bool) -> Kernel:
    x, y = (np.zeros((ROWS, columns), dtype) for _ in range(2))
    gain, bias = np.zeros((2, columns), dtype)
    top, total = np.zeros(ROWS, dtype), np.zeros(ROWS, dtype)
    commands = [(maxima, SPACE, x, top), (distances, SPACE, x, top, y, total)]
    if is_weighed:
        commands += [(weigh, ROWS * columns, gain.copy(), bias.copy(), x, y)]
    commands += [(scale, (ROWS, columns), total, y)]
    options = FusionOptions(strategy="fused", require=True)
    (stage,) = make_plan(submissions(*commands), options, TARGET).stages
    return stage.kernel


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(
    ("turns", "dtype", "is_weighed"),
    [
        (9, "float16", False), (31, "float32", True), (32, "float32", True), (63, "float32", False),
        (64, "float32", False), (15, "float64", True), (32, "float64", False), (32, "int64", True),
    ],
)  # fmt: skip
def test_no_registers_are_spilled(turns: int, dtype: str, is_weighed: bool) -> None:
    kernel = kernel_of(turns * GROUP + (turns % 2) * 5, dtype, is_weighed)
    assert kernel.kept_turns is not None
    source = generated(kernel, "strict", TARGET)
    for architecture in architectures_of(turns):
        resources = cubin_of(kernel, source, "strict", architecture).resources
        assert resources.spill_stores == resources.stack_bytes == 0, (kernel.kept_turns, resources)
