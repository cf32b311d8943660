from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fusionq as fq
from fusionq.memory.storage import Storage
from tests.unit.runtime.conftest import has_sycl
from tests.unit.runtime.kernels import copy

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
]  # fmt: skip


# ------------------------------------------------------------------------------- making
def test_a_buffer_from_a_shape_has_no_memory_until_it_is_needed():
    b = fq.Buffer((3, 4), np.int16)
    assert (b.shape, b.dtype, b.nbytes, b.ndim, b.size, len(b)) == ((3, 4), np.int16, 24, 2, 12, 3)
    assert not b.is_allocated
    assert "not allocated" in repr(b)
    assert np.array_equal(b.numpy(), np.zeros((3, 4), np.int16))
    assert b.is_allocated
    assert "not allocated" not in repr(b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_buffer_from_an_array_is_a_copy(dtype):
    array = np.arange(6).astype(dtype).reshape(2, 3)
    b = fq.Buffer(array)
    array[...] = array.dtype.type(1)
    assert b.dtype == np.dtype(dtype)
    assert np.array_equal(b.numpy(), np.arange(6).astype(dtype).reshape(2, 3))


def test_a_copy_is_contiguous_whatever_the_array_was():
    array = np.asfortranarray(np.arange(12.0).reshape(3, 4))[::-1, ::2]
    b = fq.Buffer(array)
    assert np.array_equal(b.numpy(), array)
    assert b.numpy().flags.c_contiguous


def test_a_given_dtype_converts():
    b = fq.Buffer(np.array([1.5, 2.5]), np.float32)
    assert b.dtype == np.float32
    assert b.numpy().tolist() == [1.5, 2.5]


def test_a_conversion_across_kinds_is_refused():
    with pytest.raises(fq.ArgumentError, match="does not convert to int32"):
        fq.Buffer(np.array([1.5]), np.int32)


@pytest.mark.parametrize(
    "dtype", [np.clongdouble, ">f4", object, "U3", "M8[s]", np.longdouble, [("a", "S4")]]
)
def test_other_dtypes_are_refused_with_the_list_of_what_is_allowed(dtype):
    with pytest.raises(fq.ArgumentError, match=r"int8.*complex128"):
        fq.Buffer(3, dtype)
    with pytest.raises(fq.ArgumentError, match=r"int8.*float64"):
        fq.Buffer(np.zeros(3, dtype))


def test_big_endian_arrays_are_told_why():
    with pytest.raises(fq.ArgumentError, match="byte order"):
        fq.Buffer(np.zeros(3, ">i4"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "needs a dtype"),
        (((), np.float32), "at least one dimension"),
        ((np.float32(3.0),), "0-dimensional|at least one dimension"),
        ((np.zeros(()),), "at least one dimension"),
        ((-1, np.float32), "negative"),
        (((2, -3), np.float32), "negative"),
        ((([1, 2, 3]),), "from an array, not from list"),
        (("abc",), "not from str"),
        (((2.5,), np.float32), "integer"),
        ((3, "floaty"), "such as numpy.float32"),
    ],
)
def test_what_is_no_shape_and_no_array_is_refused(arguments, message):
    with pytest.raises(fq.ArgumentError, match=message) as caught:
        fq.Buffer(*arguments)
    assert f"{__file__}:" in str(caught.value)


def test_both_promotions_are_a_conflict():
    with pytest.raises(fq.PromotionConflict, match="private and local"):
        fq.Buffer(3, np.float32, promote_private=True, promote_local=True)


@pytest.mark.parametrize("shape", [0, (0, 3), (3, 0)])
def test_zero_extents_are_allowed(shape, queue):
    b = fq.Buffer(shape, np.float32)
    assert b.nbytes == 0
    assert b.numpy().shape == b.shape
    assert fq.Buffer(np.zeros(shape, np.float32)).shape == b.shape
    assert fq.Buffer(np.zeros(shape, np.float32), copy=False).numpy().size == 0
    b.write(np.zeros(shape, np.float32))


def test_a_buffer_is_not_iterable():
    with pytest.raises(TypeError):
        iter(fq.Buffer(3, np.float32))


# ----------------------------------------------------------------------------- adopting
def test_copy_false_shares_a_numpy_array():
    array = np.arange(6.0)
    b = fq.Buffer(array, copy=False)
    assert b.is_allocated
    array[0] = 7
    assert b.numpy()[0] == 7
    b.write(np.zeros(6))
    assert array[5] == 0


@pytest.mark.parametrize(
    "cut", [np.s_[::2], np.s_[::-1], np.s_[5:1:-2], np.s_[2:], np.s_[1:1]], ids=str
)
def test_copy_false_shares_strided_arrays(cut):
    array = np.arange(8.0)
    b = fq.Buffer(array[cut], copy=False)
    assert np.array_equal(b.numpy(), array[cut])
    if array[cut].size:
        assert np.shares_memory(b.numpy(), array)


