"""The benchmarks: stated bytes, verification, missing baselines, files, timing."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fusionq as fq
from fusionq.base.units import format_bytes, format_seconds
from fusionq.benchmarks.baselines import c_openmp
from fusionq.benchmarks.baselines.host import numba_baseline, numexpr_baseline
from fusionq.benchmarks.case import Baseline, Case, Unavailable, Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.plot import save_plot
from fusionq.benchmarks.results import CaseResult, SpecialResult, VariantResult
from fusionq.benchmarks.runner import run_case
from fusionq.benchmarks.table import case_notes, readable
from fusionq.benchmarks.timing import Timing
from fusionq.benchmarks.variants import MissingVariant, variants
from fusionq.cli.main import app

DPEX = "numba-dpex, unfused"
SIZE = 61
SEEDS = CASES["seeds"]
PROMOTION_CASES = [name for name, case in CASES.items() if case.compare == "promotion"]


@pytest.fixture
def queue() -> fq.FusionQueue:
    return fq.FusionQueue("reference")


def without_baselines(case: Case) -> Case:
    return replace(case, baselines=())


def compile_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of C with little of the compiler's optimisation, which takes half a second, and those
    of Numba as the Python that they are."""
    monkeypatch.setattr(c_openmp, "FLAGS", ("-O1", *c_openmp.FLAGS[1:]))
    if find_spec("numba") is not None:
        monkeypatch.setattr("numba.njit", lambda **options: lambda function: function)


def quiet(what: str, done: int, total: int) -> None:
    """No progress."""


def test_stated_bytes_of_the_example() -> None:
    n = 1000
    assert SEEDS.stated_bytes("unfused", n) == 12 * 4 * n
    assert SEEDS.stated_bytes("fused", n) == (4 + 3 + 1) * 4 * n
    assert SEEDS.stated_bytes("promoted", n) == (4 + 1) * 4 * n


def test_stated_bytes_count_a_small_array_by_its_own_size() -> None:
    case, n = CASES["bias_gelu"], 2 * 4096
    assert case.extents(n) == (2, 4096)
    assert case.stated_bytes("promoted", n) == 4 * (3 * n + 4096)


@pytest.mark.parametrize("name", PROMOTION_CASES)
def test_every_case_is_right_and_fuses_into_one_kernel(name: str, queue: fq.FusionQueue) -> None:
    result = run_case(without_baselines(CASES[name]), SIZE, queue, 1, quiet)
    by_name = {variant.name: variant for variant in result.variants}
    assert by_name["unfused"].launches == len(CASES[name].steps)
    assert by_name["fused"].launches == by_name["fused, promoted"].launches == 1
    here = [v for v in result.variants if v.name != DPEX]
    assert all(v.timing is not None and v.verified for v in here)


@pytest.mark.parametrize("name", PROMOTION_CASES)
def test_every_baseline_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the first case as users' are."""
    if name != PROMOTION_CASES[0]:
        compile_quickly(monkeypatch)
    try:
        queue = fq.FusionQueue()
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")
    workload = Workload(CASES[name], 4099, queue)
    for variant in variants(workload):
        if variant.name == DPEX:  # needs an environment of its own
            continue
        assert not isinstance(variant, MissingVariant), variant
        workload.spoil()
        variant.run()
        workload.check(bit_for_bit=variant.group == "fusionq")


@pytest.mark.parametrize("name", ["seeds", "activation_chain"])
def test_a_wrong_result_is_found(name: str, queue: fq.FusionQueue) -> None:
    def off_by_little(workload: Workload) -> object:
        def run() -> None:
            workload.out[:] = workload.expected
            workload.out[17] = np.float32(workload.out[17] * 1.001)

        return run

    wrong = Baseline("wrong", "promoted", off_by_little)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"'wrong'.* 1 wrong elements from element 17"):
        run_case(replace(CASES[name], baselines=(wrong,)), SIZE, queue, 1, quiet)


def test_a_variant_that_writes_nothing_is_found(queue: fq.FusionQueue) -> None:
    idle = Baseline("idle", "promoted", lambda workload: lambda: None)
    with pytest.raises(AssertionError, match="'idle'"):
        run_case(replace(SEEDS, baselines=(idle,)), SIZE, queue, 1, quiet)


def test_one_different_bit_is_found_where_a_tolerance_would_hide_it(queue: fq.FusionQueue) -> None:
    workload = Workload(CASES["activation_chain"], SIZE, queue)
    for variant in variants(workload):
        variant.run()
        break
    workload.check(bit_for_bit=True)
    workload.out[3] = np.nextafter(workload.out[3], np.float32(9))
    workload.check(bit_for_bit=False)
    with pytest.raises(AssertionError, match="element 3"):
        workload.check(bit_for_bit=True)


