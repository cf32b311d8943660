"""Random kernels: IR and device compute what the Python function does, bit for bit."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, reject

import fusionq as fq
from fusionq.backends.base import ArrayBinding
from fusionq.backends.reference import ReferenceBackend, run_function
from fusionq.base.target import LaunchShape
from fusionq.frontend.kernel import kernel
from fusionq.frontend.signature import ArrayType, Signature
from fusionq.ir.nodes import Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.types import ScalarType, scalar_type, type_of_scalar
from fusionq.ir.verifier import verify
from fusionq.language.ranges import NdRange
from tests.property.kernel_expressions import Features
from tests.property.kernel_parameters import define
from tests.property.launches import Array, Launch, Scalar, single_launches
from tests.property.running import assert_identical, examples, needs_host_memory


def argument_type(value: Array | Scalar) -> ArrayType | ScalarType:
    if isinstance(value, np.ndarray):
        dtype = scalar_type(value.dtype)
        assert dtype is not None
        return ArrayType(dtype, value.ndim)
    found = type_of_scalar(value)
    assert found is not None
    return found


def bind(value: Array | Scalar) -> ArrayBinding | Scalar:
    if not isinstance(value, np.ndarray):
        return value
    strides = tuple(s // value.itemsize for s in value.strides)
    return ArrayBinding(value.__array_interface__["data"][0], value.shape, strides)


def lowered(launch: Launch) -> Kernel:
    _, arguments = launch.copied()
    types = tuple(map(argument_type, arguments))
    signature = Signature("nd_item" if launch.kernel.nd_item else "item", launch.kernel.ndim, types)
    ir = kernel(launch.kernel.define()).specialise(signature)
    verify(ir)
    return ir


def run_python(launch: Launch) -> list[Array]:
    bases, arguments = launch.copied()
    run_function(launch.kernel.define(), launch.range, arguments)
    return bases


def run_ir(launch: Launch) -> list[Array]:
    bases, arguments = launch.copied()
    if isinstance(launch.range, NdRange):
        shape = LaunchShape(launch.range.global_range, launch.range.local_range)
    else:
        shape = LaunchShape(launch.range, (1,) * launch.kernel.ndim)
    backend = ReferenceBackend()
    program = backend.build(lowered(launch), "strict")
    backend.prepare(program, [bind(a) for a in arguments], shape).launch()
    return bases


def run_on_device(launch: Launch) -> list[Array]:
    bases, arguments = launch.copied()
    with fq.FusionQueue() as queue:
        queue.submit(kernel(launch.kernel.define()), launch.range, *arguments)
        queue.wait()
    return bases


@examples(150)
@given(single_launches())
def test_the_ir_computes_what_the_function_does(launch: Launch) -> None:
    assert_identical(run_ir(launch), run_python(launch))


@examples(60)
@given(single_launches())
def test_the_printed_kernel_computes_what_the_function_does(launch: Launch) -> None:
    assume(not launch.kernel.nd_item)  # printed for an Item where nothing asks for the group
    ir = lowered(launch)
    text = f"import math\nimport numpy as np\n\n\n{print_kernel(ir)}"
    bases, arguments = launch.copied()
    expected = run_python(launch)
    try:
        run_function(define(text, ir.name), launch.range, arguments)
    except ZeroDivisionError:  # int64 is printed as Python's int, which divides by no zero
        reject()
    assert_identical(bases, expected)


@needs_host_memory
@examples(60)
@given(single_launches(Features(transcendental=False)))
def test_the_device_computes_what_the_function_does(launch: Launch) -> None:
    assert_identical(run_on_device(launch), run_python(launch))
