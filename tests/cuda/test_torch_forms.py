"""The corpus's forms of PyTorch on a GPU: against NumPy, and side by side with fusionq's."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from fusionq.benchmarks.corpus.against.child import AgainstRequest, serve
from fusionq.benchmarks.corpus.against.results import AUTO, OWN, TORCH, TUNED_GRAPH
from fusionq.benchmarks.corpus.against.torch_program import TorchProgram, imported_torch
from fusionq.benchmarks.corpus.measure import Event
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import FormResult
from fusionq.benchmarks.corpus.torch_forms import TORCH_FORMS
from fusionq.benchmarks.corpus.workload import Problem


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    return imported_torch()


def program_of(torch, name: str) -> TorchProgram:
    program = PROGRAMS[name]
    return TorchProgram(torch, Problem(program, program.sizes["tiny"]), TORCH_FORMS[name], "cuda")


@pytest.mark.parametrize("name", TORCH_FORMS)
def test_forms_agree_with_numpy(torch, name: str) -> None:
    assert "NumPy" in program_of(torch, name).check()


@pytest.mark.parametrize("name", ["gaussian", "decode_step", "histogram"])
def test_a_wrong_result_is_found(torch, name: str) -> None:
    """Where it lies in what is returned: in tensors that are written, and in new ones."""
    program = program_of(torch, name)
    program._found[0].reshape(-1)[3] += 1
    with pytest.raises(AssertionError, match="wrong element"):
        program.check()
    program.restore()


@pytest.mark.parametrize("name", ["wave_2d", "mlp"])
def test_all_variants_run_beside_fusionq(torch, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Event] = []
    monkeypatch.setattr(sys, "stdin", io.StringIO("go\n"))
    form = PROGRAMS[name].forms[0].name
    serve(AgainstRequest(name, (form,), ("tiny",), "cuda", 2), told.append)
    (data,) = [event.result for event in told if event.result is not None]
    result = FormResult.from_dict(data)
    assert result.error is None
    expected = {*OWN, *TORCH} - ({TUNED_GRAPH} if name == "wave_2d" else set())
    assert {v.name for v in result.variants if v.timing is not None} == expected
    assert np.isfinite(result.median(AUTO) or np.nan)
