"""Temporaries of which each work-item reads one element, another work-item's: computed anew where
it is read, so that one launch does, with the bits of the unfused run."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

N = 1000


@fq.kernel
def made(item, a, t):
    i = item.get_id(0)
    t[i] = a[i] * np.float32(0.3) + np.float32(i)


@fq.kernel
def left(item, t, out):
    i = item.get_id(0)
    if i > 0:
        out[i] = t[i - 1] * t[i - 1]
    else:
        out[i] = -1


@fq.kernel
def left_guarded(item, t, out):
    i = item.get_id(0)
    value = np.float32(1)
    if 0 <= i - 1 < t.shape[0]:
        value = value * 2 - t[i - 1]
    out[i] = value


@fq.kernel
def turned(item, t, out):
    i = item.get_id(0)
    out[i] = t[t.shape[0] - 1 - i] / np.float32(7)


@fq.kernel
def around(item, t, out):
    i = item.get_id(0)
    out[i] = t[(i + 3) % t.shape[0]]


@fq.kernel
def doubled(item, t, out):
    i = item.get_id(0)
    if 2 * i < t.shape[0]:
        out[i] = t[2 * i]


@fq.kernel
def transposed(item, t, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = t[j, i] + np.float32(1)


@fq.kernel
def made_2d(item, a, t):
    i, j = item.get_id(0), item.get_id(1)
    t[i, j] = a[i, j] * np.float32(0.3) + np.float32(i)


def run(target, steps, shape, in_place, **options):
    """``steps``: kernels, each of what the one before has made; what is left, and the report."""
    a = np.random.default_rng(3).random(shape, np.float32)
    with fq.FusionQueue(target) as queue:
        buffers = [fq.Buffer(a)]
        buffers += [fq.Buffer(np.zeros(shape, np.float32), internal=True) for _ in steps[1:]]
        buffers.append(fq.Buffer(np.full(shape, 5, np.float32)))
        if in_place:
            buffers[-1] = buffers[0]
        report = None
        if options:
            with fq.fusion(queue, **options) as f:
                for k, kernel in enumerate(steps):
                    queue.submit(kernel, fq.Range(*shape), buffers[k], buffers[k + 1])
            f.event.wait()
            report = f.report
        else:
            for k, kernel in enumerate(steps):
                queue.submit(kernel, fq.Range(*shape), buffers[k], buffers[k + 1])
        return [buffers[0].numpy().copy(), buffers[-1].numpy().copy()], report


READERS = {
    "left": (left,), "guarded": (left_guarded,), "turned": (turned,), "around": (around,),
    "doubled": (doubled,), "a chain": (left_guarded, turned, left), "twice": (turned, turned),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("strategy", ["overlap", "auto"])
def test_one_element_of_another_work_item(target, name, strategy):
    steps = (made, *READERS[name])
    expected, _ = run(target, steps, (N,), False)
    found, report = run(target, steps, (N,), False, strategy=strategy, promote="internal")
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()
    if strategy == "overlap":
        assert report.headline == f"{len(steps)} submissions → 1 kernel"
        assert len(report.recomputed) == len(steps) - 1


def test_a_transpose(target):
    expected, _ = run(target, (made_2d, transposed), (40, 40), False)
    found, report = run(
        target, (made_2d, transposed), (40, 40), False, strategy="overlap", promote="internal"
    )
    assert found[1].tobytes() == expected[1].tobytes()
    assert report.headline == "2 submissions → 1 kernel"


@pytest.mark.parametrize("name", READERS)
def test_what_it_is_made_of_is_overwritten(target, name):
    """Nothing is computed anew from elements that other work-items may have overwritten."""
    steps = (made, *READERS[name])
    expected, _ = run(target, steps, (N,), True)
    found, _ = run(target, steps, (N,), True, strategy="overlap", promote="internal")
    assert found[1].tobytes() == expected[1].tobytes()
