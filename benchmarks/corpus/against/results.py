"""What the corpus took by fusionq and by PyTorch, and the ratios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any

from fusionq.base.device_info import DeviceInfo
from fusionq.benchmarks.corpus.results import Extreme, FormResult
from fusionq.benchmarks.gpu import GRAPH
from fusionq.benchmarks.results import machine

AUTO = "auto, learned, replayed"
OWN = (AUTO, GRAPH)
"""fusionq's: auto that has learned, and the unfused kernels as a CUDA graph."""
EAGER = "PyTorch, eager"
EAGER_GRAPH = "PyTorch, eager, CUDA graph"
COMPILED = "torch.compile"
COMPILED_GRAPH = "torch.compile, CUDA graph"
REDUCED = "torch.compile, reduce-overhead"
TUNED_GRAPH = "torch.compile, max-autotune, CUDA graph"
TORCH = (EAGER, EAGER_GRAPH, COMPILED, REDUCED, COMPILED_GRAPH, TUNED_GRAPH)
BY_COMPILE = (COMPILED, REDUCED, COMPILED_GRAPH, TUNED_GRAPH)


def fastest(result: FormResult, names: Sequence[str]) -> str | None:
    """The one of the least median time; None where none ran."""
    timed = {name: seconds for name in names if (seconds := result.median(name)) is not None}
    return min(timed, key=timed.__getitem__) if timed else None


def gain(result: FormResult, *names: str) -> float | None:
    """How many times as fast as the fastest of ``names`` auto is."""
    auto, other = result.median(AUTO), fastest(result, names)
    return None if auto is None or other is None else (result.median(other) or 0.0) / auto


@dataclass(frozen=True)
class Gains:
    """Auto against one of the others: over so many results the geometric mean, the least, and where
    auto is the slower one, by more than a twentieth."""

    results: int
    mean: float
    worst: Extreme
    slower: tuple[Extreme, ...]


@dataclass(frozen=True)
class AgainstSummary:
    """Auto against each of the others, by name, and against the fastest of PyTorch's."""

    gains: dict[str, Gains]
    errors: tuple[str, ...]

    @classmethod
    def of(cls, results: Sequence[FormResult]) -> AgainstSummary:
        """The figures over ``results``."""
        gains = {}
        rivals = {GRAPH: (GRAPH,), **{name: (name,) for name in TORCH}}
        for name, of in {**rivals, "the fastest by torch.compile": BY_COMPILE, **ALL}.items():
            known = [(g, r.name) for r in results if (g := gain(r, *of)) is not None]
            if known:
                slower = tuple(Extreme(*k) for k in sorted(known) if k[0] < 0.95)
                mean = geometric_mean([g for g, _ in known])
                gains[name] = Gains(len(known), mean, Extreme(*min(known)), slower)
        return cls(gains, tuple(f"{r.name}: {r.error}" for r in results if r.error is not None))


ALL = {"the fastest by PyTorch": TORCH}


def to_json(results: Sequence[FormResult], device: DeviceInfo, torch_version: str) -> str:
    """The results and their summary, by size and of all, as JSON text."""
    document: dict[str, Any] = {
        "machine": machine(),
        "device": asdict(device),
        "torch": torch_version,
        "summary": {name: asdict(summary) for name, summary in summaries(results).items()},
        "results": [asdict(result) for result in results],
    }
    return json.dumps(document, indent=1) + "\n"


def summaries(results: Sequence[FormResult]) -> dict[str, AgainstSummary]:
    """Of each size, and of all where there are several."""
    sizes = list(dict.fromkeys(result.working_set for result in results))
    parts = {size: [r for r in results if r.working_set == size] for size in sizes}
    if len(sizes) != 1:
        parts = {**parts, "all": list(results)}  # type: ignore[dict-item]  # a name beside sizes
    return {name: AgainstSummary.of(part) for name, part in parts.items()}
