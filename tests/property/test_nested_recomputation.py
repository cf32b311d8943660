"""A case that random lists found: producers inlined three deep, with loops in them and conditions
that differ between work-items, of which Intel's compiler for CPUs made wrong vectors where the
minimum of two integers was written with a condition (``codegen.helpers``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.property.running import needs_device

_Arrays = list[np.ndarray[Any, np.dtype[Any]]]


@fq.kernel
def first(item: fq.Item, out, shift, a0, a1):  # type: ignore[no-untyped-def]  # kernel language
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    if not (0 <= i < out.shape[0] and 0 <= j < out.shape[1] and 0 <= k < out.shape[2]):
        return
    value = 1
    for _ in range(-1, 2):
        if 0 <= i < a0.shape[0] and 0 <= j - 1 < a0.shape[1] and 0 <= k - 1 < a0.shape[2]:
            value = value * 2 - a0[i, j - 1, k - 1]
    for _ in range(-1, 2):
        if 0 <= i - 1 < a1.shape[0] and 0 <= j - 3 < a1.shape[1] and 0 <= k - 1 < a1.shape[2]:
            value = value * 2 - a1[i - 1, j - 3, k - 1]
    if 0 <= i - 1 < a1.shape[0] and 0 <= j < a1.shape[1] and 0 <= k - 1 < a1.shape[2]:
        value = value * 2 - a1[i - 1, j, k - 1]
    for _ in range(-1, 2):
        if (
            0 <= i - 1 < a1.shape[0]
            and 0 <= min(max(j + shift, 0), a1.shape[1] - 1) < a1.shape[1]
            and 0 <= k - 1 < a1.shape[2]
        ):
            value = value * 2 - a1[i - 1, min(max(j + shift, 0), a1.shape[1] - 1), k - 1]
    out[i, j, k] = value


@fq.kernel
def second(item: fq.Item, out, a1, a2):  # type: ignore[no-untyped-def]  # kernel language
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    if not (0 <= i < out.shape[0] and 0 <= j < out.shape[1] and 0 <= k < out.shape[2]):
        return
    value = 1
    if 0 <= i - 1 < a1.shape[0] and 0 <= j - 1 < a1.shape[1] and 0 <= k < a1.shape[2]:
        value = value * 2 - a1[i - 1, j - 1, k]
    if 0 <= i - 1 < a2.shape[0] and 0 <= j - 1 < a2.shape[1] and 0 <= k - 1 < a2.shape[2]:
        value = value * 2 - a2[i - 1, j - 1, k - 1]
    for m in range(-1, 2):
        if (
            0 <= i + m < a2.shape[0]
            and 0 <= j < a2.shape[1]
            and 0 <= k - 1 < a2.shape[2]
            and a2[i + m, j, k - 1] > 0
        ):
            value += 3 * a2[i + m, j, k - 1]
    if i > 0 and i < out.shape[0] - 1:
        out[i, j, k] = value
    else:
        out[i, j, k] = value * 5


@fq.kernel
def third(item: fq.Item, out, shift, a1, a2, a3):  # type: ignore[no-untyped-def]  # kernel language
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    if not (0 <= i < out.shape[0] and 0 <= j < out.shape[1] and 0 <= k < out.shape[2]):
        return
    value = 1
    for m in range(-1, 2):
        if 0 <= i - 3 < a1.shape[0] and 0 <= j < a1.shape[1] and 0 <= k - m < a1.shape[2]:
            value = value * 2 - a1[i - 3, j, k - m]
    if (
        0 <= i < a1.shape[0]
        and 0 <= j < a1.shape[1]
        and 0 <= k + 2 < a1.shape[2]
        and a1[i, j, k + 2] > 0
    ):
        value += 3 * a1[i, j, k + 2]
    for _ in range(-1, 2):
        if (
            0 <= i - 3 < a1.shape[0]
            and 0 <= max(j - 1, 0) < a1.shape[1]
            and 0 <= k + 1 < a1.shape[2]
        ):
            value = value * 2 - a1[i - 3, max(j - 1, 0), k + 1]
    for m in range(-1, 2):
        if 0 <= i < a2.shape[0] and 0 <= j + 2 < a2.shape[1] and 0 <= k - m < a2.shape[2]:
            value = value * 2 - a2[i, j + 2, k - m]
    inside = 0 <= i < a2.shape[0] and 0 <= j < a2.shape[1] and 0 <= k < a2.shape[2]
    value += a2[i, j, k] if inside else 2
    for m in range(-1, 2):
        if (
            0 <= i + m < a2.shape[0]
            and 0 <= min(max(j + shift, 0), a2.shape[1] - 1) < a2.shape[1]
            and 0 <= min(k + 1, a2.shape[2] - 1) < a2.shape[2]
            and a2[i + m, min(max(j + shift, 0), a2.shape[1] - 1), min(k + 1, a2.shape[2] - 1)] > 0
        ):
            value += (
                3 * a2[i + m, min(max(j + shift, 0), a2.shape[1] - 1), min(k + 1, a2.shape[2] - 1)]
            )
    for m in range(-1, 2):
        if (
            0 <= min(i + 1, a3.shape[0] - 1) < a3.shape[0]
            and 0 <= j - m < a3.shape[1]
            and 0 <= min(k + 1, a3.shape[2] - 1) < a3.shape[2]
            and a3[min(i + 1, a3.shape[0] - 1), j - m, min(k + 1, a3.shape[2] - 1)] > 0
        ):
            value += 3 * a3[min(i + 1, a3.shape[0] - 1), j - m, min(k + 1, a3.shape[2] - 1)]
    out[i, j, k] = value


def _result(target: str | None, arrays: _Arrays, fused: bool) -> Any:
    a0, a1 = (fq.Buffer(a.copy()) for a in arrays[:2])
    t, u = (fq.Buffer(a.copy(), promote_private=True) for a in arrays[2:4])
    out = fq.Buffer(arrays[4].copy())
    with fq.FusionQueue(target) as queue:
        with fq.fusion(queue, strategy="overlap" if fused else "unfused", barriers="none") as f:
            queue.submit(first, (3, 3, 3), t, 1, a0, a1)
            queue.submit(second, (3, 3, 3), u, a1, t)
            queue.submit(third, (3, 3, 3), out, 1, a1, t, u)
        if fused:
            assert f.report.strategy == "overlap"
            assert len(f.report.stages) == 1
        return out.numpy().copy()


@pytest.mark.slow
@needs_device
def test_producers_inlined_three_deep() -> None:
    """The device's result is the reference backend's, and the unfused one."""
    random = np.random.default_rng(4)
    arrays = [random.integers(-9, 10, (3, 3, 3)).astype(np.int32) for _ in range(5)]
    expected = _result("reference", arrays, fused=False)
    for target in ("reference", None):
        np.testing.assert_array_equal(_result(target, arrays, fused=True), expected)
