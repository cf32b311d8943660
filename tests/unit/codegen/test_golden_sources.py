"""The device source of hand-built kernels, whole."""

from __future__ import annotations

import pytest

from fusionq.codegen.kernel_source import generate
from tests.unit.codegen.built_kernels import GOLDEN_KERNELS
from tests.unit.targets import TWO_CORES


@pytest.mark.parametrize("build", GOLDEN_KERNELS, ids=lambda build: build.__name__)
def test_source_is_the_golden_one(build, golden):
    golden(f"opencl/{build.__name__}.cl", generate(build(), "strict", TWO_CORES).text)


@pytest.mark.parametrize("build", GOLDEN_KERNELS, ids=lambda build: build.__name__)
def test_generation_is_deterministic(build):
    assert generate(build(), "strict", TWO_CORES) == generate(build(), "strict", TWO_CORES)
