"""Overlapped tiles that store around the caches leave the bits that ordinary stores leave.

The devices are said to have caches of a few bytes, so that every launch leaves them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.printer import print_kernel
from tests.e2e.test_overlapped_tiles import tiled_everywhere

SHAPES = [(40, 64), (70, 832), (9, 833), (33, 517), (5, 16), (3, 7)]


@fq.kernel
def across(item: fq.Item, a, t):
    i, j = item.get_id(0), item.get_id(1)
    t[i, j] = a[i, max(j - 2, 0)] + a[i, min(j + 1, a.shape[1] - 1)]


@fq.kernel
def down(item: fq.Item, t, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = t[max(i - 1, 0), j] - t[min(i + 2, t.shape[0] - 1), j]


@fq.kernel
def guarded(item: fq.Item, t, out):
    i, j = item.get_id(0), item.get_id(1)
    if 0 < i < t.shape[0] - 1 and 2 < j < t.shape[1] - 1:
        out[i, j] = t[i - 1, j] - t[i + 1, j - 3] + t[i, j + 1]


@fq.kernel
def inside(item: fq.Item, t, out, more):
    i, j = item.get_id(0) + 1, item.get_id(1) + 3
    out[i, j] = t[i - 1, j] - t[i + 1, j - 3] + t[i, j + 1]
    more[i - 1, j - 3] = t[i, j - 1]


@fq.kernel
def in_place(item: fq.Item, t, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = out[i, j] + t[i, max(j - 1, 0)]


@pytest.fixture(params=["reference", None])
def queue(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fq.FusionQueue]:
    """A queue on a device with next to no caches, whose temporaries are computed by tiles."""
    if request.param is None:
        request.getfixturevalue("sycl_queue")
    tiled_everywhere(monkeypatch)
    with fq.FusionQueue(request.param) as made:
        backend = made._state.launcher.backend
        device = replace(backend.target.device, streams_stores=True)
        backend.target = replace(backend.target, device=device, cache_bytes=2)
        yield made


def values(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(5).uniform(-9, 9, shape).astype(dtype)


def streamed(
    queue: fq.FusionQueue, calls: Sequence[tuple], outputs: Sequence[fq.Buffer]
) -> list[str]:
    """The arrays to which a list's overlapped tiles store around the caches, once it has been seen
    to leave the same as unfused."""
    before = [output.numpy().copy() for output in outputs]
    left = []
    for strategy in ("unfused", "overlap"):
        for output, contents in zip(outputs, before, strict=True):
            output.write(contents)
        with fq.fusion(queue, strategy=strategy, promote="internal") as f:
            for call in calls:
                queue.submit(*call)
        left.append([output.numpy().copy() for output in outputs])
    for one, other in zip(*left, strict=True):
        np.testing.assert_array_equal(one, other)
    (stage,) = f.report.plan.stages
    assert stage.tiling is not None
    lines = print_kernel(stage.kernel).splitlines()
    return [line.strip().partition("[")[0] for line in lines if "# non-temporal" in line]


def buffers(*arrays: np.ndarray) -> list[fq.Buffer]:
    return [fq.Buffer(array) for array in arrays]


@pytest.mark.in_turn
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_end_anywhere(queue: fq.FusionQueue, shape: tuple[int, int]) -> None:
    a, out = buffers(values(shape), np.full(shape, 7, np.float32))
    t = fq.Buffer(shape, np.float32, internal=True)
    assert streamed(queue, [(across, shape, a, t), (down, shape, t, out)], [out]) == ["out"]


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint32", "int64", "float64"])
def test_each_size_of_elements(queue: fq.FusionQueue, dtype: str) -> None:
    shape = (37, 544)
    a, out = buffers(values(shape, dtype), np.full(shape, 7, dtype))
    t = fq.Buffer(shape, dtype, internal=True)
    assert streamed(queue, [(across, shape, a, t), (down, shape, t, out)], [out]) == ["out"]


def test_temporaries_that_stay(queue: fq.FusionQueue) -> None:
    shape = (30, 400)
    a, t, out = buffers(values(shape), *(np.full(shape, 7, np.float32) for _ in range(2)))
    calls = [(across, shape, a, t), (down, shape, t, out)]
    assert len(streamed(queue, calls, [t, out])) == 2


@pytest.mark.in_turn
@pytest.mark.parametrize("shape", [(40, 64), (9, 833)])
def test_rows_of_which_some_are_left_out(queue: fq.FusionQueue, shape: tuple[int, int]) -> None:
    """Vectors that are aligned would leave both ends of a row to masks."""
    a, out, more = buffers(values(shape), *(np.full(shape, 7, np.float32) for _ in range(2)))
    t = fq.Buffer(shape, np.float32, internal=True)
    assert streamed(queue, [(across, shape, a, t), (guarded, shape, t, out)], [out]) == []
    rows, columns = shape
    calls = [(across, shape, a, t), (inside, (rows - 2, columns - 4), t, out, more)]
    assert streamed(queue, calls, [out]) == []


@pytest.mark.in_turn
@pytest.mark.parametrize("offset", [(0, 1), (3, 16), (1, 0)])
def test_arrays_that_begin_anywhere(queue: fq.FusionQueue, offset: tuple[int, int]) -> None:
    shape = (37, 544)
    whole = fq.Buffer(np.full((50, 600), 7, np.float32))
    i, j = offset
    a, out = fq.Buffer(values(shape)), whole[i : i + 37, j : j + 544]
    t = fq.Buffer(shape, np.float32, internal=True)
    assert streamed(queue, [(across, shape, a, t), (down, shape, t, out)], [whole]) == ["out"]


def test_what_is_loaded_too_is_in_the_caches(queue: fq.FusionQueue) -> None:
    shape = (20, 320)
    a, out = buffers(values(shape), values(shape))
    t = fq.Buffer(shape, np.float32, internal=True)
    assert streamed(queue, [(across, shape, a, t), (in_place, shape, t, out)], [out]) == []
