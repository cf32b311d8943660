"""Dialects: what differs between the C-family languages that kernels are printed in.

All of them have C's statements, operators and precedences, its preprocessor and its comments,
``void``, ``bool`` and an ``int`` of 32 bits.  That much the printer writes by itself.  Every other
word comes from a ``Dialect``, which is a value made of seven small vocabularies:

============  =====================================================================
``unit``      the translation unit: its head, qualifiers of functions, reserved
              words, compiler options, workarounds for the compiler
``scalars``   types, pointers, literals, math functions, casts
``items``     ids and ranges of work-items, sub-groups, clocks
``groups``    barriers, fences, atomic operations, group functions
``workers``   what the workers of a persistent kernel do; None where the language
              has no persistent kernels
``vectors``   functions whose work-items do several neighbours; None where the
              compiler makes vectors by itself
``streaming`` non-temporal stores; None where the language has none of use
============  =====================================================================

``codegen/opencl`` is one such value.
"""

from __future__ import annotations

from fusionq.base.frozen import dataclass
from fusionq.codegen.dialect.groups import Define, Groups
from fusionq.codegen.dialect.items import WorkItems
from fusionq.codegen.dialect.rings import Rings
from fusionq.codegen.dialect.scalars import Scalars
from fusionq.codegen.dialect.streaming import Streaming
from fusionq.codegen.dialect.unit import TranslationUnit
from fusionq.codegen.dialect.vectors import Vectors
from fusionq.codegen.dialect.workers import Workers

__all__ = [
    "Define", "Dialect", "Groups", "Rings", "Scalars", "Streaming", "TranslationUnit", "Vectors",
    "WorkItems", "Workers",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dialect:
    """One C-family kernel language."""

    unit: TranslationUnit
    scalars: Scalars
    items: WorkItems
    groups: Groups
    workers: Workers | None = None
    vectors: Vectors | None = None
    streaming: Streaming | None = None
