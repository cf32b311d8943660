"""Built programs as the device's own binary code, and back.

dpctl has no call for this.  The OpenCL runtime hands out the binary of a program and takes it
back (OpenCL 3.0, sections 5.8.1 and 5.8.8), and SYCL makes a kernel bundle of an OpenCL program
(SYCL 2020, section 4.5.1): what ``sycl::make_kernel_bundle`` of the headers calls in the runtime
library is called here, by its name in that library's binary interface, which its soname stands
for.  Wherever something is not as expected, there is no binary, and the source is built.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_ulong, c_void_p
from importlib import import_module
from pathlib import Path
from typing import Any

_SYCL_LIBRARY = "libsycl.so.9"
_CONTEXT_NATIVE = "_ZNK4sycl3_V17context9getNativeEv"
_DEVICE_NATIVE = "_ZNK4sycl3_V16device9getNativeEv"
_KERNEL_NATIVE = "_ZNK4sycl3_V16kernel9getNativeEv"
_MAKE_KERNEL_BUNDLE = (
    "_ZN4sycl3_V16detail18make_kernel_bundleEmRKNS0_7contextEbNS0_12bundle_stateENS0_7backendE"
)
_BUNDLE_BYTES = 16
"""A ``sycl::kernel_bundle`` is one ``std::shared_ptr``."""

_OPENCL_BACKEND, _EXECUTABLE_STATE = 1, 2
"""``sycl::backend::opencl`` and ``sycl::bundle_state::executable``."""

_KERNEL_PROGRAM = 0x1194
_PROGRAM_NUM_DEVICES, _PROGRAM_DEVICES = 0x1162, 0x1163
_PROGRAM_BINARY_SIZES, _PROGRAM_BINARIES = 0x1165, 0x1166
_PROGRAM_BUILD_LOG = 0x1183


class _Unavailable(Exception):
    """The stack cannot do it."""


def binary_of(device: Any, kernel: Any) -> bytes | None:
    """The binary of the program of a ``dpctl.program.SyclKernel`` for a ``dpctl.SyclDevice``."""
    try:
        libraries = _libraries()
        native_device = libraries.device_native(device.addressof_ref())
        opencl = libraries.opencl
        program = _program_of(libraries, kernel)
        count = c_uint()
        _program_info(opencl, program, _PROGRAM_NUM_DEVICES, count)
        devices = (c_void_p * count.value)()
        sizes = (c_size_t * count.value)()
        _program_info(opencl, program, _PROGRAM_DEVICES, devices)
        _program_info(opencl, program, _PROGRAM_BINARY_SIZES, sizes)
        buffers = [ctypes.create_string_buffer(max(size, 1)) for size in sizes]
        pointers = (c_void_p * count.value)(*(ctypes.addressof(buffer) for buffer in buffers))
        _program_info(opencl, program, _PROGRAM_BINARIES, pointers)
        for found, size, buffer in zip(devices, sizes, buffers, strict=True):
            if found == native_device and size:
                return buffer.raw[:size]
    except _Unavailable:
        pass
    return None


def log_of(device: Any, kernel: Any) -> str | None:
    """What the compiler said when it built the program of a ``dpctl.program.SyclKernel`` for a
    ``dpctl.SyclDevice``; None where the stack does not tell."""
    try:
        libraries = _libraries()
        program = _program_of(libraries, kernel)
        native_device = c_void_p(libraries.device_native(device.addressof_ref()))
        told = libraries.opencl.clGetProgramBuildInfo
        size = c_size_t()
        _check(told(program, native_device, _PROGRAM_BUILD_LOG, c_size_t(), None, byref(size)))
        log = ctypes.create_string_buffer(size.value + 1)
        _check(told(program, native_device, _PROGRAM_BUILD_LOG, size, log, None))
    except _Unavailable:
        return None
    return log.value.decode(errors="replace")


def kernel_from_binary(
    queue: Any, binary: bytes, name: str, has_others: bool = False
) -> Any | None:
    """The ``dpctl.program.SyclKernel`` called ``name`` in a program that ``binary_of`` gave for
    the same device; None where the OpenCL runtime does not take it.  A program that ``has_others``
    is there for the next call, which asks for one of these."""
    if has_others and _latest and _latest[0] == queue.sycl_context and _latest[1] == binary:
        return _latest[2].get_sycl_kernel(name) if _latest[2].has_sycl_kernel(name) else None
    _latest.clear()
    try:
        libraries = _libraries()
        context, device = queue.sycl_context, queue.sycl_device
        native_context = c_void_p(libraries.context_native(context.addressof_ref()))
        native_device = c_void_p(libraries.device_native(device.addressof_ref()))
        opencl = libraries.opencl
        status, taken = c_int(), c_int()
        program = opencl.clCreateProgramWithBinary(
            native_context, 1, byref(native_device), byref(c_size_t(len(binary))),
            byref(c_char_p(binary)), byref(taken), byref(status),
        )  # fmt: skip
        _check(status.value, taken.value)
        handle = c_void_p(program)
        try:
            _check(opencl.clBuildProgram(handle, 1, byref(native_device), b"", None, None))
            bundle = libraries.new(_BUNDLE_BYTES)
            libraries.make_kernel_bundle(
                bundle, program, context.addressof_ref(), False, _EXECUTABLE_STATE, _OPENCL_BACKEND
            )
        finally:
            opencl.clReleaseProgram(handle)
        made = libraries.program_of_bundle(bundle)
        libraries.delete_bundle(bundle)
        if has_others:
            _latest.extend((context, binary, made))
        return made.get_sycl_kernel(name) if made.has_sycl_kernel(name) else None
    except _Unavailable:
        return None


_latest: list[Any] = []
"""The context, the binary and the program of several kernels that was made last."""


def code_generation_settings(kind: str) -> str:
    """What, beside the device's name and driver, binaries for devices of this ``kind`` depend on:
    of a CPU its instruction set, and settings of the runtime in the environment."""
    settings = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("CL_CONFIG_")]
    return "\n".join([_processor() if kind == "cpu" else "", *settings])


@functools.cache
def _processor() -> str:
    """The first processor's model and flags, as Linux tells them."""
    lines = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                if line.startswith(("model name", "flags", "Features", "CPU part")):
                    lines.append(line.strip())
    except OSError:
        pass
    import platform

    return "\n".join(lines) or f"{platform.machine()} {platform.processor()}"


