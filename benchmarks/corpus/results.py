"""What was measured of the corpus: a result a form and size, and their summary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean, median
from typing import Any

from fusionq.base.device_info import DeviceInfo
from fusionq.benchmarks.corpus.program import Half, Size, WorkingSet
from fusionq.benchmarks.results import VariantResult, machine
from fusionq.benchmarks.timing import Timing

AUTO, UNFUSED, NUMBA = "auto", "unfused", "Numba, parallel"

LEARNING = "auto, learning"
"""Auto that has learned from its runs which strategy is the fastest."""


@dataclass(frozen=True)
class Learning:
    """How a list came to the strategy that it learned: ``runs`` of trials, which took ``cost`` more
    than the fastest known then, in runs of the unfused list; ``choice``: the report's words."""

    runs: int
    cost: float
    choice: str = ""


@dataclass(frozen=True)
class FormResult:
    """A form of a program at one size.

    ``variants``: unfused, each strategy of the library, auto after its warm-up, auto when it has
    learned, Numba.  ``first_calls``: seconds of the first call, with no plan and no program in any
    cache, unfused, by auto, and by auto that learns.  ``error``: why there is nothing else, such as
    a wrong result.
    """

    program: str
    form: str
    half: Half
    working_set: WorkingSet
    size: Size
    nbytes: int
    submissions: int = 0
    first_calls: Mapping[str, float] | None = None
    variants: tuple[VariantResult, ...] = ()
    error: str | None = None
    learning: Learning | None = None

    @property
    def name(self) -> str:
        """Such as ``jacobi_2d/interior, in cache``."""
        return f"{self.program}/{self.form}, {self.working_set}"

    def variant(self, name: str) -> VariantResult | None:
        """The variant of that name, if it was tried."""
        return next((v for v in self.variants if v.name == name), None)

    def median(self, name: str) -> float | None:
        """Median seconds of a variant; None if it did not run."""
        found = self.variant(name)
        return None if found is None or found.timing is None else found.timing.median

    @property
    def strategies(self) -> tuple[VariantResult, ...]:
        """The strategies that auto may choose from, without unfused."""
        return tuple(v for v in self.variants if v.name not in _NOT_CHOSEN)

    def speed_up(self, name: str) -> float | None:
        """Median of unfused over that of a variant."""
        unfused, own = self.median(UNFUSED), self.median(name)
        return None if unfused is None or own is None else unfused / own

    @property
    def best(self) -> VariantResult | None:
        """The fastest candidate: a strategy, or unfused."""
        timed = [
            (v.timing.median, k, v)
            for k, v in enumerate((*self.strategies, *filter(None, [self.variant(UNFUSED)])))
            if v.timing is not None
        ]
        return min(timed)[2] if timed else None

    def regret(self, name: str = AUTO) -> float | None:
        """How much longer auto takes than the best candidate: 0.1 is a tenth."""
        auto, best = self.median(name), self.best
        if auto is None or best is None or best.timing is None:
            return None
        return auto / best.timing.median - 1

    def first_call_ratio(self, name: str = AUTO) -> float | None:
        """Auto's first call over the unfused one."""
        calls = self.first_calls or {}
        return calls[name] / calls[UNFUSED] if {name, UNFUSED} <= set(calls) else None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FormResult:
        """The result that ``asdict`` made the data of."""
        variants = tuple(
            VariantResult(
                **{**v, "timing": None if v["timing"] is None else _timing(v["timing"])}
            )
            for v in data["variants"]
        )
        known = data.get("learning")
        learning = None if known is None else Learning(**known)
        size = tuple(data["size"])
        return cls(**{**data, "size": size, "variants": variants, "learning": learning})


_NOT_CHOSEN = AUTO, LEARNING, UNFUSED, NUMBA


def _timing(data: Mapping[str, Any]) -> Timing:
    return Timing(tuple(data["seconds"]), data["runs_per_sample"])


@dataclass(frozen=True)
class Extreme:
    """A figure, and whose it is."""

    value: float
    name: str


