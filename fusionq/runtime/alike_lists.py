"""How a list runs that differs from earlier ones in memory and scalars alone.

While it is open which of the candidates is the fastest, one and the same chooser is asked for all
such lists: of several of them it takes one sample, and it says for how many of them nobody has to
ask it again.
"""

from __future__ import annotations

from collections.abc import Callable

from fusionq.execution.planning_time import PlanningStopped
from fusionq.submission.run import PreparedRun, RunChooser
from fusionq.submission.same_sizes import Alike


def chosen_run(
    alike: Alike,
    prepare: Callable[[], PreparedRun],
    next_run: Callable[[RunChooser], PreparedRun],
) -> PreparedRun:
    """The run of a list like others, as ``next_run`` of what chooses among the candidates gives it,
    or where nothing does as it is ``prepare``d; raises what these do."""
    chooser = alike.chooser
    if chooser is not None and alike.runs_unfused and chooser.untimed:
        chooser.untimed -= 1
        raise PlanningStopped(chooser.reason)
    alike.chooser = None
    try:
        run = prepare() if chooser is None else next_run(chooser)
    except PlanningStopped as stopped:
        alike.chooser, alike.runs_unfused = stopped.chooser, True
        raise
    alike.chooser, alike.runs_unfused = (run.adaptive if run.is_trial else None), False
    return run
