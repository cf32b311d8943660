"""What submit accepts, and what it says of the rest."""

from __future__ import annotations

import enum
import linecache
import sys
from contextlib import nullcontext

import numpy as np
import pytest

import fusionq as fq
from fusionq.memory.fusing_queues import LOCK
from fusionq.runtime import queue as queue_module
from tests.unit.runtime.conftest import empty, floats, interrupted_behind, lock_is_free
from tests.unit.runtime.kernels import (
    add,
    add2d,
    copy,
    increment,
    local_ids,
    put,
    scale,
    shift,
)


def refused(queue, *arguments, error=fq.ArgumentError) -> str:
    """The message; the queue works on."""
    with pytest.raises(error) as caught:
        queue.submit(*arguments)
    message = str(caught.value)
    assert f"{__file__}:" in message
    out = empty()
    queue.submit(put, 8, np.float32(1), out).wait()
    assert out.numpy().all()
    return message


# ----------------------------------------------------------------------------- the kernel
def test_what_is_no_kernel(queue):
    def function(item, out):
        pass

    assert "@fusionq.kernel" in refused(queue, function, 8, empty())
    assert "submit(kernel, range" in refused(queue, 8, copy, empty())
    assert "takes a kernel first, not list" in refused(queue, [copy], 8, empty())


# ------------------------------------------------------------------------------ the range
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_forgotten_range(queue, dtype):
    data = np.zeros(8, dtype)
    assert "not Buffer of shape (8,)" in refused(queue, copy, fq.Buffer(data), empty())
    message = refused(queue, copy, data, empty())
    assert "submit(kernel, range, *args), such as submit(copy, 8, …)" in message


@pytest.mark.parametrize("range", [8, (8,), [8], fq.Range(8), np.int64(8), np.uint8(8)])
def test_ranges(queue, range):
    out = empty()
    queue.submit(put, range, np.float32(2), out).wait()
    assert out.numpy().tolist() == [2] * 8


def test_an_nd_range(queue):
    out = fq.Buffer(8, np.int64)
    queue.submit(local_ids, fq.NdRange(8, 4), out).wait()
    assert out.numpy().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


def test_two_dimensions(queue):
    a = fq.Buffer(np.arange(12.0).reshape(3, 4))
    out = fq.Buffer((3, 4), np.float64)
    for range in ((3, 4), fq.Range(3, 4), (np.int32(3), 4)):
        queue.submit(add2d, range, a, a, out)
        assert np.array_equal(out.numpy(), a.numpy() * 2)
        out.write(np.zeros((3, 4)))


@pytest.mark.parametrize(
    ("range", "message"),
    [
        (8.0, "integers"),
        ("8", "integers|range"),
        (None, "integers|range"),
        (-1, "negative"),
        ((), "1 to 3"),
        ((1, 1, 1, 1), "1 to 3"),
        ((8.0,), "integers"),
        ({}, "integers|range"),
    ],
)
def test_what_is_no_range(queue, range, message):
    text = refused(queue, put, range, np.float32(2), empty())
    assert any(part in text for part in message.split("|"))


def test_ranges_that_compare_equal_are_still_checked(queue):
    a, out = floats(), empty()
    queue.submit(copy, 8, a, out)
    queue.submit(copy, (8,), a, out)
    assert "integers" in refused(queue, copy, 8.0, a, out)
    assert "integers" in refused(queue, copy, (8.0,), a, out)


def test_a_range_of_the_wrong_dimension(queue):
    b = fq.Buffer((2, 2), np.float32)
    text = refused(queue, add2d, 4, b, b, b, error=fq.FusionqError)
    assert "dimension" in text


def test_items_and_nd_ranges_do_not_mix(queue):
    with pytest.raises(fq.KernelLanguageError, match="NdItem has no 'get_id'"):
        queue.submit(copy, fq.NdRange(8, 4), floats(), empty())
    assert "NdRange" in refused(queue, local_ids, 8, fq.Buffer(8, np.int64))


def test_an_empty_range_does_nothing(queue):
    out, tmp = floats(), empty()
    event = queue.submit(increment, 0, out)
    event.wait()
    assert event.is_complete
    before = queue.submit(increment, 8, tmp)
    with fq.fusion(queue) as f:
        queue.submit(increment, 0, out, depends_on=before)
        queue.submit(increment, 0, out)
    f.event.wait()
    assert before.is_complete
    assert out.numpy()[0] == 1


# -------------------------------------------------------------------------- the arguments
def test_the_number_of_arguments(queue):
    assert "takes 3 arguments after its item (a, b, out), not 2" in refused(
        queue, add, 8, floats(), empty()
    )
    assert "not 4" in refused(queue, add, 8, *(floats() for _ in range(4)))


