"""NumPy's functions of all elements of a row, arrays' methods, ``@``, arrays made by NumPy's
functions, and ``sorted``: as in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole
from tests.unit.frontend.running import define, run_both

DTYPES = ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64")
OF_NUMBERS = [
    "np.prod(a[i])", "np.sum(a)", "np.sum(a[i:i + 2, 1:3])", "np.sum(a[i, ::-2])",
    "a[i].sum()", "np.any(a[i])", "a[i].all()", "np.argmax(a[i])", "a[i].argmin()",
    "np.mean(a[i])", "np.linalg.norm(a[i])", "a.mean()", "np.var(a[i])", "a[i].std()",
    "np.sum(a[i] > 2)", "np.any(a[i] > 5)",
    "int(any(a[i] > 5))", "int(all(a[i] > 0))", "np.sum(t)", "np.max(u)", "u.argmin()",
]  # fmt: skip
NOT_OF_BOOLS = [
    "a[i].max()", "np.min(a[i])", "np.max(a[:, 1])", "np.dot(a[i], b)", "a[i] @ b", "a[i].dot(b)",
    "np.inner(b, b)", "np.matmul(b, a[i])", "np.sum(a[i] * b)", "(a[i] * b + 1).max()",
    "(a[i] + b)[2]", "(a[i] * a[i + 1] + b)[i]", "np.mean(a[i] * 2)", "sum(a[i] * b)",
    "max(a[i] * b)", "min(a[i] + b)", "1 + a[i] @ b * 2", "(a[i] - b).argmax()", "(a - b).sum()",
]  # fmt: skip
START = "t, u = np.zeros(3, a.dtype), np.array((3, 1, 2), np.int16)", "t[1] = a[i, 0]"


def kernel_text(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"def k(item, a, b, out):\n    i = item.get_id(0)\n{body}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_value_is_numpys(dtype: str) -> None:
    """Of whole numbers, whose sums are the same in each order."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 7, (6, 4)).astype(dtype), rng.integers(0, 3, 4).astype(dtype)
    expressions = OF_NUMBERS + NOT_OF_BOOLS * (dtype != "bool")
    stores = [f"out[i, {k}] = {expression}" for k, expression in enumerate(expressions)]
    text = kernel_text(*START, *stores)
    with np.errstate(all="ignore"):
        run_both(define(text), 4, a, b, np.zeros((4, len(expressions)), np.float64))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_elements_are_combined_from_the_first_to_the_last(dtype: str) -> None:
    """With the bits of plain Python's NumPy scalars; those of 16 bits are added in float32."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((5, 37)).astype(dtype), rng.standard_normal(37).astype(dtype)
    names = ["np.sum(a[i])", "a[i] @ b", "np.mean(a[i])", "np.prod(a[i])", "np.linalg.norm(a[i])"]
    names += ["np.var(a[i])", "(a[i] * b).std()"]
    stores = [f"out[i, {k}] = {name}" for k, name in enumerate(names)]
    run_both(define(kernel_text(*stores)), 5, a, b, np.zeros((5, 7), dtype))
    out = np.zeros((5, 7), dtype)
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(define(kernel_text(*stores))), 5, a, b, out)
    wide = np.float32 if dtype == "float16" else np.dtype(dtype).type
    total = wide(0)
    for x in a[3]:
        total = total + wide(x)
    assert out[3, 0] == np.dtype(dtype).type(total)


def test_extrema_and_their_places_with_nan() -> None:
    a = np.float32([[1, np.nan, 3, np.nan], [np.nan, 1, 2, 3], [2, 2, 1, 1], [-0.0, 0.0, -1, -1]])
    names = ["np.max(a[i])", "np.min(a[i])", "np.argmax(a[i])", "np.argmin(a[i])"]
    stores = [f"out[i, {k}] = {name}" for k, name in enumerate(names)]
    out = np.zeros((4, 4), np.float64)
    run_both(define(kernel_text(*stores)), 4, a, a[0], out)
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(define(kernel_text(*stores))), 4, a, a[0], out)
    np.testing.assert_array_equal(out[:, 0], a.max(1))
    np.testing.assert_array_equal(out[:, 2:], np.stack([a.argmax(1), a.argmin(1)], 1))


@pytest.mark.parametrize(
    "lines",
    [
        ("x = 0", "while np.any(a[i] > x) and a[i].sum() > x:", "    x += 1", "out[i] = x"),
        ("for j in range(4):", "    a[i, j] = 1", "    out[i] += a[i].sum() * a[i, j]"),
        ("a[i, 0], a[i, 1] = a[i].max(), a[i].min()", "out[i] = a[i] @ a[i]"),
        ("out[i] = a[i].max() if i > 1 and a[i].min() < 3 else a[i, 1:].sum()",),
        ("f = lambda x: (x * x).sum()", "out[i] = f(a[i]) + f(a[i, 1:])"),
        ("a[i] -= a[i].min()", "out[i] = a[i].sum()"),
        ("a[i, :] = a[i] * a[i].sum()", "out[i] = a[i, 3]"),
    ],
    ids=lambda lines: lines[0],
)
def test_between_other_statements(lines: tuple[str, ...]) -> None:
    a = np.random.default_rng(3).integers(0, 7, (4, 4)).astype(np.float32)
    run_both(define(kernel_text(*lines)), 4, a, a[0].copy(), np.zeros(4, np.float64))


def test_rows_of_other_lengths_are_found_out() -> None:
    text = kernel_text("out[i] = a[i] @ b")
    queue, out = fq.FusionQueue("reference"), np.zeros(4)
    with pytest.raises(fq.FusionqError, match="outside"), fq.fusion(queue, check=True):
        queue.submit(fq.kernel(define(text)), 4, np.ones((4, 4)), np.ones(3), out)


MADE = [
    ("t = np.zeros(4, np.float32)", "for k in range(4):", "    t[k] += a[i, k]", "out[i] = t[3]"),
    ("t = np.zeros((2, 3))", "t[1, 2] = a[i, 0]", "out[i] = t[1, 2] + t[0, 0]"),
    ("t = np.ones(3, dtype=int)", "out[i] = t[1]"),
    ("t = np.full(3, a[i, 1])", "a[i, 1] = 9", "out[i] = t[1] + t[2]"),
    ("t = np.full((2, 2), 1.5)", "out[i] = t[1, 1]"),
    ("t = np.full(2, 7, dtype='int16')", "out[i] = t[1]"),
    ("t = np.array([a[i, 1], a[i, 0]])", "out[i] = t[i % 2]"),
    ("t = np.array((1, 2, 3), dtype='float32')", "out[i] = t[i % 3]"),
    ("t = np.array((1.0, 2.0, 3.0))", "t[1] = 7", "out[i] = t[i % 3]"),
    ("t = np.empty(3, bool)", "t[:] = True", "out[i] = t[i % 3]"),
    ("t = np.zeros(3, dtype=a.dtype)", "t[:] = a[i, :3]", "out[i] = t.sum()"),
    ("t = np.zeros(2, np.complex64)", "t[0] = 1j", "out[i] = t[0].imag + t[1].real"),
    ("t, s = np.array((1, 2)), 5", "s, t[0] = t[0], s", "out[i] = s * 10 + t[0]"),
]


@pytest.mark.parametrize("lines", MADE, ids=lambda lines: lines[0])
def test_arrays_that_numpy_makes(lines: tuple[str, ...]) -> None:
    for dtype in ("int8", "float32"):
        a = np.random.default_rng(1).integers(0, 7, (6, 4)).astype(dtype)
        run_both(define(kernel_text(*lines)), 4, a, a[0].copy(), np.zeros(4, np.float64))


SMALL = [
    ("out[i] = a[item[0], 1]",),
    ("out[i] = i in range(1, 3)",),
    ("out[i] = i not in range(0, 4, 2)",),
    ("out[i] = i in range(3, 0, -2)",),
    ("out[i] = int(a[i, 0]) in range(i, len(b), 3)",),
    ("x, *r = (a[i, 0], a[i, 1], a[i, 2])", "out[i] = x + r[1] + len(r)"),
    ("*r, x = a[i, :3], 1", "out[i] = x + r[0][1]"),
    ("x, *r, y = (1, 2)", "out[i] = x + y + len(r)"),
    ("t = np.array((a[i, 0], a[i, 1], a[i, 2]))", "x, *r = t", "out[i] = x + r[1]"),
    ("(x, *r), y = (a[i, 0], 2, 3), 4", "r, x = x, r[0]", "out[i] = x + y + r"),
    ("out[i] = a[..., 1][i] + a[i, ...][2]",),
    ("a[i, ...] = 3", "out[i] = a[i, 0]"),
    ("a[...] = 3", "out[i] = a[i, 0]"),
    ("out[i] = int(np.int64(i)).bit_count() + np.int32(-i * 7).bit_count()",),
]


@pytest.mark.parametrize("lines", SMALL, ids=lambda lines: lines[0])
def test_ids_ranges_rests_and_bits(lines: tuple[str, ...]) -> None:
    a = np.random.default_rng(1).integers(0, 7, (6, 4)).astype(np.int16)
    run_both(define(kernel_text(*lines)), 4, a, a[0].copy(), np.zeros(4, np.float64))


@pytest.mark.parametrize("step", [-1, -2, -3, 2])
def test_slices_from_the_end(step: int) -> None:
    bounds = [None, 0, 1, 3, 4, 6, -1, -3, -4, -6]
    cuts = [(low, high) for low in bounds for high in bounds]
    shown = [
        f"{'' if low is None else low}:{'' if high is None else high}:{step}" for low, high in cuts
    ]
    stores = []
    for k, cut in enumerate(shown):
        stores.append(f"out[i, {k}] = len(a[i, {cut}])")
        stores.append(f"for x in a[i, {cut}]:")
        stores.append(f"    out[i, {k}] = out[i, {k}] * 11 + x")
    a = np.random.default_rng(1).integers(0, 7, (2, 4)).astype(np.float64)
    run_both(define(kernel_text(*stores)), 2, a, a[0].copy(), np.zeros((2, len(cuts))))


@pytest.mark.parametrize(
    "lines",
    [
        ("out[i] = a[i, 1:][::-1][1] * 10 + a[i, ::-1][1:3][1]",),
        ("out[i] = a[::-1, 1][i] * 10 + a[i, ::-1][::-2][1]",),
        ("t = np.zeros(4)", "t[::-1] = a[i, :]", "t[:] = t[::-1]", "out[i] = t[1]"),
        ("t = np.zeros(4)", "t[:] = a[i]", "t[1:] = t[2::-1]", "out[i] = t @ b"),
        ("a[i, 2::-1] = b[1:]", "out[i] = a[i] @ b"),
        ("n = i + 1", "out[i] = a[i, n::-1].sum() * 100 + a[i, :n:-1].sum()"),
    ],
    ids=lambda lines: lines[-1],
)
def test_parts_that_go_backwards(lines: tuple[str, ...]) -> None:
    a = np.random.default_rng(1).integers(0, 7, (4, 4)).astype(np.float64)
    run_both(define(kernel_text(*lines)), 4, a, a[0].copy(), np.zeros(4))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("reverse", ["", ", reverse=True"])
def test_sorted(count: int, reverse: str) -> None:
    """Equal items keep their order, which zeros of both signs show."""
    items = ", ".join(f"a[i, {k}]" for k in range(count))
    stores = [f"t = sorted([{items}]{reverse})"]
    stores += [f"out[i, {k}] = t[{k}]" for k in range(count)]
    rng = np.random.default_rng(count)
    a = rng.integers(-2, 2, (64 if is_whole() else 8, 9)).astype(np.float32)
    a[(a == 0) & (rng.random(a.shape) < 0.5)] = -0.0
    run_both(define(kernel_text(*stores)), len(a), a, a[0].copy(), np.zeros(a.shape, np.float32))


@pytest.mark.parametrize(
    "line",
    [
        "t = sorted((a[i, 0], 3, a[i, 1]))", "t = sorted(a[i, k] + k for k in range(4))",
        "t = sorted([x for x in (3, 1, 2)])", "t = sorted((2.5, 1))",
    ],
)  # fmt: skip
def test_sorted_of_what_has_items(line: str) -> None:
    a = np.random.default_rng(1).integers(0, 7, (4, 4)).astype(np.float32)
    run_both(define(kernel_text(line, "out[i] = t[1]")), 4, a, a[0].copy(), np.zeros(4))
