"""Rows of tiles in vectors: which stages have them, and that they do the same, run on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen import row_vectors as row_vectors_module
from fusionq.codegen.interior import parted
from fusionq.codegen.row_vectors import RowVectors, row_vectors
from tests.unit.codegen.host_dialect import COMPILER, HOST
from tests.unit.codegen.test_host_workers import assert_memory, memory, results, run
from tests.unit.megakernel.cases import blur, cross, reverse, transpose
from tests.unit.megakernel.plans import PersistentPlan, persistent
from tests.unit.targets import TWO_CORES

NBYTES = 32  # four of int64
LANES = 4
TARGET = replace(TWO_CORES, worker_size=LANES, cache_line_bytes=128)


class HostVectors:
    """Whether they are done is told as what was read ahead: the addresses of their arrays."""

    nbytes = NBYTES
    scalars = HOST.scalars

    def assumed(self, pointers: Any, multiples: Any) -> list[str]:
        raise AssertionError("only persistent kernels run here")

    def aligned(
        self, pointers: Mapping[str, tuple[str, int]], multiples: Mapping[str, int]
    ) -> list[str]:
        return [
            *(f"(uint64_t){name} % {nbytes} == 0" for name, (_, nbytes) in pointers.items()),
            *(f"{name} % {n} == 0" for name, n in multiples.items()),
        ]

    def known(
        self,
        pointers: Mapping[str, tuple[str, int]],
        multiples: Mapping[str, int],
        lines: Sequence[str],
    ) -> list[str]:
        told = [f"host_read_ahead((uint64_t){p}, {n});" for p, (_, n) in pointers.items()]
        return [*told, *lines]


DIALECT = replace(HOST, vectors=HostVectors())


def aligned(shape: tuple[int, ...], at: int = 0, seed: int = 0) -> Any:
    """An array that begins ``at`` elements behind a multiple of the vectors."""
    size = int(np.prod(shape))
    whole = np.zeros(size + 16, np.int64)
    start = (-whole.ctypes.data // 8) % 4 + at
    found = whole[start : start + size].reshape(shape)
    found[...] = np.random.default_rng(seed).integers(0, 1000, shape)
    return found


@fq.kernel
def far(item: fq.Item, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if 5 <= i < a.shape[0] - 7:
        b[i] = a[i - 5] * 3 + a[i + 7]
        c[i] = a[i] - b[i]


@fq.kernel
def plain(item: fq.Item, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    c[i] = a[i] * 2 + b[i]


def of_pairs(kernel: Any, shape: tuple[int, ...], at: tuple[int, int] = (0, 0)) -> PersistentPlan:
    a, b = (aligned(shape, s, k) for k, s in enumerate(at))
    return persistent(*((kernel, shape, *pair) for pair in ((a, b), (b, a), (a, b))))


def vectors_of(*calls: Any, number: int = 0) -> RowVectors | None:
    plan = persistent(*calls)
    code = plan.body.codes[number]
    body, inner = parted(code)
    return row_vectors(code.kernel, body if inner is None else inner.body, NBYTES, TARGET)


def test_which_stages() -> None:
    a, b = aligned((64,)), aligned((64,), 0, 1)
    found = vectors_of((blur, 64, a, b), (blur, 64, b, a))
    assert found is not None and (found.items, found.arrays) == (4, ("a", "b"))
    assert found.at_once == 2 and len(found.bodies) == 2
    # A line has sixteen elements.
    assert found.first == 16
    assert vectors_of((reverse, 64, a, b), (reverse, 64, b, a)) is None
    s, t = aligned((16, 16)), aligned((16, 16), 0, 1)
    assert vectors_of((transpose, (16, 16), s, t), (transpose, (16, 16), t, s)) is None


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
@pytest.mark.parametrize("n", [64, 65, 96, 131])
@pytest.mark.parametrize("row", [32, 45, 200])
def test_one_dimension(tmp_path: Path, n: int, row: int) -> None:
    """Rows whose vectors begin and end anywhere; tiles that begin in the midst of a vector."""
    check(of_pairs(blur, (n,)), tmp_path, row, True)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
@pytest.mark.parametrize(
    ("shape", "row", "used"),
    [((5, 64), 64, True), ((4, 36), 40, True), ((7, 12), 12, True), ((3, 8), 8, True),
     ((3, 4), 4, False), ((5, 66), 66, False), ((5, 63), 63, False)],
)  # fmt: skip
def test_two_dimensions(tmp_path: Path, shape: tuple[int, int], row: int, used: bool) -> None:
    """Rows that fill all lanes and half of them; none where rows do not begin where vectors do, or
    are too short."""
    check(of_pairs(cross, shape), tmp_path, row, used)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
@pytest.mark.parametrize(
    ("row", "used"), [(16, True), (12, True), (8, True), (4, True), (6, False)]
)
def test_short_rows_are_done_side_by_side(
    tmp_path: Path, row: int, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By as many lanes as have a vector each, down to those that access memory together."""
    monkeypatch.setattr(row_vectors_module, "WARP", 1)
    check(of_pairs(cross, (7, row)), tmp_path, row, used)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
@pytest.mark.parametrize("at", [(1, 0), (0, 1), (2, 2), (4, 8)])
def test_arrays_that_begin_elsewhere(tmp_path: Path, at: tuple[int, int]) -> None:
    check(of_pairs(blur, (80,), at), tmp_path, 80, at == (4, 8))


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
@pytest.mark.parametrize("kernel", [plain, far])
def test_several_arrays(tmp_path: Path, kernel: Any) -> None:
    """A stage that asks for nothing, and one that stores two arrays."""
    a, b, c = (aligned((90,), 0, k) for k in range(3))
    calls = (kernel, 90, a, b, c), (blur, 90, c, a), (kernel, 90, a, c, b)
    check(persistent(*calls), tmp_path, 90, True)


def check(plan: PersistentPlan, folder: Path, row: int, used: bool) -> None:
    """Two launches leave what the Python functions do; with vectors, or without."""
    own = run(plan, folder, "tickets", row=row, dialect=DIALECT)
    for wanted in results(plan, 2):
        own.launch()
        assert_memory(plan, wanted)
    assert bool(own.kernel.asked()) == used
    assert memory(plan)
