"""What was learned of a list from its runs, as it is kept on disk."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import Literal

from fusionq.base.frozen import dataclass
from fusionq.base.options import Candidate
from fusionq.cache.disk import DiskStore, disk_store
from fusionq.cache.keys import digest
from fusionq.cache.serialise import MalformedData, decode, encode

KIND = "learned"
"""Of the entries."""


@dataclass(frozen=True, slots=True)
class LearnedCandidate:
    """A candidate, and what its runs took, in seconds; ``compared``: how often what was chosen was
    compared with it later on."""

    strategy: Candidate
    state: Literal["awaited", "ready", "slower", "left out"]
    reason: str
    seconds: tuple[float, ...]
    compared: int


@dataclass(frozen=True, slots=True)
class Learned:
    """The candidates of the lists of one structure and size class on one device.

    ``kernels`` names the submissions, ``work_items`` is the largest extent of their ranges.
    ``first`` is what runs until one is ``chosen``; ``runs``: of the list, until one was;
    ``reopened``: how often its times have drifted, ``changes``: how often another one was chosen
    later on.
    """

    kernels: str
    work_items: int
    device: str
    first: Candidate
    chosen: Candidate | None
    runs: int
    reopened: int
    changes: int
    candidates: tuple[LearnedCandidate, ...]

    @property
    def is_new(self) -> bool:
        """Whether nothing is known but what runs ``first``."""
        return self.chosen is None and not any(c.seconds for c in self.candidates)


def learned_key(structure: Hashable) -> str | None:
    """The name of the entry for a structure that is the same in every process; None where it has
    no text that is."""
    try:
        return digest(KIND, structure)
    except (TypeError, OSError):
        return None


def kept_learned(key: str) -> Learned | None:
    """What is kept under ``key``."""
    store = disk_store()
    contents = None if store is None else store.get(key, KIND)
    return None if contents is None else _read(contents)


def keep_learned(key: str, learned: Learned) -> None:
    """Remember what was learned, in place of what was there."""
    store = disk_store()
    if store is not None:
        store.put(key, KIND, json.dumps(encode(learned)).encode())


def all_learned(store: DiskStore) -> list[Learned]:
    """Everything of the kind that is in ``store``."""
    found = [_read(contents) for contents in store.contents(KIND)]
    return [learned for learned in found if learned is not None]


def _read(contents: bytes) -> Learned | None:
    try:
        learned = decode(Learned, json.loads(contents))
    except (ValueError, MalformedData):
        return None
    names = [c.strategy for c in learned.candidates]
    times = [s for c in learned.candidates for s in c.seconds]
    known = {learned.first, learned.chosen or learned.first} <= set(names)
    right = len(set(names)) == len(names) and known
    chosen = next((c for c in learned.candidates if c.strategy == learned.chosen), None)
    if chosen is not None and chosen.state != "ready":
        right = False
    counts = (learned.reopened, learned.changes, *(c.compared for c in learned.candidates))
    if min(counts) < 0 or not all(math.isfinite(s) and s >= 0 for s in times):
        right = False
    return learned if right else None
