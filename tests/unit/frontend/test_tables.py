"""Constant arrays, tuples and lists with an index that is not known when the kernel is compiled."""

from collections import namedtuple

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError, KernelLanguageError
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.frontend.signature import ArrayType, Signature
from fusionq.ir.printer import print_kernel
from fusionq.ir.types import FLOAT32
from tests.unit.frontend.running import define, run_both, specialised
from tests.unit.targets import REFERENCE

WEIGHTS = np.array([0.5, -1.5, np.inf, 3.0], np.float32)
BOX = np.arange(6, dtype=np.int16).reshape(2, 3)
STEPS = np.array([1, 0, -1])
FLAGS = np.array([True, False])
HALVES = np.array([0.5, np.nan], np.float16)
NAMES = {
    "WEIGHTS": WEIGHTS, "BOX": BOX, "STEPS": STEPS, "FLAGS": FLAGS, "HALVES": HALVES,
    "PAIR": (0.25, 2), "ROWS": [[1, 2], [3, 4]], "TYPED": (np.float32(1), np.float32(2)),
    "MIXED": (np.float32(1), 2), "fq": fq, "UNLIKE": (np.float32(1), np.int64(2)),
    "RAGGED": ((1, 2), (3,)), "EMPTY": (), "LARGE": np.zeros(20_000), "LONG": (2**70, 1),
}  # fmt: skip
A = np.array([0, 1, 2, 3, 1, 0], np.float32)


def function(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", "j = int(a[i])", *lines))
    return define(f"def k(item, a, out, n):\n{body}", **NAMES)


def test_fields_of_named_tuples():
    """Captured, passed and in tuples; of other names it is another kernel."""
    Point, Turned = namedtuple("Point", "x y"), namedtuple("Point", "y x")
    made = define(
        "def area(p):\n    return p.x * p.y\n"
        "def k(item, p, q, out):\n    i = item.get_id(0)\n    r = p\n"
        "    for k in range(2):\n        r = p if True else CAPTURED\n"
        "    out[i] = p.x + area(q[1]) * 10 + r.y * 100 + CAPTURED.x * 1000 + p[0] * 10000\n",
        CAPTURED=Point(5, 6),
    )
    with fq.FusionQueue("reference") as queue:
        found = []
        for kind in (Point, Turned):
            out = np.zeros(2)
            queue.submit(fq.kernel(made), 2, kind(1, 2), (0, Point(3, 4)), out).wait()
            found.append(out[0])
        assert found == [15321, 15222]
        wrong = define("def k(item, p, out):\n    out[0] = p.z\n")
        with pytest.raises(KernelLanguageError, match="no attribute 'z'"):
            queue.submit(fq.kernel(wrong), 2, Point(1, 2), np.zeros(2))


@pytest.mark.parametrize(
    "lines",
    [
        ["out[i] = WEIGHTS[j] * a[i] + WEIGHTS[1] + WEIGHTS.shape[0] + len(WEIGHTS)"],
        ["row = BOX[j % 2]", "out[i] = row[n] + row.shape[0] + BOX[1, 2] + BOX[1][j % 3]"],
        ["out[i] = PAIR[j % 2] * a[i]", "if FLAGS[j % 2]:", "    out[i] = HALVES[i % 2]"],
        ["out[i] = ROWS[j % 2][i % 2] + ROWS[1][j % 2] + ROWS[j % 2][0]"],
        ["out[i] = TYPED[j % 2] / 3 + MIXED[j % 2] / 3"],
        ["for k in range(3):", "    out[i] += WEIGHTS[k] * PAIR[k % 2]"],
        ["for k in range(100):", "    out[i] += PAIR[k % 2]"],
        ["t = WEIGHTS", "u = (1.5, 2.5, n)", "out[i] = t[j] + u[2] + (3.5, 4.5)[j % 2]"],
        ["for k in range(8):", "    for m in range(40):", "        out[i] += PAIR[(k + m) % 2]"],
    ],
)
def test_elements(lines):
    run_both(function(*lines), 6, A, np.zeros(6, np.float32), 1)


def test_python_numbers_take_the_type_beside_them():
    ir = specialised(function("out[i] = PAIR[j % 2] * a[i]"), 6, A, np.zeros(6, np.float32), 1)
    assert "np.float32(PAIR[j % 2]) * a[" in print_kernel(ir)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("out[i] = UNLIKE[j]", "a tuple's index must be an integer constant"),
        ("out[i] = RAGGED[j][0]", "a tuple's index must be an integer constant"),
        ("out[i] = EMPTY[j]", "a tuple's index must be an integer constant"),
        ("out[i] = LONG[j]", "a tuple's index must be an integer constant"),
        ("out[i] = (1.5, n)[j]", "a tuple's index must be an integer constant"),
        ("out[i] = PAIR[2]", "the tuple has 2 elements"),
        ("out[i] = PAIR[a[i]]", "an index of type float32"),
        ("out[i] = LARGE[j]", r"LARGE is an array from outside .* of float64\[20000\]"),
        ("WEIGHTS[j] = 1", "'WEIGHTS' is constant: it comes from outside the kernel"),
        ("WEIGHTS[j] += 1", "'WEIGHTS' is constant"),
        ("fq.AtomicRef(STEPS, j).fetch_add(1)", "'STEPS' is constant"),
        ("out[i] = WEIGHTS[4]", "the index 4 is outside 'WEIGHTS', which has 4 elements"),
    ],
)
def test_what_is_no_table_or_no_element(line, message):
    with pytest.raises(KernelLanguageError, match=message):
        specialised(function(line), 6, A, np.zeros(6, np.float32), 1)


