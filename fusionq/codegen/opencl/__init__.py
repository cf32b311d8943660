"""OpenCL C 3.0 (Khronos, The OpenCL C Specification, version 3.0), as a dialect."""

from dataclasses import replace

from fusionq.codegen.dialect import Dialect
from fusionq.codegen.opencl.groups import OpenCLGroups
from fusionq.codegen.opencl.items import OpenCLWorkItems
from fusionq.codegen.opencl.scalars import OpenCLScalars
from fusionq.codegen.opencl.streaming import OpenCLStreaming
from fusionq.codegen.opencl.unit import OpenCLUnit
from fusionq.codegen.opencl.workers import OpenCLWorkers

__all__ = ["OPENCL_C", "OPENCL_C_OF_MANY_ARGUMENTS"]

OPENCL_C = Dialect(
    OpenCLUnit(), OpenCLScalars(), OpenCLWorkItems(), OpenCLGroups(), OpenCLWorkers(),
    streaming=OpenCLStreaming(),
)  # fmt: skip

OPENCL_C_OF_MANY_ARGUMENTS = replace(OPENCL_C, unit=OpenCLUnit(packs_arguments=False))
"""For runtimes that do not take structures."""