def test_copy_false_keeps_the_array_alive():
    array = np.arange(6.0)
    b = fq.Buffer(array, copy=False)
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is not None
    assert b.numpy()[5] == 5
    del b
    gc.collect()
    assert alive() is None


def test_copy_false_cannot_convert():
    with pytest.raises(fq.ArgumentError, match="cannot convert"):
        fq.Buffer(np.zeros(3), np.float32, copy=False)


def test_copy_false_of_a_buffer_shares_it_with_other_flags():
    b = fq.Buffer(4, np.float32)
    other = fq.Buffer(b, copy=False, promote_private=True)
    other.write(np.ones(4, np.float32))
    assert b.numpy().tolist() == [1, 1, 1, 1]
    assert other.promote_private
    assert not b.promote_private


def test_a_read_only_array_gives_a_buffer_that_cannot_be_written():
    array = np.arange(3.0)
    array.flags.writeable = False
    b = fq.Buffer(array, copy=False)
    assert not b.numpy().flags.writeable
    with pytest.raises(fq.ArgumentError, match="read-only"):
        b.write(np.zeros(3))


def test_misaligned_arrays_are_adopted():
    array = np.zeros(17, np.uint8)[1:].view(np.float32)
    adopted = fq.Buffer(array, copy=False)
    adopted.write(np.arange(4, dtype=np.float32))
    assert array.tolist() == adopted[::-1].numpy()[::-1].tolist() == [0, 1, 2, 3]


def test_masked_arrays_are_refused():
    with pytest.raises(fq.ArgumentError, match="mask"):
        fq.Buffer(np.ma.masked_array([1.0], [True]), copy=False)


def test_usm_memory_is_adopted_without_a_copy(sycl_queue):
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(16, queue=sycl_queue.sycl_queue)
    b = fq.Buffer(memory, copy=False)
    assert (b.shape, b.dtype) == ((16,), np.uint8)
    b.write(np.arange(16, dtype=np.uint8))
    assert np.frombuffer(memory, np.uint8)[9] == 9
    assert b.__sycl_usm_array_interface__["data"][0] == memory._pointer
    copied = fq.Buffer(memory)
    assert np.array_equal(copied.numpy(), b.numpy())
    assert not np.shares_memory(copied.numpy(), b.numpy())


class Usm:
    """A strided array over dpctl memory, as dpnp's are."""

    def __init__(self, memory, **interface):
        self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | interface
        self.memory = memory


def test_usm_strides_and_offset_count_elements(sycl_queue):
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(64, queue=sycl_queue.sycl_queue)
    content = np.frombuffer(memory, np.float32)
    content[...] = np.arange(16)
    array = Usm(
        memory, typestr="<f4", shape=(3, 2), strides=(-4, 2), offset=9, data=(memory._pointer, 0)
    )
    wanted = [[9, 11], [5, 7], [1, 3]]
    assert fq.Buffer(array).numpy().tolist() == wanted
    adopted = fq.Buffer(array, copy=False)
    assert adopted.numpy().tolist() == wanted
    interface = adopted.__sycl_usm_array_interface__
    assert interface["strides"] == (-4, 2)
    assert interface["data"][0] == memory._pointer + 36


# ------------------------------------------------------------------------------- writing
def test_write_checks_shape_and_dtype():
    b = fq.Buffer((2, 3), np.float32)
    with pytest.raises(fq.ArgumentError, match=r"\(2, 3\).*\(3, 2\)"):
        b.write(np.zeros((3, 2), np.float32))
    with pytest.raises(fq.ArgumentError, match=r"without loss.*astype\(np\.float32\)"):
        b.write(np.zeros((2, 3)))
    b.write(np.full((2, 3), 2, np.int16))
    assert b.numpy().tolist() == [[2, 2, 2], [2, 2, 2]]


def test_writing_part_of_a_fresh_buffer_leaves_zeros():
    b = fq.Buffer(4, np.int32)
    b[1:3].write(np.array([5, 6], np.int32))
    assert b.numpy().tolist() == [0, 5, 6, 0]


def test_writing_to_a_repeating_view_does_not_count_as_the_whole():
    b = fq.Buffer(4, np.int32)
    b[::-1].write(np.array([1, 2, 3, 4], np.int32))
    assert b.numpy().tolist() == [4, 3, 2, 1]


# --------------------------------------------------------------------------------- views
CUTS = [
    np.s_[2:5], np.s_[::-1], np.s_[4:0:-2], np.s_[...], np.s_[3], np.s_[-1], np.s_[:, 1],
    np.s_[1:4, ::-1], np.s_[..., 2], np.s_[2, ...], np.s_[5:2], np.s_[:, 3:0:-1],
    np.s_[np.int64(1)], np.s_[-100:100], np.s_[1:, -2:],
]  # fmt: skip


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_views_are_numpys(cut):
    array = np.arange(24, dtype=np.int32).reshape(6, 4)
    b = fq.Buffer(array)
    assert np.array_equal(b[cut].numpy(), array[cut])
    assert b[cut].shape == array[cut].shape
    assert b[cut].strides == array[cut].strides or 0 in array[cut].shape


