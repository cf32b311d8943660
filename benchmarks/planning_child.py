"""A script: plan one long list, and run it unfused; print seconds and bytes as a line of JSON.

Arguments: the family, the length, and optionally the device.
"""

import contextlib
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import fusionq as fq
from fusionq.base.options import DEFAULT
from fusionq.base.target import Target
from fusionq.benchmarks.planning_lists import FAMILIES
from fusionq.cache.disk import disk_store
from fusionq.cache.entries import keep_plans, kept_plans
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.execution.device_costs import measured_target
from fusionq.planning.planner import make_plan
from fusionq.report.report import Report

started = time.perf_counter()
found: dict[str, float] = {}


def lap(part: str) -> None:
    """The time since the lap before belongs to ``part``."""
    global started
    now = time.perf_counter()
    found[f"{part}_seconds"] = now - started
    started = now


def peak_bytes() -> int:
    """Peak resident memory of this process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Where the system can, let the peak begin anew: the device's costs were measured before."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def plan(queue: fq.FusionQueue, costs: Target, family: str, length: int) -> str:
    """Submit, plan and print the list, write it to the disk cache and read it again; what it
    becomes."""
    global started
    state = queue._state
    target = state.launcher.backend.target
    calls = list(FAMILIES[family](length))
    forget_peak()
    before = peak_bytes()
    started = time.perf_counter()
    queue.start_fusion()
    for kernel, range_, arguments in calls:
        queue.submit(kernel, range_, *arguments)
    assert state.list is not None
    submissions = state.list.submissions()
    lap("submit")
    made = make_plan(submissions, DEFAULT, target, (), lambda: costs)
    lap("planned")
    found["analysis_seconds"] = made.timings["analysis"]
    found["passes_seconds"] = made.timings["passes"]
    kernels = {id(stage.kernel): stage.kernel for stage in made.stages}
    for kernel in kernels.values():
        generate(kernel, "strict", target, OPENCL_C)
    lap("source")
    found["peak_growth_bytes"] = peak_bytes() - before
    found["planned_seconds"] = sum(
        found[f"{part}_seconds"] for part in ("submit", "planned", "source")
    )
    keep_plans((made,), submissions, DEFAULT, target)
    lap("write_entry")
    if not kept_plans(submissions, DEFAULT, target):
        raise SystemExit("the plan is not in the disk cache")
    lap("read_entry")
    store = disk_store()
    assert store is not None
    found["entry_bytes"] = store.usage()["plan"].nbytes
    str(Report(made, submissions, ("",) * len(made.stages), "miss", {}, ()))
    lap("report")
    found["launches"], found["kernels"] = len(made.stages), len(kernels)
    return made.strategy


def main() -> None:
    """Plan the list in a disk cache of its own, then run it unfused."""
    queue = fq.FusionQueue(sys.argv[3] if len(sys.argv) > 3 else None)
    costs = measured_target(queue._state.launcher.backend)
    with tempfile.TemporaryDirectory() as directory:
        fq.set_disk_cache(enabled=True, directory=Path(directory), max_bytes=1 << 40)
        strategy = plan(queue, costs, sys.argv[1], int(sys.argv[2]))
        fq.set_disk_cache()
    global started
    started = time.perf_counter()
    queue.cancel_fusion()
    queue.wait()
    lap("unfused")
    print(json.dumps({**found, "strategy": strategy}))


main()
