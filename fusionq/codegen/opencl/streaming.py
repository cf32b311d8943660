"""Non-temporal stores for Intel's OpenCL compiler for CPUs (runtime 2026.21.7).

Of the stores of neighbouring work-items it makes one of a vector, which goes around the caches if
``__builtin_nontemporal_store`` asks for that, no mask is needed, and the element's type says that
it begins at a multiple of the vector's size: what is true of a vector's first work-item.  It
forgets what was asked for where a work-item stores a vector of its own (``float16``), whose stores
become vectors of those.

100 million float32, four arrays read and one written, on two cores of a Xeon (AVX-512), in terms of
the time that C takes with streaming stores: 1.25, with non-temporal stores 1.005; with float16
1.30, and where ``vec_type_hint(float16)`` keeps work-items apart 1.02.  ``a[i] * b[i]``, stored:
0.66 of the time without.

Whoever loads the elements next does so behind a locked instruction, as the end of a work-group is,
and that waits for such stores (Intel, Software Developer's Manual 3A, 9.1.2.2).
"""

from __future__ import annotations

from fusionq.codegen.opencl.scalars import OpenCLScalars
from fusionq.ir.types import FLOAT16, ScalarType

_FENCE = (
    "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_relaxed, memory_scope_work_item);"
)
"""It orders nothing; without it the compiler makes one store of this and the ordinary one."""


class OpenCLStreaming:
    """See ``Streaming``."""

    lanes = 16

    def vector_type(self, type: ScalarType) -> tuple[str, str]:
        name, nbytes = f"fq_streamed_{_bits(type)}", self.lanes * type.nbytes
        return name, f"typedef {_bits(type)} __attribute__((aligned({nbytes}))) {name};"

    def store(self, pointer: str, value: str, type: ScalarType) -> list[str]:
        bits = value
        if type == FLOAT16:  # the compiler makes no such store of what it knows to be one
            bits = f"(ushort)(as_ushort({value}) ^ {OpenCLScalars.zero})"
        return [_FENCE, f"__builtin_nontemporal_store({bits}, {pointer});"]


def _bits(type: ScalarType) -> str:
    """What elements are stored as."""
    return "ushort" if type == FLOAT16 else OpenCLScalars().storage_name(type)
