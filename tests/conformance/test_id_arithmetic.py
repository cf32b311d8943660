"""Quotients, remainders and floats of ids, whose magnitude is known, by any number: NumPy's."""

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
