"""Random lists over points and over their parts, where work-items are threads: bit for bit as
unfused."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.reference import ReferenceBackend
from fusionq.cache.plan_cache import PLANS
from tests.property.running import examples

POINTS = 7


@contextmanager
def threads() -> Iterator[fq.FusionQueue]:
    """A queue of a device whose work-items are threads, for which there is no plan yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSIONQ_CACHE", "0")
        patch.setattr(PLANS, "_plans", OrderedDict())
        backend = ReferenceBackend()
        costs = replace(backend.target.costs, chain_seconds=3.1e-9)
        backend.target = replace(backend.target, costs=costs)
        patch.setattr(registry, "backend_for", lambda target, profiling=False: backend)
        with fq.FusionQueue() as queue:
            yield queue


def _of_points(form: str) -> Any:
    @fq.kernel
    def turned(item: fq.Item, a, t, out):
        i = item.get_id(0)
        for k in range(a.shape[1]):
            out[i, k] = a[i, a.shape[1] - 1 - k] - t[i]

    @fq.kernel
    def summed(item: fq.Item, a, t, out):
        i = item.get_id(0)
        total = t[i]
        for k in range(a.shape[1]):
            total += a[i, k] * (k + 1)
            if total % 3 == 0:
                out[i, k] = total
        t[i] = total % 100

    @fq.kernel
    def next_one(item: fq.Item, a, t, out):
        i = item.get_id(0)
        out[i, 0] = a[min(i + 1, item.get_range(0) - 1), a.shape[1] - 1] + item.get_linear_id()

    return {"turned": turned, "summed": summed, "next": next_one}[form]


def _of_parts(form: str) -> Any:
    @fq.kernel
    def own(item: fq.Item, a, t, out):
        i, k = item.get_id(0), item.get_id(1)
        out[i, k] = a[i, k] * 2 + t[i] - item.get_range(1) + item.get_linear_id() % 7

    @fq.kernel
    def mates(item: fq.Item, a, t, out):
        i, k = item.get_id(0), item.get_id(1)
        if (a[i, k] + i) % 4 == 0:
            return
        out[i, k] = a[i, (k + 1) % a.shape[1]] - a[i, 0]

    @fq.kernel
    def above(item: fq.Item, a, t, out):
        i, k = item.get_id(0), item.get_id(1)
        out[i, k] = a[max(i - 1, 0), k] + t[min(i + 1, t.shape[0] - 1)]

    @fq.kernel
    def counted(item: fq.Item, a, t, out):
        i, k = item.get_id(0), item.get_id(1)
        fq.AtomicRef(out, (i, 0)).fetch_add(a[i, k])

    return {"own": own, "mates": mates, "above": above, "counted": counted}[form]


Calls = list[tuple[Any, Any, int, int, int]]


@st.composite
def lists(draw: st.DrawFn) -> tuple[int, Calls]:
    """How many parts points have, and what is submitted: a kernel, its range, and the numbers of
    its matrices and of its vector."""
    parts = draw(st.integers(1, 5))
    made: Calls = []
    for _ in range(draw(st.integers(2, 6))):
        a, out = draw(st.permutations(range(3)))[:2]
        a = draw(st.sampled_from((a, made[-1][-1]))) if made else a
        vector = draw(st.integers(0, 1))
        if draw(st.booleans()):
            kernel, range_ = _of_points(draw(st.sampled_from(("turned", "summed", "next")))), POINTS
            out = out if a != out else (out + 1) % 3
            made.append((kernel, range_, a, vector, out))
            continue
        form = draw(st.sampled_from(("own", "mates", "above", "counted")))
        out = out if a != out or form == "own" else (out + 1) % 3
        made.append((_of_parts(form), (POINTS, parts), a, vector, out))
    return parts, made


def run(queue: fq.FusionQueue, parts: int, made: Calls, strategy: Any) -> tuple[Any, ...]:
    """What all arrays hold then, and the plan."""
    whole = np.arange(POINTS * parts).reshape(POINTS, parts)
    matrices = [fq.Buffer(whole * (k + 3) % 11 - 4) for k in range(3)]
    vectors = [fq.Buffer(np.arange(POINTS) * (k + 2) % 5) for k in range(2)]
    with fq.fusion(queue, strategy=strategy) as f:
        for kernel, space, a, vector, out in made:
            queue.submit(kernel, space, matrices[a], vectors[vector], matrices[out])
    f.event.wait()
    f.replay()
    return [np.array(array.numpy()) for array in (*matrices, *vectors)], f.report.plan


@given(lists(), st.sampled_from(("fused", "sequence", "auto")))
@examples(40)
def test_points(made: tuple[int, Calls], strategy: str) -> None:
    with threads() as queue:
        expected, _ = run(queue, *made, "unfused")
        found, _ = run(queue, *made, strategy)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_list_that_is_one_launch() -> None:
    """A replay of it, too, and of one without points first."""
    calls: Calls = [
        (_of_parts("own"), (POINTS, 3), 0, 0, 1), (_of_points("summed"), POINTS, 1, 0, 2),
        (_of_parts("mates"), (POINTS, 3), 2, 0, 0),
    ]  # fmt: skip
    with threads() as queue:
        expected, _ = run(queue, 3, calls, "unfused")
        found, plan = run(queue, 3, calls, "sequence")
    assert [stage.submissions for stage in plan.stages] == [(0, 1, 2)]
    assert plan.stages[0].kernel.ndim == 1
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
