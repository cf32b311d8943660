"""Kernels and small helpers of the end-to-end tests."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import Array

N = 64


def numbers(shape=N, dtype=np.int64):
    """A buffer with 0, 1, 2, …"""
    return fq.Buffer(np.arange(np.prod(shape)).reshape(shape).astype(dtype))


def empty(shape=N, dtype=np.int64):
    return fq.Buffer(shape, dtype)


def preset(shape=N, dtype=np.int64, **flags):
    """A buffer full of -1, which a promotion must leave as it is."""
    buffer = fq.Buffer(shape, dtype, **flags)
    buffer.write(np.full(shape, -1, dtype))
    return buffer


def untouched(*buffers):
    return all((buffer.numpy() == -1).all() for buffer in buffers)


@fq.kernel
def increment(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] + 1


@fq.kernel
def add(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def increment_2d(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] + 1


@fq.kernel
def increment_3d(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    k = item.get_id(2)
    out[i, j, k] = a[i, j, k] + 1


@fq.kernel
def increment_nd(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = a[i] + 1


@fq.kernel
def add_next(item: fq.Item, a, out):
    i = item.get_id(0)
    if i + 1 < a.shape[0]:
        out[i] = a[i] + a[i + 1]
    else:
        out[i] = a[i]


@fq.kernel
def write_reversed(item: fq.Item, a, out):
    i = item.get_id(0)
    out[out.shape[0] - 1 - i] = a[i]


@fq.kernel
def reverse_in_group(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    out[i - k + item.get_local_range(0) - 1 - k] = a[i] + 1


@fq.kernel
def gather(item: fq.Item, a, places, out):
    i = item.get_id(0)
    out[i] = a[places[i]]


@fq.kernel
def flipped(item: fq.Item, a: Array, b: Array) -> None:
    """Makes the next stage wait."""
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] + 1
