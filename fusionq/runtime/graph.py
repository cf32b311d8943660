"""Graphs: lists that are recorded once, without running, and launched many times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fusionq.analysis.submission import ScalarValue
from fusionq.backends.base import DeviceEvent
from fusionq.base.call_site import user_span, warn_aborted
from fusionq.base.errors import ArgumentError, FusionStateError
from fusionq.base.not_copied import NotCopied
from fusionq.base.options import ErrorModel
from fusionq.base.target import Target
from fusionq.memory.buffer import Buffer
from fusionq.memory.fusing_queues import LOCK
from fusionq.memory.gpu_arrays import marked, work_before_all
from fusionq.memory.storage import Storage
from fusionq.runtime.changes import changed_arrays, changed_values
from fusionq.runtime.event import AllOf, Event, as_dependences, device_event_of, raise_failure
from fusionq.runtime.fusion import Fusion, fusion
from fusionq.runtime.queue import FusionQueue
from fusionq.runtime.queue_cache import KnownHere
from fusionq.runtime.steady_replay import Replayable, SteadyReplay
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import KnownSubmission
from fusionq.submission.pending import SubmissionList

if TYPE_CHECKING:
    from fusionq.report.report import Report


_NOT_AS_BEFORE = Event()
"""Of a launch that did not happen."""


class _AsBefore(Replayable):
    """A graph's launches where nothing has changed; ``_NOT_AS_BEFORE`` where something has."""

    __slots__ = ()

    def __init__(self) -> None:
        self._steady = None

    def _replayed(self, changed: Mapping[str, ScalarValue]) -> Event:
        return _NOT_AS_BEFORE


