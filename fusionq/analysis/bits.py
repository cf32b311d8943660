"""Bits of integers in two's complement as quasi-affine functions.

    a >> 3       a // 8
    a & 0b111    a % 8
    a & 0b1100   a // 4 * 4 - a // 16 * 16
    a | c        a + c - (a & c)
    a ^ c        a + c - 2 * (a & c)

Exact for all int64, also negative ones, where ``c`` is a constant.
"""

from __future__ import annotations

import islpy as isl

WIDTH = 64
"""Bits of an int64; those above are as its last."""


def and_constant(value: isl.PwAff, mask: int) -> isl.PwAff:
    """``value & mask``: of each run of ones in the mask, from its first bit on less what is above
    its last."""
    ends = [bit for bit in range(WIDTH) if (mask >> bit ^ mask << 1 >> bit) & 1]
    kept = [_above(value, bit) for bit in ends]
    total = value.sub(value) if not kept else kept[0]
    for number, part in enumerate(kept[1:], start=1):
        total = total.sub(part) if number % 2 else total.add(part)
    return total


def floor_of_power(value: isl.PwAff, bits: int) -> isl.PwAff:
    """``value >> bits``."""
    return value.scale_down_val(_power(bits)).floor()


def _above(value: isl.PwAff, bit: int) -> isl.PwAff:
    """``value`` without the bits below ``bit``."""
    return floor_of_power(value, bit).scale_val(_power(bit)) if bit else value


def _power(bits: int) -> isl.Val:
    return isl.Val(str(1 << bits))
