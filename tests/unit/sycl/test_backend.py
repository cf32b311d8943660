"""Queues, memory, programs and launches of the SYCL backend."""

from __future__ import annotations

import ctypes

import dpctl
import dpctl.memory
import dpctl.program
import numpy as np
import pytest

from fusionq.backends.base import ArrayBinding
from fusionq.backends.registry import backend_for, default_backend, list_devices
from fusionq.backends.sycl import queue_pool
from fusionq.backends.sycl.backend import SyclBackend
from fusionq.backends.sycl.build_log import build_log
from fusionq.backends.sycl.staggering import LINE, PERIOD
from fusionq.backends.sycl.usm import HUGE_PAGE
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.base.target import LaunchShape
from fusionq.codegen.launch_shape import launch_shape
from fusionq.ir.nodes import Param, ScalarParam
from fusionq.ir.types import FLOAT16, FLOAT32
from tests.unit.codegen.built_kernels import (
    ITEM,
    add,
    const,
    elementwise,
    fused_example,
    load,
)
from tests.unit.sycl.running import prepare, run

ONE_EACH = LaunchShape((16,), (16,))


def increment():
    """``out[i] = out[i] * 3 + 1``, whose runs must not overlap."""
    value = add(add(load("out", ITEM), add(load("out", ITEM), load("out", ITEM))),
                const(1.0, FLOAT32))  # fmt: skip
    return elementwise("increment", {}, FLOAT32, value)


def scale(type=FLOAT32):
    """``out[i] = x``."""
    return elementwise("scale", {}, type, Param(type, "x"), (ScalarParam("x", type),))


# ---------------------------------------------------------------------- devices
def test_default_device_is_listed(device):
    assert device.info == list_devices()[0]
    assert list_devices()[-1].kind == "reference"
    assert device.sycl_queue.is_in_order
    assert device.info.max_work_group_size >= 256


def test_filter_string():
    assert backend_for("opencl:cpu").info.kind == "cpu"


@pytest.mark.parametrize("target", ["opencl:fpga", "level_zero:gpu", "no such device"])
def test_unknown_device(target):
    with pytest.raises(DeviceError, match=r"no SYCL device matches.*\n.*opencl:cpu"):
        backend_for(target)


def test_wrong_type_of_target():
    with pytest.raises(ArgumentError, match="filter string"):
        backend_for(3)


class OtherBackend:
    """What a Level Zero device looks like, as far as choosing one goes."""

    filter_string, name = "level_zero:gpu:0", "Some GPU"
    backend = dpctl.backend_type.level_zero


def test_other_backends_are_explained(monkeypatch):
    monkeypatch.setattr(dpctl, "SyclDevice", lambda filter_string: OtherBackend)
    with pytest.raises(DeviceError, match=r"level_zero backend.*OpenCL C.*opencl:cpu"):
        backend_for("level_zero:gpu")


def test_no_device_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(dpctl, "get_devices", lambda **_: [])
    monkeypatch.setattr(queue_pool, "_idle", {})  # of devices that other tests have used
    monkeypatch.setenv("ONEAPI_DEVICE_SELECTOR", "cuda:*")
    monkeypatch.setenv("OCL_ICD_FILENAMES", str(tmp_path / "driver.so"))
    with pytest.raises(DeviceError) as error:
        backend_for(None)
    message = str(error.value)
    assert "ONEAPI_DEVICE_SELECTOR='cuda:*'" in message
    assert "driver.so' which does not exist" in message.replace("',", "'")
    default_backend.cache_clear()
    try:
        assert default_backend().info.kind == "reference"
    finally:
        default_backend.cache_clear()


def test_runtime_without_opencl_adapter_is_named(monkeypatch):
    from fusionq.backends.sycl import runtime

    monkeypatch.setattr(runtime, "_library", lambda name: None)
    monkeypatch.setattr(runtime, "_version", lambda package: "2026.2.0")
    monkeypatch.delenv("ONEAPI_DEVICE_SELECTOR", raising=False)
    assert "intel-cmplr-lib-ur 2026.2.0 is installed without an OpenCL adapter" in (
        runtime.missing_parts()
    )


def test_profiling():
    backend = SyclBackend(profiling=True)
    data = np.zeros(1000, np.float32)
    event = prepare(backend, increment(), (data, 1000), 1000).launch()
    event.wait()
    assert event.complete
    assert event.native.profiling_info_end >= event.native.profiling_info_start > 0
    with pytest.raises(DeviceError, match="enable_profiling"):
        SyclBackend(dpctl.SyclQueue("opencl:cpu"), profiling=True)


# ----------------------------------------------------------------------- memory
@pytest.mark.parametrize("nbytes", [0, 1, 1000, (4 << 20) + 5])
def test_allocation(device, nbytes):
    memory = device.allocate(nbytes)
    view = memory.host_view()
    assert view.shape == (nbytes,)
    view[:] = 7
    assert memory.nbytes == nbytes
    assert isinstance(memory.usm_interface["syclobj"], dpctl.SyclContext | dpctl.SyclQueue)
    assert memory.usm_interface["data"][0] == memory.address
    assert memory.address % LINE == 0
    if nbytes > 4 << 20:  # it begins in the first page of a huge one
        assert memory.address % HUGE_PAGE < PERIOD
    if nbytes:
        assert view.__array_interface__["data"][0] == memory.address


