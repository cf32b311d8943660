"""Functions whose bodies are inlined, or that give two numbers: NumPy's and ``math``'s results, on
each device; one kernel for each type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq

Array = npt.NDArray[Any]


@fq.kernel
def of_floats(item: fq.Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    x, y = a[i], b[i]
    out[0, i] = np.heaviside(x, y)
    out[1, i] = np.spacing(x)
    out[2, i] = math.remainder(x, y)
    out[3, i], out[4, i] = np.modf(x)
    out[5, i], out[6, i] = divmod(x, y)
    out[7, i] = np.conjugate(x)
    out[8, i] = np.fmod(x, y)
    out[9, i] = np.logaddexp(x, y)
    out[10, i] = np.logaddexp2(x, y)


EXACT: list[Callable[[Any, Any], Any]] = [
    np.heaviside, lambda x, y: np.spacing(x), lambda x, y: _remainder(x, y),
    lambda x, y: np.modf(x)[0], lambda x, y: np.modf(x)[1], lambda x, y: np.divmod(x, y)[0],
    lambda x, y: np.divmod(x, y)[1], lambda x, y: x, np.fmod,
]  # fmt: skip


@np.vectorize
def _remainder(x: Any, y: Any) -> float:
    return math.nan if math.isinf(x) or y == 0 else math.remainder(x, y)


@fq.kernel
def of_integers(item: fq.Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    x, y = a[i], b[i]
    out[0, i] = np.gcd(x, y)
    out[1, i] = np.lcm(x, y)
    out[2, i] = np.fmod(x, y)
    out[3, i], out[4, i] = np.divmod(x, y)
    out[5, i] = math.gcd(x, y, 6)
    out[6, i] = math.lcm(4, x)
    out[7, i] = np.conj(y)


OF_INTEGERS: list[Callable[[Any, Any], Any]] = [
    np.gcd, np.lcm, np.fmod, lambda x, y: np.divmod(x, y)[0], lambda x, y: np.divmod(x, y)[1],
    lambda x, y: np.gcd(np.gcd(x, y), x.dtype.type(6)), lambda x, y: np.lcm(x.dtype.type(4), x),
    lambda x, y: y,
]  # fmt: skip


@pytest.fixture(params=["reference", None])
def queue(request: pytest.FixtureRequest) -> Any:
    if request.param is None:
        pytest.importorskip("dpctl")
    with fq.FusionQueue(request.param) as made:
        yield made


def pairs(values: list[Any], dtype: str) -> tuple[Array, Array]:
    a, b = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return a.reshape(-1).copy(), b.reshape(-1).copy()


def same_bits(got: Array, wanted: Array) -> bool:
    """Without which NaN it is."""
    number = ~np.isnan(wanted)
    signs = np.signbit(got[number]) == np.signbit(wanted[number])
    return np.array_equal(got, wanted, equal_nan=True) and bool(signs.all())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_functions_of_floating_numbers(queue: fq.FusionQueue, dtype: str) -> None:
    if dtype == "float16" and not queue.device.has_fp16:
        pytest.skip("the device has no float16")
    top, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    values = [0.0, -0.0, 1, -1, 0.5, 2.5, -7.25, 3, 100, top, -top, least, -least, 1.5 * 2.0**-14]
    values += [np.inf, -np.inf, np.nan, 5, 4, -0.75]
    a, b = pairs(values, dtype)
    out = fq.Buffer((11, len(a)), dtype)
    queue.submit(of_floats, len(a), a, b, out)
    with np.errstate(all="ignore"):
        for function, got in zip(EXACT, out.numpy(), strict=False):
            wanted = function(a, b).astype(dtype)
            at = np.flatnonzero([not same_bits(got[[k]], wanted[[k]]) for k in range(len(a))])
            assert not len(at), (EXACT.index(function), a[at], b[at], got[at], wanted[at])
        for function, got in zip((np.logaddexp, np.logaddexp2), out.numpy()[9:], strict=True):
            exact = function(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
            assert np.allclose(got, exact, rtol=8 * np.finfo(dtype).eps, atol=0, equal_nan=True)


@fq.kernel
def of_one(item: fq.Item, a: Any, out: Any) -> None:
    i = item.get_id(0)
    out[0, i] = np.round(a[i], 2)
    out[1, i] = np.round(a[i], -1)
    out[2, i] = np.around(a[i])
    out[3, i] = np.fix(a[i])
    out[4, i] = np.nan_to_num(a[i])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_functions_of_one_number(queue: fq.FusionQueue, dtype: str) -> None:
    if dtype == "float16" and not queue.device.has_fp16:
        pytest.skip("the device has no float16")
    top, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    values = [0.0, -0.0, 1, -1, 0.5, 2.5, -7.25, 1.005, 125, top, -top, least, -least, -0.75]
    a = np.array([*values, np.inf, -np.inf, np.nan, 15, 1234.5678], dtype)
    out = fq.Buffer((5, len(a)), dtype)
    queue.submit(of_one, len(a), a, out)
    with np.errstate(all="ignore"):
        wanted = [np.round(a, 2), np.round(a, -1), np.around(a), np.fix(a), np.nan_to_num(a)]
    for row, expected in zip(out.numpy(), wanted, strict=True):
        assert same_bits(row, expected)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "int8"])
def test_functions_of_integers(queue: fq.FusionQueue, dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 6, 12, 35, 91, 105, limits.max, limits.min, limits.max - 1]
    values += [-1, -4, -6, -105] if limits.min else []
    a, b = pairs(values, dtype)
    out = fq.Buffer((len(OF_INTEGERS), len(a)), dtype)
    queue.submit(of_integers, len(a), a, b, out)
    with np.errstate(all="ignore"):
        for number, (function, got) in enumerate(zip(OF_INTEGERS, out.numpy(), strict=True)):
            wanted = function(a, b)
            at = np.flatnonzero(got != wanted)
            assert not len(at), (number, a[at], b[at], got[at], wanted[at])
