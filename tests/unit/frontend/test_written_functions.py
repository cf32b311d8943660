"""Functions of NumPy and ``math`` that are written in the kernel language: the reference backend
against plain Python, in the types that NumPy gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, run_ir, specialised


def floats(item, x, y, out):
    i = item.get_id(0)
    out[0, i] = np.heaviside(x[i], y[i])
    out[1, i] = np.logaddexp(x[i], y[i])
    out[2, i] = np.logaddexp2(x[i], y[i])
    out[3, i] = np.float_power(abs(x[i]), y[i])
    out[4, i] = np.spacing(x[i])
    part, whole = np.modf(x[i])
    out[5, i], out[6, i] = part, whole
    out[7, i] = np.fmod(x[i], y[i])
    out[8, i] = np.heaviside(-1.5, 3.0) + np.spacing(1.0) + np.float_power(2.0, 3)


def integers(item, x, y, out):
    i = item.get_id(0)
    out[0, i] = np.gcd(x[i], y[i])
    out[1, i] = np.lcm(x[i], y[i])
    out[2, i] = np.fmod(x[i], y[i])
    out[3, i], out[4, i] = np.divmod(x[i], y[i])
    out[5, i] = math.gcd(int(x[i]), int(y[i]), 6)
    out[6, i] = np.gcd(12, 18) + math.lcm(4, 6)


def test_functions_of_floating_numbers():
    dtype = np.float64
    x = np.array([0.0, 0.5, -2.25, 3.0, -7.5], dtype)
    y = np.array([0.5, 2.0, 1.0, -3.0, 2.0], dtype)
    *_, out = run_both(floats, 5, x, y, np.zeros((9, 5), dtype))
    assert out[0].tolist() == np.heaviside(x, y).tolist()
    assert out[4].tolist() == np.spacing(x).tolist()
    assert [out[5].tolist(), out[6].tolist()] == [part.tolist() for part in np.modf(x)]
    assert out[8].tolist() == [dtype(0.0 + np.spacing(1.0) + 8.0)] * 5


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint32])
def test_functions_of_integers(dtype):
    x, y = np.array([12, 35, 7, 100], dtype), np.array([18, 10, 7, 6], dtype)
    *_, out = run_both(integers, 4, x, y, np.zeros((7, 4), np.int64))
    assert out[0].tolist() == [6, 5, 7, 2] and out[1].tolist() == [36, 70, 7, 300]
    assert out[2].tolist() == [12, 5, 0, 4]
    assert (out[3] * y + out[4]).tolist() == x.tolist()
    assert out[5].tolist() == [6, 1, 1, 2] and set(out[6].tolist()) == {18}


def of_one(item, x, out):
    i = item.get_id(0)
    out[0, i] = np.round(x[i], 2) + np.round(x[i])
    out[1, i] = np.around(x[i], -1)
    out[2, i] = np.fix(x[i])
    out[3, i] = np.nan_to_num(x[i] / x[0])
    out[4, i] = math.prod((x[i], 2, x[1])) * math.prod(x[k] for k in range(1, 3))
    out[5, i] = math.prod(x[1:]) + math.prod(x[1:] * 2)
    out[6, i] = np.round(2.345, 2) + np.nan_to_num(1.5) + np.sinc(0.0) + math.log(8.0, 2)


def of_one_integer(item, x, out):
    i = item.get_id(0)
    out[0, i] = np.round(x[i], 2) + np.fix(x[i]) + np.nan_to_num(x[i])
    out[1, i] = math.prod((x[i], 2, 3))
    out[2, i] = math.prod(x) + math.prod(k for k in range(1, 4))
    out[3, i] = np.around(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_one_number(dtype):
    x = np.array([0, 0.526, -2.675, 13.5, -27.25], dtype)
    with np.errstate(all="ignore"):
        *_, out = run_both(of_one, 5, x, np.zeros((7, 5), dtype))
        assert out[3].tolist() == np.nan_to_num(x / x[0]).tolist()
    assert out[0].tolist() == (np.round(x, 2) + np.round(x)).tolist()
    assert out[1].tolist() == np.round(x, -1).tolist() and out[2].tolist() == np.fix(x).tolist()


def test_functions_of_one_integer():
    run_both(of_one_integer, 4, np.array([3, -5, 7, 11], np.int32), np.zeros((4, 4), np.int64))


def logarithms(item, x, out):
    i = item.get_id(0)
    out[0, i] = math.log(x[i], 2)
    out[1, i] = math.log(x[i], x[0]) + math.log(x[i])
    out[2, i] = np.sinc(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_to_a_few_units_in_the_last_place(dtype):
    x = np.array([1.5, 3.25, 8.0, 0.125], dtype)
    out = np.zeros((3, 4), dtype)
    run_ir(logarithms, 4, x, out)
    wide = x.astype(np.float64)
    expected = np.log2(wide), np.log(wide) / np.log(1.5) + np.log(wide), np.sinc(wide)
    limit = 16 * np.finfo(dtype).eps
    np.testing.assert_allclose(out, np.array(expected), rtol=limit, atol=limit)


@pytest.mark.parametrize(
    ("call", "array", "said"),
    [
        ("np.round(x[i], -1)", np.zeros(2, np.int32), "an integer rounded to tens"),
        ("np.round(x[i], i)", np.zeros(2), "the number of decimals"),
        ("np.gcd(x[i], x[i])", np.zeros(2), "np.gcd takes no float64"),
        ("np.gcd(x[i])", np.zeros(2, np.int32), "np.gcd takes 2 argument"),
        ("np.logaddexp(x[i], 1.0, 2.0)", np.zeros(2), "np.logaddexp takes 2 argument"),
    ],
)
def test_what_they_do_not_take(call, array, said):
    function = define(f"def kernel(item, x):\n    i = item.get_id(0)\n    x[i] = {call}\n")
    with pytest.raises(KernelLanguageError) as error:
        specialised(function, 2, array)
    assert said in str(error.value)
