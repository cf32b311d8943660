"""What is printed in CUDA C++ compiles for three generations of GPUs, and spills no registers."""

from __future__ import annotations

import re
from itertools import chain

import numpy as np
import pytest
from hypothesis import given

import fusionq as fq
from fusionq.backends.cuda.compiler import compiled, resources_in
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.backends.cuda.runtime import load_nvrtc
from fusionq.base.errors import DeviceError
from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.cuda.shared_memory import pooled_bytes
from fusionq.codegen.cuda.unit import STREAMING_LOOP
from fusionq.ir.nodes import ArrayParam, Call, ItemQuery, Kernel, Load, Store
from fusionq.ir.types import INT16
from fusionq.kernels import LIBRARY
from tests.conformance.test_signs import NEGATIONS, SIGNS
from tests.in_turn import one_in
from tests.property.group_programs import group_programs
from tests.property.kernel_expressions import Features
from tests.property.programs import Program, programs
from tests.property.running import examples
from tests.unit.codegen.built_kernels import GOLDEN_KERNELS, bfloat16_conversions
from tests.unit.codegen.test_dialects import everything
from tests.unit.cuda.compile_only import ARCHITECTURES, TARGET, compile_program, compiling_queue
from tests.unit.runtime.test_records import PACKED, PARTICLE, gather, push, whole
from tests.unit.tables import for_each

EXTENTS = {1: (1000,), 2: (33, 64), 3: (5, 8, 33)}
ITEM = ItemQuery("global_id", 0)
pytestmark = pytest.mark.usefixtures("nvrtc")


@pytest.mark.parametrize("build", GOLDEN_KERNELS, ids=lambda build: build.__name__)
def test_built_kernels(build) -> None:
    for architecture in ARCHITECTURES:
        cubin = cubin_of(build(), generated(build(), "strict", TARGET), "strict", architecture)
        assert cubin.code.startswith(b"\x7fELF")
        assert cubin.resources.registers > 0
        assert cubin.resources.spill_stores == cubin.resources.stack_bytes == 0


def test_bfloat16() -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")
    kernel = bfloat16_conversions(6)
    for architecture in ARCHITECTURES:
        cubin = cubin_of(kernel, generated(kernel, "strict", TARGET), "strict", architecture)
        assert cubin.resources.spill_stores == cubin.resources.stack_bytes == 0


@pytest.mark.slow
@pytest.mark.parametrize("architecture", one_in(3, ARCHITECTURES, first=1))
def test_all_of_the_language(architecture: str) -> None:
    """Every type, operation, function and statement of a kernel over a range, in one."""
    kernel = everything()
    cubin = cubin_of(kernel, generated(kernel, "strict", TARGET), "strict", architecture)
    assert cubin.resources.shared_bytes >= 256


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY)
def test_library_kernels_spill_no_registers(name: str) -> None:
    """With all their dtypes in one kernel."""
    entry = LIBRARY[name]
    extents = EXTENTS[entry.ndim]
    arguments = [entry.arguments(extents, d, np.random.default_rng(7)) for d in entry.dtypes]
    on_device = [fq.Buffer(a) if isinstance(a, np.ndarray) else a for a in chain(*arguments)]
    kernel = entry.kernel
    if len(entry.dtypes) > 1:
        kernel = for_each(kernel, entry.parameters, entry.dtypes)
    with compiling_queue() as (queue, backend):
        queue.submit(kernel, entry.range_of(extents), *on_device)
    assert len(backend.resources) == len(ARCHITECTURES)
    for of, resources in backend.resources.items():
        assert resources.spill_stores == resources.spill_loads == 0, (of, resources)


