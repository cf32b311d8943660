"""Queues on two GPUs: each list runs on its queue's, and Buffers move to where they are used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.devices import device_count
from tests.unit.cuda.test_streams import product

N = 100_003


@fq.kernel
def twice(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * np.float32(2)


@fq.kernel
def add(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def neighbours(item: fq.Item, a, out):
    i = item.get_id(0)
    left = a[i - 1] if i > 0 else np.float32(0)
    right = a[i + 1] if i + 1 < a.shape[0] else np.float32(0)
    out[i] = np.float32(0.25) * left + np.float32(0.5) * a[i] + np.float32(0.25) * right


@pytest.fixture
def queues(gpu: None) -> Iterator[tuple[fq.FusionQueue, fq.FusionQueue]]:
    """A queue on each GPU."""
    if device_count() < 2:
        pytest.skip("the driver shows one GPU only")
    with fq.FusionQueue("cuda:0") as first, fq.FusionQueue("cuda:1") as second:
        yield first, second


def values(seed: int = 0, n: int = N) -> Any:
    return np.random.default_rng(seed).integers(0, 9, n).astype(np.float32)


def smoothed(a: Any, steps: int) -> Any:
    for _ in range(steps):
        padded = np.pad(a, 1)
        quarter, half = np.float32(0.25), np.float32(0.5)
        a = quarter * padded[:-2] + half * a + quarter * padded[2:]
    return a


def steps(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer, count: int) -> None:
    for _ in range(count):
        queue.submit(neighbours, a.shape[0], a, b)
        a, b = b, a


@pytest.mark.parametrize("strategy", ["unfused", "sequence", "overlap", "megakernel", "auto"])
def test_lists_run_on_each(queues: Any, strategy: str) -> None:
    start = values()
    for queue in queues:
        a, b = fq.Buffer(start), fq.Buffer(N, np.float32)
        with fq.fusion(queue, strategy=strategy) as f:
            steps(queue, a, b, 4)
        for _ in range(3):
            f.replay()
        f.event.wait()
        np.testing.assert_array_equal(a.numpy(), smoothed(start, 16))


def test_rings_are_filled_on_the_second(queues: Any) -> None:
    rng = np.random.default_rng(1)
    width = 1024
    weights = [rng.standard_normal((2 * width, width)).astype(np.float32) / 32 for _ in range(2)]
    results = []
    for queue in queues:
        there = [fq.Buffer(w) for w in weights]
        x, y = fq.Buffer(values(2, width)), fq.Buffer(width, np.float32)
        with fq.fusion(queue, strategy="megakernel", require=True) as f:
            for k in range(256):
                space = fq.NdRange((width, 128), (1, 128))
                queue.submit(product, space, there[k % 2], x, y)
                x, y = y, x
        f.replay().wait()
        results.append(x.numpy().copy())
    assert np.isfinite(results[0]).all() and results[0].any()
    np.testing.assert_array_equal(*results)


def test_buffers_move_to_where_they_are_used(queues: Any) -> None:
    """In the order of what was submitted, with nothing waited for between."""
    first, second = queues
    expected = values()
    a, b = fq.Buffer(expected), fq.Buffer(N, np.float32)
    for k in range(6):
        queue = (first, second)[k % 2]
        if k % 3 == 2:
            with fq.fusion(queue):
                queue.submit(twice, N, a, b)
                queue.submit(add, N, a, b, a)
        else:
            queue.submit(twice, N, a, b)
            queue.submit(add, N, a, b, a)
        expected = expected * np.float32(3)
    np.testing.assert_array_equal(a.numpy(), expected)


def test_a_list_is_replayed_after_its_buffers_were_on_the_other(queues: Any) -> None:
    first, second = queues
    expected = values()
    a, b = fq.Buffer(expected), fq.Buffer(N, np.float32)
    with fq.fusion(first) as f:
        first.submit(twice, N, a, b)
        first.submit(add, N, a, b, a)
    for _ in range(4):
        second.submit(twice, N, a, a)
        f.replay()
    np.testing.assert_array_equal(a.numpy(), expected * np.float32(3 * 6**4))


def test_a_graph_has_parts_on_both(queues: Any) -> None:
    first, second = queues
    expected = values()
    a, b, c = fq.Buffer(expected), fq.Buffer(N, np.float32), fq.Buffer(N, np.float32)
    graph = fq.Graph()
    with graph.record(first):
        first.submit(twice, N, a, b)
        first.submit(add, N, a, b, b)
    with graph.record(second):
        second.submit(twice, N, b, c)
    for _ in range(3):
        graph.launch().wait()
    np.testing.assert_array_equal(c.numpy(), expected * np.float32(6))


def test_threads_use_one_each(queues: Any) -> None:
    failed: list[BaseException] = []

    def work(queue: fq.FusionQueue, seed: int) -> None:
        try:
            for k in range(30):
                n = 1000 + 37 * k
                start = values(seed + k, n)
                a, b = fq.Buffer(start), fq.Buffer(n, np.float32)
                with fq.fusion(queue):
                    steps(queue, a, b, 4)
                assert np.array_equal(a.numpy(), smoothed(start, 4)), (seed, n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(q, 100 * k)) for k, q in enumerate(queues)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_arrays_of_others_stay_where_they_are(queues: Any) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    first, second = queues
    on_second = torch.arange(N, dtype=torch.float32, device="cuda:1")
    out = torch.zeros(N, device="cuda:1")
    second.submit(twice, N, on_second, out).wait()
    assert np.array_equal(out.cpu().numpy(), 2 * np.arange(N, dtype=np.float32))
    with pytest.raises(fq.DeviceError, match=r"cuda:1|GPU 1"):
        first.submit(twice, N, on_second, fq.Buffer(N, np.float32))
    with fq.FusionQueue(torch.cuda.Stream(device=1)) as theirs:
        assert theirs.device.filter_string == "cuda:1"
        theirs.submit(twice, N, out, out).wait()
    assert np.array_equal(out.cpu().numpy(), 4 * np.arange(N, dtype=np.float32))
