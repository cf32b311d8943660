"""CUDA C++ (NVIDIA, CUDA C++ Programming Guide 13), as NVRTC compiles it, as a dialect.

A work-group is a block, a sub-group a warp, local memory shared memory, a worker of a persistent
kernel a block.
"""

from dataclasses import replace

from fusionq.codegen.cuda.groups import CudaGroups
from fusionq.codegen.cuda.items import CudaWorkItems
from fusionq.codegen.cuda.scalars import CudaScalars
from fusionq.codegen.cuda.unit import CudaUnit
from fusionq.codegen.cuda.vectors import CudaVectors
from fusionq.codegen.cuda.workers import CudaWorkers
from fusionq.codegen.dialect import Dialect

__all__ = ["CUDA_CPP", "dialect_for"]

CUDA_CPP = Dialect(
    CudaUnit(), CudaScalars(), CudaWorkItems(), CudaGroups(), CudaWorkers(), CudaVectors()
)


def dialect_for(axes: str) -> Dialect:
    """The dialect for grids whose work-groups' numbers are a block's indices in the order of
    ``axes``."""
    return CUDA_CPP if axes == "xyz" else replace(CUDA_CPP, items=CudaWorkItems(axes))