@pytest.mark.parametrize("dtype", [PARTICLE, PACKED], ids=["aligned", "packed"])
def test_records(dtype) -> None:
    """Their fields, in private memory too, and copies of whole ones."""
    with compiling_queue(["sm_90"]) as (queue, backend), fq.fusion(queue, strategy="fused"):
        p, tmp = fq.Buffer(99, dtype), fq.Buffer(99, dtype, promote_private=True)
        queue.submit(push, 99, p, tmp)
        queue.submit(gather, 99, tmp, p)
        queue.submit(whole, 99, p, p[::-1])
    assert len(backend.resources) in (1, 2)
    assert all(r.spill_stores == r.stack_bytes == 0 for r in backend.resources.values())


@pytest.mark.slow
@examples(30)
@given(programs(Features(statements=3)))
def test_random_programs(program: Program) -> None:
    compile_program(program, strategy="fused")


@pytest.mark.slow
@examples(30)
@given(group_programs(Features(statements=2, sub_groups=False)))
def test_random_programs_of_groups(program: Program) -> None:
    compile_program(program, strategy="fused")


@pytest.mark.parametrize("axes", ["yxz", "zyx"])
def test_grids_with_their_axes_in_another_order(axes: str) -> None:
    kernel = everything()
    text, plain = (generated(kernel, "strict", TARGET, a).text for a in (axes, "xyz"))
    assert f"blockIdx.{axes[0]} * blockDim.x + threadIdx.x" in text
    assert "blockIdx.x * blockDim.x" not in text and text != plain


@fq.kernel
def reversed_in_groups(item: fq.NdItem, a, first, second, out):
    i, n = item.get_local_id(0), item.get_local_range(0)
    first[i] = a[item.get_global_id(0)]
    second[i] = np.float64(a[item.get_global_id(0)])
    fq.group_barrier(item.get_group())
    out[item.get_global_id(0)] = first[n - 1 - i] + np.float32(second[i])


@fq.kernel
def joint(item: fq.NdItem, x, scan, out):
    group = item.get_group()
    out[0] = fq.joint_reduce(group, x, "max", init=1)
    fq.joint_exclusive_scan(group, x, scan)
    if fq.joint_any_of(group, x):
        fq.joint_inclusive_scan(group, scan, x)


def test_joint_functions() -> None:
    with compiling_queue(["sm_90"]) as (queue, backend):
        arrays = [fq.Buffer(500, np.float64) for _ in range(3)]
        queue.submit(joint, fq.NdRange(64, 64), *arrays)
    assert all(r.spill_stores == 0 for r in backend.resources.values())


@fq.kernel
def four_sums(item: fq.NdItem, a, out):
    i, group = item.get_global_id(0), item.get_group()
    p, q, r, s = a[0, i], a[1, i], a[2, i], a[3, i]
    first = fq.reduce_over_group(group, p, "add")
    second = fq.reduce_over_group(group, q, "add")
    third = fq.reduce_over_group(group, r, "add")
    fourth = fq.reduce_over_group(group, s, "add")
    n = a.shape[1] - 1
    out[0, n - i], out[1, n - i], out[2, n - i], out[3, n - i] = first, second, third, fourth


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize(("strategy", "most"), [("unfused", 4), ("megakernel", None)])
def test_reductions_side_by_side_are_one(dtype, strategy: str, most: int | None) -> None:
    """Of 16 bytes of values in a worker; its shared memory leaves room for all kinds of them."""
    with compiling_queue(["sm_90"]) as (queue, backend):
        a, b, c = (fq.Buffer((4, 512), dtype) for _ in range(3))
        with fq.fusion(queue, strategy=strategy):
            queue.submit(four_sums, fq.NdRange(512, 64), a, b)
            queue.submit(four_sums, fq.NdRange(512, 64), b, c)
    text = generated(backend.kernels[0], "strict", TARGET).text
    many = most or 16 // max(np.dtype(dtype).itemsize, 4)
    assert len(re.findall(rf"    fq_\w+_reduce_add_\w+_x{many}\(\w+, ", text)) == 4 // many
    assert all(r.spill_stores == 0 or strategy != "unfused" for r in backend.resources.values())


