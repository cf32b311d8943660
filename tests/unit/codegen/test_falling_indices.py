"""Indices from which ids are subtracted."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.codegen.falling_indices import with_falling_indices
from fusionq.ir.printer import print_kernel
from tests.unit.frontend.running import define, specialised

N = 8
X = np.zeros(N, np.float32)
PLANE = np.zeros((N, N), np.float32)


def rewritten(*lines: str, plane: bool = False) -> str:
    """The text of a kernel over a range with ``lines``, in the form that is printed."""
    ids = "y, x = item.get_id(0), item.get_id(1)" if plane else "i = item.get_id(0)"
    text = f"def falling(item, a, n, m, out):\n    {ids}\n" + "".join(f"    {s}\n" for s in lines)
    array = PLANE if plane else X
    kernel = specialised(define(text), (N, N) if plane else N, array, 5, 7, array)
    return print_kernel(with_falling_indices(kernel, kernel.body))


@pytest.mark.parametrize(
    "line, expected",
    [
        ("out[i] = a[n - 1 - i]", "a[hidden(n - 1) - i]"),
        ("out[n - 1 - i] = a[i]", "out[hidden(n - 1) - i]"),
        ("out[i] = a[n - (i + 1)]", "a[hidden(n - 1) - i]"),
        ("out[i] = a[a.shape[0] + m * 2 - 3 - i]", "hidden(a.shape[0] + 2 * m - 3) - i"),
        ("j = n - 1 - i; out[j] = a[i]", "j = hidden(n - 1) - i"),
        ("for k in range(4): out[i] += a[n - 1 - i - k]", "hidden(n - 1) - i - k"),
        ("out[i] = a[(7 - i) * 2 + i]", "a[hidden(14) - i]"),
    ],
)
def test_what_becomes_of_them(line: str, expected: str) -> None:
    text = rewritten(*line.split("; "))
    assert expected in text


@pytest.mark.parametrize(
    "line",
    [
        "out[i] = a[n - i]",  # no constant: a difference as any
        "out[i] = a[i - 1]",
        "out[i] = a[n - 1]",
        "out[i] = a[n - 1 + i]",
        "out[i] = a[n - 1 - 2 * i]",
        "for k in range(4): out[i] += a[n - 1 - k]",  # the same for neighbours
        "out[i] = a[min(n - 1 - i, i)]",  # no sum
        "out[i] = np.float32(n - 1 - i)",  # no index
        "out[i] = a[n - 1 - np.int64(a[i])]",  # by memory
        "if n - 1 - i > 3: out[i] = a[i]",
    ],
)
def test_what_stays(line: str) -> None:
    assert "hidden" not in rewritten(line)


def test_only_along_vectors() -> None:
    assert "hidden" not in rewritten("out[y, x] = a[n - 1 - y, x]", plane=True)
    assert "hidden" in rewritten("out[y, x] = a[y, n - 1 - x]", plane=True)
    assert "hidden" not in rewritten("for k in range(4): out[y, x] += a[y, n - 1 - k]", plane=True)
