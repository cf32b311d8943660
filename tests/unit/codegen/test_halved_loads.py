"""Pairs of neighbouring elements of 64 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusionq.codegen.halved_loads import with_halved_loads
from fusionq.ir.nodes import ArrayParam, Kernel, Load
from fusionq.ir.verifier import verify
from fusionq.ir.walk import expressions
from fusionq.passes.propagate_ids import propagate_ids
from tests.unit.frontend.running import define, specialised

N = 8


def lowered(*lines: str, dtype: str = "float64", rows: bool = False) -> Kernel:
    text = "def pairs(item, n, a, out):\n    i = item.get_id(0)\n" + "".join(
        f"    {line}\n" for line in lines
    )
    a = np.zeros((N, 2) if rows else 2 * N, dtype)
    kernel = propagate_ids(specialised(define(text), N, 5, a, np.zeros(4 * N)))
    params = tuple(
        replace(p, extents=(2,)) if isinstance(p, ArrayParam) and p.name == "a" and rows else p
        for p in kernel.params
    )
    return replace(kernel, params=params)


def halved(kernel: Kernel) -> list[bool]:
    """Of each load from ``a``, whether it is."""
    made = with_halved_loads(kernel, kernel.body)
    verify(made)
    loads = [e for e in expressions(made.body) if isinstance(e, Load) and e.array == "a"]
    return [e.halved for e in loads]


@pytest.mark.parametrize(
    "lines",
    [
        ("out[i] = a[2 * i] + a[2 * i + 1]",),
        ("x = a[i * 2 + n]", "out[i] = x", "out[i + n] = a[n + 1 + i + i]"),
        ("if i < n: out[i] = a[2 * i + 3] * a[2 * i + 4]",),
        ("s = 0.0", "for k in range(2):", "    s += a[2 * i + k]", "out[i] = s"),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64"])
def test_pairs(lines: tuple[str, ...], dtype: str) -> None:
    assert halved(lowered(*lines, dtype=dtype)) == [True, True]


def test_rows_of_two() -> None:
    assert halved(lowered("out[i] = a[i, 0] - a[i, 1]", rows=True)) == [True, True]
    assert halved(lowered("out[i] = a[i + 3, 0] - a[i + 3, 1]", rows=True)) == [True, True]
    assert halved(lowered("out[i] = a[i, 0] - a[i + 1, 1]", rows=True)) == [False, False]
    assert halved(lowered("out[i] = a[2 * i, 0] - a[2 * i, 1]", rows=True)) == [False, False]


@pytest.mark.parametrize(
    "lines",
    [
        ("out[i] = a[2 * i]",),
        ("out[i] = a[2 * i] + a[2 * i + 2]",),
        ("out[i] = a[2 * i] + a[2 * i + 1] + a[2 * i + 2]",),
        ("out[i] = a[3 * i] + a[3 * i + 1]",),
        ("out[i] = a[i] + a[i + 1]",),
        ("out[i] = a[n - 2 * i] + a[n - 2 * i + 1]",),
        ("for k in range(n):", "    out[i] += a[2 * i] + a[2 * i + 1]"),
        ("for k in range(9):", "    out[i] += a[2 * i] + a[2 * i + 1]"),
        ("if a[i] > 0: out[i] = a[2 * i] + a[2 * i + 1]",),
        ("if i % 2 == 0: out[i] = a[2 * i] + a[2 * i + 1]",),
        ("out[i] = a[2 * i] + a[2 * i + 1] if i > 3 else 0",),
        ("if i < n: out[i] = a[2 * i] + a[2 * i + 1]", "else: out[i] = 0"),
        ("if i < n: out[i] = a[2 * i] + a[2 * i + 1]", "out[i + n] = 0"),
        ("out[i + n] = 0", "if i > n: out[i] = 1", "if i < n: out[i] = a[2 * i] + a[2 * i + 1]"),
    ],
)
def test_what_stays(lines: tuple[str, ...]) -> None:
    kernel = lowered(*lines)
    assert not any(halved(kernel))
    assert with_halved_loads(kernel, kernel.body).body == kernel.body


def test_elements_of_32_bits_and_other_memory_stay() -> None:
    line = "out[i] = a[2 * i] + a[2 * i + 1]"
    assert not any(halved(lowered(line, dtype="float32")))
    kernel = lowered(line)
    apart = tuple(
        replace(p, contiguous=False) if isinstance(p, ArrayParam) else p for p in kernel.params
    )
    assert not any(halved(replace(kernel, params=apart)))
