"""``with profile(queue) as p:``, what the kernels inside did with their time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError, FusionStateError
from fusionq.base.options import check_flags, check_names, is_one_of
from fusionq.profiling.instrumentation import Instrumentation
from fusionq.profiling.instrumented_plan import RecordOptions
from fusionq.profiling.model import ProfileResults
from fusionq.profiling.recorder import Recorded
from fusionq.profiling.regions import Overflow
from fusionq.profiling.session import ProfiledList, QueueSession, SessionOptions, timeline_of
from fusionq.profiling.stages import RecordStages
from fusionq.profiling.timeline import Timeline
from fusionq.runtime.launcher import Launcher, launcher_listeners
from fusionq.runtime.queue import FusionQueue
from fusionq.runtime.state import all_queues

_OVERFLOWS = ("truncate", "ring", "aggregate")


def profile(
    queue: FusionQueue | None = None,
    *,
    passes: Iterable[Instrumentation] = (),
    stages: bool = True,
    overflow: Overflow = "truncate",
    occurrences: int = 64,
    every: int | None = None,
    buffer_bytes: int = 64 << 20,
    compare: bool = True,
    compare_bytes: int = 8 << 30,
    **unknown: NoReturn,
) -> Profile:
    """A context manager: what ``queue`` (None: every queue) launches inside is measured.

    ``passes``: instrumentation of your own, before the one for stages and barriers, which
    ``stages=False`` leaves out.
    ``overflow``: what to do with more records than fit: ``truncate`` keeps the first, ``ring`` the
    last, ``aggregate`` keeps sum, least, greatest and number for each region instead of records.
    ``occurrences``: how many of one region in a loop of unknown length are kept for each
    work-group.  ``every``: one of so many work-groups records, which costs less where they are
    short; workers' times are then estimates, and there is no critical path.  None: all of a
    list's first launch (of its comparison, if there is one), then, where work-groups are short, so
    many that clock reads take 0.4 % of the time, at least 256.  Of persistent kernels all
    tiles record, and ``overflow`` other than ``truncate`` is refused (ArgumentError).
    ``buffer_bytes``: memory for the records of one kernel.
    ``compare``: run each fused list five more times fused and unfused alternately, on copies of the
    memory that it writes (no more than ``compare_bytes``), before it runs the first time.
    Of profiles inside each other the innermost sees the launches.

    Raises ArgumentError for options that there are not.
    """
    if unknown:
        check_names("profile", unknown, profile.__kwdefaults__ or ())
    check_flags("profile", {"stages": stages, "compare": compare})
    if queue is not None and not isinstance(queue, FusionQueue):
        raise ArgumentError(
            f"{user_span()}: profile() takes a FusionQueue, or None for all, not "
            f"{type(queue).__name__}"
        )
    if not is_one_of(overflow, _OVERFLOWS):
        raise ArgumentError(
            f"{user_span()}: overflow={overflow!r} is not one of {', '.join(_OVERFLOWS)}"
        )
    numbers = {
        "occurrences": occurrences, "every": every, "buffer_bytes": buffer_bytes,
        "compare_bytes": compare_bytes,
    }  # fmt: skip
    for name, value in numbers.items():
        if name == "every" and value is None:
            continue
        if type(value) is not int or value < (0 if name == "compare_bytes" else 1):
            least = "0" if name == "compare_bytes" else "1"
            raise ArgumentError(f"{user_span()}: {name}={value!r}; it is an int, at least {least}")
    try:
        own = tuple(passes)
    except TypeError:
        own = (passes,)  # type: ignore[assignment]  # which is refused
    if any(not isinstance(p, Instrumentation) for p in own):
        raise ArgumentError(
            f"{user_span()}: passes takes instances of fusionq.profiling.Instrumentation"
        )
    builtin: tuple[Instrumentation, ...] = (RecordStages(),) if stages else ()
    record = RecordOptions((*own, *builtin), overflow, occurrences, every, buffer_bytes, clock=None)
    return Profile(queue, SessionOptions(record, compare, compare_bytes))


class Profile(ProfileResults):
    """One profile.  After the block: what was measured (``timeline``), what it means (the other
    properties; nanoseconds), and ways to show it.  ``print(p)`` gives the summary.

    ``everything``: the timeline with the launches that were made for comparison.  ``works``: the
    lists that ran.  ``counters``: what ``profiling.count`` counted, by name.
    """

    def __init__(self, queue: FusionQueue | None, options: SessionOptions) -> None:
        self._queue = queue
        self._options = options
        self._recorded = Recorded()
        self._sessions: list[QueueSession] = []
        self._everything: Timeline | None = None
        self.works: list[ProfiledList] = []

    # -------------------------------------------------------------------------- the block
    def __enter__(self) -> Profile:
        if self._everything is not None or self._sessions:
            raise FusionStateError(f"{user_span()}: a profile is taken once; make another one")
        queues = all_queues() if self._queue is None else [self._queue._state]
        for queue in queues:
            self._open(queue.launcher)
        if self._queue is None:
            launcher_listeners.append(self._open)
        return self

    def _open(self, launcher: Launcher) -> None:
        session = QueueSession(launcher, self._options, self._recorded, self.works)
        self._sessions.append(session)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._queue is None:
            launcher_listeners.remove(self._open)
        for session in self._sessions:
            session.close()
        clock = next((s.clock for s in self._sessions if s.clock is not None), None)
        reason = next((s.no_clock for s in self._sessions if s.no_clock is not None), None)
        self._everything = timeline_of(self._recorded, clock, reason)

    @property
    def _compute_units(self) -> int:
        return max((s.backend.info.compute_units for s in self._sessions), default=1)

    @property
    def _time_slice_ns(self) -> int:
        return min((s.backend.target.time_slice_ns for s in self._sessions), default=0)

    # ------------------------------------------------------------------------- the results
    @property
    def everything(self) -> Timeline:
        """All that was recorded.  FusionStateError inside the block."""
        if self._everything is None:
            raise FusionStateError(
                f"{user_span()}: a profile has results behind the `with profile(queue)` block"
            )
        return self._everything

    # -------------------------------------------------------------------------- showing it
    def summary(self) -> str:
        """Plain text, the worst thing first."""
        from fusionq.profiling.summary import summary

        return summary(self)

    def __str__(self) -> str:
        return self.summary() if self._everything is not None else "<Profile being taken>"

    def to_dict(self) -> dict[str, Any]:
        """All results in plain types, units in the names; JSON can hold it."""
        from fusionq.profiling.export import to_dict

        return to_dict(self)

    def trace(self, path: str | Path) -> None:
        """Write a Perfetto trace (https://ui.perfetto.dev opens it); needs the extra
        ``profile``."""
        from fusionq.profiling.trace import write_trace

        write_trace(self, Path(path))

    def plot(self, path: str | Path) -> None:
        """Draw the timeline (png, svg, pdf); needs the extra ``profile``."""
        from fusionq.profiling.plot import draw_timeline

        draw_timeline(self, Path(path))
