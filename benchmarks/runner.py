"""Runs cases: prepares the variants, verifies each, times them interleaved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fusionq as fq
from fusionq.benchmarks.case import Case, Workload
from fusionq.benchmarks.results import CaseResult, VariantResult
from fusionq.benchmarks.timing import time_interleaved
from fusionq.benchmarks.variants import MissingVariant, Variant, variants

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
    for variant in variants(workload, dpex_python):
        progress(f"preparing {variant.name}", 0, 0)
        found.append(variant)
    ready = [variant for variant in found if isinstance(variant, Variant)]
    verified, launches = {}, {}
    for variant in ready:
        progress(f"verifying {variant.name}", 0, 0)
        verified[variant.name] = _verify(workload, variant)
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
        _verify(workload, variant)
    by_name = {variant.name: timing for variant, timing in zip(ready, timings, strict=True)}

    def result(variant: Variant | MissingVariant) -> VariantResult:
        if isinstance(variant, MissingVariant):
            return VariantResult(variant.name, variant.group, unavailable=variant.reason)
        return VariantResult(
            variant.name,
            variant.group,
            stated_bytes=case.stated_bytes(variant.traffic, size),
            timing=by_name[variant.name],
            launches=launches[variant.name] if variant.group == "fusionq" else None,
            strategy=variant.strategy,
            verified=verified[variant.name],
        )

    return CaseResult(case.name, case.description, size, tuple(result(v) for v in found), single)


def _verify(workload: Workload, variant: Variant) -> str:
    workload.spoil()
    variant.run()
    try:
        return workload.check(bit_for_bit=variant.group == "fusionq")
    except AssertionError as error:
        raise AssertionError(f"variant {variant.name!r}: {error}") from None
