"""Whatever is taken from a kernel of numba-dpex gives what numba-dpex itself gives.

Each expression is either refused or computed by both, over values that include the types' limits.
"""

from __future__ import annotations

import linecache
import math
from itertools import count

import numpy as np
import pytest

import fusionq as fq
from fusionq.dpex.frontend.kernel import dpex_kernel
from tests.unit.frontend.running import signature

numba_dpex = pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)
dpnp = pytest.importorskip("dpnp", exc_type=ModuleNotFoundError)

OPERATORS = (
    "x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x & y", "x | y", "x ^ y", "-x", "~x",
    "abs(x)", "x < y", "x <= y", "x == y", "x != y", "x > 1", "0 <= x < y", "not x", "x << 3",
    "x >> 2", "min(x, y)", "max(x, y)", "min(x, 3)", "x if x > y else y", "x if x > 1 else 0",
    "x + 1", "x * 2", "x * 0.5", "x // 3", "x % 5", "x - 300", "x / 2", "x ** 2", "2 ** x",
    "x * np.float32(0.5)", "x + np.int32(7)", "x * np.uint8(3)", "(x + y) // 2", "(x * y) > 0",
    "np.float64(x * y)", "float(x)", "(x > 1) * y",
    "x + (y > 1)", "(x << 1) >> 1", "-x > 0", "abs(x) < 0",
)  # fmt: skip
INTEGERS = (
    "int(x) + 1", "np.uint8(x) + np.uint8(y)", "np.int8(x) // 2", "x // -1", "~x >> 1",
    "np.int64(x - y)", "np.int32(x + y) > 0",
)  # fmt: skip
FUNCTIONS = (
    "math.sqrt(x)", "math.floor(x)", "math.copysign(x, y)", "math.fmod(x, y)", "math.isnan(x)",
    "dpnp.floor(x)", "dpnp.trunc(x)", "dpnp.sign(x)", "dpnp.mod(x, y)", "dpnp.floor_divide(x, y)",
    "dpnp.abs(x)", "dpnp.maximum(x, y)", "dpnp.fmin(x, y)", "dpnp.square(x)", "dpnp.isfinite(x)",
)  # fmt: skip
_numbers = count()


def kernel_of(lines):
    """A numba-dpex kernel that stores each expression of ``x`` and ``y`` into a row of ``out``."""
    stores = "".join(f"    out[{row}, i] = {line}\n" for row, line in enumerate(lines))
    text = f"def k(item, a, b, out):\n    i = item.get_id(0)\n    x = a[i]\n    y = b[i]\n{stores}"
    file = f"<difference {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"np": np, "math": math, "dpnp": dpnp}
    exec(compile(text, file, "exec"), names)
    return numba_dpex.kernel(error_model="numpy")(names["k"])


def values(dtype, seed):
    """Numbers all over the type's range; 64-bit ones whose sums and products fit, since numba
    leaves their overflow undefined."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        edges = [0, -0.0, 1, -1, 0.5, -2.5, 3.5, 100.25, np.inf, -np.inf, np.nan, 1e30, 16777217]
        return rng.choice(np.array(edges, dtype), 64)
    limits = np.iinfo(dtype)
    low, high = (limits.min, limits.max) if limits.bits < 64 else (max(limits.min, -(2**30)), 2**30)
    found = rng.integers(low, high, 64, dtype, endpoint=True)
    found[:6] = (0, 1, 2, 3, low, high)
    return rng.permutation(found)


def identical(a, b):
    return (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))


PAIRS = [(t, t) for t in ("int8", "int32", "int64", "uint8", "uint64", "float32", "float64")]


@pytest.mark.parametrize(("a", "b"), [*PAIRS, ("float32", "int32"), ("uint32", "int16")])
def test_what_is_taken_agrees(a, b):
    x, y = values(a, 1), values(b, 2)
    floating = x.dtype.kind == "f"
    lines = [*OPERATORS, *(FUNCTIONS if floating else INTEGERS)]
    taken = [line for line in lines if is_taken(line, x, y)]
    assert 10 <= len(taken) < len(lines)
    here, there = np.zeros((len(taken), 64)), dpnp.zeros((len(taken), 64), dtype=np.float64)
    with fq.FusionQueue("opencl:cpu") as queue:
        queue.submit(kernel_of(taken), 64, x, y, here).wait()
    numba_dpex.call_kernel(
        kernel_of(taken), numba_dpex.Range(64), dpnp.asarray(x), dpnp.asarray(y), there
    )
    for line, ours, theirs in zip(taken, here, dpnp.asnumpy(there), strict=True):
        wrong = np.flatnonzero(~identical(ours, theirs))
        assert not wrong.size, (line, [(x[k], y[k], ours[k], theirs[k]) for k in wrong[:3]])


def is_taken(line, x, y):
    try:
        dpex_kernel(kernel_of([line])).specialise(signature(64, [x, y, np.zeros((1, 64))]))
    except fq.KernelLanguageError:
        return False
    return True
