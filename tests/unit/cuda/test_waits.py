"""Waits for a stream, by a driver that answers what the test says."""

from __future__ import annotations

from types import SimpleNamespace
from weakref import WeakSet

import pytest

import fusionq as fq
from fusionq.backends.cuda import runtime, streams
from fusionq.base.errors import DeviceLost

driver = pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings is not installed")
DONE, NOT_READY = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_NOT_READY
CAPTURE = driver.CUstreamCaptureStatus


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """``asked``: what the driver says of a stream, one answer each time; ``captured``: of its
    capture."""
    said = SimpleNamespace(asked=[], captured=CAPTURE.CU_STREAM_CAPTURE_STATUS_NONE)

    def query(stream: object) -> tuple[object]:
        answer = said.asked.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return (answer,)

    fake = SimpleNamespace(
        CUresult=driver.CUresult,
        CUstream=driver.CUstream,
        CUstreamCaptureStatus=CAPTURE,
        cuStreamQuery=query,
        cuStreamIsCapturing=lambda stream: (DONE, said.captured),
        cuGetErrorString=lambda status: (DONE, b"said so"),
    )
    monkeypatch.setattr(streams, "load_driver", lambda: fake)
    monkeypatch.setattr(runtime, "load_driver", lambda: fake)
    return said


@pytest.fixture
def stream(answers: SimpleNamespace) -> streams.Stream:
    """One with a kernel in flight."""
    device = SimpleNamespace(
        name="a GPU",
        info=SimpleNamespace(filter_string="cuda:0"),
        lost=None,
        streams=WeakSet(),
        make_current=lambda: None,
        in_flight=lambda: ["scale"],
    )
    found = streams.Stream(device, 4096)  # type: ignore[arg-type]  # as much of it as is asked
    found.launched("scale")
    return found


def test_until_all_has_run(stream: streams.Stream, answers: SimpleNamespace) -> None:
    answers.asked = [NOT_READY, NOT_READY, DONE]
    stream.wait()
    assert stream.completed == stream.submitted == 1 and not stream.in_flight()
    assert not answers.asked


def test_ctrl_c_says_what_still_runs(stream: streams.Stream, answers: SimpleNamespace) -> None:
    answers.asked = [NOT_READY, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt) as interrupt:
        stream.wait()
    said = getattr(interrupt.value, "__notes__", interrupt.value.args)
    assert "a GPU still runs scale" in str(said)
    assert stream.completed == 0 and stream.in_flight() == ["scale"]


def test_a_captured_stream_is_not_asked(stream: streams.Stream, answers: SimpleNamespace) -> None:
    for answers.captured in list(CAPTURE)[1:]:
        with pytest.raises(fq.DeviceError, match="captured cannot be waited for"):
            stream.wait()
    assert stream.completed == 0


def test_an_error(stream: streams.Stream, answers: SimpleNamespace) -> None:
    answers.asked = [NOT_READY, driver.CUresult.CUDA_ERROR_INVALID_VALUE]
    with pytest.raises(fq.DeviceError, match=r"work failed: CUDA_ERROR_INVALID_VALUE \(said so\)"):
        stream.wait()
    assert stream.completed == 0 and stream.device.lost is None


def test_the_context_is_lost(stream: streams.Stream, answers: SimpleNamespace) -> None:
    answers.asked = [driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS]
    with pytest.raises(fq.DeviceError, match=r"while waiting for the GPU.*on cuda:0: scale"):
        stream.wait()
    with pytest.raises(DeviceLost, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        stream.wait()
    assert stream.completed == 0
