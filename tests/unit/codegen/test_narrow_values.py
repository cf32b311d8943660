"""Integers of 64 bits that are made of elements of fewer."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.codegen.narrow_values import narrowed_values
from fusionq.ir.printer import print_kernel
from fusionq.ir.types import INT32, INT64
from fusionq.ir.verifier import verify
from tests.unit.frontend.running import define, specialised


def rewritten(*lines: str, dtype: str = "uint8") -> tuple[str, dict]:
    """The text of a kernel with ``lines``, and the types of its variables."""
    text = "def narrow(item, a, b, n, out):\n    i = item.get_id(0)\n" + "".join(
        f"    {line}\n" for line in lines
    )
    a, out = np.zeros(8, dtype), np.zeros(8, np.int64)
    kernel = specialised(define(text), 8, a, a, 5, out)
    made, (body,) = narrowed_values(kernel, [kernel.body])
    made = type(kernel)(**{
        **{name: getattr(made, name) for name in kernel.__dataclass_fields__}, "body": body,
    })  # fmt: skip
    verify(made)
    return print_kernel(made), dict(made.variables)


@pytest.mark.parametrize(
    "value, expected",
    [
        ("int(a[i]) + int(b[i])", "np.int64(np.int32(a[i]) + np.int32(b[i]))"),
        ("min(int(a[i]) * 3, 255)", "np.int64(min(np.int32(a[i]) * 3, 255))"),
        ("abs(int(a[i]) - int(b[i]))", "np.int64(abs(np.int32(a[i]) - np.int32(b[i])))"),
        ("(int(a[i]) + 7) // 9 % 5 >> 1", "np.int64((np.int32(a[i]) + 7) // 9 % 5 >> 1)"),
        ("int(a[i]) | int(b[i]) ^ 3", "np.int64(np.int32(a[i]) | np.int32(b[i]) ^ 3)"),
        ("-int(a[i])", "np.int64(-np.int32(a[i]))"),
    ],
)
def test_what_becomes_of_them(value: str, expected: str) -> None:
    text, _ = rewritten(f"out[i] = {value}")
    for part in expected.replace("(", " ").replace(")", " ").split():
        assert part in text
    assert "np.int64(a[i])" not in text, text


def test_variables_whose_values_are_all_small() -> None:
    _, types = rewritten("d = int(a[i]) - 5", "if d < 0:", "    d = int(b[i])", "out[i] = d * d")
    assert types["d"] == INT32


@pytest.mark.parametrize(
    "lines",
    [
        ("d = int(a[i])", "if d < 0:", "    d = n", "out[i] = d"),  # an argument
        ("d = int(a[i])", "if d < 0:", "    d = i % 4", "out[i] = d"),  # of an id
        ("d = 0", "for k in range(4):", "    d += int(a[k])", "out[i] = d"),  # of any size
        ("d = 0", "for k in range(int(a[i])):", "    d = k", "out[i] = d"),
        ("d = a.shape[0] % 7", "out[i] = d + int(a[i])"),
    ],
)
def test_variables_that_stay(lines: tuple[str, ...]) -> None:
    _, types = rewritten(*lines)
    assert types["d"] == INT64


@pytest.mark.parametrize(
    "value, dtype",
    [
        ("int(a[i]) * int(b[i])", "uint16"),  # up to 2 ** 32
        ("int(a[i]) + int(b[i])", "int32"),
        ("abs(int(a[i]))", "int32"),  # of the least
        ("int(a[i]) + 1", "int64"),
        ("int(a[i]) + n", "uint8"),
        ("int(a[i]) + i", "uint8"),
        ("int(a[i]) << 30", "uint8"),
        ("int(a[i]) + 3000000000", "uint8"),
    ],
)
def test_what_may_be_larger_stays(value: str, dtype: str) -> None:
    text, _ = rewritten(f"out[i] = {value}", dtype=dtype)
    assert "np.int32(a[i])" not in text and "np.int64(np.int32" not in text


def test_without_small_elements_nothing_is_looked_at() -> None:
    text = "def plain(item, a, out):\n    out[item.get_id(0)] = a[item.get_id(0)] + 1\n"
    a = np.zeros(8)
    kernel = specialised(define(text), 8, a, a)
    assert narrowed_values(kernel, [kernel.body]) == (kernel, [kernel.body])
