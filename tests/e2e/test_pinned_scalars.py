"""Lists whose dependences are proved for today's integer scalars alone, as for which others they
hold is too hard to say: other scalars have plans of their own, and all the unfused result."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations
from tests.e2e.tuned_lists import forget
from tests.in_turn import is_whole

N = 128


@pytest.fixture(params=["all", pytest.param("ordinary", marks=pytest.mark.slow)], autouse=True)
def hard(request, monkeypatch):
    """For which scalars a proof holds is too hard to say of those that take long, or of all."""
    if request.param == "all":
        monkeypatch.setattr(isl_operations, "OPERATIONS_FOR_OTHERS", 1)


@fq.kernel
def exchange(item: fq.Item, k, j, x):
    """A step of a bitonic sort, one work-item a pair."""
    pair = item.get_id(0)
    i = pair // j * (2 * j) + pair % j
    low, high = min(x[i], x[i + j]), max(x[i], x[i + j])
    ascending = i // k % 2 == 0
    x[i] = low if ascending else high
    x[i + j] = high if ascending else low


again = fq.kernel(exchange.function)


def steps(longest):
    return [(2 << a, 1 << b) for a in range(longest) for b in reversed(range(a + 1))]


def run(queue, strategy, chosen):
    x = fq.Buffer(np.random.default_rng(3).integers(-99, 99, N).astype(np.int32))
    with fq.fusion(queue, strategy=strategy) as f:
        for k, j in chosen:
            queue.submit(exchange, N // 2, k, j, x)
    return f.report, x.numpy().copy()


@pytest.mark.slow
def test_a_sort_is_one_launch(queue):
    """Its work-items exchange elements inside of a work-group, for the steps that it has."""
    report, x = run(queue, "fused", steps(5))
    assert len(report.plan.stages) == 1
    runs = x.reshape(-1, 32)
    np.testing.assert_array_equal(np.diff(runs[::2]) >= 0, True)
    np.testing.assert_array_equal(np.diff(runs[1::2]) <= 0, True)


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_other_scalars_have_plans_of_their_own(queue, seed):
    """Also those whose work-items exchange elements between work-groups."""
    random = np.random.default_rng(seed)
    asked = steps(7)
    for turn in range(5 if is_whole() else 2):
        chosen = asked[3:7] if turn == 0 else [asked[k] for k in random.integers(0, len(asked), 4)]
        _, expected = run(queue, "unfused", chosen)
        for strategy in ("fused", "auto"):
            np.testing.assert_array_equal(run(queue, strategy, chosen)[1], expected)


def test_a_replay_with_other_scalars(queue):
    x = fq.Buffer(np.random.default_rng(5).integers(-99, 99, N).astype(np.int32))
    long, near, wide = 8, 2, 4
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(exchange, N // 2, long, wide, x)
        queue.submit(again, N // 2, long, near, x)
    for long, near, wide in ((8, 2, 4), (64, 1, 32), (128, 64, 1), (8, 4, 2), (8, 2, 4)):
        before = x.numpy().copy()
        f.replay(long=long, near=near, wide=wide)
        after = x.numpy().copy()
        x.write(before)
        queue.submit(exchange, N // 2, long, wide, x)
        queue.submit(exchange, N // 2, long, near, x)
        np.testing.assert_array_equal(after, x.numpy())


@pytest.mark.in_turn
def test_plans_of_a_disk_cache(queue, nothing_is_planned):
    """Are for the scalars that they were made for, whoever finds them."""
    asked = steps(5)
    for chosen, kept in (
        (asked[3:7], None),
        (asked[3:7], "disk"),
        ([(64, 1), (64, 32), (128, 64), (4, 1)], None),
        (asked[3:7], "disk"),
    ):
        forget()
        _, expected = run(queue, "unfused", chosen)
        report, found = run(queue, "fused", chosen)
        np.testing.assert_array_equal(found, expected)
        assert kept is None or report.cache == kept
