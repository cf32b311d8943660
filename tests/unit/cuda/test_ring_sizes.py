"""Rings with slots of other sizes: where there may be some, what they are, how they are told apart,
that they compile."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import fusionq as fq
from fusionq.backends.cuda.devices import RESERVED_BYTES, SMALL_SLOT
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.base.options import SLOT_BYTES, FusionOptions
from fusionq.base.target import Target
from fusionq.cache.keys import digest
from fusionq.codegen.cuda.rings import rings_of
from fusionq.codegen.ring_shape import RingShape, ring_shape
from fusionq.execution.candidates import variants_of
from fusionq.execution.compile import plans_key
from fusionq.ir.nodes import Kernel
from fusionq.ir.verifier import VerificationError, verify
from fusionq.megakernel.schedule import make_schedule
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from fusionq.planning.ring_sizes import other_slots, with_slots
from fusionq.report.report import Report
from tests.unit.cuda.compile_only import H100, TARGET, compiling_queue
from tests.unit.cuda.test_streams import SIZE, body_of, product

ARCHITECTURES = ("sm_80", "sm_90")
LAYERS, WIDTH = 256, 128
A100 = replace(
    TARGET, device=replace(H100, compute_units=108, local_memory_bytes=(163 << 10) - RESERVED_BYTES)
)
SMALL = replace(
    TARGET,
    slot_bytes=SMALL_SLOT,
    device=replace(H100, compute_units=82, local_memory_bytes=(99 << 10) - RESERVED_BYTES),
)


@cache
def listed(count: int = LAYERS) -> tuple[Any, ...]:
    """The submissions of a list of so many products."""
    with compiling_queue([]) as (queue, _):
        weights = [fq.Buffer((2 * WIDTH, WIDTH), "float32") for _ in range(count)]
        x, y = fq.Buffer(WIDTH, "float32"), fq.Buffer(WIDTH, "float32")
        with fq.fusion(queue, strategy="megakernel") as fusion:
            for a in weights:
                queue.submit(product, fq.NdRange((WIDTH, SIZE), (1, SIZE)), a, x, y)
                x, y = y, x
        return fusion.report.submissions


@cache
def planned(count: int = LAYERS, candidate: Any = "megakernel", target: Target = TARGET) -> Plan:
    return make_plan(listed(count), FusionOptions().of_candidate(candidate), target)


def kernel_of(plan: Plan) -> Kernel:
    (stage,) = plan.stages
    return stage.kernel


def test_those_that_fit_shared_memory() -> None:
    """Two slots of each ring at least, beside the tables."""
    assert planned().other_slots == (4 << 10, 16 << 10)
    assert variants_of(planned()) == ("megakernel-4k", "megakernel-16k")
    stages = planned().stages
    assert other_slots(stages, A100) == (4 << 10,), "16 KB twice in four rings are 128 KB"
    assert other_slots(stages, SMALL) == ()
    less = replace(SMALL, device=replace(SMALL.device, local_memory_bytes=130 << 10))
    assert other_slots(stages, less) == (8 << 10,)


@pytest.mark.parametrize(
    "target",
    [
        replace(TARGET, device=replace(H100, streams_rows=False)),
        replace(TARGET, device=replace(H100, local_memory_bytes=48 << 10)),
    ],
    ids=["a device without rings", "memory for no ring"],
)
def test_there_are_none_where_nothing_is_streamed(target: Target) -> None:
    assert planned(LAYERS, "megakernel", target).other_slots == ()
    assert planned(4).other_slots == (), "a list of few stages has many workers"
    assert planned(LAYERS, "sequence").other_slots == ()
    usual = planned(4)
    assert with_slots(usual, 4 << 10, TARGET) == usual


def test_the_plan_is_that_of_the_kernel_itself_but_for_the_slots() -> None:
    usual, other = planned(), planned(LAYERS, "megakernel-4k")
    assert with_slots(usual, 4 << 10, TARGET) == other and other.other_slots == ()
    kernel = kernel_of(other)
    assert body_of(kernel).slot_bytes == 4 << 10
    assert replace(body_of(kernel), slot_bytes=0) == body_of(kernel_of(usual))


def test_larger_slots_are_fewer_and_more_is_on_its_way() -> None:
    kernel = kernel_of(planned())
    found = []
    for nbytes in (0, *SLOT_BYTES.values()):
        shape = ring_shape(replace(body_of(kernel), slot_bytes=nbytes), TARGET)
        assert shape is not None and shape.slot_bytes == (nbytes or TARGET.slot_bytes)
        assert shape.nbytes == 4 * shape.slots * shape.slot_bytes <= H100.local_memory_bytes
        found.append((shape.count, shape.slots, shape.bytes_in_flight))
    assert found[0] == found[2], "the target's"
    assert [slots for _, slots, _ in found[1:]] == [found[1][1], found[1][1] // 2, found[1][1] // 4]
    assert [nbytes for *_, nbytes in found[1:]] == [32 << 10, 32 << 10, 64 << 10]


def test_each_has_keys_of_its_own() -> None:
    """Of its plan and of its program, in memory and on disk."""
    with compiling_queue([]) as (_, backend):
        names = ("megakernel", *SLOT_BYTES)
        options = [FusionOptions().of_candidate(name) for name in names]
        keys = {plans_key(backend, listed(4), own) for own in options}
        assert len(keys) == len({digest("plan", own.of_plan) for own in options}) == len(names)
    kernels = [kernel_of(planned()), kernel_of(planned(LAYERS, "megakernel-4k"))]
    assert len(set(kernels)) == len({digest("program", kernel) for kernel in kernels}) == 2


def test_slots_that_begin_at_no_line_are_refused() -> None:
    kernel = kernel_of(planned(4))
    for nbytes in (-128, 100, 4000):
        with pytest.raises(VerificationError, match=f"rings with slots of {nbytes} bytes"):
            verify(replace(kernel, body=(replace(body_of(kernel), slot_bytes=nbytes),)))


@pytest.mark.parametrize("name", ["megakernel", "megakernel-4k", "megakernel-16k"])
def test_the_report_names_the_rings(name: Any) -> None:
    plan = planned(LAYERS, name)
    body = body_of(kernel_of(plan))
    fitted = replace(TARGET, worker_size=TARGET.streaming_lanes, resident_workers=132)
    params = [{"size_0": WIDTH, "size_1": WIDTH}] * len(body.stages)
    schedule = make_schedule(body, params, 1 << 20, fitted)
    shape = ring_shape(body, TARGET)
    assert isinstance(shape, RingShape) and schedule.rings == shape
    report = Report(plan, listed(), ("",), "miss", {}, (schedule,))
    line = (
        f"each worker has: 4 rings of {shape.slots} slots of {SLOT_BYTES.get(name, 8192):,} bytes, "
        f"{shape.bytes_in_flight:,} on their way at once"
    )
    assert line in str(report)
    assert report.to_dict()["stages"][0]["rings"]["slot_bytes"] == SLOT_BYTES.get(name, 8192)
    without = Report(plan, listed(), ("",), "miss", {}, (replace(schedule, rings=None),))
    assert "rings of" not in str(without) and without.to_dict()["stages"][0]["rings"] is None


@pytest.mark.slow
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("architecture, target", [("sm_80", A100), ("sm_90", TARGET)])
@pytest.mark.parametrize("name", ["megakernel", *SLOT_BYTES])
def test_they_compile(name: Any, architecture: str, target: Target) -> None:
    """By copies of 16 bytes and by bulk copies."""
    body = replace(body_of(kernel_of(planned())), slot_bytes=SLOT_BYTES.get(name, 0))
    kernel = replace(kernel_of(planned()), body=(body,))
    rings = rings_of(body, target)
    assert (rings is None) == (architecture == "sm_80" and name == "megakernel-16k")
    source = generated(kernel, "strict", target)
    if rings is None:
        assert "fq_ring" not in source.text
        return
    assert f"ring.slots + ring.at() * {rings.slot_bytes};" in source.text
    cubin = cubin_of(kernel, source, "strict", architecture)
    assert source.worker is not None and cubin.resources.spill_stores <= 64
    most = target.device.local_memory_bytes + RESERVED_BYTES
    assert cubin.resources.shared_bytes + source.worker.shared_bytes <= most
