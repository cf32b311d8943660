"""Waits that Ctrl-C ends at once.

A runtime's blocking calls take no notice of signals, and Python handles signals in its main thread
only.  So there another thread makes the call, and the main thread waits for that one, which can be
interrupted.  The call goes on: a thread that was left alone serves again when it has returned.
Asking in turns whether the work is done would be simpler, but Intel's CPU runtime lets the thread
that waits compute: without one, two cores do half of the work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from fusionq.backends.base import DeviceEvent
from fusionq.backends.processors import KeptApart
from fusionq.backends.wrapped_event import WrappedEvent
from fusionq.base.call_site import warn
from fusionq.base.config import keeps_apart

SIGNAL_SECONDS = 0.2
"""After which a thread that waits looks whether a signal has come: one that comes in the moment
before it sleeps does not wake it."""


class _Call:
    """A call that some thread makes; ``returned`` is held until it has."""

    __slots__ = ("block", "error", "returned")

    def __init__(self, block: Callable[[], object]) -> None:
        self.block = block
        self.error: BaseException | None = None
        self.returned = threading.Lock()
        self.returned.acquire()

    def wait(self) -> None:
        """Block until the call has returned."""
        while not self.returned.acquire(timeout=SIGNAL_SECONDS):
            pass


class _Waiter:
    """A thread that makes calls, one after the other."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call] = SimpleQueue()
        self._apart = KeptApart() if keeps_apart() else None
        threading.Thread(target=self._serve, name="fusionq waits", daemon=True).start()

    def _serve(self) -> None:
        apart = self._apart
        while True:
            call = self.calls.get()
            try:
                if apart is not None:
                    apart.begin()
                call.block()
            except BaseException as error:
                call.error = error
            _idle.append(self)
            _calls.discard(call)
            call.returned.release()
            del call


_interrupted = False
"""Whether Ctrl-C has ended a wait in this process."""
_idle: list[_Waiter] = []
"""Those that wait for a call."""
_calls: set[_Call] = set()
"""Those that have not returned."""
if hasattr(os, "register_at_fork"):  # threads do not go along
    os.register_at_fork(after_in_child=_idle.clear)
    os.register_at_fork(after_in_child=_calls.clear)


def wait_interruptibly(block: Callable[[], object]) -> None:
    """Make a call that blocks; in the main thread a signal's handler may raise meanwhile, and the
    call goes on in its thread.  Raises what the call raises."""
    if threading.current_thread() is not threading.main_thread():
        block()
        return
    call = in_background(block)
    if call is None:
        block()
        return
    call.wait()
    if call.error is not None:
        raise call.error


def in_background(block: Callable[[], object]) -> _Call | None:
    """Let another thread make a call that blocks; None where the interpreter, which is about to
    end, takes no more threads."""
    try:
        waiter = _idle.pop()
    except IndexError:
        try:
            waiter = _Waiter()
        except RuntimeError:
            return None
    call = _Call(block)
    _calls.add(call)
    waiter.calls.put(call)
    return call


def wait_for_the_rest() -> None:
    """Block until all calls that somebody has left alone have returned; for the program's end."""
    for call in tuple(_calls):
        call.wait()


def keep_until_run(event: DeviceEvent, *kept: object) -> None:
    """For finalizers of what a launch uses: block until it has run.  Where Ctrl-C has ended a wait
    in this process, it shall not wait here again: then another thread keeps ``kept`` until then.
    How it has ended is for those who wait for it."""
    while isinstance(event, WrappedEvent):
        event = event.inner
    if not _interrupted:
        event.wait()
        return

    def wait() -> None:
        event.wait()
        _ = kept

    if not event.complete and in_background(wait) is None:
        event.wait()


def tell_running(interrupt: KeyboardInterrupt, device: str, running: Sequence[str]) -> None:
    """Note on ``interrupt`` which kernels the device still runs; before Python 3.11, which has no
    notes, as a warning."""
    global _interrupted
    _interrupted = True
    kernels = ", ".join(running) or "kernels launched before"
    note = (
        f"fusionq: the wait was interrupted; {device} still runs {kernels}. The queue can be used "
        "on: what is submitted runs behind them, and a later wait waits for them."
    )
    if hasattr(interrupt, "add_note"):
        interrupt.add_note(note)
    else:
        warn(note, RuntimeWarning)
