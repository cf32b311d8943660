"""Whether integers rise by a multiple of what others fall by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusionq.codegen.opposite_steps import has_opposite_steps
from fusionq.ir.nodes import ArrayParam
from tests.unit.frontend.running import define, specialised

N = 8


def found(line: str, channels: int | None = None) -> bool:
    """What is said of a kernel with ``line`` over rows of ``channels`` elements; None: unknown."""
    text = f"def steps(item, a, n, t, out):\n    i = item.get_id(0)\n    {line}\n"
    array = np.zeros((N, channels or 3), np.float32)
    kernel = specialised(define(text), N, array, 5, np.zeros(N, np.float32), array)
    extents = () if channels is None else (channels,)
    params = tuple(
        replace(p, extents=extents) if isinstance(p, ArrayParam) and p.ndim == 2 else p
        for p in kernel.params
    )
    return has_opposite_steps(replace(kernel, params=params))


@pytest.mark.parametrize(
    "line",
    [
        "out[n - 1 - i, 0] = a[i, 0]",
        "out[i, 0] = a[n - 1 - i, 0]",
        "out[i, 0] = t[n - 1 - i]",
        "out[-1 - i, 1] = t[i]",
        "for k in range(3): out[n - 1 - i, k] = a[i, k]",
        "out[i, 1] += t[n - 1 - i]",
    ],
)
def test_rows_of_a_known_length(line: str) -> None:
    """The place of an element is a multiple of an id; of a power of two it is a shift."""
    assert found(line, 3)
    assert not found(line, 2) and not found(line, None)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("out[i, 0] = t[3 * i % n] + t[n - 1 - i]", True),
        ("out[i, 0] = t[4 * i % n] + t[n - 1 - i]", False),
        ("out[i, 0] = t[i + i + i] + t[n - 1 - i]", True),
        ("out[i, 0] = t[3 * i % n] + t[i - 1]", False),
        ("out[i, 0] = a[i, 0] + a[i - 1, 0]", False),
        ("out[0, 0] = t[n - 1 - i]", False),
    ],
)
def test_integers(line: str, expected: bool) -> None:
    assert found(line, 2) == expected


def test_nothing_falls() -> None:
    assert not found("out[i, 0] = a[i, 1] + t[i]", 3)
