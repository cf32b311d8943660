"""Launches that were prepared for one list serve lists of sizes that were never seen."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.launch import CudaLaunch

Array = Any


@fq.kernel
def smoothed(item: fq.Item, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    left = a[i, j - 1] if j > 0 else a[i, j]
    out[i, j] = left + a[i, j]


@fq.kernel
def scaled(item: fq.Item, a: Array, factor: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] * factor


@fq.kernel
def reversed_rows(item: fq.Item, a: Array, out: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, a.shape[1] - 1 - j]


def expected(a: np.ndarray, factor: np.float32) -> np.ndarray:
    left = np.concatenate([a[:, :1], a[:, :-1]], axis=1)
    return ((left + a) * factor)[:, ::-1]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels of launches that were prepared, not copied."""
    names: list[str] = []
    init = CudaLaunch.__init__

    def counted(self: CudaLaunch, stream: Any, program: Any, *others: Any) -> None:
        names.append(program.kernel.name)
        init(self, stream, program, *others)

    monkeypatch.setattr(CudaLaunch, "__init__", counted)
    return names


@pytest.mark.parametrize("strategy", ["unfused", "fused", "sequence", "overlap", "auto"])
def test_lists_of_new_sizes(queue: fq.FusionQueue, prepared: list[str], strategy: Any) -> None:
    chance = random.Random(3)
    lists = []
    for k in range(40):
        shape = chance.randint(1, 40), chance.randint(513, 1023)
        whole = np.arange(shape[0] * (shape[1] + 3), dtype=np.float32) % 251
        a = whole.reshape(shape[0], shape[1] + 3)
        part = fq.Buffer(a)[:, k % 3 : k % 3 + shape[1]]
        between, more, out = (fq.Buffer(shape, np.float32) for _ in range(3))
        with fq.fusion(queue, strategy=strategy) as fusion:
            queue.submit(smoothed, shape, part, between)
            queue.submit(scaled, shape, between, np.float32(k), more)
            queue.submit(reversed_rows, shape, more, out)
        found = expected(a[:, k % 3 : k % 3 + shape[1]], np.float32(k))
        lists.append((fusion, out, found))
        if k % 5 == 0:
            assert np.array_equal(out.numpy(), found)
    for fusion, out, found in reversed(lists):
        assert np.array_equal(out.numpy(), found)
        out.write(np.zeros_like(found))
        for _ in range(3):
            fusion.replay()
        assert np.array_equal(out.numpy(), found)
    if strategy not in ("auto", "unfused"):
        assert len(prepared) <= 24


def test_submissions_of_new_sizes(queue: fq.FusionQueue, prepared: list[str]) -> None:
    for n in range(513, 600):
        a = np.arange(3 * n, dtype=np.float32).reshape(3, n)
        out = fq.Buffer((3, n), np.float32)
        queue.submit(scaled, (3, n), fq.Buffer(a), np.float32(n), out)
        assert np.array_equal(out.numpy(), a * np.float32(n))
    assert len(prepared) <= 16
