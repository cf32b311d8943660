"""Lists whose fusion mode has ended before they ran: they run unfused, and people are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from fusionq.base.call_site import user_span, warn_aborted
from fusionq.base.errors import FusionStateError
from fusionq.submission.pending import SubmissionList

if TYPE_CHECKING:
    from fusionq.report.report import Report

report_listeners: list[Callable[[Report], object]] = []
"""Called with the report of every list that has run; for tools."""


def end_together(
    others: Sequence[SubmissionList], reasons: Mapping[SubmissionList, str] = MappingProxyType({})
) -> None:
    """Run lists unfused in the order of submission: ``others``, whose fusion mode ends because
    what follows needs them, and those with ``reasons``, which have left it."""
    from fusionq.runtime.ordering import run_unfused

    cause = "another queue's kernels, which run now, depend on it"
    for other in others:
        assert other.owner is not None
        other.owner.leave_fusion_mode(other, by_itself=True)
    run_unfused({**dict.fromkeys(others, f"fusion mode ended: {cause}"), **reasons})
    for other in others:
        tell_listeners(other)
        warn_ended(other, cause)


def warn_ended(ended: SubmissionList, cause: str) -> None:
    if ended.entries:
        failed = "" if ended.error is None else f". Not all of it could be run: {ended.error}"
        warn_aborted(
            f"fusion mode ended, and its list of {len(ended.entries)} runs unfused: "
            f"{cause}; do that after the end of the fusion{failed}",
            ended.entries[-1].submission.span,
        )


def tell_listeners(ended: SubmissionList) -> None:
    if report_listeners:
        from fusionq.execution.reporting import report_for

        for listener in report_listeners:
            listener(report_for(ended))


def not_run(interrupt: BaseException) -> FusionStateError:
    """What the events of a list say whose fusion was interrupted, by Ctrl-C for example."""
    return FusionStateError(
        f"{user_span()}: {type(interrupt).__name__} interrupted the end of the fusion, so the list "
        "was not run; submit it again"
    )
