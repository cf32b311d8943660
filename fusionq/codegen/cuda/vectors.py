"""CUDA C++'s vectors: NVRTC makes one instruction of loads of neighbours that it knows are aligned.

It does not where elements are structures, as float16 is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusionq.codegen.cuda.scalars import CudaScalars
from fusionq.codegen.dialect import Scalars
from fusionq.ir.types import FLOAT16, ScalarType


class HalvesAsBits(CudaScalars):
    """float16 in memory as its bits."""

    half_bits: tuple[str, str] | None = ("fq_half_of", "fq_half_bits")

    def storage_name(self, type: ScalarType) -> str:
        return "unsigned short" if type == FLOAT16 else super().storage_name(type)


class CudaVectors:
    """See ``Vectors``."""

    nbytes = 16
    scalars: Scalars = HalvesAsBits()

    def assumed(
        self, pointers: Mapping[str, tuple[str, int]], multiples: Mapping[str, int]
    ) -> list[str]:
        return [
            *(
                f"{name} = ({type})__builtin_assume_aligned({name}, {nbytes});"
                for name, (type, nbytes) in pointers.items()
            ),
            *(f"__builtin_assume({name} % {n} == 0);" for name, n in multiples.items()),
        ]

    def aligned(
        self, pointers: Mapping[str, tuple[str, int]], multiples: Mapping[str, int]
    ) -> list[str]:
        return [
            *(
                f"(unsigned long long)({type}){name} % {nbytes} == 0"
                for name, (type, nbytes) in pointers.items()
            ),
            *(f"{name} % {n} == 0" for name, n in multiples.items()),
        ]

    def known(
        self,
        pointers: Mapping[str, tuple[str, int]],
        multiples: Mapping[str, int],
        lines: Sequence[str],
    ) -> list[str]:
        # What a condition on an address says, or an assumption, does not reach the loads.
        return [
            *(f"const auto fq_at_{name} = {name};" for name in pointers),
            "{",
            *(
                f"    const decltype(fq_at_{name}) {name} = {{({type})__cvta_global_to_generic("
                f"__cvta_generic_to_global(({type})fq_at_{name}) & ~{nbytes - 1}ull)}};"
                for name, (type, nbytes) in pointers.items()
            ),
            *(f"    __builtin_assume({name} % {n} == 0);" for name, n in multiples.items()),
            *(f"    {line}" if line else line for line in lines),
            "}",
        ]
