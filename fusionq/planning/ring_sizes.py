"""Persistent kernels whose rings have slots of another size.

    slots of 8 KB, nine of them, a row's part of 2 KB by a copy    →    slots of 4 KB, eighteen

Larger slots are fewer and larger copies, smaller ones let less be on its way than would have to
come before others see what a tile has stored.  Which is the best differs from device to device and
from list to list, and no model says so: ``auto`` tries those that there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.base.options import SLOT_BYTES
from fusionq.base.target import Target
from fusionq.codegen.ring_shape import ring_shape, slot_bytes_of
from fusionq.ir.nodes import Persistent
from fusionq.ir.walk import persistent_of
from fusionq.planning.plan import Plan, StagePlan


def other_slots(stages: Sequence[StagePlan], target: Target) -> tuple[int, ...]:
    """Of how many bytes the slots may be beside those that the persistent kernels of ``stages``
    have on ``target``; nothing where they have none."""
    bodies = [body for stage in stages if (body := _with_rings(stage, target)) is not None]
    own = {slot_bytes_of(body, target) for body in bodies}
    return tuple(
        nbytes
        for nbytes in SLOT_BYTES.values()
        if nbytes not in own and any(_with_slots(body, nbytes, target) for body in bodies)
    )


def with_slots(plan: Plan, nbytes: int, target: Target) -> Plan:
    """``plan`` with persistent kernels whose slots have ``nbytes``, where they have rings and such
    slots fit."""
    stages = []
    for stage in plan.stages:
        body = _with_rings(stage, target)
        made = None if body is None else _with_slots(body, nbytes, target)
        if made is not None:
            stage = replace(stage, kernel=replace(stage.kernel, body=(made,)))
        stages.append(stage)
    return replace(plan, stages=tuple(stages), other_slots=())


def slot_bytes(plan: Plan) -> int:
    """Of the slots that the persistent kernels of ``plan`` have in place of the target's; 0: these,
    if any."""
    bodies = [persistent_of(stage.kernel) for stage in plan.stages]
    return max((body.slot_bytes for body in bodies if body is not None), default=0)


def _with_rings(stage: StagePlan, target: Target) -> Persistent | None:
    """The persistent kernel of ``stage``; None where there is none, or it has no rings."""
    body = persistent_of(stage.kernel)
    return None if body is None or ring_shape(body, target) is None else body


def _with_slots(body: Persistent, nbytes: int, target: Target) -> Persistent | None:
    """``body`` with slots of ``nbytes``; None where they do not fit."""
    made = replace(body, slot_bytes=nbytes)
    return None if ring_shape(made, target) is None else made
