"""Running submissions: through the caches, in order, with what other queues do in mind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Protocol

from fusionq.analysis.submission import Operands
from fusionq.backends.base import Backend, DeviceEvent
from fusionq.backends.interruptible import keep_until_run
from fusionq.base.call_site import located, user_span
from fusionq.base.changes import CHANGES
from fusionq.base.errors import (
    ArgumentError,
    DeviceError,
    FusionAborted,
    FusionRefused,
    PromotionConflict,
)
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.base.phases import timed
from fusionq.execution.planning_time import PlanningStopped
from fusionq.memory.storage import Storage
from fusionq.runtime.alike_lists import chosen_run
from fusionq.runtime.built_together import BuiltTogether
from fusionq.runtime.event import usable_dependences
from fusionq.runtime.prepared_launches import (
    has_run_unfused,
    has_separate_launches,
    launch_prepared,
)
from fusionq.runtime.queue_cache import QueueCache
from fusionq.runtime.steady_blocks import SteadyBlocks, blocks_of
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import KnownSubmission, use_numbers
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, RunChooser
from fusionq.submission.same_sizes import Alike


class Profiler(Protocol):
    """Gives the runs of a queue while a profile of it is taken."""

    def run_for(self, pending: SubmissionList, options: FusionOptions) -> PreparedRun:
        """A run of the list, with its present scalar values, that records; raises what
        preparing one does."""


class NotPrepared(Exception):
    """A list could not be prepared; nothing of it has run.  ``error`` says why: FusionRefused,
    PromotionConflict, ArgumentError, PlanningStopped where there is no plan in time, or
    DeviceError where a kernel cannot be built or memory not be allocated."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


NOT_PREPARED = (
    FusionRefused, PromotionConflict, ArgumentError, PlanningStopped, DeviceError,
    FusionAborted,  # a warning that a filter makes an error of
)  # fmt: skip


launcher_listeners: list[Callable[[Launcher], object]] = []
"""Called with each new Launcher; for tools."""


