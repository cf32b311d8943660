"""FusionQueue: an in-order SYCL queue with user-driven kernel fusion."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from sys import _getframe
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fusionq.analysis.submission import ScalarValue
from fusionq.base.call_site import located, user_span
from fusionq.base.config import keeps_apart
from fusionq.base.device_info import DeviceInfo
from fusionq.base.errors import ArgumentError, DeviceError, FusionStateError
from fusionq.base.not_copied import NotCopied
from fusionq.base.options import (
    DEFAULT,
    ErrorModel,
    check_error_model,
    check_flags,
    check_names,
    options_from,
)
from fusionq.frontend.first_kernels import first_like
from fusionq.language.ranges import NdRange, Range
from fusionq.memory.buffer import Buffer
from fusionq.memory.fusing_queues import (
    LOCK,
    NOTED,
    QUEUES,
    acquire,
    is_owned,
    note,
    release,
    run_noted,
)
from fusionq.memory.gpu_arrays import marked
from fusionq.memory.reduction import Reduction
from fusionq.runtime.eager_launches import begin, go_on
from fusionq.runtime.event import NO_EVENTS, Event, NewEvent
from fusionq.runtime.launcher import Launcher
from fusionq.runtime.queue_cache import KnownHere, QueueCache
from fusionq.runtime.state import QueueState
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.key import (
    SCALAR_CLASSES,
    defaults_behind,
    range_or_none,
    sort_argument,
)
from fusionq.submission.known import KnownSubmission, use_numbers
from fusionq.submission.pending import SubmissionList
from fusionq.submission.value_checks import check_values

if TYPE_CHECKING:
    from fusionq.frontend.kernel import KernelFunction
    from fusionq.report.report import Report

RangeLike = int | tuple[int, ...] | Range | NdRange
ArrayLike = Buffer | np.ndarray[Any, Any]


class FusionQueue(NotCopied):
    """An in-order queue of kernels on one device.

    ``target``: None (the default SYCL device), a SYCL filter string such as ``"opencl:cpu"``, a
    ``dpctl.SyclQueue``, or ``"reference"``, which runs kernels in pure Python.
    ``fusion=False`` forbids fusion on this queue.  ``profiling``: the device records when each
    launch ran (``Event.native``).  ``error_model``: what kernels of numba-dpex do where they divide
    by zero: with ``"python"`` what their decorators say (those made without
    ``error_model="numpy"`` are refused there, see the guide), with ``"numpy"`` NumPy's result.

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
        self,
        target: object = None,
        *,
        fusion: bool = True,
        profiling: bool = False,
        error_model: ErrorModel = "python",
        **unknown: NoReturn,
    ) -> None:
        from fusionq.backends.registry import backend_for

        if unknown:
            check_names("FusionQueue", unknown, ("fusion", "profiling", "error_model"))
        check_error_model(error_model)
        check_flags("FusionQueue", {"fusion": fusion, "profiling": profiling})
        try:
            keeps_apart()  # threads that start later could tell nobody
            backend = backend_for(target, profiling)
        except (ArgumentError, DeviceError) as error:
            raise type(error)(located(user_span(), str(error))) from error
        launcher = Launcher(backend, QueueCache())
        self._state = QueueState(launcher, fusion, error_model)
        self._known: dict[Hashable, KnownSubmission] | KnownHere = launcher.cache.known

    # ------------------------------------------------------------------------ description
    @property
    def device(self) -> DeviceInfo:
        """The device's name, limits and abilities."""
        return self._state.target.device

    @property
    def sycl_queue(self) -> Any:
        """The dpctl.SyclQueue; None where the queue is on no SYCL device."""
        backend = self._state.launcher.backend
        return backend.native if backend.abilities.runtime == "sycl" else None

    def __cuda_stream__(self) -> tuple[int, int]:
        """The queue's CUDA stream, by the protocol of cuda.core: 0 and its handle; other libraries'
        work on it runs in order with the queue's.  DeviceError on a queue on no GPU."""
        backend = self._state.launcher.backend
        if backend.abilities.runtime != "cuda":
            raise DeviceError(f"{user_span()}: {self!r} has no CUDA stream")
        return 0, int(backend.native)

    @property
    def last_report(self) -> Report | None:
        """The report of the last fusion that ended, however it ended; None before the first."""
        ended = self._state.last_list
        if ended is None:
            return None
        from fusionq.execution.reporting import report_for

        return report_for(ended)

    if not TYPE_CHECKING:  # for types there are no others

        def __getattr__(self, name: str) -> NoReturn:
            """The error for an attribute that there is not, with what to write instead."""
            from fusionq.base.attributes_meant import OF_QUEUES, no_attribute

            raise no_attribute(self, name, OF_QUEUES)

    def __repr__(self) -> str:
        state = self._state
        mode = "closed" if state.closed else "fusing" if state.list is not None else "idle"
        return f"<FusionQueue on {state.target.device.name!r}, {mode}>"

    # ------------------------------------------------------------------------- submission
    def submit(
        self,
        kernel: KernelFunction,
        range: RangeLike,
        *args: object,
        depends_on: Event | Iterable[object] = NO_EVENTS,
        **unknown: NoReturn,
    ) -> Event:
        """Run ``kernel`` over ``range`` with ``args``, or in fusion mode put it on the list.

        ``range``: an int, a tuple, a Range, or an NdRange with its work-groups.  ``args``: for
        each parameter after the item (those with defaults may be left out) a Buffer,
        ``access(buffer, …)``, a NumPy array, an object with ``__sycl_usm_array_interface__``,
        ``__cuda_array_interface__``, ``__dlpack__`` (of the host), ``__array_interface__`` or the
        buffer protocol, whose memory is used without a copy, a Python or NumPy number, or a
        constant for which the kernel is compiled: a tuple or list of numbers, a string, None, a
        member of an enumeration.  ``depends_on``: Events, or dpctl.SyclEvents, of other queues to
        wait for.

        Raises ArgumentError, KernelLanguageError, DeviceError, PromotionConflict, and
        FusionStateError on a closed queue; queue and list stay as they were.
        """
        if unknown:
            raise ArgumentError(
                f"{user_span()}: submit takes no {next(iter(unknown))}=…; only depends_on is given "
                "by name: write the kernel's arguments behind the range, in its parameters' order"
            )
        space: object = range
        if type(space) is not int and type(space) is not Range and type(space) is not NdRange:
            space = range_or_none(range)
        state = self._state
        key: list[object] = [kernel, space, state.error_model]
        memory: list[object] = []
        values: list[ScalarValue] = []
        call: CallArguments | None = None
        for arg in args:
            if type(arg) is Buffer:
                key.append(arg._token)
                memory.append(arg._storage)
            elif type(arg) in SCALAR_CLASSES:
                key.append(type(arg))
                values.append(arg)  # type: ignore[arg-type]  # one of SCALAR_CLASSES
            elif type(arg) is Reduction:
                from fusionq.runtime.reductions import submit_reducing

                return submit_reducing(state, self.submit, kernel, range, args, depends_on)
            else:
                if call is None:
                    call = CallArguments()
                key.append(sort_argument(arg, call, memory, values))
        if NOTED:
            run_noted()
        held = False
        try:  # as `with LOCK`
            acquire()
            held = True
            known_by = tuple(key)
            try:
                entry = self._known.get(known_by)
            except TypeError:  # something unhashable, for the checks
                entry = None
            launched = None
            if entry is None:
                defaults = defaults_behind(kernel, len(args))
                if defaults:
                    event = self.submit(kernel, range, *args, *defaults, depends_on=depends_on)
                    release()
                    return event
                first: Any = first_like(kernel)
                if first is not kernel:
                    event = self.submit(first, range, *args, depends_on=depends_on)
                    release()
                    return event
                if state.list is None and not QUEUES and depends_on is NO_EVENTS:
                    launched = state.launch_like(known_by, range, args, memory, values, call)
                if launched is None:
                    entry = state.admit(known_by, kernel, range, args)
            if entry is None:
                assert launched is not None, "else the submission has been checked"
                event = NewEvent()
                event._list = None
                event._waits_for, event._device_event = launched
            else:
                if values:
                    fitting = entry.fitting
                    if fitting is None or tuple(values) not in fitting:
                        check_values(entry, values)
                if depends_on is not NO_EVENTS:
                    if call is None:
                        call = CallArguments()
                    call.depends = [*call.depends, *state.dependences(depends_on)]
                number = entry.last_use = next(use_numbers)
                pending = state.list
                event = NewEvent()
                if pending is None:
                    if call is None:
                        call = CallArguments()
                    call.memory, call.values = memory, values
                    if QUEUES:
                        state.end_lists_before(SubmissionList.of([entry], call))
                    event._list = None
                    event._waits_for = call.depends
                    event._device_event = state.launcher.run_single(entry, call)
                else:
                    if call is not None and call.depends:
                        call.depends = marked(call.depends)
                    if values:  # by whose names ``replay`` changes them
                        frame = _getframe(1)
                        if frame.f_lasti != entry.instruction or frame.f_code is not entry.code:
                            pending.is_called_elsewhere(entry)
                    event._list = pending
                    event._index = place = pending.add(entry, memory, values, call, number)
                    if place == pending.next_launch:
                        go_on(state.launcher, pending)
                    elif not place and entry.begins is not None:
                        begin(state.launcher, pending, entry)
        except BaseException:  # Ctrl-C may come as soon as the lock is taken
            if held or is_owned():
                release()
            raise
        release()
        return event

    # ----------------------------------------------------------------------------- fusion
    def start_fusion(self) -> None:
        """Enter fusion mode.  FusionStateError if the queue is in it already, forbids fusion, or
        is closed."""
        self._state.begin_list()

    def complete_fusion(self, **options: Any) -> Event:
        """Leave fusion mode and run the list as few kernels as is safe; ``options`` as of
        ``fusionq.fusion``, but ``error_model``, which is that of the submissions.  Returns the
        event of all of it; where fusion mode has ended by itself, of what ran then.

        FusionStateError if fusion was not started.  FusionRefused (``require=True``) and
        PromotionConflict: the list has been run unfused.  DeviceError: it could not be run.
        """
        values = options_from(options) if options else DEFAULT
        state = self._state
        with LOCK:
            pending = self._list_to_end()
            if pending is None:
                raise FusionStateError(
                    f"{user_span()}: complete_fusion without start_fusion; call start_fusion "
                    "first, or use `with fusion(queue):`"
                )
            return state.end_list(pending, values)

    def cancel_fusion(self) -> Event:
        """Leave fusion mode and run the list unfused; its event.  Outside fusion mode nothing
        happens, and the event is complete."""
        state = self._state
        with LOCK:
            pending = self._list_to_end()
            if pending is None:
                return Event()
            return state.end_list_unfused(pending, "fusion was cancelled", quiet=False)

    def _list_to_end(self) -> SubmissionList | None:
        """The list of the fusion that goes on, or has ended by itself."""
        state = self._state
        if state.is_recording:
            raise FusionStateError(
                f"{user_span()}: a graph records what is submitted to this queue, which the end of "
                "its `with graph.record(queue)` block ends, and graph.launch() runs"
            )
        return state.list or state.ended

    def is_in_fusion_mode(self) -> bool:
        """Whether ``submit`` joins a list."""
        return self._state.list is not None

    # --------------------------------------------------------------------- other commands
    def memcpy(
        self, dst: ArrayLike, src: ArrayLike, depends_on: Event | Iterable[object] = ()
    ) -> Event:
        """Copy ``src`` to ``dst``: Buffers or arrays of one shape and dtype, as if through memory
        of its own where they overlap; after the events of ``depends_on``.

        In fusion mode it joins the list, as a kernel with one work-item an element: Buffers, and
        USM or memory of a GPU that the queue's device reaches, of one to four dimensions.
        Everything else, arrays of the host above all, and all outside fusion mode, is copied in
        order before the call returns; that ends fusion mode where the list must run before, and
        the report says why the copy did not join.
        """
        from fusionq.runtime.commands import memcpy

        return memcpy(self._state, self.submit, dst, src, depends_on)

    def fill(
        self,
        buf: ArrayLike,
        value: ScalarValue,
        depends_on: Event | Iterable[object] = (),
    ) -> Event:
        """Set every element of ``buf`` to ``value``, which must fit the dtype.  Joins lists, or
        runs, like ``memcpy``."""
        from fusionq.runtime.commands import fill

        return fill(self._state, self.submit, buf, value, depends_on)

    def host_task(
        self,
        fn: Callable[..., object],
        *bufs: ArrayLike,
        depends_on: Event | Iterable[object] = (),
    ) -> Event:
        """Call ``fn`` with the buffers as NumPy arrays that share their memory, after all
        that was launched and the events of ``depends_on``; ends fusion mode where the list uses
        one of them."""
        from fusionq.runtime.commands import host_task

        return host_task(self._state, fn, *bufs, depends_on=depends_on)

    def barrier(self, depends_on: Event | Iterable[object] = ()) -> Event:
        """What is submitted later waits for all that was submitted before, which the queue's order
        says already, and for the events of ``depends_on``.  The event of all of these.

        In fusion mode the list goes on; it then waits for the events as a whole.  FusionStateError
        on a closed queue.  Source: DPC++, sycl_ext_oneapi_enqueue_barrier.
        """
        with LOCK:
            return self._state.barrier(depends_on)

    # ------------------------------------------------------------------------------- life
    def wait(self) -> None:
        """Block until all that was submitted has run; ends fusion mode."""
        self._state.wait()

    def close(self) -> None:
        """End fusion mode, wait, and take no more submissions.  Closing twice is harmless."""
        self._state.close()

    def __del__(self) -> None:
        state: QueueState | None = getattr(self, "_state", None)
        if state is not None and state.list is not None and not sys.is_finalizing():
            note(partial(state.abort, "the queue went out of scope"))

    def __enter__(self) -> FusionQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._state.close(wait=kind is not KeyboardInterrupt)
