"""Constants as source text that the device's compiler reads back as the same bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusionq.codegen.dialect import Dialect
from fusionq.ir.nodes import Const

_SUFFIXES = {
    "int64": "L", "uint32": "u", "uint64": "UL",
    "float16": "h", "float32": "f", "float64": "",
}  # fmt: skip


def literal(const: Const, dialect: Dialect) -> str:
    """A constant of its own type; types narrower than int32 are written as int.

    Floating values are the shortest decimal that rounds to the value.  The smallest signed
    integer, which C cannot write as one literal, is a parenthesised difference.
    """
    if const.type.is_bool:
        return "true" if const.value else "false"
    suffix = _SUFFIXES.get(const.type.name, "")
    if not const.type.is_float:
        value = int(const.value)
        if (
            const.type.kind == "i"
            and const.type.bits >= 32
            and value == -(1 << (const.type.bits - 1))
        ):
            return f"({value + 1}{suffix} - 1)"
        return f"{value}{suffix}"
    number = float(const.value)
    if math.isnan(number):
        return dialect.not_a_number(const.type)
    with np.errstate(over="ignore"):
        rounded: Any = const.type.dtype.type(number)
    if np.isinf(rounded):
        return f"{'-' if number < 0 else ''}{dialect.infinity(const.type)}"
    digits = np.format_float_scientific(rounded, trim="-", exp_digits=1)
    if 1e-4 <= abs(number) < 1e16 or number == 0:
        digits = np.format_float_positional(rounded, trim="0")
    return f"{digits}{suffix}"
