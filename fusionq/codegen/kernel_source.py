"""The typed kernel IR as source text of a C-family kernel language."""

from __future__ import annotations

from fusionq.base.target import FloatMode, Target
from fusionq.codegen.device_source import DeviceSource
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.range_kernel import generate_range_kernel
from fusionq.ir.nodes import Kernel, Persistent


def generate(kernel: Kernel, fp: FloatMode, target: Target, dialect: Dialect) -> DeviceSource:
    """The source of ``kernel`` for ``target`` in ``dialect``; the same kernel gives the same text.

    Arrays arrive as 64-bit addresses: so one text serves USM and, where the device reaches
    it, ordinary host memory.
    """
    match kernel.body:
        case (Persistent() as body, *_):
            from fusionq.codegen.persistent_kernel import generate_persistent_kernel

            return generate_persistent_kernel(kernel, body, fp, target, dialect)
    return generate_range_kernel(kernel, fp, dialect)
