"""Launches that are moved to other memory: by a driver that notes their arguments."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda import launch
from tests.unit.cuda.fake_driver import FakeDriver, Launched, driver, gpu_queue

__all__ = ["driver", "gpu_queue"]

pytestmark = pytest.mark.filterwarnings("ignore::fusionq.ArrayDetached")


@fq.kernel
def scaled(item: fq.Item, a: Any, factor: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def added(item: fq.Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def negative(item: fq.Item, a: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = -a[i, j]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels of launches that were prepared, not copied."""
    names: list[str] = []
    init = launch.CudaLaunch.__init__

    def counted(self: launch.CudaLaunch, stream: Any, program: Any, *others: Any) -> None:
        names.append(program.kernel.name)
        init(self, stream, program, *others)

    monkeypatch.setattr(launch.CudaLaunch, "__init__", counted)
    return names


def address(buffer: fq.Buffer) -> int:
    found = buffer._storage.address
    assert found is not None
    return found + buffer._offset


def has(launched: Launched, *buffers: fq.Buffer) -> bool:
    """Whether the launch has just these arrays."""
    known = {address(buffer) for buffer in buffers}
    return known <= set(launched.arguments)


def new(size: int = 1000, start: int = 0) -> fq.Buffer:
    return fq.Buffer(np.zeros(size + start, np.float32))[start:]


class Array:
    """Another library's array on the GPU, whose stream ``work`` is; beginning ``start`` elements
    behind the memory's beginning."""

    itemsize = 4

    def __init__(
        self, size: int = 1000, start: int = 0, work: int | None = 1, mask: object = None
    ) -> None:
        self.memory = new(size + start)
        self.memory._synchronize("a test")
        self.shape = (size,)
        self.__cuda_array_interface__ = {
            "data": (address(self.memory) + 4 * start, False), "shape": (size,), "strides": None,
            "typestr": "<f4", "version": 3, "stream": work, "mask": mask,
        }  # fmt: skip

    @property
    def place(self) -> int:
        return int(self.__cuda_array_interface__["data"][0])


def pair(queue: fq.FusionQueue, *arrays: fq.Buffer, factor: float = 2.0) -> fq.Fusion:
    a, b, between, out = arrays
    with fq.fusion(queue, strategy="sequence") as fusion:
        queue.submit(scaled, a.shape[0], a, np.float32(factor), between)
        queue.submit(added, a.shape[0], between, b, out)
    return fusion


def test_lists_over_new_buffers_are_moved(
    gpu_queue: fq.FusionQueue, driver: FakeDriver, prepared: list[str]
) -> None:
    lists = []
    for k in range(6):
        arrays = [new() for _ in range(4)]
        driver.launched.clear()
        lists.append((arrays, pair(gpu_queue, *arrays, factor=k)))
        assert len(driver.launched) in (1, 2)
        used = [arrays[0], arrays[1], arrays[3]]
        assert all(any(has(one, b) for one in driver.launched) for b in used)
    assert len(prepared) <= 2 * len(driver.launched)
    for arrays, fusion in reversed(lists):  # each list keeps its own arguments
        for _ in range(3):
            driver.launched.clear()
            fusion.replay()
            assert any(has(one, arrays[3]) for one in driver.launched)
            others = [b for buffers, _ in lists if buffers is not arrays for b in buffers]
            assert not any(has(one, b) for one in driver.launched for b in others)


def test_submissions_over_new_buffers_are_moved(
    gpu_queue: fq.FusionQueue, driver: FakeDriver, prepared: list[str]
) -> None:
    for k in range(2 * launch.REPEATED):
        a, out = new(), new()
        gpu_queue.submit(scaled, 1000, a, np.float32(k), out)
        assert has(driver.launched[-1], a, out)
        bits = int(np.float32(k).view(np.uint32))
        assert any(n & 0xFFFFFFFF == bits for n in driver.launched[-1].arguments)
    assert len(prepared) <= 3


