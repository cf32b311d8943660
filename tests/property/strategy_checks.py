"""One random list by any strategy and options: fused against unfused, device against reference."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, get_args

from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.options import Barriers, Promote, Strategy
from tests.property.commands import with_commands
from tests.property.group_programs import group_programs
from tests.property.halo_programs import halo_programs
from tests.property.kernel_expressions import Features
from tests.property.list_runs import check_fused, unfused
from tests.property.programs import Program, programs
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


@dataclass(frozen=True)
class ListCase:
    """A list, how it is to be fused, and the seed of a persistent kernel's tiles."""

    program: Program
    strategy: Strategy
    barriers: Barriers
    promote: Promote
    tiles: int

    def __repr__(self) -> str:
        return (
            f"# strategy={self.strategy!r}, barriers={self.barriers!r}, "
            f"promote={self.promote!r}, tiles={self.tiles}\n{self.program!r}"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))


def list_cases(generator: str) -> st.SearchStrategy[ListCase]:
    """Lists of one generator, by any strategy; a third as persistent kernels where they can be."""
    strategies: tuple[Strategy, ...] = (*get_args(Strategy), "megakernel")
    return st.builds(
        ListCase,
        GENERATORS[generator],
        st.sampled_from(strategies),
        st.sampled_from(get_args(Barriers)),
        st.sampled_from(get_args(Promote)),
        st.integers(0, 1 << 30),
    )


def check_list(case: ListCase, target: str | None) -> fq.Report:
    """Run the list unfused and as the case says, on ``target``: all contents are those of the
    Python functions, bit for bit, and those of promoted buffers their first ones."""
    expected = case.program.run_python()
    assert_identical(unfused(case.program, target), expected)
    with random_tilings(case.tiles) if case.strategy == "megakernel" else nullcontext():
        return check_fused(
            case.program, target, expected, case.promote, case.barriers, case.strategy
        )