@dataclass(frozen=True)
class Learned:
    """The same figures of auto where it learns, what it takes to, and how many results have it."""

    results: int
    mean_speed_up: float | None
    worst_speed_up: Extreme | None
    worst_regret: Extreme | None
    mean_first_call_ratio: float | None
    worst_first_call_ratio: Extreme | None
    median_runs: float | None
    """Of trials."""
    median_cost: float | None
    """Of trials, in unfused runs."""
    most_cost: Extreme | None
    """The same of the form whose trials cost most."""

    @classmethod
    def of(cls, results: Sequence[FormResult]) -> Learned:
        """The figures over ``results``."""
        gains = _known((r.speed_up(LEARNING), r.name) for r in results)
        regrets = _known((r.regret(LEARNING), r.name) for r in results)
        firsts = _known((r.first_call_ratio(LEARNING), r.name) for r in results)
        runs = [r.learning.runs for r in results if r.learning is not None]
        costs = [(r.learning.cost, r.name) for r in results if r.learning is not None]
        return cls(
            results=len(gains),
            mean_speed_up=_mean([gain for gain, _ in gains]),
            worst_speed_up=Extreme(*min(gains)) if gains else None,
            worst_regret=Extreme(*max(regrets)) if regrets else None,
            mean_first_call_ratio=_mean([ratio for ratio, _ in firsts]),
            worst_first_call_ratio=Extreme(*max(firsts)) if firsts else None,
            median_runs=median(runs) if runs else None,
            median_cost=median(cost for cost, _ in costs) if costs else None,
            most_cost=Extreme(*max(costs)) if costs else None,
        )


@dataclass(frozen=True)
class Summary:
    """Figures over several results; a figure is None where nothing was measured for it."""

    results: int
    mean_speed_up: float | None
    """Geometric mean of auto against unfused."""
    worst_speed_up: Extreme | None
    mean_regret: float | None
    """Of the geometric mean of auto's times over those of the best candidates."""
    worst_regret: Extreme | None
    mean_first_call_ratio: float | None
    worst_first_call_ratio: Extreme | None
    mean_speed_up_of_best: float | None
    """Geometric mean of the best candidates against unfused: what auto could have."""
    submissions: int
    launches: int
    """Of auto's lists, before and after."""
    without_auto: tuple[str, ...]
    """Where auto gave no result in time."""
    errors: tuple[str, ...]
    """Where a result was wrong, or nothing ran."""
    learned: Learned

    @classmethod
    def of(cls, results: Sequence[FormResult]) -> Summary:
        """The figures over ``results``."""
        gains = _known((r.speed_up(AUTO), r.name) for r in results)
        regrets = _known((r.regret(), r.name) for r in results)
        firsts = _known((r.first_call_ratio(), r.name) for r in results)
        bests = [r.speed_up(r.best.name) for r in results if r.best is not None]
        autos = [(r, v) for r in results if (v := r.variant(AUTO)) and v.timing is not None]
        mean = _mean([1 + regret for regret, _ in regrets])
        return cls(
            results=len(results),
            mean_speed_up=_mean([gain for gain, _ in gains]),
            worst_speed_up=Extreme(*min(gains)) if gains else None,
            mean_regret=None if mean is None else mean - 1,
            worst_regret=Extreme(*max(regrets)) if regrets else None,
            mean_first_call_ratio=_mean([ratio for ratio, _ in firsts]),
            worst_first_call_ratio=Extreme(*max(firsts)) if firsts else None,
            mean_speed_up_of_best=_mean([b for b in bests if b is not None]),
            submissions=sum(r.submissions for r, _ in autos),
            launches=sum(v.launches or 0 for _, v in autos),
            without_auto=tuple(
                r.name for r in results if r.error is None and r.median(AUTO) is None
            ),
            errors=tuple(f"{r.name}: {r.error}" for r in results if r.error is not None),
            learned=Learned.of(results),
        )


def _known(figures: Any) -> list[tuple[float, str]]:
    return [(figure, name) for figure, name in figures if figure is not None]


def _mean(values: Sequence[float]) -> float | None:
    return geometric_mean(values) if values else None


def to_json(results: Sequence[FormResult], device: DeviceInfo) -> str:
    """The results and their summary as JSON text."""
    document = {
        "machine": machine(),
        "device": asdict(device),
        "summary": asdict(Summary.of(results)),
        "results": [asdict(result) for result in results],
    }
    return json.dumps(document, indent=1) + "\n"
