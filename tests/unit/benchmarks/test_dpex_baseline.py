"""Unfused numba-dpex beside fusionq's variants, where it is missing.  tests/dpex runs it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fusionq as fq
from fusionq.benchmarks.baselines import dpex
from fusionq.benchmarks.case import Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.variants import MissingVariant, variants
from fusionq.cli.main import app


def missing(queue: fq.FusionQueue, case: str, python: Path | None) -> list[str]:
    found = variants(Workload(CASES[case], 61, queue), python)
    return [v.reason for v in found if isinstance(v, MissingVariant) and v.name == dpex.NAME]


@pytest.fixture
def device() -> fq.FusionQueue:
    try:
        return fq.FusionQueue()
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")


def test_it_is_listed_for_the_one_dimensional_element_wise_cases() -> None:
    listed = [name for name, case in CASES.items() if dpex.runs_on_dpex(case)]
    assert listed == ["seeds", "axpy_chain", "activation_chain", "long_chain"]


def test_without_an_interpreter_it_is_listed_as_missing() -> None:
    queue = fq.FusionQueue("reference")
    (reason,) = missing(queue, "seeds", None)
    assert "--dpex-python PATH" in reason
    assert not missing(queue, "bias_gelu", None)


def test_without_a_sycl_device_it_is_missing() -> None:
    (reason,) = missing(fq.FusionQueue("reference"), "seeds", Path(sys.executable))
    assert "SYCL device" in reason


@pytest.mark.skipif(find_spec("numba_dpex") is not None, reason="numba-dpex is installed")
def test_an_environment_without_numba_dpex_says_so(device: fq.FusionQueue) -> None:
    (reason,) = missing(device, "seeds", Path(sys.executable))
    assert "numba-dpex cannot be imported" in reason


def test_an_interpreter_that_does_not_run_is_missing(
    device: fq.FusionQueue, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text("no program")
    broken.chmod(0o755)
    (reason,) = missing(device, "seeds", broken)
    assert "does not start" in reason or "ended" in reason


def test_no_such_interpreter_is_bad_use() -> None:
    result = CliRunner().invoke(app, ["bench", "seeds", "--dpex-python", "/no/such/python"])
    assert result.exit_code == 2
    assert "/no/such/python" in result.output
