"""One random list by any strategy and options: fused against unfused, device against reference."""

from __future__ import annotations

import ast
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, get_args

from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.options import Barriers, Promote, Strategy
from fusionq.ir.nodes import Persistent
from fusionq.ir.walk import is_work_group_function
from tests.property.commands import with_commands
from tests.property.group_programs import group_programs, read_across
from tests.property.halo_programs import halo_programs
from tests.property.joined_programs import joined_programs, side_by_side_programs
from tests.property.kernel_expressions import Features
from tests.property.list_runs import check_fused, unfused, with_buffers
from tests.property.programs import CommandSpec, Program, SubmissionSpec, programs
from tests.property.reductions import ReductionSpec
from tests.property.running import assert_identical
from tests.property.stage_programs import stage_programs
from tests.property.tilings import random_tilings
from tests.property.windows import random_windows, slides

EXACT = Features(statements=3, transcendental=False)
"""Kernels whose last bits all devices agree on."""

GENERATORS: dict[str, st.SearchStrategy[Program]] = {
    "programs": with_commands(programs(EXACT)),
    "stages": with_commands(stage_programs()),
    "groups": with_commands(group_programs(EXACT)),
    "exchanges": with_commands(group_programs(EXACT, plain=True)),
    "halos": with_commands(halo_programs()),
}
"""The generators of random lists, by name."""


@dataclass(frozen=True)
class ListCase:
    """A list, how it is to be fused, the seed of a persistent kernel's tiles or of sliding windows,
    and whether it is recorded first."""

    program: Program
    strategy: Strategy
    barriers: Barriers
    promote: Promote
    tiles: int
    graph: bool

    def __repr__(self) -> str:
        return (
            f"# strategy={self.strategy!r}, barriers={self.barriers!r}, "
            f"promote={self.promote!r}, tiles={self.tiles}, graph={self.graph}\n{self.program!r}"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))


def list_cases(generator: str) -> st.SearchStrategy[ListCase]:
    """Lists of one generator, by any strategy; a third as persistent kernels where they can be."""
    return _cases(GENERATORS[generator], (*get_args(Strategy), "megakernel"), st.booleans())


def mixed_cases(sub_groups: bool = True) -> list[st.SearchStrategy[ListCase]]:
    """Kinds of lists, to be looked at in turn: with halos in one, two and three dimensions, with
    work-groups in persistent kernels, and with some side by side in a launch; with commands,
    reductions and as graphs.  What a list is drawn for, most lists become: about a fifth of all has
    been through each of ``WAYS``.  ``sub_groups``: work-groups use theirs."""
    recorded = st.sampled_from((True, True, False))
    saved: tuple[Promote, ...] = ("internal", "internal", "internal", "flagged")
    barriers: tuple[Barriers, ...] = ("auto", "auto", "none")
    halos = [halo_programs(near=True, ndims=(ndim,)) for ndim in (1, 2, 3)]
    stencils = with_commands(joined_programs(*halos), whole=True)
    of_halos = _cases(stencils, ("overlap",), recorded, saved, barriers)
    across = read_across(group_programs(replace(EXACT, sub_groups=sub_groups), uniform=95))
    of_groups = _cases(
        with_commands(joined_programs(across, across), often=True), ("megakernel",), recorded
    )
    several = side_by_side_programs(replace(EXACT, sub_groups=False))
    beside = _cases(several, ("sequence", "fused"), recorded)
    kinds = [of_halos, of_groups, beside]
    return [*kinds, *kinds, *kinds, of_halos]


WAYS = (
    "halos in 1-D", "halos in 2-D", "halos in 3-D", "chains of halos", "halos of guarded kernels",
    "halos of several types", "groups meet in uniform control flow", "reductions", "side by side",
)  # fmt: skip
"""Those that ``mixed_cases`` are for."""


def _cases(
    programs: st.SearchStrategy[Program],
    strategies: tuple[Strategy, ...],
    recorded: st.SearchStrategy[bool],
    promote: tuple[Promote, ...] = get_args(Promote),
    barriers: tuple[Barriers, ...] = get_args(Barriers),
) -> st.SearchStrategy[ListCase]:
    return st.builds(
        ListCase,
        programs,
        st.sampled_from(strategies),
        st.sampled_from(barriers),
        st.sampled_from(promote),
        st.integers(0, 1 << 30),
        recorded,
    )


def check_list(case: ListCase, target: str | None) -> fq.Report:
    """Run the list unfused and as the case says, on ``target``: all contents are those of the
    Python functions, bit for bit, and those of promoted buffers their first ones.  A GPU, which
    has functions of its own and reaches no arrays of the host's, gets Buffers, and what it leaves
    unfused is expected."""
    if target == "cuda":
        case = replace(case, program=with_buffers(case.program))
        expected = unfused(case.program, target)
    else:
        expected = case.program.run_python()
        assert_identical(unfused(case.program, target), expected)
    chosen = {"megakernel": random_tilings, "overlap": random_windows}.get(case.strategy)
    with nullcontext() if chosen is None else chosen(case.tiles):
        return check_fused(
            case.program, target, expected, case.promote, case.barriers, case.strategy, case.graph
        )


def ways(case: ListCase, report: fq.Report) -> list[str]:
    """Which of the ways to make more of a list one kernel, or one launch, it has been through."""
    anew = {r.producer: r for r in report.recomputed}
    codes = [
        code
        for launch in report.plan.stages
        for s in launch.kernel.body
        if isinstance(s, Persistent)
        for code in s.codes
    ]
    of_groups = any(is_work_group_function(code.kernel) for code in codes)
    submissions, commands = case.program.submissions, case.program.commands
    found = {
        "halos": bool(anew),
        "chains of halos": any(anew.keys() & set(r.consumers) for r in anew.values()),
        "halos of several types": bool(anew) and len({b.dtype for b in case.program.buffers}) > 1,
        "halos in sliding windows": any(map(slides, report.plan.stages)),
        "halos of guarded kernels": bool(anew) and any(_is_guarded(s) for s in submissions),
        "work-groups in a persistent kernel": of_groups,
        "groups meet in uniform control flow": of_groups and any(map(_meets_inside, submissions)),
        "side by side": any(launch.beside for launch in report.plan.stages),
        "lanes along another dimension": any(code.lanes is not None for code in codes),
        "commands": any(isinstance(c, CommandSpec) for c in commands),
        "reductions": any(isinstance(c, ReductionSpec) for c in commands),
        "graphs": case.graph,
    }
    dims = {len(halo) for r in anew.values() for halo in r.halo}
    found |= {f"halos in {ndim}-D": ndim in dims for ndim in (1, 2, 3)}
    return [way for way, is_there in found.items() if is_there]


def _is_guarded(submission: SubmissionSpec) -> bool:
    return any(isinstance(s, ast.If) for s in ast.walk(ast.parse(submission.kernel.source)))


def _meets_inside(submission: SubmissionSpec) -> bool:
    """Whether the work-items of a group meet inside a condition or a loop."""
    around = [
        s
        for s in ast.walk(ast.parse(submission.kernel.source))
        if isinstance(s, (ast.If, ast.For, ast.While))
    ]
    called = {ast.unparse(c.func) for s in around for c in ast.walk(s) if isinstance(c, ast.Call)}
    return any(name.startswith("fq.") and "group" in name for name in called)
