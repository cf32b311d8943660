"""How many work-groups record, where all of them would cost too much."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.profiling.decoding import Decoded
from fusionq.profiling.regions import Region
from fusionq.profiling.timeline import ACCOUNTED

MOST_SHARE = 0.004
"""Reads of the clock should take no more of the measured time.  Records cost some five times as
much, by what they do to the vector code around them (neighbours in work-groups of 256: 1.24 times
the time if all record, 1.06 if one in 8 does, 1.05 if one in 64)."""
LEAST_RECORDING = 256
"""As many work-groups of a launch record at least, if there are as many."""


def worth_recording(
    found: Decoded, regions: Sequence[Region], groups: int, record_ns: float
) -> int:
    """One work-group in so many, a power of two, should record in launches like the one of
    ``groups`` work-groups of which all did, with the result ``found``.

    Of each work-group's clock reads, an end and the beginning that follows share one.
    """
    accounted = [region.kind in ACCOUNTED for region in regions]
    spent = reads = 0
    for number, mine in enumerate(accounted):
        intervals = found.intervals[found.intervals["region"] == number]
        totals = [total for total in found.aggregates if total.region == number]
        count = len(intervals) + sum(total.count for total in totals)
        reads += count if mine else 2 * count
        if mine:
            spent += int((intervals["end"] - intervals["start"]).sum())
            spent += sum(total.sum for total in totals)
    reads += groups if any(accounted) else 0
    if not spent:
        return 1
    every = 1
    while reads * record_ns > MOST_SHARE * spent * every and groups // every > LEAST_RECORDING:
        every *= 2
    return every
