"""DLPack capsules of memory, in and out, without a copy.

Source: DLPack 1.0, dlpack.h and the Python specification.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from fusionq.base.dtypes import bfloat16, is_bfloat16
from fusionq.base.errors import ArgumentError

HOST, GPU, PINNED, MANAGED = 1, 2, 3, 13
"""DLDeviceType of the host, of an NVIDIA GPU, of pinned host memory, and of CUDA's managed one."""

_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}
"""DLDataTypeCode by NumPy's kind of dtype."""
_BFLOAT = 4
"""DLDataTypeCode of bfloat16."""
_READ_ONLY = 1


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_FORMS: dict[bytes, type[_Managed] | type[_Versioned]] = {
    b"dltensor": _Managed,
    b"dltensor_versioned": _Versioned,
}

_USED = {name: b"used_" + name for name in _FORMS}
"""The names of capsules that somebody has taken over; capsules keep no copies."""

_new_capsule: Any = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_is_valid: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_in: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_set_name: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)

_given: dict[int, tuple[object, ...]] = {}
"""By the address of a managed tensor that others have: what it is made of, and its owner."""


def _release(managed: int | None) -> None:
    """The deleter of what is given out."""
    _given.pop(managed or 0, None)


def _capsule_dies(capsule: int) -> None:
    """The destructor of a capsule: what nobody has taken over goes with it."""
    for name in _FORMS:
        if _is_valid(capsule, name):
            _release(_pointer_in(capsule, name))


_DELETER = _Deleter(_release)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_capsule_dies)


def capsule_of(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    device: tuple[int, int],
    owner: object,
    versioned: bool,
    writable: bool,
) -> Any:
    """A capsule of memory that ``owner`` keeps; ``strides`` in elements, ``device`` DLPack's type
    and number.  BufferError for read-only memory, unless ``versioned``: before version 1.0 a
    capsule cannot say so."""
    if dtype.kind not in _KINDS and not is_bfloat16(dtype):
        raise BufferError(f"DLPack has no {dtype}")
    if not writable and not versioned:
        raise BufferError(
            "this Buffer's memory is read-only, which a DLPack capsule before version 1.0 cannot "
            "say; ask for max_version=(1, 0)"
        )
    name = b"dltensor_versioned" if versioned else b"dltensor"
    managed = _FORMS[name]()
    extents = (ctypes.c_int64 * len(shape))(*shape)
    distances = (ctypes.c_int64 * len(shape))(*strides)
    managed.tensor = _Tensor(
        address if prod(shape) else None,
        _Device(*device),
        len(shape),
        _DataType(_BFLOAT if is_bfloat16(dtype) else _KINDS[dtype.kind], dtype.itemsize * 8, 1),
        extents,
        distances,
        0,
    )
    managed.deleter = ctypes.cast(_DELETER, ctypes.c_void_p).value
    if isinstance(managed, _Versioned):
        managed.major, managed.minor = 1, 0
        managed.flags = 0 if writable else _READ_ONLY
    at = ctypes.addressof(managed)
    _given[at] = managed, extents, distances, owner
    return _new_capsule(at, name, ctypes.cast(_DESTRUCTOR, ctypes.c_void_p))


def host_capsule(
    array: np.ndarray[Any, Any], max_version: tuple[int, int] | None, copy: bool | None
) -> Any:
    """A capsule of an array of bfloat16, of which NumPy makes none; of a ``copy`` if it is asked
    for."""
    array = array.copy() if copy else array
    return capsule_of(
        array.__array_interface__["data"][0],
        array.shape,
        tuple(stride // array.itemsize for stride in array.strides),
        array.dtype,
        (HOST, 0),
        array,
        max_version is not None and max_version[0] >= 1,
        array.flags.writeable,
    )


class Imported:
    """What a capsule describes, taken over from it: given back to its library when this dies.

    ``strides`` are in elements.  ArgumentError for a type that kernels have not.
    """

    def __init__(self, capsule: object) -> None:
        at = id(capsule)
        name = next((name for name in _FORMS if _is_valid(at, name)), None)
        if name is None:
            raise ArgumentError("__dlpack__ gave no capsule of a tensor, or a used one")
        self._pointer: int = _pointer_in(at, name)
        self._managed = _FORMS[name].from_address(self._pointer)
        managed = self._managed
        if isinstance(managed, _Versioned) and managed.major != 1:
            self._managed = None  # type: ignore[assignment]  # it stays the capsule's
            raise ArgumentError(
                f"__dlpack__ gave a capsule of DLPack {managed.major}.{managed.minor}, and this is "
                "written for 1.0"
            )
        _set_name(at, _USED[name])
        tensor = managed.tensor
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape: tuple[int, ...] = tuple(tensor.shape[: tensor.ndim])
        self.strides: tuple[int, ...] | None = (
            tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
        )
        self.writable = not (isinstance(managed, _Versioned) and managed.flags & _READ_ONLY)
        self.dtype = _dtype_of(tensor.dtype)

    def __del__(self) -> None:
        managed = getattr(self, "_managed", None)
        if managed is not None and managed.deleter:
            _Deleter(managed.deleter)(self._pointer)


def _dtype_of(found: _DataType) -> np.dtype[Any]:
    if (found.code, found.bits, found.lanes) == (_BFLOAT, 16, 1):
        return bfloat16()
    kinds = {code: kind for kind, code in _KINDS.items()}
    kind = kinds.get(found.code)
    if kind is None or found.lanes != 1 or found.bits % 8:
        raise ArgumentError(
            f"a DLPack tensor of type code {found.code} with {found.bits} bits and {found.lanes} "
            "lanes has no dtype that kernels can use; convert it first"
        )
    return np.dtype("?" if kind == "b" else f"{kind}{found.bits // 8}")


def imported(get_capsule: Callable[..., object], **options: Any) -> Imported:
    """What ``__dlpack__`` gives, of version 1.0 where the library has that."""
    try:
        capsule = get_capsule(max_version=(1, 0), **options)
    except TypeError:  # a library from before version 1.0 knows no such argument
        capsule = get_capsule(**options)
    return Imported(capsule)
