"""Kernels whose work-items do several neighbours each: which do, and that they do the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, target
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.base import Binding, Program
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.base.target import FloatMode, LaunchShape
from fusionq.codegen.neighbours import with_neighbours
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Kernel
from tests.property.element_lists import ElementList, element_lists, results
from tests.property.running import examples


class NeighboursBackend(ReferenceBackend):
    """Runs kernels with several neighbours for a work-item wherever that is possible."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[int] = []
        """Of each launch that was prepared."""

    @property
    def program_domain(self) -> Hashable:
        """Its own: programs of the same kernels for other backends do one element a work-item."""
        return self

    def build(self, kernel: Kernel, fp: FloatMode) -> Any:
        found = with_neighbours(kernel, flatten_blocks(kernel.body), 16)
        return super().build(kernel if found is None else found.kernel, fp)

    def prepare(self, program: Program, arguments: Sequence[Binding], shape: LaunchShape) -> Any:
        kernel: Kernel = program.kernel  # type: ignore[attr-defined]  # a ReferenceProgram
        items = next((a.shape[0] for a in kernel.arrays if a.name == "kept_0"), 0)
        self.items.append(items)
        if items:
            *outer, whole = shape.global_range
            groups = -(-whole // shape.local_range[-1] // items)
            shape = LaunchShape((*outer, groups * shape.local_range[-1]), shape.local_range)
        return super().prepare(program, arguments, shape)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> NeighboursBackend:
    made = NeighboursBackend()
    monkeypatch.setattr(registry, "backend_for", lambda target, profiling=False: made)
    return made


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def add(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i + 1]


@fq.kernel
def shifted_out(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i + 1] = a[i]


@fq.kernel
def within(item: fq.Item, a, out):
    i = item.get_id(0)
    if 0 < i < out.shape[0] - 1:
        out[i] = a[i - 1] + a[i + 1]
    else:
        out[i] = a[i]


@fq.kernel
def if_positive(item: fq.Item, a, out):
    i = item.get_id(0)
    if a[i] > 0:
        out[i] = a[i]


@fq.kernel
def row_plus(item: fq.Item, a, row, column, out):
    y = item.get_id(0)
    x = item.get_id(1)
    out[y, x] = a[y, x] + row[x] * column[y]


@fq.kernel
def transposed(item: fq.Item, a, out):
    y = item.get_id(0)
    x = item.get_id(1)
    out[y, x] = a[x, y]


@fq.kernel
def summed(item: fq.Item, a, out):
    i = item.get_id(0)
    s = np.float32(0)
    for k in range(4):
        s += a[k]
    out[i] = s


def ones(shape, dtype=np.float32) -> fq.Buffer:
    return fq.Buffer(np.ones(shape, dtype))


def items_of(backend: NeighboursBackend, kernel, *arguments) -> list[int]:
    backend.items.clear()
    with fq.FusionQueue() as queue:
        queue.submit(kernel, *arguments)
        queue.wait()
    return backend.items


@pytest.mark.parametrize(
    ("dtype", "items"),
    [
        (np.uint8, 16), (np.bool_, 16), (np.float16, 8), (np.int16, 8), (np.float32, 4),
        (np.int64, 0), (np.float64, 0),
    ],
)  # fmt: skip
def test_as_many_as_16_bytes_hold(backend, dtype, items) -> None:
    assert items_of(backend, copy, 40, ones(40, dtype), ones(40, dtype)) == [items]


def test_the_largest_element_counts(backend) -> None:
    assert items_of(backend, copy, 40, ones(40, np.uint8), ones(40)) == [4]
    assert items_of(backend, copy, 40, ones(40, np.uint8), ones(40, np.int64)) == [0]


def test_each_element_at_its_own_id(backend) -> None:
    m = ones((8, 8))
    assert items_of(backend, row_plus, (8, 8), m, ones(8), ones(8), ones((8, 8))) == [4]
    assert items_of(backend, copy, 40, ones(80)[::-1], ones(40)) == [0]
    assert items_of(backend, copy, 40, ones(80)[::2], ones(40)) == [0]
    assert items_of(backend, copy, 8, m[:, 3], ones(40)) == [0]
    assert items_of(backend, transposed, (8, 8), m, ones((8, 8))) == [0]


def test_elements_at_a_distance(backend) -> None:
    assert items_of(backend, shifted, 40, ones(41), ones(40)) == [4]
    assert items_of(backend, shifted_out, 40, ones(41), ones(41)) == [0]
    assert items_of(backend, within, 40, ones(40), ones(40)) == [4]
    a = ones(40)
    assert items_of(backend, within, 40, a, a) == [0]


def test_only_what_loads_computes_and_stores(backend) -> None:
    assert items_of(backend, if_positive, 40, ones(40), ones(40)) == [0]
    assert items_of(backend, summed, 40, ones(40), ones(40)) == [0]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 257])
def test_all_lengths(backend, n) -> None:
    """In one launch with what was stored before, which is taken."""
    rng = np.random.default_rng(n)
    a, b = (rng.random(n + 2).astype(np.float32) for _ in range(2))
    first, second, out = (fq.Buffer(np.zeros(n + 2, np.float32)) for _ in range(3))
    with fq.FusionQueue() as queue, fq.fusion(queue, strategy="fused"):
        one = fq.Buffer(a)
        queue.submit(add, n, one[1:-1] if n else one, fq.Buffer(b), first)
        queue.submit(add, n, first, one, second)
        queue.submit(add, n, second, second, out)
    expected = a[1 : n + 1] + b[:n]
    np.testing.assert_array_equal(first.numpy()[:n], expected)
    np.testing.assert_array_equal(second.numpy()[:n], expected + a[:n])
    np.testing.assert_array_equal(out.numpy()[:n], 2 * (expected + a[:n]))
    for buffer in (first, second, out):
        assert not buffer.numpy()[n:].any()


def test_in_place_and_over_rows(backend) -> None:
    rng = np.random.default_rng(1)
    whole = rng.random((5, 24)).astype(np.float32)
    buffer, row, column = fq.Buffer(whole), fq.Buffer(whole[0]), fq.Buffer(whole[:, 0].copy())
    inside = buffer[1:4, 3:20]
    with fq.FusionQueue() as queue:
        queue.submit(row_plus, (3, 17), inside, row, column, inside)
        queue.wait()
    expected = whole.copy()
    expected[1:4, 3:20] += whole[0, :17] * whole[:3, 0][:, None]
    np.testing.assert_array_equal(buffer.numpy(), expected)
    assert backend.items == [4]


@examples(60)
@given(element_lists(), st.booleans())
def test_random_lists(program: ElementList, fused: bool) -> None:
    with np.errstate(all="ignore"), fq.FusionQueue("reference") as queue:
        expected = results(queue, program, fused=False)
        with pytest.MonkeyPatch.context() as patch:
            made = NeighboursBackend()
            patch.setattr(registry, "backend_for", lambda target, profiling=False: made)
            with fq.FusionQueue() as other:
                found = results(other, program, fused)
    for one, another in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, another)
    target(float(sum(made.items)))
