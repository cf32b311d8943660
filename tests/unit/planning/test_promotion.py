"""Which temporaries leave global memory, with the reasons in full: what a report says of each."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.planning.promotion import MOST_NAMED
from tests.unit.runtime.kernels import add, copy

N = 48


@fq.kernel
def ignoring(item: fq.Item, a, unused, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def reversed_in_fours(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i // 4 * 4 + 3 - i % 4]


@fq.kernel
def reversed_and_beside(item: fq.Item, a, beside, out):
    i = item.get_id(0)
    out[i] = a[i // 4 * 4 + 3 - i % 4] + beside[i]


@fq.kernel
def both(item: fq.Item, a, first, second):
    i = item.get_id(0)
    first[i] = a[i]
    second[i] = a[i]


@fq.kernel
def reversed_over_all(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = a[item.get_global_range(0) - 1 - i]


@pytest.fixture
def queue():
    return fq.FusionQueue("reference")


def temporary(**flags):
    return fq.Buffer(N, np.int64, **flags)


def data():
    return fq.Buffer(np.arange(N))


def decisions(fusion):
    return [(p.scope, p.reason) for p in fusion.report.promotions]


OWN = "one element a work-item, each written before it is read and touched by no other work-item"


def test_a_decision_names_the_buffer_by_its_first_use(queue):
    t = temporary(promote_private=True)
    with fq.fusion(queue) as f:
        queue.submit(copy, N, data(), out := fq.Buffer(N, np.int64))
        queue.submit(copy, N, out, t)
        queue.submit(add, N, t, out, fq.Buffer(N, np.int64))
    (found,) = f.report.promotions
    assert (found.buffer, found.submission, found.argument) == ("t", 1, 1)
    assert decisions(f) == [("private", OWN)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"promote": "none"}, "promote='none' was asked for"),
        ({"strategy": "unfused"}, "nothing is fused, so other kernels may read it"),
    ],
)
def test_options_that_keep_all_in_memory(queue, options, reason):
    t = temporary(promote_private=True)
    with fq.fusion(queue, **options) as f:
        queue.submit(copy, N, data(), t)
        queue.submit(copy, N, t, out := fq.Buffer(N, np.int64))
    assert decisions(f) == [("global", reason)]
    assert np.array_equal(t.numpy(), np.arange(N)) and np.array_equal(out.numpy(), np.arange(N))


def test_memory_of_which_some_accesses_are_flagged(queue):
    t = temporary()
    with fq.fusion(queue) as f:
        queue.submit(copy, N, data(), fq.access(t, promote="private"))
        queue.submit(copy, N, t, fq.Buffer(N, np.int64))
    reason = "some accesses of it are flagged for promotion and some are not"
    assert decisions(f) == [("global", reason)]
    assert np.array_equal(t.numpy(), np.arange(N))


def test_memory_that_no_kernel_touches(queue):
    t = temporary(promote_private=True)
    with fq.fusion(queue) as f:
        queue.submit(ignoring, N, data(), t, out := fq.Buffer(N, np.int64))
        queue.submit(ignoring, N, out, t, fq.Buffer(N, np.int64))
    assert decisions(f) == [("global", "no kernel of the list touches it")]


def test_memory_that_one_kernel_touches_and_another_is_given(queue):
    t = temporary(promote_private=True)
    with fq.fusion(queue) as f:
        queue.submit(ignoring, N, data(), t, out := fq.Buffer(N, np.int64))
        queue.submit(copy, N, out, t)
        queue.submit(copy, N, t, again := fq.Buffer(N, np.int64))
    assert decisions(f) == [("private", OWN)]
    assert np.array_equal(again.numpy(), np.arange(N))


@pytest.mark.parametrize("number", [2, MOST_NAMED, MOST_NAMED + 1])
def test_memory_that_several_launches_use(queue, number):
    t = temporary(promote_private=True)
    source, other = data(), fq.Buffer(np.arange(N))
    with fq.fusion(queue, strategy="sequence") as f:
        for _ in range(number):  # a launch each: every one reads all of what the last one wrote
            queue.submit(reversed_over_all, fq.NdRange(N, 4), source, t)
            queue.submit(reversed_over_all, fq.NdRange(N, 4), t, other)
            source, other = other, source
    named = (
        " and ".join(map(str, range(2 * number)))
        if 2 * number <= MOST_NAMED
        else f"0, 1 and {2 * number - 2} more"
    )
    reason = f"launches {named} use it, so it has to survive the first"
    assert decisions(f) == [("global", reason)]
    assert np.array_equal(source.numpy(), np.arange(N))


def test_what_work_items_of_a_group_exchange_is_local(queue):
    # `own` is written beside it, and nobody else reads an element of that.
    exchanged, own = temporary(promote_local=True), temporary(promote_private=True)
    with fq.fusion(queue) as f:
        queue.submit(both, N, data(), exchanged, own)
        queue.submit(reversed_and_beside, N, exchanged, own, out := fq.Buffer(N, np.int64))
    (local, why), private = decisions(f)
    assert local == "local" and private == ("private", OWN)
    size = f.report.stages[0].work_group[0]
    assert size % 4 == 0 and why == (
        f"{min(size, N)} elements a work-group of {size}, each written before it is read and "
        "touched by no other work-group"
    )
    turned = np.arange(N).reshape(-1, 4)[:, ::-1].ravel()
    assert np.array_equal(out.numpy(), turned + np.arange(N))


def test_internal_memory_is_local_only_where_work_items_exchange_it(queue):
    exchanged, own = temporary(internal=True), temporary(internal=True)
    with fq.fusion(queue, promote="internal") as f:
        queue.submit(both, N, data(), exchanged, own)
        queue.submit(reversed_and_beside, N, exchanged, own, fq.Buffer(N, np.int64))
    assert [scope for scope, _ in decisions(f)] == ["local", "private"]


def test_internal_memory_that_nobody_exchanges_and_that_cannot_be_private_stays(queue):
    # Half of it is read as it was before; `exchanged` is local, at a size that would do for both.
    exchanged, kept = temporary(internal=True), temporary(internal=True)
    kept.write(np.arange(N))
    with fq.fusion(queue, promote="internal") as f:
        queue.submit(copy, N // 2, data(), kept)
        queue.submit(add, N, data(), kept, exchanged)
        queue.submit(reversed_in_fours, N, exchanged, out := fq.Buffer(N, np.int64))
    (local, _), (scope, reason) = sorted(decisions(f), reverse=True)
    assert (local, scope) == ("local", "global")
    assert "not certain to be preceded by a write" in reason
    assert np.array_equal(out.numpy(), 2 * np.arange(N).reshape(-1, 4)[:, ::-1].ravel())


@fq.kernel
def both_by_groups(item: fq.NdItem, tile, a, first, second):
    i = item.get_global_id(0)
    tile[item.get_local_id(0)] = a[i]
    first[i] = a[i]
    second[i] = a[i]


@fq.kernel
def both_reversed(item: fq.NdItem, first, second, out):
    i = item.get_global_id(0)
    out[i] = first[i // 4 * 4 + 3 - i % 4] + second[i // 4 * 4 + 3 - i % 4]


@pytest.mark.parametrize("free", [64, 63, 32, 31])
def test_buffers_in_local_memory_and_local_accessors_share_what_the_device_has(queue, free):
    # A work-group has four elements of each buffer: 32 bytes.
    first, second = temporary(promote_local=True), temporary(promote_local=True)
    tile = fq.LocalAccessor(queue.device.local_memory_bytes - free, np.int8)
    with fq.fusion(queue) as f:
        queue.submit(both_by_groups, fq.NdRange(N, 4), tile, data(), first, second)
        queue.submit(both_reversed, fq.NdRange(N, 4), first, second, out := fq.Buffer(N, np.int64))
    taken = "a work-group's 4 elements take 32 bytes of local memory, and {} are free"
    local = (
        "4 elements a work-group of 4, each written before it is read and touched by no other "
        "work-group"
    )
    assert decisions(f) == [
        ("local", local) if free >= 32 else ("global", taken.format(free)),
        ("local", local) if free >= 64 else ("global", taken.format(free - 32 * (free >= 32))),
    ]
    assert np.array_equal(out.numpy(), 2 * np.arange(N).reshape(-1, 4)[:, ::-1].ravel())
