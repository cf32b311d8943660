"""The first fusion of a fresh process, without the disk cache, split by phase."""

from __future__ import annotations

import time
from collections.abc import Mapping

from fusionq.benchmarks.child import run_child
from fusionq.benchmarks.results import Measurement, SpecialResult

NAME = "first_fusion"
DESCRIPTION = "the first fusion of a fresh process, the four-kernel example at 1,000 elements"
PHASES = {
    "interpreter": "from the start of the process to its first line",
    "import_numpy": "",
    "import_fusionq": "",
    "open_device": "device discovery, queue and context",
    "make_buffers": "",
    "import": "modules that the first fusion needs",
    "disk": "the disk cache",
    "frontend": "Python source → typed kernels",
    "analysis": "dependences, in integer sets",
    "passes": "fusion, promotion, verification",
    "codegen": "IR → OpenCL C",
    "build": "the device's own compiler",
    "prepare": "arguments",
    "other": "recording, planning, launch",
    "run": "wait for the result",
}


def run_first_fusion(device: str | None, rounds: int) -> SpecialResult:
    """Medians over ``rounds`` fresh processes."""
    environment = {"FUSIONQ_CACHE": "off"}
    samples = [measure_in_child(device, environment) for _ in range(rounds)]
    measurements = []
    for phase in samples[0]:
        values = sorted(sample[phase] for sample in samples)
        note = PHASES.get(phase, "")
        measurements.append(Measurement(f"{phase}_seconds", values[len(values) // 2], note))
    compile_phases = ("frontend", "analysis", "passes", "codegen")
    ours = sorted(sum(sample.get(phase, 0.0) for phase in compile_phases) for sample in samples)
    note = " + ".join(compile_phases)
    measurements.append(Measurement("compiler_without_build_seconds", ours[len(ours) // 2], note))
    return SpecialResult(NAME, DESCRIPTION, tuple(measurements))


def measure_in_child(device: str | None, environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds by phase, and their ``total``, of a fresh process's first fusion, up to its result.

    ``environment``: variables that it has beside those of this process.
    """
    arguments = [str(time.time()), *([device] if device else [])]
    phases: dict[str, float] = run_child(
        "first_fusion_child.py", *arguments, environment=environment
    )
    return phases
