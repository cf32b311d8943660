"""Options: Black-Scholes in closed form, and by random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

RATE, VOLATILITY = 0.1, 0.2


# ------------------------------------------------------------------------------ Black-Scholes
def normal_cdf(x: Scalar) -> Scalar:
    """Abramowitz and Stegun 26.2.17."""
    k = 1.0 / (1.0 + 0.2316419 * abs(x))
    poly = k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * (k * (0.319381530 + poly))
    return tail if x < 0.0 else 1.0 - tail


@fq.kernel
def price(item: fq.Item, s: Array, x: Array, t: Array, call: Array, put: Array) -> None:
    i = item.get_id(0)
    root = np.sqrt(t[i])
    d1 = (np.log(s[i] / x[i]) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * t[i]) / (VOLATILITY * root)
    d2 = d1 - VOLATILITY * root
    discount = x[i] * np.exp(-RATE * t[i])
    call[i] = s[i] * normal_cdf(d1) - discount * normal_cdf(d2)
    put[i] = discount * (1.0 - normal_cdf(d2)) - s[i] * (1.0 - normal_cdf(d1))


@fq.kernel
def quotients(item: fq.Item, s: Array, x: Array, t: Array, d1: Array, d2: Array) -> None:
    i = item.get_id(0)
    root = np.sqrt(t[i])
    d1[i] = (np.log(s[i] / x[i]) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * t[i]) / (
        VOLATILITY * root
    )
    d2[i] = d1[i] - VOLATILITY * root


@fq.kernel
def discounted(item: fq.Item, x: Array, t: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = x[i] * np.exp(-RATE * t[i])


@fq.kernel
def cdf(item: fq.Item, d: Array) -> None:
    i = item.get_id(0)
    d[i] = normal_cdf(d[i])


@fq.kernel
def calls(item: fq.Item, s: Array, disc: Array, n1: Array, n2: Array, call: Array) -> None:
    i = item.get_id(0)
    call[i] = s[i] * n1[i] - disc[i] * n2[i]


@fq.kernel
def puts(item: fq.Item, s: Array, disc: Array, n1: Array, n2: Array, put: Array) -> None:
    i = item.get_id(0)
    put[i] = disc[i] * (1.0 - n2[i]) - s[i] * (1.0 - n1[i])


@fq.kernel
def add_portfolio(item: fq.Item, call: Array, put: Array, value: Array) -> None:
    i = item.get_id(0)
    value[i] = call[i] + put[i]


def submit_price_whole(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    s, x, t, _, _, _, call, put, value = arrays
    queue.submit(price, n, s, x, t, call, put)
    queue.submit(add_portfolio, n, call, put, value)


def submit_price_vectorised(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    s, x, t, d1, d2, disc, call, put, value = arrays
    queue.submit(quotients, n, s, x, t, d1, d2)
    queue.submit(discounted, n, x, t, disc)
    queue.submit(cdf, n, d1)
    queue.submit(cdf, n, d2)
    queue.submit(calls, n, s, disc, d1, d2, call)
    queue.submit(puts, n, s, disc, d1, d2, put)
    queue.submit(add_portfolio, n, call, put, value)


def price_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    (n,) = size
    names = ("d1", "d2", "disc", "call", "put", "value")
    return {
        "s": 10.0 + 40.0 * rng.random(n),
        "x": 10.0 + 40.0 * rng.random(n),
        "t": 1.0 + rng.random(n),
        **{name: np.zeros(n) for name in names},
    }


def price_numpy(size: Size, *arrays: Array) -> None:
    s, x, t, *_, call, put, value = arrays

    def cdf_of(d: Array) -> Array:
        k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
        poly = k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        tail = 0.3989422804014327 * np.exp(-0.5 * d * d) * (k * (0.319381530 + poly))
        return np.where(d < 0.0, tail, 1.0 - tail)

    root = np.sqrt(t)
    d1 = (np.log(s / x) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * t) / (VOLATILITY * root)
    n1, n2 = cdf_of(d1), cdf_of(d1 - VOLATILITY * root)
    discount = x * np.exp(-RATE * t)
    call[...] = s * n1 - discount * n2
    put[...] = discount * (1.0 - n2) - s * (1.0 - n1)
    value[...] = call + put


def price_loop(numba: Any) -> Callable[..., None]:
    from math import exp, log, sqrt

    def loop(
        n: int, s: Array, x: Array, t: Array, a: Array, b: Array, c: Array, call: Array, put: Array,
        value: Array,
    ) -> None:  # fmt: skip
        def cdf_of(d: float) -> float:
            k = 1.0 / (1.0 + 0.2316419 * abs(d))
            poly = k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
            tail = 0.3989422804014327 * exp(-0.5 * d * d) * (k * (0.319381530 + poly))
            return tail if d < 0.0 else 1.0 - tail

        for i in numba.prange(n):
            root = sqrt(t[i])
            d1 = (log(s[i] / x[i]) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * t[i]) / (
                VOLATILITY * root
            )
            n1 = cdf_of(d1)
            n2 = cdf_of(d1 - VOLATILITY * root)
            discount = x[i] * exp(-RATE * t[i])
            call[i] = s[i] * n1 - discount * n2
            put[i] = discount * (1.0 - n2) - s[i] * (1.0 - n1)
            value[i] = call[i] + put[i]

    return loop


# --------------------------------------------------------------------------------- Monte Carlo
BLOCKS = 128


@fq.kernel
def uniform_pairs(item: fq.Item, seeds: Array, first: Array, second: Array) -> None:
    i = item.get_id(0)
    state = seeds[i]
    state = state * np.uint32(1664525) + np.uint32(1013904223)
    state = state ^ (state >> np.uint32(15))
    first[i] = (float(state >> np.uint32(8)) + 1.0) * (1.0 / 16777217.0)
    state = state * np.uint32(1664525) + np.uint32(1013904223)
    state = state ^ (state >> np.uint32(15))
    second[i] = float(state >> np.uint32(8)) * (1.0 / 16777216.0)
    seeds[i] = state


@fq.kernel
def box_muller(item: fq.Item, first: Array, second: Array, normal: Array) -> None:
    i = item.get_id(0)
    normal[i] = np.sqrt(-2.0 * np.log(first[i])) * np.cos(6.283185307179586 * second[i])


@fq.kernel
def walk(item: fq.Item, dt: Scalar, normal: Array, s: Array) -> None:
    i = item.get_id(0)
    drift = (RATE - 0.5 * VOLATILITY * VOLATILITY) * dt
    s[i] = s[i] * np.exp(drift + VOLATILITY * np.sqrt(dt) * normal[i])


@fq.kernel
def payoff(item: fq.Item, strike: Scalar, s: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = max(s[i] - strike, 0.0)


@fq.kernel
def block_sums(item: fq.Item, x: Array, sums: Array) -> None:
    block = item.get_id(0)
    length = (x.shape[0] + sums.shape[0] - 1) // sums.shape[0]
    total = 0.0
    for i in range(block * length, min((block + 1) * length, x.shape[0])):
        total += x[i]
    sums[block] = total


@fq.kernel
def mean_of_sums(item: fq.Item, count: Scalar, sums: Array, out: Array) -> None:
    total = 0.0
    for block in range(sums.shape[0]):
        total += sums[block]
    out[item.get_id(0)] = total / count


@fq.kernel
def step_at_once(item: fq.Item, dt: Scalar, seeds: Array, s: Array) -> None:
    i = item.get_id(0)
    state = seeds[i]
    state = state * np.uint32(1664525) + np.uint32(1013904223)
    state = state ^ (state >> np.uint32(15))
    first = (float(state >> np.uint32(8)) + 1.0) * (1.0 / 16777217.0)
    state = state * np.uint32(1664525) + np.uint32(1013904223)
    state = state ^ (state >> np.uint32(15))
    second = float(state >> np.uint32(8)) * (1.0 / 16777216.0)
    seeds[i] = state
    normal = np.sqrt(-2.0 * np.log(first)) * np.cos(6.283185307179586 * second)
    drift = (RATE - 0.5 * VOLATILITY * VOLATILITY) * dt
    s[i] = s[i] * np.exp(drift + VOLATILITY * np.sqrt(dt) * normal)


def submit_walks_split(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    seeds, s, first, second, normal, paid, sums, out = arrays
    for _ in range(steps):
        queue.submit(uniform_pairs, n, seeds, first, second)
        queue.submit(box_muller, n, first, second, normal)
        queue.submit(walk, n, 1.0 / steps, normal, s)
    queue.submit(payoff, n, 100.0, s, paid)
    queue.submit(block_sums, BLOCKS, paid, sums)
    queue.submit(mean_of_sums, 1, float(n), sums, out)


def submit_walks_at_once(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, steps = size
    seeds, s, _, _, _, paid, sums, out = arrays
    for _ in range(steps):
        queue.submit(step_at_once, n, 1.0 / steps, seeds, s)
    queue.submit(payoff, n, 100.0, s, paid)
    queue.submit(block_sums, BLOCKS, paid, sums)
    queue.submit(mean_of_sums, 1, float(n), sums, out)


def walks_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, _ = size
    arrays = {"seeds": rng.integers(1, 1 << 32, n, dtype=np.uint32), "s": np.full(n, 100.0)}
    arrays |= {name: np.zeros(n) for name in ("first", "second", "normal", "paid")}
    return {**arrays, "sums": np.zeros(BLOCKS), "out": np.zeros(1)}


def walks_numpy(size: Size, *arrays: Array) -> None:
    seeds, s, *_, out = arrays
    n, steps = size
    dt = 1.0 / steps

    def draw() -> Array:
        seeds[...] = seeds * np.uint32(1664525) + np.uint32(1013904223)
        seeds[...] ^= seeds >> np.uint32(15)
        return (seeds >> np.uint32(8)).astype(np.float64)

    for _ in range(steps):
        first = (draw() + 1.0) * (1.0 / 16777217.0)
        second = draw() * (1.0 / 16777216.0)
        normal = np.sqrt(-2.0 * np.log(first)) * np.cos(2 * math.pi * second)
        drift = (RATE - 0.5 * VOLATILITY * VOLATILITY) * dt
        s *= np.exp(drift + VOLATILITY * np.sqrt(dt) * normal)
    out[0] = np.maximum(s - 100.0, 0.0).sum() / n


PROGRAMS = (
    CorpusProgram(
        name="black_scholes",
        description="prices of calls and puts in closed form, float64",
        source="Black and Scholes, J. Polit. Econ. 1973; dpbench (Intel, 2023): black_scholes",
        axes=("n",),
        sizes={"tiny": (37,), "in cache": (1 << 14,), "out of cache": (1 << 21,)},
        arrays=price_arrays,
        inputs=("s", "x", "t"),
        outputs=("call", "put", "value"),
        forms=(
            Form("whole", "one kernel prices, one adds up", submit_price_whole),
            Form("vectorised", "seven kernels, as array expressions", submit_price_vectorised),
        ),
        reference=price_numpy,
        tolerance=1e-10,
        loop=price_loop,
    ),
    CorpusProgram(
        name="monte_carlo",
        description="random numbers, Box-Muller, walks, the mean payoff; uint32 and float64",
        source="Glasserman, Monte Carlo Methods in Financial Engineering, 2003; Rodinia's LCG",
        axes=("n", "steps"),
        sizes={"tiny": (150, 2), "in cache": (1 << 13, 6), "out of cache": (1 << 21, 3)},
        arrays=walks_arrays,
        inputs=(),
        outputs=("seeds", "s", "out"),
        forms=(
            Form("split", "draw, transform, walk: three kernels a step", submit_walks_split),
            Form("at once", "a kernel a step", submit_walks_at_once),
        ),
        reference=walks_numpy,
        tolerance=1e-9,
    ),
)
