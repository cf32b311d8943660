"""Indices of 32 bits, in kernels over small sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import fusionq as fq
from fusionq.analysis.submission import Sized
from fusionq.base.options import FusionOptions
from fusionq.base.target import target_of
from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.kernel_source import generate
from fusionq.ir.nodes import SMALL
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import device

TARGET = target_of(replace(device(), narrow_indices=True))
MATRIX = np.zeros((6, 8), np.float32)
VECTOR = np.zeros(48, np.float32)


class Enlarged:
    """A submission with other sizes."""

    form = None

    def __init__(self, submission: Sized, sizes: dict[int, int]) -> None:
        self._submission = submission
        self._sizes = sizes

    def number(self, argument: int | None, dim: int | None) -> int:
        present = self._submission.number(argument, dim)
        return present if dim is None else self._sizes[present]


def plan_of(*calls: object, target=TARGET) -> Plan:
    return make_plan(submissions(*calls), FusionOptions(), target)


def text_of(*call: object) -> str:
    (stage,) = plan_of(call).stages
    return generate(stage.kernel, "strict", TARGET, CUDA_CPP).text


@fq.kernel
def rows(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] + a[i, j + 1] if j < a.shape[1] - 1 else a[i, 0]


@fq.kernel
def flat(item: fq.Item, a, out, n):
    t = item.get_id(0) * n + item.get_id(1)
    out[t] = a[t + 1] + a[item.get_id(0) * n - n]


@fq.kernel
def divided(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i // a.shape[1], i % a.shape[1]]


@fq.kernel
def summed(item: fq.Item, a, out, n):
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[item.get_id(0), k]
    for m in range(n):
        total += a[0, m % 2]
    out[item.get_id(0)] = total


def test_a_plan_is_for_small_sizes_as_long_as_they_are() -> None:
    calls = (rows, (6, 8), MATRIX, MATRIX.copy())
    plan = plan_of(calls)
    assert [stage.kernel.small_sizes for stage in plan.stages] == [True]
    listed = submissions(calls)
    for rows_, columns, small in (
        (1 << 10, 1 << 12, True), (1 << 15, (1 << 16) - 2, True), (1, SMALL, True),
        (1 << 15, 1 << 16, False), (1 << 20, 1 << 20, False), (1, SMALL + 1, False),
    ):  # fmt: skip
        today = [Enlarged(s, {6: rows_, 8: columns}) for s in listed]
        assert plan.validity.holds(today) == small, (rows_, columns)


def test_only_devices_that_ask_for_it_get_a_kernel_of_its_own() -> None:
    plan = plan_of((rows, (6, 8), MATRIX, MATRIX.copy()), target=target_of(device()))
    assert not plan.stages[0].kernel.small_sizes


def test_sizes_of_nothing_have_no_kernel_of_their_own() -> None:
    """Of an extent of 0 a division by it is not the processor's."""
    plan = plan_of((divided, 48, np.zeros((6, 0), np.float32), VECTOR))
    assert not any(stage.kernel.small_sizes for stage in plan.stages)


def test_indices_are_computed_in_int() -> None:
    text = text_of(rows, (6, 8), MATRIX, MATRIX.copy())
    assert "* (int)a_shape1 + " in text and ") + 1]" in text
    assert "unsigned)" not in text


def test_a_constant_beside_an_unknown_index_is_a_displacement() -> None:
    """All but what may leave 32 bits on its way, which is computed modulo two to the 32."""
    text = text_of(flat, (6, 8), VECTOR, VECTOR.copy(), 8)
    assert "a[(int)t + 1]" in text
    assert "a[(int)((unsigned)(" in text


def test_divisions_are_of_32_bits() -> None:
    text = text_of(divided, 48, MATRIX, VECTOR)
    assert "fq_floordiv" not in text and "fq_mod" not in text
    assert "/ (int)a_shape1" in text and "% (int)a_shape1" in text


def test_loops_count_in_32_bits_where_their_ends_are_sizes() -> None:
    text = text_of(summed, 6, MATRIX, VECTOR[:6], 8)
    assert "for (int k = 0; k < (int)a_shape1; k++)" in text
    assert "for (int m = 0; m < 8; m++)" in text


@fq.kernel
def gathered(item: fq.Item, a, near, far, out):
    i = item.get_id(0)
    place = far[i] + 1
    out[i] = a[near[i]] + a[far[i]] + a[place]


def test_an_index_of_memory_stays_as_wide_as_it_is() -> None:
    """So that an access far outside is one of no memory, which GPUs find."""
    near, far = np.zeros(48, np.int32), np.zeros(48, np.int64)
    text = text_of(gathered, 48, VECTOR, near, far, VECTOR.copy())
    assert "a[near[" in text and "a[far[" in text and "a[place]" in text
    assert "long long place" in text


@fq.kernel
def compressed(item: fq.Item, values, ends, out):
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(ends[i], ends[i + 1]):
        total += values[k]
    out[i] = total


def test_loops_between_narrow_numbers_of_memory_are_narrow() -> None:
    text = text_of(compressed, 47, VECTOR, np.zeros(48, np.int32), VECTOR[:47].copy())
    assert "for (int k = ends[" in text
