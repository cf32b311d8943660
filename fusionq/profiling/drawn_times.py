"""The time axis of a profile's picture: long times without launches are drawn short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fusionq.profiling.timeline import Launch

_LONG_GAP = 0.25
"""A time without launches that takes more than this part of the launches' own is drawn short."""
_SHORT = 0.03
"""As this part of it."""


class DrawnTimes:
    """Nanoseconds of the timeline to those of the picture, in which long times without launches
    are short; ``gaps``: where these begin and end in the picture, and how long they are."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        spans = sorted((launch.start_ns, launch.end_ns) for launch in launches)
        busy = [list(spans[0])]
        for start, end in spans[1:]:
            if start > busy[-1][1]:
                busy.append([start, end])
            busy[-1][1] = max(busy[-1][1], end)
        ran = sum(end - start for start, end in busy)
        self._times, self._places = [busy[0][0], busy[0][1]], [0, busy[0][1] - busy[0][0]]
        self.gaps: list[tuple[int, int, int]] = []
        for start, end in busy[1:]:
            gap, before = start - self._times[-1], self._places[-1]
            place = before + (int(_SHORT * ran) if gap > _LONG_GAP * ran else gap)
            if place - before < gap:
                self.gaps.append((before, place, gap))
            self._times += [start, end]
            self._places += [place, place + end - start]
        self.length = self._places[-1]

    def place(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return np.interp(times - self._times[0], np.subtract(self._times, self._times[0]),
                         self._places)  # fmt: skip
