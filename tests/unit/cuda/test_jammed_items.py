"""Rows that a thread does together: nothing of their sums is spilled."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.base.options import FusionOptions
from fusionq.planning.planner import make_plan
from tests.unit.cuda.compile_only import ARCHITECTURES, TARGET
from tests.unit.lists import submissions

pytestmark = pytest.mark.usefixtures("nvrtc")


@fq.kernel
def product(item: fq.Item, a, b, c):
    i, j = item.get_id(0), item.get_id(1)
    if 1 <= i < c.shape[0] - 1 and j < c.shape[1] - 1:
        s = a.dtype.type(0)
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_registers(dtype: str) -> None:
    a, b, c = (np.zeros(shape, dtype) for shape in ((2048, 500), (500, 640), (2048, 640)))
    found = submissions((product, (2048, 640), a, b, c))
    (stage,) = make_plan(found, FusionOptions(strategy="sequence"), TARGET).stages
    assert stage.items_at_once == (4, 1)
    for architecture in ARCHITECTURES:
        source = generated(stage.kernel, "strict", TARGET)
        cubin = cubin_of(stage.kernel, source, "strict", architecture)
        assert cubin.resources.spill_stores == cubin.resources.stack_bytes == 0