class _Libraries:
    """The functions of the SYCL runtime, the OpenCL loader and dpctl that it takes."""

    def __init__(self) -> None:
        try:
            # Only what dpctl has loaded already: another copy would not know its objects.
            sycl = ctypes.CDLL(_SYCL_LIBRARY, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
            self.opencl = ctypes.CDLL("libOpenCL.so.1")
            self.context_native = getattr(sycl, _CONTEXT_NATIVE)
            self.device_native = getattr(sycl, _DEVICE_NATIVE)
            self.kernel_native = getattr(sycl, _KERNEL_NATIVE)
            self.make_kernel_bundle = getattr(sycl, _MAKE_KERNEL_BUNDLE)
            self.new = ctypes.CDLL("libstdc++.so.6")._Znwm
            folder = Path(import_module("dpctl").__file__ or "").parent
            own = ctypes.CDLL(str(folder / "libDPCTLSyclInterface.so"))
            self.delete_bundle = own.DPCTLKernelBundle_Delete
            capsule = import_module("dpctl.program._program").__pyx_capi__["SyclProgram_Make"]
        except (OSError, AttributeError, ImportError, KeyError) as error:
            raise _Unavailable(str(error)) from error
        for native in (self.context_native, self.device_native, self.kernel_native):
            native.argtypes, native.restype = (c_void_p,), c_ulong
        # Returned by value and not trivially copyable: the caller passes where it goes.
        self.make_kernel_bundle.argtypes = (
            c_void_p, c_ulong, c_void_p, c_bool, c_int, c_int,
        )  # fmt: skip
        self.make_kernel_bundle.restype = None
        self.opencl.clCreateProgramWithBinary.restype = c_void_p
        self.opencl.clCreateProgramWithBinary.argtypes = (
            c_void_p, c_uint, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_char_p),
            POINTER(c_int), POINTER(c_int),
        )  # fmt: skip
        self.new.restype, self.new.argtypes = c_void_p, (c_size_t,)
        self.delete_bundle.restype, self.delete_bundle.argtypes = None, (c_void_p,)
        self.opencl.clReleaseProgram.argtypes = (c_void_p,)
        self.program_of_bundle = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p)(_pointer(capsule))


def _pointer(capsule: Any) -> int:
    """The address in a Python capsule."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = c_char_p, (ctypes.py_object,)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, (ctypes.py_object, c_char_p)
    return int(pointer(capsule, name(capsule)))


@functools.cache
def _loaded() -> _Libraries | None:
    try:
        return _Libraries()
    except _Unavailable:
        return None


def _libraries() -> _Libraries:
    libraries = _loaded()
    if libraries is None:
        raise _Unavailable("the SYCL runtime is another than expected")
    return libraries


def _program_of(libraries: _Libraries, kernel: Any) -> c_void_p:
    """The OpenCL program of a ``dpctl.program.SyclKernel``."""
    native = c_void_p(libraries.kernel_native(kernel.addressof_ref()))
    program = c_void_p()
    size = c_size_t(ctypes.sizeof(program))
    _check(libraries.opencl.clGetKernelInfo(native, _KERNEL_PROGRAM, size, byref(program), None))
    return program


def _check(*statuses: int) -> None:
    if any(statuses):
        raise _Unavailable(f"OpenCL status {statuses}")


def _program_info(opencl: Any, program: c_void_p, what: int, into: Any) -> None:
    size = c_size_t(ctypes.sizeof(into))
    _check(opencl.clGetProgramInfo(program, what, size, byref(into), None))
