"""Functions of NumPy and ``math`` that are written in the kernel language: the reference backend
against plain Python, in the types that NumPy gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised


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


@pytest.mark.parametrize(
    ("call", "array", "said"),
    [
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
