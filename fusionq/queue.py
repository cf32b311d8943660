"""FusionQueue: an in-order SYCL queue with user-driven kernel fusion."""

from __future__ import annotations

import atexit
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from fusionq.backends.base import Backend, DeviceEvent, DeviceInfo
from fusionq.cache.memory import QueueCache
from fusionq.call_site import user_span, warn_aborted
from fusionq.errors import ArgumentError, FusionRefused, FusionStateError, PromotionConflict
from fusionq.event import Event, as_dependence, usable_dependences
from fusionq.foreign import foreign_token
from fusionq.fusion_mode import LOCK, QUEUES
from fusionq.language.ranges import NdRange, Range, as_range
from fusionq.memory import AccessorArgument, Buffer
from fusionq.options import DEFAULT, UNFUSED, OptionValues, option_values
from fusionq.storage import Region, Storage
from fusionq.submission_list import (
    KnownSubmission,
    ScalarValue,
    SubmissionList,
    check_bounds,
    submission_numbers,
)

if TYPE_CHECKING:
    from fusionq.execution import PreparedRun
    from fusionq.frontend.kernel import KernelFunction
    from fusionq.report import CacheOutcome, Report

RangeLike = int | tuple[int, ...] | Range | NdRange
ArrayLike = Buffer | np.ndarray[Any, Any]

_SCALAR_CLASSES = frozenset(
    (
        bool, int, float, np.bool_, np.float16, np.float32, np.float64,
        np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    )
)  # fmt: skip
_queues: WeakSet[FusionQueue] = WeakSet()