def test_what_is_not_read_is_not_declared():
    lines = ["out[i] = WEIGHTS[1] + PAIR[0] + BOX.shape[1]"]
    assert not specialised(function(*lines), 6, A, np.zeros(6, np.float32), 1).arrays


def test_equal_tables_are_one():
    made = define(
        "def k(item, a, out, n):\n    i = item.get_id(0)\n"
        "    out[i] = FIRST[i % 3] + SECOND[i % 3] + OTHER[i % 3]\n",
        FIRST=(1.0, 2.0, 0.0), SECOND=np.array([1, 2, 0.0]), OTHER=np.array([1, 2, -0.0]),
    )  # fmt: skip
    ir = specialised(made, 6, A, np.zeros(6, np.float32), 1)
    assert [array.name for array in ir.arrays] == ["FIRST", "OTHER"]


def test_contents_are_read_once_and_count():
    table, items = np.array([1.0, 2.0]), [3.0, 4.0]
    text = "def k(item, out):\n    i = item.get_id(0)\n    out[i] = T[i] + L[i]\n"
    made = fq.kernel(define(text, T=table, L=items))
    same = fq.kernel(define(text, T=table.copy(), L=items))
    fingerprint = made.fingerprint
    assert same.fingerprint == fingerprint
    table[:] = items[:] = [9.0, 9.0]
    assert fq.kernel(define(text, T=table, L=items)).fingerprint != fingerprint
    with fq.FusionQueue("reference") as queue:
        out = fq.Buffer(2, float)
        queue.submit(made, 2, out)
        np.testing.assert_array_equal(out.numpy(), [4.0, 6.0])


def test_offsets_from_a_table_are_analysed_exactly():
    made = define(
        "def k(item, a, out):\n    i = item.get_id(0)\n"
        "    for k in range(3):\n        out[i] += a[i + 1 + S[k]]\n",
        S=STEPS,
    )
    smooth = fq.kernel(made)
    with fq.FusionQueue("reference") as queue:
        a, b, out = (fq.Buffer(np.ones(n, np.float32)) for n in (10, 8, 6))
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(smooth, 8, a, b)
            queue.submit(smooth, 6, b, out)
        assert f.report.dependences[0].scope == "GROUP"
        np.testing.assert_array_equal(out.numpy(), 1 + 3 * 4.0)
        with pytest.raises(ArgumentError, match=r"reads element \[[89]\]"):
            queue.submit(smooth, 8, b, fq.Buffer(8, np.float32))


def test_an_index_that_certainly_leaves_a_table():
    made = define("def k(item, out):\n    i = item.get_id(0)\n    out[i] = T[i]\n", T=WEIGHTS)
    with (
        fq.FusionQueue("reference") as queue,
        pytest.raises(ArgumentError, match=r"read outside the constant array 'T' \(shape \(4,\)\)"),
    ):
        queue.submit(fq.kernel(made), 5, fq.Buffer(5, np.float32))


