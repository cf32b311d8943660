"""Rows that come to workers by rings: which are, what becomes of loops over them, that it
compiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.devices import MUCH_MEMORY, RESERVED_BYTES, SMALL_SLOT
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape
from fusionq.codegen import queue_layout as q
from fusionq.codegen.cuda.rings import rings_of
from fusionq.codegen.stage_tables import operands_of, table_words, words_before_waits
from fusionq.codegen.streamed_loops import READY, Streams, streamed, streams_of
from fusionq.ir.nodes import ArrayParam, Binary, Const, Expr, Kernel, Load, Persistent, Var
from fusionq.ir.types import BOOL, INT64
from fusionq.ir.walk import rewrite_body
from fusionq.megakernel.schedule import MOST_GROUPS, make_schedule
from fusionq.profiling.instructions import lower_persistent
from fusionq.report.model import ReportedTiledStage
from fusionq.report.model import _streamed as _streamed_arrays
from fusionq.report.text import _streamed as _streamed_text
from tests.unit.cuda.compile_only import ARCHITECTURES, H100, TARGET, compiling_queue
from tests.unit.frontend.running import binding
from tests.unit.megakernel.cases import reverse

SIZE = 128
SLOT = 8 << 10


@fq.kernel
def product(item: fq.NdItem, a, x, out):
    row = 2 * item.get_global_id(0)
    one = np.float32(0)
    other = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        one += a[row, k] * x[k]
        other += a[row + 1, k] * x[k]
    total = fq.reduce_over_group(item.get_group(), one - other, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total / (np.float32(1) + abs(total))  # never too large


@fq.kernel
def weighed(item: fq.NdItem, count, x, y, out):
    """Reads no rows, but what other stages write, up to a number that is known when it runs."""
    own = np.float32(0)
    for k in range(item.get_local_id(1), count, 128):
        own += x[k] * y[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total / (np.float32(1) + abs(total))


@fq.kernel
def two_products(item: fq.NdItem, a, x, out):
    row = 2 * item.get_global_id(0)
    one = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        one += a[row, k] * x[k]
    other = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        other += a[row + 1, k] * x[k]
    total = fq.reduce_over_group(item.get_group(), one - other, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


@fq.kernel
def product_of_64(item: fq.NdItem, a, x, out):
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 64):
        own += a[item.get_global_id(0), k] * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


@fq.kernel
def in_larger_steps(item: fq.NdItem, a, x, out):
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 256):
        own += a[item.get_global_id(0), k] * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


@fq.kernel
def under_a_condition(item: fq.NdItem, a, x, out):
    own = np.float32(0)
    if x[0] > 0:
        for k in range(item.get_local_id(1), a.shape[1], 128):
            own += a[item.get_global_id(0), k] * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


@fq.kernel
def up_to_data(item: fq.NdItem, a, x, out):
    own = np.float32(0)
    for k in range(item.get_local_id(1), np.int64(x[0]), 128):
        own += a[item.get_global_id(0), k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


@fq.kernel
def of_chosen_rows(item: fq.NdItem, a, x, out):
    row = np.int64(x[item.get_global_id(0)])
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        own += a[row, k] * x[k] + a[item.get_global_id(0), a.shape[1] - 1 - k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


@fq.kernel
def many_rows(item: fq.NdItem, a, x, out):
    row = item.get_global_id(0)
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        own += a[row, k] + a[row + 1, k] + a[row + 2, k] + a[row + 3, k] + a[row + 4, k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[row] = total


@fq.kernel
def doubled(item: fq.Item, a):
    i = item.get_id(0)
    j = item.get_id(1)
    a[i, j] = a[i, j] * np.float32(2)


def built(submit: Callable[[Any, Any, Any, Any], None], width: int = 512) -> Kernel:
    """The persistent kernel of a list over a matrix and two vectors."""
    with compiling_queue([]) as (queue, backend):
        a = fq.Buffer((64, width), np.float32)
        x, y = fq.Buffer(width, np.float32), fq.Buffer(width, np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True):
            submit(queue, a, x, y)
    return backend.kernels[-1]


def body_of(kernel: Kernel) -> Persistent:
    (body,) = kernel.body
    assert isinstance(body, Persistent)
    return body


def twice(kernel: Any, size: int = SIZE, rows: int = 32) -> Callable[[Any, Any, Any, Any], None]:
    def submit(queue: Any, a: Any, x: Any, y: Any) -> None:
        for source, into in ((x, y), (y, x)):
            queue.submit(kernel, fq.NdRange((rows, size), (1, size)), a, source, into)

    return submit


@cache
def products() -> Kernel:
    """Two of them."""
    return built(twice(product))


def found(submit: Callable[[Any, Any, Any, Any], None], slot: int = SLOT) -> Streams | None:
    return streams_of(body_of(built(submit)), 512, slot)


def test_rows_of_arrays_that_no_stage_writes() -> None:
    streams = streams_of(body_of(products()), 512, SLOT)
    assert streams is not None and streams.size == SIZE
    ((loop,),) = streams.loops.values()
    assert [row.array for row in loop.rows] == ["a", "a"]
    assert loop.element_bytes == 8 and loop.columns(SLOT, SIZE) == 1024
    assert not streams.reasons
    assert streams_of(body_of(products()), 512, 512) is None, "a step of both rows is no slot"
    assert streams_of(body_of(products()), 512, SLOT) is streams


@pytest.mark.parametrize("kernel", [in_larger_steps, under_a_condition, up_to_data])
def test_loops_of_which_nobody_knows_what_they_read(kernel: Any) -> None:
    """Others than those that every work-group does, over all elements up to a known bound."""
    assert found(twice(kernel)) is None


def test_rows_that_are_not_known_and_too_many_for_a_slot() -> None:
    def with_product(kernel: Any, rows: int = 32) -> Callable[[Any, Any, Any, Any], None]:
        def submit(queue: Any, a: Any, x: Any, y: Any) -> None:
            twice(product)(queue, a, x, y)
            twice(kernel, rows=rows)(queue, a, x, y)

        return submit

    streams = found(with_product(of_chosen_rows))
    assert streams is not None
    assert [set(r.values()) for r in streams.reasons.values()] == [
        {"which rows of it are read is not known"}
    ]
    streams = found(with_product(many_rows), 2 << 10)
    assert streams is not None
    ((reason,),) = (r.values() for r in streams.reasons.values())
    assert reason == "a step of the loop takes 2,560 bytes, a slot 2,048"


def test_what_a_stage_writes_is_read_where_it_lies() -> None:
    """At whatever place of the list."""

    def submit(queue: Any, a: Any, x: Any, y: Any) -> None:
        twice(product)(queue, a, x, y)
        queue.submit(doubled, (64, 512), a)

    assert found(submit) is None


def test_elements_that_are_no_neighbours_are_read_where_they_lie() -> None:
    def submit(queue: Any, a: Any, x: Any, y: Any) -> None:
        twice(product)(queue, a[:, ::2], x, y)

    assert found(submit) is None


def test_stages_record_where_sizes_are_constants() -> None:
    """Of the kernel alone: its stages have them as parameters."""
    kernel = products()
    assert any(isinstance(p, ArrayParam) and p.extents for p in kernel.params)
    lowered = lower_persistent(
        kernel, body_of(kernel), instructions=True, occurrences=1, clock="clock",
        target=TARGET,
    )  # fmt: skip
    fitted = replace(TARGET, worker_size=TARGET.streaming_lanes, resident_workers=132)
    source = generated(lowered.kernel, "strict", fitted)
    assert "record_rows" in source.text
    for architecture in ARCHITECTURES:
        assert cubin_of(lowered.kernel, source, "strict", architecture).resources.registers


def test_rings_are_for_work_groups_of_one_size() -> None:
    def submit(queue: Any, a: Any, x: Any, y: Any) -> None:
        twice(product)(queue, a, x, y)
        twice(product)(queue, a, x, y)
        twice(product_of_64, 64)(queue, a, x, y)

    streams = found(submit)
    assert streams is not None and streams.size == SIZE and len(streams.loops) == 1
    assert list(streams.reasons.values()) == [
        {"a": "it is read by work-groups of 64, others by such of 128"}
    ]


def in_turn(kernel: Any) -> Callable[[Any, Any, Any, Any], None]:
    """Products, each of which something waits for that reads no rows."""

    def submit(queue: Any, a: Any, x: Any, y: Any) -> None:
        for _ in range(2):
            queue.submit(kernel, fq.NdRange((32, SIZE), (1, SIZE)), a, x, y)
            queue.submit(reverse, x.shape[0], y, x)

    return submit


@pytest.mark.parametrize(
    "made, holds",
    [
        (lambda: built(in_turn(product)), [True]),
        (lambda: built(in_turn(two_products)), [False, True]),
        (products, [False]),
    ],
    ids=["others wait", "behind the last loop", "a product waits"],
)
def test_rings_are_held_where_what_waits_reads_no_slots(
    made: Callable[[], Kernel], holds: list[bool]
) -> None:
    """The first stage that waits says so, of all stages with a body."""
    streams = streams_of(body_of(made()), 512, SLOT)
    assert streams is not None
    (loops,) = streams.loops.values()
    assert [loop.holds for loop in loops] == holds


def test_rings_are_not_held_where_for_some_stage_of_a_body_a_product_waits() -> None:
    def submit(queue: Any, a: Any, x: Any, y: Any) -> None:
        twice(product)(queue, a, x, y)
        in_turn(product)(queue, a, x, y)

    streams = found(submit)
    assert streams is not None and not any(one.holds for (one,) in streams.loops.values())


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("width", [1, 127, 128, 1000, 1024, 1025, 2048, 2176, 5000])
def test_loops_over_slots_do_what_the_loops_did(width: int, together: int) -> None:
    """The slots replaced by the rows that they are filled with."""
    rows = 6
    rng = np.random.default_rng(width)
    a = rng.standard_normal((2 * rows, width)).astype(np.float32)
    x = rng.standard_normal(width).astype(np.float32)
    expected, given = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    body = body_of(products())
    streams = streams_of(body, 512, SLOT)
    assert streams is not None
    ((loop,),) = streams.loops.values()
    loops = (replace(loop, holds=width % 2 == 0),)
    kernel = body.codes[0].kernel
    made, kept = streamed(kernel, loops, SLOT, SIZE, together)
    numbers = [None, *(range(together) if together > 1 else ())]
    slots = {
        one.kept(k, slot): (one, row, slot)
        for one in loops for k, row in enumerate(one.rows) for slot in numbers
    }  # fmt: skip
    assert {array.name for array in kept} == set(slots)
    ahead = [array for array in made.arrays if array.name.startswith("stream_ahead_")]
    assert [array.shape for array in ahead] == [(16,)] * (together - 1), "the vector's values"

    def expr(e: Expr) -> Expr:
        if e == Var(BOOL, READY):
            return Const(BOOL, True)
        if isinstance(e, Load) and e.array in slots:
            one, row, slot = slots[e.array]
            begin: Expr = Var(INT64, one.chunk())
            if slot is not None:
                columns = Const(INT64, slot * one.columns(SLOT, SIZE))
                begin = Binary(INT64, "add", Var(INT64, one.together()), columns)
            at = Binary(INT64, "add", begin, e.indices[0])
            return Load(e.type, row.array, (*row.indices, at))
        return e

    arrays = tuple(array for array in made.arrays if array.name not in slots)
    made = replace(made, body=rewrite_body(made.body, expr), arrays=arrays)
    for one, out in ((kernel, expected), (made, given)):
        run(one, {"a": a, "x": x, "out": out}, rows)
    np.testing.assert_array_equal(given, expected)


def run(kernel: Kernel, arrays: dict[str, Any], rows: int) -> None:
    backend = ReferenceBackend()
    program = backend.build(kernel, "strict")
    shape = LaunchShape((rows, SIZE), (1, SIZE))
    bound = [binding(arrays[p.name]) if p.name in arrays else 1 for p in kernel.params]
    backend.prepare(program, bound, shape).launch()


@cache  # what is there need not be built again
def layers(count: int = 256, width: int = 128) -> Kernel:
    """A list of so many products, of which the tables take most of a multiprocessor's memory, and
    a stage that reads no rows."""
    with compiling_queue([]) as (queue, backend):
        weights = [fq.Buffer((2 * width, width), np.float32) for _ in range(count)]
        x, y = fq.Buffer(width, np.float32), fq.Buffer(width, np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True):
            for a in weights:
                queue.submit(product, fq.NdRange((width, SIZE), (1, SIZE)), a, x, y)
                x, y = y, x
            sums = fq.Buffer(4, np.float32)
            queue.submit(weighed, fq.NdRange((4, SIZE), (1, SIZE)), width - 9, x, y, sums)
    return backend.kernels[-1]


@cache
def layers_in_turn(count: int = 128, width: int = 128) -> Kernel:
    """The same of products and what waits for each that reads no rows."""
    with compiling_queue([]) as (queue, backend):
        x, y = fq.Buffer(width, np.float32), fq.Buffer(width, np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True):
            for _ in range(count):
                a = fq.Buffer((2 * width, width), np.float32)
                queue.submit(product, fq.NdRange((width, SIZE), (1, SIZE)), a, x, y)
                queue.submit(reverse, width, y, x)
    return backend.kernels[-1]


def test_a_ring_asks_for_nothing_until_the_tile_is_counted() -> None:
    """From the last slot of the group's last rows on, each ring by itself: other groups of the
    block may still need theirs."""
    text = generated(layers_in_turn(), "strict", TARGET).text
    held = "if (fq_item == 0 && fq_group + 4 >= fq_many_0 * fq_many_1) "
    held += "fq_ring_held()[fq_lane / 128] = 1;"
    assert text.count(held) == 1 and "] = 1;" not in text.replace(held, "").partition("for (;;)")[0]
    place = text.index(held)
    assert text.rindex("fq_ring_free(fq_slots)", 0, text.rindex("fq_worker_reduce")) < place
    assert "fq_ring_free(fq_slots)" not in text[place:]
    assert place < text.index("fq_worker_reduce_add_f32_128(", place)
    fill = text[text.index("bool fq_ring_fill(") :]
    assert fill.index("while (over[1] | fq_ring_held()[(threadIdx.x - 512) / 32]) {}") < 300
    counting = text[text.rindex("fq_ring_over[1] = 1;") :]
    for ring in range(4):
        cleared = f"fq_ring_held()[{ring}] = 0;"
        assert text.count(cleared) == 2 and counting.index("fq_publish(") < counting.index(cleared)
    assert held not in generated(layers(), "strict", TARGET).text


def test_workers_beside_rings_keep_no_waits() -> None:
    """Lists of instructions have them; what is left is for slots."""
    body = body_of(layers())
    rings = rings_of(body, TARGET)
    assert rings is not None
    source = generated(layers(), "strict", TARGET)
    text = source.text
    assert f"fq_kept = (fq_schedule[{q.HEADER + q.WAITS}] >> {q.WAITED_SHIFT}) <= " in text
    assert text.count("fq_wait_all(\n                        fq_schedule, fq_control") == 1
    older = replace(TARGET, device=replace(H100, streams_rows=False))
    assert "fq_wait_all(\n" in (text := generated(layers(), "strict", older).text)
    assert "fq_schedule, fq_control, *fq_epoch, given_spin_limit" not in text
    assert f"fq_kept = fq_schedule[{q.ORDER}] <= " in text
    tables = operands_of(body).count + words_before_waits(body)
    assert source.worker is not None and table_words(body) > words_before_waits(body)
    line = CODE_LIMITS.ring_alignment
    assert source.worker.shared_bytes == -(-8 * tables // line) * line + rings.nbytes


@pytest.mark.slow
@pytest.mark.usefixtures("nvrtc")
def test_the_text_of_rings_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    """The functions of rings, what fills them, and the stage that reads them; then what fills them
    in the kernel itself."""
    text = generated(layers(), "strict", TARGET).text
    functions = text[text.index("// A ring of") : text.index("__global__")]
    functions = functions.rpartition("\n}\n")[0]
    _, found, kernel = text.partition("    __shared__ unsigned long long fq_ring_barriers")
    golden("cuda/rings.cu", f"{functions}\n}}\n\n{found}{kernel.partition('    for (;;) {')[0]}")


def test_nothing_of_an_instruction_lives_through_its_work() -> None:
    """What counts a tile as done is read again before the barrier behind it, since the first lane
    writes what is told of the next instruction behind that.  A thread asks for its number before
    it looks for an instruction, and again before the work."""
    text = generated(layers(), "strict", TARGET).text
    loop = text[text.rindex("    for (;;) {") :]
    asked = 'asm volatile("mov.u32 %0, %tid.x;" : "=r"(fq_lane));'
    head, first, work = (part.strip() for part in loop.split(asked))
    assert head == "for (;;) {\n        int fq_lane;", "declared once, for both"
    assert "__barrier_sync_count(15, 512);" in first and "fq_lane" in first
    assert "int fq_lane" not in first + work and work.count("fq_counted") == 2
    again = loop.index("const int fq_counted = (int)fq_told[1]")
    barrier = loop.index("__barrier_sync_count(15, 512);", again)
    assert barrier < loop.index("fq_publish(", again)
    assert "fq_stage_0(" not in loop[again:]
    older = replace(TARGET, device=replace(H100, streams_rows=False))
    assert "%tid.x" not in generated(layers(), "strict", older).text


@pytest.mark.slow
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("made", [layers, layers_in_turn])
def test_rings_compile(made: Callable[[], Kernel]) -> None:
    """By bulk copies from sm_90 on, 16 bytes at a time before; the text is the same."""
    kernel = made()
    source = generated(kernel, "strict", TARGET)
    assert source.worker is not None
    assert (source.worker.lanes, source.worker.threads) == (512, 640)
    assert source.worker.shared_bytes <= H100.local_memory_bytes
    assert source.text.count("void fq_fill_") == 1
    behind = source.text.partition("if (fq_lane >= 512) {")[2]
    assert "__syncthreads" not in behind, "lanes that fill rings are at no barrier of the worker"
    for architecture in ARCHITECTURES:
        cubin = cubin_of(kernel, source, "strict", architecture)
        assert cubin.code.startswith(b"\x7fELF")
        assert cubin.resources.registers <= 96
        assert cubin.resources.spill_stores <= 64, "each is read again behind an acquire"
        assert cubin.resources.shared_bytes + source.worker.shared_bytes <= 227 << 10


def test_stages_that_read_no_rings_load_for_many_iterations_together() -> None:
    """Beside rings there are few threads; those that read slots have their registers for these."""
    text = generated(layers(), "strict", TARGET).text
    stages = [stage for stage in text.split("void fq_stage_") if "#pragma unroll" in stage]
    by_rows = [stage for stage in stages if "fq_ring_full(" in stage]
    others = [stage for stage in stages if "float together_1_0[16];" in stage]
    assert by_rows and others and not any("together_1_0" in stage for stage in by_rows)
    older = replace(TARGET, device=replace(H100, streams_rows=False))
    assert "together_1_0" not in generated(layers(), "strict", older).text


def test_what_loads_nothing_together_is_rolled() -> None:
    """Beside rings: loops of no known length, and what is left in a slot that is not full; the
    former are unrolled elsewhere."""
    text = generated(layers(), "strict", TARGET).text
    left, some = "for (int k = stream_rest_4_in_slot; ", "for (unsigned long long k_turn = 0; "
    assert text.count(f"#pragma unroll 1\n                {left}") == text.count(left) == 1
    assert text.count(f"#pragma unroll 1\n        {some}") == text.count(some) == 1
    older = replace(TARGET, device=replace(H100, streams_rows=False))
    older_text = generated(layers(), "strict", older).text
    assert some in older_text and f"#pragma unroll 1\n        {some}" not in older_text


def test_waits_that_are_not_listed_are_no_part_of_the_loop() -> None:
    """Beside rings, where waits are listed; kernels that have more workers go through it often."""
    assert "__noinline__ int fq_wait_all(" in generated(layers(), "strict", TARGET).text
    text = generated(products(), "strict", TARGET).text
    assert "static __device__ int fq_wait_all(" in text


def test_gpus_without_bulk_copies_have_rings_as_large_as_their_shared_memory() -> None:
    """Those of an A100 and an RTX 3090, whose blocks have 163 and 99 KB."""
    kernel = layers()
    for architecture, units, kib in (("sm_80", 108, 163), ("sm_86", 82, 99)):
        local = (kib << 10) - RESERVED_BYTES
        device = replace(H100, compute_units=units, local_memory_bytes=local)
        small = SMALL_SLOT if local < MUCH_MEMORY else TARGET.slot_bytes
        target = replace(TARGET, device=device, slot_bytes=small)
        source = generated(kernel, "strict", target)
        assert source.worker is not None
        cubin = cubin_of(kernel, source, "strict", architecture)
        assert cubin.resources.shared_bytes + source.worker.shared_bytes <= kib << 10
        assert cubin.resources.spill_stores <= 64


def test_kernels_of_few_stages_and_other_devices_have_no_rings() -> None:
    """They have more workers, which hide latency by their number."""
    kernel = products()
    assert rings_of(body_of(kernel), TARGET) is None
    assert generated(kernel, "strict", TARGET).worker is None
    older = replace(TARGET, device=replace(H100, streams_rows=False))
    long = layers()
    assert rings_of(body_of(long), TARGET) is not None
    assert rings_of(body_of(long), older) is None
    assert "fq_ring" not in generated(long, "strict", older).text


def test_the_report_says_what_is_streamed() -> None:
    """Of workers that follow lists; what others fetch, workers do not ask for."""
    body = body_of(layers())
    fitted = replace(TARGET, worker_size=TARGET.streaming_lanes, resident_workers=132)
    params = [{"size_0": 128, "size_1": 128}] * len(body.stages)
    schedule = make_schedule(body, params, 1 << 20, fitted)
    assert schedule.streams is not None
    assert make_schedule(body, params, 1 << 20, TARGET).streams is None
    own, others = _streamed_arrays(body, body.stages[0].code, schedule.streams)
    assert own == ("a",) and others == ()
    stage = ReportedTiledStage((0,), (), None, (), (), own, (("b", "a stage writes it"),))
    assert _streamed_text(stage) == "a; not b (a stage writes it)"


def test_tiles_of_more_work_groups_than_32_bits_count_are_refused() -> None:
    """On GPUs, whose blocks divide in 32 bits to find a group; more tiles than there may be would
    make each so large."""
    body = body_of(products())
    for groups, refused in ((1 << 49, False), (1 << 53, True)):
        params = [{"size_0": groups, "size_1": SIZE}] * len(body.stages)
        if refused:
            with pytest.raises(DeviceError, match=r"stage 0 .* more than 2,147,483,648"):
                make_schedule(body, params, 1 << 20, TARGET)
        else:
            schedule = make_schedule(body, params, 1 << 20, TARGET)
            assert max(stage.tile[0] for stage in schedule.stages) <= MOST_GROUPS


def test_bytes_on_their_way_are_bounded() -> None:
    body = body_of(layers())
    for nbytes, slots in ((1, 1), (32 << 10, 1), (64 << 10, 2), (1 << 30, None)):
        rings = rings_of(body, replace(TARGET, streamed_bytes=nbytes))
        assert rings is not None
        assert rings.in_flight == (rings.slots if slots is None else slots)


