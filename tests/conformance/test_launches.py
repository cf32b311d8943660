"""Prepared launches: order, scalars, arguments that do not fit, events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.base import Backend
from fusionq.backends.registry import backend_for
from fusionq.base.errors import ArgumentError
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import ArrayParam, Kernel, Param, ScalarParam, Store
from fusionq.ir.types import BOOL, FLOAT32, INT8, INT64, UINT64, ScalarType
from tests.conformance.running import Launch, run
from tests.conformance.test_operators import fewer, types_of
from tests.unit.codegen.built_kernels import ITEM, add, const, elementwise, load


def increment() -> Kernel:
    """``out[i] = out[i] * 3 + 1``, whose runs must not overlap."""
    out = load("out", ITEM)
    value = add(add(out, add(out, out)), const(1.0, FLOAT32))
    return elementwise("increment", {}, FLOAT32, value)


def scale(type: ScalarType = FLOAT32) -> Kernel:
    """``out[i] = x``."""
    return elementwise("scale", {}, type, Param(type, "x"), (ScalarParam("x", type),))


def zeros(backend: Backend, count: int) -> Any:
    return np.zeros(fewer(backend, count), np.float32)


def test_launches_run_in_order(backend: Backend) -> None:
    data = zeros(backend, 100_000)
    launch = Launch(backend, increment(), (data, data.size), data.size)
    for _ in range(10):
        launch.launch()
    backend.wait()
    launch.fetch()
    assert (data == (3**10 - 1) // 2).all()


def test_an_events_wait_is_for_all_before_it_too(backend: Backend) -> None:
    data = zeros(backend, 100_000)
    launch = Launch(backend, increment(), (data, data.size), data.size)
    events = [launch.launch() for _ in range(10)]
    events[-1].wait()
    assert all(event.complete for event in events)
    launch.fetch()
    assert (data == (3**10 - 1) // 2).all()


def test_a_launch_waits_for_what_it_depends_on(backend: Backend, target: str) -> None:
    """On another queue of the device, in whose memory the data is too."""
    other, data = backend_for(target), zeros(backend, 1_000_000)
    assert other.memory_domain == backend.memory_domain
    first = Launch(other, increment(), (data, data.size), data.size)
    second = Launch(backend, increment(), (data, data.size), data.size, sharing=first)
    second.launch([first.launch()]).wait()
    second.fetch()
    assert (data == 4).all()


class HostEvent:
    """An event that no device's runtime knows."""

    native, complete, waited = None, False, False

    def wait(self) -> None:
        self.waited = True

    def times(self) -> None:
        return None


def test_a_launch_waits_itself_for_events_that_its_device_does_not_know(backend: Backend) -> None:
    data, event = np.zeros(16, np.float32), HostEvent()
    launch = Launch(backend, increment(), (data, 16), 16)
    launch.launch([event]).wait()
    assert event.waited
    launch.fetch()
    assert (data == 1).all()


# ------------------------------------------------------------------------------ scalars
def test_scalars_can_change_between_launches(backend: Backend) -> None:
    out = np.zeros(16, np.float32)
    launch = Launch(backend, scale(), (out, 2.5, 16), 16)
    launch.launch().wait()
    launch.fetch()
    assert (out == 2.5).all()
    launch.prepared.set_scalar("x", np.float32(-1))
    launch.launch().wait()
    launch.fetch()
    assert (out == -1).all()


def test_a_scalar_changed_after_a_launch_does_not_reach_it(backend: Backend) -> None:
    busy_with, out = zeros(backend, 100_000), zeros(backend, 100_000)
    busy = Launch(backend, increment(), (busy_with, busy_with.size), busy_with.size)
    launch = Launch(backend, scale(), (out, 5.0, out.size), out.size)
    for _ in range(20):
        busy.launch()
    event = launch.launch()
    launch.prepared.set_scalar("x", 6.0)
    event.wait()
    launch.fetch()
    assert (out == 5).all()


