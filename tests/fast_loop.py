"""The rule for what the fast loop runs: ``pytest -m "not slow"``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from tests.in_turn import params_of

T = TypeVar("T")

DIRECTORIES = ("unit", "conformance")
"""Whose tests the fast loop runs: those of one module or package, and what every backend does."""

SAMPLED = ("e2e",)
"""Of each of whose files the fast loop runs a test."""

RULES = (
    "e2e/test_api_page.py",
    "e2e/test_group_rows.py",
    "e2e/test_promotion_rows.py",
    "e2e/test_range_rows.py",
    "e2e/test_semantics_rows.py",
    "e2e/test_semantics_rows_aborts.py",
    "e2e/test_semantics_table.py",
)
"""Of these it runs all: tests of rows of docs/semantics.md, and of the API's page."""

COSTLY = (
    "conformance/test_atomics.py",
    "conformance/test_group_functions.py",
    "conformance/test_joint_functions.py",
    "conformance/test_persistent_elsewhere.py",
    "conformance/test_reductions_in_order.py",
    "conformance/test_steps_by_vectors.py",
    "unit/analysis/test_hard_kernels.py",
    "unit/analysis/test_long_lists.py",
    "unit/analysis/test_partly_overwritten.py",
    "unit/analysis/test_scalar_cells.py",
    "unit/benchmarks/test_bench.py",
    "unit/benchmarks/test_corpus.py",
    "unit/benchmarks/test_corpus_programs.py",
    "unit/benchmarks/test_dpex_baseline.py",
    "unit/benchmarks/test_strategy_cases.py",
    "unit/cache/test_damaged_entries.py",
    "unit/cache/test_hits_and_misses.py",
    "unit/cache/test_processes.py",
    "unit/cli/test_explain_plot.py",
    "unit/codegen/test_host_workers.py",
    "unit/codegen/test_row_vectors.py",
    "unit/cuda/test_compiles.py",
    "unit/cuda/test_few_items.py",
    "unit/cuda/test_jammed_items.py",
    "unit/cuda/test_persistent.py",
    "unit/cuda/test_streams.py",
    "unit/execution/test_adaptive.py",
    "unit/execution/test_adaptive_refusals.py",
    "unit/execution/test_adaptive_temporaries.py",
    "unit/execution/test_background_worker.py",
    "unit/frontend/test_array_functions.py",
    "unit/frontend/test_long_kernels.py",
    "unit/frontend/test_number_methods.py",
    "unit/frontend/test_random_kernels.py",
    "unit/groups/test_sub_groups.py",
    "unit/kernels",
    "unit/megakernel/test_proof.py",
    "unit/megakernel/test_schedule.py",
    "unit/megakernel/test_wait_forms.py",
    "unit/megakernel/test_workers.py",
    "unit/pictures/test_persistent_picture.py",
    "unit/pictures/test_report_plot.py",
    "unit/planning/test_build_bound.py",
    "unit/planning/test_items_in_groups.py",
    "unit/planning/test_overlap_choice.py",
    "unit/planning/test_pinned_constants.py",
    "unit/profiling/test_calibration.py",
    "unit/profiling/test_limits.py",
    "unit/profiling/test_output.py",
    "unit/profiling/test_persistent.py",
    "unit/profiling/test_profile.py",
    "unit/report/test_patterns.py",
    "unit/runtime/test_complex.py",
    "unit/runtime/test_import.py",
    "unit/runtime/test_interrupted_waits.py",
    "unit/runtime/test_lifetimes.py",
    "unit/runtime/test_members.py",
    "unit/runtime/test_new_arguments.py",
    "unit/runtime/test_other_memory.py",
    "unit/runtime/test_reductions.py",
    "unit/runtime/test_resized_launches.py",
    "unit/sycl/test_groups_of_broadcasts.py",
    "unit/test_internals_page.py",
)
"""Files whose tests would take more than 1.5 seconds of a processor together, as
``pytest -m "not slow" --processor-seconds`` prints: of each the first and the last test that is not
marked, so these are those that reach most of the modules it is about.  No file that reaches what
nothing else does is here."""

