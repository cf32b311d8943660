"""bfloat16: the results of ml_dtypes, in kernels that compute in float32 and round."""

import math
import operator

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from fusionq.ir.nodes import Binary, Call, Cast, Compare, GroupCall, Unary
from fusionq.ir.types import BFLOAT16, FLOAT32
from fusionq.ir.walk import expressions, statements
from tests.in_turn import one_in
from tests.unit.frontend.running import define, run_ir, run_python, specialised

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")
bfloat16 = ml_dtypes.bfloat16

SPECIAL = np.array(
    [0.0, -0.0, 1, -1, 2, 0.5, -3, 7, 0.1, 1.0078125, 255, 256, 3e38, -3e38, 1e-38, 1e-40, -1e-40,
     np.inf, -np.inf, np.nan, 100, -0.75, 3.140625, 65280, 1e10],
    np.float32,
).astype(bfloat16)  # fmt: skip
A, B = (array.reshape(-1).copy() for array in np.meshgrid(SPECIAL, SPECIAL))
N = len(A)
HALF, TENTH = bfloat16(0.5), bfloat16(0.1)
TABLE = np.array([0.1, -2, 1e-40], bfloat16)


def function(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    names = {
        "fq": fq, "ml_dtypes": ml_dtypes, "bfloat16": bfloat16, "HALF": HALF, "TENTH": TENTH,
        "TABLE": TABLE, "math": math, "operator": operator,
    }  # fmt: skip
    return define(f"def k(item, a, b, x, out, n):\n{body}", **names)


def bits(array):
    """Without which NaN it is."""
    unsigned = np.ascontiguousarray(array).view(f"u{array.itemsize}")
    return np.where(array != array, unsigned.dtype.type(1), unsigned)


def both(made, *arguments):
    """What both ways leave in the arguments, compared bit for bit."""
    results = []
    for run in (run_ir, run_python):
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        run(made, len(arguments[0]), *own)
        results.append(own)
    for ours, theirs in zip(*results, strict=True):
        if isinstance(ours, np.ndarray):
            wrong = np.flatnonzero(bits(ours) != bits(theirs))[:5]
            shown = [(*(a[k] for a in arguments[:3]), ours[k], theirs[k]) for k in wrong]
            assert not len(wrong), f"(a, b, x, the IR, Python): {shown}"
    return results[0]


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%"])
def test_operators_are_those_of_ml_dtypes(op):
    both(function(f"out[i] = a[i] {op} b[i]"), A, B, A, np.zeros(N, bfloat16), 3)


def test_results_are_rounded_after_each_operation():
    made = function("out[i] = (a[i] + b[i]) * a[i] - HALF / (b[i] + 3)")
    _, _, _, out, _ = both(made, A, B, A, np.zeros(N, bfloat16), 3)
    with np.errstate(all="ignore"):
        wide = A.astype(np.float32), B.astype(np.float32)
        once = (wide[0] + wide[1]) * wide[0] - np.float32(0.5) / (wide[1] + 3)
        assert (bits(out) != bits(once.astype(bfloat16))).any()
        stepwise = (A + B) * A - HALF / (B + bfloat16(3))
    np.testing.assert_array_equal(bits(out), bits(stepwise))


BODIES = [
    ["out[i] = -a[i]", "out[i] = +out[i]"],
    ["out[i] = abs(a[i]) + np.abs(b[i])"],
    ["out[i] = min(a[i], b[i])", "x[i] = max(a[i], b[i], HALF)"],
    ["out[i] = np.minimum(a[i], b[i])", "x[i] = np.maximum(a[i], b[i])"],
    ["out[i] = np.fmin(a[i], b[i])", "x[i] = np.fmax(a[i], b[i])"],
    ["out[i] = np.sign(a[i]) + 1", "x[i] = np.copysign(b[i], a[i])"],
    ["out[i] = np.floor(a[i]) + np.ceil(b[i]) - np.trunc(a[i]) * np.rint(b[i])"],
    ["out[i] = np.sqrt(a[i])", "x[i] = math.sqrt(b[i])"],
    ["out[i] = a[i] < b[i]", "out[i] += (a[i] <= b[i]) * 2", "x[i] = (a[i] == b[i])",
     "x[i] = x[i] + (a[i] != b[i]) * 2 + (a[i] > b[i]) * 4 + (a[i] >= b[i]) * 8"],
    ["out[i] = 2 * a[i] + True", "x[i] = 1 - b[i] / 3"],
    ["out[i] = a[i] * TENTH + n", "x[i] = HALF + TENTH"],
    ["out[i] = bfloat16(0.1) * a[i] + ml_dtypes.bfloat16(i)", "x[i] = a.dtype.type(i) - b[i]"],
    ["out[i] = int(a[i])", "x[i] = math.floor(b[i]) % 1000"],
    ["out[i] = np.int8(a[i])", "x[i] = np.uint16(b[i])"],
    ["out[i] = float(a[i]) * 1.00390625", "x[i] = np.float32(a[i]) * np.float32(1.001)"],
    ["out[i] = np.float16(a[i])", "x[i] = np.float64(b[i])"],
    ["out[i] = a[i] if b[i] else HALF", "x[i] = 1 if not a[i] else 2"],
    ["if a[i] and b[i]:", "    out[i] = 1", "elif a[i] or b[i]:", "    out[i] = 2"],
    ["s = bfloat16(0)", "for k in range(n):", "    s += a[i] * k", "    s *= HALF", "out[i] = s"],
    ["p = fq.PrivateArray(3, bfloat16, fill_zeros=True)", "p[1] = a[i]", "p[2] = b[i] * 2",
     "out[i] = p[0] + p[1] * p[2]"],
    ["p = fq.PrivateArray(2, a.dtype)", "p[:] = a[i]", "p *= b[i]", "p[1] += 1",
     "out[i] = p[0] - p[1]"],
    ["out[i : i + 1] = a[i : i + 1] * b[i : i + 1] + 1", "out[i : i + 1] -= a[i : i + 1]"],
    ["out[i] = TABLE[i % 3] * a[i] + TABLE[1]"],
    ["x[i] = np.isnan(a[i]) + np.isinf(b[i]) * 2 + np.isfinite(a[i]) * 4 + np.signbit(b[i]) * 8"],
    ["x[i] = math.isnan(a[i])", "out[i] = math.isinf(b[i]) or a[i] > 2"],
    ["out[i] = np.where(a[i] > b[i], a[i], HALF)", "x[i] = np.where(a[i] > b[i], a[i], b[i])"],
    ["out[i] = np.clip(a[i], bfloat16(-2), bfloat16(2))", "x[i] = operator.mul(a[i], b[i])"],
    ["out[i] = math.ldexp(a[i], n - 2)", "x[i] = fq.fma(a[i], b[i], HALF)"],
    ["out[i] = np.square(a[i])", "x[i] = np.reciprocal(b[i])"],
    ["out[i] = a[i] * a.dtype.type(2)", "out[i] *= b[i]", "out[i] /= 3", "out[i] -= TENTH"],
]  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("lines", BODIES, ids=lambda lines: lines[0])
@pytest.mark.parametrize("third", ["bfloat16", "float32"])
def test_kernels_are_what_ml_dtypes_computes(lines, third):
    x = B.astype(bfloat16 if third == "bfloat16" else third)
    both(function(*lines), A, B, x, np.zeros(N, bfloat16), 3)


def test_a_python_float_takes_its_type():
    """As beside every other floating type, though NumPy 2.4 makes float32 of it here."""
    made = function("out[i] = a[i] * 0.1 + 1.7", "x[i] = 3.3 / b[i]", "out[i] -= 0.3")
    x, out = np.zeros(N, np.float32), np.zeros(N, bfloat16)
    run_ir(made, N, A, B, x, out, 3)
    with np.errstate(all="ignore"):
        expected = A * bfloat16(0.1) + bfloat16(1.7) - bfloat16(0.3)
        quotients = (bfloat16(3.3) / B).astype(np.float32)
    np.testing.assert_array_equal(bits(out), bits(expected))
    np.testing.assert_array_equal(bits(x), bits(quotients))


OTHERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "float32", "float64", "bfloat16")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("other", one_in(2, OTHERS))
def test_types_with_others_and_conversions(other):
    x = np.arange(N) % 251 * (1 if other[0] in "ub" else -3)
    x = x.astype(bfloat16 if other == "bfloat16" else other)
    x[:4] = 1
    both(function("out[i] = x[i]"), A, B, x, np.zeros(N, bfloat16), 3)
    both(function("out[i] = bfloat16(x[i]) + HALF"), A, B, x, np.zeros(N, bfloat16), 3)
    both(function("x[i] = a[i]"), A, B, x, np.zeros(N, bfloat16), 3)
    if other == "bool":
        return
    lines = [f"out[i] = a[i] {op} x[i]" for op in "+-*/"] + ["out[i] = x[i] < a[i]"]
    for line in lines:
        both(function(line), A, B, x, np.zeros(N, np.float32), 3)


