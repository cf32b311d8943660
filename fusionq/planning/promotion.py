"""Which of the flagged buffers can leave global memory, by the table in the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.private_footprint import PrivateFootprint, Use, private_footprint
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.errors import PromotionConflict
from fusionq.planning.plan import FusionOptions, PromotionDecision
from fusionq.planning.stages import Stage

Place = tuple[int, int]
"""A submission and the position of one of its arguments."""

LOCAL_NOT_YET = "local promotion is not in this version"


@dataclass(frozen=True, slots=True)
class Promotions:
    """The decisions, and for each stage the views (alias group, view) to make private."""

    decisions: tuple[PromotionDecision, ...]
    private: tuple[dict[tuple[int, int], PrivateFootprint], ...]


def check_flags(submission: Submission) -> None:
    """Raise PromotionConflict if an accessor contradicts its buffer."""
    for argument in submission.arguments:
        if not isinstance(argument, ArrayArgument):
            continue
        buffer, accessor = argument.buffer_flag, argument.access_flag
        if buffer and accessor and buffer != accessor:
            raise PromotionConflict(
                f"`{argument.label}`, submitted at {submission.span}, is flagged for {buffer} "
                f"promotion and its access for {accessor}: flag one of the two, or both alike"
            )


def promotions(
    analysis: ListAnalysis, stages: Sequence[Stage], options: FusionOptions
) -> Promotions:
    """Decide for every flagged buffer of the list."""
    decisions: list[PromotionDecision] = []
    private: list[dict[tuple[int, int], PrivateFootprint]] = [{} for _ in stages]
    for places in _flagged(analysis, options):
        found = _decide(analysis, stages, options, places)
        first, argument = places[0]
        if isinstance(found, str):
            scope, reason = "global", found
        else:
            index, footprint = found
            place = analysis.place[places[0]]
            private[index][place.group, place.view] = footprint
            scope, reason = "private", _reason(footprint)
        label = analysis.submissions[first].arguments[argument].label
        decisions.append(PromotionDecision(label, first, argument, scope, reason))  # type: ignore[arg-type]
    return Promotions(tuple(decisions), tuple(private))


def _flagged(analysis: ListAnalysis, options: FusionOptions) -> Iterator[list[Place]]:
    """The uses of each alias group in which something is flagged."""
    groups: dict[int, list[Place]] = {}
    for position, place in analysis.place.items():
        groups.setdefault(place.group, []).append(position)
    for places in groups.values():
        arguments = [_argument(analysis, p) for p in places]
        if any(_flag(a) for a in arguments) or (
            options.promote == "internal" and any(a.internal for a in arguments)
        ):
            yield places


def _decide(
    analysis: ListAnalysis,
    stages: Sequence[Stage],
    options: FusionOptions,
    places: Sequence[Place],
) -> tuple[int, PrivateFootprint] | str:
    """The stage and footprint to promote, or the reason to stay in global memory."""
    if options.promote == "none":
        return "promote='none' was asked for"
    if options.strategy == "unfused":
        return "nothing is fused, so other kernels may read it"
    arguments = [_argument(analysis, p) for p in places]
    flags = {_flag(a) for a in arguments}
    if flags == {None}:
        if not all(a.internal for a in arguments):
            return "only some of the arguments that share this memory are marked internal"
    elif None in flags:
        return "some accesses of it are flagged for promotion and some are not"
    elif "local" in flags:
        return LOCAL_NOT_YET
    used_in = [n for n, stage in enumerate(stages) if any(s in stage.members for s, _ in places)]
    if len(used_in) > 1:
        return (
            f"launches {' and '.join(map(str, used_in))} use it, so it has to survive the first"
        )
    stage = stages[used_in[0]]
    group = analysis.place[places[0]].group
    uses: list[Use] = [
        (s, access)
        for s in stage.members
        for access in analysis.accesses[s].accesses
        if analysis.shares(s, access).group == group
    ]
    if not uses:
        return "no kernel of the list touches it"
    footprint = private_footprint(analysis, uses, stage.space.mode)
    return footprint if isinstance(footprint, str) else (used_in[0], footprint)


def _reason(footprint: PrivateFootprint) -> str:
    owned = (
        "one element a work-item"
        if footprint.is_scalar
        else f"{' x '.join(map(str, footprint.extents))} elements a work-item"
    )
    return f"{owned}, each written before it is read and touched by no other work-item"


def _argument(analysis: ListAnalysis, place: Place) -> ArrayArgument:
    argument = analysis.submissions[place[0]].arguments[place[1]]
    assert isinstance(argument, ArrayArgument)
    return argument


def _flag(argument: ArrayArgument) -> str | None:
    return argument.access_flag or argument.buffer_flag
