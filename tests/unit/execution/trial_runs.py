"""Trials that have begun, and their runs, by times that tests make up."""

from __future__ import annotations

from collections.abc import Mapping

from fusionq.execution import later_comparisons
from fusionq.execution.contender import Candidate
from fusionq.execution.trials import Trials

OTHERS: tuple[Candidate, ...] = ("megakernel", "fused", "unfused")


def begun(*awaited: Candidate) -> Trials:
    """Trials whose first run was by ``sequence``, when all that was awaited is ready."""
    begun = Trials("sequence", awaited)
    assert begun.next() == ("sequence", False)
    for name in begun.awaited:
        begun.ready(name)
    return begun


def run(made: Trials, seconds: Mapping[str, float], most: int = 200) -> list[Candidate]:
    """The candidates of which samples were taken until there was a choice, each with its time."""
    return [name for name, _ in batches(made, seconds, most)]


def batches(
    made: Trials, seconds: Mapping[str, float], most: int = 200
) -> list[tuple[Candidate, int]]:
    """The same with the numbers of runs."""
    ran: list[tuple[Candidate, int]] = []
    while made.chosen is None and not made.waits:
        name, runs = made.next()
        if made.leads:
            assert (name, runs) == (made.best, 0)
            continue
        assert runs
        ran.append((name, runs))
        made.add(name, seconds[name], runs)
        assert len(ran) < most
    return ran


def begun_in_batches(*awaited: Candidate) -> Trials:
    made = begun(*awaited)
    made.costs.taken = 200.0
    made.in_batches = True
    return made


def compared_again(made: Trials, seconds: Mapping[str, float], most: int = 200) -> list[Candidate]:
    """The candidates of which samples were taken until nothing was compared again, each with its
    time; between two comparisons the list runs for as long as one that was won has to wait."""
    ran: list[Candidate] = []
    contenders = made.contenders.values()
    while made.compares_again() or any(c.is_leading for c in contenders):
        if made.wanted is not None:
            break
        made.costs.taken += later_comparisons.SOON
        name, runs = made.next()
        if runs:
            ran.append(name)
            made.add(name, seconds[name], runs)
        assert len(ran) < most
    return ran
