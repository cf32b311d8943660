"""FusionQueue: an in-order SYCL queue with user-driven kernel fusion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from fusionq.backends.base import DeviceEvent
from fusionq.base.call_site import user_span
from fusionq.base.errors import FusionStateError
from fusionq.base.options import DEFAULT, option_values
from fusionq.cache.memory import QueueCache
from fusionq.language.ranges import NdRange, Range
from fusionq.memory.buffer import Buffer
from fusionq.memory.fusing_queues import LOCK, QUEUES
from fusionq.runtime.event import Event, as_dependence
from fusionq.runtime.launcher import Launcher
from fusionq.runtime.state import QueueState
from fusionq.submission.key import SCALAR_CLASSES, range_or_none, sort_argument
from fusionq.submission.pending import (
    KnownSubmission,
    ScalarValue,
    SubmissionList,
    check_values,
    use_numbers,
)

if TYPE_CHECKING:
    from fusionq.frontend.kernel import KernelFunction
    from fusionq.report.report import Report

RangeLike = int | tuple[int, ...] | Range | NdRange
ArrayLike = Buffer | np.ndarray[Any, Any]


class FusionQueue(QueueState):
    """An in-order queue of kernels on one device.

    ``target``: None (the default SYCL device), a SYCL filter string such as ``"opencl:cpu"``, a
    ``dpctl.SyclQueue``, or ``"reference"``, which runs kernels in pure Python.
    ``fusion=False`` forbids fusion on this queue.  ``profiling``: the device records when each
    launch ran (``Event.native``).

    Outside fusion mode ``submit`` launches at once.  In fusion mode, between ``start_fusion``
    and ``complete_fusion`` (see also ``fusionq.fusion``), it joins a list that becomes as few
    kernels as is provably safe.  What needs a result of the list earlier ends fusion mode: the
    list runs unfused, with the same result, and a FusionAborted warning says why.

    Commands of one queue run in order; commands of several queues that use one Buffer run in
    the order of submission.  NumPy arrays and USM of other libraries are kept alive until the
    kernels that use them have run; between queues, order these with ``depends_on``, as in SYCL.

    Raises DeviceError where there is no such device.
    """

    def __init__(
        self, target: object = None, *, fusion: bool = True, profiling: bool = False
    ) -> None:
        from fusionq.backends.registry import backend_for

        cache = QueueCache()
        super().__init__(Launcher(backend_for(target, profiling), cache), fusion)
        self._known = cache.known

    # ------------------------------------------------------------------------ description
    device = QueueState.device

    @property
    def sycl_queue(self) -> Any:
        """The dpctl.SyclQueue; None on the reference backend."""
        return getattr(self._launcher.backend, "sycl_queue", None)

    @property
    def last_report(self) -> Report | None:
        """The report of the last fusion that ended, however it ended; None before the first."""
        ended = self._last_list
        return None if ended is None else ended.report()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "fusing" if self._list is not None else "idle"
        return f"<FusionQueue on {self._launcher.backend.info.name!r}, {state}>"

    # ------------------------------------------------------------------------- submission
    def submit(
        self,
        kernel: KernelFunction,
        range: RangeLike,
        *args: object,
        depends_on: Event | Iterable[object] = (),
    ) -> Event:
        """Run ``kernel`` over ``range`` with ``args``, or in fusion mode put it on the list.

        ``range``: an int, a tuple, a Range, or an NdRange with its work-groups.  ``args``: for
        each parameter after the item a Buffer, ``access(buffer, …)``, a NumPy array, an object
        with ``__sycl_usm_array_interface__``, or a Python or NumPy number.  ``depends_on``:
        Events, or dpctl.SyclEvents, of other queues to wait for.

        Raises ArgumentError, KernelLanguageError, DeviceError, PromotionConflict, and
        FusionStateError on a closed queue; queue and list stay as they were.
        """
        space: object = range
        if type(space) is not int and type(space) is not Range and type(space) is not NdRange:
            space = range_or_none(range)
        key: list[object] = [kernel, space]
        memory: list[object] = []
        foreign: list[object] = []
        values: list[ScalarValue] = []
        for arg in args:
            if type(arg) is Buffer:
                key.append(arg._token)
                memory.append(arg._storage)
            elif type(arg) in SCALAR_CLASSES:
                key.append(type(arg))
                values.append(arg)  # type: ignore[arg-type]  # one of SCALAR_CLASSES
            else:
                key.append(sort_argument(arg, memory, foreign, values))
        with LOCK:
            try:
                entry = self._known[tuple(key)]
            except (KeyError, TypeError):  # new; or something unhashable, for the checks
                entry = self._admit(tuple(key), kernel, range, args)
            if values:
                check_values(entry, values)
            depends = self._dependences(depends_on) if depends_on else ()
            number = entry.last_use = next(use_numbers)
            pending = self._list
            if pending is None:
                if QUEUES:
                    self.end_lists_before(SubmissionList.of([entry], memory, foreign, values))
                return Event(self._launcher.run_single(entry, memory, foreign, values, depends))
            pending.add(entry, memory, foreign, values, depends, number)
            return Event(None, pending, len(pending.entries) - 1)

    def _admit(
        self, key: tuple[object, ...], kernel: object, range: object, args: Sequence[object]
    ) -> KnownSubmission:
        """Check a new submission."""
        started = perf_counter()
        from fusionq.submission.admission import admit

        if self._closed:
            raise FusionStateError(
                f"{user_span()}: submit on a closed queue; make a new FusionQueue"
            )
        timings = {} if self._list is None else self._list.admission
        timings["import"] = timings.get("import", 0.0) + perf_counter() - started
        entry = admit(self._launcher.backend, kernel, range, args, timings)
        self._launcher.cache.add_known(key, entry)
        return entry

    def _dependences(self, depends_on: Event | Iterable[object]) -> list[DeviceEvent]:
        """``depends_on`` as device events; ends other queues' fusion where it must."""
        events: list[DeviceEvent] = []
        for dependence in depends_on if isinstance(depends_on, Iterable) else [depends_on]:
            event = as_dependence(dependence)
            if isinstance(event, Event):
                pending = event.pending_list
                if pending is self._list and pending is not None:
                    continue  # the list keeps its order
                if pending is not None:
                    pending.abort("another queue's submission depends on an event of the list")
                event.raise_failure()
                native = event.device_event
                if native is not None:
                    events.append(native)
            else:
                events.append(event)
        return events

    # ----------------------------------------------------------------------------- fusion
    def start_fusion(self) -> None:
        """Enter fusion mode.  FusionStateError if the queue is in it already, forbids fusion, or
        is closed."""
        self.begin_list()

    def complete_fusion(self, **options: Any) -> Event:
        """Leave fusion mode and run the list as few kernels as is safe; ``options`` as of
        ``fusionq.fusion``.  Returns the event of all of it; where fusion mode has ended by
        itself, of what ran then.

        FusionStateError if fusion was not started.  FusionRefused (``require=True``) and
        PromotionConflict: the list has been run unfused.  DeviceError: it could not be run.
        """
        values = option_values(**options) if options else DEFAULT
        with LOCK:
            pending = self._list or self._ended
            if pending is None:
                raise FusionStateError(
                    f"{user_span()}: complete_fusion without start_fusion; call start_fusion "
                    "first, or use `with fusion(queue):`"
                )
            return self.end_list(pending, values)

    def cancel_fusion(self) -> Event:
        """Leave fusion mode and run the list unfused; its event.  Outside fusion mode nothing
        happens, and the event is complete."""
        with LOCK:
            pending = self._list or self._ended
            if pending is None:
                return Event()
            return self.end_list_unfused(pending, "fusion was cancelled", quiet=False)

    def is_in_fusion_mode(self) -> bool:
        """Whether ``submit`` joins a list."""
        return self._list is not None

    def replay(
        self, ended: SubmissionList, values: Sequence[ScalarValue], foreign: Sequence[object]
    ) -> Event:
        """Run a list that has run once more, with scalar ``values``; ``foreign`` are its foreign
        arrays.  Ends fusion modes whose lists must run before."""
        with LOCK:
            if self._closed or ended.error is not None:
                raise FusionStateError(
                    f"{user_span()}: replay needs an open queue, and a list that could be run"
                )
            if QUEUES:
                self.end_lists_before(ended.again(values, foreign), own=True)
            self._launcher.run_again(ended, values, foreign)
            return Event(self._launcher.last_event)

    # --------------------------------------------------------------------- other commands
    def memcpy(self, dst: ArrayLike, src: ArrayLike) -> Event:
        """Copy ``src`` to ``dst``: Buffers or arrays of one shape and dtype.  Runs in order, on
        the host, before it returns; ends fusion mode where the list must run before."""
        from fusionq.runtime.commands import memcpy

        return memcpy(self, dst, src)

    def fill(self, buffer: ArrayLike, value: ScalarValue) -> Event:
        """Set every element to ``value``, which must fit the dtype.  Runs like ``memcpy``."""
        from fusionq.runtime.commands import fill

        return fill(self, buffer, value)

    def host_task(self, function: Callable[..., object], *buffers: ArrayLike) -> Event:
        """Call ``function`` with the buffers as NumPy arrays that share their memory, after all
        that was launched; ends fusion mode where the list uses one of them."""
        from fusionq.runtime.commands import host_task

        return host_task(self, function, *buffers)

    # ------------------------------------------------------------------------------- life
    def wait(self) -> None:
        """Block until all that was submitted has run; ends fusion mode."""
        pending = self._list
        if pending is not None:
            self.abort_list(pending, "FusionQueue.wait()")
        self._launcher.backend.wait()
        with LOCK:
            self._launcher.forget_finished()
        last = self._launcher.last_event
        if last is not None:  # it has run; a persistent kernel says how it ended
            last.wait()
        if pending is not None and pending.error is not None:
            raise pending.error

    def close(self) -> None:
        """End fusion mode, wait, and take no more submissions.  Closing twice is harmless."""
        if self._closed:
            return
        with LOCK:
            self.abort("the queue was closed")
            self._closed = True
            self._launcher.cache.clear()
        self.wait()

    def __enter__(self) -> FusionQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
