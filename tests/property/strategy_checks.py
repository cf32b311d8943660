"""One random list by any strategy and options: fused against unfused, device against reference."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, get_args

from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.options import Barriers, Promote, Strategy
from fusionq.ir.nodes import Persistent
from fusionq.ir.walk import is_work_group_function
from tests.property.commands import with_commands
from tests.property.group_programs import group_programs
from tests.property.halo_programs import halo_programs
from tests.property.kernel_expressions import Features
from tests.property.list_runs import check_fused, unfused
from tests.property.programs import CommandSpec, Program, programs
from tests.property.reductions import ReductionSpec
from tests.property.running import assert_identical
from tests.property.stage_programs import stage_programs
from tests.property.tilings import random_tilings

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

MIXED = "mixed"
"""Lists most of which have halos, or work-groups or lanes along other dimensions in persistent
kernels, with commands, reductions and as graphs."""


@dataclass(frozen=True)
class ListCase:
    """A list, how it is to be fused, the seed of a persistent kernel's tiles, and whether it is
    recorded first."""

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
    if generator == MIXED:
        halos = with_commands(halo_programs(near=True))  # commands keep some from being computed
        groups = with_commands(group_programs(EXACT), often=True)
        recorded = st.sampled_from((True, True, False))
        of_halos = _cases(halos, ("overlap",), recorded)
        of_groups = _cases(groups, ("megakernel",), recorded)
        of_stages = _cases(with_commands(stage_programs()), ("megakernel",), recorded)
        kinds = (of_halos, of_halos, of_halos, of_groups, of_groups, of_stages)
        return st.sampled_from(kinds).flatmap(lambda kind: kind)
    return _cases(GENERATORS[generator], (*get_args(Strategy), "megakernel"), st.booleans())


def _cases(
    programs: st.SearchStrategy[Program],
    strategies: tuple[Strategy, ...],
    recorded: st.SearchStrategy[bool],
) -> st.SearchStrategy[ListCase]:
    return st.builds(
        ListCase,
        programs,
        st.sampled_from(strategies),
        st.sampled_from(get_args(Barriers)),
        st.sampled_from(get_args(Promote)),
        st.integers(0, 1 << 30),
        recorded,
    )


def check_list(case: ListCase, target: str | None) -> fq.Report:
    """Run the list unfused and as the case says, on ``target``: all contents are those of the
    Python functions, bit for bit, and those of promoted buffers their first ones."""
    expected = case.program.run_python()
    assert_identical(unfused(case.program, target), expected)
    with random_tilings(case.tiles) if case.strategy == "megakernel" else nullcontext():
        return check_fused(
            case.program, target, expected, case.promote, case.barriers, case.strategy, case.graph
        )


def ways(case: ListCase, report: fq.Report) -> list[str]:
    """Which of the ways to make more of a list one kernel, or one launch, it has been through."""
    found = {
        "halos": bool(report.plan.recomputed),
        "work-groups in a persistent kernel": any(
            isinstance(s, Persistent) and any(is_work_group_function(c.kernel) for c in s.codes)
            for launch in report.plan.stages
            for s in launch.kernel.body
        ),
        "lanes along another dimension": any(
            isinstance(s, Persistent) and any(c.lanes is not None for c in s.codes)
            for launch in report.plan.stages
            for s in launch.kernel.body
        ),
        "commands": any(isinstance(c, CommandSpec) for c in case.program.commands),
        "reductions": any(isinstance(c, ReductionSpec) for c in case.program.commands),
        "graphs": case.graph,
    }
    return [way for way, is_there in found.items() if is_there]
