"""What a submission that comes again is not asked about again, and what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.submission.packed_values import PackedValues
from fusionq.submission.value_checks import MOST_FITTING


@fq.kernel
def put(item: fq.Item, k: Any, value: Any, out: Any) -> None:
    out[k + item.get_id(0)] = 1.0 / value


@fq.kernel
def fill(item: fq.Item, value: Any, out: Any) -> None:
    out[item.get_id(0), item.get_id(1)] = value


@pytest.fixture
def queue() -> fq.FusionQueue:
    return fq.FusionQueue("reference")


def test_tuples_as_ranges_are_known_by_the_types_of_their_extents(queue: fq.FusionQueue) -> None:
    out = fq.Buffer((2, 1), np.int64)
    queue.submit(fill, (2, 1), 3, out)
    queue.submit(fill, (np.int64(2), 1), 4, out)
    assert out.numpy().tolist() == [[4], [4]]
    for wrong in ((2.0, 1), (2, True), (2, 1.0), (2, -1), ()):
        with pytest.raises(fq.ArgumentError):
            queue.submit(fill, wrong, 5, out)
    with pytest.raises(fq.ArgumentError):
        queue.submit(fill, (2, [1]), 5, out)
    queue.submit(fill, (2, 1), 6, out)
    assert out.numpy().tolist() == [[6], [6]]


class Rows:
    """An integer that changes."""

    value = 0

    def __index__(self) -> int:
        return self.value


def test_extents_that_change_are_asked_each_time(queue: fq.FusionQueue) -> None:
    out, rows = fq.Buffer(np.zeros((3, 1), np.int64)), Rows()
    for rows.value in (3, 1, 2, 1):
        queue.submit(fill, (rows, 1), 10 + rows.value, out)
    assert out.numpy().tolist() == [[11], [12], [13]]


def test_nd_ranges_of_ints(queue: fq.FusionQueue) -> None:
    assert fq.NdRange(8, 4) == fq.NdRange(fq.Range(8), (4,))
    for wrong in (True, 8.0, -8):
        with pytest.raises(fq.ArgumentError):
            fq.NdRange(wrong, 4)


def test_scalars_that_fitted_once_and_others(queue: fq.FusionQueue) -> None:
    out = fq.Buffer(np.zeros(4))
    for _ in range(2):
        for k in range(4):
            queue.submit(put, 1, k, 2.0, out)
        for k in (4, -5, 1 << 70):
            with pytest.raises(fq.ArgumentError):
                queue.submit(put, 1, k, 2.0, out)
    assert out.numpy().tolist() == [0.5] * 4


def test_as_many_are_remembered_as_there_is_room_for(queue: fq.FusionQueue) -> None:
    out = fq.Buffer(np.zeros(2 * MOST_FITTING))
    for _ in range(2):
        for k in range(2 * MOST_FITTING):
            queue.submit(put, 1, k, float(k + 1), out)
    fittings = [entry.fitting for entry in queue._state.launcher.cache.known.values()]
    assert 0 < max(len(fitting or ()) for fitting in fittings) <= MOST_FITTING
    assert out.numpy().tolist() == [1.0 / (k + 1) for k in range(2 * MOST_FITTING)]


def test_lists_with_other_scalars_after_equal_ones(queue: fq.FusionQueue) -> None:
    out = fq.Buffer(np.zeros(2))
    nan = np.float32(np.nan)
    for values in ((2.0, 4.0), (2.0, 4.0), (2.0, 8.0), (2.0, 8.0), (2.0, nan), (2.0, nan)):
        with np.errstate(all="ignore"), fq.fusion(queue):
            for k, value in enumerate(values):
                queue.submit(put, 1, k, value, out)
        queue.wait()
        assert np.array_equal(out.numpy(), [1.0 / float(v) for v in values], equal_nan=True)
    with np.errstate(all="ignore"):
        for zero in (0.0, 0.0, -0.0, -0.0, 0.0):
            with fq.fusion(queue):
                queue.submit(put, 1, 0, zero, out)
                queue.submit(put, 1, 1, 1.0, out)
            queue.wait()
            assert out.numpy()[0] == np.copysign(np.inf, zero)


VALUES = [True, 3, -2.5, np.float32(0.1), np.float64(7), np.int8(-3), np.uint64(1 << 63)]


def test_packed_values_are_the_same_with_the_same_types_and_bits() -> None:
    packed = PackedValues.of(VALUES)
    assert packed is not None
    assert packed.are(list(VALUES))
    for position, other in [(0, False), (1, 4), (1, np.int64(3)), (2, 2.5), (1, 1 << 70),
                            (3, np.float32(0.2)), (4, 7.0), (6, np.uint64(0))]:  # fmt: skip
        assert not packed.are([*VALUES[:position], other, *VALUES[position + 1 :]])
    assert not packed.are(VALUES[:-1])


def test_zeros_have_signs_and_nans_are_themselves() -> None:
    zero, nan = PackedValues.of([0.0]), PackedValues.of([np.nan])
    assert zero is not None and nan is not None
    assert zero.are([0.0]) and not zero.are([-0.0])
    assert nan.are([float("nan")]) and not nan.are([0.0])


@pytest.mark.parametrize("value", [np.float16(1), 1 << 64, np.longdouble(1)])
def test_what_is_not_written_whole_is_not_packed(value: Any) -> None:
    assert PackedValues.of([1.0, value]) is None
