"""Constants as source text that the device's compiler reads back as the same bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusionq.ir.nodes import Const
from fusionq.ir.text import PRIMARY, UNARY, Text
from fusionq.ir.types import BFLOAT16


def bits_text(const: Const) -> str:
    """The bits of a constant of a floating type, as a number."""
    type = const.type
    with np.errstate(over="ignore"):
        bits = int(type.dtype.type(const.value).view(f"u{type.nbytes}"))
    return f"{bits:#0{2 + 2 * type.nbytes}x}"


def spelled(const: Const, suffix: str, infinity: str, nan: str) -> Text:
    """A constant with its type's ``suffix``; ``infinity`` and ``nan`` of the type, as casts or
    plain names.

    Floating values are the shortest decimal that rounds to the value.  The smallest signed
    integer, which C cannot write as one literal, is a parenthesised difference.
    """
    type = const.type
    if type.is_bool:
        return Text("true" if const.value else "false", PRIMARY)
    if not type.is_float:
        value = int(const.value)
        if type.kind == "i" and type.bits >= 32 and value == -(1 << (type.bits - 1)):
            return Text(f"({value + 1}{suffix} - 1)", PRIMARY)
        return Text(f"{value}{suffix}", UNARY if value < 0 else PRIMARY)
    number = float(const.value)
    if math.isnan(number):
        return Text(nan, UNARY if nan.startswith("(") else PRIMARY)
    with np.errstate(over="ignore"):
        rounded: Any = type.dtype.type(number)
    if type == BFLOAT16:
        rounded = np.float32(rounded)
    if np.isinf(rounded):
        if number < 0:
            return Text(f"-{infinity}", UNARY)
        return Text(infinity, UNARY if infinity.startswith("(") else PRIMARY)
    digits = np.format_float_scientific(rounded, trim="-", exp_digits=1)
    if 1e-4 <= abs(number) < 1e16 or number == 0:
        digits = np.format_float_positional(rounded, trim="0")
    return Text(f"{digits}{suffix}", UNARY if digits.startswith("-") else PRIMARY)