def test_arguments_have_no_names(queue):
    with pytest.raises(fq.ArgumentError, match=r"submit takes no out=….*behind the range"):
        queue.submit(add, 8, floats(), floats(), out=empty())
    assert not queue.is_in_fusion_mode()


@fq.kernel
def with_a_default(item: fq.Item, a, by=1):
    a[item.get_id(0)] += by


@fq.kernel
def with_a_star(item: fq.Item, *arrays):
    arrays[0][item.get_id(0)] += 1


class Method:
    @fq.kernel
    def step(self, item: fq.Item, a):
        a[item.get_id(0)] += 1


@fq.kernel
def with_names_only(item: fq.Item, a, *, by):
    a[item.get_id(0)] += by


def test_names_only_and_stars_do_not_count_as_parameters(queue):
    assert "by name only" in refused(queue, with_names_only, 8, floats(), 3)
    assert "'self' is not bound" in refused(queue, Method().step, 8, floats())
    assert "(a, by=1), not 0" in refused(queue, with_a_default, 8)
    assert "cannot have * or **" in refused(queue, with_a_star, 8, floats())


@pytest.mark.parametrize(
    "wrong", [{1}, ["1.0"], {}, np.clongdouble(1), np.longdouble(1), len]
)
def test_what_is_no_argument(queue, wrong):
    text = refused(queue, scale, 8, floats(), wrong, empty())
    assert "'factor'" in text


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(8, np.clongdouble), "complex"),
        (np.zeros(8, ">f4"), "byte order"),
        (np.zeros(8, object), "object"),
        (np.zeros(()), "0-dimensional"),
        (np.ma.masked_array(np.zeros(8)), "mask"),
    ],
)
def test_arrays_that_are_not_supported(queue, array, message):
    text = refused(queue, copy, 8, array, empty())
    assert "'a'" in text
    assert message in text


@pytest.mark.parametrize(
    "value",
    [True, 3, 2.5, np.bool_(1), np.int8(-3), np.uint64(7), np.float16(0.5), np.float32(3),
     np.float64(0.1)],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_scalars(queue, value):
    out = fq.Buffer(2, np.float64)
    queue.submit(put, 2, value, out).wait()
    assert out.numpy()[1] == float(value)


def test_subclasses_of_int(queue):
    class Size(enum.IntEnum):
        BIG = 5

    out = fq.Buffer(2, np.int64)
    queue.submit(put, 2, Size.BIG, out).wait()
    assert out.numpy().tolist() == [5, 5]


def test_numpy_arrays_without_a_copy(queue):
    a, out = np.arange(8.0)[::-1], np.zeros(16)[::2]
    queue.submit(copy, 8, a, out)
    queue.wait()
    assert np.array_equal(out, a)
    with fq.fusion(queue) as f:
        queue.submit(increment, 8, out)
        queue.submit(increment, 8, out)
    f.event.wait()
    assert f.report.strategy == "fused"
    assert np.array_equal(out, a + 2)


def test_usm_memory_without_a_copy(sycl_queue):
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(8, queue=sycl_queue.sycl_queue)
    content = np.frombuffer(memory, np.uint8)
    content[...] = 3
    sycl_queue.submit(increment, 8, memory)
    sycl_queue.wait()
    assert content.tolist() == [4] * 8


def test_read_only_arrays_can_be_read_but_not_stored_to(queue):
    a = np.arange(8.0)
    a.flags.writeable = False
    out = np.zeros(8)
    queue.submit(copy, 8, a, out).wait()
    assert np.array_equal(out, a)
    assert "read-only" in refused(queue, copy, 8, out, a)
    assert "read-only" in refused(queue, increment, 8, fq.Buffer(a, copy=False))


def test_an_array_that_turns_read_only_is_noticed(queue):
    a, out = np.arange(8.0), np.zeros(8)
    queue.submit(copy, 8, a, out).wait()
    out.flags.writeable = False
    assert "read-only" in refused(queue, copy, 8, a, out)


def test_ints_that_do_not_fit(queue):
    small = fq.Buffer(np.zeros(4, np.int8))
    queue.submit(scale, 4, small, 127, small).wait()
    assert "128" in refused(queue, scale, 4, small, 128, small)
    assert "-129" in refused(queue, scale, 4, small, -129, small)
    assert str(2**63) in refused(queue, shift, 4, small, 2**63, small)
    assert str(2**70) in refused(queue, scale, 4, small, 2**70, small)


def test_an_index_that_provably_exceeds_an_extent(queue):
    a, out = floats(8), empty(8)
    assert "out" in refused(queue, copy, 9, floats(9), out)
    assert "a" in refused(queue, copy, 8, a[:7], out)


def test_the_check_of_indices_sees_every_integer(queue):
    @fq.kernel
    def at(item: fq.Item, index, out):
        out[index] = item.get_id(0)

    for _ in range(2):
        queue.submit(at, 1, 7, fq.Buffer(8, np.int64)).wait()
        refused(queue, at, 1, 8, fq.Buffer(8, np.int64))
        refused(queue, at, 1, 7, fq.Buffer(7, np.int64))


def test_memory_that_the_device_cannot_reach(queue, monkeypatch):
    from dataclasses import replace

    backend = queue._state.launcher.backend
    device = replace(backend.info, host_memory=False)
    monkeypatch.setattr(backend, "target", replace(backend.target, device=device))
    text = refused(queue, copy, 8, np.zeros(8, np.float32), empty(), error=fq.DeviceError)
    assert "host memory" in text
    assert "Buffer" in text


def test_access_arguments(queue):
    a, tmp, out = floats(), empty(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, fq.access(tmp, promote="private"))
        queue.submit(copy, 8, fq.access(tmp, promote="private"), out)
    assert np.array_equal(out.numpy(), a.numpy())
    assert not tmp.is_allocated
    assert [p.scope for p in f.report.promotions] == ["private"]
    queue.submit(copy, 8, fq.access(a), fq.access(tmp, promote="local")).wait()
    assert np.array_equal(tmp.numpy(), a.numpy())


def test_buffers_of_another_backend(target):
    from tests.unit.runtime.conftest import has_sycl

    if not has_sycl():
        pytest.skip("no SYCL device")
    a, out = floats(), empty()
    with fq.FusionQueue("reference") as one, fq.FusionQueue() as two:
        one.submit(copy, 8, a, out)
        two.submit(increment, 8, out)
        one.submit(increment, 8, out)
        assert np.array_equal(out.numpy(), a.numpy() + 2)


def test_kernel_language_errors_pass_through(queue):
    @fq.kernel
    def bad(item: fq.Item, out):
        out[item.get_id(0)] = {1: 2}

    refused(queue, bad, 8, empty(), error=fq.KernelLanguageError)


# --------------------------------------------------------------------------------- labels
def labels(f):
    return [[a.label for a in s.arguments] for s in f.report.submissions]


def test_arguments_are_named_as_in_the_source(queue):
    first, second = floats(), empty()
    buffers = [empty(), empty()]
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, first, second)
        queue.submit(
            scale,
            8,
            second,
            np.float32(2.5),
            buffers[0],
        )
        queue.submit(copy, 8, fq.access(buffers[0]), buffers[1][:])
    assert labels(f) == [
        ["first", "second"],
        ["second", "np.float32(2.5)", "buffers[0]"],
        ["buffers[0]", "buffers[1][:]"],
    ]


