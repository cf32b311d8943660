"""A persistent kernel's IR and its device source, whole."""

from __future__ import annotations

from collections.abc import Callable

from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.ir.printer import print_kernel
from tests.unit.cuda.compile_only import TARGET as H100_TARGET
from tests.unit.megakernel.cases import sum_then_scale
from tests.unit.megakernel.plans import persistent
from tests.unit.targets import TWO_CORES


def test_the_kernel_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    """Waits for boxes and for whole stages, one to three parameters a stage."""
    golden("ir/persistent.py.txt", print_kernel(persistent(*sum_then_scale(100)).stage.kernel))


def test_the_source_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    kernel = persistent(*sum_then_scale(100)).stage.kernel
    source = generate(kernel, "strict", TWO_CORES, OPENCL_C)
    golden("opencl/persistent.cl", source.text)
    assert generate(kernel, "strict", TWO_CORES, OPENCL_C) == source
    golden("cuda/persistent.cu", generate(kernel, "strict", H100_TARGET, CUDA_CPP).text)
