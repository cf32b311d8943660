"""Whether a change leaves the device source as it was, byte for byte.

    python tools/device_sources.py dump before.json     # in the environment of the one tree
    python tools/device_sources.py dump after.json      # in that of the other
    python tools/device_sources.py compare before.json after.json

``dump`` runs, on the default SYCL device, every library kernel, every benchmark case and random
programs of ``tests/property``, and keeps the device source of each by name; the golden files too.
It asks the installed fusionq through its public interface only, so that one script serves trees
that are laid out differently.  Random programs are drawn once, by the script's own tree, and kept
beside the first dump, in ``programs.pickle``: what Hypothesis draws depends on all code that is
imported.  ``compare`` prints what differs and fails if anything does.
"""

from __future__ import annotations

import argparse
import copyreg
import difflib
import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dpctl.program
import numpy as np

import fusionq as fq
from fusionq.benchmarks.case import Case, Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.variants import submit_chain
from fusionq.kernels import LIBRARY, LibraryKernel

ROOT = Path(__file__).resolve().parent.parent
EXTENTS: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((1000,), (9001,)), 2: ((5, 17), (33, 64)), 3: ((3, 4, 7), (5, 8, 33)),
}  # fmt: skip
"""The library kernels' problems."""
LARGEST_CASE = 1 << 16
"""Elements at which a benchmark case runs, where its default sizes are larger."""
STRATEGIES = {
    "programs": ("sequence", "megakernel"),
    "group_programs": ("fused", "sequence"),
    "plain_programs": ("fused", "sequence"),
    "stage_programs": ("megakernel", "sequence"),
}
"""What random programs are fused as, by their generator; the first also profiled and promoted."""
Texts = dict[str, str]
Submit = Callable[[fq.FusionQueue], object]


class Dump:
    """Device sources by name."""

    def __init__(self) -> None:
        self.texts: Texts = {}
        self._compiled: list[str] = []
        self._options: set[str] = set()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what is given to the device's compiler: reports do not show instrumented kernels."""
        create = dpctl.program.create_program_from_source

        def heard(queue: Any, text: str, options: str = "") -> Any:
            self._compiled.append(text)
            self._options.add(options)
            return create(queue, text, options)

        dpctl.program.create_program_from_source = heard
        try:
            yield
        finally:
            dpctl.program.create_program_from_source = create
            self.texts["compiler options"] = "\n".join(sorted(self._options))

    def fused(self, name: str, submit: Submit, **options: Any) -> None:
        """Keep the source of what ``submit`` submits, as one fusion with ``options``."""
        with fq.FusionQueue() as queue:
            with fq.fusion(queue, **options) as fusion:
                kept = submit(queue)  # arrays live until the end of the fusion
            del kept
            report = fusion.report
            self._add(name, f"// {report.strategy}\n{report.device_source}")

    def profiled(self, name: str, submit: Submit, **options: Any) -> None:
        """Keep all that is compiled while a profile is taken of such a fusion."""
        self._compiled.clear()
        with fq.FusionQueue() as queue, fq.profile(queue, compare=False):
            with fq.fusion(queue, **options):
                kept = submit(queue)
            del kept
        self._add(f"profile/{name}", "\n".join(self._compiled))

    def _add(self, name: str, text: str) -> None:
        assert name not in self.texts, name
        self.texts[name] = text
        print(f"\r{len(self.texts)} sources", end="", file=sys.stderr)


# ------------------------------------------------------------------------ what is dumped
def dump_library(dump: Dump) -> None:
    """Each kernel with each dtype, over whole buffers and over views with gaps; three times over
    as a list; and once with contraction."""
    for name, entry in LIBRARY.items():
        for dtype in entry.dtypes:
            for extents in EXTENTS[entry.ndim]:
                at = "x".join(map(str, extents))
                one = _library_submission(entry, dtype, extents, fq.Buffer)
                dump.fused(f"library/{name}/{dtype}/{at}", one)
        extents, dtype = EXTENTS[entry.ndim][0], entry.dtypes[-1]
        one = _library_submission(entry, dtype, extents, _every_other)
        dump.fused(f"library/{name}/{dtype}/views", one)
        again = _library_submission(entry, dtype, extents, fq.Buffer, times=3)
        dump.fused(f"library/{name}/{dtype}/fast", again, fp="fast")
        for strategy in ("fused", "megakernel"):
            dump.fused(f"library/{name}/{dtype}/{strategy}", again, strategy=strategy)
        dump.profiled(f"library/{name}/{dtype}", again, strategy="fused")


def _library_submission(
    entry: LibraryKernel,
    dtype: str,
    extents: tuple[int, ...],
    buffer: Callable[[Any], fq.Buffer],
    times: int = 1,
) -> Submit:
    def submit(queue: fq.FusionQueue) -> object:
        arguments = entry.arguments(extents, dtype, np.random.default_rng(7))
        given = [buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]
        for _ in range(times):
            queue.submit(entry.kernel, entry.range_of(extents), *given)
        return given

    return submit


def _every_other(array: np.ndarray[Any, Any]) -> fq.Buffer:
    """A view with gaps: every other element of each axis."""
    wide = np.zeros(tuple(2 * extent + 1 for extent in array.shape), array.dtype)
    every = tuple(slice(1, None, 2) for _ in array.shape)
    wide[every] = array
    return fq.Buffer(wide)[every]


