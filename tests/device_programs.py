"""Programs that a device's compiler has made of a text are kept from run to run of the tests, as
ccache keeps objects: three quarters of a device program's time is its compiler's."""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fusionq.backends.cuda import compiler
from fusionq.backends.cuda.compiler import Cubin
from fusionq.backends.sycl import binary
from fusionq.backends.sycl.lanes import lacks_lanes
from fusionq.backends.sycl.runtime import load_dpctl

COSTS_ARE_ASSUMED = """
from fusionq.execution import device_costs
device_costs.measured_target = lambda backend: backend.target
"""
"""What a child process begins with that does not measure its device, which takes two seconds."""

IN_A_CHILD = f"""{COSTS_ARE_ASSUMED}
import runpy, sys
sys.path.append({str(Path(__file__).parents[1])!r})
from pathlib import Path
from fusionq.backends.sycl import program
from tests.device_programs import DevicePrograms
program.load_dpctl = DevicePrograms(Path(sys.argv.pop(1))).load_dpctl
sys.path.pop()
"""
"""The same, of one that shares the programs in the folder of its first argument, too."""

SECONDS = 7 * 24 * 3600.0
"""What no run has used for so long is forgotten."""


class DevicePrograms:
    """In place of ``load_dpctl`` where programs are built: each text is compiled once for a device,
    a driver, an instruction set and options.  A text that the compiler refuses is not kept."""

    optimised = True
    """Whether the compiler may take the time to: it takes a third of it where it does not."""

    optimised_for_this = True
    """Whether it may for the test that runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load_dpctl(self) -> Any:
        self._dpctl = load_dpctl()
        program = SimpleNamespace(
            create_program_from_source=self.create_program_from_source,
            SyclProgramCompilationError=self._dpctl.program.SyclProgramCompilationError,
        )
        return SimpleNamespace(program=program)

    def create_program_from_source(self, queue: Any, text: str, options: str) -> Any:
        if not (self.optimised and self.optimised_for_this):
            options += " -cl-opt-disable"
        path = self.folder / _key(queue.sycl_device, text, options)
        try:
            kept = path.read_bytes()
        except OSError:
            kept = None
        program = None
        if kept is None:
            program = self._dpctl.program.create_program_from_source(queue, text, options)

        def get_sycl_kernel(name: str) -> Any:
            nonlocal program
            if kept is not None:
                kernel = binary.kernel_from_binary(queue, kept, name)
                if kernel is not None:
                    os.utime(path)
                    return kernel
                program = self._dpctl.program.create_program_from_source(queue, text, options)
            kernel = program.get_sycl_kernel(name)
            made = binary.binary_of(queue.sycl_device, kernel)
            if made is not None and not lacks_lanes(
                queue.sycl_device, text, name, kernel, options
            ):  # of which only the log of its compiler tells
                _write(path, made)
            return kernel

        return SimpleNamespace(get_sycl_kernel=get_sycl_kernel)

    def compiled(self, text: str, architecture: str, options: tuple[str, ...]) -> Cubin:
        """In place of ``compiler.compiled``, for NVIDIA GPUs."""
        if not (self.optimised and self.optimised_for_this):
            options += _quick_options()
        path = self.folder / _digest(_nvrtc(), architecture, *options, text)
        with suppress(OSError):
            cubin: Cubin = pickle.loads(path.read_bytes())
            os.utime(path)
            return cubin
        cubin = compiler.compiled(text, architecture, options)
        _write(path, pickle.dumps(cubin))
        return cubin

    def forget_old(self) -> None:
        for path in self.folder.glob("*"):
            with suppress(FileNotFoundError):  # another worker was faster
                if path.stat().st_mtime < time.time() - SECONDS:
                    path.unlink()


def _key(device: Any, text: str, options: str) -> str:
    kind = device.device_type.name
    settings = binary.code_generation_settings(kind)
    return _digest(device.name, device.driver_version, kind, settings, options, text)


@cache
def _quick_options() -> tuple[str, ...]:
    """What has NVRTC take half of the time."""
    return ("--Ofast-compile=max",) if compiler.nvrtc_version() >= (13, 0) else ()


@cache
def _nvrtc() -> str:
    """Its version, and how what it says is read; DeviceError where it is not there."""
    major, minor = compiler.nvrtc_version()
    build = ""  # of a toolkit's: major and minor have to do
    with suppress(PackageNotFoundError):
        build = version("nvidia-cuda-nvrtc")
    return f"{major}.{minor} {build}" + Path(compiler.__file__).read_text(encoding="utf-8")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _write(path: Path, data: bytes) -> None:
    """As a whole: other workers look for it."""
    own = path.with_suffix(f".{os.getpid()}")
    own.write_bytes(data)
    own.replace(path)
