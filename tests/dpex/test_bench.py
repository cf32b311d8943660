"""``fusionq bench --dpex-python``: unfused numba-dpex in a process of its own."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.benchmarks.baselines import dpex
from fusionq.benchmarks.case import Unavailable, Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.runner import run_case
from fusionq.benchmarks.table import case_notes

pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)
PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def queue():
    with fq.FusionQueue("opencl:cpu") as made:
        yield made


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if dpex.runs_on_dpex(case)])
def test_it_is_timed_beside_the_others_and_checked(name, queue):
    case = replace(CASES[name], baselines=())
    result = run_case(case, 1003, queue, 2, lambda *_: None, dpex_python=PYTHON)
    found = result.variants[-1]
    assert (found.name, found.group, found.unavailable) == (dpex.NAME, "baseline", None)
    assert len(found.timing.seconds) == 2 and found.verified
    assert found.stated_bytes == case.stated_bytes("unfused", 1003)
    assert not any("did not run" in note for note in case_notes(result))


def test_wrong_results_and_errors_are_found(queue):
    workload = Workload(CASES["seeds"], 100, queue)
    chain = dpex.DpexChain(workload, PYTHON)
    chain._shared[:] = np.float32(0.25)
    chain._ask(put="in1")
    workload.spoil()
    chain.run()
    with pytest.raises(AssertionError, match="wrong elements"):
        workload.check(bit_for_bit=False)
    with pytest.raises(Unavailable, match="KeyError: 'nothing'"):
        chain._ask(put="nothing")
