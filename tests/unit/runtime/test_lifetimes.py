"""Nothing submitted is lost: queues, buffers and programs that end while a list waits."""

from __future__ import annotations

import copy as copying
import gc
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.memory.fusing_queues import NOTED, QUEUES
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment, put

AT_THE_END = """
import atexit
import numpy as np

result = np.zeros(4, np.float32)
atexit.register(lambda: print(result[0], queue.is_in_fusion_mode()))  # runs after fusionq's own
import fusionq as fq

@fq.kernel
def put(item, value, out):
    out[item.get_id(0)] = value

out = fq.Buffer(result, copy=False)
queue = fq.FusionQueue({target!r})
queue.start_fusion()
queue.submit(put, 4, 7.0, out)
"""


# ------------------------------------------------------------------------------- queues
def test_a_queue_that_goes_out_of_scope_runs_its_list(target):
    a, out = floats(), empty()

    def submit():
        queue = fq.FusionQueue(target)
        queue.start_fusion()
        queue.submit(copy, 8, a, out)
        return queue.submit(increment, 8, out)

    with pytest.warns(fq.FusionAborted, match="went out of scope"):
        event = submit()
        gc.collect()
    event.wait()
    assert (out.numpy() == a.numpy() + 1).all()
    assert not QUEUES and not NOTED


def test_a_queue_that_was_idle_says_nothing(target):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        queue = fq.FusionQueue(target)
        queue.submit(put, 8, 1.0, empty())
        queue.start_fusion()
        queue.cancel_fusion()
        del queue
        gc.collect()
    assert not QUEUES and not NOTED


def test_the_block_keeps_its_queue(target):
    out = empty()

    def queue_of():
        return fq.FusionQueue(target)

    queue = queue_of()
    with fq.fusion(queue) as f:
        queue.submit(put, 8, 3.0, out)
        del queue
        gc.collect()
    f.event.wait()
    assert (out.numpy() == 3).all()
    f.replay().wait()


def test_a_program_that_ends_in_fusion_mode_runs_its_list(target, tmp_path):
    script = tmp_path / "ends.py"
    script.write_text(AT_THE_END.format(target=None if target == "sycl" else target))
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7.0", "False"]
    assert "FusionAborted" in done.stderr and "ends.py:16" in done.stderr
    assert "the program ended in fusion mode" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_thread_lets_go_of_the_last_reference(target):
    out = empty()
    queue = fq.FusionQueue(target)
    queue.start_fusion()
    queue.submit(put, 8, 5.0, out)
    held = [queue]
    del queue
    caught = []

    def let_go():
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            held.clear()
            gc.collect()
            caught.extend(found)

    thread = threading.Thread(target=let_go)
    thread.start()
    thread.join()
    assert [w.category for w in caught] == [fq.FusionAborted]
    assert (out.numpy() == 5).all()


# ------------------------------------------------------------------------------ buffers
def test_a_buffer_made_inline_goes_on(queue):
    out = empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fq.fusion(queue) as f:
            queue.submit(add, 8, fq.Buffer(np.ones(8, np.float32)), floats(8, 10.0), out)
            queue.submit(increment, 8, out)
    assert (out.numpy() == np.arange(10, 18) + 2).all()
    assert f.report.strategy == "fused"


def test_a_temporary_of_a_function_is_replayed(queue):
    out = empty()

    def block():
        a, tmp = floats(), empty(promote_private=True)
        with fq.fusion(queue) as f:
            queue.submit(copy, 8, a, tmp)
            queue.submit(add, 8, tmp, a, out)
        return f

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = block()
        gc.collect()
        assert (out.numpy() == 2 * np.arange(1, 9)).all()
        out.write(np.zeros(8, np.float32))
        f.replay().wait()
    assert (out.numpy() == 2 * np.arange(1, 9)).all()


def test_a_list_that_ended_by_itself_is_replayed(queue):
    out = empty()
    with pytest.warns(fq.FusionAborted), fq.fusion(queue) as f:
        queue.submit(put, 8, 1.0, fq.Buffer(8, np.float32))
        queue.submit(put, 8, 2.0, out)
        queue.wait()
    out.write(np.zeros(8, np.float32))
    f.replay().wait()
    assert (out.numpy() == 2).all()


def test_memory_of_others_ends_fusion_mode(queue):
    array = np.zeros(8, np.float32)
    buffer = fq.Buffer(array, copy=False)
    queue.start_fusion()
    queue.submit(put, 8, 4.0, buffer)
    with pytest.warns(fq.FusionAborted, match="around another object's memory"):
        del buffer
        gc.collect()
    queue.wait()
    assert (array == 4).all()
    queue.complete_fusion()