def test_the_ir_computes_in_float32():
    made = function("out[i] = np.exp(a[i]) * b[i] + abs(x[i])", "if a[i] < b[i]:", "    out[i] = n")
    ir = specialised(made, N, A, B, A, np.zeros(N, bfloat16), 3)
    computed = [e for e in expressions(ir.body) if isinstance(e, (Binary, Unary, Call))]
    assert {e.type for e in computed if e.type.is_float} == {FLOAT32}
    assert all(
        e.lhs.type != BFLOAT16 for e in expressions(ir.body) if isinstance(e, Compare)
    )
    casts = [e for e in expressions(ir.body) if isinstance(e, Cast) and e.type == BFLOAT16]
    assert len(casts) == 5  # of exp, *, abs, + and n


def test_group_functions_exchange_float32():
    nd = fq.NdRange(32, 16)
    a = A[64:96].copy()

    def k(item, a, out, low):
        i, g = item.get_global_id(0), item.get_group()
        out[i] = fq.group_broadcast(g, a[i], 3) + fq.reduce_over_group(g, a[i], "max")
        low[i] = fq.inclusive_scan_over_group(g, a[i], "min")

    ir = specialised(k, nd, a, a.copy(), a.copy())
    calls = [s for s in statements(ir.body) if isinstance(s, GroupCall)]
    assert [s.value.type for s in calls] == [FLOAT32] * 3
    results = []
    for run in (run_ir, run_python):
        out, low = np.zeros(32, bfloat16), np.zeros(32, bfloat16)
        run(k, nd, a, out, low)
        results.append([bits(out), bits(low)])
    np.testing.assert_array_equal(*results)