ON_DEVICE = (
    "conformance/test_atomics.py",
    "conformance/test_group_functions.py",
    "conformance/test_local_memory.py",
    "conformance/test_math.py",
    "conformance/test_memory.py",
    "conformance/test_values.py",
)
"""Tests that run on several backends are in the fast loop on the reference backend; these are on
the SYCL device too, since one device program of theirs checks a whole table."""

ELSEWHERE = ("sycl", "far", "cuda", "dpex", None)
"""Targets beside the reference backend for which tests run again; None is the default device."""

SETS = 2
"""How many of a test's sets of parameters the fast loop runs on each backend; of few tests one."""

FEW, FEWEST = 2, 1
"""How many tests of a costly file, and of each other directory's file, it runs; beside, or in place
of, those of rows of docs/semantics.md."""

_NAMED = re.compile(r"`([\w/]+\.py::test_\w+)`")


@cache
def is_slow(place: Path) -> bool:
    """Whether the fast loop leaves out all tests at ``place``, a path below ``tests``."""
    return not any(map(place.is_relative_to, (*DIRECTORIES, *SAMPLED)))


@cache
def few_of(place: Path) -> int | None:
    """How many tests of the file it runs, if not all."""
    if any(map(place.is_relative_to, RULES)):
        return None
    if any(map(place.is_relative_to, SAMPLED)):
        return FEWEST
    return FEW if any(map(place.is_relative_to, COSTLY)) else None


@cache
def rows() -> tuple[tuple[str, ...], ...]:
    """The tests that each row of docs/semantics.md names, as ``e2e/test_halos.py::test_it``."""
    page = Path(__file__).parents[1] / "docs" / "semantics.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    return tuple([tuple(found) for line in lines if (found := _NAMED.findall(line))])


def of_rows(there: Collection[str]) -> set[str]:
    """Of each row the first test that is ``there``."""
    return {test for row in rows() for test in [t for t in row if t in there][:1]}


def slow_ones(items: Iterable[pytest.Item], tests: Path) -> set[pytest.Item]:
    """The ones of ``items`` that the fast loop leaves out; their files are below ``tests``."""
    slow: set[pytest.Item] = set()
    files: dict[Path, dict[str, dict[int, list[pytest.Item]]]] = {}
    for item in items:
        place = item.path.relative_to(tests)
        given = params_of(item)
        backend = given.get("target", given.get("queue", "reference"))
        is_elsewhere = backend in ELSEWHERE and not (backend == "sycl" and _is_on_device(place))
        if is_elsewhere or is_slow(place):
            slow.add(item)
        elif item.get_closest_marker("slow") is None:
            functions = files.setdefault(place, {}).setdefault(item.nodeid.partition("[")[0], {})
            functions.setdefault(id(backend), []).append(item)
    kept_by_rows = of_rows({name.removeprefix("tests/") for one in files.values() for name in one})
    for place, named in files.items():
        few = few_of(place)
        kept = [sets for name, sets in named.items() if name.removeprefix("tests/") in kept_by_rows]
        if few is None:
            kept = list(named.values())
        elif few > FEWEST or not kept:
            kept += [sets for sets in spread(list(named.values()), few) if sets not in kept]
        most = SETS if few is None else 1
        of_each = [spread(sets, most) for each in kept for sets in each.values()]
        every = [item for each in named.values() for sets in each.values() for item in sets]
        slow |= set(every) - {item for sets in of_each for item in sets}
    return slow


def spread(values: list[T], count: int) -> list[T]:
    """At most ``count`` of ``values``: the first, the last, and between them at equal distances."""
    if len(values) <= count:
        return values
    return [values[k * (len(values) - 1) // max(count - 1, 1)] for k in range(count)]


@cache
def _is_on_device(place: Path) -> bool:
    return any(map(place.is_relative_to, ON_DEVICE))