class Graph(NotCopied):
    """Submissions that are recorded once and launched many times.

    ``with graph.record(queue):`` records what is submitted to the queue, and runs none of it.
    Several queues are recorded one after the other; a part waits for what it shares Buffers with,
    and for the parts whose events are in its ``depends_on``.  ``launch`` runs all of it, each part
    fused as in ``with fusion(queue):``; from the second time on as ``Fusion.replay`` does.  The
    graph keeps the memory that it uses.

    Source: SYCL-Graph (sycl_ext_oneapi_graph), CUDA graphs.
    """

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._recording: Recording | None = None
        self._again = _AsBefore()

    def __repr__(self) -> str:
        count = sum(len(part.list.entries) for part in self._parts)
        return f"<Graph of {count} submissions in {len(self._parts)} parts>"

    def record(self, queue: FusionQueue, **options: Any) -> Recording:
        """A context manager: what is submitted to ``queue`` in the block becomes another part of
        the graph; ``options`` as of ``fusionq.fusion``.

        In the block copies and fills are recorded as in a fusion.  What needs a result ends the
        recording with a FusionStateError, since nothing runs: ``event.wait()``, ``queue.wait()``,
        ``host_task``, copies of arrays of the host.  Buffers can be read and written; they have
        the contents that they had.  With an exception in the block the graph stays as it was.

        ArgumentError for what is no queue and for options that are none; FusionStateError while
        the queue is in fusion mode, or the graph records.
        """
        if not isinstance(queue, FusionQueue):
            raise ArgumentError(
                f"{user_span()}: record() takes a FusionQueue, not {type(queue).__name__}; write "
                "`with graph.record(queue):`"
            )
        fusion(queue, **options)  # which checks them
        return Recording(self, queue, options)

    def update(self, graph: Graph | None = None, /, **changed: ScalarValue | Buffer) -> None:
        """Give the next launches other arguments, named as in the ``submit`` calls or by the
        kernels' parameters: scalars of the same types, and Buffers of the same shape, layout,
        dtype and flags.  Or take all arguments of ``graph``, which was recorded from the same
        kernels on the same queues, of any sizes.

        ArgumentError, and nothing changed, for what does not fit.
        """
        with LOCK:
            self._check_not_recording("update")
            self._again._steady = None
            if graph is not None:
                self._take_over(graph)
            if changed:
                self._change(changed)

    def _take_over(self, other: Graph) -> None:
        if not isinstance(other, Graph):
            raise ArgumentError(
                f"{user_span()}: update takes a Graph, or arguments by name: update(factor=2.0)"
            )
        other._check_not_recording("update")
        mine, theirs = ([part.kind for part in g._parts] for g in (self, other))
        if mine != theirs:
            raise ArgumentError(
                f"{user_span()}: update(graph) takes a graph of the same kernels, in the same "
                f"order on the same queues; this one has {_names(self)}, that one {_names(other)}"
            )
        for part, its in zip(self._parts, other._parts, strict=True):
            part.becomes(its.list)

    def _change(self, changed: dict[str, ScalarValue | Buffer]) -> None:
        whole = _joined([part.list for part in self._parts])
        scalars, buffers = {}, {}
        for name, value in changed.items():
            if isinstance(value, Buffer):
                buffers[name] = value
            else:
                scalars[name] = value
        if scalars:
            values = changed_values(whole, scalars, "update")
            call = CallArguments.of(whole.memory, whole.foreign, values)
            whole = SubmissionList.of(whole.entries, call)
        if buffers:
            whole = changed_arrays(whole, buffers)
        calls = whole.calls()
        for part in self._parts:
            own = _joined(
                [
                    SubmissionList.of([entry], call)
                    for _, (entry, call) in zip(part.list.entries, calls, strict=False)
                ]
            )
            if buffers:
                part.becomes(own)
            else:
                part.list = own

    def launch(self, depends_on: Event | Iterable[object] = ()) -> Event:
        """Run the graph, after the events of ``depends_on``; the event of all of it.

        Where its queue is in fusion mode, a graph of one part joins that list.  A graph of nothing
        warns, with FusionAborted.  Raises what the end of a fusion does; FusionStateError while the
        graph records, on a closed queue, and for several parts of which a queue is in fusion mode.
        """
        if type(depends_on) is tuple and not depends_on:
            repeated = self._again.replay()
            if repeated is not _NOT_AS_BEFORE:
                return repeated
        with LOCK:
            self._check_not_recording("launch")
            if not any(part.list.entries for part in self._parts):
                warn_aborted(
                    "nothing was recorded in this graph, so its launch does nothing; record "
                    "submissions in `with graph.record(queue):` first"
                )
            if len(self._parts) == 1:
                part = self._parts[0]
                launched = part.launch(_events(depends_on))
                self._again._steady = part.steady()
                return launched
            for part in self._parts:
                if part.queue.is_in_fusion_mode():
                    raise FusionStateError(
                        f"{user_span()}: a graph of several parts is launched while {part.queue!r} "
                        "is in fusion mode; launch it behind the block"
                    )
            before = _events(depends_on)
            events: dict[_Part, list[DeviceEvent]] = {}
            for part in self._parts:
                waits = [event for other in part.after for event in events[other]]
                event = device_event_of(part.launch([*before, *waits]))
                events[part] = [] if event is None else [event]
            return Event(AllOf([event for own in events.values() for event in own]))

    @property
    def reports(self) -> tuple[Report, ...]:
        """What became of each part when it ran for the first time, or after an update of its
        Buffers.  FusionStateError before."""
        fusions = [part.fusion for part in self._parts]
        if None in fusions:
            raise FusionStateError(f"{user_span()}: there is no report before launch()")
        return tuple(f.report for f in fusions if f is not None)

    def _check_not_recording(self, what: str) -> None:
        if self._recording is not None:
            raise FusionStateError(
                f"{user_span()}: {what} belongs behind the `with graph.record(queue)` block"
            )


class Recording(NotCopied):
    """What ``Graph.record`` gives: owns the list that the queue's submissions join in the block."""

    def __init__(self, graph: Graph, queue: FusionQueue, options: dict[str, Any]) -> None:
        self._graph = graph
        self._queue = queue
        self._options = options
        self._error_model: ErrorModel = options.get("error_model") or queue._state.error_model
        self._list: SubmissionList | None = None
        self._after: list[_Part] = []

    def __enter__(self) -> Recording:
        with LOCK:
            self._graph._check_not_recording("another recording")
            self._list = self._queue._state.begin_list(self)
            self._queue._known = KnownHere(self._queue._state.launcher.cache.known)
            self._graph._recording, self._graph._again._steady = self, None
            self._error_model = self._queue._state.exchange_error_model(self._error_model)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pending = self._list
        assert pending is not None
        with LOCK:
            self._error_model = self._queue._state.exchange_error_model(self._error_model)
            self._graph._recording = None
            ended_early = pending.error
            if ended_early is None:
                call = CallArguments.of(pending.memory, pending.foreign, pending.values)
                recorded = SubmissionList.of(pending.entries, call)
                self.leave_fusion_mode(pending, by_itself=False)
                pending.fail(
                    FusionStateError(
                        f"{user_span()}: a graph has recorded this submission; wait for the event "
                        "that its launch() returns"
                    )
                )
                if kind is None:
                    part = _Part(self._queue, self._options, recorded, self._after, pending)
                    self._graph._parts.append(part)
        if ended_early is not None and kind is None:
            raise ended_early

    # ---------------------------------------------------------------- as the list's owner
    @property
    def target(self) -> Target:
        """The device as the compiler sees it."""
        return self._queue._state.target

    def abort_list(self, pending: SubmissionList, cause: str) -> None:
        """Something needs a result of the list: end the recording, which has none."""
        with LOCK:
            if pending.ended:
                return
            self.leave_fusion_mode(pending, by_itself=True)
            pending.fail(
                FusionStateError(
                    f"{user_span()}: the recording of a graph was ended by {cause}, since nothing "
                    "that is recorded runs before launch(); do that behind the block"
                )
            )

    def leave_fusion_mode(self, pending: SubmissionList, *, by_itself: bool) -> None:
        """The queue's submissions join the list no longer."""
        self._queue._state.list = None
        self._queue._known = self._queue._state.launcher.cache.known

    def run_single(self, entry: KnownSubmission, call: CallArguments) -> DeviceEvent | None:
        """Run one submission by itself; its event, None if there was nothing to run."""
        return self._queue._state.run_single(entry, call)

    def runs_after(self, pending: SubmissionList, other: object) -> bool:
        """Whether ``other`` is an earlier part of the graph, which this one runs after from now
        on."""
        for part in self._graph._parts:
            if part.recorded_as is other:
                self._after.append(part)
                return True
        return False


