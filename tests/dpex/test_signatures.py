"""Signatures of ``numba_dpex.device_func`` and ``numba_dpex.kernel`` convert as numba does."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

numba_dpex = pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)
numba = pytest.importorskip("numba", exc_type=ModuleNotFoundError)
index_types = pytest.importorskip(
    "numba_dpex.core.types.kernel_api.index_space_ids", exc_type=ModuleNotFoundError
)
# Skipped as a whole where numba-dpex is missing, so after it was found.
from tests.dpex.test_kernels import N, check_same, floats, integers  # noqa: E402

int32, int64, float32, float64 = numba.int32, numba.int64, numba.float32, numba.float64
ITEM = index_types.ItemType(ndim=1)
FLOATS = numba_dpex.DpnpNdArray(ndim=1, dtype=float32, layout="C")
LONGS = numba_dpex.DpnpNdArray(ndim=1, dtype=int64, layout="C")


@pytest.fixture(scope="module")
def queue():
    with fq.FusionQueue("opencl:cpu") as made:
        yield made


def increment(x):
    return x + 1


def itself(x):
    return x


def third(x):
    return x / 3


one_type = numba_dpex.device_func(int32(int32))(increment)
two_types = numba_dpex.device_func([int32(int32), float64(float64)])(increment)
any_type = numba_dpex.device_func(itself)
narrow_result = numba_dpex.device_func(float32(float64), error_model="numpy")(third)


@numba_dpex.device_func((FLOATS, int32))
def put(a, i):
    a[i] = i + 0.5


@numba_dpex.kernel(error_model="numpy")
def several(item, a, out):
    i = item.get_id(0)
    x = a[i]
    out[0, i] = one_type(x)
    out[1, i] = two_types(x)
    out[2, i] = any_type(x)
    out[3, i] = narrow_result(x)
    out[4, i] = one_type(i + 7)


@numba_dpex.kernel
def stores(item, a):
    put(a, item.get_id(0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32", "int64"])
def test_arguments_and_results_are_converted(queue, dtype):
    a = floats(dtype) * 3 if np.dtype(dtype).kind == "f" else integers(dtype)
    check_same(queue, several, (a, np.zeros((5, N))))


def test_beside_an_array(queue):
    check_same(queue, stores, (np.zeros(N, np.float32),))


def test_an_array_of_another_type_is_refused(queue):
    with pytest.raises(fq.KernelLanguageError, match=r"put.*\(float32\[:\], int32\) only"):
        queue.submit(stores, N, np.zeros(N, np.float64))


def fill(item, a, value):
    a[item.get_id(0)] = value


typed = numba_dpex.kernel([(ITEM, FLOATS, float32), (ITEM, LONGS, int64)])(fill)


def test_a_kernel_takes_the_types_of_its_signatures(queue):
    check_same(queue, typed, (np.zeros(N, np.float32),), (np.float32(1.5),))
    check_same(queue, typed, (np.zeros(N, np.int64),), (3,))


@pytest.mark.parametrize(("dtype", "value"), [("float32", 1.5), ("int32", 1), ("float64", 1.5)])
def test_a_kernel_refuses_other_types(queue, dtype, value):
    with pytest.raises(fq.ArgumentError, match=r"compiled by numba-dpex for \(Item<1>, float32"):
        queue.submit(typed, N, np.zeros(N, dtype), value)