@fq.kernel
def sum_and_least(item: fq.Item, x, total, least):
    total += x[item.get_id(0)]
    least.combine(x[item.get_id(0)])


def test_reductions() -> None:
    """Work-groups combine in local memory, in the documented order, and not by the warps."""
    with compiling_queue(["sm_90"]) as (queue, backend):
        x, total, least = fq.Buffer(1000, np.float32), fq.Buffer(1, "f4"), fq.Buffer(1, "f4")
        reductions = fq.Reduction(total, "add"), fq.Reduction(least, "min", initialize=True)
        queue.submit(sum_and_least, 1000, x, *reductions)
    assert len(backend.resources) == 3
    assert all(r.spill_stores == 0 for r in backend.resources.values())


@pytest.mark.parametrize(("elements", "pooled"), [(512, False), (5000, True)])
def test_more_local_memory_than_the_compiler_places(elements: int, pooled: bool) -> None:
    with compiling_queue() as (queue, backend):
        local = (fq.LocalAccessor(elements, np.float32), fq.LocalAccessor(elements, np.float64))
        arrays = [fq.Buffer(1024, np.float32) for _ in range(2)]
        queue.submit(reversed_in_groups, fq.NdRange(1024, 512), arrays[0], *local, arrays[1])
    taken = {resources.shared_bytes for resources in backend.resources.values()}
    assert taken == ({0} if pooled else {12 * elements})
    given = pooled_bytes(backend.kernels[0], TARGET.device.local_memory_bytes)
    assert given == (12 * elements if pooled else 0)


def test_a_text_that_is_refused_comes_with_the_log() -> None:
    kernel = GOLDEN_KERNELS[0]()
    source = generated(kernel, "strict", TARGET)
    broken = type(source)(
        source.text.replace("a[i]", "a[unknown]"), source.entry_point, source.slots, source.types
    )
    with pytest.raises(DeviceError, match='"unknown" is undefined') as caught:
        cubin_of(kernel, broken, "strict", "sm_90")
    assert "please report it" in str(caught.value)
    assert "a[unknown]" in str(caught.value)


def test_an_architecture_that_the_compiler_does_not_know() -> None:
    with pytest.raises(DeviceError, match=r"does not compile for sm_12, but for .*sm_90"):
        compiled("", "sm_12", ())


@fq.kernel
def column_sums(item: fq.Item, a, out):
    total = np.float64(0)
    for row in range(a.shape[0]):
        total += a[row, item.get_id(0)]
    out[item.get_id(0)] = total


@fq.kernel
def eight_columns(item: fq.Item, a, out):
    i = item.get_id(0)
    sums = fq.PrivateArray(8, np.float64)
    for row in range(a.shape[0]):
        for k in range(8):
            sums[k] += a[row, 8 * i + k]
    for k in range(8):
        out[8 * i + k] = sums[k]


def test_loops_over_memory_have_registers_for_the_loads_in_flight() -> None:
    """16 doubles are 32 registers; left alone, the compiler takes 32 for everything."""
    with compiling_queue() as (queue, backend):
        queue.submit(column_sums, 64, fq.Buffer((64, 64), np.float64), fq.Buffer(64, np.float64))
    for architecture in ARCHITECTURES:
        assert 40 <= backend.resources["column_sums", architecture].registers <= 64
    (kernel,) = backend.kernels
    assert f"{STREAMING_LOOP}16\n" in generated(kernel, "strict", TARGET).text


def test_loops_of_constants_are_unrolled_whole() -> None:
    """So that private arrays are registers; a loop around others is no streaming loop either."""
    with compiling_queue() as (queue, backend):
        queue.submit(eight_columns, 8, fq.Buffer((64, 64), np.float64), fq.Buffer(64, np.float64))
    assert STREAMING_LOOP not in generated(backend.kernels[0], "strict", TARGET).text
    assert all(resources.stack_bytes == 0 for resources in backend.resources.values())