class Launcher:
    """One backend's launches, and the memory that they use while they run.

    ``last_event`` is that of the latest launch; the backend keeps launches in order.
    """

    __slots__ = (
        "__weakref__", "_built", "_in_flight", "_preparing", "_steady", "_timed", "after",
        "backend", "cache", "last_event", "profiler",
    )  # fmt: skip

    def __init__(self, backend: Backend, cache: QueueCache) -> None:
        self.backend = backend
        self.cache = cache
        self.last_event: DeviceEvent | None = None
        self._timed: DeviceEvent | None = None
        """That of the latest launch whose time is wanted."""
        self._in_flight: deque[tuple[DeviceEvent, Sequence[object]]] = deque()
        self.after: Sequence[DeviceEvent] = ()
        """What the next launch waits for, and so all later ones."""
        self._preparing: Any = None
        """The module ``execution.prepare``, from when it is first needed."""
        self.profiler: Profiler | None = None
        """Where runs come from while a profile is taken."""
        self._built = BuiltTogether()
        self._steady: SteadyBlocks | None = None
        """What launches the last list once more, where it can be told to."""
        for listener in launcher_listeners:
            listener(self)

    def clear(self) -> None:
        """Forget what was prepared."""
        self.cache.clear()
        self._steady = None

    def run_list(self, pending: SubmissionList, options: FusionOptions) -> None:
        """Run a list as its plan says.  NotPrepared; DeviceError and ArgumentError of its
        launches."""
        cache = self.cache
        if cache.stale:
            cache.drop_stale()
            self._steady = None
        try:
            if self.profiler is not None and pending.entries:
                self._bring(pending.memory)
                run: PreparedRun | None = self.profiler.run_for(pending, options)
            else:
                key = options, *pending.entries
                run = cache.runs.get(key)
                chooser = None if run is not None else cache.unfused.get(key)
                if chooser is not None and has_run_unfused(self, pending, chooser, options):
                    return
            values = pending.values
            if run is None or (values and not run.rebind(values, pending.operands)):
                run = self._prepare(pending, options)
                pending.cache, pending.timings = run.cache, run.timings
            elif run.is_trial:
                run = self._next(run.adaptive, pending, options)
            elif run.as_one is not None:
                run.will_be_repeated()
        except NOT_PREPARED as error:
            raise NotPrepared(error) from error
        run.last_use = next(use_numbers)
        steady = self._steady
        if steady is not None and steady.run is run:
            launched = steady.launch(self, pending)
            if launched is not None:
                pending.end(run, options, launched)
                return
        elif run.one is not None or run.single is not None:
            steady = self._steady = blocks_of(run)
        else:
            steady = None
        events = self._launch(run, run.used(pending.memory), pending.foreign, pending.depends)
        if steady is not None:
            steady.launched(pending)
        pending.end(run, options, events)

    def _next(
        self, chooser: RunChooser | None, pending: SubmissionList, options: FusionOptions
    ) -> PreparedRun:
        """The run of a list whose strategy is not chosen yet, as ``chooser`` says."""
        from fusionq.execution.adaptive import AdaptiveList

        assert isinstance(chooser, AdaptiveList), "trials are an AdaptiveList's"
        key = options, *pending.entries
        timings = dict(pending.admission)
        try:
            run = chooser.next_run(pending, timings)
        except PlanningStopped as stopped:
            self.cache.runs.pop(key, None)
            if stopped.chooser is None:
                self.cache.unfused.pop(key, None)
            elif all([entry.is_kept for entry in pending.entries]):
                self.cache.add_unfused(key, stopped.chooser)
            raise
        pending.timings = timings
        if run.timings is timings:
            pending.cache = run.cache
        if all([entry.is_kept for entry in pending.entries]):
            self.cache.add_run(key, run)
        return run

    def run_unfused(self, launch: Callable[[], object], reason: PlanningStopped) -> None:
        """Let ``launch`` run each submission of a list by itself, for ``reason``."""
        chooser = reason.chooser
        if chooser is None:
            launch()
            return

        def launched() -> DeviceEvent | None:
            launch()
            return self.last_event

        last = chooser.launch_unfused(launched, self.last_event)
        if last is not None:
            self.last_event = self._timed = last

    def get_ready(self, pending: SubmissionList) -> None:
        """Have launches of a list that will run one by one; else build at once what its submissions
        still need."""
        if not has_separate_launches(self, pending, self._plain_run) and self.profiler is None:
            self._built.build(self.backend, pending)

    def run_single(self, entry: KnownSubmission, call: CallArguments) -> DeviceEvent | None:
        """Run one submission by itself; its event, None if there was nothing to run."""
        run = entry.plain
        if run is None or call.values:
            run = self._plain_run(entry, call)
        if self.profiler is not None:
            self._bring(call.memory)
            run = self.profiler.run_for(SubmissionList.of([entry], call), UNFUSED)
        return self._launch(run, run.used(call.memory), call.foreign, call.depends)[0]

    def run_like(
        self,
        like: KnownSubmission,
        sized: Callable[[], KnownSubmission | None],
        sizes: object,
        operands: Operands,
        call: CallArguments,
    ) -> Sequence[DeviceEvent | None] | None:
        """As ``run_single``, of a submission that is recorded nowhere: ``like`` another one, but
        for its ``operands``; ``sizes`` is equal for those of its sizes, and ``sized`` gives what
        stands for these, if it is known.  None, and nothing happens, where there are no launches of
        such submissions yet."""
        if self.profiler is not None:
            return None
        memory, cache, backend = call.memory, self.cache, self.backend
        run = cache.resized.run_of_one(backend, like, sizes, operands, memory)
        if run is None:
            of_sizes = sized()
            if of_sizes is None:
                return None
            run = cache.by_sizes.moved(backend, of_sizes, operands.places, memory, call.values)
            if run is None:
                return None
        return self._launch(run, run.used(memory), call.foreign, call.depends)

    def _plain_run(self, entry: KnownSubmission, call: CallArguments) -> PreparedRun:
        if not entry.is_kept and entry.sized is not None:  # else nothing has been like it
            places = entry.deferred.operands.places
            moved = self.cache.by_sizes.moved(
                self.backend, entry.sized, places, call.memory, call.values
            )
            if moved is not None:
                return moved
        run = entry.plain
        if run is None or not run.rebind(call.values, partial(_operands, entry, call)):
            run = self._new_run(SubmissionList.of([entry], call), UNFUSED, entry.is_kept)
            if entry.is_kept:
                entry.plain = run
        return run

    def run_again(self, ended: SubmissionList, call: CallArguments) -> None:
        """Launch a list that has run once more, with the memory and the scalars of ``call``."""
        run = ended.run
        if (
            run is None
            or call.values
            or run.moves != Storage.moves
            or run.as_one is not None
            or run.is_trial
            or run.profiled
            or self.profiler is not None
        ):
            try:
                run = self._run_again(ended, call)
            except PlanningStopped as reason:
                self.run_unfused(partial(self._one_by_one, ended, call), reason)
                return
        self._launch(run, run.used(call.memory), call.foreign, call.depends)

    def _one_by_one(self, ended: SubmissionList, call: CallArguments) -> None:
        again, depends = SubmissionList.of(ended.entries, call), call.depends
        again.depends = depends
        launched = launch_prepared(self, again)
        for entry, own in islice(again.calls(), len(launched), None):
            own.depends = depends  # of the first; the others run after it
            self.run_single(entry, own)
            depends = ()

    def _run_again(self, ended: SubmissionList, call: CallArguments) -> PreparedRun:
        """The run for one more time, where it may not be the last one as it is."""

        def again() -> SubmissionList:
            return SubmissionList.of(ended.entries, call)

        run = before = ended.run
        if run is not None and run.moves != Storage.moves and not run.is_in_place():
            run = ended.run = self._prepare(again(), ended.options)
        if self.profiler is not None or (run is not None and run.profiled):
            run = ended.run = self._run_of(again(), ended.options)
        elif run is None:
            run = ended.run = self._prepare(again(), ended.options)
        elif run.is_trial:
            run = ended.run = self._next(run.adaptive, again(), ended.options)
        elif call.values and not run.rebind(call.values, lambda: again().operands()):
            run = self._prepare(again(), ended.options)
        if run is not before:
            CHANGES.latest = object()
        if run.as_one is not None:
            run.will_be_repeated()
        return run

    def _run_of(self, again: SubmissionList, options: FusionOptions) -> PreparedRun:
        """The run of a list that has run before, with a profile or without."""
        if self.profiler is not None:
            return self.profiler.run_for(again, options)
        return self._prepare(again, options)

    def _bring(self, memory: Sequence[object]) -> None:
        """Let the memory that has been allocated move to where the backend reaches it."""
        for held in memory:
            if isinstance(held, Storage) and held.address is not None and held.owned:
                held.make_reachable(self.backend)

    def _prepare(self, pending: SubmissionList, options: FusionOptions) -> PreparedRun:
        if not pending.entries:
            from fusionq.execution.prepare import empty_run

            return empty_run()
        if self.cache.unfused:
            run = self._instead_of_unfused(pending, options)
            if run is not None:
                return run
        is_kept = all([entry.is_kept for entry in pending.entries])
        try:
            run = self._new_run(pending, options)
        except PlanningStopped as stopped:
            if stopped.chooser is not None and is_kept:
                self.cache.add_unfused((options, *pending.entries), stopped.chooser)
                self._watch(pending)
            raise
        if is_kept:
            self.cache.add_run((options, *pending.entries), run)
            self._watch(pending)
        return run

    def _watch(self, pending: SubmissionList) -> None:
        """Have the queue's cache forget what belongs to memory of the list when that dies."""
        for held in pending.memory:
            if isinstance(held, Storage):
                held.watch(self.cache.stale)

    def _instead_of_unfused(
        self, pending: SubmissionList, options: FusionOptions
    ) -> PreparedRun | None:
        """The run of a list that has run unfused until now, since its strategy is not chosen yet;
        None if it has not.  PlanningStopped where it does so once more."""
        key = options, *pending.entries
        chooser = self.cache.unfused.get(key)
        if chooser is None:
            return None
        if chooser.untimed:
            chooser.untimed -= 1
            raise PlanningStopped(chooser.reason)
        self._bring(pending.memory)
        run = self._next(chooser, pending, options)
        self._watch(pending)
        self.cache.unfused.pop(key, None)
        return run

    def _new_run(
        self, pending: SubmissionList, options: FusionOptions, is_kept: bool = True
    ) -> PreparedRun:
        """Launches of the list: those of another one in other memory, or prepared from the plan.
        Unless they are kept, they are launched now."""
        if options.tune or options.check:
            self._bring(pending.memory)
            return self._planned_run(pending, options)
        backend, cache = self.backend, self.cache
        return cache.by_sizes.run_for(
            backend,
            pending,
            options,
            partial(self._chosen_run, pending, options),
            is_kept,
            partial(cache.resized.run_for, backend, pending, options),
        )

    def _chosen_run(
        self, pending: SubmissionList, options: FusionOptions, alike: Alike
    ) -> PreparedRun:
        def next_run(chooser: RunChooser) -> PreparedRun:
            self._bring(pending.memory)
            return self._next(chooser, pending, options)

        prepare = partial(self._planned_run, pending, options, alike.memories)
        try:
            return chosen_run(alike, prepare, next_run)
        except PlanningStopped:
            pending.alike = alike
            raise

    def _planned_run(
        self,
        pending: SubmissionList,
        options: FusionOptions,
        memories: tuple[int, ...] | None = None,
    ) -> PreparedRun:
        if self._preparing is None:
            with timed(pending.admission, "import"):
                from fusionq.execution import prepare

                self._preparing = prepare
        run: PreparedRun = self._preparing.prepare(
            self.backend, pending, options, memories, self.cache.resized
        )
        return run

    def _launch(
        self,
        run: PreparedRun,
        storages: Sequence[Storage],
        foreign: Sequence[object],
        depends: Sequence[DeviceEvent],
    ) -> Sequence[DeviceEvent | None]:
        """Launch after ``depends`` and after what other queues do with the storages; each
        storage remembers the event."""
        backend = self.backend
        for storage in storages:
            if storage.last_backend is not backend:
                if storage.last_event is not None:
                    depends = [*depends, storage.last_event]
                storage.last_backend = backend
                CHANGES.latest = object()
        if self.after:
            depends, self.after = [*depends, *self.after], ()
        if depends:
            depends = usable_dependences(backend, depends)
        try:
            chooser = run.adaptive
            if chooser is None:
                events, last = run.launch(depends)
            elif chooser.untimed:
                chooser.untimed -= 1
                events, last = run.launch(depends)
            else:
                events, last = chooser.launch(run, depends, self.last_event)
                self._timed = last
        except BaseException as error:
            self.failed(error)
            raise
        if last is not None:
            self.has_launched(last, storages, foreign)
        return events

    def has_launched(
        self, last: DeviceEvent, storages: Sequence[Storage], foreign: Sequence[object]
    ) -> None:
        """What was launched last, on this backend, uses these storages and foreign arrays."""
        self.last_event = last
        for storage in storages:
            storage.last_event = last
        if foreign:
            self.forget_finished()
            self._in_flight.append((last, foreign))

    def failed(self, error: BaseException) -> None:
        """What was launched before ``error`` has run; a DeviceError is raised with the user's
        line."""
        with suppress(DeviceError):  # the first error says why
            self.backend.wait()
        if isinstance(error, DeviceError):
            raise type(error)(located(user_span(), str(error))) from error

    def forget_finished(self) -> None:
        """Let go of foreign arrays that no launch uses any longer."""
        while self._in_flight and self._in_flight[0][0].complete:
            self._in_flight.popleft()

    def wait_for_timed(self) -> None:
        """Block until the last launch has run, if its time is wanted."""
        timed, self._timed = self._timed, None
        if timed is not None and timed is self.last_event:
            from fusionq.execution.run_times import TimedEvent

            if isinstance(timed, TimedEvent):
                timed.see_end()

    def wait(self) -> None:
        """Block until all that was launched has run."""
        self.wait_for_timed()
        self.backend.wait()
        self.forget_finished()

    def __del__(self) -> None:
        if self._in_flight:
            keep_until_run(self._in_flight[-1][0], self._in_flight, self.backend)


def _operands(entry: KnownSubmission, call: CallArguments) -> Sequence[Operands]:
    return SubmissionList.of([entry], call).operands()