REFUSED = [
    (["out[i] = np.nextafter(a[i], b[i])"], "np.nextafter of bfloat16"),
    (["out[i] = a[i] & b[i]"], "& of bfloat16 and bfloat16"),
    (["out[i] = a[i] << 2"], "<< of bfloat16"),
    (["out[i] = ~a[i]"], "~ of bfloat16"),
    (["out[a[i]] = 1"], "an index of type bfloat16"),
    (["fq.AtomicRef(out, 0).fetch_add(a[i])"], "no atomic operations on bfloat16"),
    (["for k in range(a[i]):", "    out[i] = k"], "bfloat16"),
    (["fq.popcount(a[i])"], "of bfloat16"),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_is_refused(lines, message):
    with pytest.raises(KernelLanguageError) as caught:
        specialised(function(*lines), N, A, B, A, np.zeros(N, bfloat16), 3)
    assert message in str(caught.value)
    assert lines[0].strip() in str(caught.value) and "<test " in str(caught.value)


def test_the_public_name_is_a_dtype_wherever_float16_is():
    assert fq.bfloat16 is bfloat16
    made = function(
        "p = fq.PrivateArray(2, fq.bfloat16)", "p[1] = a[i]",
        "out[i] = fq.bfloat16(p[1] * np.float32(1.01))",
    )  # fmt: skip
    both(made, A, B, B.astype(np.float32), np.zeros(N, bfloat16), 0)

    def summed(item, a, tile, out):
        tile[item.get_local_id(0)] = fq.bfloat16(a[item.get_global_id(0)])
        fq.group_barrier(item.get_group())
        out[item.get_global_id(0)] = tile[0]

    with fq.FusionQueue("reference") as queue:
        a, out = fq.Buffer(np.float32([0.1, 2])), fq.Buffer(2, fq.bfloat16)
        tile = fq.LocalAccessor(2, fq.bfloat16)
        queue.submit(fq.kernel(summed), fq.NdRange(2, 2), a, tile, fq.access(out, promote=None))
        assert out.numpy().tolist() == [bfloat16(0.1)] * 2