def dump_benchmarks(dump: Dump) -> None:
    """Each case as each strategy, with temporaries kept, internal and promoted, and profiled."""
    for name, case in CASES.items():
        for size in sorted({min(size, LARGEST_CASE) for size in case.sizes}):
            for strategy in ("unfused", "sequence", "megakernel", "fused"):
                for kind in ("buffers", "internal_buffers", "promoted_buffers"):
                    whole = f"benchmarks/{name}/{size}/{strategy}/{kind}"
                    promote = "none" if kind == "buffers" else "internal"
                    options = {"strategy": strategy, "promote": promote}
                    submit = _case_submission(case, size, kind)
                    dump.fused(whole, submit, **options)
                    if kind == "buffers":
                        dump.profiled(whole, submit, **options)


def _case_submission(case: Case, size: int, kind: str) -> Submit:
    def submit(queue: fq.FusionQueue) -> object:
        work = Workload(case, size, queue)
        buffers = getattr(work, kind)
        chain = submit_chain(work, buffers() if callable(buffers) else buffers)
        chain()
        return work, chain

    return submit


def dump_random_programs(dump: Dump, path: Path, number: int) -> None:
    """The programs in ``path``; ``number`` of each generator of ``tests/property`` are drawn and
    written there if there is no such file."""
    sys.path.insert(0, str(ROOT))
    copyreg.pickle(fq.Range, lambda range_: (fq.Range, tuple(range_)))
    if not path.exists():
        path.write_bytes(pickle.dumps(_drawn(number)))
    for kind, programs in pickle.loads(path.read_bytes()).items():
        first, second = STRATEGIES[kind]
        for at, program in enumerate(programs):
            name, submit = f"random/{kind}/{at}", _random_submission(program)
            for promote in ("flagged", "internal"):
                dump.fused(f"{name}/{first}/{promote}", submit, strategy=first, promote=promote)
            dump.fused(f"{name}/{second}", submit, strategy=second)
            dump.profiled(name, submit, strategy=first)


def _drawn(number: int) -> dict[str, list[Any]]:
    """``number`` programs of each generator."""
    from hypothesis import HealthCheck, Phase, given, settings

    from tests.property.group_programs import group_programs
    from tests.property.kernel_expressions import Features
    from tests.property.programs import programs
    from tests.property.stage_programs import stage_programs

    kinds = {
        "programs": programs(Features(statements=3)),
        "group_programs": group_programs(Features(statements=2)),
        "plain_programs": group_programs(Features(statements=2), plain=True),
        "stage_programs": stage_programs(),
    }
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for kind, generator in kinds.items():

        @settings(
            max_examples=number,
            database=None,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(generator)
        def draw(program: Any) -> None:
            found[kind].append(program)  # noqa: B023  # called within the loop's turn

        draw()
    return found


def _random_submission(program: Any) -> Submit:
    kernels = {id(s.kernel): s.kernel.made() for s in program.submissions}

    def submit(queue: fq.FusionQueue) -> object:
        buffers = [
            fq.Buffer(
                spec.data,
                promote_private=spec.flag == "private",
                promote_local=spec.flag == "local",
                internal=spec.flag == "internal",
            )
            for spec in program.buffers
        ]
        for submission in program.submissions:
            arguments = [
                buffers[a.buffer][a.slices] if hasattr(a, "slices") else a
                for a in submission.arguments
            ]
            queue.submit(kernels[id(submission.kernel)], submission.range, *arguments)
        return buffers

    return submit


def dump_golden_files(dump: Dump) -> None:
    """The golden device sources of the tree that fusionq is installed from."""
    installed = Path(fq.__file__).resolve().parent.parent
    for path in sorted((installed / "tests" / "golden" / "opencl").iterdir()):
        dump.texts[f"golden/{path.name}"] = path.read_text(encoding="utf-8")


# --------------------------------------------------------------------------- comparison
def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs between two dumps, an entry for each name, with the lines that do."""
    found = [f"{name}: only before" for name in before if name not in after]
    found += [f"{name}: only after" for name in after if name not in before]
    for name in before:
        if name in after and before[name] != after[name]:
            lines = (before[name].splitlines(), after[name].splitlines())
            changed = list(difflib.unified_diff(*lines, "before", "after", lineterm="", n=1))
            found.append("\n".join([f"{name}:", *changed]))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if two dumps differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    dumping = commands.add_parser("dump", help="write the device sources of this environment")
    dumping.add_argument("out", type=Path)
    dumping.add_argument("--random", type=int, default=40, help="programs of each generator")
    comparing = commands.add_parser("compare", help="print what differs between two dumps")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "compare":
        before, after = (json.loads(p.read_text("utf-8")) for p in (given.before, given.after))
        found = differences(before, after)
        print("\n\n".join([*found, f"{len(found)} of {len(before)} differ"]))
        return 1 if found else 0
    warnings.simplefilter("ignore", fq.FusionAborted)
    os.environ["FUSIONQ_PLANNING_SECONDS"] = "inf"  # the same lists are fused on a busy machine
    fq.set_disk_cache(enabled=False)
    dump = Dump()
    with np.errstate(all="ignore"), dump.listening():
        dump_golden_files(dump)
        dump_random_programs(dump, given.out.parent / "programs.pickle", given.random)
        dump_library(dump)
        dump_benchmarks(dump)
    given.out.write_text(json.dumps(dump.texts, indent=1), encoding="utf-8")
    print(f"\r{len(dump.texts)} sources in {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
