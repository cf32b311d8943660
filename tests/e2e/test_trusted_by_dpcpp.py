"""What the removed extension left to the user's word and got wrong when the word was wrong."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.kernels import (
    N,
    add_next,
    empty,
    gather,
    increment,
    numbers,
    preset,
    reverse_in_group,
    untouched,
    write_reversed,
)

FLAGS = ["promote_private", "promote_local"]
MANY = 20_000
"""More work-items than any work-group takes."""


def decision(fusion):
    (found,) = fusion.report.promotions
    return found.scope, found.reason


@pytest.mark.parametrize("flag", FLAGS)
def test_neighbour_read_across_groups(queue, flag):
    a, temporary, out = numbers(MANY), preset(MANY, **{flag: True}), empty(MANY)
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(increment, MANY, a, temporary)
        queue.submit(add_next, MANY, temporary, out)
    assert decision(f) == (
        "global",
        "launches 0 and 1 use it, so it has to survive the first",
    )
    assert f.report.fallback.startswith(
        "RAW dependence of submission 1 on submission 0 has scope GLOBAL"
    )
    expected = np.arange(1, MANY + 1)
    assert np.array_equal(temporary.numpy(), expected)
    expected[:-1] += expected[1:].copy()
    assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize("flag", FLAGS)
def test_what_reads_across_groups_computes_the_neighbours_anew(queue, flag):
    a, temporary, out = numbers(MANY), preset(MANY, **{flag: True}), empty(MANY)
    with fq.fusion(queue) as f:
        queue.submit(increment, MANY, a, temporary)
        queue.submit(add_next, MANY, temporary, out)
    assert f.report.strategy == "overlap"
    assert decision(f)[0] in ("private", "local")  # of the two ways the faster, by the estimates
    assert untouched(temporary)
    expected = np.arange(1, MANY + 1)
    expected[:-1] += expected[1:].copy()
    assert np.array_equal(out.numpy(), expected)


def test_neighbour_read_under_private_promotion(queue):
    # One work-group holds it all, so the kernels fuse; but private memory is still refused.
    a, temporary, out = numbers(), preset(promote_private=True), empty()
    with fq.fusion(queue) as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(add_next, N, temporary, out)
    assert f.report.strategy == "fused"
    assert decision(f) == ("global", "an element is touched by more than one work-item")
    expected = np.arange(1, N + 1)
    assert np.array_equal(temporary.numpy(), expected)
    expected[:-1] += expected[1:].copy()
    assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("n", [1, 2, 7, 509, 512, 1009])
def test_a_size_that_no_work_group_divides(queue, flag, n):
    a, temporary, out = numbers(n), preset(n, **{flag: True}), preset(n + 1024)
    with fq.fusion(queue) as f:
        queue.submit(increment, n, a, temporary)
        queue.submit(increment, n, temporary, out[:n])
    assert decision(f)[0] == flag.removeprefix("promote_")
    assert untouched(temporary)
    assert np.array_equal(out.numpy()[:n], np.arange(n) + 2)
    assert untouched(out[n:])


@pytest.mark.parametrize(("n", "group"), [(1000, 512), (10, 4)])
def test_an_explicit_group_that_does_not_divide_is_an_error(queue, n, group):
    temporary = preset(n, promote_local=True)
    with pytest.raises(fq.ArgumentError, match="must divide the global range"):
        queue.submit(reverse_in_group, fq.NdRange(n, group), numbers(n), temporary)
    assert untouched(temporary)


@pytest.mark.parametrize("flag", FLAGS)
def test_an_overlapping_view(queue, flag):
    a, temporary, out = numbers(), preset(N + 1, **{flag: True}), empty()
    with fq.fusion(queue) as f:
        queue.submit(increment, N, a, temporary[:N])
        queue.submit(increment, N, temporary[1:], out)
    scope, reason = decision(f)
    assert scope == "global"
    assert reason == "the list uses it through views that differ or overlap themselves"
    assert temporary.numpy().tolist() == [*range(1, N + 1), -1]
    assert out.numpy().tolist() == [*range(3, N + 2), 0]


def test_a_half_that_is_read_keeps_what_was_there(queue):
    # The halves share no element: the second is read as it was before, so it stays in memory;
    # the first is written for nobody, and its contents need not survive.
    a, temporary, out = numbers(32), preset(promote_private=True), empty(32)
    with fq.fusion(queue) as f:
        queue.submit(increment, 32, a, temporary[:32])
        queue.submit(increment, 32, temporary[32:], out)
    assert f.report.strategy == "fused"
    assert [p.scope for p in f.report.promotions] == ["private", "global"]
    assert not out.numpy().any()  # -1 + 1
    assert untouched(temporary)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_reversed_write_across_groups(queue, flag):
    a, temporary, out = numbers(MANY), preset(MANY, **{flag: True}), empty(MANY)
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(write_reversed, MANY, a, temporary)
        queue.submit(increment, MANY, temporary, out)
    assert decision(f)[0] == "global"
    assert "has scope GLOBAL" in f.report.fallback
    assert np.array_equal(temporary.numpy(), np.arange(MANY)[::-1])
    assert np.array_equal(out.numpy(), np.arange(MANY)[::-1] + 1)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_read_that_nothing_was_written_for(queue, flag):
    a, temporary, out = numbers(), preset(**{flag: True}), empty()
    with fq.fusion(queue) as f:
        queue.submit(increment, N // 2, a, temporary)
        queue.submit(increment, N, temporary, out)
    scope, reason = decision(f)
    assert scope == "global"
    assert "not certain to be preceded by a write" in reason
    assert out.numpy().tolist() == [*range(2, N // 2 + 2), *[0] * (N // 2)]


def test_an_index_that_cannot_be_analysed(queue):
    a, places = numbers(MANY), fq.Buffer(np.arange(MANY)[::-1].copy())
    temporary, out = preset(MANY, promote_private=True), empty(MANY)
    with fq.fusion(queue) as f:
        queue.submit(increment, MANY, a, temporary)
        queue.submit(gather, MANY, temporary, places, out)
    assert decision(f)[0] == "global"
    assert f.report.dependences[0].scope == "UNKNOWN"
    assert np.array_equal(out.numpy(), np.arange(1, MANY + 1)[::-1])


@pytest.mark.parametrize("flag", FLAGS)
def test_an_index_that_cannot_be_analysed_in_one_work_group(queue, flag):
    a, places = numbers(), fq.Buffer(np.arange(N)[::-1].copy())
    temporary, out = preset(**{flag: True}), empty()
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(increment, N, a, temporary)
        queue.submit(gather, N, temporary, places, out)
    assert decision(f)[0] == "global"
    assert f.report.dependences[0].scope == "GROUP"
    assert np.array_equal(out.numpy(), np.arange(1, N + 1)[::-1])


@pytest.mark.parametrize("flag", FLAGS)
def test_require_raises_and_the_result_is_right(queue, flag):
    a, temporary, out = numbers(MANY), preset(MANY, **{flag: True}), empty(MANY)
    refused = pytest.raises(fq.FusionRefused, match="has scope GLOBAL")
    with refused, fq.fusion(queue, strategy="fused", require=True):
        queue.submit(write_reversed, MANY, a, temporary)
        queue.submit(increment, MANY, temporary, out)
    assert np.array_equal(out.numpy(), np.arange(MANY)[::-1] + 1)
