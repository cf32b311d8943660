"""Kernels that clamp indices, or wrap them around, at the ends of rows, which launches along rows
decide once for a row.

    xx = min(max(x + t, 0), w - 1)
    left = x - 1 if x > 0 else w - 1
    total += a[y, xx] + a[y, left]

Inside of a row (``codegen.interior``) neighbouring work-items load neighbouring elements.
Work-groups whose work-items meet at a barrier have no rows, so that a compiler for CPUs loads each
element by itself: gray and a blur of five pixels of 2,048 × 2,048 took 7.9 ms of a core as two
launches, 17.5 as one (AMD EPYC, AVX2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fusionq.base.identity_cache import cached_by_identity
from fusionq.codegen.interior import interior_of
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.nodes import Call, Kernel, Select
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions

_EXTREMA = ("minimum", "maximum", "pymin", "pymax")


def clamped_by(kernels: Iterable[Kernel]) -> Kernel | None:
    """The first of ``kernels`` of whose indices some are clamped at the ends of rows only.  Of what
    wraps around by a remainder nothing says whether that is at the ends, or every few elements."""
    return next(filter(_is_clamped, kernels), None)


@cached_by_identity
def _is_clamped(kernel: Kernel) -> bool:
    body = flatten_blocks(kernel.body)
    if not _clamps(body):
        return False
    interior = interior_of(replace(kernel, body=body), keeps_rows=True)
    return interior is not None and _clamps(interior.body) < _clamps(body)


def _clamps(body: Body) -> int:
    """The integer extrema and choices in ``body``."""
    found = [e for e in expressions(body) if isinstance(e, Call | Select) and e.type == INT64]
    return sum(isinstance(e, Select) or e.function in _EXTREMA for e in found)
