"""The device source of hand-built kernels, whole."""

from __future__ import annotations

import pytest

from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from tests.unit.codegen.built_kernels import GOLDEN_KERNELS
from tests.unit.targets import TWO_CORES


@pytest.mark.parametrize("build", GOLDEN_KERNELS, ids=lambda build: build.__name__)
def test_source_is_the_golden_one(build, golden):
    golden(f"opencl/{build.__name__}.cl", generate(build(), "strict", TWO_CORES, OPENCL_C).text)


@pytest.mark.parametrize("build", GOLDEN_KERNELS, ids=lambda build: build.__name__)
def test_cuda_source_is_the_golden_one(build, golden):
    golden(f"cuda/{build.__name__}.cu", generate(build(), "strict", TWO_CORES, CUDA_CPP).text)


@pytest.mark.parametrize("build", GOLDEN_KERNELS, ids=lambda build: build.__name__)
def test_generation_is_deterministic(build):
    once, again = (generate(build(), "strict", TWO_CORES, OPENCL_C) for _ in range(2))
    assert once == again
