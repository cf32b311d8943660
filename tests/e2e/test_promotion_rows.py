"""The promotion tables: flags on buffers and accesses, shapes, views, several elements an item."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.kernels import (
    N,
    add,
    empty,
    increment,
    increment_2d,
    increment_3d,
    increment_nd,
    numbers,
    preset,
    reverse_in_group,
    untouched,
)

FLAGS = ["promote_private", "promote_local"]
SCOPES = (None, "private", "local")
GROUPS = fq.NdRange(N, 16)


def scopes(fusion):
    return [p.scope for p in fusion.report.promotions]


# ------------------------------------------------------------------------ the table of flags
def wanted(buffer, accesses):
    """SYCL's table, as the documentation has it: what becomes of a buffer whose elements one
    work-item writes and then reads."""
    if any(buffer and access and buffer != access for access in accesses):
        return "conflict"
    flags = {access or buffer for access in accesses}
    if flags == {None}:
        return None
    if None in flags:
        return "global"
    return "local" if "local" in flags else "private"


@pytest.mark.parametrize(
    ("buffer", "first", "second"), list(product(SCOPES, repeat=3)), ids=lambda flag: str(flag)
)
def test_flags_on_buffer_and_accesses(queue, buffer, first, second):
    flags = {f"promote_{buffer}": True} if buffer else {}
    a, temporary, out = numbers(), preset(**flags), empty()
    expected = wanted(buffer, (first, second))
    if expected == "conflict":
        with pytest.raises(fq.PromotionConflict, match=f"flagged promote_{buffer}"):
            fq.access(temporary, first), fq.access(temporary, second)
        return
    with fq.fusion(queue) as f:
        queue.submit(increment, N, a, fq.access(temporary, promote=first))
        queue.submit(increment, N, fq.access(temporary, promote=second), out)
    assert scopes(f) == ([] if expected is None else [expected])
    if expected == "global":
        assert "some accesses of it are flagged for promotion and some are not" in str(f.report)
    assert untouched(temporary) == (expected in ("private", "local"))
    assert np.array_equal(out.numpy(), np.arange(N) + 2)


def test_both_flags_on_one_buffer():
    with pytest.raises(fq.PromotionConflict, match="both private and local"):
        fq.Buffer(N, np.int64, promote_private=True, promote_local=True)


@pytest.mark.parametrize("flag", FLAGS)
def test_promote_none_keeps_all_in_memory(queue, flag):
    a, temporary, out = numbers(), preset(**{flag: True}), empty()
    with fq.fusion(queue, promote="none") as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(increment, N, temporary, out)
    assert f.report.strategy == "fused"
    assert scopes(f) == ["global"]
    assert np.array_equal(temporary.numpy(), np.arange(N) + 1)


@pytest.mark.parametrize("flag", FLAGS)
def test_unfused_keeps_all_in_memory(queue, flag):
    a, temporary, out = numbers(), preset(**{flag: True}), empty()
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(increment, N, temporary, out)
    assert scopes(f) == ["global"]
    assert np.array_equal(temporary.numpy(), np.arange(N) + 1)


def test_require_raises_for_an_unprovable_flag(queue):
    a, temporary, out = numbers(), preset(promote_private=True), empty()
    refused = pytest.raises(fq.FusionRefused, match="stays in global memory")
    with refused, fq.fusion(queue, require=True):
        queue.submit(reverse_in_group, GROUPS, a, temporary)
        queue.submit(reverse_in_group, GROUPS, temporary, out)
    assert np.array_equal(out.numpy(), np.arange(N) + 2)


# -------------------------------------------------------------------------- internal buffers
def test_internal_alone_changes_nothing(queue):
    a, temporary, out = numbers(), preset(internal=True), empty()
    with fq.fusion(queue) as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(increment, N, temporary, out)
    assert scopes(f) == []
    assert np.array_equal(temporary.numpy(), np.arange(N) + 1)


def test_internal_of_one_item_becomes_private(queue):
    a, temporary, out = numbers(), preset(internal=True), empty()
    with fq.fusion(queue, promote="internal") as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(increment, N, temporary, out)
    assert scopes(f) == ["private"]
    assert untouched(temporary)
    assert np.array_equal(out.numpy(), np.arange(N) + 2)


def test_internal_that_a_group_exchanges_becomes_local(queue):
    a, temporary, out = numbers(), preset(internal=True), empty()
    with fq.fusion(queue, promote="internal") as f:
        queue.submit(reverse_in_group, GROUPS, a, temporary)
        queue.submit(reverse_in_group, GROUPS, temporary, out)
    assert scopes(f) == ["local"]
    assert untouched(temporary)
    assert np.array_equal(out.numpy(), np.arange(N) + 2)


# ------------------------------------------------------------------------------------ shapes
@pytest.mark.parametrize("flag", [None, *FLAGS])
@pytest.mark.parametrize("group", [1, 2, 16, 64])
def test_reversed_write_inside_a_group(queue, flag, group):
    space = fq.NdRange(N, group)
    flags = {flag: True} if flag else {}
    a, temporary, out = numbers(), preset(**flags), empty()
    with fq.fusion(queue) as f:
        queue.submit(reverse_in_group, space, a, temporary)
        queue.submit(reverse_in_group, space, temporary, out)
    assert f.report.strategy == "fused"
    (stage,) = f.report.stages
    assert stage.barriers == (group > 1)
    expected = {None: [], "promote_local": ["local"]}.get(flag, ["global"])
    if group == 1 and flag == "promote_private":
        expected = ["private"]  # a group of one work-item is that work-item
    assert scopes(f) == expected
    assert untouched(temporary) == (expected not in ([], ["global"]))
    assert np.array_equal(out.numpy(), np.arange(N) + 2)


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize(
    ("shape", "kernel"),
    [
        ((6, 10), increment_2d),
        ((6, 256), increment_2d),
        ((1, 1), increment_2d),
        ((3, 5, 7), increment_3d),
        ((2, 3, 64), increment_3d),
    ],
)
def test_two_and_three_dimensions(queue, flag, shape, kernel):
    a, temporary = numbers(shape), preset(shape, **{flag: True})
    wide = preset((*shape[:-1], 600))  # room for what must not be written
    out = wide[..., : shape[-1]]
    with fq.fusion(queue) as f:
        queue.submit(kernel, shape, a, temporary)
        queue.submit(kernel, shape, temporary, out)
    assert scopes(f) == [flag.removeprefix("promote_")]
    assert untouched(temporary)
    assert np.array_equal(out.numpy(), a.numpy() + 2)
    assert untouched(wide[..., shape[-1] :])


@fq.kernel
def several(item: fq.Item, a, count, out):
    i = item.get_id(0)
    for k in range(count):
        out[count * i + k] = a[count * i + k] + 1


@fq.kernel
def several_backwards(item: fq.Item, a, count, out):
    i = item.get_id(0)
    for k in range(count):
        out[count * i + count - 1 - k] = a[count * i + k]


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize(
    ("dtype", "count"),
    [(np.int8, 1), (np.bool_, 3), (np.uint16, 5), (np.float16, 3), (np.float64, 5)],
)
def test_several_elements_an_item(queue, flag, dtype, count):
    n = 7 * count
    a = fq.Buffer((np.arange(n) % 2).astype(dtype))
    temporary = fq.Buffer(n, dtype, **{flag: True})
    marks = np.full(n, 1).astype(dtype)
    temporary.write(marks)
    out = fq.Buffer(n, dtype)
    with fq.fusion(queue) as f:
        queue.submit(several_backwards, 7, a, count, temporary)
        queue.submit(several_backwards, 7, temporary, count, out)
    assert scopes(f) == [flag.removeprefix("promote_")]
    assert np.array_equal(temporary.numpy(), marks)
    assert np.array_equal(out.numpy(), a.numpy())


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize(
    "cut",
    [slice(16, 48), slice(0, 33), slice(1, 64, 2), slice(None, None, -1), slice(63, 62, -1)],
    ids=str,
)
def test_offset_and_ranged_views(queue, flag, cut):
    a, temporary, out = numbers(), preset(**{flag: True}), preset()
    view = temporary[cut]
    n = len(view)
    with fq.fusion(queue) as f:
        queue.submit(increment, n, a[cut], view)
        queue.submit(increment, n, view, out[cut])
    assert scopes(f) == [flag.removeprefix("promote_")]
    assert untouched(temporary)
    expected = np.full(N, -1)
    expected[cut] = np.arange(N)[cut] + 2
    assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("space", [N, GROUPS], ids=["range", "nd_range"])
def test_the_diamond(queue, flag, space):
    # Four kernels, three temporaries, one kernel used twice.
    first = increment if space == N else increment_nd
    a, b, out = numbers(), numbers(), empty()
    one, two, three = (preset(**{flag: True}) for _ in range(3))
    with fq.fusion(queue) as f:
        queue.submit(first, space, a, one)
        queue.submit(add, N, one, b, two)
        queue.submit(first, space, one, three)
        queue.submit(add, N, two, three, out)
    assert f.report.strategy == "fused"
    assert scopes(f) == [flag.removeprefix("promote_")] * 3
    assert untouched(one, two, three)
    assert np.array_equal(out.numpy(), 3 * np.arange(N) + 3)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_promoted_buffer_is_never_allocated(queue, flag):
    a, temporary, out = numbers(), fq.Buffer(N, np.int64, **{flag: True}), empty()
    with fq.fusion(queue):
        queue.submit(increment, N, a, temporary)
        queue.submit(increment, N, temporary, out)
    queue.wait()
    assert not temporary.is_allocated
    assert np.array_equal(out.numpy(), np.arange(N) + 2)


@pytest.mark.parametrize("n", [512, 1009])
@pytest.mark.parametrize("flag", FLAGS)
def test_at_512_and_at_a_prime_size(queue, flag, n):
    a, temporary, out = numbers(n), preset(n, **{flag: True}), empty(n)
    with fq.fusion(queue) as f:
        queue.submit(increment, n, a, temporary)
        queue.submit(increment, n, temporary, out)
    assert scopes(f) == [flag.removeprefix("promote_")]
    assert untouched(temporary)
    assert np.array_equal(out.numpy(), np.arange(n) + 2)


def test_local_memory_that_does_not_fit(queue):
    # Each work-item owns 65,536 elements of 8 bytes: more than any device's local memory.
    count = 1 << 16
    a, temporary = fq.Buffer(2 * count, np.int64), preset(2 * count, promote_local=True)
    out = empty(2 * count)
    with fq.fusion(queue) as f:
        queue.submit(several, fq.Range(2), a, count, temporary)
        queue.submit(several, fq.Range(2), temporary, count, out)
    (promotion,) = f.report.promotions
    assert promotion.scope == "global"
    assert "local memory" in promotion.reason or "too" in promotion.reason
    assert (out.numpy() == 2).all()
    assert (temporary.numpy() == 1).all()
