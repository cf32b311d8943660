"""Kernels whose indices are too long to analyse are read all the same, at once."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.analysis.affine import MOST_QUOTIENTS
from fusionq.analysis.list_analysis import analyse
from tests.unit.lists import submissions
from tests.unit.tables import defined

N = 64


def divided(steps: int) -> fq.KernelFunction:
    """Quotients and remainders of quotients and remainders."""
    lines = [f"    j = j // {2 + k % 5} + j % {3 + k % 7} + {k}\n" for k in range(steps)]
    return defined(
        "def k(item, a, b):\n    i = item.get_id(0)\n    j = i\n"
        + "".join(lines)
        + "    b[i] = a[j % 64]\n"
    )


def indices(kernel: fq.KernelFunction, kind: str) -> list[bool]:
    """Whether the index of each access of a kind is known."""
    analysis = analyse(submissions((kernel, N, np.zeros(N), np.zeros(N))))
    return [a.indices is not None for a in analysis.accesses[0].accesses if a.kind == kind]


def test_long_indices_are_unknown_and_short_ones_are_not() -> None:
    assert indices(divided(2), "read") == [True]
    assert indices(divided(24), "read") == [False]
    assert indices(divided(24), "write") == [True]
    assert 2 < MOST_QUOTIENTS < 24


def test_they_give_what_the_interpreter_gives() -> None:
    """Alone and in a list, in which what is unknown is not fused."""
    long, start = divided(24), np.arange(N, dtype=np.float64)
    expected = np.array([start[index(i)] for i in range(N)])
    a, b, c = fq.Buffer(start), fq.Buffer(np.zeros(N)), fq.Buffer(np.zeros(N))
    with fq.FusionQueue("reference") as queue:
        queue.submit(long, N, a, b)
        assert (b.numpy() == expected).all()
        with fq.fusion(queue) as f:
            queue.submit(long, N, b, c)
            queue.submit(long, N, c, b)
        again = expected[[index(i) for i in range(N)]]
        assert (c.numpy() == again).all()
        assert (b.numpy() == again[[index(i) for i in range(N)]]).all()
        assert f.report.strategy in ("unfused", "sequence")


def index(i: int) -> int:
    """Which element work-item ``i`` reads."""
    j = i
    for k in range(24):
        j = j // (2 + k % 5) + j % (3 + k % 7) + k
    return j % 64
