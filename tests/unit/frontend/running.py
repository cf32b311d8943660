"""Runs a kernel twice: its IR on the reference backend, and its function as plain Python."""

from __future__ import annotations

import linecache
from itertools import count, product
from math import prod

import numpy as np

from fusionq.backends.base import ArrayBinding
from fusionq.backends.reference import ReferenceBackend, run_function
from fusionq.base.target import LaunchShape
from fusionq.frontend import KernelFunction, kernel
from fusionq.frontend.signature import ArrayType, LocalType, Signature
from fusionq.ir.types import element_type, scalar_type, type_of_scalar
from fusionq.ir.verifier import verify
from fusionq.language import Item, LocalAccessor, NdItem, NdRange
from fusionq.language.ranges import as_range

_numbers = count()


def define(text, **names):
    """The function that the text defines, with its source where ``inspect`` finds it."""
    file = f"<test {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = {"np": np, **names}
    exec(compile(text, file, "exec"), namespace)
    return next(v for k, v in reversed(namespace.items()) if k not in names and k != "np")


def type_of(value):
    """The type of an argument in a signature."""
    if isinstance(value, np.ndarray):
        return ArrayType(element_type(value.dtype), value.ndim)
    if isinstance(value, LocalAccessor):
        return LocalType(scalar_type(value.dtype), value.shape)
    return type_of_scalar(value)


def signature(range, arguments):
    """The signature of a submission of arrays and scalars."""
    types = tuple(map(type_of, arguments))
    ndim = range.ndim if isinstance(range, NdRange) else len(as_range(range))
    return Signature("nd_item" if isinstance(range, NdRange) else "item", ndim, types)


def specialised(function, range, *arguments):
    """The verified IR of a kernel, or of a function, for these arguments."""
    made = function if isinstance(function, KernelFunction) else kernel(function)
    ir = made.specialise(signature(range, arguments))
    verify(ir)
    return ir


def binding(array):
    """An array as backends get it: a complex one with its parts in one more dimension."""
    shape, itemsize = array.shape, array.real.itemsize
    strides = tuple(s // itemsize for s in array.strides)
    if array.dtype.kind == "c":
        shape, strides = (*shape, 2), (*strides, 1)
    return ArrayBinding(array.ctypes.data, shape, strides)


def run_ir(function, range, *arguments):
    """Run the IR on the reference backend; arrays are changed in place."""
    ir = specialised(function, range, *arguments)
    backend = ReferenceBackend(order="natural")
    bindings = [
        binding(a)
        if isinstance(a, np.ndarray)
        else a
        for a in arguments
        if not isinstance(a, LocalAccessor)
    ]
    if isinstance(range, NdRange):
        shape = LaunchShape(tuple(range.global_range), tuple(range.local_range))
    else:
        extents = tuple(as_range(range))
        shape = LaunchShape(extents, (1,) * len(extents))
    backend.prepare(backend.build(ir, "strict"), bindings, shape).launch()


def run_python(function, range, *arguments):
    """Run the Python function item by item; arrays are changed in place."""
    plain = function.function if isinstance(function, KernelFunction) else function
    space = range if isinstance(range, NdRange) else as_range(range)
    run_function(plain, space, arguments, order="natural")


def items(range):
    """All work-items, work-group by work-group."""
    if not isinstance(range, NdRange):
        extents = tuple(as_range(range))
        for index in np.ndindex(extents):
            yield Item(index, extents)
        return
    whole, part = tuple(range.global_range), tuple(range.local_range)
    groups = [n // m for n, m in zip(whole, part, strict=True)]
    for group, local in product(np.ndindex(*groups), np.ndindex(*part)):
        index = [g * m + i for g, m, i in zip(group, part, local, strict=True)]
        yield NdItem(index, local, group, whole, part)


def run_both(function, range, *arguments):
    """Run both ways and compare every array bit for bit; the arrays as the IR left them."""
    left, right = ([a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in "ab")
    run_ir(function, range, *left)
    run_python(function, range, *right)
    arrays = []
    for position, (a, b) in enumerate(zip(left, right, strict=True)):
        if isinstance(a, np.ndarray):
            same = (a == b) | ((a != a) & (b != b))
            assert same.all(), f"argument {position}: IR {a!r}, Python {b!r}"
            arrays.append(a)
    assert prod(as_range(range) if not isinstance(range, NdRange) else range.global_range) > 0
    return arrays
