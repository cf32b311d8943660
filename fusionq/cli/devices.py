"""``fusionq devices``."""

from __future__ import annotations

from rich.table import Table

from fusionq.backends.registry import advice, backend_for, list_devices, missing_devices
from fusionq.base.errors import DeviceError
from fusionq.cli.console import output, show_table


def show_devices() -> None:
    """A table of the devices, and what to install: without a SYCL device, or in place of what works
    worse than a newer version."""
    console = output()
    table = Table(title="Devices, the default first")
    table.add_column("target", no_wrap=True)
    for heading in ("name", "driver"):
        table.add_column(heading, overflow="fold")
    for heading in ("compute\nunits", "max work-\ngroup", "local\nmemory"):
        table.add_column(heading, justify="right")
    table.add_column("fp16\nfp64")
    found = list_devices()
    for info in found:
        halves = ("fp16" if info.has_fp16 else "-", "fp64" if info.has_fp64 else "-")
        table.add_row(
            info.filter_string,
            info.name,
            info.driver,
            str(info.compute_units),
            f"{info.max_work_group_size:,}",
            f"{info.local_memory_bytes // 1024} KiB",
            " ".join(halves),
        )
    show_table(console, table)
    if all(info.kind == "reference" for info in found):
        try:
            backend_for(None)
        except DeviceError as error:
            console.print(f"\nNo SYCL device: {error}", markup=False)
    for line in (*missing_devices(), *advice()):
        console.print(f"\n{line}", markup=False)
