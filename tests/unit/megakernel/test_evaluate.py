"""Closed forms on the host have the values that kernels compute."""

from __future__ import annotations

import numpy as np

from fusionq.ir.nodes import Binary, Call, Const, ItemQuery, Param
from fusionq.ir.types import INT64
from fusionq.megakernel.evaluate import evaluate


def wrapping(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def test_sums_and_products_wrap() -> None:
    shift, last = Param(INT64, "shift"), ItemQuery("tile_last", 0)
    twice = Binary(INT64, "mul", shift, Const(INT64, 2))
    both = Binary(INT64, "add", Binary(INT64, "add", twice, shift), last)
    limited = Binary(INT64, "add", Call(INT64, "maximum", (shift, Const(INT64, 0))), shift)
    tiles = (np.array([0, 7]),)
    for value in (3, 1 << 62, -(1 << 62), (1 << 63) - 1):
        params, exact = {"shift": value}, 3 * value
        found = evaluate(both, params, tiles, tiles)
        np.testing.assert_array_equal(found, [wrapping(exact), wrapping(exact + 7)])
        assert evaluate(limited, params) == wrapping(max(value, 0) + value)
