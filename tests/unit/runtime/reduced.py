"""Kernels that combine all elements of an array, for the tests of reductions."""

from __future__ import annotations

import numpy as np

import fusionq as fq


@fq.kernel
def combine_all(item: fq.Item, a, r):
    r.combine(a[item.get_id(0)])


@fq.kernel
def add_all(item: fq.Item, a, r):
    r += a[item.get_id(0)]


@fq.kernel
def multiply(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


def values(dtype, n, seed=1):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "b":
        return rng.integers(0, 2, n).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, n).astype(dtype)
    return rng.normal(size=n).astype(dtype)


@fq.kernel
def two_of_one(item: fq.Item, a, r, s):
    r += a[item.get_id(0)]
    s.combine(a[item.get_id(0)])


@fq.kernel
def reads(item, a, r):
    a[item.get_id(0)] = r
