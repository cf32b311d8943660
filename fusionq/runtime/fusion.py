"""``with fusion(queue):``, what was submitted inside becomes as few kernels as is safe."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from fusionq.analysis.submission import ScalarValue
from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError, FusionStateError
from fusionq.base.options import (
    OPTIONS,
    Barriers,
    Check,
    ErrorModel,
    FusionOptions,
    Promote,
    Strategy,
    check_error_model,
    check_names,
    checked_options,
    options_from,
)
from fusionq.base.target import FloatMode
from fusionq.memory.gpu_arrays import work_before_all
from fusionq.runtime.changes import changed_values
from fusionq.runtime.event import Event
from fusionq.runtime.queue import FusionQueue
from fusionq.runtime.steady_replay import Replayable, SteadyReplay
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.pending import SubmissionList

if TYPE_CHECKING:
    from fusionq.report.report import Report


def fusion(
    queue: FusionQueue,
    *,
    strategy: Strategy = "auto",
    barriers: Barriers = "auto",
    require: bool = False,
    promote: Promote = "flagged",
    fp: FloatMode = "strict",
    tune: bool = False,
    check: Check = False,
    adapt: bool | None = None,
    error_model: ErrorModel | None = None,
    **unknown: NoReturn,
) -> Fusion:
    """A context manager: the queue is in fusion mode inside the block, and completes after it.

    ``strategy``: ``auto``, ``fused`` (as few launches as are legal, but for those that take a
    quarter longer by the model), ``megakernel``, ``overlap`` (who reads temporaries at
    bounded distances computes them anew, as in overlapped tiling), ``sequence`` or ``unfused``;
    what the analysis cannot prove safe is refused whatever is asked for.
    ``barriers``: ``auto`` (where a dependence needs one), ``all``, ``none``.
    ``require``: raise FusionRefused instead of falling back (the list has then run unfused).
    ``promote``: ``flagged`` (buffers with a promotion flag), ``internal`` (also those with
    ``internal=True``), ``none``.
    ``fp``: ``strict`` (bit for bit as without fusion) or ``fast`` (contraction allowed).
    ``tune``: measure, on copies of what the list writes, which strategy is the fastest for it, and
    remember that for later lists of the kind; only with ``strategy="auto"``.
    ``check``: test every access on the device, each submission in a launch of its own: the first
    one outside its array does not happen and raises ArgumentError at the end of the block, with
    kernel, line, work-item, index and extents.  ``"initialized"``: so does the first read of an
    element that nothing has written: of private and local arrays; of Buffers made from a shape
    whose memory is new with this list; and, in the list, of Buffers that ``promote`` is about.
    ``FUSIONQ_CHECK=1`` and ``FUSIONQ_CHECK=initialized`` do so for all that is submitted, outside
    fusion mode too.
    ``adapt``: True: with ``strategy="auto"``, a list runs first by what is there the soonest, and
    lists that come again try the strategies in their own runs, made ready by a worker process, and
    the fastest stays; False: the cost model alone chooses, and what it chooses is built at once;
    None: as ``FUSIONQ_ADAPT`` says, by default True on CPUs and on NVIDIA GPUs, False elsewhere.
    ``error_model``: of the kernels of numba-dpex that are submitted in the block; None: the queue's
    (see ``FusionQueue``).

    A list that is not planned after a second of processor time (``FUSIONQ_PLANNING_SECONDS``) and
    twice what it takes unfused runs unfused, with the reason in the report; the next list of its
    kind, or ``replay``, goes on planning where that stopped: with ``strategy="auto"`` for twice
    what it takes unfused, by the costs of launches and memory.  With ``"unfused"`` nothing is
    compared before the report is asked for.

    An exception in the block ends fusion mode, runs unfused what was submitted before it, and
    goes on.
    """
    if not isinstance(queue, FusionQueue):
        raise ArgumentError(
            f"{user_span()}: fusion() takes a FusionQueue, not {type(queue).__name__}; write "
            "`with fusion(queue) as f:`"
        )
    if unknown:
        check_names("fusion", unknown, (*OPTIONS, "error_model"))
    if error_model is not None:
        check_error_model(error_model)
    try:
        options = checked_options(strategy, barriers, require, promote, fp, tune, check, adapt)
    except TypeError:  # an option that has no hash, and so is none of the choices
        values = (strategy, barriers, require, promote, fp, tune, check, adapt)
        options = options_from(dict(zip(OPTIONS, values, strict=True)))
    return Fusion(queue, options, error_model)


class Fusion(Replayable):
    """One fusion.  After the block: ``event`` (of all of it), ``report``, ``replay()``."""

    __slots__ = (
        "_call", "_error_model", "_event", "_foreign", "_handle", "_list", "_memory", "_options",
        "_queue",
    )  # fmt: skip

    def __init__(
        self, queue: FusionQueue, options: FusionOptions, error_model: ErrorModel | None = None
    ) -> None:
        self._queue = queue._state
        self._handle: FusionQueue | None = queue
        """The user's queue, which lives at least as long as the block."""
        self._options = options
        self._error_model = error_model
        self._list: SubmissionList | None = None
        self._steady = None

    def __enter__(self) -> Fusion:
        self._list = self._queue.begin_list()
        self._list.is_kept = True
        self._list.asked = self._options
        if self._error_model is not None:
            self._error_model = self._queue.exchange_error_model(self._error_model)
        self._event: Event | None = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pending = self._list
        assert pending is not None
        if self._error_model is not None:
            self._error_model = self._queue.exchange_error_model(self._error_model)
        try:
            if kind is None:
                self._event = self._queue.end_list(pending, self._options)
            else:
                reason = f"an exception ended the block: {kind.__name__}: {error}"
                self._event = self._queue.end_list_unfused(pending, reason, quiet=True)
        except BaseException:
            self._event = Event(None, pending)
            raise
        finally:
            self._handle = None
            self._memory, self._foreign = pending.memory, pending.foreign
            """Kept for replays, while events keep none."""
            self._call: CallArguments | None = None
            """What a replay runs with."""
            pending.release_memory()

    @property
    def event(self) -> Event:
        """The event of the whole list.  FusionStateError inside the block."""
        if self._list is None or self._event is None:
            raise FusionStateError(
                f"{user_span()}: there is no event before the end of the `with fusion(queue)` block"
            )
        return self._event

    @property
    def report(self) -> Report:
        """What was fused, what was refused, and why.  FusionStateError inside the block."""
        ended = self._list
        if ended is None or not ended.ended:
            raise FusionStateError(
                f"{user_span()}: there is no report before the end of the `with fusion(queue)` "
                "block"
            )
        from fusionq.execution.reporting import report_for

        return report_for(ended)

    def _replayed(self, changed: Mapping[str, ScalarValue]) -> Event:
        ended = self._list
        if ended is None or not ended.ended or self._event is None:
            raise FusionStateError(
                f"{user_span()}: replay belongs behind the `with fusion(queue)` block, which runs "
                "the list for the first time"
            )
        call = self._call
        if call is None:
            call = self._call = CallArguments.of(self._memory, self._foreign, ended.values)
        if changed:
            values = changed_values(ended, changed)
            call = CallArguments.of(call.memory, call.foreign, values)
        if call.foreign:
            call.depends = work_before_all(call.foreign)
        event = self._queue.replay(ended, call)
        if not changed:
            self._steady = SteadyReplay.of(self._queue, ended, call)
        return event
