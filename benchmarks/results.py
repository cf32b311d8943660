"""The results of a benchmark run, as frozen data and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import fusionq
from fusionq.base.device_info import DeviceInfo
from fusionq.benchmarks.baselines.c_openmp import LIMITS
from fusionq.benchmarks.baselines.opencl import HAND_FUSED
from fusionq.benchmarks.timing import Timing
from fusionq.benchmarks.variants import PROMOTED


@dataclass(frozen=True)
class VariantResult:
    """One variant of a case at one size; ``unavailable`` says why there is no timing."""

    name: str
    group: Literal["fusionq", "baseline"]
    stated_bytes: int | None = None
    timing: Timing | None = None
    launches: int | None = None
    """Kernel launches a run, where fusionq's report tells."""
    strategy: str | None = None
    """What fusionq made of the list, where a strategy was asked for."""
    verified: str | None = None
    unavailable: str | None = None

    @property
    def stated_gigabytes_per_second(self) -> float | None:
        """Stated bytes over the median time: the algorithm's speed in one unit for all variants.
        No bandwidth of memory: caches serve a part of these bytes, and some are never moved."""
        if self.timing is None or self.stated_bytes is None:
            return None
        return self.stated_bytes / self.timing.median / 1e9


@dataclass(frozen=True)
class CaseResult:
    """All variants of a case at one size; the first is the one that speed-ups refer to."""

    case: str
    description: str
    size: int
    variants: tuple[VariantResult, ...]
    single: bool = False
    """Whether each run was over before the next one was submitted."""

    def median(self, name: str) -> float | None:
        """Median seconds of a variant, or None if it did not run."""
        for variant in self.variants:
            if variant.name == name and variant.timing is not None:
                return variant.timing.median
        return None

    def time_ratios(self) -> dict[str, float]:
        """The fused and promoted variant's median time over that of what it is judged by: the
        hand-fused kernel, and the faster of the C loops."""
        own = self.median(PROMOTED)
        ratios = {}
        limits = [name for name in LIMITS if self.median(name) is not None]
        judges = [HAND_FUSED, *sorted(limits, key=lambda n: self.median(n) or 0.0)[:1]]
        for name in judges:
            seconds = self.median(name)
            if own is not None and seconds is not None:
                ratios[name] = own / seconds
        return ratios

    def ratio(self, variant: VariantResult, base: str) -> float | None:
        """Median time of ``base`` over that of ``variant``."""
        seconds = self.median(base)
        if seconds is None or variant.timing is None:
            return None
        return seconds / variant.timing.median


@dataclass(frozen=True)
class Measurement:
    """One number of a benchmark that is no race of variants, with its unit in its name; None where
    it could not be measured, and ``note`` says why."""

    name: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class SpecialResult:
    """The measurements of one of the benchmarks beside the cases."""

    case: str
    description: str
    measurements: tuple[Measurement, ...]
    unavailable: str | None = None


Result = CaseResult | SpecialResult


def machine() -> dict[str, Any]:
    """What the results depend on besides the device."""
    return {
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "fusionq": fusionq.__version__,
    }


def to_json(results: Sequence[Result], device: DeviceInfo) -> str:
    """The results as JSON text; every number's unit is in its name."""
    document = {
        "machine": machine(),
        "device": asdict(device),
        "results": [_result(result) for result in results],
    }
    return json.dumps(document, indent=2) + "\n"


def _result(result: Result) -> dict[str, Any]:
    if isinstance(result, SpecialResult):
        return asdict(result)
    return {
        "case": result.case,
        "description": result.description,
        "size_elements": result.size,
        "runs_submitted": "one at a time" if result.single else "back to back",
        "fused_promoted_time_ratios": result.time_ratios(),
        "variants": [_variant(result, variant) for variant in result.variants],
    }


def _variant(result: CaseResult, variant: VariantResult) -> dict[str, Any]:
    timing = variant.timing
    fields: dict[str, Any] = {"name": variant.name, "group": variant.group}
    if timing is None:
        return {**fields, "unavailable": variant.unavailable}
    return {
        **fields,
        "median_seconds": timing.median,
        "first_decile_seconds": timing.quantile(0.1),
        "last_decile_seconds": timing.quantile(0.9),
        "samples_seconds": list(timing.seconds),
        "minimum_seconds": min(timing.seconds),
        "maximum_seconds": max(timing.seconds),
        "runs_per_sample": timing.runs_per_sample,
        "stated_bytes": variant.stated_bytes,
        "stated_gigabytes_per_second": variant.stated_gigabytes_per_second,
        "speed_up_over_unfused": result.ratio(variant, result.variants[0].name),
        "launches": variant.launches,
        "strategy": variant.strategy,
        "verified": variant.verified,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
