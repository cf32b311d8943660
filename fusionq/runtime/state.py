"""A queue's state: idle, or in fusion mode with a list; and all the ways that a list ends."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from types import FrameType
from weakref import WeakSet

from fusionq.analysis.submission import Operands, ScalarValue
from fusionq.backends.base import DeviceEvent
from fusionq.backends.interruptible import wait_for_the_rest
from fusionq.base.call_site import told_as_warnings, user_frame, user_span, warn_aborted
from fusionq.base.changes import CHANGES
from fusionq.base.errors import DeviceError, FusionStateError
from fusionq.base.options import ErrorModel, FusionOptions
from fusionq.base.phases import timed
from fusionq.base.target import Target
from fusionq.execution.planning_time import PlanningStopped
from fusionq.memory.fusing_queues import ENDING, LOCK, NOTED, QUEUES, run_noted
from fusionq.memory.gpu_arrays import marked
from fusionq.memory.region import MemoryRegion
from fusionq.memory.temporaries import Temporaries
from fusionq.runtime import eager_launches
from fusionq.runtime.eager_launches import end, note_unfused
from fusionq.runtime.ended_lists import (
    end_together,
    not_run,
    report_listeners,
    tell_listeners,
    warn_ended,
)
from fusionq.runtime.event import (
    AllOf,
    Event,
    NewEvent,
    as_dependences,
    device_event_of,
    pending_list_of,
    raise_failure,
)
from fusionq.runtime.launcher import Launcher, NotPrepared
from fusionq.runtime.prepared_launches import launch_prepared, launch_separate
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import KnownSubmission
from fusionq.submission.pending import ListOwner, SubmissionList

_states: WeakSet[QueueState] = WeakSet()

CIRCULAR = "two fusing queues need each other's kernels in turn"


class QueueState:
    """What is behind a FusionQueue: its launcher, its list, and how lists come to run.

    All but ``uses`` take the lock of ``fusing_queues`` themselves, or are called under it.
    """

    def __init__(self, launcher: Launcher, fusion_allowed: bool, error_model: ErrorModel) -> None:
        self.error_model = error_model
        """Of the submissions that follow."""
        self.launcher = launcher
        self._fusion_allowed = fusion_allowed
        self.begins_early = eager_launches.is_told_early(launcher.backend)
        """Whether lists that run unfused may be launched while they are recorded."""
        self.list: SubmissionList | None = None
        """The list that submissions join, in fusion mode."""
        self.ended: SubmissionList | None = None
        """The last list, if it ended by itself and nobody has asked for its event yet."""
        self.last_list: SubmissionList | None = None
        self.closed = False
        self.temporaries = Temporaries()
        with LOCK:
            _states.add(self)

    @property
    def target(self) -> Target:
        """The device as the compiler sees it."""
        return self.launcher.backend.target

    @property
    def is_recording(self) -> bool:
        """Whether what is submitted is recorded for a graph."""
        return self.list is not None and self.list.owner is not self

    def begin_list(self, owner: ListOwner | None = None) -> SubmissionList:
        """``start_fusion``; the list that submissions will join.  With another ``owner`` it does
        not run, so that nothing waits for it."""
        with LOCK:
            if NOTED:
                run_noted()
            if self.list is not None or self.closed or not self._fusion_allowed:
                raise self._no_fusion()
            self.ended = None
            self.list = pending = SubmissionList(owner or self)
            if owner is None:
                QUEUES.append(self)
            pending.began_after = CHANGES.latest
            CHANGES.latest = pending.began = object()
            return pending

    def _no_fusion(self) -> FusionStateError:
        """Why fusion mode cannot begin."""
        problem = (
            "start_fusion on a closed queue; make a new FusionQueue"
            if self.closed
            else "this queue was made with fusion=False, which forbids fusion"
            if not self._fusion_allowed
            else "a graph records what is submitted to this queue; start fusions behind the "
            "`with graph.record(queue)` block"
            if self.is_recording
            else "start_fusion on a queue that is in fusion mode already; call "
            "complete_fusion or cancel_fusion first, and do not nest `with fusion(queue)`"
        )
        return FusionStateError(f"{user_span()}: {problem}")

    def exchange_error_model(self, error_model: ErrorModel) -> ErrorModel:
        """Take a block's error model, or at its end the one that there was; the one until now."""
        before, self.error_model = self.error_model, error_model
        return before

    def end_list(self, pending: SubmissionList, options: FusionOptions) -> Event:
        """Leave fusion mode and run ``pending``, if that has not happened yet; the event of
        all that the queue has run so far."""
        with LOCK:
            if NOTED:
                run_noted()
            self.ended = None
            if not pending.ended:
                ENDING.append(self)
                try:
                    self.list, self.last_list = None, pending
                    QUEUES.remove(self)
                    refused = None
                    try:
                        if QUEUES and self._runs_with_others(pending):
                            pass
                        elif pending.launched:
                            end(self.launcher, pending, options)
                        else:
                            self.launcher.run_list(pending, options)
                            if self.begins_early and pending.run and pending.run.is_unfused:
                                note_unfused(self.launcher, pending, options)
                    except NotPrepared as failure:
                        refused = self._run_unprepared(pending, failure.error, options)
                    if refused is not None:
                        raise refused
                except BaseException as error:
                    if not pending.ended:
                        pending.fail(error if isinstance(error, Exception) else not_run(error))
                    raise
                finally:
                    ENDING.remove(self)
                    if report_listeners:
                        tell_listeners(pending)
                if not pending.entries:
                    warn_aborted("nothing was submitted between start_fusion and its end")
            return self._event_of_all(pending)

    def end_list_unfused(self, pending: SubmissionList, reason: str, quiet: bool) -> Event:
        """Leave fusion mode and run ``pending`` unfused, for ``reason``, if that has not
        happened yet; raises what keeps it from running unless ``quiet``."""
        with LOCK:
            if NOTED:
                run_noted()
            self.ended = None
            if not pending.ended:
                self._leave_and_run(pending, reason, by_itself=False)
                tell_listeners(pending)
            return Event() if quiet and pending.error else self._event_of_all(pending)

    def replay(self, ended: SubmissionList, call: CallArguments) -> Event:
        """Run a list that has run once more, with the memory and the scalars of ``call``; in fusion
        mode its submissions join the list.  Ends fusion modes whose lists must run before."""
        with LOCK:
            if NOTED:
                run_noted()
            if self.closed or ended.error is not None:
                raise FusionStateError(
                    f"{user_span()}: replay needs an open queue, and a list that could be run"
                )
            pending = self.list
            if pending is not None:
                call.depends = marked(call.depends)
                pending.add_all(ended, call)
                return Event(None, pending, len(pending.entries) - 1) if ended.entries else Event()
            if QUEUES:
                self.end_lists_before(SubmissionList.of(ended.entries, call))
            self.launcher.run_again(ended, call)
            return Event(self.launcher.last_event)

    def abort(self, cause: str) -> None:
        """End fusion mode, if the queue is in it, as ``abort_list`` does."""
        if self.list is not None:
            self.list.abort(cause)

    def abort_list(self, pending: SubmissionList, cause: str) -> None:
        """End ``pending``'s fusion: it runs unfused, and a warning names ``cause``.  An error on
        the way is kept for those who wait."""
        with LOCK:
            if pending.ended:
                return
            self._leave_and_run(pending, f"fusion mode ended: {cause}", by_itself=True)
            tell_listeners(pending)
            warn_ended(pending, cause)

    def launch_like(
        self,
        key: tuple[object, ...],
        range: object,
        args: Sequence[object],
        memory: Sequence[object],
        values: Sequence[ScalarValue],
        call: CallArguments | None,
    ) -> tuple[Sequence[DeviceEvent], DeviceEvent | None] | None:
        """Run a submission outside fusion mode which is new, but like ones that have run but for
        memory and scalars, and is recorded nowhere; what it waits for, and its event.  None, and
        nothing happens, where there is more to be asked."""
        launcher = self.launcher
        cache = launcher.cache
        try:
            number = hash(key)
            if self.closed or cache.has_seen(number):
                return None
        except TypeError:  # something unhashable, for the checks
            return None
        frame = user_frame(1)  # this is called by a method of the user's queue
        found = cache.templates.find(key, range, args, frame)
        if found is None:
            return None
        if call is None:
            call = CallArguments()
        call.memory, call.values = memory, values
        form, sizes, space, places, _ = found
        is_checked = form.latest == sizes
        like = form.like if is_checked else found.template()
        if like is None:
            return None
        operands = Operands(like.deferred.operands.form, space, places, values)
        if (values or not is_checked) and not like.serves(operands):
            return None
        launched = launcher.run_like(
            like, partial(form.sized.get, sizes), sizes, operands, call
        )
        if launched is None:
            return None
        if not is_checked:
            form.latest, form.like = sizes, like
        cache.see(number)
        return call.depends, launched[0]

    def admit(
        self, key: tuple[object, ...], kernel: object, range: object, args: Sequence[object]
    ) -> KnownSubmission:
        """Check a new submission, for the user's call that is at work."""
        frame = user_frame(1)  # this is called by a method of the user's queue
        entry = self._admitted(key, kernel, range, args, frame)
        if frame is not None:
            entry.code, entry.instruction = frame.f_code, frame.f_lasti
        return entry

    def _admitted(
        self,
        key: tuple[object, ...],
        kernel: object,
        range: object,
        args: Sequence[object],
        frame: FrameType | None,
    ) -> KnownSubmission:
        if self.closed:
            raise FusionStateError(
                f"{user_span()}: submit on a closed queue; make a new FusionQueue"
            )
        cache = self.launcher.cache
        like = cache.templates.like(key, range, args, frame)
        if like is not None:
            cache.add_repeated(key, like)
            return like
        timings = {} if self.list is None else self.list.admission
        with timed(timings, "import"):
            from fusionq.submission.admission import admit

        entry = admit(self.launcher.backend, kernel, range, args, timings, self.error_model)
        cache.templates.add(key, args, entry, frame)
        cache.add_known(key, entry)
        return entry

    def dependences(self, depends_on: Event | Iterable[object]) -> list[DeviceEvent]:
        """``depends_on`` as device events; ends other queues' fusion where it must."""
        events: list[DeviceEvent] = []
        for event in as_dependences(depends_on):
            if isinstance(event, Event):
                mine, pending = self.list, pending_list_of(event)
                if mine is not None and event._list is not None and mine.runs_after(event._list):
                    continue
                if pending is not None:
                    pending.abort("another queue's submission depends on an event of the list")
                raise_failure(event)
                native = device_event_of(event)
                if isinstance(native, AllOf):
                    events += native.events
                elif native is not None:
                    events.append(native)
            else:
                events.append(event)
        if events and self.is_recording:
            raise FusionStateError(
                f"{user_span()}: depends_on an event of outside the graph, which has happened when "
                "the graph is launched again; give it to launch(depends_on=…)"
            )
        return events

    def runs_after(self, pending: SubmissionList, other: object) -> bool:
        """Whether ``pending`` runs after ``other`` anyway."""
        return False

    def barrier(self, depends_on: Event | Iterable[object]) -> Event:
        """See ``FusionQueue.barrier``."""
        if self.closed:
            raise FusionStateError(
                f"{user_span()}: barrier on a closed queue; make a new FusionQueue"
            )
        events, pending = self.dependences(depends_on), self.list
        last = self.launcher.last_event
        before = AllOf(events if last is None else [last, *events])
        if pending is None:
            self.launcher.after = [*self.launcher.after, *marked(events)]
            CHANGES.latest = object()
            return Event(before, waits_for=events)
        pending.wait_for(marked(events))
        if not pending.entries:
            return Event(before, waits_for=events)
        return Event(None, pending, len(pending.entries) - 1)

    def leave_fusion_mode(self, pending: SubmissionList, *, by_itself: bool = False) -> None:
        """The list ends; ``by_itself``: nobody has asked for that."""
        self.list = None
        self.last_list = pending
        if by_itself:
            self.ended = pending
        QUEUES.remove(self)

    def _leave_and_run(self, pending: SubmissionList, reason: str, *, by_itself: bool) -> None:
        ENDING.append(self)
        try:
            self.leave_fusion_mode(pending, by_itself=by_itself)
            self._run_unfused(pending, reason)
        finally:
            ENDING.remove(self)

    def run_single(self, entry: KnownSubmission, call: CallArguments) -> DeviceEvent | None:
        """Run one submission of a list by itself; its event, None if there was nothing to run."""
        return self.launcher.run_single(entry, call)

    def _run_unprepared(
        self, pending: SubmissionList, error: Exception, options: FusionOptions
    ) -> Exception | None:
        """Run unfused what could not be prepared; ``error`` if the user must know."""
        if isinstance(error, DeviceError):
            self._run_unfused(pending, f"the list could not be prepared: {error}")
            return None
        if isinstance(error, PlanningStopped):
            self.launcher.get_ready(pending)
            self.launcher.run_unfused(partial(self._run_each, pending, str(error)), error)
            pending.timings = error.timings
            pending.options = options  # by which it is planned on when it runs again
            return None
        self._run_unfused(pending, str(error))
        return error

    def _run_each(self, pending: SubmissionList, reason: str) -> None:
        """Run ``pending`` unfused, which ``auto`` may do many times."""
        if not QUEUES and not pending.launched:
            launcher = self.launcher
            pending.launched = launch_separate(launcher, pending) or launch_prepared(
                launcher, pending
            )
            if len(pending.launched) == len(pending.entries):
                pending.events = pending.launched
                pending.end_unfused(reason)
                return
        self._run_unfused(pending, reason)

    def _runs_with_others(self, pending: SubmissionList) -> bool:
        """Let run what other queues' lists hold that must come before ``pending``.  Whether
        ``pending`` had to run among them, because they in turn need a part of it first."""
        from fusionq.runtime.ordering import lists_before, precedes

        before = lists_before(pending, _waiting_lists())
        if any(precedes(pending, other) for other in before):
            self._run_unfused(pending, CIRCULAR)
            warn_ended(pending, CIRCULAR)
            return True
        if before:
            end_together(before)
        return False

    def _run_unfused(self, pending: SubmissionList, reason: str) -> None:
        """Run ``pending``, which has left fusion mode, one by one, and with it what other
        queues' lists hold that must come before."""
        before = []
        if QUEUES:
            from fusionq.runtime.ordering import lists_before

            before = lists_before(pending, _waiting_lists())
        end_together(before, {pending: reason})

    def _event_of_all(self, pending: SubmissionList) -> Event:
        if pending.error is not None:
            raise pending.error
        event = NewEvent()
        event._list, event._waits_for = None, ()
        event._device_event = self.launcher.last_event if pending.entries else None
        return event

    def uses(self, region: MemoryRegion, stores: bool = True) -> bool:
        """Whether the list must run before a command that uses ``region`` (``stores``: writes
        to it)."""
        pending = self.list
        return pending is not None and any(
            (stores or list_stores) and region.overlaps(other)
            for other, list_stores in pending.accesses()
        )

    def end_lists_before(self, submissions: SubmissionList) -> None:
        """End the fusion of other queues whose lists must run before ``submissions``."""
        accesses = list(submissions.accesses())
        for queue in tuple(QUEUES):
            if queue is not self and any(queue.uses(region, how) for region, how in accesses):
                queue.abort("a kernel that is not in the list depends on it")

    def wait(self) -> None:
        """Block until all that was submitted has run; ends fusion mode."""
        if NOTED:
            run_noted()
        pending = self.list
        if pending is not None:
            pending.abort("FusionQueue.wait()")
        for event in self.launcher.after:
            event.wait()
        self.launcher.wait_for_timed()
        self.launcher.backend.wait()
        with LOCK:
            self.launcher.forget_finished()
        last = self.launcher.last_event
        if last is not None:  # it has run; a persistent kernel says how it ended
            last.wait()
        if pending is not None and pending.error is not None:
            raise pending.error

    def close(self, wait: bool = True) -> None:
        """End fusion mode, wait unless told not to, and take no more submissions."""
        if self.closed:
            return
        with LOCK:
            self.abort("the queue was closed")
            self.closed = True
            CHANGES.latest = object()
            self.launcher.clear()
            self.temporaries.clear()
        if wait:
            self.wait()
        self.launcher.backend.trim()


def _waiting_lists() -> list[SubmissionList]:
    """The lists of all queues in fusion mode."""
    return [queue.list for queue in _states if queue.list is not None]


def all_queues() -> list[QueueState]:
    """The queues that there are."""
    with LOCK:
        return list(_states)


@atexit.register
def _end_of_program() -> None:
    """Run what still waits for the end of a fusion.  Kernels in flight must not outlive the memory
    that the interpreter frees."""
    run_noted()
    for queue in tuple(_states):
        with told_as_warnings():
            queue.abort("the program ended in fusion mode")
    try:
        for queue in tuple(_states):
            queue.launcher.wait()
        wait_for_the_rest()
    except KeyboardInterrupt:
        # The interpreter would free memory that a kernel still uses.
        print("fusionq: the program ends while the device still runs kernels", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
