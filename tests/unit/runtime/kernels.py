"""The kernels of the runtime's tests."""

from __future__ import annotations

import fusionq as fq


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def add(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def scale(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def put(item: fq.Item, value, out):
    out[item.get_id(0)] = value


@fq.kernel
def shift(item: fq.Item, a, distance, out):
    i = item.get_id(0)
    if i + distance < a.shape[0]:
        out[i] = a[i + distance]


@fq.kernel
def increment(item: fq.Item, out):
    i = item.get_id(0)
    out[i] = out[i] + 1


@fq.kernel
def reverse(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[a.shape[0] - 1 - i]


@fq.kernel
def gather(item: fq.Item, a, index, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


@fq.kernel
def add2d(item: fq.Item, a, b, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] + b[i, j]


@fq.kernel
def local_ids(item: fq.NdItem, out):
    out[item.get_global_id(0)] = item.get_local_id(0)


@fq.kernel
def slow(item: fq.Item, a, rounds, out):
    i = item.get_id(0)
    x = a[i]
    for _ in range(rounds):
        x = x * 1.0000001 + 0.5
    out[i] = x
