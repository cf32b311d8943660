"""Floating sums in loops keep the order of the turns, in every work-item of every work-group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusionq as fq

TERMS = 64


@fq.kernel
def by_for(item: fq.NdItem, x: Any, out: Any) -> None:
    total = x.dtype.type(0)
    for k in range(x.shape[0]):
        total += x[k]
    out[item.get_global_id(0)] = total


@fq.kernel
def by_while(item: fq.NdItem, x: Any, out: Any) -> None:
    total = x.dtype.type(0)
    k = 0
    while k < x.shape[0]:
        total += x[k]
        k += 1
    out[item.get_global_id(0)] = total


@fq.kernel
def by_twos(item: fq.NdItem, x: Any, out: Any) -> None:
    total = x.dtype.type(0)
    for k in range(0, x.shape[0], 2):
        total += x[k]
        total += x[k + 1]
    out[item.get_global_id(0)] = total


@fq.kernel
def in_memory(item: fq.NdItem, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    out[i] = 0.0
    for k in range(x.shape[0]):
        out[i] += x[k]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [by_for, by_while, by_twos, in_memory])
@pytest.mark.parametrize("group", [1, 7, 16, 17])
def test_sums_are_in_order(
    kernel: Callable[..., None], group: int, dtype: type[np.floating[Any]]
) -> None:
    """Work-items that do not fill a vector run in other code than the rest."""
    terms = (np.random.default_rng(0).random(TERMS) - 0.5).astype(dtype)
    wanted = dtype(0)
    for term in terms:
        wanted += term
    out = fq.Buffer(np.zeros(group, dtype))
    fq.FusionQueue().submit(kernel, fq.NdRange(group, group), fq.Buffer(terms), out).wait()
    assert out.numpy().tolist() == [wanted] * group
