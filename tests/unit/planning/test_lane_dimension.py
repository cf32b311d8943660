"""The dimension that a persistent kernel's lanes have: by strides, sizes and what a kernel asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.submission import Submission
from fusionq.base.target import Target
from fusionq.ir.nodes import LaneDimension
from fusionq.planning.known_values import sizes_of
from fusionq.planning.lane_dimension import (
    UNIFORM,
    lane_dimension,
    vector_cost,
)
from tests.unit.lists import submission
from tests.unit.targets import TWO_CORES

WEIGHTS = TWO_CORES.weights
GATHERED, SCATTERED = WEIGHTS.lane_gathered, WEIGHTS.lane_scattered
OPERATION, FUNCTION = WEIGHTS.lane_operation, WEIGHTS.lane_function
DIVISION, INTEGER_DIVISION = WEIGHTS.lane_division, WEIGHTS.lane_integer_division


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


@fq.kernel
def distances(item: fq.Item, points: Any, codes: Any, squares: Any) -> None:
    i = item.get_id(0)
    c = item.get_id(1)
    total = 0.0
    for d in range(points.shape[1]):
        difference = points[i, d] - codes[c, d]
        total += difference * difference
    squares[i, c] = total


def of_distances(points: int, codes: int, dims: int = 4) -> Submission:
    arrays = (zeros(n, m, dtype=np.float64) for n, m in
              ((points, dims), (codes, dims), (points, codes)))  # fmt: skip
    return submission(distances, (points, codes), *arrays)


def chosen(listed: Submission, target: Target = TWO_CORES) -> LaneDimension | None:
    return lane_dimension(listed.ir, sizes_of(listed), target)


def costs(kernel: Any, range_: Sequence[int], *arrays: Any) -> list[float]:
    listed = submission(kernel, tuple(range_), *arrays)
    return [vector_cost(listed.ir, sizes_of(listed), d, WEIGHTS) for d in range(listed.ir.ndim)]


def test_vectors_of_points_where_codes_are_few() -> None:
    found = chosen(of_distances(4096, 8))
    assert found is not None and found.dim == 0
    assert 10 < found.benefit < 16  # there each distance is scattered, here it is not


@pytest.mark.parametrize("codes", (16, 64, 15))
def test_rows_of_whole_vectors_stay_rows(codes: int) -> None:
    assert chosen(of_distances(4096, codes)) is None


def test_few_rows_are_no_vectors() -> None:
    assert chosen(of_distances(3, 8)) is None


def test_memory_is_written_by_rows() -> None:
    within = TWO_CORES.kept_bytes // (8 * (4 + 8)) - 8
    assert chosen(of_distances(within, 8)) is not None
    assert chosen(of_distances(within + 9, 8)) is None


@fq.kernel
def columns(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    b[j, i] = a[j, i] + a[0, i]


def test_rows_of_any_length_where_the_other_dimension_is_side_by_side() -> None:
    found = chosen(submission(columns, (300, 200), zeros(200, 300), zeros(200, 300)))
    assert found is not None and found.dim == 0 and found.benefit > 16 * GATHERED / 4
    first = SCATTERED + GATHERED + UNIFORM + OPERATION
    assert costs(columns, (300, 200), zeros(200, 300), zeros(200, 300)) == [
        1 + 1 + 1 + OPERATION, first
    ]  # fmt: skip


@fq.kernel
def everything(item: fq.Item, a: Any, d: Any, out: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    x = np.exp(a[i, j])  # 1 + FUNCTION; loaded once
    y = np.sqrt(d[0, 0]) + d[i, j] / 2.0  # a root for all lanes, (2 + 2 of DIVISION) + 2 additions
    if a[0, i] > 0:  # one for all lanes, but of data
        x += np.float32(j % 3)  # OPERATION for each of addition and conversion
    if i == 0:  # one for all lanes: every 20th
        x += a[i, 2 * j] + np.float32(j // 4)
    out[i, j] = np.float32(x ** np.float32(1.5)) + np.float32(y) + a[i, j]


def test_what_a_vector_takes() -> None:
    of_rows = costs(everything, (20, 8), *(zeros(20, 20, dtype=t) for t in "fdf"))[1]
    x = 1 + FUNCTION
    y = UNIFORM + 2 + 2 * DIVISION + 2 * OPERATION
    modulo = UNIFORM + INTEGER_DIVISION + 2 * OPERATION
    one_row = (GATHERED + (2 + 1 + 1 + 1) * OPERATION) / 20
    out = 1 + FUNCTION + (1 + 1 + 1) * OPERATION
    assert of_rows == pytest.approx(x + y + modulo + one_row + out)


@fq.kernel
def counts(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    fq.AtomicRef(b, j).fetch_add(a[j, i])


@fq.kernel
def local_ids(item: fq.NdItem, a: Any, b: Any) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    b[j, i] = a[j, i] + np.float32(item.get_local_id(1))


@fq.kernel
def by_ids(item: fq.NdItem, a: Any, b: Any) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    b[j, i] = a[j, i]


@fq.kernel
def one_dimension(item: fq.Item, a: Any, b: Any) -> None:
    b[item.get_id(0), 0] = a[item.get_id(0), 0]


def test_what_asks_for_rows_has_rows() -> None:
    a, b = zeros(8, 64), zeros(8, 64)
    assert chosen(submission(by_ids, fq.NdRange((64, 8), (8, 8)), a, b)) is not None
    assert chosen(submission(local_ids, fq.NdRange((64, 8), (8, 8)), a, b)) is None
    assert chosen(submission(counts, (64, 8), a.astype(np.int32), np.zeros(8, np.int32))) is None
    assert chosen(submission(one_dimension, 8, a, b)) is None


def test_threads_have_columns_of_their_own() -> None:
    assert chosen(of_distances(4096, 8), replace(TWO_CORES, worker_size=256)) is None
