"""The launches of every program of the corpus, by each strategy: docs/measurements/corpus.md.

    python -m tools.corpus_launches                    # all of it: about half an hour
    python -m tools.corpus_launches 'jacobi*' harris   # some programs

Unfused, each submission is a launch.  Lists are planned for the device, with its measured costs,
and neither built nor timed: what `auto` takes is what it takes before it has learned.  With
``--keep FILE`` what is planned is kept there, form by form, and a run that was interrupted goes on
with the others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import fusionq as fq
from fusionq.base.options import FusionOptions, Strategy
from fusionq.base.target import Target
from fusionq.benchmarks.corpus.program import CorpusProgram, Form, WorkingSet
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.runner import Selection
from fusionq.benchmarks.corpus.workload import CorpusWorkload, Problem
from fusionq.execution.device_costs import measured_target
from fusionq.planning.planner import make_plan

STRATEGIES: tuple[Strategy, ...] = ("fused", "overlap", "megakernel", "auto")

COLUMNS = ("unfused", *STRATEGIES)

Launches = Mapping[str, int]
"""Of a form, by strategy; ``unfused`` each submission is one."""


def launches(problem: Problem, form: Form, queue: fq.FusionQueue, costs: Target) -> Launches:
    """The launches of a form by each strategy."""
    workload = CorpusWorkload(problem, form, queue)
    state = queue._state
    queue.start_fusion()
    workload.submit()
    assert state.list is not None
    submissions = state.list.submissions()
    found = {"unfused": len(submissions)}
    for strategy in STRATEGIES:
        options = FusionOptions(strategy=strategy)
        plan = make_plan(submissions, options, state.launcher.backend.target, (), lambda: costs)
        found[strategy] = len(plan.stages)
    queue.cancel_fusion()
    queue.wait()
    return found


def table(found: Mapping[str, Launches]) -> Iterator[str]:
    """The lines of the table, a program a line, with the sums."""
    yield f"| program, forms | {' | '.join(f'`{column}`' for column in COLUMNS)} |"
    yield "|---" * (1 + len(COLUMNS)) + "|"
    for program in PROGRAMS.values():
        forms = [(form, found.get(_key(program, form))) for form in program.forms]
        planned = [(form.name, each) for form, each in forms if each is not None]
        if planned:
            names = ", ".join(name for name, _ in planned)
            columns = (", ".join(str(each[column]) for _, each in planned) for column in COLUMNS)
            yield f"| `{program.name}` {names} | {' | '.join(columns)} |"
    sums = (f"{sum(each[column] for each in found.values()):,}" for column in COLUMNS)
    yield f"| all {len(found)} | {' | '.join(sums)} |"


def _key(program: CorpusProgram, form: Form) -> str:
    return f"{program.name}/{form.name}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Plan the selected programs and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", help="patterns of names of programs or forms")
    parser.add_argument("--working-set", default="in-cache", choices=("tiny", "in-cache"))
    parser.add_argument("--device", help="default: the default SYCL device")
    parser.add_argument("--keep", type=Path, help="a JSON file that keeps what is planned")
    given = parser.parse_args(arguments)
    working_set: WorkingSet = "tiny" if given.working_set == "tiny" else "in cache"
    selection = Selection(tuple(given.programs), "all", (working_set,))
    if selection.unknown:
        parser.error(f"no program or form is named {', '.join(selection.unknown)}")
    found: dict[str, Launches] = {}
    if given.keep is not None and given.keep.exists():
        found.update(json.loads(given.keep.read_text(encoding="utf-8")))
    queue = fq.FusionQueue(given.device)
    costs = measured_target(queue._state.launcher.backend)
    for program in PROGRAMS.values():
        wanted = selection.forms(program)
        forms = [f for f in program.forms if f.name in wanted and _key(program, f) not in found]
        if not forms:
            continue
        problem = Problem(program, program.sizes[working_set])
        for form in forms:
            found[_key(program, form)] = launches(problem, form, queue, costs)
            if given.keep is not None:
                given.keep.write_text(json.dumps(found), encoding="utf-8")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
