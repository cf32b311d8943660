"""Lists of so many stages that their tables leave room for few workers of a GPU, whose threads then
have many registers and load ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import fusionq as fq

STAGES = 240


@fq.kernel
def product_of_pairs(item: fq.NdItem, a, x, out):
    """A work-group two rows."""
    row = 2 * item.get_global_id(0)
    own = np.float32(0)
    other = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], item.get_local_range(1)):
        factor = x[k]
        own += np.float32(a[row, k]) * factor
        other += np.float32(a[row + 1, k]) * factor
    first = fq.reduce_over_group(item.get_group(), own, "add")
    second = fq.reduce_over_group(item.get_group(), other, "add")
    if item.get_local_id(1) == 0:
        out[row] = first
        out[row + 1] = second


@fq.kernel
def normalised(item: fq.NdItem, gain, product, x, out):
    """One work-group."""
    own = np.float32(1)
    for i in range(item.get_local_id(0), x.shape[0], item.get_local_range(0)):
        own += x[i] * x[i]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    scale = np.float32(1) / np.sqrt(total)
    n = product.shape[0]
    for i in range(item.get_local_id(0), x.shape[0], item.get_local_range(0)):
        out[i] = x[i] * scale * np.float32(gain[i]) + product[(7 * i) % n]


def arrays(rows: int, columns: int) -> list[Any]:
    """A matrix, a gain, and what the list writes: a product and two vectors."""
    rng = np.random.default_rng(rows * columns)

    def some(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    return [
        fq.Buffer(some(rows, columns), fq.bfloat16),
        fq.Buffer(some(columns), fq.bfloat16),
        fq.Buffer(rows, np.float32),
        fq.Buffer(some(columns)),
        fq.Buffer(some(columns)),
    ]


def submit(queue: fq.FusionQueue, given: Sequence[Any], stages: int = STAGES) -> None:
    """Products and what is made of them in turn."""
    matrix, gain, product, x, y = given
    rows = matrix.shape[0]
    for _ in range(stages // 2):
        queue.submit(product_of_pairs, fq.NdRange((rows // 2, 128), (1, 128)), matrix, x, product)
        queue.submit(normalised, fq.NdRange(128, 128), gain, product, x, y)
        x, y = y, x
