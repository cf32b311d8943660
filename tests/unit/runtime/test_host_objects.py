"""Objects of the host that show their memory, as arguments without a copy."""

import array
import ctypes
import gc

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.test_dlpack import Ours


@fq.kernel
def double(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] + a[i]


class Interface:
    """Shows an array by ``__array_interface__`` and in no other way."""

    def __init__(self, values):
        self.values = values

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


class Capsule:
    """Shows an array by DLPack and in no other way."""

    def __init__(self, values, device=(1, 0), error=None):
        self.values, self.device, self.error = values, device, error

    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def ctypes_array():
    return (ctypes.c_int * 4)(*range(4))


def cut_view():
    return memoryview(array.array("i", range(8)))[::2]


WRITABLE = {
    "array.array": lambda: array.array("i", range(4)),
    "ctypes": ctypes_array,
    "bytearray": lambda: memoryview(bytearray(16)).cast("i"),
    "strided memoryview": cut_view,
    "__array_interface__": lambda: Interface(np.arange(4, dtype=np.int32)),
    "__dlpack__": lambda: Capsule(np.arange(4, dtype=np.int32)),
    "__dlpack__ of before 1.0": lambda: Ours(np.arange(4, dtype=np.int32), False),
    "__dlpack__ of 1.0": lambda: Ours(np.arange(4, dtype=np.int32), True),
}


def contents(value):
    shown = getattr(value, "values", getattr(value, "array", None))
    return shown.tolist() if shown is not None else np.asarray(value).tolist()


@pytest.mark.parametrize("kind", WRITABLE)
def test_written_in_place(queue, kind):
    value, a = WRITABLE[kind](), np.array([5, -1, 7, 3], np.int32)
    for _ in range(2):  # the second finds the first's checks
        queue.submit(double, 4, a, value)
        queue.wait()
        assert contents(value) == [10, -2, 14, 6]
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(double, 4, value, a)
        queue.submit(double, 4, a, value)
    f.event.wait()
    assert contents(value) == [40, -8, 56, 24]
    assert len(f.report.stages) == 1


READ_ONLY = {
    "bytes": lambda: memoryview(bytes(range(16))).cast("i"),
    "read-only memoryview": lambda: memoryview(array.array("i", range(4))).toreadonly(),
    "read-only __array_interface__": lambda: Interface(frozen(np.arange(4, dtype=np.int32))),
    "read-only __dlpack__": lambda: Ours(np.arange(4, dtype=np.int32), True, writable=False),
}


def frozen(values):
    values.flags.writeable = False
    return values


@pytest.mark.parametrize("kind", READ_ONLY)
def test_read_only_ones_are_read(queue, kind):
    value, out = READ_ONLY[kind](), fq.Buffer(4, np.int32)
    queue.submit(double, 4, value, out)
    wanted = [2 * x for x in contents(value)]
    assert out.numpy().tolist() == [np.int32(x) for x in wanted]
    with pytest.raises(fq.ArgumentError, match="which is a read-only array"):
        queue.submit(double, 4, out, READ_ONLY[kind]())


def test_bytes_are_unsigned_and_text_is_no_array(queue):
    out = fq.Buffer(3, np.uint8)
    queue.submit(double, 3, b"\x01\x02\x7f", out)
    assert out.numpy().tolist() == [2, 4, 254]
    with pytest.raises(fq.KernelLanguageError, match="the string 'abc' cannot be indexed"):
        queue.submit(double, 3, "abc", out)
    with pytest.raises(fq.ArgumentError, match="arrays of dtype"):
        queue.submit(double, 3, memoryview(b"abc").cast("c"), out)


def test_what_does_not_show_its_memory_says_why(queue):
    out = fq.Buffer(4, np.int32)
    for error in (BufferError("it requires a gradient"), RuntimeError("it was moved")):
        with pytest.raises(fq.ArgumentError, match=f"Capsule does not show its memory: {error}"):
            queue.submit(double, 4, Capsule(np.arange(4), error=error), out)
    with pytest.raises(fq.ArgumentError, match="argument 'a' is of type Capsule"):
        queue.submit(double, 4, Capsule(np.arange(4), device=(7, 0)), out)
    view = memoryview(bytearray(8)).cast("i")
    view.release()
    with pytest.raises(fq.ArgumentError, match="does not show its memory: operation forbidden"):
        queue.submit(double, 2, view, out)


def test_what_a_kernel_uses_is_kept_alive(queue):
    out = fq.Buffer(4, np.int32)
    with fq.fusion(queue):
        queue.submit(double, 4, array.array("i", [1, 2, 3, 4]), out)
        gc.collect()
    assert out.numpy().tolist() == [2, 4, 6, 8]
    grown = bytearray(16)
    with fq.fusion(queue):
        queue.submit(double, 4, memoryview(grown).cast("i"), out)
        with pytest.raises(BufferError):
            grown.append(1)


def test_commands_and_buffers_take_them(queue):
    source, target = array.array("f", [1, 2, 3]), bytearray(12)
    queue.memcpy(memoryview(target).cast("f"), source)
    assert bytes(target) == source.tobytes()
    queue.fill(source, 7)
    assert source.tolist() == [7, 7, 7]
    adopted = fq.Buffer(source, copy=False)
    adopted.write(np.float32([4, 5, 6]))
    assert source.tolist() == [4, 5, 6] and fq.Buffer(source).numpy().tolist() == [4, 5, 6]


def test_overlapping_views_of_one_memory_are_seen(queue):
    """Two memoryviews of one bytearray: the second kernel reads what the first has written."""
    memory = bytearray(np.arange(8, dtype=np.int32).tobytes())
    view, out = memoryview(memory).cast("i"), fq.Buffer(4, np.int32)
    with fq.fusion(queue) as f:
        queue.submit(double, 4, view[:4], view[4:])
        queue.submit(double, 4, view[3:7], out)
    assert out.numpy().tolist() == [6, 0, 4, 8]
    assert f.report.dependences


def test_access_of_other_arrays(queue):
    """A NumPy array, and what shows its memory, promoted in one list; its memory stays as it
    was."""
    a, out = np.arange(4, dtype=np.int32), fq.Buffer(4, np.int32)
    for middle in (np.full(4, -1, np.int32), array.array("i", [-1] * 4)):
        with fq.fusion(queue, strategy="fused", require=True) as f:
            queue.submit(double, 4, a, fq.access(middle, promote="private"))
            queue.submit(double, 4, fq.access(middle, promote="private"), out)
        assert out.numpy().tolist() == [0, 4, 8, 12]
        assert [p.scope for p in f.report.promotions] == ["private"]
        assert list(middle) == [-1] * 4
    queue.submit(double, 4, fq.access(a), out)
    assert out.numpy().tolist() == [0, 2, 4, 6]
    for wrong in ("text", 3, [1, 2], None):
        with pytest.raises(fq.ArgumentError, match=r"access\(\) takes a Buffer or an array"):
            fq.access(wrong)
    with pytest.raises(fq.ArgumentError, match="arrays of dtype"):
        fq.access(np.zeros(3, "M8[s]"))
