"""What is asked about all submissions of a stage."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.questions import Questions
from fusionq.planning import members
from fusionq.planning.members import Members
from fusionq.planning.work import work_of
from tests.unit.lists import submissions
from tests.unit.targets import REFERENCE

N = 12


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def summed(item: fq.Item, a, n, out):
    i = item.get_id(0)
    t = a[i]
    for k in range(n):
        t += a[k]
    out[i] = t


def listed():
    a, b, c = (np.zeros(N, np.float32) for _ in range(3))
    long = np.zeros(2 * N, np.float64)
    return submissions(
        (copy, N, a, b), (copy, N, a, c), (copy, 5, a, b), (summed, N, a, 3, b),
        (summed, N, a, 7, b), (copy, N, a, long),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _local_memory(monkeypatch):
    """As if a work-group of ``summed`` took 16 bytes."""
    monkeypatch.setattr(members, "launched_bytes", lambda ir, *_: 16 * (ir.name == "summed"))


def told(found):
    return (
        found.numbers, [id(s) for s in found.different], found.work, found.memory_bytes,
        found.idle(N), found.local_bytes,
    )  # fmt: skip


def test_what_is_known_of_all_is_the_sum_of_what_is_known_of_each():
    made = listed()
    found = Members(Questions(made), REFERENCE, range(len(made)))
    assert found.numbers == list(range(len(made)))
    assert found.different == [made[k] for k in (0, 2, 3, 5)]
    assert found.work == sum(work_of(s) for s in made)
    assert found.memory_bytes == 3 * N * 4 + 2 * N * 8
    assert found.idle(N) == N - 5
    assert found.idle(N + 1) == (N + 1 - 5) + len(made) - 1
    assert found.local_bytes == 2 * 16


@pytest.mark.parametrize("count", range(7))
def test_what_joined_last_leaves_nothing_behind(count):
    made = listed()
    questions = Questions(made)
    found = Members(questions, REFERENCE, range(len(made)))
    for _ in range(len(made) - count):
        found.remove_last()
    assert told(found) == told(Members(questions, REFERENCE, range(count)))
    for s in range(count, len(made)):
        found.add(s)
    assert told(found) == told(Members(questions, REFERENCE, range(len(made))))