def blocks_of(size: int) -> int:
    """Blocks that a launch over so many work-items has at most."""
    return -(-size // 32)


def test_lists_of_new_sizes_are_resized(
    gpu_queue: fq.FusionQueue, driver: FakeDriver, prepared: list[str]
) -> None:
    lists = []
    for size in (1000, 1001, 600, 1023, 513, 900, 1002):
        arrays = [new(size) for _ in range(4)]
        driver.launched.clear()
        lists.append((size, arrays, pair(gpu_queue, *arrays, factor=size)))
        used = [arrays[0], arrays[1], arrays[3]]
        assert all(any(has(one, b) for one in driver.launched) for b in used)
    assert len(prepared) <= 2 * len(driver.launched)
    for size, arrays, fusion in reversed(lists):  # each list keeps its own sizes
        others = {n for n, *_ in lists if n != size}
        bits = int(np.float32(size).view(np.uint32))
        for _ in range(3):
            driver.launched.clear()
            fusion.replay()
            assert any(has(one, arrays[3]) for one in driver.launched)
            for one in driver.launched:
                assert size in one.arguments and others.isdisjoint(one.arguments)
                assert size <= one.blocks[0] * 1024 and one.blocks[0] <= blocks_of(size)
            last = driver.launched[0].arguments
            assert any(n & 0xFFFFFFFF == bits for n in last)


def test_submissions_of_new_sizes_are_resized(
    gpu_queue: fq.FusionQueue, driver: FakeDriver, prepared: list[str]
) -> None:
    for size in range(513, 1023, 17):
        a, out = new(size), new(size)
        gpu_queue.submit(scaled, size, a, np.float32(2), out)
        assert has(driver.launched[-1], a, out) and size in driver.launched[-1].arguments
    assert len(prepared) <= 3


def test_rows_of_new_lengths_may_be_wide_or_not(
    gpu_queue: fq.FusionQueue, driver: FakeDriver, prepared: list[str]
) -> None:
    """And have a graph of their own arguments where they are repeated."""
    blocks: dict[int, list[int]] = {0: [], 1: []}
    lists = []
    for columns in (1536, 1537, 1540, 1542, 2044, 1600, 1539):
        shape = 512, columns
        a, out = (fq.Buffer(np.zeros(shape, np.float32)) for _ in range(2))
        with fq.fusion(gpu_queue) as fusion:
            gpu_queue.submit(negative, shape, a, out)
        launched = driver.launched[-1]
        assert has(launched, a, out) and columns in launched.arguments
        lists.append((launched, a, out, fusion))
        blocks[columns % 4 > 0].append(launched.blocks[0] * launched.blocks[1])
    assert max(blocks[0]) < min(blocks[1])
    assert len(prepared) <= 3
    for launched, *_, fusion in reversed(lists):
        for _ in range(launch.REPEATED + 3):
            fusion.replay()
            assert driver.launched[-1] == launched


def test_other_libraries_arrays_are_moved_to(
    gpu_queue: fq.FusionQueue, driver: FakeDriver, prepared: list[str]
) -> None:
    lists = []
    for k in range(6):
        arrays: list[Any] = [Array(start=k % 2) for _ in range(4)]
        lists.append(arrays)  # the next ones lie elsewhere
        gpu_queue.submit(scaled, 1000, arrays[0], np.float32(2), arrays[1])
        assert {arrays[0].place, arrays[1].place} <= set(driver.launched[-1].arguments)
        driver.launched.clear()
        pair(gpu_queue, *arrays)
        found = {n for one in driver.launched for n in one.arguments}
        assert {arrays[0].place, arrays[1].place, arrays[3].place} <= found
    assert len(prepared) <= 6


def test_a_streams_work_is_waited_for_once(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    arrays = [Array() for _ in range(3)]
    driver.is_busy = True
    before = driver.calls.get("cuStreamWaitEvent", 0)
    gpu_queue.submit(added, 1000, *arrays)
    assert driver.calls["cuStreamWaitEvent"] == before + 1


@pytest.mark.parametrize("reason", ["mask", "dtype", "overlap"])
def test_arrays_that_have_to_be_looked_at(gpu_queue: fq.FusionQueue, reason: str) -> None:
    def submit(*arrays: Any) -> None:
        pair(gpu_queue, *arrays)

    for _ in range(3):
        submit(*[Array() for _ in range(4)])
    arrays = [Array() for _ in range(4)]
    if reason == "mask":
        arrays[0] = Array(mask=Array())
        with pytest.raises(fq.ArgumentError, match="mask"):
            submit(*arrays)
    elif reason == "dtype":
        arrays[0].__cuda_array_interface__["typestr"] = ">f4"
        with pytest.raises(fq.ArgumentError, match="byte order"):
            submit(*arrays)
    else:  # the second kernel reads what the first has written, one element farther on
        arrays[1].__cuda_array_interface__["data"] = (arrays[2].place + 4, False)
        submit(*arrays)
        report = pair(gpu_queue, *arrays).report  # type: ignore[arg-type]  # arrays, too
        assert len(report.stages) == 2 or "barrier: RAW" in str(report)


def moved(queue: fq.FusionQueue, size: int) -> tuple[launch.CudaLaunch, launch.CudaLaunch]:
    """A prepared launch over a range of ``size``, and a copy that can be moved."""
    a, out = new(size), new(size)
    with fq.fusion(queue) as fusion:
        queue.submit(scaled, size, a, np.float32(2), out)
    pending = fusion._list
    assert pending is not None and pending.run is not None
    (own,) = pending.run.launches
    assert isinstance(own, launch.CudaLaunch)
    return own, own.copy({"a": 0, "out": 1})


LARGE = 1 << 20


@pytest.fixture
def copy(gpu_queue: fq.FusionQueue) -> launch.CudaLaunch:
    _, found = moved(gpu_queue, LARGE)
    return found


def test_alignment_is_asked_again_where_arrays_move(
    copy: launch.CudaLaunch, driver: FakeDriver
) -> None:
    start = 1 << 24

    def launched(*addresses: int) -> Launched:
        copy.move(addresses)
        copy.launch()
        assert set(addresses) <= set(driver.launched[-1].arguments)
        return driver.launched[-1]

    wide = launched(start, 2 * start)
    narrow = launched(start + 4, 2 * start)
    assert wide.entry_point != narrow.entry_point
    assert wide.blocks[0] < narrow.blocks[0]
    for first, second, is_wide in (
        (start, 2 * start + 4, False), (start + 16, 2 * start, True), (start + 8, 3 * start, False),
        (start, start, True),
    ):  # fmt: skip
        again = launched(first, second)
        assert again[:2] == (wide if is_wide else narrow)[:2]


def test_what_was_narrow_at_first_may_become_wide(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    a, out = new(LARGE, 1), new(LARGE)
    with fq.fusion(gpu_queue) as fusion:
        gpu_queue.submit(scaled, LARGE, a, np.float32(2), out)
    pending = fusion._list
    assert pending is not None and pending.run is not None
    narrow = driver.launched[-1]
    (own,) = pending.run.launches
    assert isinstance(own, launch.CudaLaunch)
    copy = own.copy({"a": 0, "out": 1})
    copy.move([1 << 24, 1 << 25])
    copy.launch()
    assert driver.launched[-1].blocks[0] < narrow.blocks[0]
    own.launch()
    assert driver.launched[-1] == narrow


def test_a_graph_has_the_arguments_of_now(copy: launch.CudaLaunch, driver: FakeDriver) -> None:
    """After so many launches as they are, one is a graph, whose node has to be told."""
    for place in (1 << 24, (1 << 25) + 4, 1 << 26):
        copy.move([place, 3 * place])
        for _ in range(launch.REPEATED + 3):
            copy.launch()
            assert {place, 3 * place} <= set(driver.launched[-1].arguments)
        assert copy.again() is not None
        assert driver.calls["cuGraphCreate"] == 1
    copy.move([1 << 24, 1 << 25])
    assert copy.again() is None


def test_a_launch_is_no_graph_while_the_host_is_ahead(
    copy: launch.CudaLaunch, driver: FakeDriver
) -> None:
    """Its blocks may be there before the launch before it has ended, where a graph's are not."""
    assert copy._overlaps, "on this architecture"
    copy.move([1 << 24, 1 << 25])

    def launched(times: int) -> int:
        for _ in range(times):
            copy.launch()
        return driver.calls.get("cuGraphCreate", 0)

    driver.is_busy = True
    assert launched(3 * launch.REPEATED) == 0
    assert driver.calls["cuStreamQuery"] == 3
    driver.is_busy = False
    assert launched(launch.REPEATED - 1) == 0 and launched(1) == 1
    copy.move([1 << 26, 1 << 27])
    driver.is_busy = True
    assert copy.again() is None
    launched(launch.REPEATED)
    assert copy.again() is not None, "whom it costs more to launch it in another way"


def test_launches_that_are_one_graph_are_told(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    backend = gpu_queue._state.launcher.backend
    copies = [moved(gpu_queue, size)[1] for size in (LARGE, 1000)]
    for copy in copies:
        copy.move([1 << 24, 1 << 25])
    one = backend.repeated(copies)
    assert one is not None
    check: Callable[[int], set[int]] = lambda k: set(driver.launched[k].arguments)  # noqa: E731
    one.launch()
    assert {1 << 24, 1 << 25} <= check(-1) and {1 << 24, 1 << 25} <= check(-2)
    copies[0].move([1 << 26, (1 << 27) + 4])
    one.launch()
    assert {1 << 24, 1 << 25} <= check(-1) and {1 << 26, (1 << 27) + 4} <= check(-2)


def test_a_copy_leaves_its_origin_alone(gpu_queue: fq.FusionQueue, driver: FakeDriver) -> None:
    own, copy = moved(gpu_queue, 1000)
    own.launch()
    before = driver.launched[-1]
    copy.move([1 << 24, 1 << 25])
    copy.set_scalar("factor", np.float32(3))
    copy.launch()
    own.launch()
    first, last = (one.arguments for one in driver.launched[-2:])
    assert last == before.arguments and {1 << 24, 1 << 25} <= set(first)
    own.set_scalar("factor", np.float32(5))
    copy.launch()
    assert driver.launched[-1].arguments == first


def test_garbage_in_cycles_is_freed_or_kept_not_both(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    class Node:
        pass

    backend = gpu_queue._state.launcher.backend
    for nbytes in (1000, 1 << 21) * 3:
        node: Any = Node()
        node.itself, node.memory = node, backend.allocate(nbytes)
        del node
        gc.collect()
    held = [backend.allocate(nbytes) for nbytes in (1000, 1000, 1 << 21)]
    assert len({memory.address for memory in held}) == 3
    assert all(memory.address in driver.memory for memory in held)
    backend.trim()
    assert all(memory.address in driver.memory for memory in held)
    count = len(driver.memory)
    del held
    backend.trim()
    assert len(driver.memory) == count - 3


def test_memory_that_is_kept_goes_back_where_there_is_not_enough(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    backend = gpu_queue._state.launcher.backend
    backend.allocate(1000)
    kept = len(driver.memory)
    driver.most_bytes = sum(len(memory) for memory in driver.memory.values()) + 100
    with pytest.raises(fq.DeviceError, match="cannot allocate"):
        backend.allocate(1 << 22)
    assert len(driver.memory) < kept
    driver.most_bytes = None
    assert backend.allocate(1 << 22).nbytes == 1 << 22


def test_new_memory_is_filled_in_the_order_of_launches(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    gpu_queue.wait()
    driver.is_busy = True  # whoever waits for the queue does so for ever
    before = driver.calls.get("cuStreamQuery", 0)
    for _ in range(3):
        a, out = fq.Buffer(np.ones(1000, np.float32)), fq.Buffer(1000, np.float32)
        gpu_queue.submit(scaled, 1000, a, np.float32(2), out)
        for buffer, value in ((a, 1), (out, 0)):
            event = buffer._storage.last_event
            assert event is not None
            place = (ctypes.c_float * 1000).from_address(address(buffer))
            assert set(place) == {value}
        driver.is_busy = False
        assert a.numpy()[0] == 1
        driver.is_busy = True
    assert driver.calls["cuStreamQuery"] >= before


def test_memory_that_others_see_is_copied_at_once(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    a, out = fq.Buffer(np.ones(1000, np.float32)), fq.Buffer(1000, np.float32)
    shared = a.numpy()
    moves = type(a._storage).moves
    gpu_queue.submit(scaled, 1000, a, np.float32(2), out)
    stream = gpu_queue._state.launcher.backend._stream  # type: ignore[attr-defined]  # a CudaBackend
    assert not stream._kept
    assert type(a._storage).moves == moves  # nobody knew where it was
    shared[:] = 5
    assert a.numpy()[0] == 1


def test_temporaries_that_die_are_not_waited_for(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    """Whoever comes next on their queue has their memory; others have not, before it has run."""
    backend = gpu_queue._state.launcher.backend
    with fq.FusionQueue("cuda") as other:
        other_backend = other._state.launcher.backend
        backend.trim(), other_backend.trim()
        for size in (1000, 1 << 19):
            driver.is_busy = True
            places = []
            for _ in range(4):
                a, out = fq.Buffer(size, np.float32), fq.Buffer(size, np.float32)
                gpu_queue.submit(scaled, size, a, np.float32(2), out)
                places.append({address(a), address(out)})
                asked = driver.calls.get("cuStreamQuery", 0)
                del a, out
                gc.collect()
                assert driver.calls.get("cuStreamQuery", 0) == asked
            if size == 1000:
                assert places[1] == places[0]
                for memory in (other_backend.filled(4000)[0], backend.allocate(4000)):
                    assert memory.address not in places[0]
                    assert memory.address in driver.memory
            else:
                stream = gpu_queue._state.launcher.backend.native
                assert (max(places[0]), int(stream)) in driver.freed
            driver.is_busy = False
            gpu_queue.wait()


def test_memory_goes_back_with_its_queue(driver: FakeDriver) -> None:
    with fq.FusionQueue("cuda") as queue:
        driver.is_busy = True
        a, out = fq.Buffer(1000, np.float32), fq.Buffer(1000, np.float32)
        queue.submit(scaled, 1000, a, np.float32(2), out)
        place, stream = address(a), int(queue._state.launcher.backend.native)
        del a, out
        driver.is_busy = False
    del queue
    gc.collect()
    assert (place, stream) in driver.freed


def test_temporaries_whose_launch_has_run_are_anybody_s(
    gpu_queue: fq.FusionQueue, driver: FakeDriver
) -> None:
    backend = gpu_queue._state.launcher.backend
    backend.trim()
    a, out = fq.Buffer(1000, np.float32), fq.Buffer(1000, np.float32)
    gpu_queue.submit(scaled, 1000, a, np.float32(2), out)
    gpu_queue.wait()
    places = {address(a), address(out)}
    del a, out
    assert backend.allocate(4000).address in places
