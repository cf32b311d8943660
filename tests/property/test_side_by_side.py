"""Random lists of kernels by work-groups over ranges of different lengths, on parts of few buffers:
some depend on each other, the others run side by side; with the bits of the unfused run."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.property.running import assert_identical, examples, needs_device

LOCAL = 4
MOST = 6
"""Work-groups."""
LENGTH = 2 * LOCAL * MOST


@fq.kernel
def sums(item: fq.NdItem, x, local, out):
    i = item.get_global_id(0)
    out[i] = fq.reduce_over_group(item.get_group(), x[i], "add")


@fq.kernel
def reverse(item: fq.NdItem, x, local, out):
    at = item.get_local_id(0)
    local[at] = x[item.get_global_id(0)]
    fq.group_barrier(item.get_group())
    out[item.get_global_id(0)] = local[item.get_local_range(0) - 1 - at] / np.float32(3)


@fq.kernel
def firsts(item: fq.NdItem, x, local, out):
    """An element of each work-group, and its number."""
    own = fq.inclusive_scan_over_group(item.get_group(), x[item.get_global_id(0)], "max")
    if item.get_local_id(0) == item.get_local_range(0) - 1:
        out[item.get_group().get_group_id(0)] = own + item.get_group().get_group_id(0)


@fq.kernel
def across(item: fq.NdItem, x, local, out):
    """What other work-groups have written."""
    i = item.get_global_id(0)
    own = x[item.get_global_range(0) - 1 - i] * np.float32(0.7)
    out[i] = fq.reduce_over_group(item.get_group(), own, "add") + x[i]


Call = tuple[int, int, int, int, int, int]


@st.composite
def calls(draw: st.DrawFn) -> list[Call]:
    """Kernels, the number of their work-groups, and of both arrays the buffer and first element;
    what is read and written are no parts of one buffer."""
    found = []
    for _ in range(draw(st.integers(2, 6))):
        read, written = draw(st.permutations(range(4)))[:2]
        at = [draw(st.sampled_from((0, LOCAL, LENGTH // 2, 3))) for _ in range(2)]
        groups = draw(st.integers(1, MOST))
        found.append((draw(st.integers(0, 3)), groups, read, at[0], written, at[1]))
    return found


KERNELS = (sums, reverse, firsts, across)


def run(queue: fq.FusionQueue, list_: list[Call], fused: bool, **options: Any) -> list[Any]:
    random = np.random.default_rng(1)
    buffers = [fq.Buffer(random.random(LENGTH).astype(np.float32)) for _ in range(4)]

    def submit() -> None:
        for kernel, groups, read, at, written, to in list_:
            items = groups * LOCAL
            local = fq.LocalAccessor(LOCAL, np.float32)
            queue.submit(
                KERNELS[kernel], fq.NdRange(items, LOCAL),
                buffers[read][at : at + items], local, buffers[written][to : to + items],
            )  # fmt: skip

    if fused:
        with fq.fusion(queue, **options) as f:
            submit()
        f.event.wait()
    else:
        submit()
        queue.wait()
    return [np.array(buffer.numpy()) for buffer in buffers]


@examples(40)
@given(calls(), st.sampled_from(("sequence", "fused")))
def test_the_reference_device(list_: list[Call], strategy: str) -> None:
    expected = run(fq.FusionQueue("reference"), list_, fused=False)
    found = run(fq.FusionQueue("reference"), list_, fused=True, strategy=strategy)
    assert_identical(found, expected)


@needs_device
@examples(12)
@given(calls())
def test_a_device(list_: list[Call]) -> None:
    expected = run(fq.FusionQueue(), list_, fused=False)
    assert_identical(run(fq.FusionQueue(), list_, fused=True, strategy="sequence"), expected)
