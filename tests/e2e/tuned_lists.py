"""Lists that are tuned, and what was measured of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.kernels.library import Array

Floats = npt.NDArray[np.float32]


def forget() -> None:
    """Forget all plans but those on disk; programs may stay, which takes less time."""
    PLANS._plans.clear()


@fq.kernel
def blur(item: fq.NdItem, a: Array, b: Array) -> None:
    i = item.get_global_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i] + a[i + 1]
    else:
        b[i] = a[i]


@fq.kernel
def scale_and_add(item: fq.NdItem, a: Array, factor: np.float32) -> None:
    i = item.get_global_id(0)
    a[i] = a[i] * factor + np.float32(1)


@fq.kernel
def step_on(item: fq.Item, places: Array) -> None:
    i = item.get_id(0)
    places[i] += 1


@fq.kernel
def gather(item: fq.Item, table: Array, places: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = table[places[i]]


@fq.kernel
def repeated_sum(item: fq.Item, a: Array, b: Array, times: int) -> None:
    i = item.get_id(0)
    total = np.float32(0)
    for _ in range(times):
        total = total + a[i]
    b[i] = total


class Measured:
    """What ``medians`` was asked for; it says that ``fastest`` is, where that is given."""

    def __init__(self, fastest: str | None = None) -> None:
        self.fastest = fastest
        self.strategies: list[list[str]] = []

    def __call__(self, runs: Mapping[int, Callable[[], float]]) -> dict[int, float]:
        names = {k: run.__self__.built.plan.strategy for k, run in runs.items()}  # type: ignore[attr-defined]  # a method
        self.strategies.append(sorted(names.values()))
        for run in (*runs.values(), *reversed(runs.values())):
            run()
        return {k: 1e-3 if name == self.fastest else 2e-3 for k, name in names.items()}


def groups(n: int) -> fq.NdRange:
    """``n`` work-items in small groups, so that neighbours are in different ones."""
    return fq.NdRange(n, 16)


def floats(n: int) -> Floats:
    return np.random.default_rng(n).random(n, np.float32)


class Blurs:
    """Steps of a blur between two buffers, then one in place; and what must come out."""

    def __init__(self, n: int = 96, steps: int = 3, factor: float = 2.0) -> None:
        self.range, self.steps, self.factor = groups(n), steps, np.float32(factor)
        self.start = floats(n)
        self.a, self.b = fq.Buffer(self.start), fq.Buffer(n, np.float32)

    def submit(self, queue: fq.FusionQueue) -> None:
        a, b = self.a, self.b
        for _ in range(self.steps):
            queue.submit(blur, self.range, a, b)
            a, b = b, a
        factor = self.factor
        queue.submit(scale_and_add, self.range, a, factor)

    def run(self, queue: fq.FusionQueue, **options: Any) -> fq.Fusion:
        with fq.fusion(queue, **options) as f:
            self.submit(queue)
        return f

    def right(self) -> bool:
        """Whether the buffers hold what one run gives."""
        a = self.start.copy()
        for _ in range(self.steps):
            b = a.copy()
            b[1:-1] = a[:-2] + a[1:-1] + a[2:]
            a = b
        return np.array_equal(
            (self.a if self.steps % 2 == 0 else self.b).numpy(), a * self.factor + np.float32(1)
        )


def tuned(queue: fq.FusionQueue, n: int = 96, **options: Any) -> fq.Report:
    """The report of a list of ``Blurs`` of its own, whose result is right."""
    list_ = Blurs(n)
    report = list_.run(queue, **options).report
    assert list_.right()
    return report


@fq.kernel
def less_one(item: fq.NdItem, a: Array, b: Array) -> None:
    i = item.get_global_id(0)
    b[i] = a[i] - np.float32(1)


def blurred(a: Floats) -> Floats:
    b = a.copy()
    b[1:-1] = a[:-2] + a[1:-1] + a[2:]
    return (b + np.float32(1)) - np.float32(1)
