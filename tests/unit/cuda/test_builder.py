"""Programs for a GPU from a process that leaves it alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.base import KeptProgram
from fusionq.backends.cuda import builder, runtime
from fusionq.backends.cuda.backend import CudaBackend
from fusionq.backends.cuda.builder import CudaBuilder
from fusionq.execution import cost_measurement
from fusionq.execution.device_costs import measured_target
from tests.unit.cuda.compile_only import TARGET
from tests.unit.lists import submission


@fq.kernel
def scale(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] * 2


@pytest.fixture
def made(nvrtc: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> CudaBuilder:
    """What builds for a GPU whose driver nobody asks for anything."""
    monkeypatch.setattr(runtime, "load_driver", lambda: pytest.fail("the driver was called"))
    gpu = SimpleNamespace(target=TARGET, info=TARGET.device, architecture="sm_90", ordinal=0)
    monkeypatch.setattr(builder, "device", lambda number: gpu)
    found = registry.builder_for("cuda:0")
    assert isinstance(found, CudaBuilder)
    return found


def test_it_builds_and_keeps_what_a_queue_restores(made: CudaBuilder) -> None:
    kernel = submission(scale, 64, *(np.zeros(64, np.float32) for _ in range(2))).ir
    program = made.build(kernel, "strict")
    kept = made.keep(program)
    assert kept.binary is not None and kept.binary.startswith(b"\x7fELF")
    again = made.restore(kernel, "strict", kept)
    assert (again.binary, again.generated) == (program.binary, program.generated)
    anew = made.restore(kernel, "strict", KeptProgram(kept.source, None))
    assert anew.generated == program.generated


def test_it_finds_what_queues_keep_and_never_measures(
    made: CudaBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made.keep_domain[:2] == ("cuda", "sm_90") and made.target == TARGET
    assert CudaBackend.abilities.builds_apart and CudaBackend.abilities.launches
    monkeypatch.setattr(cost_measurement, "measure", lambda *about: pytest.fail("it launches"))
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    assert measured_target(made).costs == TARGET.costs


def test_only_a_number_names_its_gpu(nvrtc: tuple[int, int]) -> None:
    with pytest.raises(fq.DeviceError, match="made of its number"):
        CudaBuilder(object())
    with pytest.raises(fq.DeviceError, match="named by their numbers"):
        registry.builder_for("cuda:first")


def test_others_build_on_their_queues() -> None:
    assert registry.builder_for("reference").info.name == fq.FusionQueue("reference").device.name
