"""Running hand-built kernels on NumPy arrays."""

from __future__ import annotations

import numpy as np

from fusionq.backends.base import ArrayBinding
from fusionq.codegen.launch_shape import launch_shape


def bind(argument):
    """A NumPy array's memory, or a scalar."""
    if not isinstance(argument, np.ndarray):
        return argument
    address = argument.__array_interface__["data"][0]
    strides = tuple(stride // argument.itemsize for stride in argument.strides)
    return ArrayBinding(address, argument.shape, strides)


def prepare(backend, kernel, arguments, items, fp="strict"):
    program = backend.build(kernel, fp)
    items = items if isinstance(items, tuple) else (items,)
    shape = launch_shape(items, backend.target)
    return backend.prepare(program, [bind(argument) for argument in arguments], shape)


def run(backend, kernel, *arguments, items, fp="strict"):
    """Launch ``kernel`` over ``items`` and wait."""
    prepare(backend, kernel, arguments, items, fp).launch().wait()


def different(got, wanted, zeros_by_sign=True):
    """Where two arrays differ in bits; NaNs are equal to each other."""
    bits = np.dtype(f"u{got.itemsize}")
    unequal = got.view(bits) != wanted.view(bits)
    if got.dtype.kind == "f":
        unequal &= ~(np.isnan(got) & np.isnan(wanted))
        if not zeros_by_sign:
            unequal &= ~((got == 0) & (wanted == 0))
    return np.flatnonzero(unequal)
