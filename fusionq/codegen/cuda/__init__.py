"""CUDA C++ (NVIDIA, CUDA C++ Programming Guide 13), as NVRTC compiles it, as a dialect.

A work-group is a block, a sub-group a warp, local memory shared memory.  There are no persistent
kernels.
"""

from fusionq.codegen.cuda.groups import CudaGroups
from fusionq.codegen.cuda.items import CudaWorkItems
from fusionq.codegen.cuda.scalars import CudaScalars
from fusionq.codegen.cuda.unit import CudaUnit
from fusionq.codegen.dialect import Dialect

__all__ = ["CUDA_CPP"]

CUDA_CPP = Dialect(CudaUnit(), CudaScalars(), CudaWorkItems(), CudaGroups())
