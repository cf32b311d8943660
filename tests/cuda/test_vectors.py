"""Launches whose threads do several work-items store what those do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.cuda.devices import device
from tests.property.element_lists import ElementList, added, element_lists, results
from tests.property.running import examples

N = 4099


@pytest.fixture(scope="module", autouse=True)
def for_short_ranges() -> Iterator[None]:
    """Ranges need not be long for it."""
    gpu = device(0)
    before = gpu.threads
    vars(gpu)["threads"] = 0
    yield
    vars(gpu)["threads"] = before


@fq.kernel
def added_in_rows(item: fq.Item, a, b, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] + b[i, j]


def is_wide(f: fq.Fusion) -> bool:
    grid = f._list.run.single._form.grid
    return grid.blocks[0] * grid.threads[0] < N


@pytest.mark.parametrize(
    ("start", "wide"),
    [((0, 0, 0), True), ((4, 8, 16), True), ((1, 0, 0), False), ((0, 0, 2), False)],
)
def test_where_vectors_begin(queue, start, wide) -> None:
    rng = np.random.default_rng(0)
    a, b, out = (rng.random(N + 16).astype(np.float32) for _ in range(3))
    views = [fq.Buffer(x) for x in (a, b, out)]
    with fq.fusion(queue, strategy="fused") as f:
        queue.submit(added, N, *[x[s : s + N] for x, s in zip(views, start, strict=True)])
    assert is_wide(f) == wide
    out[start[2] : start[2] + N] = a[start[0] : start[0] + N] + b[start[1] : start[1] + N]
    for _ in range(25):  # as a graph, too
        f.replay()
    np.testing.assert_array_equal(views[2].numpy(), out)


@examples(100)
@given(element_lists(), st.booleans())
def test_random_lists(program: ElementList, fused: bool) -> None:
    with np.errstate(all="ignore"):
        with fq.FusionQueue("reference") as reference:
            expected = results(reference, program, fused=False)
        with fq.FusionQueue("cuda") as queue:
            found = results(queue, program, fused)
    for one, another in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, another)


@pytest.mark.parametrize("shape", [(N,), (4096,), (9, 4100), (300, 1024)])
def test_launches_that_record(queue, shape) -> None:
    """Each work-group of threads has its beginning and its end, also one that is not whole."""
    rng = np.random.default_rng(0)
    a, b, out = (fq.Buffer(rng.random(shape).astype(np.float32)) for _ in range(3))
    with fq.profile(queue, compare=False, every=1) as p, fq.fusion(queue, strategy="fused"):
        queue.submit(added if len(shape) == 1 else added_in_rows, shape, a, b, out)
    np.testing.assert_array_equal(out.numpy(), a.numpy() + b.numpy())
    (launch,) = p.timeline.launches
    threads = 32 if len(shape) == 1 else 256  # small launches have groups for all multiprocessors
    assert launch.groups * threads * 4 < 2 * np.prod(shape) + 4096  # no thread has one alone
    assert sorted(p.timeline.intervals["instance"]) == list(range(launch.groups))
