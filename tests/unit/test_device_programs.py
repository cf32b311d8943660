"""What tests keep of the device's compiler from run to run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fusionq as fq
from fusionq.backends.cuda import compiler
from fusionq.backends.cuda.compiler import Cubin, nvrtc_version
from tests import device_programs
from tests.device_programs import DevicePrograms

TEXT = "__kernel void {name}(__global int *a) {{ a[get_global_id(0)] = {value}; }}"


class Counting:
    """dpctl, which counts how often it compiles."""

    def __init__(self, dpctl) -> None:
        self.program = self
        self.dpctl = dpctl
        self.compiled = 0
        self.SyclProgramCompilationError = dpctl.program.SyclProgramCompilationError

    def create_program_from_source(self, queue, text, options):
        self.compiled += 1
        return self.dpctl.program.create_program_from_source(queue, text, options)


@pytest.fixture
def sycl_queue() -> Iterator[object]:
    try:
        queue = fq.FusionQueue()
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")
    with queue:
        yield queue._state.launcher.backend.sycl_queue


def test_a_text_is_compiled_once(sycl_queue, tmp_path: Path, monkeypatch) -> None:
    """Other texts and options are not it; what does not compile is compiled again."""
    dpctl = Counting(device_programs.load_dpctl())
    monkeypatch.setattr(device_programs, "load_dpctl", lambda: dpctl)

    def build(name: str, value: object, options: str = "") -> int:
        before = dpctl.compiled
        build = DevicePrograms(tmp_path).load_dpctl().program.create_program_from_source
        program = build(sycl_queue, TEXT.format(name=name, value=value), options)
        assert program.get_sycl_kernel(name).get_function_name() == name
        return dpctl.compiled - before

    assert [build("f", 1), build("f", 1)] == [1, 0]
    assert [build("f", 2), build("g", 1), build("f", 1, "-cl-std=CL3.0")] == [1, 1, 1]
    for _ in range(2):
        before = dpctl.compiled
        with pytest.raises(dpctl.SyclProgramCompilationError):
            build("f", "no_such_name")
        assert dpctl.compiled == before + 1
    for path in tmp_path.iterdir():
        path.write_bytes(b"damaged")
    assert [build("f", 1), build("f", 1)] == [1, 0]


def test_cubins(tmp_path: Path, monkeypatch) -> None:
    try:
        nvrtc_version()
    except fq.DeviceError as error:
        pytest.skip(str(error))
    text = 'extern "C" __global__ void f(int *a) { a[threadIdx.x] = 1; }'
    calls: list[str] = []
    real = compiler.compiled

    def counting(*arguments) -> Cubin:
        calls.append(arguments[1])
        return real(*arguments)

    monkeypatch.setattr(compiler, "compiled", counting)
    first, again = (DevicePrograms(tmp_path).compiled(text, "sm_90", ()) for _ in range(2))
    assert first == again and first.resources.registers
    assert DevicePrograms(tmp_path).compiled(text, "sm_80", ()) != first
    assert DevicePrograms(tmp_path).compiled(text + " ", "sm_90", ("-G",)) != first
    for _ in range(2):
        with pytest.raises(compiler.CompilationError, match="no_such_name"):
            DevicePrograms(tmp_path).compiled(text.replace("1", "no_such_name"), "sm_90", ())
    assert calls == ["sm_90", "sm_80", "sm_90", "sm_90", "sm_90"]


def test_what_is_not_used_is_forgotten(tmp_path: Path) -> None:
    for name, age in (("new", 0.0), ("old", 2 * device_programs.SECONDS)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, 2 * (time.time() - age,))
    DevicePrograms(tmp_path).forget_old()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
