"""The OpenCL compiler's log, which dpctl drops: the source is built once more, by hand."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_ulong, c_void_p
from typing import Any

_DEVICE_TYPE_ALL = 0xFFFFFFFF
_DEVICE_NAME = 0x102B
_PROGRAM_BUILD_LOG = 0x1183


def build_log(device: Any, source: str, options: str) -> str:
    """What the OpenCL compiler of ``device`` (a ``dpctl.SyclDevice``) says of ``source``."""
    try:
        opencl = ctypes.CDLL("libOpenCL.so.1")
    except OSError as error:
        return f"(no compiler log: {error})"
    native = _device_named(opencl, device.name)
    if native is None:
        return "(no compiler log: the OpenCL loader does not list the device)"
    opencl.clCreateContext.restype = c_void_p
    opencl.clCreateProgramWithSource.restype = c_void_p
    status = c_int()
    context = c_void_p(opencl.clCreateContext(None, 1, byref(native), None, None, byref(status)))
    program = c_void_p(
        opencl.clCreateProgramWithSource(
            context, 1, byref(c_char_p(source.encode())), None, byref(status)
        )
    )
    opencl.clBuildProgram(program, 1, byref(native), options.encode(), None, None)
    size = c_size_t()
    opencl.clGetProgramBuildInfo(program, native, _PROGRAM_BUILD_LOG, 0, None, byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    opencl.clGetProgramBuildInfo(program, native, _PROGRAM_BUILD_LOG, size, log, None)
    opencl.clReleaseProgram(program)
    opencl.clReleaseContext(context)
    return log.value.decode(errors="replace").strip()


def _device_named(opencl: ctypes.CDLL, name: str) -> c_void_p | None:
    opencl.clGetPlatformIDs.argtypes = (c_uint, POINTER(c_void_p), POINTER(c_uint))
    opencl.clGetDeviceIDs.argtypes = (
        c_void_p, c_ulong, c_uint, POINTER(c_void_p), POINTER(c_uint),
    )  # fmt: skip
    count = c_uint()
    opencl.clGetPlatformIDs(0, None, byref(count))
    platforms = (c_void_p * count.value)()
    opencl.clGetPlatformIDs(count, platforms, None)
    for platform in platforms:
        if opencl.clGetDeviceIDs(platform, _DEVICE_TYPE_ALL, 0, None, byref(count)) != 0:
            continue
        devices = (c_void_p * count.value)()
        opencl.clGetDeviceIDs(platform, _DEVICE_TYPE_ALL, count, devices, None)
        for device in map(c_void_p, devices):
            text = ctypes.create_string_buffer(1024)
            opencl.clGetDeviceInfo(device, _DEVICE_NAME, c_size_t(1024), text, None)
            if text.value.decode(errors="replace").strip() == name.strip():
                return device
    return None
