"""Local arrays that are not in use at the same time share memory, whatever their shape or type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.registry import list_devices
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.ir.nodes import Barrier, Block
from fusionq.ir.printer import print_kernel
from fusionq.ir.types import INT64
from fusionq.ir.verifier import VerificationError, verify
from fusionq.ir.walk import local_bytes, local_memories
from fusionq.passes.share_local import share_local_arrays
from tests.unit.frontend.running import specialised
from tests.unit.targets import TWO_CORES

TARGETS = [None if info.kind != "reference" else "reference" for info in list_devices()]
N = 48


@fq.kernel
def three_tiles(item: fq.NdItem, a, floats, longs, bytes_, out):
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    last = item.get_local_range(0) - 1
    group = item.get_group()
    floats[k] = a[i]
    fq.group_barrier(group)
    turned = floats[last - k]
    fq.group_barrier(group)
    longs[k // 2, k % 2] = np.int64(turned) * 3
    fq.group_barrier(group)
    sum_ = longs[0, 0] + longs[k // 2, k % 2]
    fq.group_barrier(group)
    bytes_[k] = np.int8(sum_)
    fq.group_barrier(group)
    out[i] = turned + sum_ + bytes_[(k + 1) % 8]


@fq.kernel
def two_at_once(item: fq.NdItem, a, one, other, out):
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    group = item.get_group()
    one[k] = a[i]
    other[k] = i
    fq.group_barrier(group)
    out[i] = one[7 - k] + other[(k + 1) % 8]


@fq.kernel
def in_a_loop(item: fq.NdItem, a, one, other, out):
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    group = item.get_group()
    total = np.float32(0)
    one[k] = a[i]
    for _ in range(2):
        fq.group_barrier(group)
        total += one[7 - k]
        fq.group_barrier(group)
        other[k] = i
        fq.group_barrier(group)
        total += np.float32(other[(k + 1) % 8])
        fq.group_barrier(group)
        one[k] = total
    out[i] = total


FLOATS, LONGS, BYTES = (
    fq.LocalAccessor(8, np.float32), fq.LocalAccessor((4, 2), np.int64), fq.LocalAccessor(30, "i1"),
)  # fmt: skip
SPACE = fq.NdRange(N, 8)
A = np.arange(N, dtype=np.float32)


def three():
    return specialised(three_tiles, SPACE, A, FLOATS, LONGS, BYTES, A)


def memories(kernel):
    return sorted(sorted(a.name for a in arrays) for arrays in local_memories(kernel).values())


def test_arrays_of_different_types_and_shapes_share():
    before, after = three(), share_local_arrays(three())
    verify(after)
    assert [a.memory for a in before.arrays] == [None] * 3
    assert memories(after) == [["bytes_", "floats", "longs"]]
    assert local_bytes(before) == 8 * 4 + 8 * 8 + 30 and local_bytes(after) == 8 * 8
    assert replace(after, arrays=before.arrays) == before
    text = print_kernel(after)
    assert "floats = LocalAccessor(8, np.float32)  # in memory longs" in text


def test_the_source_declares_one_memory():
    source = generate(share_local_arrays(three()), "strict", TWO_CORES, OPENCL_C).text
    assert "__local ulong longs_memory[8];" in source
    for name, type_ in (("floats", "float"), ("longs", "long"), ("bytes_", "char")):
        assert f"__attribute__((may_alias)) aliased_{type_};" in source
        pointer = f"__local aliased_{type_}*"
        assert f"{pointer} {name} = ({pointer})longs_memory;" in source


def test_arrays_of_one_type_share_in_it():
    kernel = three()
    alike = (replace(a, dtype=INT64) for a in kernel.arrays)
    shared = share_local_arrays(replace(kernel, arrays=tuple(alike)))
    source = generate(shared, "strict", TWO_CORES, OPENCL_C).text
    assert "__local long bytes__memory[30];" in source
    assert "__local long* floats = (__local long*)bytes__memory;" in source
    assert "may_alias" not in source


@pytest.mark.parametrize("kernel", [two_at_once, in_a_loop])
def test_arrays_in_use_together_do_not(kernel):
    other = fq.LocalAccessor(8, np.int64)
    before = specialised(kernel, SPACE, A, FLOATS, other, A)
    assert share_local_arrays(before) is before


def test_a_barrier_that_does_not_order_local_memory_separates_nothing():
    kernel = three()
    body = tuple(
        replace(s, local_memory=False) if isinstance(s, Barrier) else s for s in kernel.body
    )
    assert share_local_arrays(replace(kernel, body=body)) == replace(kernel, body=body)
    assert not any(isinstance(s, Block) for s in body)


def test_private_arrays_have_no_place_in_it():
    kernel = three()
    arrays = tuple(replace(a, space="private", memory="longs") for a in kernel.arrays)
    with pytest.raises(VerificationError, match="shares private memory"):
        verify(replace(kernel, arrays=arrays))


@pytest.mark.parametrize("target", TARGETS)
def test_what_they_hold_is_right(target):
    """Fused kernels' own arrays, and promoted buffers, of four types."""
    turned = A.reshape(-1, 8)[:, ::-1].astype(np.float64)
    whole = turned[:, :1] * 3 + turned * 3
    narrow = np.roll(whole.astype(np.int8), -1, axis=1)
    wanted = (turned + whole + narrow).ravel()
    with fq.FusionQueue(target) as queue:
        middle = fq.Buffer(N, np.float32, promote_local=True)
        out, again = fq.Buffer(N, np.float32), fq.Buffer(N, np.float32)
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(three_tiles, SPACE, A, FLOATS, LONGS, BYTES, out)
            queue.submit(turn_tiles, N, out, middle)
            queue.submit(turn_tiles, N, middle, again)
        assert f.report.strategy == "fused", f.report.fallback
        assert [p.scope for p in f.report.promotions] == ["local"]
        assert f.report.source.count("# in memory longs") == 3
        assert np.array_equal(out.numpy(), wanted)
        assert np.array_equal(again.numpy(), wanted)


@fq.kernel
def turn_tiles(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i // 8 * 8 + 7 - i % 8] = a[i]
