"""Kernels given by the lines of their body, over ``x`` and ``out`` and the int ``n``."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised


def kernel_of(*lines, parameters="x, out, n"):
    """A kernel over ``x`` and ``out`` with ``i = item.get_id(0)`` before the given lines."""
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    return define(f"def k(item, {parameters}):\n{body}", math=math)


X = np.array([0.5, -1.5, 2.5, 3.0, -0.25, 8.0, 1.0, -7.5], "float32")


def both(*lines, n=3, dtype="float64"):
    """Run both ways over ``X``; the output array."""
    return run_both(kernel_of(*lines), 4, X, np.zeros((4, 4), dtype), n)[1]


def ir_of(*lines, n=3):
    return specialised(kernel_of(*lines), 4, X, np.zeros((4, 4), "float64"), n)


def refused(*lines):
    with pytest.raises(KernelLanguageError) as error:
        ir_of(*lines)
    return str(error.value)