class _Part:
    """A recorded list of one queue, with the arguments of the next launch; ``after``: the parts
    whose events it depends on."""

    def __init__(
        self,
        queue: FusionQueue,
        options: dict[str, Any],
        recorded: SubmissionList,
        after: list[_Part],
        recorded_as: SubmissionList,
    ) -> None:
        self.queue = queue
        self.options = options
        self.list = recorded
        self.after = after
        self.recorded_as = recorded_as
        """The list that the events of its submissions belong to."""
        self.fusion: Fusion | None = None
        """Of the first launch with these arrays."""

    @property
    def kind(self) -> object:
        """What has to be the same in a graph whose arguments this one takes over."""
        submissions = [entry.submission for entry in self.list.entries]
        return self.queue, [(s.fingerprint, s.signature) for s in submissions]

    def becomes(self, other: SubmissionList) -> None:
        """The next launches have the submissions of ``other``."""
        self.list, self.fusion = other, None

    def steady(self) -> SteadyReplay | None:
        """Replays of the list as it has just been launched; None where the next launch has more to
        ask for."""
        if self.fusion is None or self.queue._state.list is not None:
            return None
        ran, recorded = self.fusion._list, self.list
        assert ran is not None
        call = CallArguments.of(recorded.memory, recorded.foreign, recorded.values)
        return SteadyReplay.of(self.queue._state, ran, call)

    def launch(self, before: list[DeviceEvent]) -> Event:
        """Run the list, after the events of ``before``."""
        recorded, state = self.list, self.queue._state
        call = CallArguments.of(recorded.memory, recorded.foreign, recorded.values)
        call.depends = [*work_before_all(call.foreign), *before]
        if state.list is not None:
            return state.replay(recorded, call)
        if self.fusion is not None:
            ran = self.fusion._list
            assert ran is not None
            return state.replay(ran, call)
        if not recorded.entries:
            return Event()
        with fusion(self.queue, **self.options) as run:
            state.replay(recorded, call)
        self.fusion = run
        return run.event


def _joined(lists: list[SubmissionList]) -> SubmissionList:
    """One list of the submissions of several."""
    memory = [held for one in lists for held in one.memory]
    foreign = [held for held in memory if not isinstance(held, Storage)]
    call = CallArguments.of(memory, foreign, [value for one in lists for value in one.values])
    return SubmissionList.of([entry for one in lists for entry in one.entries], call)


def _events(depends_on: Event | Iterable[object]) -> list[DeviceEvent]:
    """``depends_on`` as device events; ends fusion modes whose lists they belong to."""
    found: list[DeviceEvent] = []
    for event in as_dependences(depends_on):
        if not isinstance(event, Event):
            found.append(event)
            continue
        if event._list is not None:
            event._list.abort("a graph's launch depends on an event of the list")
        raise_failure(event)
        native = device_event_of(event)
        if isinstance(native, AllOf):
            found += native.events
        elif native is not None:
            found.append(native)
    return marked(found)


def _names(graph: Graph) -> str:
    names = [entry.submission.name for part in graph._parts for entry in part.list.entries]
    return ", ".join(names) or "none"
