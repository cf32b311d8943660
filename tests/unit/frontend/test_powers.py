"""Powers by constant whole numbers are products: the same bits on each device."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.printer import print_kernel
from tests.unit.frontend.running import define, specialised

EXPONENTS = range(3, 9)


def kernel_of(expression):
    return define(f"def k(item, a, n, out):\n    i = item.get_id(0)\n    out[i] = {expression}\n")


def printed(expression, dtype="float32"):
    arrays = np.zeros(4, dtype), np.int64(3), np.zeros(4, dtype)
    return print_kernel(specialised(kernel_of(expression), 4, *arrays))


def values(dtype):
    info = np.finfo(dtype)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, info.tiny, -info.smallest_subnormal, info.max]
    near = np.random.default_rng(1).standard_normal(400)
    scales = 2.0 ** np.random.default_rng(2).integers(info.minexp // 3, info.maxexp // 3, 400)
    return np.concatenate([odd, near, near * scales]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_same_on_each_device_and_right_to_some_units(dtype, exponent):
    kernel, a = fq.kernel(kernel_of(f"a[i] ** {exponent}")), values(dtype)
    found = []
    for queue in (fq.FusionQueue("reference"), fq.FusionQueue()):
        with queue:
            out = fq.Buffer(np.zeros_like(a))
            queue.submit(kernel, len(a), fq.Buffer(a), np.int64(0), out)
            found.append(out.numpy().copy())
    with np.errstate(all="ignore"):
        exact = a.astype(np.longdouble) ** exponent
        wanted = exact.astype(dtype)
        units = np.abs(found[0] - exact) / np.spacing(np.abs(wanted)).astype(np.longdouble)
    np.testing.assert_array_equal(*found)
    finite = np.isfinite(wanted) & np.isfinite(found[0])
    assert units[finite].max() < 6
    limits = np.abs(exact[~finite & ~np.isnan(exact)])
    assert (limits > np.finfo(dtype).max * (1 - 8 * np.finfo(dtype).eps)).all()
    np.testing.assert_array_equal(np.isnan(found[0]), np.isnan(wanted))
    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(wanted))


@pytest.mark.parametrize("expression", ["a[i] ** 3", "np.power(a[i], 8)", "pow(a[i], 5.0)"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_those_are_products(expression, dtype):
    text = printed(expression, dtype)
    assert "**" not in text and " * " in text
    assert text.count("a[i]") == 1  # what is raised is computed once


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("a[i] ** 2", "float32"),
        ("a[i] ** 9", "float32"),
        ("a[i] ** -3", "float64"),
        ("a[i] ** 2.5", "float64"),
        ("a[i] ** n", "float64"),
        ("a[i] ** 3", "float16"),
        ("a[i] ** 3", "int32"),
    ],
)
def test_others_are_powers(expression, dtype):
    assert "**" in printed(expression, dtype)
