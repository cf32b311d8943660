"""What the direct dependences of a list leave out follows from them, for every work-item.

The oracle lists the elements that each work-item touches, kernel by kernel, and knows no integer
sets: any two work-items that touch the same element, one of them writing, must be connected by
direct dependences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.analysis import list_dependences, questions
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from tests.property.running import examples
from tests.unit.lists import completed, submissions

N = 6


@fq.kernel
def copy(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i]


@fq.kernel
def inner(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < item.get_range(0) - 1:
        b[i] = a[i - 1] + a[i] + a[i + 1]


@fq.kernel
def half(item: fq.Item, a, b):
    i = item.get_id(0)
    if i < item.get_range(0) // 2:
        b[i] = a[i]


@fq.kernel
def reverse(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[item.get_range(0) - 1 - i]


@fq.kernel
def perhaps(item: fq.Item, a, b):
    i = item.get_id(0)
    if a[i] > 0:
        b[i] = a[i]


@fq.kernel
def one(item: fq.Item, a, b, k):
    i = item.get_id(0)
    if i == k:
        b[k] = a[i]


@fq.kernel
def from_here(item: fq.Item, a, b, k):
    i = item.get_id(0)
    if i >= k:
        b[i] = a[i]


@fq.kernel
def gathered(item: fq.Item, a, b):
    i = item.get_id(0)
    b[int(a[i])] = a[i]


Touched = tuple[set[int], set[int]]
"""Elements of ``a`` that a work-item may read, of ``b`` that it may write."""

EVERY = set(range(N))
KERNELS: dict[fq.Kernel, Callable[[int, int], Touched]] = {
    copy: lambda i, k: ({i}, {i}),
    inner: lambda i, k: ({i - 1, i, i + 1}, {i}) if 0 < i < N - 1 else (set(), set()),
    half: lambda i, k: ({i}, {i}) if i < N // 2 else (set(), set()),
    reverse: lambda i, k: ({N - 1 - i}, {i}),
    perhaps: lambda i, k: ({i}, {i}),
    one: lambda i, k: ({i}, {k}) if i == k else (set(), set()),
    from_here: lambda i, k: ({i}, {i}) if i >= k else (set(), set()),
    gathered: lambda i, k: ({i}, EVERY),
}
STEPS = (one, from_here)
"""Those that take the number of a step."""
MEMORY = np.zeros(2 * N)
VIEWS = [MEMORY[:N], MEMORY[N:], MEMORY[2 : 2 + N], MEMORY[: 2 * N : 2], np.zeros(N), np.zeros(N)]
ADDRESSES = [
    lambda e: ("memory", e), lambda e: ("memory", N + e), lambda e: ("memory", 2 + e),
    lambda e: ("memory", 2 * e), lambda e: ("fifth", e), lambda e: ("sixth", e),
]  # fmt: skip
CALLS = st.tuples(
    st.sampled_from(list(KERNELS)), st.integers(0, 5), st.integers(0, 5), st.integers(0, N - 1)
)


@examples(60)
@given(st.lists(CALLS, min_size=2, max_size=9), st.booleans())
@example([(copy, 0, 1, 0), (copy, 0, 2, 0), (copy, 0, 1, 0)], True)
def test_all_others_follow(calls, repeated):
    check(calls, repeated)


@examples(30)
@given(st.lists(CALLS, min_size=2, max_size=7), st.booleans(), st.integers(0, 2), st.booleans())
@example([(from_here, 5, 4, 0), *((from_here, 4, 4, k) for k in range(N))], False, 1, True)
@example([(copy, 5, 4, 0), *((one, 4, 4, k) for k in (3, 1, 2, 4)), (copy, 4, 5, 0)], True, 1, True)
def test_all_others_follow_where_many_live(calls, repeated, few, together):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(list_dependences, "FEW_LIVE", few)
        patched.setattr(questions, "FEWEST_TOGETHER", 1 if together else 1 << 30)
        check(calls, repeated)


def check(calls, repeated):
    calls = calls * 2 if repeated else calls
    listed = submissions(
        *(
            (kernel, N, VIEWS[a], VIEWS[b], *((k,) if kernel in STEPS else ()))
            for kernel, a, b, k in calls
        )
    )
    found = completed(direct_dependences(Questions(listed)))
    touched = [
        [
            ({ADDRESSES[a](e) for e in reads}, {ADDRESSES[b](e) for e in writes})
            for reads, writes in (KERNELS[kernel](i, k) for i in range(N))
        ]
        for kernel, a, b, k in calls
    ]
    before: list[list[set[tuple[int, int]]]] = []
    """For each submission and work-item those that have to be done before."""
    for c, own in enumerate(touched):
        ordered: list[set[tuple[int, int]]] = [set() for _ in own]
        scopes: dict[int, set[str]] = {}
        for d in found[c]:
            scopes.setdefault(d.producer, set()).add(d.scope)
        for p, all_scopes in scopes.items():
            for j, mine in enumerate(own):
                for i, theirs in enumerate(touched[p]):
                    # Where it is not known what they share, all wait for all.
                    if "UNKNOWN" in all_scopes or conflict(theirs, mine):
                        ordered[j] |= {(p, i)} | before[p][i]
        before.append(ordered)
        for p in range(c):
            for j, mine in enumerate(own):
                for i, theirs in enumerate(touched[p]):
                    assert not conflict(theirs, mine) or (p, i) in ordered[j], (p, i, c, j)
        assert not any(s == {"NONE"} and any(conflict(a, b) for a in touched[p] for b in own)
                       for p, s in scopes.items())  # fmt: skip


def conflict(first, second) -> bool:
    """Whether two work-items touch the same element and one of the two writes it."""
    (reads, writes), (others_reads, others_writes) = first, second
    return bool(writes & (others_reads | others_writes) or reads & others_writes)
