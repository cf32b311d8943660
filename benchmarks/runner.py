"""Runs cases: prepares the variants, verifies each, times them interleaved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import fusionq as fq
from fusionq.benchmarks.case import Case, Workload
from fusionq.benchmarks.gpu import all_variants
from fusionq.benchmarks.results import CaseResult, VariantResult
from fusionq.benchmarks.timing import time_interleaved
from fusionq.benchmarks.variants import MissingVariant, Variant

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many of how many samples are done."""


def run_case(
    case: Case,
    size: int,
    queue: fq.FusionQueue,
    rounds: int,
    progress: Progress,
    single: bool = False,
    dpex_python: Path | None = None,
) -> CaseResult:
    """Every variant of ``case`` at ``size`` elements, timed over ``rounds`` interleaved rounds, in
    batches of runs; ``single``: one run at a time.  ``dpex_python``: see ``variants``.

    Each variant's output is verified before and after the timing, against NumPy, and
    fusionq's own variants bit for bit against each other.  Raises AssertionError where an
    output is wrong.
    """
    progress("making data", 0, 0)
    workload = Workload(case, size, queue)
    found = []
    for variant in all_variants(workload, dpex_python):
        progress(f"preparing {variant.name}", 0, 0)
        found.append(variant)
    ready = [variant for variant in found if isinstance(variant, Variant)]
    measured = {
        result.name: replace(
            result, stated_bytes=case.stated_bytes(variant.traffic, size)
        )
        for variant, result in zip(
            ready, measure(workload, ready, rounds, progress, single), strict=True
        )
    }
    results = tuple(
        VariantResult(v.name, v.group, unavailable=v.reason)
        if isinstance(v, MissingVariant)
        else measured[v.name]
        for v in found
    )
    return CaseResult(case.name, case.description, size, results, single)


class Checked(Protocol):
    """What variants compute the output of."""

    def spoil(self) -> None:
        """Make an old result no result."""

    def check(self, bit_for_bit: bool) -> str:
        """How well the output agrees; AssertionError where it does not."""


def measure(
    workload: Checked,
    ready: Sequence[Variant],
    rounds: int,
    progress: Progress,
    single: bool = False,
) -> tuple[VariantResult, ...]:
    """Time the variants, interleaved, and verify the output of each before and after.  Raises
    AssertionError where one is wrong."""
    verified: dict[str, str | None] = {}
    launches: dict[str, int] = {}
    for variant in ready:
        progress(f"verifying {variant.name}", 0, 0)
        verified[variant.name] = _verify(workload, variant) if variant.is_checked else None
        launches[variant.name] = variant.launches()

    total, done = rounds * len(ready), 0

    def on_sample() -> None:
        nonlocal done
        done += 1
        progress("timing", done, total)

    samplers = [variant.timed(single) for variant in ready]
    timings = time_interleaved(samplers, rounds, single=single, on_sample=on_sample)
    for variant in ready:
        progress(f"verifying {variant.name} again", total, total)
        if variant.is_checked:
            _verify(workload, variant)
    return tuple(
        VariantResult(
            variant.name,
            variant.group,
            timing=timing,
            launches=launches[variant.name] if variant.group == "fusionq" else None,
            strategy=variant.strategy,
            verified=verified[variant.name],
        )
        for variant, timing in zip(ready, timings, strict=True)
    )


def _verify(workload: Checked, variant: Variant) -> str:
    workload.spoil()
    variant.run()
    try:
        if variant.check is not None:
            return variant.check()
        return workload.check(bit_for_bit=variant.group == "fusionq")
    except AssertionError as error:
        raise AssertionError(f"variant {variant.name!r}: {error}") from None
