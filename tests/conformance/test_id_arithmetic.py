"""Arithmetic of ids, whose magnitude is known: quotients, remainders, floats of them and negations
of these."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusionq as fq

N = 1037
LIMITS = np.iinfo(np.int64)
DIVISORS = (
    1, 2, 3, 7, 511, 1036, 1037, 10**12, 2**51 + 1, 2**53 + 1, 2**62, LIMITS.max,
    0, -1, -2, -3, -1036, -(2**53) - 1, LIMITS.min,
)  # fmt: skip


@fq.kernel
def of_ids(
    item: fq.Item, divisor: Any, quotients: Any, remainders: Any, single: Any, half: Any
) -> None:
    i = item.get_id(0)
    quotients[i] = i // divisor
    remainders[i] = i % divisor
    if i % 3 > 0:
        quotients[i] += (i - 1000) // 7
        remainders[i] += (i - 1000) % 7
        single[i] = np.float32(i) + np.float32((i - 5) * 2**20)
    else:
        half[i] = i * 0.1


def test_arithmetic_of_ids(queue: fq.FusionQueue) -> None:
    i = np.arange(N)
    some = i % 3 > 0
    for divisor in DIVISORS:
        made = [fq.Buffer(np.zeros(N, t)) for t in ("int64", "int64", "float32", "float64")]
        queue.submit(of_ids, N, divisor, *made).wait()
        by = np.full(N, divisor)
        with np.errstate(divide="ignore"):
            quotients, remainders = np.floor_divide(i, by), np.remainder(i, by)
        wanted = (
            np.where(some, quotients + (i - 1000) // 7, quotients),
            np.where(some, remainders + (i - 1000) % 7, remainders),
            np.where(some, i.astype("f4") + ((i - 5) * 2**20).astype("f4"), 0).astype("f4"),
            np.where(some, 0, i * 0.1),
        )
        for buffer, array in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(buffer.numpy(), array, f"divided by {divisor}")


@fq.kernel
def negated(item: fq.NdItem, a: Any, b: Any, c: Any, d: Any) -> None:
    group = item.get_group()
    own = item.get_local_id(0)
    i = item.get_global_id(0)
    single = -np.float32(own)
    product = np.float32(own) * np.float32(-1)
    quotient = np.float32(i) / np.float32(-1)
    double = -np.float64(i)
    for n in range(2):
        fq.group_barrier(group)
        a[i] = single + np.float32(n)
    b[i] = product
    c[i] = quotient
    d[i] = double


def test_negations_across_barriers(queue: fq.FusionQueue) -> None:
    """Intel's compiler made one value for a work-group of each, or crashed."""
    made = [fq.Buffer(np.zeros(40, t)) for t in ("float32", "float32", "float32", "float64")]
    queue.submit(negated, fq.NdRange(40, 8), *made).wait()
    i = np.arange(40.0)
    for buffer, array in zip(made, (1 - i % 8, -(i % 8), -i, -i), strict=True):
        np.testing.assert_array_equal(buffer.numpy(), array)
