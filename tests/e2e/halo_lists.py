"""Kernels that read neighbours' elements, and lists of them whose temporaries are flagged."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.planning import overlap

N = 37
FLAGS = {"private": {"promote_private": True}, "local": {"promote_local": True},
         "internal": {"internal": True}}  # fmt: skip


@fq.kernel
def double(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = a[i] * 2


@fq.kernel
def neighbours(item: fq.Item, t, b):
    i = item.get_id(0)
    if i > 0 and i < t.shape[0] - 1:
        b[i] = t[i - 1] - t[i + 1]
    else:
        b[i] = t[i]


@fq.kernel
def inside_only(item: fq.Item, a, t):
    i = item.get_id(0)
    if i > 0 and i < t.shape[0] - 1:
        t[i] = a[i - 1] + a[i + 1]


@fq.kernel
def from_the_inside(item: fq.Item, t, b):
    i = item.get_id(0)
    if i > 1 and i < t.shape[0] - 2:
        b[i] = t[i - 1] * t[i + 1]


@fq.kernel
def where_positive(item: fq.Item, a, t):
    i = item.get_id(0)
    if a[i] > 0:
        t[i] = a[i]


@fq.kernel
def offset_by_one(item: fq.Item, a, t):
    i = item.get_id(0) + 1
    t[i] = a[i] * 3


@fq.kernel
def reversed_(item: fq.Item, a, t):
    i = item.get_id(0)
    t[t.shape[0] - 1 - i] = a[i] + 1


@fq.kernel
def two_elements(item: fq.Item, a, t):
    i = item.get_id(0)
    t[2 * i] = a[i]
    t[2 * i + 1] = a[i] + 1


@fq.kernel
def every_second(item: fq.Item, a, t):
    t[2 * item.get_id(0)] = a[item.get_id(0)]


@fq.kernel
def same_element(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i % 4] = a[i]


@fq.kernel
def in_place(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = t[i] + a[i]


@fq.kernel
def shifted(item: fq.Item, t, b, by):
    i = item.get_id(0)
    if i + by >= 0 and i + by < t.shape[0]:
        b[i] = t[i + by] + t[i]


@fq.kernel
def all_of_them(item: fq.Item, t, b):
    i = item.get_id(0)
    s = b[i]
    for k in range(t.shape[0]):
        s += t[k]
    b[i] = s


@fq.kernel
def lazily(item: fq.Item, t, b):
    i = item.get_id(0)
    last = i == t.shape[0] - 1
    b[i] = (t[i - 1] if i > 0 else 7) + (1 if not last and t[i + 1] > 0 else 0)


@fq.kernel
def while_positive(item: fq.Item, t, b):
    i = item.get_id(0)
    k = 0
    while k < 3 and t[i] > k:
        k += 1
    b[i] = k


@fq.kernel
def counted(item: fq.Item, a, t, total):
    i = item.get_id(0)
    t[i] = a[i]
    fq.AtomicRef(total, 0).fetch_add(1)


@fq.kernel
def at_places(item: fq.Item, t, places, c):
    i = item.get_id(0)
    c[i] = t[places[i]]


@fq.kernel
def also(item: fq.Item, a, t, c):
    i = item.get_id(0)
    t[i] = a[i] * 2
    c[i] = a[i]


@fq.kernel
def accumulated(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = 0
    for k in range(3):
        t[i] += a[i] * k


@fq.kernel
def by_range(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = a[item.get_range(0) - 1 - i]


class Lists:
    """Runs a list unfused and with ``strategy="overlap"``, and compares all that it leaves."""

    def __init__(self, queue, flag="internal", dtype=np.int64):
        rng = np.random.default_rng(1)
        self._queue = queue
        self._first = {name: rng.integers(-9, 10, N).astype(dtype) for name in "abcd"}
        self._flags = {"t": FLAGS[flag], "u": FLAGS[flag]}

    def __call__(self, submit, **options):
        results = []
        for strategy in ("unfused", "overlap"):
            buffers = {name: fq.Buffer(data) for name, data in self._first.items()}
            buffers |= {t: fq.Buffer(self._first["d"], **f) for t, f in self._flags.items()}
            asked = options if strategy == "overlap" else {}
            with fq.fusion(self._queue, strategy=strategy, promote="internal", **asked) as f:
                submit(self._queue, **buffers)
            results.append({name: buffers[name].numpy().copy() for name in "abcdtu"})
        promoted = {
            name
            for p in f.report.promotions
            if p.scope != "global"
            for name in p.buffer.split(" or ")
        }
        for name, expected in results[0].items():
            left = self._first["d"] if name in "tu" and name in promoted else expected
            np.testing.assert_array_equal(results[1][name], left, err_msg=name)
        return f.report


@fq.kernel
def into_odd_elements(item: fq.Item, t, u):
    i = item.get_id(0)
    if 2 * i + 1 < u.shape[0]:
        value = t[min(i + 1, t.shape[0] - 1)] - t[t.shape[0] - 1 - i]
        if i > 0:
            u[2 * i + 1] = value


@pytest.fixture(params=["inlined", "tiled"])
def way(request, monkeypatch):
    """How elements are computed anew where there are several ways."""
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    monkeypatch.setattr(PLANS, "_plans", OrderedDict())
    monkeypatch.setattr(overlap, "WAYS", (request.param,))
    return request.param


@pytest.fixture
def reference_queue(way):
    with fq.FusionQueue("reference") as queue:
        yield queue


@pytest.fixture
def lists(reference_queue):
    return Lists(reference_queue)


def chain(first, second, items=N, *scalars):
    def submit(queue, a, b, t, **_):
        queue.submit(first, items, a, t)
        queue.submit(second, N, t, b, *scalars)

    return submit
