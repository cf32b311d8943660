"""``fusionq cache``."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from fusionq.base.config import DiskCacheSettings, disk_cache_settings
from fusionq.base.errors import ArgumentError
from fusionq.base.units import format_bytes
from fusionq.cache.disk import DiskStore, Usage
from fusionq.cache.learned import Learned, all_learned
from fusionq.cli.console import bad_use, failed, output, show_table

KINDS = {
    "check": "kernels that submissions have been checked for",
    "plan": "fusion plans",
    "program": "kernels built for a device",
    "binary": "device code that several of these kernels share",
    "costs": "what launches and memory cost on a device",
    "learned": "times of lists by their strategies, learned from runs",
    "request": "lists that a worker process is to build",
}
"""What the entries of each kind hold."""


def show_cache() -> None:
    """Where the disk cache is, whether it is on, what it holds and may hold."""
    settings = _settings()
    usage = _store(settings).usage()
    console = output()
    state = "on" if settings.enabled else "off (FUSIONQ_CACHE)"
    limit = format_bytes(settings.max_bytes, binary=True)
    for line in (f"directory: {settings.directory}", f"disk cache: {state}, at most {limit}"):
        console.print(line, markup=False, soft_wrap=True)
    console.print()
    table = Table(title="Entries", show_footer=True)
    total = Usage(
        sum(used.entries for used in usage.values()), sum(used.nbytes for used in usage.values())
    )
    table.add_column("kind", "all")
    table.add_column("entries", f"{total.entries:,}", justify="right")
    table.add_column("size", format_bytes(total.nbytes, binary=True), justify="right")
    table.add_column("what they hold")
    for kind in (*KINDS, *sorted(usage.keys() - KINDS)):
        used = usage.get(kind, Usage())
        meaning = KINDS.get(kind, "")
        table.add_row(kind, f"{used.entries:,}", format_bytes(used.nbytes, binary=True), meaning)
    show_table(console, table)
    if learned := [one for one in all_learned(_store(settings)) if not one.is_new]:
        console.print()
        show_table(console, _learned_table(learned))


def _learned_table(learned: list[Learned]) -> Table:
    table = Table(title="Learned from runs")
    for name in ("submissions", "device", "chosen", "shortest runs, µs"):
        table.add_column(name)
    table.add_column("work-items", justify="right")
    for one in sorted(learned, key=lambda one: (one.device, one.kernels, one.work_items)):
        times = [
            f"{c.strategy} {min(c.seconds) * 1e6:,.0f}" for c in one.candidates if c.seconds
        ]
        chosen: str = one.chosen or "not yet"
        if again := sum(c.compared for c in one.candidates):
            chosen += f", compared again {again}×, changed {one.changes}×"
        row = (one.kernels, one.device, chosen, ", ".join(times), f"{one.work_items:,}")
        table.add_row(*map(escape, row))
    return table


def clear_cache() -> None:
    """Remove all entries of the disk cache, and say how many."""
    settings = _settings()
    store = _store(settings)
    nbytes = sum(used.nbytes for used in store.usage().values())
    removed = store.clear()
    left = sum(used.entries for used in store.usage().values())
    if left:
        failed(
            f"{left} entries are still in {settings.directory}: they could not be removed, or "
            "another process has written them in the meantime"
        )
    noun = "entry" if removed == 1 else "entries"
    size = format_bytes(nbytes, binary=True)
    output().print(
        f"removed {removed:,} {noun} ({size}) from {settings.directory}",
        markup=False,
        soft_wrap=True,
    )


def _settings() -> DiskCacheSettings:
    try:
        return disk_cache_settings()
    except ArgumentError as error:
        bad_use(str(error))


def _store(settings: DiskCacheSettings) -> DiskStore:
    return DiskStore(settings.directory, settings.max_bytes)
