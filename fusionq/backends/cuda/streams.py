"""Streams: a queue's own, or one of another library."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any

from fusionq.backends.cuda.allocation import FreedInOrder
from fusionq.backends.cuda.devices import Device, device
from fusionq.backends.cuda.faults import faults_named
from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.backends.interruptible import tell_running
from fusionq.base.errors import ArgumentError, DeviceError

POLLED_SECONDS = 200e-6
"""For which a wait asks without a pause."""
SLEPT = 0.02
"""Of the time waited so far, a pause; so a wait is at most that much too long."""
LONGEST_SLEEP = 0.01
"""Seconds."""
MOST_KEPT = 256
"""Launches that read on the host, and may not have run."""
_REMEMBERED = 64
"""Kernels in flight that an error names, at most."""


class Stream:
    """A CUDA stream with the names of the kernels that may still be running on it.

    ``handle`` is another library's stream, which ``owner`` keeps alive; without one the stream is
    new, and waits for no other.
    """

    def __init__(self, device: Device, handle: int | None = None, owner: object = None) -> None:
        self.device = device
        self._owner = owner
        self.is_own = handle is None
        """Whether nobody else launches on it."""
        self.submitted = 0
        """Launches so far."""
        self.completed = 0
        """Of these, those that have run for certain."""
        self.names: deque[str] = deque(maxlen=_REMEMBERED)
        """Of the kernels that may still be running."""
        self._repeated = ""
        """Of those that are launched again, which do not take note of it each time."""
        self._kept: deque[tuple[int, object]] = deque()
        """What launches up to a number read on the host."""
        self.forms: dict[Hashable, object] = {}
        """What ``launch_form`` knows of launches here."""
        driver = load_driver()
        device.make_current()
        if handle is None:
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            with faults_named(device, "making a stream"):
                self.native = checked("a stream", driver.cuStreamCreate(flags))
        else:
            self.native = driver.CUstream(handle)
        self.handle = _handle_of(int(self.native))
        """CUDA's number of it."""
        self.freed = FreedInOrder(device, self.native)
        """Memory whose last users were launched here."""
        device.streams.add(self)

    def launched(self, kernel: str) -> int:
        """Take note of a launch; its number."""
        if not self.names:
            self._name_repeated()
        self.names.append(kernel)
        self.submitted += 1
        return self.submitted

    def keep(self, number: int, what: object) -> None:
        """Keep what the launch of that ``number`` reads on the host, until it has run."""
        kept = self._kept
        while kept and kept[0][0] <= self.completed:
            kept.popleft()
        kept.append((number, what))

    def let_keep(self) -> None:
        """Wait where nobody has waited for very many such launches."""
        if len(self._kept) >= MOST_KEPT:
            self.wait()

    def repeats(self, kernel: str) -> None:
        """Launches of ``kernel`` follow that are counted in ``submitted``, and nothing else."""
        self._name_repeated()
        self.names.append(kernel)
        self._repeated = kernel

    def _name_repeated(self) -> None:
        if not self.names and self.completed < self.submitted:
            self.names.append(self._repeated)

    def wait(self) -> None:
        """Block until all that was launched has run; DeviceError, which names the kernels, if one
        of them failed.  Ctrl-C ends the wait, and the KeyboardInterrupt says what is still
        running."""
        submitted, device = self.submitted, self.device
        device.make_current()
        driver = load_driver()
        status, captured = driver.cuStreamIsCapturing(self.native)
        if not (status or captured or device.lost is not None):
            try:
                status = self._poll(driver)
            except KeyboardInterrupt as interrupt:
                tell_running(interrupt, device.name, self.in_flight())
                raise
        if status or captured or device.lost is not None:  # else nothing has an error to name
            with self.errors_named("waiting for the GPU"):
                checked("the GPU's work failed", (status,))
                raise DeviceError("a stream that is being captured cannot be waited for")
        self._done(submitted)

    def _poll(self, driver: Any) -> Any:
        """Ask in turns whether all has run; the driver's status when it has, or has failed.  The
        driver's own wait keeps all Python threads from running, and signals' handlers."""
        not_ready = driver.CUresult.CUDA_ERROR_NOT_READY
        start = time.perf_counter()
        while (status := driver.cuStreamQuery(self.native)[0]) == not_ready:
            waited = time.perf_counter() - start
            if waited > POLLED_SECONDS:
                time.sleep(min(waited * SLEPT, LONGEST_SLEEP))
        return status

    @property
    def is_captured(self) -> bool:
        """Whether somebody records what is launched instead of running it."""
        driver = load_driver()
        status = checked("a stream's capture", driver.cuStreamIsCapturing(self.native))
        return bool(status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)

    @property
    def is_idle(self) -> bool:
        """Whether all that was launched has run; not while somebody records it."""
        submitted = self.submitted
        self.device.make_current()
        driver = load_driver()
        if self.is_captured:  # a question would end that
            return False
        (status,) = driver.cuStreamQuery(self.native)
        if status == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        with self.errors_named("asking the GPU"):
            checked("the GPU's work failed", (status,))
        self._done(submitted)
        return True

    def wait_for(self, other: Stream | StreamWork) -> None:
        """Let what is launched here from now on run after what is launched there so far."""
        if self.handle == other.handle:
            return
        self.device.make_current()
        with self.errors_named("ordering two streams"):
            if isinstance(other, StreamWork):
                other.order_before(self.handle)
            else:
                StreamWork(other.device, other.handle).order_before(self.handle)

    def _done(self, number: int) -> None:
        if number > self.completed:
            self.completed = number
        if self.completed == self.submitted:
            self.names.clear()
            self._kept.clear()

    def in_flight(self) -> list[str]:
        """The kernels that may still be running."""
        self._name_repeated()
        return list(self.names)

    def errors_named(self, doing: str) -> AbstractContextManager[None]:
        """``faults_named`` on the stream's GPU."""
        return faults_named(self.device, doing)

    def __del__(self) -> None:
        if hasattr(self, "freed"):
            self.freed.clear()
        if self.is_own and hasattr(self, "native"):
            try:
                self.device.make_current()
                load_driver().cuStreamDestroy(self.native)
            except Exception:  # at the end of the process the driver, or this module, may be gone
                return


