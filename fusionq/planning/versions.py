"""The values that memory has in the course of a list: which of them readers may compute anew.

What a submission writes to a memory is a *version* of that, until the next one writes there.  A
version that is computed anew gets a memory of its own (``planning/renamed_list.py``).  The buffer
still gets it, from the work-items that own its elements, unless nobody can see it there: it is
flagged, or the next version replaces it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import partial
from math import prod

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.live_accesses import accessed
from fusionq.analysis.questions import Questions
from fusionq.analysis.recomputation import Writer, halo_of, reaches, replaces, writer_of
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.planning.promotion import flagged, not_promoted
from fusionq.planning.recomputing import impure

Key = tuple[int, int]
"""Of a version: the submission that writes it, and the alias group of its memory."""


@dataclass(frozen=True, slots=True)
class Version:
    """What submission ``producer`` writes through its argument ``argument``; ``reads``: for each
    submission that reads it how many of the producer's work-items, in each dimension, write what
    one of its own reads.

    ``crossing``: those of them whose work-items may read what others write, if only an element
    each.  ``completed``: they read elements too that the producer leaves out.  ``replaced``: the
    list writes all of it again.  ``flagged``: the user does not look at it.  ``extended``: where
    they also read elements that no work-item of the producer has, which one has an element.
    """

    producer: int
    group: int
    argument: int
    reads: Mapping[int, tuple[int, ...]]
    completed: bool
    replaced: bool
    flagged: bool
    crossing: frozenset[int] = frozenset()
    extended: Writer | None = None

    @property
    def key(self) -> Key:
        """What it is known by."""
        return self.producer, self.group

    @property
    def is_exchanged(self) -> bool:
        """Whether a work-item reads what others write."""
        return bool(self.crossing) or any(prod(halo) > 1 for halo in self.reads.values())


@dataclass
class Versions:
    """Those that may be computed anew, and why others are not, by alias group."""

    found: dict[Key, Version] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)

    def without(self, keys: Collection[Key]) -> Versions:
        """The others."""
        left = {key: v for key, v in self.found.items() if key not in keys}
        return Versions(left, dict(self.refused))

    def needed(self) -> Versions:
        """Those that work-items exchange, and those of which others are made: one that each
        work-item reads as it wrote it may as well stay where it is."""
        left: dict[Key, Version] = {}
        producers: set[int] = set()
        for key, version in sorted(self.found.items(), reverse=True):
            if version.is_exchanged or not producers.isdisjoint(version.reads):
                left[key] = version
                producers.add(version.producer)
        return Versions(dict(sorted(left.items())), dict(self.refused))

    def items_by_producer(self) -> dict[int, int]:
        """For each producer about how many of its work-items one does that computes by itself what
        it reads, and what is needed for that: the box around them."""
        boxes: dict[int, tuple[int, ...]] = {}
        for (producer, _), version in sorted(self.found.items(), reverse=True):
            for s, halo in version.reads.items():
                needed = boxes.get(s, (1,) * len(halo))
                if len(needed) == len(halo):
                    halo = tuple(a + b - 1 for a, b in zip(halo, needed, strict=True))
                so_far = boxes.get(producer, halo)
                boxes[producer] = tuple(map(max, so_far, halo))
        return {producer: prod(box) for producer, box in boxes.items()}

    def last_readers(self) -> dict[int, frozenset[int]]:
        """For each producer the submissions that read what it computes, and compute nothing that
        others compute anew: those whose work-items do its work."""
        found: dict[int, frozenset[int]] = {}
        for (producer, _), version in sorted(self.found.items(), reverse=True):
            last = [found.get(s, frozenset([s])) for s in version.reads]
            if last:  # what nobody reads is computed where it stands
                found[producer] = found.get(producer, frozenset()).union(*last)
        return found

    def steps(self) -> dict[Key, int]:
        """For each version how many submissions in a row its computation is."""
        found: dict[Key, int] = {}
        needed: dict[int, int] = {}
        """For each submission the steps before it."""
        for key, version in sorted(self.found.items()):
            found[key] = needed.get(version.producer, 0) + 1
            for reader in version.reads:
                needed[reader] = max(needed.get(reader, 0), found[key])
        return found

    def of_depth(self, most: int) -> Versions:
        """Those with which a launch does at most so many submissions one after the other: every
        ``most``-th stays in memory."""
        left = dict(self.found)
        needed: dict[int, int] = {}
        for key, version in sorted(self.found.items()):
            steps = needed.get(version.producer, 0) + 1
            if steps >= most:
                del left[key]
                continue
            for reader in version.reads:
                needed[reader] = max(needed.get(reader, 0), steps)
        return Versions(left, dict(self.refused))


def versions(
    questions: Questions, dependences: Sequence[Sequence[PairScope]], options: FusionOptions
) -> Steps[Versions]:
    """The versions of a list's memories that submissions of it read; none where none of them is
    read by other work-items than write it.

    Those of which a work-item reads a single element only count where halos are asked for: what
    they are made of may be read again far from there (``t[n - 1 - i]``), which the model does not
    count (16 million floats in turn: 0.73 to 1.07 of unfused; ``t[i - 1]`` 1.5 to 2.3)."""
    finder = _Finder(questions, options)
    singles = options.strategy == "overlap"
    read: dict[Key, set[int]] = {}
    """Those whose work-items read what others write."""
    for s, needed in enumerate(dependences):
        for d in needed:
            if d.kind == "RAW" and d.scope not in ("NONE", "UNKNOWN"):
                key = d.producer, questions.place[s, d.consumer_argument].group
                crossing = read.setdefault(key, set())
                if d.scope != "ITEM":
                    crossing.add(s)
    for exchanged in (True, False):
        for key in sorted(read):
            if bool(read[key]) == exchanged:
                made = finder.version(*key, read[key] if singles else ())
                if isinstance(made, str):
                    finder.all.refused.setdefault(key[1], made)
                else:
                    finder.all.found[key] = made
                yield "analysis"
        if not finder.all.found:
            break
    return finder.all


class _Finder:
    def __init__(self, questions: Questions, options: FusionOptions) -> None:
        self._questions = questions
        self.all = Versions()
        submissions = range(len(questions.submissions))
        self._accesses = [accessed(questions, s) for s in submissions]
        self._writers: dict[int, list[int]] = {}
        self._readers: dict[int, list[int]] = {}
        for s in submissions:
            for group, kind in dict.fromkeys((a.group, a.kind) for a in self._accesses[s]):
                touched = self._writers if kind == "write" else self._readers
                touched.setdefault(group, []).append(s)
        self._differ = {
            place.group for place in questions.place.values() if place.by_address is not None
        }
        self._flagged = {
            group
            for group, places in flagged(questions, options)
            if not_promoted(questions, options, places) is None
        }

    def version(self, producer: int, group: int, crossing: Collection[int]) -> Version | str:
        """What ``producer`` writes to ``group``, of which the work-items of ``crossing`` may read
        what others write; or why nobody computes that anew."""
        if group in self._differ:
            return "the list uses it through views that differ or overlap themselves"
        kernel = self._questions.submissions[producer].ir
        reason = impure(kernel)
        if reason is not None:
            return reason
        argument = self._argument(producer, group, "write")
        writer = self._questions.ask(
            (producer,),
            ("writer", argument),
            partial(writer_of, argument=argument),
            other_sizes=True,
        )
        if isinstance(writer, str):
            return writer
        writers = self._writers[group]
        after = bisect_left(writers, producer + 1)
        following = writers[after] if after < len(writers) else None
        reads: dict[int, tuple[int, ...]] = {}
        completed = extended = False
        readers = self._readers[group]
        for s in readers[bisect_left(readers, producer + 1) :]:
            if following is not None and s > following:
                break
            read = self._argument(s, group)
            halo = self._halo(producer, s, argument, read, partly=False)
            if isinstance(halo, str):
                completed = True
                halo = self._halo(producer, s, argument, read, partly=True)
                if isinstance(halo, str):
                    return halo
                extended = extended or not self._reaches(producer, s, argument, read)
            reads[s] = halo
        replaced = following is not None and self._questions.ask(
            (producer, following),
            ("replaces", argument, again := self._argument(following, group, "write")),
            partial(replaces, written=argument, again=again),
            other_sizes=True,
        )
        return Version(
            producer, group, argument, reads, completed, replaced, group in self._flagged,
            frozenset(crossing) & reads.keys(), writer if extended else None,
        )  # fmt: skip

    def _halo(
        self, producer: int, s: int, written: int, read: int, partly: bool
    ) -> tuple[int, ...] | str:
        return self._questions.ask(
            (producer, s),
            ("halo", written, read, partly),
            partial(halo_of, written=written, read=read, partly=partly),
            other_sizes=True,
        )

    def _reaches(self, producer: int, s: int, written: int, read: int) -> bool:
        return self._questions.ask(
            (producer, s),
            ("reaches", written, read),
            partial(reaches, written=written, read=read),
            other_sizes=True,
        )

    def _argument(self, s: int, group: int, kind: str = "read") -> int:
        return next(a.argument for a in self._accesses[s] if a.group == group and a.kind == kind)
