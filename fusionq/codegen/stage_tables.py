"""What of a persistent kernel's stages is the same: numbers for the schedule and the code."""

from __future__ import annotations

from collections.abc import Hashable

from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.nodes import ArrayParam, Param, Persistent, StageCode
from fusionq.ir.walk import expressions


@cached_by_identity
def code_bodies(body: Persistent) -> list[int]:
    """For each code the number of its body: codes that differ in their waits only share one."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(_without_waits(code), len(numbers)) for code in body.codes]


@cached_by_identity
def operand_sets(body: Persistent) -> list[int]:
    """For each stage the number of its operands: stages of one code with equal arguments have the
    same."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault((s.code, s.arguments), len(numbers)) for s in body.stages]


def _without_waits(code: StageCode) -> Hashable:
    """What the text of a code's body depends on; parameters that only the waits use do not
    count."""
    kernel = code.kernel
    used = {e.name for e in expressions(kernel.body) if isinstance(e, Param)}
    params = tuple(
        (position, param)
        for position, param in enumerate(kernel.params)
        if isinstance(param, ArrayParam) or param.name in used
    )
    return kernel.body, kernel.arrays, kernel.variables, params, code.extents, code.local_range