@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize("strategy", ["fused", "sequence", "megakernel"])
def test_submissions_with_tables(target, strategy):
    gather = fq.kernel(
        define(
            "def gather(item, a, out, table):\n    i = item.get_id(0)\n"
            "    j = int(a[i]) % 4\n"
            "    out[i] = table[j % 2] + W[j] * a[(i + 1) % a.shape[0]] + H[j % 2] * F[j % 2]\n",
            W=WEIGHTS, H=HALVES, F=FLAGS,
        )
    )  # fmt: skip
    n = 20_000 if target is None else 1500
    a = np.arange(n, dtype=np.float32) % 4
    j = np.arange(n) % 4
    with np.errstate(all="ignore"):
        halves = np.array([0.5 * 1, np.nan * 0], np.float32)[j % 2]
        first = np.float32([0.25, 2])[j % 2] + WEIGHTS[j] * np.roll(a, -1) + halves
    with fq.FusionQueue(target) as queue:
        given, b, c = fq.Buffer(a), fq.Buffer(n, np.float32), fq.Buffer(n, np.float32)
        with fq.fusion(queue, strategy=strategy) as f:
            queue.submit(gather, n, given, b, (0.25, 2))
            queue.submit(gather, n, b, c, [5.0, 7.0])
        np.testing.assert_array_equal(b.numpy(), first)
        assert strategy != "megakernel" or f.report.strategy == strategy
        with fq.FusionQueue(target) as other:
            d = fq.Buffer(n, np.float32)
            other.submit(gather, n, b, d, (5.0, 7.0))
            np.testing.assert_array_equal(c.numpy(), d.numpy())


def test_tuples_are_compiled_by_their_values():
    scale = fq.kernel(
        define("def k(item, a, out, t):\n    i = item.get_id(0)\n    out[i] = a[i] * t[0] + t[i]\n")
    )
    with fq.FusionQueue("reference") as queue:
        a, out = fq.Buffer(np.float32([1, 2])), fq.Buffer(2, np.float32)
        for given in ((2, 3), (2.0, 3.0), [5, 6], (5, -0.0), (np.float32(2), np.float32(7))):
            queue.submit(scale, 2, a, out, given)
            np.testing.assert_array_equal(out.numpy(), [given[0] * 2, 2 * given[0] + given[1]])
        with pytest.raises(ArgumentError, match="'t' is a tuple that has something else"):
            queue.submit(scale, 2, a, out, (a, 1))


def test_device_source_has_equal_tables_once():
    made = define("def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = W[i] + V[i]\n",
                  W=WEIGHTS, V=HALVES)  # fmt: skip
    types = Signature("item", 1, (ArrayType(FLOAT32, 1), ArrayType(FLOAT32, 1)))
    ir = fq.kernel(made).specialise(types)
    text = generate(ir, "strict", REFERENCE, OPENCL_C).text
    assert "__constant float fq_table_0[4] = {0.5f, -1.5f, INFINITY, 3.0f};" in text
    assert "__constant const float* const W = fq_table_0;" in text


def test_numba_types_are_dtypes():
    numba = pytest.importorskip("numba")
    text = (
        "def k(item, a, out):\n    i = item.get_global_id(0)\n"
        "    p = fq.PrivateArray(2, numba.float32)\n    p[0] = a[i]\n"
        "    shared[item.get_local_id(0)] = p[0]\n"
        "    out[i] = numba.int32(p[0]) + (1 if a.dtype == numba.float32 else 0)\n"
    ).replace("k(item, a, out)", "k(item, a, out, shared)")
    made = fq.kernel(define(text, numba=numba, fq=fq))
    other = fq.kernel(define(text.replace("numba.int32", "numba.int64"), numba=numba, fq=fq))
    assert made.fingerprint != other.fingerprint
    with fq.FusionQueue("reference") as queue:
        a, out = fq.Buffer(np.float32([1.5, 2.5])), fq.Buffer(2, numba.float64)
        queue.submit(made, fq.NdRange((2,), (2,)), a, out, fq.LocalAccessor(2, numba.float32))
        np.testing.assert_array_equal(out.numpy(), [2.0, 3.0])


@pytest.mark.parametrize("leaves", ["k > 0", "k + m > 2", "m > j", "k < 0"])
@pytest.mark.parametrize("before", ["m = 7", "pass"])
def test_the_variable_of_a_loop_that_a_break_leaves_in_an_unrolled_one(before, leaves):
    """The inner loop's variable is that of the loop around it from the second time on."""
    lines = [
        before,
        "total = 0",
        "for k in range(3):",
        "    weight = ROWS[k % 2][k % 1]",
        "    for m in range(3):",
        f"        if {leaves}:",
        "            break",
        "        total = total * 3 + weight",
        *(["    total = total * 5 + m"] if before != "pass" else []),
        "out[i] = total",
    ]
    run_both(function(*lines), 6, A, np.zeros(6, np.float32), 1)
