"""Kernels over work-groups, given by the lines of their body."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from fusionq.ir.walk import statements
from tests.unit.frontend.running import define, run_both, specialised

SPACE = fq.NdRange(8, 4)
TILE = fq.LocalAccessor(4, np.float32)
X = np.array([3, -1, 4, 1, -5, 9, 2, 6], "float32")


def kernel_of(*lines, parameters="x, out", **names):
    """A kernel with ``i``, ``l`` and ``group`` before the given lines."""
    head = ("i = item.get_global_id(0)", "l = item.get_local_id(0)", "group = item.get_group()")
    body = "".join(f"    {line}\n" for line in (*head, *lines))
    return define(f"def k(item, {parameters}):\n{body}", fq=fq, operator=operator, **names)


def both(*lines, dtype="float32", x=X, space=SPACE, **names):
    """Run both ways over ``x``; the output array."""
    return run_both(kernel_of(*lines, **names), space, x, np.zeros(8, dtype))[1]


def ir_of(*lines, arguments=(X, X), space=SPACE, **names):
    return specialised(kernel_of(*lines, **names), space, *arguments)


def found(kind, ir):
    return [s for s in statements(ir.body) if isinstance(s, kind)]


def refused(*lines, **options):
    with pytest.raises(KernelLanguageError) as error:
        ir_of(*lines, **options)
    return str(error.value)
