"""Loads and stores of 16 bytes: the compiler makes them, and launches have them where they may."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.base import ArrayBinding
from fusionq.backends.cuda.grid import Grid
from fusionq.backends.cuda.program import CudaProgram, generated
from fusionq.base.target import LaunchShape
from fusionq.codegen.neighbours import with_neighbours
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import ArrayParam, Binary, Const, If, ItemQuery, Param, Record
from fusionq.ir.range_guard import range_guard
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions
from fusionq.profiling.lowering import lower_records
from tests.unit.cuda.compile_only import TARGET, compiling_queue
from tests.unit.cuda.test_compiles import intermediate_text


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def axpy(item: fq.Item, a, s, out):
    i = item.get_id(0)
    out[i] = a[i] * s + out[i]


@fq.kernel
def plus_row(item: fq.Item, a, row, out):
    y = item.get_id(0)
    x = item.get_id(1)
    out[y, x] = a[y, x] + row[x]


@fq.kernel
def three_points(item: fq.Item, a, out):
    i = item.get_id(0)
    left = a[i - 1] if i > 0 else a[0]
    right = a[i + 1] if i + 1 < a.shape[0] else a[i]
    out[i] = left + a[i] + right


@fq.kernel
def five_points(item: fq.Item, a, out):
    y = item.get_id(0)
    x = item.get_id(1)
    if 0 < y < a.shape[0] - 1 and 0 < x < a.shape[1] - 1:
        out[y, x] = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1] + a[y, x]


def ones(shape, dtype=np.float32) -> fq.Buffer:
    return fq.Buffer(np.ones(shape, dtype))


def vectors_of(*submission: Any) -> tuple[int, int]:
    """Loads and stores of 16 bytes of the function for several work-items."""
    with compiling_queue(["sm_90"]) as (queue, _), fq.fusion(queue) as f:
        queue.submit(*submission)
    text = intermediate_text(f.report.device_source).partition("_wide(")[2]
    loads, stores = (
        len(re.findall(rf"{kind}\.global\.(?:nc\.)?v4\.[fu]32", text)) for kind in ("ld", "st")
    )
    return loads, stores


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.bool_, np.int16, np.float16, ml_dtypes.bfloat16, np.float32, np.int32]
)
def test_one_instruction_for_16_bytes(nvrtc, dtype) -> None:
    assert vectors_of(copy, 4096, ones(4096, dtype), ones(4096, dtype)) == (1, 1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_what_is_computed_stands_between(nvrtc, dtype) -> None:
    factor = np.dtype(dtype).type(2)
    assert vectors_of(axpy, 4096, ones(4096, dtype), factor, ones(4096, dtype)) == (2, 1)


def test_rows(nvrtc) -> None:
    row, out = ones(128), ones((64, 128))
    assert vectors_of(plus_row, (64, 128), ones((64, 128)), row, out) == (2, 1)
    assert vectors_of(plus_row, (64, 128), ones((64, 160))[:, 8:136], row, out) == (2, 1)


def test_stencils(nvrtc) -> None:
    assert vectors_of(three_points, 4096, ones(4096), ones(4096)) == (1, 1)
    loads, stores = vectors_of(five_points, (64, 128), ones((64, 128)), ones((64, 128)))
    assert loads >= 3 and stores == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, ml_dtypes.bfloat16, np.float32])
def test_tiles_of_persistent_kernels(nvrtc, dtype) -> None:
    """Indices of 32 bits; what reads an array that no stage writes does so as from any other."""
    a, b, c = (ones(8192, dtype) for _ in range(3))
    calls = (axpy, 8192, a, np.dtype(dtype).type(1), b), (three_points, 8192, b, c)
    with compiling_queue([]) as (queue, backend), fq.fusion(queue, strategy="megakernel") as f:
        for call in calls * 2:
            queue.submit(*call)
    assert f.report.strategy == "megakernel"
    text = intermediate_text(generated(backend.kernels[0], "strict", TARGET).text)
    loads, stores = (
        len(re.findall(rf"{kind}\.global\.(?:nc\.)?v4\.[bfu]32", text)) for kind in ("ld", "st")
    )
    assert loads >= 3 and stores >= 2


def test_where_vectors_may_begin() -> None:
    with compiling_queue([]) as (queue, _), fq.fusion(queue) as f:
        queue.submit(plus_row, (64, 128), ones((64, 160))[:, 8:136], ones(128), ones((64, 128)))
    assert f._list is not None and f._list.run is not None
    (stage,) = f._list.run.built.plan.stages
    kernel = stage.kernel
    source = generated(kernel, "strict", TARGET)
    assert source.neighbours == 4
    device = SimpleNamespace(threads=8192)
    program = CudaProgram(kernel, device, "strict", source, b"", 0.0, "plain", 1024, "wide")  # type: ignore[arg-type]
    shape = LaunchShape((64, 128), (4, 32))

    def is_wide(over: LaunchShape = shape, **changed: Any) -> bool:
        """``changed``: address, shape or strides of the arrays, in the order of the parameters."""
        given = {
            "address": [1 << 20, 1 << 21, 1 << 22],
            "shape": [(64, 128), (128,), (64, 128)],
            "strides": [(160, 1), (1,), (128, 1)],
            **changed,
        }
        arrays = iter(zip(given["address"], given["shape"], given["strides"], strict=True))
        bindings: list[Any] = [
            ArrayBinding(*next(arrays)) if isinstance(param, ArrayParam) else 64
            for param in kernel.params
        ]
        aligned = program.vector_bytes(bindings, over)
        arrays_of = [param.name for param in kernel.params if isinstance(param, ArrayParam)]
        assert aligned is None or aligned == dict.fromkeys(arrays_of, 16)
        return aligned is not None

    assert is_wide()
    assert not is_wide(LaunchShape((32, 128), (4, 32)))  # too few threads
    assert not is_wide(LaunchShape((64, 128), (4, 64)))  # half of them beyond the rows
    assert is_wide(LaunchShape((64, 128 * 13), (4, 128)))
    assert not is_wide(LaunchShape((64, 128 * 6), (4, 128)))
    assert is_wide(address=[(1 << 20) + 4, 1 << 21, 1 << 22])  # which launches look at
    assert not is_wide(strides=[(161, 1), (1,), (128, 1)])
    assert not is_wide(shape=[(64, 128), (128,), (64, 127)])


def test_grids_of_fewer_blocks() -> None:
    grid = Grid((10, 3, 2), (256, 1, 1), "xyz")
    assert grid.with_fewer(4).blocks == (3, 3, 2)
    assert grid.with_fewer(16).blocks == (1, 3, 2)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("kernel", [copy, five_points])
def test_launches_that_record_have_them_too(kernel: Any) -> None:
    """A work-group is then one of threads: the last of its work-items that are in the range is at
    another place."""
    shape = (4096,) if kernel is copy else (64, 4096)
    with compiling_queue([]) as (queue, _), fq.fusion(queue) as f:
        queue.submit(kernel, shape, ones(shape), ones(shape))
    assert f._list is not None and f._list.run is not None
    (stage,) = f._list.run.built.plan.stages
    made = stage.kernel
    guard = range_guard(made.body)
    assert guard is not None
    start, end = (Record("region", "stage", phase) for phase in ("start", "end"))
    then = (start, *guard.guard.then, end)
    asked = replace(made, body=(*guard.before, replace(guard.guard, then=then)))
    lowered = lower_records(
        asked, {}, overflow="truncate", occurrences=1, buffer_words=1 << 16, target=TARGET
    ).kernel
    wide = with_neighbours(lowered, flatten_blocks(lowered.body), 16)
    assert wide is not None and wide.items == 4 and len(wide.arrays) == 2
    body = wide.kernel.body
    if len(shape) > 1:
        (rows,) = body
        assert isinstance(rows, If)
        body = rows.then
    last = len(shape) - 1
    limit = guard.limits[last]
    first, _, behind = body
    threads = Binary(INT64, "add", limit, Const(INT64, 3))
    inside = list(expressions((behind,)))
    assert Binary(INT64, "floordiv", threads, Const(INT64, 4)) in inside
    assert all(
        isinstance(e, Const | Param) or e.query in ("group_id", "group_range")  # type: ignore[union-attr]
        for e in expressions((first,))
        if isinstance(e, Const | Param | ItemQuery)
    )
    source = generated(lowered, "strict", TARGET)
    assert source.neighbours == 4
    text = intermediate_text(source.text)
    assert re.search(r"ld\.global\.(?:nc\.)?v4\.[bfu]32", text)
    assert text.count("%globaltimer") == 4  # twice in each function


def test_not_where_records_are_of_what_a_work_item_has_computed() -> None:
    """Each work-item of a thread has computed another value."""
    with compiling_queue([]) as (queue, _), fq.fusion(queue) as f:
        queue.submit(copy, 4096, ones(4096), ones(4096))
    assert f._list is not None and f._list.run is not None
    (stage,) = f._list.run.built.plan.stages
    guard = range_guard(stage.kernel.body)
    assert guard is not None
    own = ItemQuery("global_id", 0)
    mark = Record("place", "mark", "instant", own)
    made = replace(guard.guard, then=(*guard.guard.then, mark))
    lowered = lower_records(
        replace(stage.kernel, body=(*guard.before, made)), {},
        overflow="truncate", occurrences=1, buffer_words=1 << 16, target=TARGET,
    ).kernel  # fmt: skip
    assert with_neighbours(lowered, flatten_blocks(lowered.body), 16) is None
