"""Nothing submitted is lost: queues, buffers and programs that end while a list waits."""

from __future__ import annotations

import copy as copying
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
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
ANOTHER = """
import warnings
other = fq.FusionQueue({target!r})
other.start_fusion()
other.submit(put, 4, 8.0, fq.Buffer(4, np.float32))
warnings.simplefilter("error", fq.FusionAborted)
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


@pytest.mark.one_backend
def test_a_program_that_ends_in_fusion_mode_runs_its_list(target, tmp_path):
    """So do the lists of all other queues."""
    script = tmp_path / "ends.py"
    target = None if target == "sycl" else target
    script.write_text(AT_THE_END.format(target=target) + ANOTHER.format(target=target))
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7.0", "False"]
    assert done.stderr.count("FusionAborted: ") == 2
    assert "ends.py:16" in done.stderr and "ends.py:21" in done.stderr
    assert done.stderr.count("the program ended in fusion mode") == 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.one_backend
def test_nothing_is_in_flight_when_the_interpreter_clears_modules(target, tmp_path):
    """Finalizers cannot wait then: the modules' names are gone."""
    script = tmp_path / "runs.py"
    text = AT_THE_END.format(target=None if target == "sycl" else target)
    text = text.replace("queue.start_fusion()", "").replace("4, 7.0, out", "4, 7.0, result")
    text = text.replace("queue.is_in_fusion_mode()", "len(queue._state.launcher._in_flight)")
    script.write_text(text)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7.0", "0"]
    assert not done.stderr


KEEPS = """
import numpy as np
import fusionq as fq

@fq.kernel
def put(item, value, out):
    out[item.get_id(0)] = value

queue = fq.FusionQueue({target!r})
out = fq.Buffer(4, np.float32)
queue.submit(put, 4, 7.0, out)
import numba
twice = numba.njit(lambda x: 2 * x)
twice(1.0)
"""


@pytest.mark.slow
@pytest.mark.one_backend
def test_finalizers_behind_the_names_of_modules_are_silent(target, tmp_path):
    """numba keeps the program's module, whose Buffers die when fusionq's modules are empty."""
    pytest.importorskip("numba")
    script = tmp_path / "keeps.py"
    script.write_text(KEEPS.format(target=None if target == "sycl" else target))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert not done.stderr


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


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_buffer_that_dies_with_the_interpreter_says_nothing(monkeypatch):
    """What the event imports to see how the launch ended is gone by then."""
    raised, waited = [], []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)

    class LateEvent:
        complete = False

        def wait(self):
            waited.append(self)
            raise ImportError("sys.meta_path is None, Python is likely shutting down")

    for ends in (False, True):
        out = empty()
        out.numpy()
        out._ownership.storage.last_event = LateEvent()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "is_finalizing", lambda ends=ends: ends)
            del out
            gc.collect()
    assert len(waited) == 2 and [type(u.exc_value) for u in raised] == [ImportError]


# ------------------------------------------------------------- warnings that are errors
@pytest.mark.filterwarnings("error")
def test_finalizers_raise_no_warning_that_is_an_error(target, capsys, monkeypatch):
    """Nobody's call is at fault: the warning is printed, and the list has run."""
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    out, array = empty(), np.zeros(8, np.float32)

    def drop():
        queue = fq.FusionQueue(target)
        queue.start_fusion()
        queue.submit(put, 8, 4.0, out)

    drop()
    gc.collect()
    assert (out.numpy() == 4).all()
    with fq.FusionQueue(target) as queue:
        queue.start_fusion()
        queue.submit(put, 8, 5.0, fq.Buffer(array, copy=False))
        gc.collect()
        assert (array == 5).all()
        queue.cancel_fusion()
    told = capsys.readouterr().err
    assert told.count("FusionAborted: ") == 2 and not raised
    assert f"{__file__}:" in told and "went out of scope" in told


