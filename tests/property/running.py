"""What property tests share: how many examples, on which devices, and what equal means."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from fusionq.backends.registry import list_devices
from tests.property.launches import Array

TIMES = float(os.environ.get("FUSIONQ_EXAMPLES", "1"))
"""``FUSIONQ_EXAMPLES`` multiplies the number of examples, for long runs."""

HAS_DEVICE = any(info.kind != "reference" for info in list_devices())
needs_device = pytest.mark.skipif(not HAS_DEVICE, reason="there is no SYCL device")


def examples(number: int) -> settings:
    """Settings for about ``number`` examples."""
    return settings(
        deadline=None,
        max_examples=max(int(number * TIMES), 1),
        suppress_health_check=list(HealthCheck),
    )


def assert_identical(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """Equal dtypes, and equal bits but for the payload of NaNs."""
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(a, e)
        if e.dtype.kind == "f":
            numbers = ~np.isnan(e)
            np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(e)[numbers])