def test_view_outlives_the_allocation(device):
    view = device.allocate(1000).host_view()
    view[:] = 9
    assert (view == 9).all()


def test_adopting_usm_memory(device):
    memory = dpctl.memory.MemoryUSMShared(4000, queue=dpctl.SyclQueue("opencl:cpu"))
    interface = memory.__sycl_usm_array_interface__
    device.adopt(interface)
    program = device.build(scale(), "strict")
    out = ArrayBinding(interface["data"][0], (1000,), (1,))
    shape = launch_shape((1000,), device.target)
    device.prepare(program, [out, 2.5, 1000], shape).launch().wait()
    assert (np.frombuffer(memory, np.float32) == 2.5).all()


def test_adopting_what_is_no_usm_memory(device):
    array = np.zeros(10)
    interface = dict(dpctl.memory.MemoryUSMShared(8, queue=device.sycl_queue)
                     .__sycl_usm_array_interface__)  # fmt: skip
    interface["data"] = (array.__array_interface__["data"][0], False)
    with pytest.raises(DeviceError, match="does not describe USM memory"):
        device.adopt(interface)


def test_usm_interior_pointers_and_host_memory_in_one_launch(device):
    memory = device.allocate(4 * 100)
    shared = memory.host_view().view(np.float32)
    shared[:] = np.arange(100)
    host = np.zeros(50, np.float32)
    kernel = elementwise("copy", {"a": FLOAT32}, FLOAT32, load("a", ITEM))
    run(device, kernel, shared[50:], host, 50, items=50)
    assert np.array_equal(host, np.arange(50, 100))


# --------------------------------------------------------------------- programs
def test_compiler_errors_carry_log_and_source(device, monkeypatch):
    from fusionq.codegen import DeviceSource, kernel_source

    broken = DeviceSource("__kernel void k() { nonsense; }", "k", (), frozenset())
    monkeypatch.setattr(kernel_source, "generate", lambda *_: broken)
    with pytest.raises(DeviceError) as error:
        device.build(fused_example(), "strict")
    assert "use of undeclared identifier 'nonsense'" in str(error.value)
    assert "__kernel void k()" in str(error.value)


def test_build_log_of_an_unknown_device():
    class Unknown:
        name = "no such device"

    assert "does not list the device" in build_log(Unknown, "", "")


def test_missing_float16_is_named(device, monkeypatch):
    from fusionq.backends.sycl import program

    class Device:
        has_aspect_fp16, has_aspect_fp64 = False, True
        filter_string, name = "opencl:cpu:0", "an older CPU"

    class Queue:
        sycl_device = Device

    with pytest.raises(DeviceError, match="computes in float16, which device opencl:cpu:0"):
        program.build(Queue, scale(FLOAT16), "strict", device.target)


# --------------------------------------------------------------------- launches
def test_a_queue_that_is_not_in_order_runs_in_order():
    backend = SyclBackend(dpctl.SyclQueue("opencl:cpu"))
    assert not backend.sycl_queue.is_in_order
    data = np.zeros(100_000, np.float32)
    first = prepare(backend, increment(), (data, data.size), data.size)
    second = prepare(backend, increment(), (data, data.size), data.size)
    for _ in range(5):
        first.launch()
        last = second.launch()
    last.wait()
    assert (data == (3**10 - 1) // 2).all()


def test_launch_waits_for_events_of_another_queue(device):
    other = SyclBackend(dpctl.SyclQueue("opencl:cpu", property="in_order"))
    data = np.zeros(1_000_000, np.float32)
    event = prepare(other, increment(), (data, data.size), data.size).launch()
    prepare(device, increment(), (data, data.size), data.size).launch([event]).wait()
    assert (data == 4).all()


@pytest.mark.slow
def test_importing_the_backend_does_not_import_dpctl():
    import subprocess
    import sys

    code = "import sys, fusionq.backends.registry as r; r.backend_for('reference')\n" \
           "import fusionq.backends.sycl.backend; sys.exit('dpctl' in sys.modules)"  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_cpu_driver_is_found_without_any_environment_variable():
    import os
    import subprocess
    import sys

    code = "from fusionq.backends.registry import list_devices\nprint(list_devices()[0].kind)"
    environment = {k: v for k, v in os.environ.items() if k != "OCL_ICD_FILENAMES"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "cpu"


def test_argument_types_are_what_dpctl_takes(device):
    """Every scalar argument is a ctypes number, which dpctl passes by value."""
    out = np.zeros(16, np.float16)
    launch = prepare(device, scale(FLOAT16), (out, np.float16(0.1), 16), 16)
    assert all(isinstance(a, ctypes._SimpleCData) for a in launch._arguments)
    launch.launch().wait()
    assert (out == np.float16(0.1)).all()
