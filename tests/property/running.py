"""What property tests share: how many examples, on which devices, and what equal means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import fusionq as fq
from fusionq.backends.registry import list_devices
from tests.property.launches import Array

HAS_DEVICE = any(info.kind != "reference" for info in list_devices())
REACHES_HOST = any(i.kind != "reference" and i.host_memory for i in list_devices())
needs_device = pytest.mark.skipif(not HAS_DEVICE, reason="there is no device")
needs_host_memory = pytest.mark.skipif(not REACHES_HOST, reason="no device reaches NumPy arrays")


def examples(number: int) -> settings:
    """Settings for about ``number`` examples, or as many more or fewer as the profile says."""
    return settings(max_examples=max(number * settings.default.max_examples // 100, 1))


def assert_identical(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """Equal dtypes, and equal bits but for the payload of NaNs."""
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(a, e)
        if e.dtype.kind == "f":
            numbers = ~np.isnan(e)
            np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(e)[numbers])


def on_device(target: str | None, arrays: Sequence[Array]) -> list[Any]:
    """Copies of ``arrays`` that kernels on ``target`` take: Buffers where it reaches no others."""
    return [fq.Buffer(a) if target == "cuda" else a.copy() for a in arrays]


def contents(holder: Any) -> Array:
    """Of one of these."""
    return holder.numpy() if isinstance(holder, fq.Buffer) else holder
