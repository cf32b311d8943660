"""The kernels of the golden sources, run, against the reference interpreter bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from tests.unit.codegen import built_kernels
from tests.unit.sycl.running import bind, different, run

RANDOM = np.random.default_rng(17)


def floats(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def strided(rows, columns):
    """Every second row and column of a larger image, upside down."""
    return floats(2 * rows, 2 * columns)[::-2, ::2]


CASES = {
    "fused_example": lambda: (
        1000, [*(floats(1000) for _ in range(4)), np.zeros(1000, np.float32), 990]),
    "strided_2d": lambda: ((37, 21), [strided(39, 23), np.zeros((37, 21), np.float32)]),
    "loops": lambda: (
        40, [RANDOM.integers(-3, 9, 50, dtype=np.int32), np.zeros(40, np.int32), 50, 3]),
    "branches": lambda: (
        300,
        [
            np.where(RANDOM.random(300) < 0.2, np.nan, floats(300, dtype=np.float64) * 2),
            RANDOM.random(300) < 0.5, np.zeros(300), True, 297,
        ]),
    "private_array": lambda: (
        30, [RANDOM.integers(0, 256, 120, dtype=np.uint8), np.zeros(120, np.uint8), 30]),
    "awkward_names": lambda: (
        9, [floats(3, 3, 2, dtype=np.float16), 3, np.float16(0.5)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_same_as_the_reference(device, name):
    items, arguments = CASES[name]()
    kernel = getattr(built_kernels, name)()
    copies = [a.copy() if isinstance(a, np.ndarray) and a.flags.c_contiguous else a
              for a in arguments]  # fmt: skip
    if name in ("loops", "awkward_names"):  # these have no guard: no item may be too many
        program = device.build(kernel, "strict")
        bindings = [bind(a) for a in arguments]
        device.prepare(program, bindings, LaunchShape((items,), (items,))).launch().wait()
    else:
        run(device, kernel, *arguments, items=items)
    oracle = ReferenceBackend()
    shape = items if isinstance(items, tuple) else (items,)
    program = oracle.build(kernel, "strict")
    oracle.prepare(program, [bind(a) for a in copies], LaunchShape(shape, shape)).launch().wait()
    for got, wanted in zip(arguments, copies, strict=True):
        if isinstance(got, np.ndarray):
            assert not len(different(np.ascontiguousarray(got), np.ascontiguousarray(wanted)))