def test_scalars_of_every_type(backend: Backend) -> None:
    types = types_of(backend)
    values = [type.dtype.type(1.5 if type.is_float else 1) for type in types]
    outs = [np.zeros(1, type.dtype) for type in types]
    kernel = Kernel(
        "k",
        1,
        tuple(
            param
            for t in types
            for param in (ArrayParam(f"out_{t}", t, 1), ScalarParam(f"x_{t}", t))
        ),
        (),
        tuple(Store(f"out_{t}", (const(0),), Param(t, f"x_{t}")) for t in types),
    )
    arguments = [value for pair in zip(outs, values, strict=True) for value in pair]
    run(backend, kernel, *arguments, items=1, shape=LaunchShape((1,), (1,)))
    assert [out[0] for out in outs] == values


@pytest.mark.parametrize(("type", "value"), [(INT8, 128), (INT64, 1 << 63), (UINT64, -1)], ids=str)
def test_integers_that_do_not_fit(backend: Backend, type: ScalarType, value: int) -> None:
    out = np.zeros(16, type.dtype)
    launch = Launch(backend, scale(type), (out, type.dtype.type(0), 16), 16)
    with pytest.raises(ArgumentError, match="does not fit"):
        launch.prepared.set_scalar("x", value)


def test_bools_are_scalars(backend: Backend) -> None:
    out = np.zeros(16, bool)
    launch = Launch(backend, scale(BOOL), (out, False, 16), 16)
    launch.prepared.set_scalar("x", True)
    launch.launch().wait()
    launch.fetch()
    assert out.all()


def test_bounds_of_a_scalar_are_kept(backend: Backend) -> None:
    kernel = Kernel(
        "k", 1, (ArrayParam("out", INT64, 1), ScalarParam("x", INT64, (-128, 127))), (),
        (Store("out", (const(0),), Param(INT64, "x")),),
    )  # fmt: skip
    out, one = np.zeros(1, np.int64), LaunchShape((1,), (1,))
    run(backend, kernel, out, 127, items=1, shape=one)
    assert out[0] == 127
    with pytest.raises(ArgumentError, match="-128 to 127"):
        run(backend, kernel, out, 128, items=1, shape=one)


# ---------------------------------------------------------------------------- arguments
def test_arguments_that_do_not_fit_the_kernel(backend: Backend) -> None:
    out = np.zeros(16, np.float32)
    with pytest.raises(ArgumentError, match=r"'scale'.* 3 parameters, and 2 arguments"):
        Launch(backend, scale(), (out, 16), 16)
    with pytest.raises(ArgumentError, match="'x' of kernel 'scale' takes a scalar"):
        Launch(backend, scale(), (out, out, 16), 16)
    with pytest.raises(ArgumentError, match="'out' of kernel 'scale' takes an array"):
        Launch(backend, scale(), (1.0, 1.0, 16), 16)


def test_programs_can_be_shared_between_queues_of_one_domain(backend: Backend, target: str) -> None:
    other = backend_for(target)
    assert other.program_domain == backend.program_domain
    assert hash(other.program_domain) == hash(backend.program_domain)
    program = backend.build(scale(), "strict")
    out = np.zeros(16, np.float32)
    launch = Launch(other, scale(), (out, 4.0, 16), 16, program=program)
    launch.launch().wait()
    launch.fetch()
    assert (out == 4).all()


@fq.kernel
def fill_with_one(item: fq.Item, out: Any) -> None:
    out[item.get_id(0)] = 1.0


def test_an_empty_range_runs_nothing(queue: fq.FusionQueue) -> None:
    full, empty = fq.Buffer(np.full(3, 7.0, np.float32)), fq.Buffer(0, np.float32)
    queue.submit(fill_with_one, 0, full).wait()
    queue.submit(fill_with_one, 0, empty).wait()
    assert full.numpy().tolist() == [7, 7, 7]
