"""What the CPU compiler of oneAPI 2024 is told to compile for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusionq.backends.sycl import oneapi_2024
from fusionq.backends.sycl.oneapi_2024 import _architecture, load_library

AVX2 = "fpu avx avx2 fma bmi1 bmi2"
AVX512 = f"{AVX2} avx512f avx512dq avx512cd avx512bw avx512vl"


@pytest.mark.parametrize(
    ("vendor", "flags", "architecture"),
    [
        ("AuthenticAMD", AVX512, "skx"),
        ("AuthenticAMD", AVX512.replace(" avx512vl", ""), "core-avx2"),
        ("AuthenticAMD", AVX2, "core-avx2"),
        ("AuthenticAMD", "fpu avx", None),
        ("GenuineIntel", AVX512, None),
    ],
)
def test_other_vendors_cpus_are_named(
    tmp_path: Path, vendor: str, flags: str, architecture: str | None
) -> None:
    core = f"vendor_id\t: {vendor}\nmodel name\t: a CPU\nflags\t\t: {flags}\nbugs\t\t: x\n"
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\n{core}\nprocessor\t: 1\n{core}")
    assert _architecture(file) == architecture


def test_a_system_without_the_file_is_left_alone(tmp_path: Path) -> None:
    assert _architecture(tmp_path / "cpuinfo") is None


def test_its_libraries_are_loaded_from_beside_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the compiler is told where the OpenCL driver is, unless the user has said so."""
    libraries, loaded = tmp_path / "lib", []
    libraries.mkdir()
    monkeypatch.setattr(oneapi_2024.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(oneapi_2024.sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr(oneapi_2024.site, "getuserbase", lambda: str(tmp_path))
    monkeypatch.setattr(oneapi_2024, "load_library", loaded.append)
    monkeypatch.setattr(oneapi_2024, "_architecture", lambda cpu_info: "core-avx2")
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
    monkeypatch.setenv("CL_CONFIG_CPU_TARGET_ARCH", "skx")
    load = oneapi_2024.load_sycl_runtime.__wrapped__
    assert load() is None and loaded == []
    (libraries / oneapi_2024._SYCL).touch()
    assert load() == libraries
    assert loaded == [libraries / name for name in oneapi_2024._RUNTIME]
    assert os.environ["OCL_ICD_FILENAMES"] == str(libraries / "libintelocl.so")
    assert os.environ["CL_CONFIG_CPU_TARGET_ARCH"] == "skx"


def test_a_library_that_is_missing_is_left_to_those_that_need_it(tmp_path: Path) -> None:
    assert load_library(tmp_path / "none.so") is None