@pytest.mark.filterwarnings("error")
def test_the_list_has_run_where_the_warning_is_an_error(queue, monkeypatch):
    out = empty()
    queue.start_fusion()
    queue.submit(put, 8, 6.0, out)
    with pytest.raises(fq.FusionAborted, match=r"Buffer\.numpy"):
        out.numpy()
    assert (out.numpy() == 6).all() and not queue.is_in_fusion_mode()
    with pytest.raises(fq.FusionAborted, match="nothing was submitted"), fq.fusion(queue) as f:
        pass
    f.event.wait()
    backend = type(queue._state.launcher.backend)
    build = backend.build

    def broken(self, kernel, fp):
        if kernel.name.startswith("fused"):
            raise fq.DeviceError("no such instruction")
        return build(self, kernel, fp)

    monkeypatch.setattr(backend, "build", broken)
    seven = 7.0
    with pytest.raises(fq.FusionAborted, match="no such instruction"), fq.fusion(queue):
        queue.submit(_unlike_others, 8, seven, out)
        queue.submit(increment, 8, out)
    assert (out.numpy() == 9).all()


@fq.kernel
def _unlike_others(item, value, out):
    out[item.get_id(0)] = value + 1


# -------------------------------------------------------------- errors of what ended by itself
@pytest.mark.parametrize("end", ["close", "drop"])
def test_the_warning_tells_what_could_not_be_run(target, end):
    """Nobody waits for these lists, who could be told otherwise."""
    out, enormous = empty(), fq.Buffer((HUGE,), np.uint8)

    def submit():
        queue = fq.FusionQueue(target)
        queue.start_fusion()
        queue.submit(put, 8, 2.0, out)
        queue.submit(_from_bytes, 8, enormous, empty())
        if end == "close":
            queue.close()

    with pytest.warns(fq.FusionAborted, match=r"Not all of it could be run: .*enormous"):
        submit()
        gc.collect()
    assert (out.numpy() == 2).all()


def test_errors_of_allocation_name_the_buffer_and_the_line(queue):
    enormous, out = fq.Buffer((HUGE,), np.uint8), empty()
    for use in (
        enormous.numpy, lambda: np.asarray(enormous), lambda: enormous.__dlpack__(),
        lambda: copying.copy(enormous), lambda: fq.Buffer(enormous),
        lambda: queue.memcpy(enormous, enormous), lambda: queue.fill(enormous, 1),
        lambda: queue.host_task(print, enormous),
    ):  # fmt: skip
        with pytest.raises(fq.DeviceError, match=rf"\({HUGE},\), uint8") as caught:
            use()
        assert str(caught.value).startswith(f"{__file__}:")
    with pytest.raises(fq.DeviceError, match=r"argument 'a' \(enormous\) of kernel") as caught:
        queue.submit(_from_bytes, 8, enormous, out)
    assert str(caught.value).startswith(f"{__file__}:")


def test_memory_keeps_nothing_of_the_queues_that_have_used_it(target):
    a, b = floats(), empty()
    kept = []
    for _ in range(3):
        with fq.FusionQueue(target) as queue:
            for _ in range(2):
                with fq.fusion(queue):
                    queue.submit(copy, 8, a, b)
                    queue.submit(copy, 8, b, a)
            queue.wait()
            kept.append(weakref.ref(queue._state.launcher.cache.stale))
        del queue
    gc.collect()
    assert [known() for known in kept] == [None] * 3


@pytest.mark.slow
# ------------------------------------------------------------------------------ processes
def test_a_forked_process_has_memory_of_its_own():
    if not hasattr(os, "fork"):
        pytest.skip("no fork")
    code = (
        "import os, numpy as np, fusionq as fq\n"
        "from tests.unit.runtime.kernels import put\n"
        "queue, out = fq.FusionQueue('reference'), fq.Buffer(8, np.float32)\n"
        "queue.submit(put, 8, 1.0, out)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    queue.submit(put, 8, 2.0, out)\n"
        "    assert (out.numpy() == 2).all()\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "print(out.numpy()[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "1.0\n", done.stderr


# -------------------------------------------------------------------------- other copies
def test_ranges_and_kernels_copy_and_pickle(queue):
    for value in (fq.Range(2, 3), fq.NdRange((4, 6), (2, 3)), increment):
        for again in (copying.copy, copying.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
            assert again(value) == value
    with fq.fusion(queue) as f:
        queue.submit(put, 8, 1.0, empty())
    assert str(copying.deepcopy(f.report)) == str(f.report)

    @fq.kernel
    def inner(item, out):
        out[item.get_id(0)] = 1.0

    with pytest.raises((pickle.PicklingError, AttributeError), match="inner"):
        pickle.dumps(inner)
