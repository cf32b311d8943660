"""How many work-items a stage of a plan takes, in work-groups of what size."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import Sized
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import LaunchShape, Target
from fusionq.codegen.launch_shape import launch_shape, launch_shape_of_rows
from fusionq.planning.plan import StagePlan


def launch_shape_of(
    stage: StagePlan, submissions: Sequence[Sized], target: Target
) -> LaunchShape | None:
    """The work-items to launch for ``stage``, or None if there are none."""
    if _is_plain(stage):
        return _plain_shape(stage, submissions, target)
    extents = stage.range_of(submissions)
    if extents.size == 0:
        return None
    if stage.beside:
        ranges = [part.range_of(submissions) for part in stage.beside]
        local = stage.local_range or launch_shape(max(ranges), target).local_range
        groups = sum(-(-range_[0] // local[0]) for range_ in ranges)
        rows = (-(-n // size) * size for n, size in zip(extents[1:], local[1:], strict=True))
        return LaunchShape((groups * local[0], *rows), local)
    space = (extents.size,) if stage.mode == "linear" else tuple(extents)
    if stage.items_at_once:
        space = tuple(-(-n // items) for n, items in zip(space, stage.items_at_once, strict=True))
    if stage.kernel.row_lanes is not None:
        return launch_shape_of_rows(space, stage.kernel.row_lanes, target)
    if stage.local_range is None:
        return launch_shape(space, target, _ends(stage, submissions, space))
    done = stage.local_range if stage.tiling is None else stage.tiling.tile
    launched = stage.local_range
    if stage.kernel.padded_row is not None:
        launched = (*launched[:-1], stage.kernel.padded_row[1])
    whole = tuple(
        -(-extent // items) * local
        for extent, items, local in zip(space, done, launched, strict=True)
    )
    return LaunchShape(whole, launched)


def _plain_shape(
    stage: StagePlan, submissions: Sequence[Sized], target: Target
) -> LaunchShape | None:
    whole = global_range(submissions[stage.geometry])
    if 0 in whole:
        return None
    for s in stage.submissions:
        if submissions[s].range != whole:
            return launch_shape(whole, target, _ends(stage, submissions, whole))
    return launch_shape(whole, target)


def _ends(
    stage: StagePlan, submissions: Sequence[Sized], space: tuple[int, ...]
) -> Collection[int]:
    """Where the stage's submissions end that have but a part of ``space``, of one dimension."""
    if len(space) > 1:
        return ()
    return {global_range(submissions[s]).size for s in stage.present} - {0, space[0]}


@cached_by_identity
def _is_plain(stage: StagePlan) -> bool:
    """Whether work-items of ``stage`` are those of its ``geometry``, whose work-groups nobody has
    chosen."""
    return (
        stage.mode == "ids"
        and stage.local_range is None
        and stage.kernel.row_lanes is None
        and not (stage.beside or stage.extents or stage.order or stage.items_at_once)
    )
