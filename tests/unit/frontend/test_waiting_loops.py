"""Loops that wait for other work-items are refused where that is certain; the reference backend
reports the others."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def handover(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    if i == 0:
        ref.store(1)
    while ref.load() == 0:
        pass
    out[i] = 1


@fq.kernel
def in_turn(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    seen = ref.load()
    while seen != i:
        seen = ref.load()
    ref.fetch_add(1)
    out[i] = seen


@fq.kernel
def without_atomics(item: fq.Item, flag, out):
    i = item.get_id(0)
    while flag[0] == 0:
        if flag[0] == 2:
            break
    flag[0] = i
    out[i] = 1


@fq.kernel
def at_most_a_thousand_times(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    looks = 0
    while ref.load() == 0 and looks < 1000:
        looks += 1
    ref.fetch_add(1)
    out[i] = looks


@fq.kernel
def counts_down(item: fq.Item, flag, out):
    i = item.get_id(0)
    while out[i] > 0:
        out[i] = out[i] - 1
    flag[0] = 1


@fq.kernel
def for_the_host(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    while ref.load() == 0:
        pass
    out[i] = 1


def submit(kernel: fq.KernelFunction, flag: int = 0) -> list[int]:
    out = fq.Buffer(np.full(3, 2, np.int32))
    with fq.FusionQueue("reference") as queue:
        queue.submit(kernel, 3, fq.Buffer(np.full(1, flag, np.int32)), out)
        return out.numpy().tolist()


@pytest.mark.parametrize("kernel", [handover, in_turn, without_atomics])
def test_waiting_for_another_work_item_is_refused(kernel: fq.KernelFunction) -> None:
    with pytest.raises(fq.KernelLanguageError) as caught:
        submit(kernel)
    text = str(caught.value)
    assert "ends only when another work-item has changed 'flag'" in text
    assert "test_waiting_loops.py:" in text and "while " in text


def test_loops_that_end_by_themselves_are_kernels() -> None:
    assert sorted(submit(at_most_a_thousand_times)) == [0, 0, 1000]
    assert submit(counts_down) == [0, 0, 0]


def test_the_reference_backend_reports_a_livelock() -> None:
    assert submit(for_the_host, flag=1) == [1, 1, 1]
    with pytest.raises(fq.DeviceError, match="livelock: this loop waits until memory") as e:
        submit(for_the_host)
    assert "while ref.load() == 0:" in str(e.value)
