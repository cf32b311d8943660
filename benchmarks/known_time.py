"""Kernels made to take a known time: loops of dependent arithmetic."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import Array


@fq.kernel
def spin(item: fq.Item, turns: np.int64, out: Array) -> None:
    """``turns`` dependent operations in a region, then three times as many in another."""
    i = item.get_id(0)
    x = out[i]
    with fq.region("once"):
        for _ in range(turns):
            x = x * np.float32(0.999) + np.float32(0.5)
    with fq.region("three times"):
        for _ in range(3 * turns):
            x = x * np.float32(0.999) + np.float32(0.5)
    out[i] = x


@fq.kernel
def uneven(item: fq.NdItem, turns: np.int64, out: Array) -> None:
    """Work-group g takes g + 1 times ``turns``."""
    i = item.get_global_id(0)
    x = out[i]
    for _ in range(turns * (item.get_group().get_group_id(0) + 1)):
        x = x * np.float32(0.999) + np.float32(0.5)
    out[i] = x


@fq.kernel
def produce(item: fq.Item, turns: Array, made: Array) -> None:
    """Work-item i takes ``turns[i]``."""
    i = item.get_id(0)
    x = np.float32(1)
    for _ in range(turns[i]):
        x = x * np.float32(0.999) + np.float32(0.5)
    made[i] = x


@fq.kernel
def consume(item: fq.Item, made: Array, out: Array) -> None:
    """The sum of three neighbours, so that tiles wait for tiles."""
    i = item.get_id(0)
    if i > 0 and i < made.shape[0] - 1:
        out[i] = made[i - 1] + made[i] + made[i + 1]
    else:
        out[i] = made[i]