def test_arguments_that_have_no_name_are_called_after_the_parameters(queue):
    arguments = (floats(), empty())
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, *arguments)
    assert labels(f) == [["a", "out"]]


def test_two_calls_on_one_line_are_told_apart_where_python_knows_their_places(queue, monkeypatch):
    source = "queue.submit(copy, 8, p, q); queue.submit(copy, 8, q, p)"
    monkeypatch.setitem(linecache.cache, "<cell>", (len(source), None, [source], "<cell>"))
    names = {"queue": queue, "copy": copy, "p": floats(), "q": empty()}
    with fq.fusion(queue) as f:
        exec(compile(source, "<cell>", "exec"), names)
    told = sys.version_info >= (3, 11)
    assert labels(f) == ([["p", "q"], ["q", "p"]] if told else [["a", "out"], ["a", "out"]])
    assert f.report.submissions[0].span.text == source


def test_code_without_source_is_called_after_the_parameters(queue):
    names = {"queue": queue, "copy": copy, "p": floats(), "q": empty()}
    with fq.fusion(queue) as f:
        exec("queue.submit(copy, 8, p, q)", names)
    assert labels(f) == [["a", "out"]]
    assert f.report.submissions[0].span.file == "<string>"


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", ["acquire", "release"])
def test_ctrl_c_leaves_the_lock_free(queue, monkeypatch, name, nested):
    a, out = floats(), empty()
    queue.submit(copy, 8, a, out)
    interrupted = interrupted_behind(getattr(queue_module, name))
    with monkeypatch.context() as patch, LOCK if nested else nullcontext():
        patch.setattr(queue_module, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.submit(copy, 8, a, out)
    assert lock_is_free()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
    assert len(f.report.submissions) == 1


def test_an_error_leaves_the_lock_free(queue):
    a, out = floats(), empty()
    for arguments in ([a], [a, 2.5], [[a], out]):
        with pytest.raises((fq.ArgumentError, fq.KernelLanguageError)):
            queue.submit(copy, 8, *arguments)
        assert lock_is_free()