class FusionQueue:
    """An in-order queue of kernels on one device.

    ``target``: None (the default SYCL device), a SYCL filter string such as ``"opencl:cpu"``, a
    ``dpctl.SyclQueue``, or ``"reference"``, which runs kernels in pure Python.
    ``fusion=False`` forbids fusion on this queue.  ``profiling`` makes events carry times.

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

        self._backend: Backend = backend_for(target, profiling)
        self._fusion_allowed = fusion
        self._cache = QueueCache()
        self._known = self._cache.known
        self._list: SubmissionList | None = None
        self._ended: SubmissionList | None = None
        """The last list, if it ended by itself and nobody has asked for its event yet."""
        self._last_list: SubmissionList | None = None
        self._last_event: DeviceEvent | None = None
        self._in_flight: deque[tuple[DeviceEvent, list[object]]] = deque()
        self._closed = False
        _queues.add(self)

    # ------------------------------------------------------------------------ description
    @property
    def device(self) -> DeviceInfo:
        """The device's name, limits and abilities."""
        return self._backend.info

    @property
    def sycl_queue(self) -> Any:
        """The dpctl.SyclQueue; None on the reference backend."""
        return getattr(self._backend, "sycl_queue", None)

    @property
    def last_report(self) -> Report | None:
        """The report of the last fusion that ended, however it ended; None before the first."""
        ended = self._last_list
        return None if ended is None or ended.run is None else ended.report()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "fusing" if self._list is not None else "idle"
        return f"<FusionQueue on {self._backend.info.name!r}, {state}>"

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
        range_class = type(range)
        if range_class is not int and range_class is not Range and range_class is not NdRange:
            range = _normal_range(range)
        key: list[object] = [kernel, range]
        memory: list[object] = []
        foreign: list[object] = []
        values: list[ScalarValue] = []
        for arg in args:
            if type(arg) is Buffer:
                key.append(arg._token)
                memory.append(arg._storage)
            elif type(arg) in _SCALAR_CLASSES:
                key.append(type(arg))
                values.append(arg)  # type: ignore[arg-type]  # one of _SCALAR_CLASSES
            else:
                key.append(_sort_argument(arg, memory, foreign, values))
        with LOCK:
            try:
                entry = self._known[tuple(key)]
            except (KeyError, TypeError):  # new; or something unhashable, for the checks
                entry = self._admit(tuple(key), kernel, range, args)
            if entry.bounds:
                check_bounds(entry, values)
            depends = self._dependences(depends_on) if depends_on else []
            entry.last_use = number = next(submission_numbers)
            pending = self._list
            if len(QUEUES) > (pending is not None):
                self._end_lists_before(self._list_of([entry], memory, foreign, values))
            if pending is None:
                return self._submit_plain(entry, memory, foreign, values, depends)
            pending.entries.append(entry)
            pending.memory += memory
            pending.numbers.append(number)
            if foreign:
                pending.foreign += foreign
            if values:
                pending.values += values
            if depends:
                pending.depends += depends
            return Event(None, pending, len(pending.entries) - 1)

    def _admit(
        self, key: tuple[object, ...], kernel: object, range: object, args: Sequence[object]
    ) -> KnownSubmission:
        """Check a new submission."""
        from fusionq.recording import admit

        if self._closed:
            raise FusionStateError(
                f"{user_span()}: submit on a closed queue; make a new FusionQueue"
            )
        started = time.perf_counter()
        entry = admit(self._backend, kernel, range, args)
        self._cache.add_known(key, entry)
        if self._list is not None:
            self._list.frontend_seconds += time.perf_counter() - started
        return entry

    def _submit_plain(
        self,
        entry: KnownSubmission,
        memory: list[object],
        foreign: list[object],
        values: list[ScalarValue],
        depends: list[DeviceEvent],
    ) -> Event:
        def single() -> SubmissionList:
            return self._list_of([entry], memory, foreign, values)

        run = entry.plain
        if run is None or (values and not run.rebind(values, lambda: single().submissions())):
            from fusionq.execution import prepare

            run = entry.plain = prepare(self._backend, single(), UNFUSED)
        return Event(self._launch(run, run.used(memory), foreign, depends)[0])

    def _list_of(
        self,
        entries: list[KnownSubmission],
        memory: list[object],
        foreign: list[object],
        values: list[ScalarValue],
    ) -> SubmissionList:
        submissions = SubmissionList(self)
        submissions.entries, submissions.memory = entries, memory
        submissions.foreign, submissions.values = foreign, values
        submissions.numbers = [0] * len(entries)
        return submissions

    def _dependences(self, depends_on: Event | Iterable[object]) -> list[DeviceEvent]:
        """``depends_on`` as device events; ends other queues' fusion where it must."""
        events: list[DeviceEvent] = []
        for dependence in [depends_on] if isinstance(depends_on, Event) else depends_on:
            event = as_dependence(dependence)
            if isinstance(event, Event):
                pending = event.pending_list
                if pending is self._list and pending is not None:
                    continue  # the list keeps its order
                if pending is not None:
                    pending.queue.abort_list(
                        pending, "another queue's submission depends on an event of the list"
                    )
                event.raise_failure()
                native = event.device_event
                if native is not None:
                    events.append(native)
            else:
                events.append(event)
        return events

    def _end_lists_before(self, submissions: SubmissionList, own: bool = False) -> None:
        """End the fusion of other queues (``own``: of this one too) whose lists must run before
        ``submissions``."""
        accesses = list(submissions.accesses())
        for queue in tuple(QUEUES):
            if (own or queue is not self) and any(
                queue.uses(region, stores) for _, region, stores in accesses
            ):
                queue.abort("a kernel that is not in the list depends on it")

    def _launch(
        self,
        run: PreparedRun,
        storages: Sequence[Storage],
        foreign: list[object],
        depends: list[DeviceEvent],
    ) -> list[DeviceEvent | None]:
        """Launch after ``depends`` and after what other queues do with the storages; each
        storage remembers the event."""
        backend = self._backend
        for storage in storages:
            if storage.last_backend is not backend:
                if storage.last_event is not None:
                    depends = [*depends, storage.last_event]
                storage.last_backend = backend
        if depends:
            depends = usable_dependences(backend, depends)
        try:
            events = run.launch(depends)
        except BaseException:
            backend.wait()
            raise
        for event in events:
            if event is not None:
                self._last_event = event
                for storage in storages:
                    storage.last_event = event
        if foreign and self._last_event is not None:
            self._forget_finished()
            self._in_flight.append((self._last_event, foreign))
        return events

    def _forget_finished(self) -> None:
        while self._in_flight and self._in_flight[0][0].complete:
            self._in_flight.popleft()

    # ----------------------------------------------------------------------------- fusion
    def start_fusion(self) -> None:
        """Enter fusion mode.  FusionStateError if the queue is in it already, forbids fusion, or
        is closed."""
        self.begin_list()

    def begin_list(self) -> SubmissionList:
        """``start_fusion``; the list that submissions will join."""
        with LOCK:
            problem = (
                "start_fusion on a closed queue; make a new FusionQueue"
                if self._closed
                else "this queue was made with fusion=False, which forbids fusion"
                if not self._fusion_allowed
                else "start_fusion on a queue that is in fusion mode already; call "
                "complete_fusion or cancel_fusion first, and do not nest `with fusion(queue)`"
                if self._list is not None
                else None
            )
            if problem is not None:
                raise FusionStateError(f"{user_span()}: {problem}")
            self._list = pending = SubmissionList(self)
            self._ended = None
            QUEUES.append(self)
            return pending

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
            return self.end_list(pending, UNFUSED, "fusion was cancelled")

    def is_in_fusion_mode(self) -> bool:
        """Whether ``submit`` joins a list."""
        return self._list is not None

    def end_list(
        self, pending: SubmissionList, options: OptionValues, fallback: str | None = None
    ) -> Event:
        """Leave fusion mode and run ``pending``, if that has not happened yet; the event of
        all that the queue has run so far."""
        with LOCK:
            self._ended = None
            if not pending.ended:
                self._leave_fusion_mode(pending)
                if not pending.entries:
                    warn_aborted("nothing was submitted between start_fusion and its end")
                try:
                    self._run(pending, options, fallback)
                except (FusionRefused, PromotionConflict, ArgumentError) as error:
                    self._run_unfused(pending, str(error))
                    raise
                except BaseException as error:
                    pending.fail(error)
                    raise
            if pending.error is not None:
                raise pending.error
            return Event(self._last_event if pending.entries else None)

    def end_list_after_error(self, pending: SubmissionList, error: str) -> Event:
        """Leave fusion mode and run ``pending`` unfused, since ``error`` ended its block."""
        with LOCK:
            self._ended = None
            if not pending.ended:
                self._leave_fusion_mode(pending)
                self._run_unfused(pending, f"an exception ended the block: {error}")
            return Event(self._last_event if pending.entries else None)

    def abort(self, cause: str) -> None:
        """End fusion mode, if the queue is in it, as ``abort_list`` does."""
        if self._list is not None:
            self.abort_list(self._list, cause)

    def abort_list(self, pending: SubmissionList, cause: str) -> None:
        """End ``pending``'s fusion: it runs unfused, and a warning names ``cause``.  An error on
        the way is kept for those who wait."""
        with LOCK:
            if pending.ended:
                return
            self._leave_fusion_mode(pending)
            self._ended = pending
            self._run_unfused(pending, f"fusion mode ended: {cause}")
            warn_aborted(
                f"fusion mode ended, and its list of {len(pending.entries)} runs unfused: "
                f"{cause}; move this behind the end of the fusion"
            )

    def _leave_fusion_mode(self, pending: SubmissionList) -> None:
        assert self._list is pending
        self._list = None
        self._last_list = pending
        QUEUES.remove(self)

    def _run_unfused(self, pending: SubmissionList, reason: str) -> None:
        try:
            self._run(pending, UNFUSED, reason)
        except Exception as error:
            pending.fail(error)

    def _run(
        self, pending: SubmissionList, options: OptionValues, fallback: str | None = None
    ) -> None:
        cache = self._cache
        if cache.stale:
            cache.drop_stale()
        run = cache.runs.get((options, *pending.entries))
        found: CacheOutcome = "memory"
        if run is None or (pending.values and not run.rebind(pending.values, pending.submissions)):
            run = self._prepared(pending, options)
            found = run.cache
        run.last_use = next(submission_numbers)
        storages = run.used(pending.memory)
        events = self._launch(run, storages, pending.foreign, pending.depends)
        pending.end(run, options, found, fallback, events)

    def _prepared(self, pending: SubmissionList, options: OptionValues) -> PreparedRun:
        from fusionq.execution import empty_run, prepare

        if not pending.entries:
            return empty_run()
        run = prepare(self._backend, pending, options)
        self._cache.add_run((options, *pending.entries), run)
        for held in pending.memory:
            if isinstance(held, Storage):
                held.watch(self._cache.stale)
        return run

    def replay(
        self, ended: SubmissionList, values: list[ScalarValue], foreign: list[object]
    ) -> Event:
        """Launch a list that has run once more, with other scalar ``values``; ``foreign`` are
        its foreign arrays."""
        with LOCK:
            run = ended.run
            if run is None or self._closed:
                raise FusionStateError(
                    f"{user_span()}: replay needs a list that has run, and an open queue"
                )

            def again() -> SubmissionList:
                return self._list_of(ended.entries, memory_again(foreign), foreign, values)

            memory_again = run.memory_again
            storages = run.used_again()
            if QUEUES:
                self._end_lists_before(again(), own=True)
            if values and not run.rebind(values, lambda: again().submissions()):
                run = self._prepared(again(), ended.options)
                storages = run.used_again()
            self._launch(run, storages, foreign, [])
            return Event(self._last_event)

    def uses(self, region: Region, stores: bool = True) -> bool:
        """Whether the list must run before a command that uses ``region`` (``stores``: writes
        to it)."""
        pending = self._list
        return pending is not None and any(
            (stores or list_stores) and region.overlaps(other)
            for _, other, list_stores in pending.accesses()
        )

    # --------------------------------------------------------------------- other commands
    def memcpy(self, dst: ArrayLike, src: ArrayLike) -> Event:
        """Copy ``src`` to ``dst``: Buffers or arrays of one shape and dtype.  Runs in order, on
        the host, before it returns; ends fusion mode where the list must run before."""
        from fusionq.commands import memcpy

        return memcpy(self, dst, src)

    def fill(self, buffer: ArrayLike, value: ScalarValue) -> Event:
        """Set every element to ``value``, which must fit the dtype.  Runs like ``memcpy``."""
        from fusionq.commands import fill

        return fill(self, buffer, value)

    def host_task(self, function: Callable[..., object], *buffers: ArrayLike) -> Event:
        """Call ``function`` with the buffers as NumPy arrays that share their memory, after all
        that was launched; ends fusion mode where the list uses one of them."""
        from fusionq.commands import host_task

        return host_task(self, function, *buffers)

    # ------------------------------------------------------------------------------- life
    def wait(self) -> None:
        """Block until all that was submitted has run; ends fusion mode."""
        pending = self._list
        if pending is not None:
            self.abort_list(pending, "FusionQueue.wait()")
        self._backend.wait()
        with LOCK:
            self._forget_finished()
        if pending is not None and pending.error is not None:
            raise pending.error

    def close(self) -> None:
        """End fusion mode, wait, and take no more submissions.  Closing twice is harmless."""
        if self._closed:
            return
        with LOCK:
            self.abort("the queue was closed")
            self._closed = True
            self._cache.clear()
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

    def __del__(self) -> None:
        if getattr(self, "_in_flight", None):
            self._backend.wait()


def _normal_range(range: Any) -> Any:
    """``range`` as a Range; unchanged where that is none, for the checks to refuse."""
    try:
        return as_range(range)
    except (ArgumentError, TypeError):
        return range


def _sort_argument(
    arg: object, memory: list[object], foreign: list[object], values: list[ScalarValue]
) -> object:
    """The token of an argument that is neither a plain Buffer nor a plain number."""
    if isinstance(arg, AccessorArgument):
        memory.append(arg.buffer._storage)
        return arg.token
    if isinstance(arg, Buffer):
        memory.append(arg._storage)
        return arg._token
    if isinstance(arg, (bool, int, float, np.generic)):
        values.append(arg)
        return type(arg)
    memory.append(arg)
    foreign.append(arg)
    return foreign_token(arg)


@atexit.register
def _wait_for_queues() -> None:
    """Kernels in flight must not outlive the memory that the interpreter frees."""
    for queue in tuple(_queues):
        queue._backend.wait()
