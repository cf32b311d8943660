"""Fusion in work-groups whose size fusionq chose: cases that random programs found."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.registry import list_devices

TARGETS = [None if info.kind != "reference" else "reference" for info in list_devices()]


@fq.kernel
def mirror_rows(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, out.shape[1] - 1 - j] = a[i, j]


@fq.kernel
def double2(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] * np.float32(2)


@fq.kernel
def reverse(item: fq.Item, a, out):
    i = item.get_id(0)
    out[item.get_range(0) - 1 - i] = a[i]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(3, 2), (5, 7), (1, 3), (2, 300)])
def test_every_dimension_is_guarded(target, shape):
    """The launch is rounded up in the last dimension too."""
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    a, t, out = fq.Buffer(data), fq.Buffer(shape, np.float32), fq.Buffer(shape, np.float32)
    with fq.FusionQueue(target) as queue, fq.fusion(queue) as f:
        queue.submit(mirror_rows, shape, a, t)
        queue.submit(double2, shape, t, out)
    assert f.report.strategy == "fused"
    assert f.report.dependences[0].scope == "GROUP"
    assert np.array_equal(t.numpy(), data[:, ::-1])
    assert np.array_equal(out.numpy(), data[:, ::-1] * 2)


@pytest.mark.parametrize("target", TARGETS)
def test_linear_ids_in_chosen_groups(target):
    """Ranges of different shape meet by linear id, in one-dimensional groups."""
    data = np.arange(12, dtype=np.float32)
    a, t, out = fq.Buffer(data), fq.Buffer((3, 4), np.float32), fq.Buffer((3, 4), np.float32)
    flat = fq.Buffer(data)
    with fq.FusionQueue(target) as queue, fq.fusion(queue) as f:
        queue.submit(reverse, 12, a, flat)
        queue.submit(double2, (3, 4), t, out)
        queue.submit(reverse, 12, flat, a)
    assert f.report.strategy == "fused"
    assert np.array_equal(a.numpy(), data)
    assert np.array_equal(flat.numpy(), data[::-1])
    assert not out.numpy().any()
