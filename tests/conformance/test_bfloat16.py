"""Conversions between bfloat16 and float32, all that there are to get wrong, by one kernel."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.backends.base import Backend
from fusionq.ir.types import BFLOAT16
from tests.conformance.running import run
from tests.unit.codegen.built_kernels import BFLOAT16_TABLE, bfloat16_conversions

pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

ENDS = (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
"""What a float32 has behind the bits of a bfloat16: nothing, least, just below half, half, just
above half, greatest."""


def test_every_conversion_is_exact_or_rounds_to_nearest_even(backend: Backend, target: str) -> None:
    if target == "dpex":
        pytest.skip("numba-dpex has no bfloat16")
    step = 257 if backend.info.kind == "reference" else 1  # an interpreter takes long for all
    bits = np.arange(0, 1 << 16, step, np.uint32)[: 65536 // step & ~15]  # whole launches
    narrow = bits.astype(np.uint16).view(BFLOAT16.dtype)
    numbers = np.array([bits << 16 | end for end in ENDS], np.uint32).view(np.float32)
    wide, rounded = np.empty(bits.shape, np.float32), np.empty(numbers.shape, BFLOAT16.dtype)
    chosen = np.empty((13, len(bits)), BFLOAT16.dtype)
    scalar = BFLOAT16.dtype.type(-0.15625)
    kernel = bfloat16_conversions(len(ENDS))
    run(backend, kernel, narrow, wide, numbers, rounded, chosen, scalar, items=len(bits))
    np.testing.assert_array_equal(wide.view(np.uint32), bits << 16)
    with np.errstate(all="ignore"):
        expected = numbers.astype(BFLOAT16.dtype)
    np.testing.assert_array_equal(rounded.view(np.uint16), expected.view(np.uint16))
    found = chosen.view(np.uint16)
    constants = [0x7FC0, 0xFF80, 0x8000, 0x3FC0, 0x0001, 0xBE20, *BFLOAT16_TABLE]
    assert (constants == found[:12].T).all()
    assert (found[12] == np.where(np.arange(len(bits)) < 7, narrow.view(np.uint16), 0xC040)).all()
