"""Programs as the device's binary code: there and back, and what happens where that fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.sycl import binary
from fusionq.backends.sycl.backend import SyclBackend
from fusionq.backends.sycl.binary import binary_of, code_generation_settings, kernel_from_binary
from fusionq.backends.sycl.program import SyclProgram
from tests.unit.cache.conftest import forget
from tests.unit.cache.programs import BASE, changed, run
from tests.unit.runtime.conftest import has_sycl


@pytest.fixture
def sycl() -> Iterator[fq.FusionQueue]:
    if not has_sycl():
        pytest.skip("no SYCL device")
    with fq.FusionQueue() as queue:
        yield queue


def built(queue: fq.FusionQueue) -> tuple[SyclBackend, SyclProgram]:
    """A backend and a program that it has built from source."""
    backend = queue._state.launcher.backend
    assert isinstance(backend, SyclBackend)
    (stage,) = run(BASE, queue).report.plan.stages
    return backend, backend.build(stage.kernel, "strict")


def test_there_and_back(sycl: fq.FusionQueue) -> None:
    backend, program = built(sycl)
    data = binary_of(backend.sycl_queue.sycl_device, program.native)
    assert data is not None
    assert len(data) > 1000
    assert program.generated is not None
    name = program.generated.entry_point
    for _ in range(50):  # each program is let go of again
        kernel = kernel_from_binary(backend.sycl_queue, data, name)
        assert kernel is not None
        assert kernel.get_function_name() == name
    assert binary_of(backend.sycl_queue.sycl_device, kernel) == data
    assert kernel_from_binary(backend.sycl_queue, data, "another_name") is None


def test_a_restored_program_is_the_program(sycl: fq.FusionQueue) -> None:
    backend, program = built(sycl)
    kept = backend.keep(program)
    assert kept is not None
    assert kept.binary is not None
    restored = backend.restore(program.kernel, "strict", kept)
    assert (restored.source, restored.slots) == (program.source, program.slots)


@pytest.mark.parametrize(
    "data", [b"", b"x", bytes(1000), b"\x7fELF" + bytes(500)], ids=["none", "x", "zeros", "header"]
)
def test_what_is_no_binary_is_refused(sycl: fq.FusionQueue, data: bytes) -> None:
    backend, program = built(sycl)
    assert program.generated is not None
    assert kernel_from_binary(backend.sycl_queue, data, program.generated.entry_point) is None


def test_truncated_binaries_are_refused(sycl: fq.FusionQueue) -> None:
    backend, program = built(sycl)
    data = binary_of(backend.sycl_queue.sycl_device, program.native)
    assert data is not None
    assert program.generated is not None
    for length in (4, 64, len(data) // 2, len(data) - 1):
        kernel = kernel_from_binary(
            backend.sycl_queue, data[:length], program.generated.entry_point
        )
        assert kernel is None


@pytest.mark.parametrize(
    "name", ["_SYCL_LIBRARY", "_CONTEXT_NATIVE", "_KERNEL_NATIVE", "_MAKE_KERNEL_BUNDLE"]
)
def test_another_sycl_runtime_keeps_sources_only(
    sycl: fq.FusionQueue, name: str, directory: Path, monkeypatch, nothing_is_compiled
) -> None:
    monkeypatch.setattr(binary, name, "not_there")
    binary._loaded.cache_clear()
    try:
        expected = run(BASE, sycl).out
        (path,) = directory.glob("v2/*/*.program")
        assert path.read_bytes().endswith(b"\n")  # after the source comes no binary
        forget()
        nothing_is_compiled()
        again = run(BASE, sycl)
        assert again.cache == "disk"
        assert np.array_equal(again.out, expected)
    finally:
        binary._loaded.cache_clear()


def test_a_binary_saves_the_devices_compiler(sycl: fq.FusionQueue, monkeypatch) -> None:
    from fusionq.backends.sycl import program

    expected = run(BASE, sycl).out
    forget()

    def forbidden(*arguments: object) -> None:
        raise AssertionError("the program should have come from its binary")

    monkeypatch.setattr(program, "_built", forbidden)
    assert np.array_equal(run(BASE, sycl).out, expected)
    with pytest.raises(AssertionError, match="its binary"):
        run(changed(constant=77), sycl)


def test_settings_of_the_devices_compiler_count(sycl: fq.FusionQueue, monkeypatch) -> None:
    before = code_generation_settings("cpu")
    assert code_generation_settings("gpu") != before
    monkeypatch.setenv("CL_CONFIG_CPU_VECTORIZER_MODE", "1")
    assert code_generation_settings("cpu") != before
    monkeypatch.undo()
    assert code_generation_settings("cpu") == before


def test_another_processor_has_its_own_binaries(sycl: fq.FusionQueue, monkeypatch) -> None:
    """The same home directory, on another machine with the same driver."""
    backend = sycl._state.launcher.backend
    assert isinstance(backend, SyclBackend)
    if backend.info.kind != "cpu":
        pytest.skip("the device is no processor")
    before = backend.keep_domain
    monkeypatch.setattr(binary, "_processor", lambda: "flags: none of today's")
    assert backend.keep_domain != before
