"""Whether the times of runs are still those by which a candidate was chosen."""

from __future__ import annotations

DRIFT, DRIFTED = 1.5, 4
"""The choice is made anew where so many runs one after the other differ from the time by which it
was made by more than that factor; each time that this has happened before doubles their number."""

ALONE = 5e-5
"""Seconds that a run by itself may take longer than one among others, by which it was chosen."""


class Drift:
    """Of the runs of a chosen candidate."""

    def __init__(self) -> None:
        self._drifting = 0
        """Runs in a row that took another time."""

    def is_another(
        self,
        known: float,
        seconds: float,
        reopened: int,
        alone: float = 0.0,
        is_erratic: bool = False,
    ) -> bool:
        """Whether a run that took ``seconds`` is the last of so many that took another time than
        what is ``known``, and than one by itself took where that was seen (``alone``);
        ``reopened``: how often that has happened.  Of a candidate that ``is_erratic`` they need not
        be in a row."""
        most = DRIFT * max(known + ALONE / DRIFT, alone)
        if known == float("inf") or known / DRIFT <= seconds <= most:
            if not is_erratic:
                self._drifting = 0
            return False
        self._drifting += 1
        return self._drifting >= DRIFTED << min(reopened, 16)
