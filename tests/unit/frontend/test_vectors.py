"""Rows and slices as values: assignments of expressions of arrays."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError, KernelLanguageError
from tests.unit.frontend.running import define, run_both, run_ir, specialised

A = np.arange(24.0).reshape(4, 6)
B = np.linspace(-3, 5, 24, dtype=np.float32).reshape(4, 6)
W = np.float32([0.5, -1, 2])


def scaled(v, by):
    return v * by


def filled(row, value):
    row[:] = value


def function(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    names = {"scaled": scaled, "filled": filled, "fq": fq, "W": W}
    return define(f"def k(item, a, b, out, n):\n{body}", **names)


@pytest.mark.parametrize(
    "lines",
    [
        ["out[i, :] = a[i, :] + b[i, :]"],
        ["out[i] = a[i] * 2 - b[i] / 3.5", "out[i, 1:3] = -b[i, 2:4]"],
        ["out[i] = 7", "out[i, ::2] = i", "out[i, 1 : n + 1] += a[i, :n]"],
        ["out[i] = np.sqrt(np.abs(b[i])) + np.maximum(a[i], b[i])",
         "out[i] -= out[i] * out[i, 2]"],
        ["out[i] = scaled(a[i], n) + b[i, 0]"],
        ["row = out[i]", "row[:] = a[i]", "row += b[i]", "filled(row[4:], 2)",
         "row[1:3] *= row[0]"],
        ["out[i] = (a[i] < b[i]) | (a[i] > 12)"],
        ["out[i] = np.float64(b[i]) // 2 + np.int32(a[i]) % 5"],
        ["out[i, 0:3] = b[i, 0:3] * W", "out[i, 3:6] = W"],
        ["p = fq.PrivateArray(3, np.float32)", "p[:] = b[i, :3]", "q = p * W + p[1]", "p[:] = 0",
         "q[1:] = q[:2]", "q += 1", "out[i, :3] = q - p", "out[i, 3:] = scaled(q, 2)"],
        ["p = fq.PrivateArray((2, 3), np.float64)", "p[0] = 3", "p[1] = p[0] + 1",
         "t = p + W", "out[i, :3] = t[1]", "out[i, 3:] = (p * t)[n - 2]"],
        ["out[i, 2:4] = out[i, 0:2] + 1", "out[i, 1] = a[i, 2]", "out[i] = out[i] + out[i, 1]"],
        ["v = a[1:3, 1:5]", "w = out[0:2, 0:4]", "if i == 0:", "    w[:] = v * v[:, :]"],
        ["p = fq.PrivateArray((1, 3), np.float64)", "p[:] = i + 1", "o = fq.PrivateArray((2, 3), "
         "np.float64)", "o[:] = W", "o *= p", "out[i, :3] = o[1]"],
        ["out[i, a.shape[1] :] = 5", "out[i, 4:2] = a[i, 4:2]"],
    ],
)  # fmt: skip
def test_expressions_of_rows(lines):
    run_both(function(*lines), 4, A, B, np.ones((4, 6)), 3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["out[i, 0] = a[i] + 1"], "a number is needed here, not a 1-d array"),
        (["out[i] = a"], "2 dimensions for the 1 of this part of 'out'"),
        (["row = a[i] + 1"], "length is not known when the kernel is compiled, so it cannot be"),
        (["scaled(a[i] + 1, 2)", "out[i] = 1"], "cannot be kept, only assigned"),
        (["out[i, 1:] = out[i, :5]"], "may overlap what is written"),
        (["out[i] = out[n]"], "may overlap what is written"),
        (["W[:] = a[i, :3]"], "'W' is constant"),
        (["p = fq.PrivateArray(3, np.int32)", "p += a[i, 0]"], "this gives float64, which an array "
         "of int32 does not take in place"),
        (["p = fq.PrivateArray(3, np.int32)", "q = fq.PrivateArray(4, np.int32)", "p[:] = q"],
         "4 elements of 'q' for 3"),
        (["q = fq.PrivateArray(4, np.int32)", "out[i, :4] = q + W"], "arrays of 3 and 4 elements"),
        (["if a[i] < b[i]:", "    out[i] = 1"], "a number is needed here, not a 1-d array"),
        (["out[i] = math.sqrt(a[i])"], "is not defined"),
        (["out[i] = max(a[i], b[i])"], "a number is needed here"),
        (["out[i] = not a[i]"], "a number is needed here"),
    ],
)  # fmt: skip
def test_what_cannot_be_assigned(lines, message):
    with pytest.raises(KernelLanguageError, match=message):
        specialised(function(*lines), 4, A, B, np.zeros((4, 6)), 3)


@pytest.mark.parametrize("row", ["out[i + 1]", "out[i - 1, :]", "b[i, :]", "out[i]"])
def test_rows_that_cannot_overlap_or_are_the_same(row):
    made = function("if 0 < i and i < 3:", f"    out[i] = a[i] - {row}")
    run_both(made, 4, A, B, np.ones((4, 6)), 3)


@fq.kernel
def add_rows(item, a, out):
    i = item.get_id(0)
    out[i, :] = a[i, :] + 1


@fq.kernel
def shift(item, a, out):
    i = item.get_id(0)
    out[i, 1:4] = a[i, 0:3]


def test_lengths_that_differ_are_refused():
    short, long = np.zeros((4, 5)), np.zeros((4, 7))
    with fq.FusionQueue("reference") as queue:
        for a, out in ((short, long), (long, short)):
            with pytest.raises(ArgumentError, match="read outside array 'a'"):
                queue.submit(add_rows, 4, a, out)
        with pytest.raises(ArgumentError, match="read outside array 'a'"):
            queue.submit(shift, 4, np.zeros((4, 2)), long)
        queue.submit(shift, 4, long + 3, long)
        queue.wait()
    assert long.sum() == 4 * 3 * 3


def test_arguments_that_overlap_are_refused_each_time():
    base = np.arange(30.0)
    a, out = base[:24].reshape(4, 6), base[6:].reshape(4, 6)
    other = np.zeros((4, 6))

    def submit(kernel, x, y):
        queue.submit(kernel, 4, x, y)
        queue.wait()

    with fq.FusionQueue("reference") as queue:
        for _ in range(2):
            submit(add_rows, a, other)
            submit(shift, a, other)
            with pytest.raises(ArgumentError, match="share memory but are not the same view"):
                submit(add_rows, a, out)
            with pytest.raises(ArgumentError, match="'out' what it computes from one of 'a'"):
                submit(shift, a, a)
        before = other.copy()
        submit(add_rows, other, other)
    np.testing.assert_array_equal(other, before + 1)


def test_other_arguments_of_a_graph_may_not_overlap():
    base = fq.Buffer(np.arange(30.0).reshape(5, 6))
    a, out = fq.Buffer(A), base[1:5]
    graph = fq.Graph()
    with fq.FusionQueue("reference") as queue:
        with graph.record(queue):
            queue.submit(add_rows, 4, a, out)
        with pytest.raises(ArgumentError, match="share memory but are not the same view"):
            graph.update(a=base[0:4])
        graph.update(a=base[1:5])
        graph.launch().wait()
    np.testing.assert_array_equal(base.numpy()[1:], np.arange(6.0, 30.0).reshape(4, 6) + 1)


def test_rows_fuse_and_are_promoted():
    @fq.kernel
    def twice(item, a, tmp):
        i = item.get_id(0)
        tmp[i] = a[i] * 2

    @fq.kernel
    def add(item, a, tmp, out):
        i = item.get_id(0)
        out[i, :4] = tmp[i, :4] + a[i, :4]

    tmp = fq.Buffer((4, 6), np.float64, promote_private=True)
    out = fq.Buffer((4, 4), np.float64)
    a = fq.Buffer(A)
    with fq.FusionQueue("reference") as queue, fq.fusion(queue, require=True) as f:
        queue.submit(twice, 4, a, tmp)
        queue.submit(add, 4, a, tmp, out)
    assert f.report.strategy == "fused"
    assert [p.scope for p in f.report.promotions] == ["private"]
    np.testing.assert_array_equal(out.numpy(), A[:, :4] * 3)


def test_the_reference_backend_finds_lengths_that_differ_at_run_time():
    def k(item, a, counts, out):
        i = item.get_id(0)
        out[i, : counts[i]] = a[i, :2]

    counts = np.int64([2, 2, 2, 2])
    out = np.zeros((4, 6))
    run_ir(k, 4, A, counts, out)
    np.testing.assert_array_equal(out[:, :2], A[:, :2])
    with pytest.raises(Exception, match=r"accesses a\[0, 6\]"):
        run_ir(k, 4, A, counts + 1, out)
