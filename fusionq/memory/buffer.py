"""Buffers: memory for kernels, allocated when first needed, with promotion flags."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from fusionq.analysis.submission import Promotion
from fusionq.backends.base import Backend
from fusionq.base.call_site import argument_error, user_span
from fusionq.base.dtypes import as_dtype, is_bfloat16
from fusionq.base.errors import ArgumentError, DeviceError, PromotionConflict
from fusionq.base.options import check_flags, check_names
from fusionq.ir.record_types import Member
from fusionq.memory.array_form import sized_form
from fusionq.memory.buffer_sources import (
    check_same_dtype,
    checked_extents,
    converted_dtype,
    host_contents,
    shared_array,
)
from fusionq.memory.foreign_array import check_dtype, contiguous_strides
from fusionq.memory.fusing_queues import NOTED, end_fusion_where_used, run_noted
from fusionq.memory.host_access import StoredArray, host_array, overwrite
from fusionq.memory.storage import Ownership, Storage
from fusionq.memory.views import BasicIndex, basic_view


def host_backend() -> Backend:
    """The backend that holds memory which no queue has asked for."""
    from fusionq.backends.registry import default_backend

    return default_backend()


class Buffer:
    """An n-dimensional array that kernels read and write; n is 1 or more, zero extents allowed.

    ``Buffer(shape, dtype)``: ``shape`` is an int or a tuple.  Memory is allocated when it is
    first needed, filled with zeros; a promoted buffer never needs it.  Where a launch fails that
    was to be the first to use it, its contents are undefined.

    ``Buffer(array, dtype=None)``: a C-contiguous copy of ``array`` (NumPy's, anything with
    ``__array__``, ``__sycl_usm_array_interface__``, ``__cuda_array_interface__``, ``__dlpack__`` or
    the buffer protocol), converted to ``dtype`` where given.  With ``copy=False`` the array's own
    memory, without a copy; the array then lives as long.

    ``promote_private``, ``promote_local``: the contents need not survive a fused kernel, and are
    wanted in private or local memory; ``internal`` says only the first half.  All views of a
    buffer have its flags.

    dtypes: bool, int8 to int64, uint8 to uint64, float16, float32, float64, complex64, complex128,
    in native byte order, ``ml_dtypes.bfloat16``, also as ``"bfloat16"``, and records of these
    (NumPy's structured dtypes); ``buffer["x"]`` is a view of their field
    ``x``.  Raises ArgumentError, and PromotionConflict if both promotions are asked for.
    """

    __slots__ = (
        "__weakref__",
        "_dtype",
        "_internal",
        "_offset",
        "_ownership",
        "_promotion",
        "_shape",
        "_sized_form",
        "_storage",
        "_strides",
        "_token",
    )

    def __init__(
        self,
        shape_or_array: SupportsIndex | tuple[int, ...] | npt.ArrayLike | Buffer,
        dtype: npt.DTypeLike | None = None,
        *,
        promote_private: bool = False,
        promote_local: bool = False,
        internal: bool = False,
        copy: bool = True,
        **unknown: NoReturn,
    ) -> None:
        flags = {
            "promote_private": promote_private, "promote_local": promote_local,
            "internal": internal, "copy": copy,
        }  # fmt: skip
        if unknown:
            check_names("Buffer", unknown, ("dtype", *flags))
        check_flags("Buffer", flags)
        if promote_private and promote_local:
            raise PromotionConflict(
                f"{user_span()}: a Buffer cannot be promoted to both private and local memory; "
                "give one of promote_private and promote_local, or internal=True to leave the "
                "choice to the analysis"
            )
        self._promotion: Promotion | None = (
            "private" if promote_private else "local" if promote_local else None
        )
        self._internal = bool(internal)
        wanted = None
        try:
            wanted = None if dtype is None else check_dtype(as_dtype(dtype))
            if isinstance(shape_or_array, (int, np.integer, np.bool_, tuple)):
                self._init_empty(shape_or_array, wanted)
            elif copy:
                self._init_copy(shape_or_array, wanted)
            else:
                self._init_adopted(shape_or_array, wanted)
        except (ArgumentError, TypeError) as error:
            raise argument_error(str(error)) from None

    def _init_empty(self, shape: Any, dtype: np.dtype[Any] | None) -> None:
        extents = checked_extents(shape, dtype)
        assert dtype is not None
        strides = contiguous_strides(extents, dtype.itemsize)
        storage = Storage(prod(extents) * dtype.itemsize)
        self._set_view(Ownership(storage), extents, strides, 0, dtype)

    def _init_copy(self, array: Any, dtype: np.dtype[Any] | None) -> None:
        source = array.numpy() if isinstance(array, Buffer) else host_contents(array)
        target = converted_dtype(source.dtype, dtype)
        self._init_empty(source.shape, target)
        self._allocate(zeros=False)
        overwrite(self._stored, source, "same_kind")

    def _init_adopted(self, array: Any, dtype: np.dtype[Any] | None) -> None:
        if isinstance(array, Buffer):
            check_same_dtype(array.dtype, dtype)
            self._set_view(
                array._ownership, array._shape, array._strides, array._offset, array._dtype
            )
            return
        stored = shared_array(array, dtype)
        self._set_view(
            Ownership(stored.storage), stored.shape, stored.strides, stored.offset, stored.dtype
        )

    def _set_view(
        self,
        ownership: Ownership,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        dtype: np.dtype[Any],
    ) -> None:
        self._ownership = ownership
        self._storage = ownership.storage
        self._shape = shape
        self._strides = strides
        self._offset = offset
        self._dtype = dtype
        storage = self._storage
        kind: Hashable = dtype.char
        if dtype.names is not None:
            self.__class__, kind = RecordBuffer, dtype
        else:
            start = offset if storage.owned else self._start
            flags = self._promotion, self._internal, storage.owned, storage.writable
            self._sized_form = sized_form(shape, strides, dtype, start, flags)
        self._token = storage.view_token(
            (shape, strides, offset, kind, self._promotion, self._internal)
        )

    # ------------------------------------------------------------------ description
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances in bytes between neighbours in each dimension."""
        return self._strides

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' type."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self._dtype.itemsize

    @property
    def is_allocated(self) -> bool:
        """Whether there is memory behind this buffer; a promoted one needs none."""
        return self._storage.address is not None

    @property
    def promote_private(self) -> bool:
        """Whether the user wants the contents in private memory."""
        return self._promotion == "private"

    @property
    def promote_local(self) -> bool:
        """Whether the user wants the contents in local memory."""
        return self._promotion == "local"

    @property
    def internal(self) -> bool:
        """Whether the contents need not survive a fused kernel."""
        return self._internal

    if not TYPE_CHECKING:  # for types there are no others

        def __getattr__(self, name: str) -> NoReturn:
            """The error for an attribute that there is not, with what to write instead."""
            if name.startswith("__"):  # what a property says is lost here: ask it again
                return object.__getattribute__(self, name)
            from fusionq.base.attributes_meant import OF_BUFFERS, no_attribute

            raise no_attribute(self, name, OF_BUFFERS)

    def __len__(self) -> int:
        return self._shape[0]

    def __bool__(self) -> NoReturn:
        raise argument_error(
            f"a Buffer is neither true nor false: {self!r}; ask for its contents, which waits for "
            "the kernels that write them, e.g. buffer.numpy()[0] or buffer.numpy().any(), or for "
            "what else is meant: `buffer is not None`, len(buffer)"
        )

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise argument_error(
            f"elements of {self!r} are written by kernels, or on the host once what uses them has "
            "run: numpy() is an array that shares its memory where the host sees that, as on a "
            "CPU, host_task() of a queue hands on one on every device, write() replaces all of it, "
            "fill() and memcpy() of a queue join the kernels"
        )

    def __repr__(self) -> str:
        flags = [f"promote_{self._promotion}=True"] if self._promotion else []
        flags += ["internal=True"] if self._internal else []
        state = "" if self.is_allocated else ", not allocated"
        return f"<Buffer {', '.join([str(self._shape), str(self._dtype), *flags])}{state}>"

    # ---------------------------------------------------------------------- contents
    def numpy(self) -> npt.NDArray[Any]:
        """The contents as a NumPy array that shares the memory (no copy) where the host sees it,
        as on a CPU; a read-only copy where it does not (``write`` and ``host_task`` write there).

        Waits for the kernels that use the buffer, and ends fusion mode where a list uses it.
        Kernels submitted later write to the same memory: copy what must not change.  The array
        keeps the memory alive.  A buffer that moves to a device which cannot reach its memory
        shares it with the array no longer: an ArrayDetached warning says so.
        """
        self._synchronize("Buffer.numpy() of a buffer that the list uses")
        return host_array(self._stored)

    def write(self, array: npt.ArrayLike) -> None:
        """Overwrite the contents with ``array``, of the same shape and of a dtype that converts
        without loss (NumPy's "safe" casting); ArgumentError otherwise.

        Waits for the kernels that use the buffer, and ends fusion mode where a list uses it.
        """
        source = np.asarray(array)
        if source.shape != self._shape:
            raise argument_error(
                f"a Buffer of shape {self._shape} cannot be written from an array of shape "
                f"{source.shape}; slice the Buffer or reshape the array"
            )
        if not np.can_cast(source.dtype, self._dtype, "safe"):
            raise argument_error(
                f"a Buffer of {self._dtype} cannot be written from {source.dtype} without loss; "
                f"convert the array with .astype(np.{self._dtype})"
            )
        if not self._storage.writable:
            raise argument_error("this Buffer's memory was adopted from a read-only array")
        whole = self.nbytes == self._storage.nbytes and self.size > 0
        self._synchronize("Buffer.write() to a buffer that the list uses", zeros=not whole)
        overwrite(self._stored, source, "safe")

    def _end_fusion(self, cause: str) -> None:
        """End the fusion modes that use this buffer."""
        if NOTED:
            run_noted()
        end_fusion_where_used(self._storage.region, cause)

    def _synchronize(self, cause: str, zeros: bool = True) -> None:
        """End the fusion modes that use this buffer, allocate it, wait for its kernels."""
        self._end_fusion(cause)
        storage = self._storage
        self._allocate(zeros)
        storage.wait()

    def _allocate(self, zeros: bool = True) -> None:
        """Let the buffer have memory; DeviceError, which names it, if there is not enough."""
        if self._storage.address is None:
            try:
                self._storage.allocate(host_backend(), zeros)
            except DeviceError as error:
                raise DeviceError(f"{user_span()}: {self!r}: {error}") from None

    @property
    def _start(self) -> int:
        """The address of the first element; before there is memory, which begins at a multiple of
        every size, its distance from the start."""
        return (self._storage.address or 0) + self._offset

    @property
    def _stored(self) -> StoredArray:
        return StoredArray(self._storage, self._shape, self._strides, self._offset, self._dtype)

    # ------------------------------------------------------------------------- views
    def __getitem__(self, key: BasicIndex | tuple[BasicIndex, ...] | str) -> Buffer:
        """A view that shares this buffer's memory and has its flags: integers, slices (also with
        negative steps) and ``...``, as in NumPy, at least one dimension must remain; the name of a
        field of records."""
        if isinstance(key, str):
            return self._field(key)
        try:
            shape, strides, distance = basic_view(key, self._shape, self._strides)
        except ArgumentError as error:
            raise argument_error(str(error)) from None
        return self._view(shape, strides, distance, self._dtype)

    def _view(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        distance: int,
        dtype: np.dtype[Any],
    ) -> Buffer:
        """A view whose first element is ``distance`` bytes behind this buffer's."""
        view = object.__new__(Buffer)
        view._promotion, view._internal = self._promotion, self._internal
        view._set_view(self._ownership, shape, strides, self._offset + distance, dtype)
        return view

    def _field(self, name: str) -> Buffer:
        """The field of the records."""
        known = self._dtype.names or ()
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            its = f"its fields are {', '.join(known)}" if known else "its elements have no fields"
            raise argument_error(f"this Buffer has no field {name!r}{hint} ({its})")
        assert self._dtype.fields is not None
        whole, offset, *_ = self._dtype.fields[name]
        dtype, shape = (whole, ()) if whole.subdtype is None else whole.subdtype
        inner = contiguous_strides(shape, dtype.itemsize)
        return self._view(self._shape + shape, self._strides + inner, offset, dtype)

    __iter__ = None

    # ------------------------------------------------------------------------ copies
    def __copy__(self) -> Buffer:
        """A Buffer with the same contents and flags and memory of its own; waits like
        ``numpy()``."""
        return Buffer(self.numpy(), **self._flags)

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled are the contents and the flags; waits like ``numpy()``."""
        return _made_again, (np.array(self.numpy()), self._flags)

    @property
    def _flags(self) -> dict[str, Any]:
        return {
            "promote_private": self._promotion == "private",
            "promote_local": self._promotion == "local",
            "internal": self._internal,
        }

    # --------------------------------------------------------------------- protocols
    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """As ``numpy()``; a copy where ``copy`` or another ``dtype`` asks for one."""
        array = self.numpy()
        if copy is False and self._storage.host_bytes() is None:
            raise ValueError("the host does not see this Buffer's memory; it takes a copy")
        if dtype is not None and np.dtype(dtype) != self._dtype:
            if copy is False:
                raise ValueError(f"a Buffer of {self._dtype} is no {np.dtype(dtype)} without copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """The memory for dpctl, dpnp and numba-dpex (strides in elements), after waiting for the
        kernels that use it; AttributeError where the memory is not USM, or of bfloat16, which they
        have not."""
        if is_bfloat16(self._dtype):
            raise AttributeError("dpctl's arrays have no bfloat16")
        from fusionq.memory.exported import usm_interface

        self._synchronize("__sycl_usm_array_interface__ of a buffer that the list uses")
        return usm_interface(self._stored)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory for CuPy, PyTorch, JAX and numba-cuda (version 3: with the stream whose work
        has to come before); AttributeError where the memory is not a GPU's."""
        from fusionq.memory.exported import cuda_interface

        self._end_fusion("__cuda_array_interface__ of a buffer that the list uses")
        return cuda_interface(self._stored)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory as a DLPack capsule: a GPU's where it is there, after whose kernels the
        consumer's ``stream`` then waits, else the host's, as of ``numpy().__dlpack__``.  A copy on
        the host where ``dl_device`` asks for it."""
        from fusionq.memory.dlpack import GPU, HOST
        from fusionq.memory.exported import gpu_capsule, host_dlpack

        self._end_fusion("__dlpack__ of a buffer that the list uses")
        gpu = self._storage.gpu
        if gpu is None or dl_device == (HOST, 0):
            array = self.numpy() if gpu is None else np.array(self.numpy())
            return host_dlpack(array, max_version, dl_device, copy)
        if dl_device not in (None, (GPU, gpu)):
            raise BufferError(f"this Buffer is on cuda:{gpu}, not on DLPack's device {dl_device}")
        if copy:
            raise BufferError("this Buffer's capsule shares its memory; copy the array made of it")
        return gpu_capsule(self._stored, self._ownership, stream, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type and number of the device: (2, number) of a GPU, else the host's, (1, 0)."""
        from fusionq.memory.dlpack import GPU, HOST

        gpu = self._storage.gpu
        return (HOST, 0) if gpu is None else (GPU, gpu)


class RecordBuffer(Buffer):
    """A Buffer of records, which ``submit`` takes for one array argument for each field."""

    __slots__ = ()

    def member(self, member: Member) -> Buffer:
        """A field, or a field of a field, that is no record itself."""
        return self._view(
            self._shape + member.shape,
            self._strides + member.strides,
            member.offset,
            member.dtype,
        )


def _made_again(contents: npt.NDArray[Any], flags: dict[str, Any]) -> Buffer:
    return Buffer(contents, **flags)
