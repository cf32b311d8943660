"""Random lists of several parts that have no buffer in common: stencils in more than one number of
dimensions, and work-groups of one size over ranges of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from math import prod
from typing import Any

from hypothesis import strategies as st

from tests.property.group_programs import LOCALS, GroupProgramDraw
from tests.property.kernel_expressions import Features
from tests.property.programs import Program, SubmissionSpec, View


def joined(parts: Sequence[Program], in_turn: bool) -> Program:
    """One list of the submissions of all ``parts``, which have no commands: a submission of each
    in turn, or one part after the other."""
    moved: list[list[SubmissionSpec]] = []
    buffers = 0
    for part in parts:
        moved.append([_moved(s, buffers) for s in part.submissions])
        buffers += len(part.buffers)
    if in_turn:
        turns = zip_longest(*moved)
        submissions = [s for turn in turns for s in turn if s is not None]
    else:
        submissions = [s for part in moved for s in part]
    return Program(tuple(b for part in parts for b in part.buffers), tuple(submissions))


def _moved(submission: SubmissionSpec, by: int) -> SubmissionSpec:
    arguments = tuple(
        View(a.buffer + by, a.slices) if isinstance(a, View) else a for a in submission.arguments
    )
    return replace(submission, arguments=arguments)


@st.composite
def joined_programs(draw: Any, *parts: st.SearchStrategy[Program]) -> Program:
    """One list of all ``parts``."""
    return joined([draw(part) for part in parts], draw(st.booleans()))


@st.composite
def side_by_side_programs(draw: Any, features: Features) -> Program:
    """Two or three lists of work-groups of one size that differ in how many there are, most of
    which cannot stand in one kernel."""
    ndim = draw(st.sampled_from((1, 1, 2)))
    local = draw(st.sampled_from([sides for sides in LOCALS[ndim - 1] if prod(sides) > 1]))
    rest = tuple(draw(st.sampled_from((1, 2, 3))) for _ in range(ndim - 1))
    counts = draw(st.permutations((1, 2, 3, 5)))[: draw(st.sampled_from((3, 4, 3)))]
    parts = [
        GroupProgramDraw(draw, features, False, 95, ((count, *rest), local)).program()
        for count in counts
    ]
    return joined(parts, draw(st.sampled_from((True, True, False))))