@pytest.mark.parametrize(
    ("package", "baseline"),
    [("numexpr", numexpr_baseline("in1")), ("numba", numba_baseline(lambda numba: print))],
)
def test_a_missing_package_is_listed(
    package: str, baseline: Baseline, queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = run_case(replace(SEEDS, baselines=(baseline,)), SIZE, queue, 1, quiet)
    (missing,) = [v for v in result.variants if v.name == baseline.name]
    assert missing.timing is None
    assert missing.unavailable is not None
    assert f"pip install {package}" in missing.unavailable
    assert f"{baseline.name} did not run: {missing.unavailable}" in case_notes(result)


def test_a_missing_compiler_is_listed(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    workload = Workload(SEEDS, SIZE, queue)
    for baseline in c_openmp.c_baselines("in1"):
        with pytest.raises(Unavailable, match="install gcc"):
            baseline.prepare(workload)


def test_raw_launches_without_a_sycl_device_are_listed(queue: fq.FusionQueue) -> None:
    found = list(variants(Workload(SEEDS, SIZE, queue)))
    missing = {v.name: v.reason for v in found if isinstance(v, MissingVariant)}
    assert missing["raw OpenCL, hand-fused"] == "raw dpctl launches need a SYCL device"


def test_the_promoted_variants_allocate_no_temporary(queue: fq.FusionQueue) -> None:
    workload = Workload(SEEDS, SIZE, queue)
    flagged = workload.promoted_buffers()
    with fq.fusion(queue):
        for step in SEEDS.steps:
            queue.submit(step.kernel, SIZE, *(flagged[name] for name in step.arrays))
    assert not any(flagged[name].is_allocated for name in SEEDS.names("temporary"))


def test_bench_writes_json_and_a_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_quickly(monkeypatch)
    data, picture = tmp_path / "bench.json", tmp_path / "bench.png"
    result = CliRunner().invoke(
        app,
        [
            *("bench", "seeds", "--size", "50", "--rounds", "2", "--device", "reference"),
            *("--json", str(data), "--plot", str(picture)),
        ],
    )
    assert result.exit_code == 0, result.output
    assert "checked, bit for bit NumPy: every result" in result.stdout
    found = json.loads(data.read_text())
    assert found["device"]["filter_string"] == "reference"
    (case,) = found["results"]
    assert (case["case"], case["size_elements"]) == ("seeds", 50)
    unfused = case["variants"][0]
    assert (unfused["name"], unfused["stated_bytes"]) == ("unfused", 2400)
    assert len(unfused["samples_seconds"]) == 2
    assert unfused["speed_up_over_unfused"] == 1.0
    assert unfused["minimum_seconds"] <= unfused["median_seconds"] <= unfused["maximum_seconds"]
    assert unfused["runs_per_sample"] >= 1  # test_timing.py has how many
    assert case["runs_submitted"] == "back to back"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_no_plot_without_a_case(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no case has run"):
        save_plot([SpecialResult("x", "y", ())], tmp_path / "none.png")


def test_peak_memory_holds_no_temporaries() -> None:
    from fusionq.benchmarks.peak_memory import run_peak_memory

    measured = {m.name: m.value for m in run_peak_memory("reference", 1000).measurements}
    assert measured["allocated_by_buffers_bytes"] == measured["four_inputs_and_one_output_bytes"]
    assert measured["temporaries_bytes"] == 0


def test_first_fusion_has_every_phase() -> None:
    from fusionq.benchmarks.first_fusion import PHASES, run_first_fusion

    measured = {
        m.name.removesuffix("_seconds"): m.value for m in run_first_fusion(None, 1).measurements
    }
    assert {"frontend", "analysis", "passes", "codegen", "build", "total"} <= measured.keys()
    assert set(measured) <= {*PHASES, "total", "compiler_without_build"}
    parts = sum(value for name, value in measured.items() if name in PHASES)
    assert measured["total"] == pytest.approx(parts)


def test_warm_start_compares_two_processes() -> None:
    from fusionq.benchmarks.warm_start import run_warm_start

    measured = {m.name: m.value for m in run_warm_start("reference", 1).measurements}
    for phase in ("interpreter", "import_fusionq", "disk", "prepare", "total"):
        assert measured[f"{phase}_cold_seconds"] > 0
        assert measured[f"{phase}_warm_seconds"] > 0
    for phase in ("analysis", "passes"):  # a warm process plans nothing
        assert f"{phase}_cold_seconds" in measured
        assert f"{phase}_warm_seconds" not in measured
    ratio = measured["total_warm_seconds"] / measured["total_cold_seconds"]
    assert measured["warm_to_cold_ratio"] == pytest.approx(ratio)


def test_ratios_against_the_faster_limit() -> None:
    def timed(name: str, seconds: float) -> VariantResult:
        return VariantResult(name, "baseline", 100, Timing((seconds,), 1))

    result = CaseResult(
        "c", "d", 1,
        (
            timed("unfused", 8.0), timed("fused, promoted", 2.0),
            timed("raw OpenCL, hand-fused", 4.0), timed("C/OpenMP", 1.0),
            timed("C/OpenMP, non-temporal", 0.5),
        ),
    )  # fmt: skip
    assert result.time_ratios() == {"raw OpenCL, hand-fused": 0.5, "C/OpenMP, non-temporal": 4.0}
    assert result.ratio(result.variants[1], "unfused") == 4.0
    assert result.variants[1].stated_gigabytes_per_second == pytest.approx(50e-9)


def test_numbers_for_people() -> None:
    assert format_seconds(0.01234) == "12.3 ms"
    assert format_seconds(2.5e-6) == "2.50 µs"
    assert format_seconds(3e-9) == "3.00 ns"
    assert format_bytes(2e9) == "2.00 GB"
    assert format_bytes(20_000) == "20.0 kB"
    assert readable("import_numpy_seconds", 0.1) == ("import numpy", "100 ms")
    assert readable("replay_to_one_raw_ratio", 1.5) == ("replay to one raw", "1.50×")
