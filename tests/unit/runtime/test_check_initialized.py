"""check="initialized": the first read of an element that nothing has written is told."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import copy

HERE = __file__


@fq.kernel
def copy_even(item, a, out):
    i = item.get_id(0)
    if i % 2 == 0:
        out[i] = a[i]


@fq.kernel
def copy_where(item, chosen, a, out):
    i = item.get_id(0)
    out[i] = a[i] if chosen[i] else 7.0


@fq.kernel
def private(item, a, out):
    i = item.get_id(0)
    own = fq.PrivateArray((2, 3), np.float32)
    own[0, 1] = a[i]
    own[1, i] = 2.0
    out[i] = own[0, 1] + own[1, 2]


@fq.kernel
def zeros(item, out):
    own = fq.PrivateArray((2, 3), np.float32, fill_zeros=True)
    out[item.get_id(0)] = own[1, 2]


@fq.kernel
def neighbours(item, a, tile, left_out, out):
    i, k = item.get_global_id(0), item.get_local_id(0)
    if i != left_out:
        tile[k // 2, k % 2] = a[i]
    fq.group_barrier(item.get_group())
    n = (k + 1) % 4
    out[i] = tile[n // 2, n % 2]


@fq.kernel
def count(item, counts):
    fq.AtomicRef(counts, 0).fetch_add(1)


@fq.kernel
def set_and_count(item, counts):
    fq.AtomicRef(counts, item.get_id(0)).store(5)
    fq.AtomicRef(counts, item.get_id(0)).fetch_add(1)


def checked(queue, *submissions, **options):
    with fq.fusion(queue, check="initialized", **options) as f:
        for kernel, range_, *args in submissions:
            queue.submit(kernel, range_, *args)
    return f


def refused(told, queue, *submissions, **options):
    with pytest.raises(fq.ArgumentError, match=told) as caught:
        checked(queue, *submissions, **options)
    message = str(caught.value)
    assert "that nothing has written" in message and "Nothing after this launch" in message
    assert "in the kernel at" in message and f"submitted at {HERE}" in message
    return message


def test_a_new_buffer_of_which_half_is_written(queue):
    middle, out, after = empty(8), empty(8), empty(8)
    told = r"read of an element of 'a' \(argument `.*`\).*work-item \([1357]\) reads element " \
        r"\[[1357]\] of an array of shape \(8\); 3 more accesses"  # fmt: skip
    message = refused(
        told, queue, (copy_even, 8, floats(8), middle), (copy, 8, middle, out),
        (copy, 8, out, after),
    )
    assert "Buffer(array)" in message
    assert out.numpy().tolist() == [1, 0, 3, 0, 5, 0, 7, 0] and not after.numpy().any()


def test_what_is_read_has_been_written_in_other_views(queue):
    middle, out = empty(8), empty(8)
    checked(queue, (copy_even, 8, floats(8), middle), (copy, 4, middle[::2], out[:4]))
    assert out.numpy().tolist() == [1, 3, 5, 7, 0, 0, 0, 0]
    other = empty((2, 4))
    checked(queue, (copy, 4, floats(4), other[1, ::-1]), (copy, 4, other[1], out[4:]))
    assert out.numpy().tolist() == [1, 3, 5, 7, 4, 3, 2, 1]
    refused(r"reads element \[[0-3]\]", queue, (copy, 4, empty((2, 4))[0], out[:4]))


def test_the_same_list_again_reads_what_the_host_has_written_since(queue):
    middle, out = empty(4), empty(4)
    f = checked(queue, (copy_even, 4, floats(4), middle), (copy, 2, middle[::2], out[:2]))
    middle.write(np.full(4, 9, np.float32))
    f.replay().wait()
    assert out.numpy().tolist() == [1, 3, 0, 0]
    checked(queue, (copy, 4, middle, out))
    assert out.numpy().tolist() == [1, 9, 3, 9]


def test_a_condition_that_leaves_the_read_out(queue):
    chosen, middle, out = fq.Buffer(np.array([True, False] * 4)), empty(8), empty(8)
    write = (copy_even, 8, floats(8), middle)
    checked(queue, write, (copy_where, 8, chosen, middle, out))
    assert out.numpy().tolist() == [1, 7, 3, 7, 5, 7, 7, 7]
    middle = empty(8)
    chosen = fq.Buffer(np.array([True] * 4 + [False] * 4))
    write = (copy_even, 8, floats(8), middle)
    refused(r"reads element \[[13]\].*; 1 more access did", queue, write,
            (copy_where, 8, chosen, middle, out))  # fmt: skip


@pytest.mark.parametrize("flag", ["promote_private", "promote_local", "internal"])
def test_a_promoted_buffer_holds_what_its_list_has_written(queue, flag):
    middle = fq.Buffer(np.ones(8, np.float32), **{flag: True})
    write, read = (copy_even, 8, floats(8), middle), (copy, 8, middle, empty(8))
    message = refused(r"reads element \[[1357]\]", queue, write, read, promote="internal")
    assert "A promoted Buffer holds" in message
    for promote in ("none", *(["flagged"] if flag == "internal" else [])):
        checked(queue, write, read, promote=promote)
    checked(queue, (copy, 8, floats(8), middle), read).replay().wait()


def test_private_and_local_arrays(queue):
    out = empty(8)
    message = refused(
        r"element of 'own' that.*work-item \([013]\) reads element \[1, 2\] .* \(2, 3\)",
        queue, (private, 3, floats(3), out[:3]),
    )  # fmt: skip
    assert "fill_zeros=True" in message
    checked(queue, (zeros, 3, out[:3]))
    groups, tile = fq.NdRange(8, 4), fq.LocalAccessor((2, 2), np.float32)
    message = refused(
        r"'tile' that.*work-item \(6\) reads element \[1, 1\] of an array of shape \(2, 2\)\n",
        queue, (neighbours, groups, floats(8), tile, 7, out),
    )  # fmt: skip
    assert "group_barrier" in message
    checked(queue, (neighbours, groups, floats(8), tile, 8, out))
    assert out.numpy().tolist() == [2, 3, 4, 1, 6, 7, 8, 5]


def test_atomic_operations(queue):
    refused(r"update of an element of 'counts'", queue, (count, 4, fq.Buffer(1, np.int32)))
    counts = fq.Buffer(4, np.int32)
    checked(queue, (set_and_count, 4, counts))
    assert counts.numpy().tolist() == [6, 6, 6, 6]
    checked(queue, (count, 4, counts))
    assert counts.numpy().tolist() == [10, 6, 6, 6]


def test_indices_are_checked_too(queue):
    with pytest.raises(fq.ArgumentError, match="read outside array 'a'"):
        checked(queue, (gather, 1, fq.Buffer(np.array([9])), floats(8), empty(8)))


@fq.kernel
def gather(item, index, a, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


def test_the_environment_checks_plain_submissions_too(queue, monkeypatch):
    monkeypatch.setenv("FUSIONQ_CHECK", "initialized")
    flagged = fq.Buffer(4, np.float32, promote_private=True)
    queue.submit(copy, 4, floats(4), flagged)
    queue.submit(copy, 4, flagged, empty(4))  # a list of its own, which promotes nothing
    with pytest.raises(fq.ArgumentError, match="that nothing has written"):
        queue.submit(copy, 4, empty(4), empty(4))
    monkeypatch.setenv("FUSIONQ_CHECK", "initialised")
    with pytest.raises(fq.ArgumentError, match=r"FUSIONQ_CHECK='initialised' .* write 1, init"):
        queue.submit(copy, 4, floats(4), empty(4))


def test_marks_that_do_not_fit_beside_local_arrays(queue):
    elements = queue._state.launcher.backend.info.local_memory_bytes // 4
    tile = fq.LocalAccessor((2, elements // 2), np.float32)
    with pytest.raises(fq.ArgumentError, match=r"one more byte of local memory.*check=True"):
        checked(queue, (neighbours, fq.NdRange(8, 4), floats(8), tile, 8, empty(8)))


def test_another_word_is_refused(queue):
    with pytest.raises(fq.ArgumentError, match=r"check='all' is not one of False, True, 'init"):
        fq.fusion(queue, check="all")
