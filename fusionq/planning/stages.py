"""Which submissions run together: neighbours join while nothing between them needs a launch
boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fusionq.analysis.dependence import Found, Scope
from fusionq.analysis.item_space import ItemSpace, common_space
from fusionq.analysis.submission import Submission

BLOCKING: dict[Scope, str] = {
    "GROUP": "it would take a work-group barrier, which this version does not insert",
    "GLOBAL": "work-groups would have to wait for each other",
    "UNKNOWN": "what they touch is not known",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """Neighbouring submissions in one index space; ``boundary`` says why they do not join the
    stage before."""

    members: tuple[int, ...]
    space: ItemSpace
    boundary: str | None


def split(
    submissions: Sequence[Submission], dependences: Sequence[Found], fuse: bool
) -> tuple[Stage, ...]:
    """The stages of a list, in order; one for each submission if not ``fuse``."""
    stages: list[Stage] = []
    for s, submission in enumerate(submissions):
        boundary: str | None = None
        if stages:
            last = stages[-1]
            boundary = (
                _blocked(s, last, dependences) if fuse else "the unfused strategy was asked for"
            )
            if boundary is None:
                space = common_space([submissions[m] for m in last.members] + [submission])
                if not isinstance(space, str):
                    stages[-1] = Stage((*last.members, s), space, last.boundary)
                    continue
                boundary = space
        alone = common_space([submission])
        assert isinstance(alone, ItemSpace)
        stages.append(Stage((s,), alone, boundary))
    return tuple(stages)


def _blocked(s: int, stage: Stage, dependences: Sequence[Found]) -> str | None:
    """Why submission ``s`` cannot join ``stage``."""
    for d in dependences:
        if d.consumer == s and d.producer in stage.members and d.scope in BLOCKING:
            return (
                f"{d.kind} dependence of submission {s} on submission {d.producer} has scope "
                f"{d.scope} ({d.reason}): {BLOCKING[d.scope]}"
            )
    return None