@fq.kernel
def every_so_many(item: fq.NdItem, a, out):
    """In steps of a quotient, of which there may be very many."""
    lanes, columns = item.get_local_range(0), a.shape[1]
    total = np.float32(0)
    for row in range(item.get_local_id(0) // columns, a.shape[0], lanes // columns):
        total += a[row, item.get_local_id(0) % columns]
    out[item.get_local_id(0)] = total


def test_loops_in_steps_of_a_quotient_are_unrolled() -> None:
    a, out = fq.Buffer((512, 32), np.float32), fq.Buffer(64, np.float32)
    with compiling_queue(["sm_90"]) as (queue, backend):
        queue.submit(every_so_many, fq.NdRange(64, 64), a, out)
    assert f"{STREAMING_LOOP}16\n" in generated(backend.kernels[0], "strict", TARGET).text


@fq.kernel
def scores(item: fq.NdItem, query, keys, out):
    """A work-item a column of ``keys``."""
    lane = item.get_local_id(1)
    total = np.float32(0)
    for d in range(keys.shape[0]):
        total += query[item.get_global_id(0), d] * keys[d, lane]
    out[item.get_global_id(0), lane] = total


def test_loops_of_work_groups_load_for_many_turns_together() -> None:
    """As many loads without anything between that needs one of them as a thread has registers for,
    in the whole parts and in what is left."""
    with compiling_queue() as (queue, backend):
        arrays = [fq.Buffer(shape, np.float32) for shape in ((8, 100), (100, 128), (8, 128))]
        queue.submit(scores, fq.NdRange((8, 128), (1, 128)), *arrays)
    for resources in backend.resources.values():
        assert 64 < resources.registers <= 128
        assert resources.spill_stores == resources.stack_bytes == 0
    parts = re.split(
        "\n\\$L", intermediate_text(generated(backend.kernels[0], "strict", TARGET).text)
    )
    before_the_sums = [part.partition("add.f32")[0].count("ld.global") for part in parts]
    assert sorted(before_the_sums)[-2:] == [32, 64]


MULTIPLY_ADD = """
extern "C" __global__ void k(const float* a, float* b) {
    b[threadIdx.x] = a[0] * a[1] + b[threadIdx.x];
}
"""


def test_multiplications_and_additions_contract_in_fast_mode_only() -> None:
    strict, fast = (
        compiled(MULTIPLY_ADD, "sm_90", CUDA_CPP.unit.build_options(fp)).code
        for fp in ("strict", "fast")
    )
    assert strict != fast


def test_spills_are_read_from_the_report() -> None:
    report = """ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas         .     72 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 56 registers, used 1 barriers, 72 bytes cumulative stack size, 288 bytes smem
"""
    found = resources_in(report)
    assert (found.registers, found.shared_bytes, found.stack_bytes) == (56, 288, 72)
    assert (found.spill_stores, found.spill_loads) == (16, 20)


def test_nothing_takes_an_int16_for_the_negative_of_another() -> None:
    """After ``neg.s16`` and ``abs.s16`` ptxas (13.0) takes -32768 for 32768."""
    x = Load(INT16, "a", (ITEM,))
    negations = [*(of(x, INT16) for of in NEGATIONS.values()), Call(INT16, "abs", (x,))]
    params = tuple(ArrayParam(name, INT16, 1) for name in ("a", *"bcdefghijk"[: len(negations)]))
    stores = tuple(
        Store(p.name, (ITEM,), SIGNS["sign"](e, INT16))
        for p, e in zip(params[1:], negations, strict=True)
    )
    kernel = Kernel("signs", 1, params, (), stores)
    text = generated(kernel, "strict", TARGET).text
    ptx = intermediate_text(text)
    assert "sub.s16" in ptx
    assert "neg.s16" not in ptx and "abs.s16" not in ptx


def intermediate_text(text: str) -> str:
    """PTX."""
    nvrtc = load_nvrtc()
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    options = [b"--gpu-architecture=compute_90", b"--std=c++17"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    content = bytes(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, content)
    return content.decode()
