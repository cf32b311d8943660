"""Random kernels: what the front end makes of them computes what the Python function does."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from fusionq.backends.base import ArrayBinding, Backend, LaunchShape
from fusionq.backends.reference import ReferenceBackend, run_function
from fusionq.frontend.kernel import kernel
from fusionq.frontend.signature import ArrayType, Signature
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import scalar_type, type_of_scalar
from fusionq.ir.verifier import verify
from fusionq.language.ranges import NdRange
from tests.property.launches import Array, Launch, Scalar, single_launches

SLOW = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def argument_type(value: Array | Scalar) -> object:
    if isinstance(value, np.ndarray):
        return ArrayType(scalar_type(value.dtype), value.ndim)
    return type_of_scalar(value)


def bind(value: Array | Scalar) -> ArrayBinding | Scalar:
    if not isinstance(value, np.ndarray):
        return value
    strides = tuple(s // value.itemsize for s in value.strides)
    return ArrayBinding(value.__array_interface__["data"][0], value.shape, strides)


def lowered(launch: Launch) -> Kernel:
    _, arguments = launch.copied()
    types = tuple(map(argument_type, arguments))
    item = "nd_item" if launch.kernel.nd_item else "item"
    ir = kernel(launch.kernel.define()).specialise(Signature(item, launch.kernel.ndim, types))
    verify(ir)
    return ir


def run_python(launch: Launch) -> list[Array]:
    bases, arguments = launch.copied()
    run_function(launch.kernel.define(), launch.range, arguments)
    return bases


def run_ir(launch: Launch, ir: Kernel, backend: Backend) -> list[Array]:
    bases, arguments = launch.copied()
    if isinstance(launch.range, NdRange):
        shape = LaunchShape(launch.range.global_range, launch.range.local_range)
    else:
        shape = LaunchShape(launch.range, (1,) * launch.kernel.ndim)
    prepared = backend.prepare(backend.build(ir, "strict"), [bind(a) for a in arguments], shape)
    prepared.launch().wait()
    return bases


def assert_identical(actual: list[Array], expected: list[Array]) -> None:
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(a, e)
        if e.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a)[~np.isnan(e)], np.signbit(e)[~np.isnan(e)])


@SLOW
@given(single_launches())
def test_the_ir_computes_what_the_function_does(launch: Launch) -> None:
    assert_identical(run_ir(launch, lowered(launch), ReferenceBackend()), run_python(launch))
