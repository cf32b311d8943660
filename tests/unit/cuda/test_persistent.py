"""Persistent kernels in CUDA C++ compile for three generations of GPUs; what becomes of lists on a
GPU that asks for them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given

import fusionq as fq
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.cuda.shared_memory import LARGEST_STATIC, pooled_bytes
from fusionq.codegen.cuda.workers import LARGE_TABLES
from fusionq.ir.nodes import Kernel, Persistent
from tests.e2e.test_work_group_stages import LISTS, buffers, functions, sums_of_fractions
from tests.in_turn import one_in
from tests.property.programs import Program
from tests.property.running import examples
from tests.property.stage_programs import stage_programs
from tests.unit.codegen.test_dialects import recorded
from tests.unit.codegen.test_read_ahead import decode
from tests.unit.cuda.compile_only import (
    ARCHITECTURES,
    H100,
    TARGET,
    architectures_of,
    compile_program,
    compiling_queue,
)
from tests.unit.megakernel.cases import CASES, reverse
from tests.unit.megakernel.plans import persistent

pytestmark = pytest.mark.usefixtures("nvrtc")
MOST_SPILLED = 512
"""Bytes that a thread stores for want of registers: the compiler has some, of what lives through a
tile's work, rather than fewer threads at once."""


def all_but(fast: str, name: str) -> object:
    """``name``, for the slow loop where it is not the one that is ``fast``."""
    return name if name == fast else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.compiled_quickly
@pytest.mark.parametrize(
    "name",
    one_in(2, [all_but("loops", name) for name in sorted(LISTS, key="loops".__ne__)
               if "sub-groups" not in name]),
)
def test_stages_of_work_groups_compile(name: str) -> None:
    with compiling_queue(["sm_90"]) as (queue, backend):
        with fq.fusion(queue, strategy="megakernel", require=True) as f:
            LISTS[name](queue, buffers())
        assert f.report.strategy == "megakernel"
    (kernel,) = backend.kernels
    assert isinstance(kernel.body[0], Persistent)
    assert pooled_bytes(kernel, H100.local_memory_bytes) == 0


@pytest.mark.compiled_quickly
@pytest.mark.slow
def test_reading_ahead_compiles() -> None:
    """By bulk operations from sm_90 on, line by line before."""
    kernel = persistent(*decode(24)).stage.kernel
    source = generated(kernel, "strict", TARGET)
    assert source.text.count("fq_fetch(") > source.text.count("void fq_read_ahead_") > 2
    for architecture in ARCHITECTURES:
        assert cubin_of(kernel, source, "strict", architecture).code.startswith(b"\x7fELF")


