"""Functions of whole arrays, new arrays and lists: numba-dpex compiles none of them in kernels."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.dpex.frontend.kernel import dpex_kernel
from tests.unit.frontend.running import define, signature

numba_dpex = pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)


@pytest.mark.parametrize(
    "line, message",
    [
        ("out[i] = np.sum(a)", "np.sum cannot be called"),
        ("out[i] = a.sum()", "arrays have no 'sum'"),
        ("out[i] = a @ a", "@ in a kernel of numba-dpex"),
        ("out[i] = sum(a * a)", "sum in a kernel of numba-dpex"),
        ("out[i] = np.zeros(3)[0]", "np.zeros cannot be called"),
        ("out[i] = sorted((a[0], a[1]))[0]", "sorted in a kernel of numba-dpex"),
    ],
)
def test_they_are_refused(line: str, message: str) -> None:
    text = f"def k(item, a, out):\n    i = item.get_id(0)\n    {line}\n"
    kernel = dpex_kernel(numba_dpex.kernel(define(text)))
    with pytest.raises(fq.KernelLanguageError, match=message):
        kernel.specialise(signature(4, (np.ones(4), np.ones(4))))
