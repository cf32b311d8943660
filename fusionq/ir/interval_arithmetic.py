"""Intervals of integers, and what operations make of them."""

from __future__ import annotations

from typing import TypeAlias

from fusionq.ir.types import ScalarType

Interval: TypeAlias = tuple[int, int]
"""Smallest and largest possible value, inclusive."""


def of_type(type: ScalarType) -> Interval:
    """All values of an integer type; bool is 0 to 1."""
    if type.is_bool:
        return (0, 1)
    if type.kind == "u":
        return (0, (1 << type.bits) - 1)
    return (-(1 << (type.bits - 1)), (1 << (type.bits - 1)) - 1)


def within(inner: Interval, outer: Interval) -> bool:
    """Whether ``inner`` is part of ``outer``."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def arithmetic(op: str, lhs: Interval, rhs: Interval) -> Interval | None:
    """The exact, unwrapped result of an operation; None where this module knows no bound."""
    match op:
        case "add":
            return (lhs[0] + rhs[0], lhs[1] + rhs[1])
        case "sub":
            return (lhs[0] - rhs[1], lhs[1] - rhs[0])
        case "mul":
            products = [a * b for a in lhs for b in rhs]
            return (min(products), max(products))
        case "floordiv" if rhs[0] > 0:
            quotients = [a // b for a in lhs for b in rhs]
            return (min(quotients), max(quotients))
        case "mod" if rhs[0] > 0:
            return lhs if lhs[0] >= 0 and lhs[1] < rhs[0] else (0, rhs[1] - 1)
        case "floordiv" | "mod" if lhs[0] >= 0 and rhs[0] == 0:  # x // 0 and x % 0 are 0
            return (0, lhs[1])
        case "floordiv":
            most = max(-lhs[0], lhs[1])
            return (-most, most)
        case "mod":
            return (min(rhs[0] + 1, 0), max(rhs[1] - 1, 0))
        case "and" if lhs[0] >= 0 and rhs[0] >= 0:
            return (0, min(lhs[1], rhs[1]))
        case "or" | "xor" if lhs[0] >= 0 and rhs[0] >= 0:
            return (0, (1 << max(lhs[1], rhs[1]).bit_length()) - 1)
        case "shr" if rhs[0] >= 0 and rhs[1] < 64:
            shifted = [a >> b for a in lhs for b in rhs]
            return (min(shifted), max(shifted))
    return None