class StreamWork:
    """What another library has given to a stream: so far when somebody waits for it, or, once it
    is ``marked``, so far when that was done."""

    __slots__ = ("_mark", "device", "handle")

    native = None

    def __init__(self, device: Device, handle: int) -> None:
        self.device = device
        self.handle = _handle_of(handle)
        self._mark: Any = None

    def marked(self) -> StreamWork:
        """The same work, without what follows on the stream, which may end before this."""
        driver = load_driver()
        work = StreamWork(self.device, self.handle)
        work._mark = self._recorded(driver)
        return work

    def order_before(self, handle: int) -> None:
        """Let what a stream is given from now on run after this."""
        driver = load_driver()
        event = self._recorded(driver) if self._mark is None else self._mark
        checked("its wait", driver.cuStreamWaitEvent(driver.CUstream(handle), event, 0))
        if self._mark is None:
            checked("its end", driver.cuEventDestroy(event))  # once it is done

    def wait(self) -> None:
        """Block until the work has run."""
        driver = load_driver()
        self.device.make_current()
        if self._mark is not None:
            checked("a stream's work failed", driver.cuEventSynchronize(self._mark))
        else:
            stream = driver.CUstream(self.handle)
            checked("a stream's work failed", driver.cuStreamSynchronize(stream))

    @property
    def complete(self) -> bool:
        """Whether the work has run."""
        driver = load_driver()
        self.device.make_current()
        if self._mark is not None:
            (status,) = driver.cuEventQuery(self._mark)
        else:
            (status,) = driver.cuStreamQuery(driver.CUstream(self.handle))
        if status == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        checked("a stream's work failed", (status,))
        return True

    def times(self) -> None:
        """Not recorded."""

    def _recorded(self, driver: Any) -> Any:
        self.device.make_current()
        flags = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        event = checked("an event", driver.cuEventCreate(flags))
        checked("its record", driver.cuEventRecord(event, driver.CUstream(self.handle)))
        return event

    def __del__(self) -> None:
        if self._mark is not None:
            try:
                self.device.make_current()
                load_driver().cuEventDestroy(self._mark)
            except Exception:  # at the end of the process the driver, or this module, may be gone
                return


def _handle_of(native: int) -> int:
    """A stream's handle: the default one has two, 0 and CU_STREAM_LEGACY."""
    return native or 1


def is_stream(target: object) -> bool:
    """Whether ``target`` is a stream: of cuda.core, CuPy, PyTorch, or whatever has
    ``__cuda_stream__``."""
    return _handle(target) is not None


def stream_of(target: object) -> Stream:
    """The stream for a queue's target: None (GPU 0), the number of a GPU as text, or a stream."""
    if target is None or isinstance(target, str):
        return Stream(device(ordinal_of(target)))
    handle = _handle(target)
    if handle is None:
        raise ArgumentError(
            "a queue on a GPU is made of 'cuda', 'cuda:1', or a stream that has __cuda_stream__, "
            f"not {type(target).__name__}: {target!r}"
        )
    driver = load_driver()
    context = checked("the stream's context", driver.cuStreamGetCtx(driver.CUstream(handle)))
    checked("the stream's context", driver.cuCtxSetCurrent(context))
    ordinal = int(checked("the stream's GPU", driver.cuCtxGetDevice()))
    return Stream(device(ordinal), handle, target)


def ordinal_of(text: str | None) -> int:
    """The number of a GPU, as text; 0 for None."""
    if text is None:
        return 0
    if not text.isdecimal():
        raise DeviceError(f"GPUs are named by their numbers, 'cuda:0', not 'cuda:{text}'")
    return int(text)


def _handle(target: object) -> int | None:
    protocol = getattr(target, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    library = type(target).__module__.partition(".")[0]
    name = {"torch": "cuda_stream", "cupy": "ptr"}.get(library)
    handle = getattr(target, name, None) if name is not None else None
    return handle if isinstance(handle, int) else None
