"""Plain functions that kernels call, and the constants around them."""

import math
import types

import numpy as np
import pytest

import fusionq
from fusionq.base.errors import KernelLanguageError
from fusionq.frontend import kernel
from fusionq.ir.nodes import Assign, Const, If, Store
from fusionq.ir.types import FLOAT32, FLOAT64
from fusionq.ir.walk import expressions, statements
from tests.unit.frontend.running import define, run_both, specialised

X = np.array([0.5, -1.5, 2.5, 3.0, -0.25, 8.0], "float32")
ONE, TWO, TABLE = 1, np.float32(2.5), (1, 2.5, (np.float32(3), True))
HUGE = np.zeros(30_000)
helpers = types.ModuleType("helpers")
helpers.SCALE = 0.25


def clamp(value, low=-1.0, *, high=2):
    """Returns from the middle."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def norm(x, y):
    return math.sqrt(x * x + y * y)


def twice(function, value):
    return function(function(value))


def half(value):
    return value / 2


def split(value):
    whole = math.floor(value)
    return whole, value - whole


def find(array, value):
    for k in range(len(array)):
        if array[k] == value:
            return k
    return -1


def store_and_give(array, i, value):
    array[i] = value
    return value * 10


def leave(array, i):
    if i > 2:
        return
    array[i] = i


def row_sum(row_of, i):
    total = 0.0
    for k in range(row_of.shape[1]):
        total += row_of[i, k]
    return total


def own_id(item):
    return item.get_id(0) * 2


helpers.half = half


def test_a_function_of_one_return_leaves_no_trace():
    def k(item, x, out):
        i = item.get_id(0)
        out[i] = norm(x[i], x[i + 1]) * ONE

    ir = specialised(k, 3, X, np.zeros(3, "f4"))
    assert [type(s) for s in ir.body] == [Assign] * 3 + [Store]
    assert [s.name for s in ir.body[1:3]] == ["norm_x", "norm_y"]
    run_both(k, 3, X, np.zeros(3, "f4"))


def test_returns_in_the_middle():
    def k(item, x, out):
        i = item.get_id(0)
        out[i] = clamp(x[i]) + clamp(x[i], high=0.5) + clamp(value=x[i], low=0)

    ir = specialised(k, 6, X, np.zeros(6, "f4"))
    assert any(isinstance(s, If) for s in ir.body)
    assert len({n for n, _ in ir.variables if n.startswith("clamp_result")}) == 3
    run_both(k, 6, X, np.zeros(6, "f4"))


def test_returns_from_loops_tuples_arrays_items_and_functions():
    def k(item, x, out):
        i = own_id(item) // 2
        whole, part = split(x[i])
        out[i, 0] = whole
        out[i, 1] = part
        out[i, 2] = find(x, 2.5) + find(x, i)
        out[i, 3] = twice(half, x[i]) + helpers.half(x[i]) * helpers.SCALE
        leave(x, i)
        out[i, 4] = row_sum(out, i)

    run_both(k, 6, X, np.zeros((6, 5), "f8"))


def test_arguments_are_evaluated_once_and_names_do_not_clash():
    def inner(i):
        i = i + 1
        x = i * 2
        return x

    def k(item, x, out):
        i = item.get_id(0)
        out[i] = inner(inner(i)) + i + x[i]

    run_both(k, 6, X, np.zeros(6, "f8"))


def test_evaluation_is_from_left_to_right():
    """What is read before a call that writes is what was there before."""

    def k(item, x, out):
        i = item.get_id(0)
        out[i, 0] = x[i] + store_and_give(x, i, 7.0) + x[i]
        x[i] += store_and_give(x, i, 5.0)
        out[i, 1] = x[i]
        out[store_and_give(x, i, 0), 2] = x[i] + i
        a, b = x[i], store_and_give(x, i, 1.0)
        out[i, 3] = a + b
        x[i], out[i, 4] = 3, x[i]

    run_both(k, 1, X, np.zeros((1, 5), "f8"))


def test_calls_in_operands_that_are_skipped_do_not_run():
    def k(item, x, out):
        i = item.get_id(0)
        if i < 3 and store_and_give(x, i, 7.0) > 0:
            out[i] = 1
        out[i] += store_and_give(x, i, 2.0) if i > 4 else x[i]
        if i == 0 or store_and_give(x, i, 9.0) < 0 or i < 2:
            out[i] += 3
        out[i] += 0 < i < store_and_give(x, i, i) < 30

    run_both(k, 6, X, np.zeros(6, "f8"))


def test_a_function_may_return_nothing():
    def k(item, x, out):
        leave(x, item.get_id(0))

    run_both(k, 6, X, np.zeros(6))


def test_closures_are_constants():
    def make(factor, power):
        def scaled(value):
            return value * factor

        def k(item, x, out):
            i = item.get_id(0)
            out[i] = scaled(x[i]) ** power

        return k

    ir = specialised(make(2.0, 3), 6, X, np.zeros(6, "f4"))
    assert Const(FLOAT32, 2.0) in expressions(ir.body)
    run_both(make(np.float64(0.1), 2), 6, X, np.zeros(6, "f8"))


def test_globals_are_constants():
    def k(item, x, out):
        i = item.get_id(0)
        if TABLE[2][1]:
            out[i] = x[i] * ONE + TWO * TABLE[1] + TABLE[2][0] + len(TABLE) + math.pi

    ir = specialised(k, 6, X, np.zeros(6, "f4"))
    assert {e.type for e in expressions(ir.body) if isinstance(e, Const)} == {FLOAT32}
    run_both(k, 6, X, np.zeros(6, "f4"))
    k64 = define("def k(item, out):\n    out[0] = C * 1.0 + 0.1\n", C=np.float64(0.1))
    assert specialised(k64, 1, np.zeros(1)).body[0].value == Const(FLOAT64, 0.1 * 1.0 + 0.1)


def test_python_constants_stay_weak_and_numpys_strong():
    function = define("def k(item, x, out):\n    out[0] = x[0] * W * S\n", W=0.1, S=np.float64(0.1))
    ir = specialised(function, 1, X, np.zeros(1))
    types_of_constants = {e.value: e.type for e in expressions(ir.body) if isinstance(e, Const)}
    assert types_of_constants[float(np.float32(0.1))] == FLOAT32
    assert types_of_constants[0.1] == FLOAT64


def recursive(n):
    return recursive(n - 1)


def ping(n):
    return pong(n)


def pong(n):
    return ping(n)


def sometimes(value):
    if value > 0:
        return value


def two_types(value):
    if value > 0:
        return value
    return np.int64(1)


def starred(*values):
    return values


def bad_inside(value):
    return {value}


@kernel
def other_kernel(item, x):
    x[0] = 1


no_source = eval("lambda v: v")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("recursive(3)", "'recursive' calls itself", "called at"),
        ("ping(3)", "'ping' calls itself", "called at"),
        ("sometimes(x[0])", "returns a value on some paths only", "called at"),
        ("two_types(x[0])", "has no single type here: it is float32.*or int64", "called at"),
        ("starred(1)", r"takes \* or \*\* arguments", "named parameters"),
        ("clamp()", "needs the argument 'value'", "value, low, high"),
        ("clamp(1, 2, 3)", "takes 2 arguments, not 3", "value, low"),
        ("clamp(1, value=2)", "cannot take the keyword argument 'value'", "once"),
        ("clamp(1, width=2)", "cannot take the keyword argument 'width'", "value, low, high"),
        ("bad_inside(1)", "sets are not supported", "called at <test"),
        ("other_kernel(item, x)", "is a kernel; only plain functions", "without the decorator"),
        ("no_source(1)", "the source of '<lambda>' cannot be had", "called at <test"),
        ("HUGE[0]", "HUGE is an array from outside the kernel", "argument"),
        ("NAME + 1", "not the string", "Compare it"),
        ("DICT[0]", "DICT is a dict", "outside of the kernel"),
        ("missing + 1", "the name 'missing' is not defined", "import"),
        ("math.missing", "math has no 'missing'", "Did you mean isinf"),
        ("math.sqr(x)", "math has no 'sqr'", "Did you mean sqrt"),
        ("fq.uint32(x)", "fq has no 'uint32'", "Did you mean numpy.uint32?"),
        ("fq.sqrt(x)", "fq has no 'sqrt'", "Did you mean numpy.sqrt?"),
        ("fq.threadIdx.x", "fq has no 'threadIdx'", "an NdItem: item.get_local_id"),
        ("fq.get_global_id(0)", "fq has no 'get_global_id'", "Ask the work-item"),
        ("fq.syncthreads()", "fq has no 'syncthreads'", "fq.group_barrier"),
        ("fq.atomic.add(x, 1)", "fq has no 'atomic'", "fq.AtomicRef"),
        ("np.erf(x)", "np has no 'erf'", "Did you mean math.erf?"),
        ("TABLE[i]", "a tuple's index must be an integer constant", "literal"),
        ("TABLE[3]", "the tuple has 3 elements", "Index within"),
        ("half(math)", "a module cannot be an argument", "own name"),
        ("half", "a number is needed here, not a Python function", "numbers"),
        ("TABLE", "not a tuple of 3", "unpack"),
        ("item.get_id", "not the method get_id", "parentheses"),
        ("item", "not the Item", "get_id"),
    ],
)
def test_what_cannot_be_called_or_read(text, message, hint):
    function = define(
        f"def k(item, x, out):\n    i = item.get_id(0)\n    out[i] = {text}\n",
        **globals(), fq=fusionq, NAME="a", DICT={},
    )  # fmt: skip
    with pytest.raises(KernelLanguageError, match=message) as error:
        specialised(function, 1, X, np.zeros(1))
    assert hint.lower() in str(error.value).splitlines()[-1].lower()


def test_an_error_in_a_called_function_names_both_places():
    function = define(
        "def bad(v):\n    return v is v\n\ndef k(item, x):\n    x[0] = 1 + bad(x[0])\n"
    )
    with pytest.raises(KernelLanguageError) as error:
        specialised(function, 1, X)
    first, source, caret, hint, call = str(error.value).splitlines()
    file = function.__code__.co_filename
    assert first.startswith(f"{file}:2: in 'bad': v is v: 'is' compares")
    assert (source, caret) == ("    return v is v", "           ^")
    assert hint == "  Compare numbers with == or !=."
    assert call == f"  called at {file}:5, in 'k'"


def test_statements_of_a_called_function_have_its_lines():
    def k(item, x, out):
        leave(x, item.get_id(0))

    ir = specialised(k, 1, X, np.zeros(1))
    store = next(s for s in statements(ir.body) if isinstance(s, Store))
    assert store.span.text == "array[i] = i"
    assert store.span.line == leave.__code__.co_firstlineno + 3
