"""Kernels whose work-items are no lanes of sub-groups as they require."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fusionq.backends.sycl import lanes
from fusionq.backends.sycl.lanes import lacks_lanes, with_emulated_lanes

LANES = "__attribute__((intel_reqd_sub_group_size(16)))\n__kernel void k(__global int* out) {"
ALL = "out[0] = sub_group_broadcast(out[get_sub_group_local_id()], 0); }"
NONE = "out[get_global_id(0)] = 1; }"
CPU = SimpleNamespace(is_cpu=True, name="a CPU")
GPU = SimpleNamespace(is_cpu=False, name="a GPU")


def lacks(monkeypatch: pytest.MonkeyPatch, text: str, log: str | None, device: Any = CPU) -> bool:
    monkeypatch.setattr(lanes, "log_of", lambda *_: log)
    return lacks_lanes(device, text, "k", None, "")


def test_lanes_that_the_compiler_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lacks(monkeypatch, LANES + ALL, 'x\nKernel "k" was not vectorized\nDone.')


def test_the_log_is_asked_for_where_the_program_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "build_log", lambda *_: 'Kernel "k" was not vectorized')
    assert lacks(monkeypatch, LANES + ALL, None)


@pytest.mark.parametrize(
    ("text", "log", "device"),
    [
        (LANES + ALL, 'Kernel "k" was successfully vectorized (16)', CPU),
        (LANES + ALL, 'Kernel "k_2" was not vectorized', CPU),
        (LANES + ALL, 'Kernel "k" was not vectorized', GPU),
        (LANES + NONE, 'Kernel "k" was not vectorized', CPU),
        (LANES.replace("16", "1") + ALL, 'Kernel "k" was not vectorized', CPU),
        (ALL, 'Kernel "k" was not vectorized', CPU),
    ],
)
def test_kernels_that_are_as_they_should_be(
    monkeypatch: pytest.MonkeyPatch, text: str, log: str, device: Any
) -> None:
    assert not lacks(monkeypatch, text, log, device)


def test_an_explicit_vector_type_has_the_compiler_emulate_them() -> None:
    text = with_emulated_lanes(LANES + ALL)
    assert text is not None
    assert "((intel_reqd_sub_group_size(16), vec_type_hint(float16)))" in text
    assert with_emulated_lanes(LANES.replace("16", "32") + ALL) is None
