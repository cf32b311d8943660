"""memcpy and fill as members of a list: kernels among kernels, with NumPy's results."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.types import SCALAR_TYPES
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment, reverse, scale


@pytest.fixture(autouse=True)
def _nothing_ends_fusion_mode():
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        yield


def test_copies_and_fills_are_one_kernel_with_what_is_around_them(queue):
    a, tmp, b, out = floats(), empty(promote_private=True), empty(), empty()
    with fq.fusion(queue, require=True) as f:
        queue.fill(out, 2)
        queue.submit(copy, 8, a, tmp)
        queue.memcpy(b, tmp)
        queue.submit(add, 8, b, out, out)
        last = queue.memcpy(a, out)
    assert f.report.strategy == "fused"
    assert [p.scope for p in f.report.promotions] == ["private"]
    assert not tmp.is_allocated
    assert [k.kernel for k in f.report.stages[0].kernels] == [
        "fill_1d", "copy", "copy_1d", "add", "copy_1d"
    ]  # fmt: skip
    assert {d.buffer for d in f.report.dependences} == {"a", "tmp", "b", "out"}
    last.wait()
    assert a.numpy().tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
    f.replay().wait()
    assert a.numpy().tolist() == [5, 6, 7, 8, 9, 10, 11, 12]


def test_a_fill_takes_another_value_in_a_replay(queue):
    level, out = np.float32(3), empty()
    with fq.fusion(queue) as f:
        queue.fill(out, level)
    f.replay(level=np.float32(4)).wait()
    assert out.numpy().tolist() == [4] * 8
    with pytest.raises(fq.ArgumentError, match="takes a float32"):
        f.replay(level=4)


def views(array):
    """Pairs of views of one array of 15 elements, target first, that have some in common."""
    return [
        (array[1:], array[:-1]),
        (array[:-1], array[1:]),
        (array[3:], array[:-3]),
        (array[:], array[:]),
        (array[:], array[::-1]),
        (array[::-1], array[:]),
        (array[::2], array[:8]),
        (array[:8], array[::2]),
        (array[::2][:7], array[1::2]),
        (array[14:4:-3], array[0:8:2]),
        (array[5:5], array[3:3]),
        (array[7:8], array[14:13:-1]),
        (array[::-2], array[::2]),
        (array[10:], array[:5]),
    ]


@pytest.mark.in_turn
@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("strategy", ["auto", "megakernel", "sequence"])
def test_views_that_overlap(queue, strategy, adopted):
    whole = np.arange(15, dtype=np.int32)
    cases = range(len(views(whole)))
    buffers = [
        fq.Buffer(whole.copy(), copy=False) if adopted else fq.Buffer(whole, internal=True)
        for _ in cases
    ]
    with fq.fusion(queue, strategy=strategy, promote="internal" if adopted else "flagged") as f:
        for case, buffer in zip(cases, buffers, strict=True):
            queue.memcpy(*views(buffer)[case])
            queue.submit(increment, 15, buffer)
    for case, buffer in zip(cases, buffers, strict=True):
        expected = whole.copy()
        target, source = views(expected)[case]
        np.copyto(target, source.copy())
        assert np.array_equal(buffer.numpy(), expected + 1), case
    # A copy that could read what it has written goes through memory of its own, no other does.
    indices = [(set(target), set(source)) for target, source in views(whole)]
    through = sum(
        bool(there & here) and not np.array_equal(*views(whole)[case])
        for case, (there, here) in enumerate(indices)
    )
    assert through == 8
    assert len(f.report.submissions) == 2 * len(cases) + through


def test_two_buffers_around_one_array(queue):
    array = np.arange(12.0)
    one, two = fq.Buffer(array[2:], copy=False), fq.Buffer(array[:-2], copy=False)
    with fq.fusion(queue):
        queue.memcpy(one, two)
        queue.fill(two[:1], -1.0)
    queue.wait()
    assert array.tolist() == [-1, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("shape", [(1,), (0,), (1009,), (3, 5), (1, 7), (4, 0, 2), (3, 2, 5)])
def test_shapes_and_steps(queue, shape):
    whole = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    a, b, c = fq.Buffer(whole), fq.Buffer(shape, np.float32), fq.Buffer(shape, np.float32)
    backwards = (slice(None, None, -1),) * len(shape)
    with fq.fusion(queue) as f:
        queue.memcpy(b[backwards], a)
        queue.fill(c, 1)
        queue.memcpy(c[..., ::2], b[..., ::2])
    assert not f.report.notes
    expected = np.ones(shape, np.float32)
    expected[..., ::2] = whole[backwards][..., ::2]
    assert np.array_equal(b.numpy(), whole[backwards])
    assert np.array_equal(c.numpy(), expected)


def test_four_dimensions_join_and_five_do_not(queue):
    four = fq.Buffer(np.arange(120.0).reshape(2, 3, 4, 5))
    five = fq.Buffer(np.arange(120.0).reshape(2, 3, 4, 5, 1))
    out, more = fq.Buffer((2, 3, 4, 3), np.float64), fq.Buffer(five.shape, np.float64)
    with fq.fusion(queue) as f:
        queue.memcpy(out, four[..., ::-2])
        queue.fill(four, -1)
        queue.memcpy(more, five)
    assert np.array_equal(out.numpy(), np.arange(120.0).reshape(2, 3, 4, 5)[..., ::-2])
    assert (four.numpy() == -1).all()
    assert np.array_equal(more.numpy(), five.numpy())
    assert len(f.report.submissions) == 2
    (note,) = f.report.notes
    assert "memcpy does not join the list: its arrays have 5 dimensions" in note
    assert note.startswith(f"{__file__}:")


@pytest.mark.parametrize("dtype", SCALAR_TYPES)
def test_every_bit_is_copied(queue, dtype):
    size = np.dtype(dtype).itemsize
    raw = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 256, 64 * size, np.uint8)
    bits = raw.view(dtype)
    if np.dtype(dtype).kind == "f":  # quiet and signalling NaNs with a payload
        exponent = np.array(np.inf, dtype).view(f"u{size}")
        bits.view(f"u{size}")[:2] = exponent | np.array([1, 5], f"u{size}")
    source, target = fq.Buffer(bits), fq.Buffer(64, dtype)
    filled = fq.Buffer(3, dtype)
    with fq.fusion(queue):
        queue.memcpy(target, source)
        queue.fill(filled, bits[2])
    assert target.numpy().tobytes() == bits.tobytes()
    assert filled.numpy().tobytes() == bits[2:3].tobytes() * 3


def test_what_has_no_memory_yet_is_zeros(queue):
    a, out = empty(), floats()
    with fq.fusion(queue):
        queue.memcpy(out, a)
        queue.memcpy(a[4:], a[2:6])
    assert not out.numpy().any()
    assert not a.numpy().any()


def test_arrays_of_the_host_do_not_join(queue):
    a, b, array = floats(), empty(), np.zeros(8, np.float32)
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, b)
        queue.memcpy(array, a)  # which the list only reads
        assert array[0] == 1
        assert queue.is_in_fusion_mode()
    assert f.report.strategy == "fused"
    assert any("memcpy does not join the list: an array of the host" in n for n in f.report.notes)
    with fq.fusion(queue) as f:
        queue.submit(increment, 8, b)
        with pytest.warns(fq.FusionAborted, match="an array of the host"):
            queue.memcpy(array, b)
        assert array.tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
        queue.fill(array, 5)
    assert "memcpy depends on the list; memcpy does not join" in f.report.fallback
    assert (array == 5).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_types_that_the_devices_kernels_lack_do_not_join(queue, dtype, monkeypatch):
    target = queue._state.target
    device = replace(target.device, has_fp16=False, has_fp64=False)
    monkeypatch.setattr(queue._state.launcher.backend, "target", replace(target, device=device))
    a, out = fq.Buffer(np.arange(8, dtype=dtype)), fq.Buffer(8, dtype)
    with fq.fusion(queue) as f:
        queue.memcpy(out, a)
        queue.fill(a, 1)
        queue.submit(increment, 8, floats())
    assert out.numpy()[7] == 7
    assert a.numpy()[7] == 1
    assert len(f.report.submissions) == 1
    assert [f"have no {np.dtype(dtype)}" in note for note in f.report.notes] == [True, True]


def test_a_destination_with_an_element_twice_does_not_join(queue):
    array = np.arange(9, dtype=np.float32)
    windows = np.lib.stride_tricks.as_strided(array, (4, 3), (8, 4))
    target, source = fq.Buffer(windows, copy=False), fq.Buffer(np.ones((4, 3), np.float32))
    with fq.fusion(queue) as f:
        queue.memcpy(target, source)
        queue.submit(increment, 8, floats())
    assert (array == 1).all()
    assert "lie in one place" in f.report.notes[0]


def test_a_source_with_an_element_twice_joins(queue):
    row = np.arange(3, dtype=np.float32)
    source = fq.Buffer(np.broadcast_to(row, (4, 3)), copy=False)
    target = fq.Buffer((4, 3), np.float32)
    with fq.fusion(queue) as f:
        queue.memcpy(target, source)
    assert np.array_equal(target.numpy(), np.broadcast_to(row, (4, 3)))
    assert not f.report.notes


@pytest.mark.parametrize("command", ["memcpy", "fill"])
def test_what_is_wrong_leaves_the_list(queue, command):
    a, out = floats(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
        with pytest.raises(fq.ArgumentError, match=command):
            if command == "memcpy":
                queue.memcpy(out, a[1:])
            else:
                queue.fill(out, "x")
        with pytest.raises(fq.ArgumentError, match="depends_on takes Events"):
            if command == "memcpy":
                queue.memcpy(out, a, depends_on=a)
            else:
                queue.fill(out, 1, depends_on=[a])
    assert len(f.report.submissions) == 1
    assert np.array_equal(out.numpy(), a.numpy())


@pytest.mark.parametrize("command", ["memcpy", "fill"])
def test_depends_on(queue, command):
    a, b, out = floats(), fq.Buffer(np.ones(8, np.float32)), empty()
    with fq.FusionQueue(queue.device.filter_string) as other:
        elsewhere = other.submit(increment, 8, a)
        with fq.fusion(queue) as f:
            own = queue.submit(copy, 8, b, out)
            if command == "memcpy":
                event = queue.memcpy(out, a, depends_on=[own, elsewhere])
            else:
                event = queue.fill(out, 2, depends_on=[own, elsewhere])
            assert not event.is_complete
        event.wait()
        assert elsewhere.is_complete
    assert len(f.report.submissions) == 2
    assert out.numpy()[0] == 2


def test_a_fused_reverse_through_copies(queue):
    """A copy whose neighbours exchange elements across work-groups, in one persistent kernel."""
    n = 5000
    a, b, c = floats(n), empty(n), empty(n)
    with fq.fusion(queue, strategy="megakernel") as f:
        queue.submit(reverse, n, a, b)
        queue.memcpy(c, b)
        queue.submit(reverse, n, c, b)
        queue.memcpy(a, b)
        queue.memcpy(a[1:], a[:-1])
    expected = np.arange(1, n + 1, dtype=np.float32)
    expected[1:] = expected[:-1].copy()
    assert np.array_equal(a.numpy(), expected)
    assert f.report.strategy == "megakernel"


# ------------------------------------------------------------------------- lists in lists
def test_a_replay_joins_the_list(queue):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    factor = 2.0
    with fq.fusion(queue) as inner:
        queue.submit(scale, 8, a, factor, tmp)
        queue.memcpy(out, tmp)
    with fq.fusion(queue) as outer:
        queue.submit(increment, 8, a)
        first = inner.replay()
        queue.submit(add, 8, out, a, a)
        last = inner.replay(factor=3.0)
        assert not first.is_complete
        assert queue.is_in_fusion_mode()
    last.wait()
    before = np.arange(2, 10, dtype=np.float32)
    assert np.array_equal(a.numpy(), before * 3)
    assert np.array_equal(out.numpy(), before * 9)
    assert [s.name for s in outer.report.submissions] == [
        "increment", "scale", "copy_1d", "add", "scale", "copy_1d"
    ]  # fmt: skip
    assert outer.report.strategy == "fused"
    assert {p.scope for p in outer.report.promotions} == {"private"}
    # Each of the two lists can be repeated, alone and within others.
    inner.replay().wait()
    assert np.array_equal(out.numpy(), before * 6)
    with fq.fusion(queue) as third:
        outer.replay()
        inner.replay()
    queue.wait()
    assert len(third.report.submissions) == 8
    assert np.array_equal(a.numpy(), (before * 3 + 1) * 3)


def test_replays_of_empty_lists_and_of_lists_with_arrays_join(queue):
    array, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    with pytest.warns(fq.FusionAborted, match="nothing"), fq.fusion(queue) as nothing:
        pass
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, array, out)
    with fq.fusion(queue) as outer:
        assert nothing.replay().is_complete
        queue.submit(increment, 8, array)
        f.replay()
    outer.event.wait()
    assert len(outer.report.submissions) == 2
    assert np.array_equal(out, np.arange(1, 9))


def test_a_replay_that_does_not_fit_leaves_the_list(queue):
    a, out, factor = floats(), empty(), 2.0
    with fq.fusion(queue) as inner:
        queue.submit(scale, 8, a, factor, out)
    with fq.fusion(queue) as outer:
        queue.submit(increment, 8, out)
        with pytest.raises(fq.ArgumentError, match="takes a float"):
            inner.replay(factor=1)
        with pytest.raises(fq.FusionStateError, match="replay belongs behind"):
            outer.replay()
    assert len(outer.report.submissions) == 1
    assert out.numpy()[0] == 3


def test_a_replay_that_waits_for_another_queue(queue):
    a, out = floats(), empty()
    with fq.fusion(queue) as inner:
        queue.submit(copy, 8, a, out)
    with fq.FusionQueue(queue.device.filter_string) as other:
        with fq.fusion(queue) as outer:
            other.submit(increment, 8, a)
            inner.replay()
        outer.event.wait()
    assert out.numpy()[0] == 2


def test_usm_of_others_joins(sycl_queue):
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(8, queue=sycl_queue.sycl_queue)
    b = fq.Buffer(np.arange(8, dtype=np.uint8))
    with fq.fusion(sycl_queue) as f:
        sycl_queue.submit(increment, 8, b)
        sycl_queue.memcpy(memory, b)
    f.event.wait()
    assert np.frombuffer(memory, np.uint8).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert f.report.strategy == "fused"


def test_a_queue_that_does_not_fuse_ends_the_others_list(queue):
    a, out = floats(), empty()
    with fq.FusionQueue(queue.device.filter_string) as other:
        queue.start_fusion()
        queue.submit(copy, 8, a, out)
        with pytest.warns(fq.FusionAborted, match="memcpy depends on the list"):
            other.memcpy(a, out)
        queue.complete_fusion()
    assert "does not join" not in queue.last_report.fallback
