"""Reductions and prefix sums of long vectors, without work-group barriers.

A vector ``x`` ``(n,)`` is cut into slabs of SLAB elements; the last may be shorter.  Partial
results ``(slabs, LANES)`` are as those of ``row_reductions``, whose ``combine_sums`` and
``column_sums`` add them up.  Floating sums depend on the order of adding up; integers wrap.
"""

from __future__ import annotations

import math

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, Extents, Scalar, reference_for
from fusionq.kernels.reductions import in_one
from fusionq.kernels.row_reductions import LANES, SUMMED, row_sums_reference

SLAB = 4096
"""Elements of a slab; a multiple of LANES."""


def slabs(extents: Extents) -> Extents:
    """The range of one work-item a slab, and the shape of one result a slab."""
    return (-(-extents[0] // SLAB),)


def lanes_of_slabs(extents: Extents) -> Extents:
    """The range of LANES work-items a slab, and the shape of partial results."""
    return (*slabs(extents), LANES)


def one_item(extents: Extents) -> Extents:
    """The range of kernels that one work-item runs."""
    return (1,)


def in_slabs(x: Array) -> Array:
    """``x`` ``(n,)`` as ``(slabs, SLAB)``, filled up with zeros."""
    return np.pad(x, (0, -x.size % SLAB)).reshape(-1, SLAB)


@fq.kernel
def slab_sums(item: fq.Item, x: Array, partial: Array) -> None:
    """Partial sums ``(slabs, LANES)`` of the slabs of ``x`` ``(n,)``."""
    slab = item.get_id(0)
    lane = item.get_id(1)
    total = x.dtype.type(0)
    for i in range(slab * SLAB + lane, min((slab + 1) * SLAB, x.shape[0]), LANES):
        total += x[i]
    partial[slab, lane] = total


@reference_for(
    slab_sums, dtypes=SUMMED, range_of=lanes_of_slabs, shapes={"partial": lanes_of_slabs},
    reorders=True,
)  # fmt: skip
def slab_sums_reference(x: Array, partial: Array) -> None:
    row_sums_reference(in_slabs(x), partial)


@fq.kernel
def slab_deviations(item: fq.Item, x: Array, mean: Array, partial: Array) -> None:
    """Partial sums ``(slabs, LANES)`` of ``(x - mean)²`` for ``x`` ``(n,)``, ``mean`` ``(1,)``."""
    slab = item.get_id(0)
    lane = item.get_id(1)
    total = x.dtype.type(0)
    for i in range(slab * SLAB + lane, min((slab + 1) * SLAB, x.shape[0]), LANES):
        distance = x[i] - mean[0]
        total += distance * distance
    partial[slab, lane] = total


@reference_for(
    slab_deviations, dtypes=FLOATING, range_of=lanes_of_slabs,
    shapes={"mean": in_one, "partial": lanes_of_slabs}, reorders=True,
)  # fmt: skip
def slab_deviations_reference(x: Array, mean: Array, partial: Array) -> None:
    distance = x - mean
    slab_sums_reference(distance * distance, partial)


@fq.kernel
def lane_square_sums(item: fq.Item, x: Array, sums: Array) -> None:
    """Partial sums ``(LANES,)`` of the squares of a short vector ``x`` ``(n,)``."""
    lane = item.get_id(0)
    total = x.dtype.type(0)
    for i in range(lane, x.shape[0], LANES):
        total += x[i] * x[i]
    sums[lane] = total


def one_vector(extents: Extents) -> Extents:
    """The range of LANES work-items, and the shape of their results."""
    return (LANES,)


@reference_for(
    lane_square_sums, dtypes=SUMMED, range_of=one_vector, shapes={"sums": one_vector},
    reorders=True,
)  # fmt: skip
def lane_square_sums_reference(x: Array, sums: Array) -> None:
    squares = np.pad(x * x, (0, -x.size % LANES))
    squares.reshape(-1, LANES).sum(axis=0, dtype=x.dtype, out=sums)


@fq.kernel
def mean_of_sums(item: fq.Item, count: Scalar, sums: Array, mean: Array) -> None:
    """``mean = Σ sums / count``: the mean ``(1,)`` of ``count`` elements from a few partial
    ``sums`` ``(parts,)``; the range is 1."""
    total = sums.dtype.type(0)
    for part in range(sums.shape[0]):
        total += sums[part]
    mean[item.get_id(0)] = total / count


@reference_for(
    mean_of_sums, dtypes=FLOATING, scalars={"count": 50.0}, range_of=one_item,
    shapes={"mean": in_one}, reorders=True,
)  # fmt: skip
def mean_of_sums_reference(count: Scalar, sums: Array, mean: Array) -> None:
    mean[0] = sums.sum() / count


@fq.kernel
def inverse_root_of_sums(
    item: fq.Item, count: Scalar, epsilon: Scalar, sums: Array, out: Array
) -> None:
    """``out = 1 / √(Σ sums / count + epsilon)``: the inverse standard deviation, or inverse root
    mean square, ``(1,)`` of ``count`` elements from a few partial sums of squares ``(parts,)``;
    the range is 1."""
    total = sums.dtype.type(0)
    for part in range(sums.shape[0]):
        total += sums[part]
    out[item.get_id(0)] = 1.0 / math.sqrt(total / count + epsilon)


@reference_for(
    inverse_root_of_sums, dtypes=FLOATING, scalars={"count": 50.0, "epsilon": 1e-5},
    range_of=one_item, shapes={"out": in_one}, positive=("sums",), reorders=True,
)  # fmt: skip
def inverse_root_of_sums_reference(count: Scalar, epsilon: Scalar, sums: Array, out: Array) -> None:
    out[0] = 1.0 / np.sqrt(sums.sum() / count + epsilon)


@fq.kernel
def offsets_of_sums(item: fq.Item, sums: Array, offsets: Array) -> None:
    """``offsets[k]``: the sum of ``sums`` before ``k``; both ``(n,)``, the range is 1."""
    total = sums.dtype.type(0)
    for k in range(item.get_id(0), sums.shape[0]):
        offsets[k] = total
        total += sums[k]


@reference_for(offsets_of_sums, dtypes=SUMMED, range_of=one_item, reorders=True)
def offsets_of_sums_reference(sums: Array, offsets: Array) -> None:
    offsets[:1] = 0
    np.cumsum(sums[:-1], dtype=sums.dtype, out=offsets[1:])


@fq.kernel
def prefix_sums_of_slabs(item: fq.Item, x: Array, offsets: Array, out: Array) -> None:
    """``out[i]``: the slab's offset plus the sum of its ``x`` up to ``i``; ``x`` and ``out``
    ``(n,)``, ``offsets`` ``(slabs,)``."""
    slab = item.get_id(0)
    total = offsets[slab]
    for i in range(slab * SLAB, min((slab + 1) * SLAB, x.shape[0])):
        total += x[i]
        out[i] = total


@reference_for(
    prefix_sums_of_slabs, dtypes=SUMMED, range_of=slabs, shapes={"offsets": slabs}, reorders=True
)
def prefix_sums_of_slabs_reference(x: Array, offsets: Array, out: Array) -> None:
    for slab, offset in enumerate(offsets):
        part = slice(slab * SLAB, (slab + 1) * SLAB)
        np.cumsum(x[part], dtype=x.dtype, out=out[part])
        out[part] += offset
