"""Explicit time steps on regular grids.

``x`` and ``out`` have the grid's shape, which is the range, and one floating dtype.  Points on the
grid's edge keep their value (a Dirichlet boundary).  A step reads its neighbours, so it may not
run in place: take two arrays in turn.

Source: LeVeque, "Finite Difference Methods for Ordinary and Partial Differential Equations", 2007,
chapters 9 and 10.
"""

from __future__ import annotations

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, Scalar, reference_for


@fq.kernel
def heat_1d(item: fq.Item, rate: Scalar, x: Array, out: Array) -> None:
    """``out = x + rate · (left - 2 x + right)``, the 3-point stencil of the heat equation; stable
    for ``rate = diffusivity·Δt/Δx²`` up to 1/2."""
    i = item.get_id(0)
    if 0 < i < x.shape[0] - 1:
        out[i] = x[i] + rate * (x[i - 1] - 2.0 * x[i] + x[i + 1])
    else:
        out[i] = x[i]


@reference_for(heat_1d, dtypes=FLOATING, scalars={"rate": 0.25})
def heat_1d_reference(rate: Scalar, x: Array, out: Array) -> None:
    out[...] = x
    out[1:-1] = x[1:-1] + rate * (x[:-2] - 2.0 * x[1:-1] + x[2:])


@fq.kernel
def heat_2d(item: fq.Item, rate: Scalar, x: Array, out: Array) -> None:
    """``out = x + rate · (north + south + west + east - 4 x)``, the 5-point stencil of the heat
    equation on ``(rows, columns)``; stable for ``rate`` up to 1/4."""
    row = item.get_id(0)
    column = item.get_id(1)
    if 0 < row < x.shape[0] - 1 and 0 < column < x.shape[1] - 1:
        around = x[row - 1, column] + x[row + 1, column] + x[row, column - 1] + x[row, column + 1]
        out[row, column] = x[row, column] + rate * (around - 4.0 * x[row, column])
    else:
        out[row, column] = x[row, column]


@reference_for(heat_2d, ndim=2, dtypes=FLOATING, scalars={"rate": 0.125})
def heat_2d_reference(rate: Scalar, x: Array, out: Array) -> None:
    inner = x[1:-1, 1:-1]
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    out[...] = x
    out[1:-1, 1:-1] = inner + rate * (around - 4.0 * inner)


@fq.kernel
def heat_3d(item: fq.Item, rate: Scalar, x: Array, out: Array) -> None:
    """``out = x + rate · (sum of the six neighbours - 6 x)``, the 7-point stencil of the heat
    equation on ``(planes, rows, columns)``; stable for ``rate`` up to 1/6."""
    k = item.get_id(0)
    j = item.get_id(1)
    i = item.get_id(2)
    inside = 0 < k < x.shape[0] - 1 and 0 < j < x.shape[1] - 1 and 0 < i < x.shape[2] - 1
    if inside:
        around = x[k - 1, j, i] + x[k + 1, j, i] + x[k, j - 1, i]
        around += x[k, j + 1, i] + x[k, j, i - 1] + x[k, j, i + 1]
        out[k, j, i] = x[k, j, i] + rate * (around - 6.0 * x[k, j, i])
    else:
        out[k, j, i] = x[k, j, i]


@reference_for(heat_3d, ndim=3, dtypes=FLOATING, scalars={"rate": 0.125})
def heat_3d_reference(rate: Scalar, x: Array, out: Array) -> None:
    inner = x[1:-1, 1:-1, 1:-1]
    around = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1]
    around += x[1:-1, 2:, 1:-1] + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]
    out[...] = x
    out[1:-1, 1:-1, 1:-1] = inner + rate * (around - 6.0 * inner)


@fq.kernel
def wave_1d(item: fq.Item, rate: Scalar, before: Array, now: Array, after: Array) -> None:
    """``after = 2 now - before + rate · (left - 2 now + right)``, one leapfrog step of the wave
    equation; stable for ``rate = (c·Δt/Δx)²`` up to 1.  ``before``, ``now`` and ``after`` are
    three steps in a row."""
    i = item.get_id(0)
    if 0 < i < now.shape[0] - 1:
        bend = now[i - 1] - 2.0 * now[i] + now[i + 1]
        after[i] = 2.0 * now[i] - before[i] + rate * bend
    else:
        after[i] = now[i]


@reference_for(wave_1d, dtypes=FLOATING, scalars={"rate": 0.5})
def wave_1d_reference(rate: Scalar, before: Array, now: Array, after: Array) -> None:
    bend = now[:-2] - 2.0 * now[1:-1] + now[2:]
    after[...] = now
    after[1:-1] = 2.0 * now[1:-1] - before[1:-1] + rate * bend


@fq.kernel
def wave_2d(item: fq.Item, rate: Scalar, before: Array, now: Array, after: Array) -> None:
    """``wave_1d`` on ``(rows, columns)``, with the 5-point stencil; stable for ``rate`` up to
    1/2."""
    row = item.get_id(0)
    column = item.get_id(1)
    if 0 < row < now.shape[0] - 1 and 0 < column < now.shape[1] - 1:
        here = now[row, column]
        bend = now[row - 1, column] + now[row + 1, column]
        bend += now[row, column - 1] + now[row, column + 1] - 4.0 * here
        after[row, column] = 2.0 * here - before[row, column] + rate * bend
    else:
        after[row, column] = now[row, column]


@reference_for(wave_2d, ndim=2, dtypes=FLOATING, scalars={"rate": 0.25})
def wave_2d_reference(rate: Scalar, before: Array, now: Array, after: Array) -> None:
    here = now[1:-1, 1:-1]
    bend = now[:-2, 1:-1] + now[2:, 1:-1]
    bend += now[1:-1, :-2] + now[1:-1, 2:] - 4.0 * here
    after[...] = now
    after[1:-1, 1:-1] = 2.0 * here - before[1:-1, 1:-1] + rate * bend
