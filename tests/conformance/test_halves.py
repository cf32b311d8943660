"""Conversions to float16, of which some take a way of their own: NumPy's bits."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.base import Backend


@pytest.fixture(autouse=True)
def has_halves(backend: Backend) -> None:
    if not backend.info.has_fp16:
        pytest.skip("float16, which the backend lacks")


@fq.kernel
def converted(item: fq.Item, x, y):
    i = item.get_id(0)
    y[i] = x[i]


@fq.kernel
def of_ids(item: fq.Item, x, y):
    i = item.get_id(0)
    y[i] = (i - 1000) * 97


def around_ties() -> np.ndarray:
    """All halves, what lies between two of them, and the doubles and floats beside that."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = np.sort(halves[np.isfinite(halves)].astype(np.float64))
    ties = np.append((halves[1:] + halves[:-1]) / 2, (65520.0, -65520.0))
    beside = [np.nextafter(ties, end) for end in (-np.inf, np.inf)]
    singles = [np.nextafter(ties.astype(np.float32), np.float32(e)) for e in (-np.inf, np.inf)]
    far = [0.0, -0.0, 5e-324, -1e-310, 1e-45, 1e300, -1e39, np.inf, -np.inf, np.nan, 3.4028235e38]
    return np.concatenate([halves, ties, *beside, *singles, far])


def ran(target: str, kernel: fq.Kernel, x: np.ndarray) -> np.ndarray:
    y = fq.Buffer(x.shape, np.float16)
    with fq.FusionQueue(target) as queue:
        queue.submit(kernel, len(x), fq.Buffer(x), y)
        return y.numpy().copy()


def assert_same(found: np.ndarray, x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    np.testing.assert_array_equal(found.view(np.uint16)[numbers], expected.view(np.uint16)[numbers])


def test_doubles_are_rounded_once(target: str) -> None:
    x = around_ties()
    x = x[::61] if target in ("reference", "far") else x
    assert_same(ran(target, converted, x), x)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
def test_integers(target: str, dtype: type) -> None:
    near = [65503, 65504, 65519, 65520, 65521, 1 << 24, (1 << 24) + 1, np.iinfo(dtype).max]
    x = np.concatenate([np.arange(2048, 4200, dtype=dtype), np.array(near, dtype)])
    assert_same(ran(target, converted, x), x)


def test_ids(target: str) -> None:
    x = (np.arange(2000) - 1000) * 97
    assert_same(ran(target, of_ids, x), x)
