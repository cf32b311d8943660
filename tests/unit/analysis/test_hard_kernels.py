"""Kernels whose indices are too long to analyse are read all the same, at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations
from fusionq.analysis.affine import MOST_QUOTIENTS
from fusionq.analysis.isl_operations import PlanOperations, limited_operations, plan_operations
from fusionq.analysis.list_analysis import analyse
from fusionq.planning.submission_check import check_submission
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


def chained(step: Callable[[int], str]) -> Callable[[int], fq.KernelFunction]:
    """Kernels with so many steps on their way to an index."""

    def kernel(steps: int) -> fq.KernelFunction:
        lines = "".join(f"    {line}\n" for k in range(steps) for line in step(k).splitlines())
        return defined(
            f"def k(item, a, b):\n    i = item.get_id(0)\n    j = i\n{lines}    b[i] = a[j % 64]\n"
        )

    return kernel


CHAINS = {
    "quotients": divided,
    "conditions": chained(lambda k: f"if j % {k + 2} > {k // 2}:\n    j = j // 2 + {k}"),
    "extremes": chained(lambda k: f"j = min(max(j, {k} - j), {50 + k} + i // {k + 2})"),
    "selections": chained(lambda k: f"j = j + {k} if (i + j) % {k + 2} < 2 else j - {k}"),
    "magnitudes": chained(lambda k: f"j = abs(j - {100 + 7 * k})"),
    "returns": chained(lambda k: f"if i // {k + 1} % {k + 2} == 1:\n    return"),
    "alternatives": chained(lambda k: f"if (i + {k}) % {k + 2} != 1 or i > {k}:\n    j = j + 1"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_reading_takes_a_bounded_number_of_operations(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are a question's, which ends, and in proportion to the length of the chain; no
    time passes."""
    monkeypatch.setattr(isl_operations, "clock", lambda: 0.0)
    taken = []
    for steps in (2, 24, 48):
        operations = PlanOperations()
        with plan_operations(operations), limited_operations(2000):
            indices(CHAINS[name](steps), "read")
        taken.append(operations.allowed - operations.left)
    assert taken[0] < 100_000
    assert taken[1] < 100 * isl_operations.OPERATIONS
    assert taken[2] < 3 * taken[1]


def test_checks_of_indices_with_many_cases_are_questions() -> None:
    """Three indices of some cases each make many together: they meet inside a question."""
    cases = "".join(
        f"    {name} = {name} + {k} if {name} > {7 * k} else {name}\n"
        for name in "jkl" for k in range(1, 4)
    )  # fmt: skip
    kernel = defined(
        "def k(item, a, b):\n    i = item.get_id(0)\n    j = i\n    k = i + 1\n    l = i + 2\n"
        f"{cases}    b[i] = a[j, k, l]\n    b[i + s] = 0.0\n"
        .replace("(item, a, b)", "(item, a, b, s)")
    )
    arrays = np.zeros((99, 99, 99)), np.zeros(N)
    (inside,) = submissions((kernel, N, *arrays, 0))
    (outside,) = submissions((kernel, N, *arrays, N))
    with limited_operations(2000):
        check_submission(inside)
        with pytest.raises(fq.ArgumentError, match=r"b\[i \+ s\]"):
            check_submission(outside)


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
