"""The promotion that users flag buffers and accessors for."""

from __future__ import annotations

from fusionq.analysis.submission import ArrayArgument, Promotion, Submission
from fusionq.base.errors import PromotionConflict
from fusionq.base.options import FusionOptions


def check_flags(submission: Submission) -> None:
    """Raise PromotionConflict if an accessor contradicts its buffer."""
    for argument in submission.arguments:
        if not isinstance(argument, ArrayArgument):
            continue
        buffer, accessor = argument.buffer_flag, argument.access_flag
        if buffer and accessor and buffer != accessor:
            raise PromotionConflict(
                f"`{argument.text}`, submitted at {submission.span}, is flagged for {buffer} "
                f"promotion and its access for {accessor}: flag one of the two, or both alike"
            )


def is_flagged(argument: ArrayArgument, options: FusionOptions) -> bool:
    """Whether the user wants an argument's buffer promoted."""
    return bool(flag_of(argument)) or (options.promote == "internal" and argument.internal)


def flag_of(argument: ArrayArgument) -> Promotion | None:
    """What the user has flagged an argument's buffer for."""
    return argument.access_flag or argument.buffer_flag
