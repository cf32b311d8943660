"""Quotients and remainders of memory by what is the same for all work-items, around multiples of
the divisor and the limits up to which generated code takes a product for the quotient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import one_in

LIMITS = (0, 1 << 7, 1 << 15, 1 << 22, 1 << 31, 1 << 51, 1 << 62)
DIVISORS = (
    1, 2, 3, 5, 7, 9, 49, 255, 1000, 4095, 65537, (1 << 22) - 1, (1 << 24) + 1, (1 << 31) - 1,
    (1 << 31) + 1, (1 << 51) - 1, (1 << 53) + 1, (1 << 63) - 1,
)  # fmt: skip
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@fq.kernel
def divided(item: fq.Item, a: Any, b: Any, quotients: Any, remainders: Any) -> None:
    i = item.get_id(0)
    quotients[i] = a[i] // b
    remainders[i] = a[i] % b


def divided_within(bits: Any) -> Any:
    """A kernel that divides numbers of no more bits than float32, or float64, is exact with."""

    @fq.kernel
    def kernel(item: fq.Item, a: Any, b: Any, quotients: Any, remainders: Any) -> None:
        i = item.get_id(0)
        low = a[i] & 0x3FFFFF
        quotients[i, 0] = low // b
        remainders[i, 0] = low % b
        low_2 = low - 0x3FFFFF
        quotients[i, 1] = low_2 // b
        remainders[i, 1] = low_2 % b
        low_3 = a[i] & bits
        quotients[i, 2] = low_3 // b
        remainders[i, 2] = low_3 % b
        quotients[i, 3] = low_3 // 1000 + low_3 // 4095
        remainders[i, 3] = low_3 % 65537

    return kernel


def dividends(dtype: str, divisor: int) -> Any:
    """Numbers of a type, most of which are next to multiples of ``divisor``."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    rng = np.random.default_rng(divisor % 1000)
    found = {0, 1, -1, least, most}
    for limit in LIMITS:
        near = [limit // divisor, *(int(x * limit) // divisor for x in rng.random(20))]
        products = (k * divisor for k in near)
        found |= {s * (p + d) for p in (*products, limit) for d in (-2, -1, 0, 1) for s in (1, -1)}
    return np.array(sorted(x for x in found if least <= x <= most), dtype)


def expected(a: Any, b: Any) -> tuple[Any, Any]:
    """NumPy's, but for what that warns of."""
    with np.errstate(all="ignore"):
        return a // b, a % b


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_arguments(queue: fq.FusionQueue, dtype: str) -> None:
    kind = np.dtype(dtype)
    divisors = [d for d in DIVISORS if d <= np.iinfo(kind).max]
    if kind.kind == "i":
        divisors += [-d for d in divisors] + [int(np.iinfo(kind).min)]
    for divisor in (*one_in(3, divisors, first=DTYPES.index(dtype) % 3), 0):
        a, by = dividends(dtype, abs(divisor) or 1), kind.type(divisor)
        found = [fq.Buffer(np.zeros(len(a), kind)) for _ in range(2)]
        queue.submit(divided, len(a), fq.Buffer(a), by, *found).wait()
        for one, other in zip(found, expected(a, np.full(len(a), by)), strict=True):
            np.testing.assert_array_equal(one.numpy(), other, f"{dtype} by {divisor}")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_dividends_of_few_bits(queue: fq.FusionQueue, dtype: str) -> None:
    kind = np.dtype(dtype)
    bits = kind.type((1 << (31 if dtype == "int32" else 51)) - 1)
    kernel = divided_within(bits)
    divisors = [s * d for d in DIVISORS if d <= np.iinfo(kind).max for s in (1, -1)]
    for divisor in (*one_in(3, divisors, first=kind.itemsize % 3), 0):
        a, by = dividends(dtype, abs(divisor) or 1), kind.type(divisor)
        found = [fq.Buffer(np.zeros((len(a), 4), kind)) for _ in range(2)]
        queue.submit(kernel, len(a), fq.Buffer(a), by, *found).wait()
        low = a & kind.type(0x3FFFFF)
        quotients, remainders = (buffer.numpy() for buffer in found)
        for k, part in enumerate((low, low - kind.type(0x3FFFFF), a & bits)):
            whole, rest = expected(part, np.full(len(a), by))
            np.testing.assert_array_equal(quotients[:, k], whole, f"{k}: {dtype} by {divisor}")
            np.testing.assert_array_equal(remainders[:, k], rest, f"{k}: {dtype} by {divisor}")
        part = a & bits
        np.testing.assert_array_equal(quotients[:, 3], part // 1000 + part // 4095)
        np.testing.assert_array_equal(remainders[:, 3], part % 65537)
