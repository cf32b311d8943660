"""Kernels as plain Python: patched copies of functions, kernel arrays, scalar meaning."""

import math
from math import floor, sqrt

import numpy as np
import pytest

from fusionq.language import Item
from fusionq.language.casts import cast
from fusionq.language.execute import KernelArray, argument, patched, run_function
from fusionq.language.scalar_functions import MATH_FUNCTIONS, python_max, python_min

F32 = np.float32
EIGHT, SCALES = np.float32(0.1), (2, (np.float32(3), math))


def root(value):
    return sqrt(value)


def types_of(value):
    return (
        math.exp(value), root(value), floor(value), int(value), min(value, 0.5), round(value),
        np.where(value > 0, value, 0), np.int8(value), SCALES[1][1].exp(value), math.pow(value, 2),
    )  # fmt: skip


def test_a_patched_function_computes_in_numpys_types():
    found = [type(v) for v in patched(types_of)(F32(2.5))]
    assert found == [F32, F32, int, int, F32, int, F32, np.int8, F32, F32]
    assert type(types_of(F32(2.5))[0]) is float  # the function itself is as before


def test_python_numbers_stay_python_numbers():
    assert type(MATH_FUNCTIONS["sqrt"](2)) is float
    assert type(MATH_FUNCTIONS["pow"](2, 3)) is float
    assert type(MATH_FUNCTIONS["isnan"](F32(1))) is bool
    assert type(python_max(1, 2)) is int and type(python_max(1, 0.5)) is float
    assert type(python_min(np.int8(3), 200)) is np.int8


def test_there_are_no_domain_errors():
    run = patched(types_of)
    with np.errstate(all="ignore"):
        exp, root_of, down, integer, *_, narrow, _, _ = run(F32(np.nan))
    assert math.isnan(exp) and math.isnan(root_of) and down == integer == narrow == 0
    assert math.isnan(MATH_FUNCTIONS["sqrt"](-1.0))
    assert MATH_FUNCTIONS["exp"](1000) == math.inf
    assert MATH_FUNCTIONS["floor"](math.inf) == 2**63 - 1
    assert math.isnan(MATH_FUNCTIONS["gamma"](-1.0))
    assert MATH_FUNCTIONS["gamma"](-0.0) == -math.inf
    assert MATH_FUNCTIONS["gamma"](500.0) == math.inf
    assert MATH_FUNCTIONS["lgamma"](-2.0) == math.inf


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (300, "int8", 44), (-1, "uint8", 255), (np.float32(300), "int8", 127),
        (-np.inf, "int32", -(2**31)), (np.nan, "int64", 0), (1e30, "uint64", 2**64 - 1),
        (-0.9, "int8", 0), (2.5, "bool", True), (0.1, "float32", np.float32(0.1)),
    ],
)  # fmt: skip
def test_casts(value, dtype, result):
    converted = cast(value, np.dtype(dtype))
    assert converted == result and converted.dtype == dtype


def test_closures_and_recursion_are_followed():
    def factorial(n, accumulated):
        if n == 0:
            return accumulated
        return factorial(n - 1, accumulated * math.exp(n))

    assert type(patched(factorial)(2, F32(1))) is F32


def test_kernel_arrays():
    data = np.arange(6, dtype="int32").reshape(2, 3)
    array = KernelArray(data)
    assert (array.shape, array.ndim, array.size, len(array)) == ((2, 3), 2, 6, 2)
    assert type(array[1, 2]) is np.int32 and array[1][2] == 5
    array[0, np.int64(1)] = 7.9
    array[0][2] = math.nan
    array[1, 0] = 2**31
    assert data.tolist() == [[0, 7, 0], [-(2**31), 4, 5]]
    assert array.dtype == np.int32 and array.dtype.type(3.5) == 3
    assert array[-1, -3] == array[1, 0]
    for index in ((-3, 0), (2, 0), (0, 3), (0, 0, 0)):
        with pytest.raises(IndexError):
            array[index]
    array[0] = 1
    array[:, 1] += array[:, 2] * 2 - array[0, 2]
    assert data.tolist() == [[1, 2, 1], [-(2**31), 13, 5]]
    with pytest.raises(ValueError, match="broadcast"):
        array[0] = array[1, 1:]


def test_rows_without_elements_have_the_types_of_others():
    integers, floats = (KernelArray(np.empty((2, 0), code)) for code in ("int32", "float32"))
    integers[0] += np.int32(2) + integers[1] * 3
    integers[0] <<= 1
    floats[0] -= np.float32(1) / floats[1]
    assert (integers[0] < 1).dtype == np.bool_ and (floats + integers).dtype == np.float64
    assert np.float32(integers[0]).dtype == np.float32
    with pytest.raises(TypeError, match="float64 in place in int32"):
        integers[0] /= 2


def test_run_function():
    def k(item, a, scale, flag):
        i = item.get_id(0)
        if flag:
            a[i] = math.exp(a[i]) * scale * EIGHT

    a = np.ones(3, F32)
    run_function(k, Item((1,), (3,)), (a, 0.1, True))
    assert a.tolist() == [1, float(np.exp(F32(1)) * 0.1 * EIGHT), 1]
    assert type(argument(True)) is np.bool_ and argument(3) == 3