@pytest.mark.parametrize("threads", [1, 3])
def test_the_collector_at_any_point_of_any_call(target, threads):
    """Buffers in circles die whenever the collector runs, which is nearly always."""
    before = gc.get_threshold()
    failures: list[BaseException] = []

    def work():
        try:
            queue = fq.FusionQueue(target)
            for round_ in range(12):
                _in_a_circle(fq.Buffer(np.ones(8, np.float32), copy=False))
                out, other = empty(), floats()
                with fq.fusion(queue) as f:
                    queue.submit(copy, 8, _in_a_circle(floats()), out)
                    queue.submit(put, 8, float(round_), _in_a_circle(empty()))
                    queue.submit(add, 8, out, other, _in_a_circle(empty()))
                    queue.submit(increment, 8, out)
                assert (out.numpy() == np.arange(1, 9) + 1).all()
                other.write(np.zeros(8, np.float32))
                queue.memcpy(other, out)
                queue.fill(out, 0.0)
                f.replay().wait()
                assert (out.numpy() == np.arange(1, 9) + 1).all()
                assert (other.numpy() == np.arange(1, 9) + 1).all()
                queue.host_task(lambda x: None, out)
            queue.close()
        except BaseException as error:
            failures.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fq.FusionAborted)
        try:
            for threshold in (1, 7, 50):
                gc.set_threshold(threshold, 2, 2)
                workers = [threading.Thread(target=work) for _ in range(threads)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
        finally:
            gc.set_threshold(*before)
    assert not failures, failures[0]
    assert not QUEUES


def _in_a_circle(buffer):
    """``buffer``, which only the collector can free."""
    circle = [buffer]
    circle.append(circle)
    return buffer


# -------------------------------------------------------------------------- no memory
HUGE = 1 << 50


@pytest.mark.parametrize("strategy", ["auto", "unfused"])
def test_what_needs_no_memory_that_is_not_there_runs(queue, strategy):
    out, other, after = empty(), empty(), empty()
    enormous = fq.Buffer((HUGE,), np.uint8)
    with pytest.raises(fq.DeviceError, match="enormous"), fq.fusion(queue, strategy=strategy) as f:
        first = queue.submit(put, 8, 1.0, out)
        broken = queue.submit(_from_bytes, 8, enormous, other)
        uses_it = queue.submit(copy, 8, other, after)
        last = queue.submit(increment, 8, out)
    first.wait()
    last.wait()
    assert (out.numpy() == 2).all()
    with pytest.raises(fq.DeviceError, match="enormous"):
        broken.wait()
    with pytest.raises(fq.DeviceError, match="was not run, since it uses"):
        uses_it.wait()
    with pytest.raises(fq.DeviceError, match="enormous"):
        f.event.wait()
    assert "enormous" in f.report.fallback
    assert (after.numpy() == 0).all()


@fq.kernel
def _from_bytes(item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


# ------------------------------------------------------------------------------- copies
@pytest.mark.parametrize(
    "again", [copying.copy, copying.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_buffers(queue, again):
    a = fq.Buffer(np.arange(12, dtype=np.int32).reshape(3, 4), promote_local=True)
    queue.submit(_double, a.shape, a)
    view = a[::2, ::-1]
    for buffer in (a, view):
        other = again(buffer)
        assert other.shape == buffer.shape and other.dtype == buffer.dtype
        assert (other.numpy() == buffer.numpy()).all()
        other.write(np.zeros(other.shape, np.int32))
        assert buffer.numpy().any()
        with pytest.raises(fq.PromotionConflict):
            fq.access(other, "private")


@fq.kernel
def _double(item, a):
    i, j = item.get_id(0), item.get_id(1)
    a[i, j] = a[i, j] * 2


@pytest.mark.parametrize("again", [copying.copy, copying.deepcopy, pickle.dumps])
def test_what_cannot_be_copied(queue, again):
    with fq.fusion(queue) as f:
        event = queue.submit(put, 8, 1.0, empty())
    for value in (queue, f, event, f.event):
        with pytest.raises(fq.ArgumentError, match=r"cannot be copied or pickled") as caught:
            again(value)
        assert Path(__file__).name in str(caught.value)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_finalizers_of_what_was_never_finished():
    for cls in (fq.FusionQueue, fq.Buffer, fq.Fusion, fq.Event):
        object.__new__(cls)
    with pytest.raises(fq.DeviceError):
        fq.FusionQueue("no such device")
    with pytest.raises(fq.ArgumentError):
        fq.Buffer(-1, np.float32)
    gc.collect()