@fq.kernel
def lengths(item: fq.Item, points, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    total = points.dtype.type(0)
    for k in range(points.shape[1]):
        total += points[i, k] * points[points.shape[0] - 1 - i, k]
    out[i] = total


@fq.kernel
def stretched(item: fq.Item, by, points, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    for k in range(points.shape[1]):
        out[i, k] = points[i, k] * by[points.shape[0] - 1 - i]


def test_arrays_of_points_compile() -> None:
    """Whose last extents are constants, also in what is read ahead, and where rows are chosen."""
    n = 4096
    with compiling_queue(["sm_80", "sm_90"]) as (queue, backend):
        points, other = (fq.Buffer((n, 3), np.float64) for _ in range(2))
        out, last = fq.Buffer(n, np.float64), fq.Buffer(n, np.float64)
        with fq.fusion(queue, strategy="megakernel", require=True):
            queue.submit(lengths, n, points, out)
            queue.submit(stretched, n, out, points, other)
            queue.submit(lengths, n, other, last)
    (kernel,) = backend.kernels
    assert "fq_read_ahead_" in generated(kernel, "strict", TARGET).text


@pytest.mark.parametrize("name", [all_but("stencil_2d", name) for name in CASES])
def test_lists_compile(name: str) -> None:
    kernel = persistent(*CASES[name](24)).stage.kernel
    source = generated(kernel, "strict", TARGET)
    for architecture in architectures_of(list(CASES).index(name)):
        cubin = cubin_of(kernel, source, "strict", architecture)
        assert cubin.code.startswith(b"\x7fELF")
        assert cubin.resources.registers <= 128  # two blocks of a worker's threads
        assert cubin.resources.spill_stores <= MOST_SPILLED


@pytest.mark.slow
def test_records_compile() -> None:
    kernel = recorded()
    source = generated(kernel, "strict", TARGET)
    assert "%globaltimer" in source.text
    assert cubin_of(kernel, source, "strict", "sm_90").resources.registers <= 128


@pytest.mark.slow
def test_work_items_of_whole_warps_are_threads() -> None:
    """Of work-groups of other sizes a worker does the work-group function."""
    texts = {}
    for size in (32, 128, 512, 48):
        with compiling_queue(["sm_90"]) as (queue, backend):
            a, b = fq.Buffer(1536, np.float32), fq.Buffer(1536, np.float32)
            with fq.fusion(queue, strategy="megakernel", require=True):
                queue.submit(sums_of_fractions, fq.NdRange(1536, size), a, b)
                queue.submit(reverse, 1536, b, a)
        (kernel,) = backend.kernels
        texts[size] = generated(kernel, "strict", TARGET).text
        assert backend.resources[kernel.name, "sm_90"].spill_stores <= MOST_SPILLED
    assert [size for size, text in texts.items() if "fq_worker_reduce" in text] == [32, 128]
    assert "__barrier_sync_count(1 + threadIdx.x / 128, 128)" in texts[128]
    assert "__barrier_sync_count" not in texts[32]


def many_stages(count: int, sums: bool) -> Kernel:
    """The persistent kernel of so many stages, which need all of the one before; and sums."""
    with compiling_queue([]) as (queue, backend):
        a, b = fq.Buffer(4096, np.float32), fq.Buffer(4096, np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True):
            for _ in range(count // 2):
                if sums:
                    queue.submit(sums_of_fractions, fq.NdRange(4096, 128), a, b)
                else:
                    queue.submit(reverse, 4096, a, b)
                queue.submit(reverse, 4096, b, a)
    (kernel,) = backend.kernels
    return kernel


def test_tables_of_many_stages_with_groups_lie_in_memory_that_launches_give() -> None:
    """As long as it is there; single work-items need more workers than that leaves room for."""
    kernel = many_stages(240, sums=True)
    most = H100.local_memory_bytes
    assert LARGEST_STATIC < pooled_bytes(kernel, most) <= 8 * CODE_LIMITS.most_near_words
    assert pooled_bytes(kernel, 32 << 10) == 0
    text = generated(kernel, "strict", TARGET).text
    assert LARGE_TABLES in text
    small = replace(TARGET, device=replace(H100, local_memory_bytes=32 << 10))
    assert LARGE_TABLES not in generated(kernel, "strict", small).text
    assert pooled_bytes(many_stages(240, sums=False), most) == 0
    assert pooled_bytes(many_stages(24, sums=True), most) == 0
    free = cubin_of(kernel, generated(kernel, "strict", TARGET), "strict", "sm_90")
    assert free.resources.spill_stores <= 64  # around the call of a cold function


@fq.kernel
def halves(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[a.shape[0] - 1 - i, a.shape[1] - 1 - j] / 2


@pytest.mark.compiled_quickly
def test_lanes_do_several_short_rows_at_once() -> None:
    with compiling_queue(["sm_90"]) as (queue, backend):
        a, b = fq.Buffer((4096, 32), np.float32), fq.Buffer((4096, 32), np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True):
            queue.submit(halves, (4096, 32), a, b)
            queue.submit(halves, (4096, 32), b, a)
    (kernel,) = backend.kernels
    text = generated(kernel, "strict", TARGET).text
    assert "fq_id_0 = fq_first_0 + fq_lane / fq_width; fq_id_0 <= fq_last_0;" in text
    assert "const long long fq_id_1 = fq_start + fq_column;" in text


@fq.kernel
def swap(item: fq.NdItem, a, b, tile):
    own, last = item.get_local_id(0), item.get_local_range(0) - 1
    tile[own] = a[item.get_global_id(0)]
    fq.group_barrier(item.get_group())
    b[item.get_global_id(0)] = tile[last - own]


def test_more_local_memory_than_the_compiler_places_is_given_by_launches() -> None:
    with compiling_queue() as (queue, backend):
        a, b = fq.Buffer(8192, np.float64), fq.Buffer(8192, np.float64)
        with fq.fusion(queue, strategy="megakernel", require=True):
            queue.submit(swap, fq.NdRange(8192, 1024), a, b, fq.LocalAccessor(8192, np.float64))
            queue.submit(reverse, 8192, b, a)
    (kernel,) = backend.kernels
    assert pooled_bytes(kernel, H100.local_memory_bytes) == 65536 > LARGEST_STATIC
    static = {resources.shared_bytes for resources in backend.resources.values()}
    # The words of two instructions, in whole lines: what launches give begins at one.
    lines = CODE_LIMITS.ring_alignment
    assert max(static) <= 3 * lines and all(each % lines == 0 for each in static)


@pytest.mark.compiled_quickly
@pytest.mark.slow
@examples(30)
@given(stage_programs())
def test_random_lists_compile(program: Program) -> None:
    compile_program(program, strategy="megakernel", barriers="none", promote="none")


@pytest.mark.compiled_quickly
def test_auto_makes_none() -> None:
    with compiling_queue(["sm_90"]) as (queue, backend):
        a, b = fq.Buffer(4096, np.int64), fq.Buffer(4096, np.int64)
        with fq.fusion(queue) as f:
            for _ in range(8):
                queue.submit(reverse, 4096, a, b)
                a, b = b, a
    assert f.report.strategy != "megakernel"
    assert not any(isinstance(kernel.body[0], Persistent) for kernel in backend.kernels)


@fq.kernel
def weighted(item: fq.Item, weights, a, b):
    i = item.get_id(0)
    b[i] = weights[i] * a[a.shape[0] - 1 - i]


@pytest.mark.compiled_quickly
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.bool_, fq.bfloat16])
def test_arrays_that_no_stage_writes_are_loaded_as_read_only(dtype: object) -> None:
    """Through a type of their own, whose loads need not stay behind stores and barriers."""
    with compiling_queue() as (queue, backend):
        weights = fq.Buffer(4096, dtype)
        a, b = fq.Buffer(4096, np.float32), fq.Buffer(4096, np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True):
            queue.submit(weighted, 4096, weights, a, b)
            queue.submit(weighted, 4096, weights, b, a)
    (kernel,) = backend.kernels
    (body,) = kernel.body
    assert isinstance(body, Persistent) and len(body.unwritten) == 1
    text = generated(kernel, "strict", TARGET).text
    (parameter,) = re.findall(r"const (fq_read_only\S*(?: \w+)?>?) weights,", text)
    assert ("half" in parameter) == (dtype is np.float16)


@pytest.mark.compiled_quickly
@pytest.mark.slow
def test_an_array_that_shares_memory_with_a_written_one_is_not_read_only() -> None:
    """Views of one array: the one is read, the other one written."""
    with compiling_queue(["sm_90"]) as (queue, backend):
        whole = np.zeros(8192, np.float32)
        a = np.zeros(4096, np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True):
            queue.submit(weighted, 4096, whole[2048:6144], a, whole[:4096])
            queue.submit(weighted, 4096, whole[2048:6144], whole[4096:], a)
    (kernel,) = backend.kernels
    (body,) = kernel.body
    assert isinstance(body, Persistent) and body.unwritten == ()
    assert "fq_read_only" not in generated(kernel, "strict", TARGET).text


@fq.kernel
def scaled_sum(item: fq.NdItem, weights, a, b):
    own = np.float32(0)
    for k in range(item.get_local_id(0), a.shape[0], item.get_local_range(0)):
        own += np.float32(weights[k]) * a[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    for k in range(item.get_local_id(0), a.shape[0], item.get_local_range(0)):
        b[k] = a[k] * total * np.float32(weights[k])


@fq.kernel
def reverse_by_groups(item: fq.NdItem, a, b):
    """By work-groups of another size than those that have written ``a``, which do not do it."""
    i = item.get_global_id(0)
    b[i] = a[a.shape[0] - 1 - i]


def sums_text(count: int, weights: object, a: object, b: object) -> str:
    """The text of a persistent kernel of so many stages."""
    with (
        compiling_queue(["sm_90"]) as (queue, backend),
        fq.fusion(queue, strategy="megakernel", require=True),
    ):
        for _ in range(count // 2):
            queue.submit(scaled_sum, fq.NdRange(128, 128), weights, a, b)
            queue.submit(reverse_by_groups, fq.NdRange(4096, 256), b, a)
    (kernel,) = backend.kernels
    assert backend.resources[kernel.name, "sm_90"].spill_stores <= 64
    return generated(kernel, "strict", TARGET).text


def ahead(text: str) -> list[str]:
    """The loops over what is loaded ahead."""
    return re.findall(r"for \(int ahead_turn_\d_0 = 0.*?\n        \}", text, re.S)


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 240])
def test_loads_ahead_where_a_thread_has_many_registers(count: int) -> None:
    """Where tables leave room for few workers."""
    weights = fq.Buffer(4096, fq.bfloat16)
    text = sums_text(count, weights, *(fq.Buffer(4096, np.float32) for _ in range(2)))
    found = ahead(text)
    assert len(found) == (2 if count == 240 else 0)
    assert all("weights[" in loop and "= a[" in loop for loop in found)


@pytest.mark.slow
def test_loads_of_what_the_loop_may_store_to_stay_behind_its_stores() -> None:
    whole = np.zeros(8192, np.float32)
    weights = fq.Buffer(4096, fq.bfloat16)
    sums, products = ahead(sums_text(240, weights, whole[:4096], whole[2048:6144]))
    assert "weights[" in sums and "= a[" in sums
    assert "weights[" in products and "= a[" not in products


@pytest.mark.parametrize("float_groups", ["ordered", "unordered"])
def test_sums_of_floats_over_groups_keep_their_launch_where_their_order_is_another(
    float_groups: Literal["ordered", "unordered"],
) -> None:
    with compiling_queue(["sm_90"]) as (queue, backend):
        backend.target = replace(TARGET, device=replace(H100, float_groups=float_groups))
        a, b = fq.Buffer(64, np.float32), fq.Buffer(64, np.float32)
        with fq.fusion(queue, strategy="megakernel") as f:
            queue.submit(functions, fq.NdRange(64, 32), a, b)
            queue.submit(reverse, 64, b, a)
    assert (f.report.strategy == "megakernel") == (float_groups == "ordered")
    if float_groups == "ordered":
        return
    assert f.report.fallback is not None
    assert "combines floats of a work-group, which the device does in an order" in f.report.fallback
