"""Long lists of submissions, a family for each way in which they depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

import fusionq as fq
from fusionq.benchmarks.cases.transformer_block import CASE as BLOCK

Submission: TypeAlias = tuple[Any, int | tuple[int, ...], tuple[Any, ...]]
"""A kernel, its range, its arguments."""

ITEMS = 1024
"""Work-items of most submissions: planning is measured, not the device."""
NODES = 192
"""Of the graph whose shortest paths are found."""
WIDTH = 64
"""Of the decoder's layers."""


@fq.kernel
def scaled(item: fq.Item, a: Any, b: Any) -> None:
    """``b = a / 2 + 1``, element by element."""
    i = item.get_id(0)
    b[i] = a[i] * 0.5 + 1.0


@fq.kernel
def averaged(item: fq.Item, a: Any, b: Any) -> None:
    """Each element's average with its neighbours."""
    i = item.get_id(0)
    n = item.get_range(0)
    if i > 0 and i < n - 1:
        b[i] = (a[i - 1] + a[i] + a[i + 1]) * 0.333


@fq.kernel
def summed(item: fq.Item, a: Any, b: Any, c: Any) -> None:
    """``c = a + b``, element by element."""
    i = item.get_id(0)
    c[i] = a[i] + b[i]


@fq.kernel
def shortened(item: fq.Item, d: Any, k: int) -> None:
    """Paths that are shorter by way of node ``k``."""
    i = item.get_id(0)
    j = item.get_id(1)
    t = d[i, k] + d[k, j]
    if t < d[i, j]:
        d[i, j] = t


@fq.kernel
def reversed_copy(item: fq.Item, a: Any, b: Any) -> None:
    """``b`` is ``a`` from back to front."""
    i = item.get_id(0)
    b[i] = a[item.get_range(0) - 1 - i]


@fq.kernel
def shifted(item: fq.Item, a: Any, b: Any, distance: int) -> None:
    """Adds to ``b`` what lies ``distance`` on in ``a``."""
    i = item.get_id(0)
    if i + distance < item.get_range(0):
        b[i] = b[i] + a[i + distance]


@fq.kernel
def first_half(item: fq.Item, a: Any, b: Any) -> None:
    """Changes half of ``b`` only."""
    i = item.get_id(0)
    if i < item.get_range(0) // 2:
        b[i] = a[i] - 1.0


def chain(length: int) -> Iterator[Submission]:
    """One element-wise kernel with two buffers in turn."""
    a, b = _vector(), _vector()
    for _ in range(length):
        yield scaled, ITEMS, (a, b)
        a, b = b, a


def stencil(length: int) -> Iterator[Submission]:
    """A stencil of three points with two buffers in turn."""
    a, b = _vector(), _vector()
    for _ in range(length):
        yield averaged, ITEMS, (a, b)
        a, b = b, a


def tree(length: int) -> Iterator[Submission]:
    """Sums of two until one is left, each with a buffer of its own."""
    level = [_vector() for _ in range(length + 1)]
    while len(level) > 1:
        above = [level[-1]] if len(level) % 2 else []
        for a, b in zip(level[0::2], level[1::2], strict=False):
            c = _vector()
            yield summed, ITEMS, (a, b, c)
            above.insert(-1 if len(level) % 2 else len(above), c)
        level = above


def transformer(length: int) -> Iterator[Submission]:
    """Layers of a decoder, one token, with weights of their own: a layer is 33 submissions."""
    extents = BLOCK.extents(WIDTH)
    specs = {spec.name: spec for spec in BLOCK.arrays}
    shared: dict[str, fq.Buffer] = {}
    x = _buffer(specs["x"].shape(extents))
    count = 0
    while True:
        own = {"x": x, "out": _buffer(specs["out"].shape(extents))}
        for step in BLOCK.steps:
            if count == length:
                return
            count += 1
            arguments: list[fq.Buffer | float] = []
            for argument in step.arguments:
                if isinstance(argument, str):
                    spec = specs[argument]
                    buffers = shared if spec.role == "temporary" else own
                    if argument not in buffers:
                        buffers[argument] = _buffer(spec.shape(extents), spec.between)
                    arguments.append(buffers[argument])
                else:
                    arguments.append(argument(extents) if callable(argument) else argument)
            range_ = step.range_of(extents)
            yield step.kernel, range_[0] if len(range_) == 1 else range_, tuple(arguments)
        x = own["out"]


def shortest_paths(length: int) -> Iterator[Submission]:
    """All pairs of nodes: an update in place with an integer that changes each time."""
    d = _buffer((NODES, NODES), (1.0, 100.0))
    for k in range(length):
        yield shortened, (NODES, NODES), (d, k % NODES)


def random(length: int) -> Iterator[Submission]:
    """Kernels and buffers drawn at random: few blocks of the list are alike."""
    rng = np.random.default_rng(0)
    buffers = [_vector() for _ in range(16)]
    kernels = (scaled, averaged, summed, reversed_copy, shifted, first_half)
    for _ in range(length):
        kernel = kernels[rng.integers(len(kernels))]
        a, b, c = (buffers[k] for k in rng.permutation(len(buffers))[:3])
        if kernel is summed:
            yield kernel, ITEMS, (a, b, c)
        elif kernel is shifted:
            yield kernel, ITEMS, (a, b, int(rng.integers(1, 9)))
        else:
            yield kernel, ITEMS, (a, b)


def _vector() -> fq.Buffer:
    return _buffer((ITEMS,))


def _buffer(shape: tuple[int, ...], between: tuple[float, float] = (0.0, 1.0)) -> fq.Buffer:
    rng = np.random.default_rng(0)
    low, high = between
    return fq.Buffer((rng.random(shape) * (high - low) + low).astype(np.float32))


FAMILIES: dict[str, Callable[[int], Iterator[Submission]]] = {
    "chain": chain,
    "stencil": stencil,
    "tree": tree,
    "transformer": transformer,
    "shortest_paths": shortest_paths,
    "random": random,
}
"""By name; each gives a list of the length that it is asked for."""
