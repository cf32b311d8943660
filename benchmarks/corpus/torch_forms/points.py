"""Points, tables and sequences: distances, statistics, scans, sorts, options."""

from __future__ import annotations

import math
from typing import Any

from fusionq.benchmarks.corpus.programs.finance import RATE, VOLATILITY
from fusionq.benchmarks.corpus.programs.pairs import BINS
from fusionq.benchmarks.corpus.programs.particles import DT, SOFTENING
from fusionq.benchmarks.corpus.programs.sequences import LEVELS
from fusionq.benchmarks.corpus.torch_forms.form import Size, Tensor, TorchForm


def kmeans(
    torch: Any, size: Size, points: Tensor, centroids: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    _n, k, steps = size
    for _step in range(steps):
        squares = (points[:, None, :] - centroids).square().sum(-1)
        centroids = means(torch, points, squares.argmin(1), centroids, k)
    return (centroids,)


def means(torch: Any, points: Tensor, labels: Tensor, codes: Tensor, k: int) -> Tensor:
    """Of the points of each label; codes of labels that have none stay."""
    mine = labels[:, None] == torch.arange(k, device=labels.device)
    counts = mine.sum(0)[:, None]
    sums = torch.where(mine[:, :, None], points[:, None, :], 0.0).sum(0)
    return torch.where(counts > 0, sums / counts.clamp(min=1), codes)


def lloyd(torch: Any, size: Size, points: Tensor, codes: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    _n, k, _dims, steps = size
    for _step in range(steps):
        squares = (points[:, None, :] - codes).square().sum(-1)
        codes = means(torch, points, squares.argmin(1), codes, k)
    return (codes,)


def pairwise_distance(
    torch: Any, size: Size, x: Tensor, y: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    return ((x[:, None, :] - y).square().sum(-1).sqrt(),)


def gpairs(
    torch: Any, size: Size, p: Tensor, q: Tensor, w: Tensor, edges: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    squares = (p[:, None, :] - q).square().sum(-1)
    rows = [w * torch.where(squares <= edges[k], w, 0.0).sum(1) for k in range(BINS)]
    return (torch.stack([row.sum() for row in rows]) / size[0],)


def nbody(
    torch: Any, size: Size, mass: Tensor, x: Tensor, v: Tensor, a: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    for _step in range(size[1]):
        v = v + a * (0.5 * DT)
        x = x + v * DT
        d = x[:, None, :] - x[:, :, None]
        square = (d * d).sum(0) + SOFTENING**2
        a = (d * (mass / (square * torch.sqrt(square)))).sum(-1)
        v = v + a * (0.5 * DT)
    return x, v


def row_entropy(torch: Any, size: Size, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    shares = x / x.sum(1, keepdim=True)
    return ((-shares * torch.log(shares)).sum(1),)


def principal_components(
    torch: Any, size: Size, x: Tensor, mean: Tensor, c: Tensor, v: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    x = x - x.mean(0)
    c = x.T @ x / (size[0] - 1)
    for _step in range(size[2]):
        w = c @ v
        v = w / torch.sqrt(w @ w)
    return x @ v, v


def prefix_sum(torch: Any, size: Size, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    return (torch.cumsum(x, 0),)


def histogram(torch: Any, size: Size, image: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    counts = torch.zeros(LEVELS, dtype=torch.int32, device=image.device)
    counts = counts.scatter_add(0, image, torch.ones_like(image, dtype=torch.int32))
    cdf = torch.cumsum(counts, 0)
    return counts, cdf[image] * 255 // size[0]


def bitonic_sort(torch: Any, size: Size, x: Tensor) -> tuple[Tensor, ...]:
    runs = x.view(-1, 2, size[1]).sort(2).values
    return (torch.stack((runs[:, 0], runs[:, 1].flip(1)), 1).view(-1),)


def black_scholes(
    torch: Any, size: Size, s: Tensor, x: Tensor, t: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    def normal_cdf(d: Tensor) -> Tensor:
        k = 1.0 / (1.0 + 0.2316419 * torch.abs(d))
        poly = k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        tail = 0.3989422804014327 * torch.exp(-0.5 * d * d) * (k * (0.319381530 + poly))
        return torch.where(d < 0.0, tail, 1.0 - tail)

    root = torch.sqrt(t)
    drift = (RATE + 0.5 * VOLATILITY * VOLATILITY) * t
    d1 = (torch.log(s / x) + drift) / (VOLATILITY * root)
    n1, n2 = normal_cdf(d1), normal_cdf(d1 - VOLATILITY * root)
    discount = x * torch.exp(-RATE * t)
    call = s * n1 - discount * n2
    put = discount * (1.0 - n2) - s * (1.0 - n1)
    return call, put, call + put


def monte_carlo(torch: Any, size: Size, seeds: Tensor, s: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    n, steps = size
    dt = 1.0 / steps
    drift = (RATE - 0.5 * VOLATILITY * VOLATILITY) * dt

    def drawn(seeds: Tensor) -> Tensor:
        seeds = (seeds * 1664525 + 1013904223) & 0xFFFFFFFF
        return seeds ^ (seeds >> 15)

    for _step in range(steps):
        seeds = drawn(seeds)
        first = ((seeds >> 8).to(torch.float64) + 1.0) * (1.0 / 16777217.0)
        seeds = drawn(seeds)
        second = (seeds >> 8).to(torch.float64) * (1.0 / 16777216.0)
        normal = torch.sqrt(-2.0 * torch.log(first)) * torch.cos(2 * math.pi * second)
        s = s * torch.exp(drift + VOLATILITY * math.sqrt(dt) * normal)
    return seeds, s, (torch.relu(s - 100.0).sum() / n)[None]


FORMS = {
    "kmeans": TorchForm(kmeans),
    "lloyd": TorchForm(lloyd),
    "pairwise_distance": TorchForm(pairwise_distance),
    "gpairs": TorchForm(gpairs),
    "nbody": TorchForm(nbody),
    "row_entropy": TorchForm(row_entropy),
    "principal_components": TorchForm(principal_components),
    "prefix_sum": TorchForm(prefix_sum),
    "histogram": TorchForm(histogram),
    "bitonic_sort": TorchForm(bitonic_sort),
    "black_scholes": TorchForm(black_scholes),
    "monte_carlo": TorchForm(monte_carlo),
}
