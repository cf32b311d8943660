"""A timeline in which the stages of one kernel are one region: of 32 equal steps there is one thing
to say, not 32."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fusionq.profiling.accounting import StageOverlap
from fusionq.profiling.regions import Region
from fusionq.profiling.timeline import Timeline

_NUMBER = re.compile(r"\b\d+: ")
"""Before a kernel's name in a submission's heading."""


def by_kernel(timeline: Timeline) -> Timeline:
    """``timeline`` with the regions that differ in their submissions' numbers only as one, which
    is called ``32 × smooth`` if there were 32; others keep their names."""
    used = np.unique(timeline.intervals["region"]).tolist()
    used += [a.region for a in timeline.aggregates]
    alike: dict[Region, list[int]] = defaultdict(list)
    for number in dict.fromkeys(used):
        region = timeline.regions[number]
        name, stage = (_NUMBER.sub("", text) for text in (region.name, region.stage))
        alike[replace(region, name=name, stage=stage, submissions=())].append(number)
    regions = tuple(
        _together(plain, [timeline.regions[k] for k in same]) for plain, same in alike.items()
    )
    new = np.zeros(len(timeline.regions), np.int32)
    for position, same in enumerate(alike.values()):
        new[same] = position
    intervals = timeline.intervals.copy()
    intervals["region"] = new[intervals["region"]]
    names = {
        str(timeline.regions[k]): str(regions[position])
        for position, same in enumerate(alike.values())
        for k in same
    }
    dropped: dict[str, int] = defaultdict(int)
    for name, count in timeline.dropped.items():
        dropped[names.get(name, name)] += count
    return replace(
        timeline,
        regions=regions,
        intervals=intervals,
        aggregates=tuple(replace(a, region=int(new[a.region])) for a in timeline.aggregates),
        dropped=dropped,
    )


def _together(plain: Region, regions: Sequence[Region]) -> Region:
    """``regions`` as one; ``plain`` is what they have in common."""
    if len(regions) == 1:
        return regions[0]
    submissions = tuple(sorted({s for region in regions for s in region.submissions}))
    if plain.stage and plain.sampled:  # it is shown before the name
        return replace(plain, stage=_times(len(regions), plain.stage), submissions=submissions)
    return replace(plain, name=_times(len(regions), plain.name), submissions=submissions)


def _times(count: int, name: str) -> str:
    return f"{count} × ({name})" if " + " in name else f"{count} × {name}"


def overlaps_by_kernel(
    overlaps: Sequence[StageOverlap], stages: Timeline, kernels: Timeline
) -> tuple[StageOverlap, ...]:
    """The ``overlaps`` of the stages of a timeline summed over those of the same two kernels;
    ``kernels`` is the timeline by kernel.  The longest first."""
    numbers, first = np.unique(stages.intervals["region"], return_index=True)
    name = {
        str(stages.regions[a]): str(kernels.regions[b])
        for a, b in zip(numbers, kernels.intervals["region"][first], strict=True)
    }
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for o in overlaps:
        pair = name[o.first], name[o.second]
        both, shorter = found.get(pair, (0, 0))
        found[pair] = both + o.both_ns, shorter + o.shorter_ns
    summed = (StageOverlap(*pair, both, shorter) for pair, (both, shorter) in found.items())
    return tuple(sorted(summed, key=lambda o: -o.both_ns))
