"""Arrays that a compiler may take for read only, since nothing but their own elements is stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import generated
from fusionq.codegen.stored_arrays import surely_stored
from fusionq.ir.nodes import ArrayParam, Kernel
from tests.conformance.test_stored_and_loaded import by_one_branch, only_loaded, selected
from tests.unit.cuda.compile_only import TARGET
from tests.unit.lists import submissions


@fq.kernel
def added_nothing(item: fq.Item, a, b, takes):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    b[i] = b[i] + np.int32(0)
    a[i] = a[i] if takes else b[i]


@fq.kernel
def both_written(item: fq.Item, a, b, takes):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    a[i] = b[i] // a[i]
    a[i] = a[i] if takes else b[i]
    b[i] = b[i] * a[i]


def _ir(kernel: fq.KernelFunction) -> Kernel:
    """Where ``a`` and ``b`` share no memory."""
    a, b = np.zeros(8, np.int32), np.ones(8, np.int32)
    found = submissions((kernel, 8, a, b, True))[0].kernel
    params = [replace(p, restrict=True) if isinstance(p, ArrayParam) else p for p in found.params]
    return replace(found, params=tuple(params))


@pytest.mark.parametrize(
    ("kernel", "stored"),
    [(selected, {"a"}), (by_one_branch, {"a"}), (added_nothing, set()), (both_written, {"a", "b"})],
)
def test_what_is_surely_stored(kernel: fq.KernelFunction, stored: set[str]) -> None:
    assert surely_stored(_ir(kernel)) == stored


@pytest.mark.parametrize("kernel", [selected, by_one_branch, only_loaded, both_written])
def test_such_arrays_may_be_others_for_nvrtc(kernel: fq.KernelFunction) -> None:
    text = " ".join(generated(_ir(kernel), "strict", TARGET).text.split())
    assert "int* __restrict__ a," in text
    assert ("int* __restrict__ b," in text) == (kernel is both_written)
