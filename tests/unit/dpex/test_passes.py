"""numba-dpex's meaning of negative indices and of narrow integers, as passes over kernels of our
own: nothing here needs numba-dpex, whose own results tests/dpex compares with."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from fusionq.dpex.frontend.indices import with_wraparound
from fusionq.dpex.frontend.integers import check_narrow_integers
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from tests.unit.frontend.running import define, run_ir, specialised

N = 64


def lowered(*lines, dtype=np.int64, **names):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    function = define(f"def k(item, a, b, out):\n{body}", **names)
    arrays = [np.zeros(N, dtype) for _ in range(3)]
    return specialised(function, N, *arrays)


# -------------------------------------------------------------------- negative indices
def wrapped(*lines):
    kernel = with_wraparound(lowered(*lines))
    verify(kernel)
    return print_kernel(kernel)


@pytest.mark.parametrize(
    "lines",
    [
        ("out[i] = a[i] + a[i + 1] + a[2 * i] + a[i // 2] + a[i >> 1]",),
        ("if i > 0:", "    out[i] = a[i - 1]"),
        ("if 1 <= i and i < 9:", "    out[i] = a[i - 1]"),
        ("if i == 0:", "    return", "out[i] = a[i - 1]"),
        ("if not i < 2:", "    out[i] = a[i - 2]"),
        ("j = i - 3", "if j >= 0:", "    out[i] = a[j]"),
        ("if i - 3 > -1:", "    j = i - 3", "    out[i] = a[j]"),
        ("out[i] = a[i - 1] if i > 0 else a[0]",),
        ("if i > 0 and a[i - 1] > 0:", "    out[i] = 1"),
        ("out[i] = a[max(i - 1, 0)] + a[min(i, 5)]",),
        ("for k in range(i + 1):", "    if k < 1:", "        continue", "    out[i] += a[k - 1]"),
        ("for k in range(9, 0, -1):", "    out[i] += a[k - 1]"),
        ("out[i] = a[np.uint64(b[i])]",),
        ("out[i] = a[b[i] % 64] + a[b[i] & 63]",),
        ("while i > 0:", "    out[i] = a[i - 1]", "    break"),
    ],
)  # fmt: skip
def test_an_index_that_is_not_negative_stays_as_it_is(lines):
    assert "a.shape[0]" not in wrapped(*lines)


@pytest.mark.parametrize(
    ("lines", "index"),
    [
        (("if i > 0 or b[i] > 0:", "    out[i] = a[i - 1]"), "i - 1"),
        (("if i < 1:", "    out[i] = a[i - 1]"), "i - 1"),
        (("if i > 0:", "    out[i] = a[i - 2]"), "i - 2"),
        (("out[i] = a[min(i - 1, 0)]",), "min(i - 1, 0)"),
        (("out[i] = a[b[i] % -4]",), "b[i] % -4"),
        (("for k in range(9, -2, -1):", "    out[i] += a[k]"), "k"),
    ],
)
def test_an_index_that_may_be_negative_counts_from_the_end(lines, index):
    assert f"a[{index} if {index} >= 0 else a.shape[0] + " in wrapped(*lines)


def test_what_is_written_counts_from_the_end_too():
    """Run with the Python that it is printed as."""
    kernel = with_wraparound(lowered("j = i - 2", "out[j] = a[j] + i"))
    a, b, out = np.arange(N), np.zeros(N, np.int64), np.zeros(N, np.int64)
    run_ir(define(f"{print_kernel(kernel)}\n"), N, a, b, out)
    wanted = np.zeros(N, np.int64)
    for i in range(N):
        wanted[i - 2] = a[i - 2] + i
    assert out.tolist() == wanted.tolist()


# ----------------------------------------------------------------------- narrow integers
@pytest.mark.parametrize(
    "line",
    [
        "out[i] = a[i] + b[i]",
        "out[i] = (a[i] * b[i] - 3) << 2",
        "out[i] = a[i] // 3 + a[i] % 5",
        "out[i] = ~a[i] >> 1",
        "out[i] = a[i] if a[i] > b[i] else -b[i]",
        "out[i] = np.int8(a[i] + b[i])",
    ],
)
def test_integers_that_agree_once_they_are_stored(line):
    kernel = lowered(line, dtype=np.int32)
    assert check_narrow_integers(kernel) is None
    assert "out[i]" in print_kernel(kernel)


@pytest.mark.parametrize(
    ("line", "wraps"),
    [
        ("out[i] = (a[i] + b[i]) // 2", "a[i] + b[i]"),
        ("out[i] = 1 if a[i] * b[i] > 0 else 0", "a[i] * b[i]"),
        ("out[i] = np.int64(a[i] - b[i])", "a[i] - b[i]"),
        ("out[i] = 1 << (a[i] + b[i])", "a[i] + b[i]"),
        ("out[i] = max(a[i] + 1, b[i])", "a[i] + 1"),
    ],
)
def test_a_sum_that_wraps_is_not_used_as_a_number(line, wraps):
    with pytest.raises(KernelLanguageError) as error:
        check_narrow_integers(lowered(line, dtype=np.int32))
    message = str(error.value)
    assert f"{wraps} has int32 here, which wraps" in message
    assert "np.int32(…), or compute in int64" in message and line in message


def test_what_a_loop_carries_is_followed():
    lines = ("t = np.int32(0)", "for k in range(3):", "    out[i] = t // 2", "    t = t + a[i]")
    with pytest.raises(KernelLanguageError, match="t has int32 here"):
        check_narrow_integers(lowered(*lines, dtype=np.int32))