@pytest.mark.parametrize("first", CUTS, ids=str)
def test_views_of_views(first):
    array = np.arange(24, dtype=np.int32).reshape(6, 4)
    b, wanted = fq.Buffer(array)[first], array[first]
    assert np.array_equal(b[::-1].numpy(), wanted[::-1])
    assert np.array_equal(b[..., 1:].numpy(), wanted[..., 1:])


def test_views_share_memory_and_flags():
    b = fq.Buffer((4, 4), np.float32, promote_private=True, internal=True)
    view = b[1:3, ::-1]
    assert view.promote_private
    assert view.internal
    assert not view.promote_local
    view.write(np.ones((2, 4), np.float32))
    assert b.numpy().sum() == 8
    assert b.is_allocated


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ([0, 1], "integers, slices"),
        (np.array([True] * 4), "integers, slices"),
        (None, "integers, slices"),
        (True, "integers, slices"),
        (7, "out of bounds"),
        (-5, "out of bounds"),
        ((0, 0, 0), "too many"),
        ((..., ...), "too many"),
        ((0, 0), "one element"),
    ],
)
def test_other_indices_are_refused(cut, message):
    with pytest.raises(fq.ArgumentError, match=message):
        fq.Buffer((4, 4), np.float32)[cut]


def test_equal_views_have_one_token_and_others_another():
    b = fq.Buffer(8, np.float32)
    others = [b, b[1:], b[:-1], b[::-1], fq.Buffer(8, np.float32)]
    assert b[1:]._token == b[1:]._token
    assert len({other._token for other in others}) == 5


# ----------------------------------------------------------------------------- protocols
def test_numpy_sees_the_memory_itself():
    b = fq.Buffer(np.arange(4.0))
    assert np.shares_memory(np.asarray(b), b.numpy())
    assert not np.shares_memory(np.array(b), b.numpy())
    assert np.asarray(b, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without copy"):
        b.__array__(np.float32, copy=False)


def test_the_numpy_view_keeps_the_memory():
    b = fq.Buffer(np.arange(1000.0))
    view = b.numpy()
    del b
    gc.collect()
    fq.Buffer(1000, np.float64).numpy()[...] = -1
    assert view[999] == 999


def test_dlpack():
    b = fq.Buffer(np.arange(4.0))
    assert b.__dlpack_device__() == (1, 0)
    assert np.shares_memory(np.from_dlpack(b), b.numpy())


def test_the_usm_interface_describes_the_view(sycl_queue):
    import dpctl.memory

    b = fq.Buffer(np.arange(16, dtype=np.float32))
    interface = b[2::2].__sycl_usm_array_interface__
    assert interface["shape"] == (7,)
    assert interface["strides"] == (2,)
    assert interface["typestr"] == "<f4"
    memory = dpctl.memory.as_usm_memory(b)
    assert memory.get_usm_type() == "shared"
    assert np.frombuffer(memory.copy_to_host(), np.float32)[3] == 3


def test_ordinary_memory_has_no_usm_interface():
    assert not hasattr(fq.Buffer(np.arange(4.0), copy=False), "__sycl_usm_array_interface__")


# --------------------------------------------------------------------------------- access
def test_access_checks_its_arguments():
    b = fq.Buffer(4, np.float32, promote_private=True)
    assert fq.access(b).promote is None
    assert fq.access(b, "private").promote == "private"
    with pytest.raises(fq.PromotionConflict, match=r"test_buffer\.py:.*promote_private"):
        fq.access(b, promote="local")
    with pytest.raises(fq.ArgumentError, match="'private', 'local' or None"):
        fq.access(b, promote="shared")
    with pytest.raises(fq.ArgumentError, match="takes a Buffer"):
        fq.access("text")


# ----------------------------------------------------------------------------------- life
def test_storages_die_with_their_last_buffer(queue):
    before = sum(type(o) is Storage for o in gc.get_objects())
    b = fq.Buffer(np.arange(8, dtype=np.float32))
    out = fq.Buffer(8, np.float32)
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, b, out)
    f.event.wait()
    queue.submit(copy, 8, out, b)
    queue.wait()
    storages = [weakref.ref(b._storage), weakref.ref(out._storage)]
    view = b[1:]
    del b, out
    gc.collect()
    assert None not in [storage() for storage in storages]  # the fusion may be replayed
    del f
    gc.collect()
    assert storages[0]() is not None
    assert storages[1]() is None
    del view
    gc.collect()
    assert storages[0]() is None
    assert sum(type(o) is Storage for o in gc.get_objects()) <= before


def test_memory_of_the_default_device_is_usm():
    if not has_sycl():
        pytest.skip("no SYCL device")
    assert hasattr(fq.Buffer(4, np.float32), "__sycl_usm_array_interface__")


def test_reversed_views_of_empty_buffers(queue):
    empty_one = fq.Buffer((4, 0, 2), np.float32)[::-1, ::-1, ::-1]
    assert empty_one.numpy().shape == (4, 0, 2)
    queue.fill(empty_one, 1)
