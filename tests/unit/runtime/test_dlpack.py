"""DLPack capsules of our own, on host memory, which NumPy reads too."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda import foreign
from fusionq.memory.dlpack import HOST, _given, capsule_of, imported
from fusionq.memory.dlpack_arrays import described
from fusionq.memory.gpu_arrays import work_before

DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


class Owner:
    """Keeps memory; can be watched."""

    def __init__(self, array):
        self.array = array


class Ours:
    """An array that shows itself by our capsules."""

    def __init__(self, array, versioned=True, writable=True, owner=None):
        self.array, self.versioned, self.writable = array, versioned, writable
        self.owner = owner or Owner(array)

    def __dlpack__(self, **options):
        array = self.array
        strides = tuple(stride // array.itemsize for stride in array.strides)
        return capsule_of(
            array.ctypes.data, array.shape, strides, array.dtype, (HOST, 0), self.owner,
            self.versioned, self.writable,
        )  # fmt: skip

    def __dlpack_device__(self):
        return HOST, 0


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_reads_our_capsules(dtype, versioned):
    array = np.arange(24).reshape(4, 6).astype(dtype)[::-1, 1:5:2]
    view = np.from_dlpack(Ours(array, versioned))
    assert view.dtype == array.dtype and view.strides == array.strides
    assert np.array_equal(view, array) and np.shares_memory(view, array)


def test_a_capsule_keeps_the_owner_until_the_consumer_is_done():
    ours = Ours(np.arange(3.0))
    owner = weakref.ref(ours.owner)
    view = np.from_dlpack(ours)
    del ours
    gc.collect()
    assert owner() is not None
    assert view[2] == 2
    del view
    gc.collect()
    assert owner() is None and not _given


def test_a_capsule_that_nobody_takes_lets_the_owner_go():
    ours = Ours(np.arange(3.0))
    owner = weakref.ref(ours.owner)
    capsule = ours.__dlpack__()
    del ours
    assert owner() is not None
    del capsule
    assert owner() is None


def test_read_only_memory_needs_version_1():
    array = np.arange(3.0)
    assert not np.from_dlpack(Ours(array, writable=False)).flags.writeable
    with pytest.raises(BufferError, match="max_version"):
        Ours(array, versioned=False, writable=False).__dlpack__()


@pytest.mark.parametrize("dtype", DTYPES)
def test_capsules_of_numpy_are_read(dtype):
    array = np.arange(24).reshape(4, 6).astype(dtype)[:, ::-2]
    found = imported(array.__dlpack__)
    assert (found.address, found.shape, found.dtype) == (array.ctypes.data, (4, 3), array.dtype)
    assert found.strides == tuple(stride // array.itemsize for stride in array.strides)
    assert found.writable


@pytest.mark.parametrize("versioned", [False, True])
def test_what_is_imported_is_given_back(versioned):
    ours = Ours(np.arange(3.0), versioned)
    owner = weakref.ref(ours.owner)
    found = imported(ours.__dlpack__)
    del ours
    gc.collect()
    assert owner() is not None, "the capsule is gone, the import is not"
    del found
    assert owner() is None


def test_a_capsule_is_taken_once():
    capsule = Ours(np.arange(3.0)).__dlpack__()
    first = imported(lambda **options: capsule)
    with pytest.raises(fq.ArgumentError, match="used one"):
        imported(lambda **options: capsule)
    assert first.shape == (3,)


def test_types_that_kernels_have_not_are_refused_and_given_back():
    class Complex:
        def __dlpack__(self, **options):
            return array.__dlpack__(**options)

    array = np.zeros(3, np.complex64)
    references = sys.getrefcount(array)
    with pytest.raises(fq.ArgumentError, match="type code 5 with 64 bits"):
        imported(Complex().__dlpack__)
    gc.collect()
    assert sys.getrefcount(array) == references


def test_a_library_from_before_version_1():
    class Old:
        def __dlpack__(self, stream=None):
            return Ours(array, versioned=False).__dlpack__()

    array = np.arange(3.0)
    assert imported(Old().__dlpack__, stream=7).address == array.ctypes.data


def test_a_buffer_around_an_array_that_has_dlpack_and_nothing_else():
    array = np.arange(6, dtype=np.float32)
    buffer = fq.Buffer(Ours(array), copy=False)
    buffer.write(np.ones(6, np.float32))
    assert np.array_equal(array, np.ones(6)) and buffer.__dlpack_device__() == (1, 0)
    assert np.array_equal(fq.Buffer(Ours(array)).numpy(), array)


def test_other_devices_are_refused():
    class Rocm:
        def __dlpack__(self, **options):
            raise AssertionError("nobody asks")

        def __dlpack_device__(self):
            return 10, 0

    with pytest.raises(fq.ArgumentError, match="device type 10"):
        described(Rocm())


class Shown:
    """Shows itself as memory of a GPU."""

    def __init__(self, **changed):
        self.__cuda_array_interface__ = {
            "data": (0x7F0000000000, False), "shape": (4,), "typestr": "<f4", "version": 3,
        } | changed  # fmt: skip


@fq.kernel
def double(item, a):
    i = item.get_id(0)
    a[i] = a[i] * 2


def test_gpu_arrays_without_a_driver_say_what_is_missing():
    pytest.importorskip("cuda.bindings", reason="the extra cuda is not installed")
    from tests.unit.cuda.test_devices import has_gpu

    if has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(fq.DeviceError, match="NVIDIA driver"):
        fq.FusionQueue("reference").submit(double, 4, Shown())
    with pytest.raises(fq.DeviceError, match="NVIDIA driver"):
        fq.Buffer(Shown(), copy=False)


def test_gpu_arrays_of_old_interfaces_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below version 3 the interface does not say what comes first; JAX's is one."""
    waited: list[object] = []

    class Array:
        def block_until_ready(self) -> None:
            waited.append(self)

    monkeypatch.setattr(foreign, "owner_of", lambda address: f"the GPU of {address}")
    monkeypatch.setattr(foreign, "finish", waited.append)
    array, other = Array(), object()
    for version in ({}, {"version": 2}):
        for value in (array, other):
            assert work_before(value, {"data": (8, False), **version}) is None
    assert waited == [array, "the GPU of 8"] * 2
    for version in ({"version": 3}, {"version": 3, "stream": None}):
        assert work_before(array, {"data": (8, False), **version}) is None
    assert work_before(array, {"data": (0, False), "version": 2}) is None
    assert len(waited) == 4


def test_masked_gpu_arrays_are_refused():
    with pytest.raises(fq.ArgumentError, match="mask"):
        fq.FusionQueue("reference").submit(double, 4, Shown(mask=object()))


def test_a_buffer_on_the_host_is_no_gpu_array():
    buffer = fq.Buffer(np.arange(3.0))
    assert not hasattr(buffer, "__cuda_array_interface__")
    with pytest.raises(fq.DeviceError, match="no CUDA stream"):
        fq.FusionQueue("reference").__cuda_stream__()
