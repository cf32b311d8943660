"""What the CPU compiler of oneAPI 2024 is told to compile for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionq.backends.sycl.oneapi_2024 import _architecture

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
