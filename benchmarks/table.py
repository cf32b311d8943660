"""Results as tables, for a terminal or plain text."""

from __future__ import annotations

from rich.table import Table

from fusionq.base.units import format_bytes, format_seconds
from fusionq.benchmarks.results import CaseResult, SpecialResult, VariantResult
from fusionq.benchmarks.variants import PROMOTED


def case_table(result: CaseResult) -> Table:
    """One case at one size: a row a variant.  ``case_notes`` says the rest."""
    table = Table(title=f"{result.case}: {result.description}; {result.size:,} elements")
    table.add_column("variant", no_wrap=True)
    for heading in (
        "launches", "median", "min…max", "runs a\nsample", "stated\nbytes", "stated\nGB/s",
        "×\nunfused",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    previous = result.variants[0].group
    for variant in result.variants:
        if variant.group != previous:
            table.add_section()
            previous = variant.group
        table.add_row(*_cells(result, variant))
    return table


def case_notes(result: CaseResult) -> list[str]:
    """What was measured, how each result was checked, and why a variant did not run."""
    checked: dict[str, list[str]] = {}
    notes = [
        "a sample is one run, submitted and waited for, after an untimed run of the same variant"
        if result.single
        else "a sample is the mean of runs submitted one after the other with one wait at the end, "
        "after an untimed run of the same variant; host baselines loop"
    ]
    for name, ratio in result.time_ratios().items():
        notes.append(f"{PROMOTED} takes {ratio:.2f}× the time of {name}")
    for variant in result.variants:
        if variant.strategy is not None and variant.strategy != variant.name:
            notes.append(f"{variant.name} ran as {variant.strategy}")
        if variant.verified is not None:
            checked.setdefault(variant.verified, []).append(variant.name)
        if variant.unavailable is not None:
            notes.append(f"{variant.name} did not run: {variant.unavailable}")
    for how, names in checked.items():
        who = "every result" if len(checked) == 1 else "; ".join(names)
        notes.append(f"checked, {how}: {who}")
    return notes


def special_table(result: SpecialResult) -> Table:
    """The measurements of a benchmark that is no race of variants."""
    table = Table(title=f"{result.case}: {result.description}")
    table.add_column("measured", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("note")
    if result.unavailable is not None:
        table.add_row("not run", "", result.unavailable)
    for m in result.measurements:
        name, value = readable(m.name, m.value)
        table.add_row(name, value, m.note)
    return table


def readable(name: str, value: float | None) -> tuple[str, str]:
    """A measurement's name without its unit, and its value with it."""
    words = name.replace("_", " ")
    if value is None:
        return words.rpartition(" ")[0], "not run"
    if name.endswith("_seconds"):
        return words.removesuffix(" seconds"), format_seconds(value)
    if name.endswith("_bytes"):
        return words.removesuffix(" bytes"), format_bytes(value)
    if name.endswith("_ratio"):
        return words.removesuffix(" ratio"), f"{value:.2f}×"
    return words, f"{value:g}"


def _cells(result: CaseResult, variant: VariantResult) -> list[str]:
    timing = variant.timing
    if timing is None or variant.stated_bytes is None:
        return [variant.name, "", "not run"]
    low, high = (extreme(timing.seconds) / timing.median - 1 for extreme in (min, max))
    return [
        variant.name,
        "" if variant.launches is None else str(variant.launches),
        format_seconds(timing.median),
        f"{low:+.0%}…{high:+.0%}",
        str(timing.runs_per_sample),
        format_bytes(variant.stated_bytes),
        f"{variant.stated_gigabytes_per_second:.1f}",
        _ratio(result.ratio(variant, result.variants[0].name)),
    ]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
