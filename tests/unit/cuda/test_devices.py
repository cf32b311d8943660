"""The platform where there is no GPU, and what a target may be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from enum import IntEnum
from weakref import WeakSet

import pytest

import fusionq as fq
from fusionq.backends import interruptible, registry
from fusionq.backends.cuda import runtime, streams
from fusionq.backends.cuda.devices import GROUP_FUNCTION_BYTES, Device, device_count
from fusionq.backends.cuda.events import CudaEvent
from fusionq.backends.cuda.grid import LARGEST, grid_of
from fusionq.backends.cuda.platform import PLATFORM
from fusionq.backends.cuda.runtime import CudaError
from fusionq.backends.cuda.streams import is_stream
from fusionq.base.errors import DeviceError, DeviceLost
from fusionq.base.target import LaunchShape
from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.cuda.shared_memory import LARGEST_STATIC
from fusionq.ir.types import SCALAR_TYPES
from tests.unit.cuda.compile_only import H100


def has_gpu() -> bool:
    try:
        return device_count() > 0
    except DeviceError:
        return False


without_gpu = pytest.mark.skipif(has_gpu(), reason="there is a GPU")


@without_gpu
@pytest.mark.parametrize("target", ["cuda", "cuda:1"])
def test_a_queue_without_a_gpu_says_what_is_missing(target: str) -> None:
    with pytest.raises(fq.DeviceError, match=r"driver|fusionq\[cuda\]"):
        fq.FusionQueue(target)


@without_gpu
def test_there_are_no_devices_and_a_reason() -> None:
    assert not PLATFORM.devices()
    reason = PLATFORM.missing()
    assert reason is not None and ("driver" in reason or "fusionq[cuda]" in reason)


def test_importing_the_platform_imports_nothing_of_cuda() -> None:
    code = (
        "import sys, fusionq.backends.cuda.platform\n"
        "assert not [m for m in sys.modules if m.partition('.')[0] == 'cuda'], sys.modules\n"
        "assert 'fusionq.codegen.expressions' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Stream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 1234


class CupyStream:
    ptr = 99


CupyStream.__module__ = "cupy.cuda.stream"


def test_streams_are_recognised() -> None:
    assert is_stream(Stream())
    assert is_stream(CupyStream())
    assert not is_stream(object())
    assert not is_stream("cuda")
    other = type("Other", (), {"ptr": 1})()
    assert not is_stream(other), "a pointer of who knows what"


def test_the_error_for_other_targets_names_streams() -> None:
    with pytest.raises(fq.ArgumentError, match="a CUDA stream, 'cuda'"):
        registry.backend_for(3)


def test_which_errors_end_the_context() -> None:
    assert CudaError("", "CUDA_ERROR_ILLEGAL_ADDRESS").is_lost
    assert not CudaError("", "CUDA_ERROR_OUT_OF_MEMORY").is_lost


def test_group_functions_take_the_shared_memory_that_devices_leave_them() -> None:
    texts: dict[str, str] = {}
    for type in SCALAR_TYPES.values():
        CUDA_CPP.groups.collective("exclusive_scan", "max", "x", type, texts.setdefault)
        CUDA_CPP.groups.broadcast("x", type, "0", 1, texts.setdefault)
    assert "unsigned words[1024]" in texts["fq_group_values_32"]
    assert "unsigned long long words[1024]" in texts["fq_group_values_64"]
    broadcasts = sum("unsigned long long word;" in text for text in texts.values())
    assert sum(text.count("__shared__") for text in texts.values()) == 2 + broadcasts
    assert broadcasts == len(SCALAR_TYPES)
    assert 1024 * (4 + 8) + 8 * broadcasts <= GROUP_FUNCTION_BYTES
    assert LARGEST_STATIC + GROUP_FUNCTION_BYTES <= 48 << 10


class FakeDriver:
    """A driver whose kernels fail."""

    class CUresult(IntEnum):
        CUDA_SUCCESS = 0
        CUDA_ERROR_NOT_READY = 600
        CUDA_ERROR_ILLEGAL_ADDRESS = 700

    class CUstreamCaptureStatus(IntEnum):
        CU_STREAM_CAPTURE_STATUS_NONE = 0
        CU_STREAM_CAPTURE_STATUS_ACTIVE = 1

    capture = CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
    runs = 0
    """Questions that are answered with no yet."""

    def cuStreamQuery(self, stream: object) -> tuple[object]:
        if self.runs:
            self.runs -= 1
            return (self.CUresult.CUDA_ERROR_NOT_READY,)
        return self.cuStreamSynchronize(stream)

    def cuStreamIsCapturing(self, stream: object) -> tuple[object, object]:
        return self.CUresult.CUDA_SUCCESS, self.capture

    def cuStreamSynchronize(self, stream: object) -> tuple[object]:
        return (self.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,)

    def cuGetErrorString(self, status: object) -> tuple[int, bytes]:
        return 0, b"an illegal memory access was encountered"


def test_a_failed_launch_names_the_kernels_and_loses_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = FakeDriver()
    monkeypatch.setattr(streams, "load_driver", lambda: driver)
    monkeypatch.setattr(runtime, "load_driver", lambda: driver)
    device = Device.__new__(Device)
    vars(device).update(
        name="a GPU", info=H100, lost=None, streams=WeakSet(), make_current=lambda: None
    )
    stream, other = (streams.Stream.__new__(streams.Stream) for _ in range(2))
    for made in (stream, other):
        vars(made).update(
            device=device, native=1, submitted=0, completed=0, is_own=False,
            names=deque(maxlen=4),
        )  # fmt: skip
        device.streams.add(made)
    other.launched("on another queue")
    event = CudaEvent(stream, stream.launched("scale"), None)
    driver.capture = driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
    with pytest.raises(DeviceError, match="being captured"):
        event.wait()
    assert not event.complete
    driver.capture, driver.runs = FakeDriver.capture, 1 << 40
    monkeypatch.setattr(interruptible, "_interrupted", False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup ignores it
    ctrl_c = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    ctrl_c.start()
    try:
        with pytest.raises(KeyboardInterrupt) as interrupted:
            event.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    assert sys.version_info < (3, 11) or "still runs scale" in interrupted.value.__notes__[0]
    driver.runs = 50
    stream.launched("add")
    with pytest.raises(DeviceError, match=r"ILLEGAL_ADDRESS.*in flight on cuda:0:") as caught:
        event.wait()
    assert not isinstance(caught.value, DeviceLost)
    for name in ("scale; add", "on another queue"):
        assert name in str(caught.value)
    for lost in (stream, other):
        with pytest.raises(DeviceLost, match=r"this GPU is lost.*scale; add"):
            lost.wait()


def test_grids_in_order() -> None:
    grid = grid_of("k", LaunchShape((6, 70_000 * 32), (2, 32)))
    assert (grid.blocks, grid.threads, grid.axes) == ((70_000, 3, 1), (32, 2, 1), "xyz")
    assert grid.block_size == 64


@pytest.mark.parametrize(
    ("groups", "blocks", "axes"),
    [
        ((65_536, 3), (65_536, 3, 1), "yxz"),
        ((70_000, 5, 3), (70_000, 5, 3), "zyx"),
        ((7, 70_000, 3), (70_000, 3, 7), "yxz"),
        ((65_535, 65_535, 3), (3, 65_535, 65_535), "xyz"),
    ],
)
def test_a_slow_dimension_of_many_groups_takes_the_place_of_x(groups, blocks, axes) -> None:
    grid = grid_of("k", LaunchShape(tuple(2 * n for n in groups), (2,) * len(groups)))
    assert (grid.blocks, grid.axes) == (blocks, axes)
    assert all(count <= most for count, most in zip(grid.blocks, LARGEST, strict=True))


def test_a_grid_that_the_gpu_does_not_take_is_refused() -> None:
    shape = LaunchShape((70_000 * 2, 70_000 * 32), (2, 32))
    with pytest.raises(DeviceError, match=r"70,000 x 70,000 work-groups.*65,535 in each other"):
        grid_of("k", shape)


def test_a_block_of_too_many_planes_is_refused() -> None:
    assert grid_of("k", LaunchShape((128, 2, 2), (64, 2, 2))).threads == (2, 2, 64)
    with pytest.raises(DeviceError, match=r"work-groups of \(128, 2, 2\); a GPU takes 64"):
        grid_of("k", LaunchShape((128, 2, 2), (128, 2, 2)))
