"""Rows and slices of arrays, as views."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

A = np.arange(24.0).reshape(4, 6)


def first(v, n):
    t = 0.0
    for k in range(n):
        t += v[k]
    return t


def total(v):
    t = 0.0
    for k in range(len(v)):
        t += v[k]
    return t


def corner(v):
    return v[v.shape[0] - 1, v.shape[1] - 1]


def function(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    names = {"first": first, "total": total, "corner": corner, "fq": fq}
    return define(f"def k(item, a, out, n):\n{body}", **names)


@pytest.mark.parametrize(
    "lines",
    [
        ["row = a[i]", "out[i, 0] = row[1] + len(row) + row.shape[0] + row.ndim + row.size",
         "out[i, 1] = first(a[i], 6) + len(a[i]) + a[i].shape[0]"],
        ["out[i, 0] = total(a[i, 1:])", "out[i, 1] = total(a[i, :n])",
         "out[i, 2] = total(a[1:, i])", "out[i, 3] = total(a[i, 1 : n + 10 : 2])"],
        ["v = a[1:, 1:]", "w = v[1:, i]", "out[i, 0] = total(w)", "w = v[0]",
         "out[i, 1] = w[0] + total(w[2:4])", "v = a[::2]",
         "out[i, 2] = v[1][i] + v[1, i] + len(v) + corner(v[:, n:])"],
        ["j = i", "row = a[j]", "j = 0", "out[i, 0] = row[1]", "for k in range(4):",
         "    row = a[k]", "    out[i, 1] += row[i]", "out[i, 2] = row[i]"],
        ["row = a[i]", "if i > 1:", "    row = a[i - 1]", "out[i, 0] = row[2]",
         "v = a[i, 1:]", "for k in range(n):", "    out[i, 1] += v[0]", "    v = v[k:]",
         "out[i, 2] = total(v)"],
        ["r = a[i, 7:]", "out[i, 0] = len(r)", "out[i, 1] = len(a[i, :99])",
         "out[i, 2] = len(a[i, n + 9 :]) + len(a[4:2])"],
        ["r = out[i]", "r[2] = 5", "r[3] += a[i, 2:][i % 2]", "r[1:][0] = r[2] + 1"],
        ["p = fq.PrivateArray((4, 6), np.float64)", "q = p[1, 2:]", "q[3] = a[i, 0]",
         "out[i, 0] = p[1, 5] + len(q)"],
    ],
)  # fmt: skip
def test_parts_of_arrays(lines):
    run_both(function(*lines), 4, A, np.zeros((4, 4)), 3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("out[i, 0] = a[i]", "a number is needed here, not a 1-d part of an array"),
        ("out[i, 0] = a[i][1][2]", "cannot be indexed"),
        ("out[i, 0] = a[i][1, 2]", "2 indices for the 1-d part of the array 'a'"),
        ("out[i, 0] = a[1:, 2:, 3][0]", "3 indices for a 2-d array"),
        ("out[i, 0] = a[i, ::0][0]", "the step of a slice is 0"),
        ("out[i, 0] = a[i, ::n][0]", "a slice's step must be an integer constant"),
        ("out[i, 0] = a[i, 1.5:][0]", "an index of type float"),
    ],
)
def test_what_is_no_part_or_no_element(line, message):
    with pytest.raises(KernelLanguageError, match=message):
        specialised(function(line), 4, A, np.zeros((4, 4)), 3)


def test_the_analysis_sees_through_them():
    @fq.kernel
    def scale(item, a, tmp):
        i = item.get_id(0)
        row, to = a[i], tmp[i, 1:]
        for k in range(4):
            to[k] = row[k] * 2

    @fq.kernel
    def add(item, tmp, out):
        i = item.get_id(0)
        row = tmp[i]
        for k in range(4):
            out[i, k] = row[1:][k] + 1

    tmp = fq.Buffer((4, 6), np.float64, promote_private=True)
    out = fq.Buffer((4, 4), np.float64)
    with fq.FusionQueue("reference") as queue, fq.fusion(queue, require=True) as f:
        queue.submit(scale, 4, fq.Buffer(A), tmp)
        queue.submit(add, 4, tmp, out)
    assert f.report.strategy == "fused"
    assert [p.scope for p in f.report.promotions] == ["private"]
    assert [d.scope for d in f.report.dependences] == ["ITEM"]
    np.testing.assert_array_equal(out.numpy(), A[:, :4] * 2 + 1)
