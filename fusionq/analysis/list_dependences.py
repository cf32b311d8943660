"""The dependences of a list, each submission compared with those only that still matter.

A dependence on a submission follows from others where everything of it that a third one, between
the two, writes anew is all that it touched: what comes later depends on the third, and that on the
first.  So an access *lives* until what it touched has been written again, and a submission is
compared with accesses that live: the last writers of its memory and the readers since.

Where many live, more is tried to end their lives: several submissions together write all elements,
each its part, as the two halves of a step of an in-place transform do; or one does for today's
sizes.  And whether two submissions share elements at all is one question before those about their
accesses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from fusionq.analysis.dependence import (
    DIFFERENT_ELEMENTS,
    Accessed,
    Between,
    PairScope,
    Unions,
    between,
    dependences_between,
)
from fusionq.analysis.element_boxes import Box, element_boxes, may_hold
from fusionq.analysis.isl_operations import in_steps, nothing_left, stop_if_late
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.live_accesses import (
    LiveAccesses,
    MemoryUse,
    MemoryUses,
    accessed,
    uses_of,
)
from fusionq.analysis.overwritten import (
    are_apart,
    is_overwritten,
    overwritten_by_these,
    writes_within,
)
from fusionq.analysis.questions import Questions
from fusionq.analysis.scope import DependenceKind
from fusionq.base.steps import Steps

FEWEST_COMPARED, ALL_COMPARED = 64, 40_000
"""Submissions that one is compared with: as many as it takes where a list is short, so that
``ALL_COMPARED`` pairs are enough for it, and ``FEWEST_COMPARED`` in any case."""

FEW_LIVE = 4
"""Submissions of which accesses live, beyond which more is tried to end their lives: that narrows
down the sizes that the answers serve."""

MOST_TOGETHER = 3
"""Submissions that are asked whether they write all elements of an access together."""

MOST_WRITERS = 16
"""Different kinds of writers of one memory whose elements are compared."""


MOST_COVERING = 4
"""Writers of which each is asked whether it wrote all that an access touches."""

_OfPair = tuple[Sequence[PairScope], frozenset[int]]
"""The dependences of one submission on another, and the accesses of that, by position, all of whose
elements it writes."""


def direct_dependences(
    questions: Questions, found: list[tuple[PairScope, ...]] | None = None
) -> Steps[list[tuple[PairScope, ...]]]:
    """For each submission its dependences on earlier ones that do not follow from others, in order
    of the producers; scope ``NONE`` where memory is shared but no element is.  ``found``: an empty
    list that becomes the result, for those who look at it between two steps.

    One submission has none, and its kernel is not read: what it does rests on no scalar's value.
    """
    if len(questions.submissions) == 1:
        return [()]
    finder = _Finder(questions)
    found = [] if found is None else found
    every = range(len(questions.submissions))
    for s in every:
        yield from in_steps(partial(finder.note, s))
        yield "analysis"
    for s in every:
        found.append((yield from in_steps(partial(finder.consumer, s))))
        yield "analysis"
    return found


class _Finder:
    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.unions = Unions()
        self.memories: dict[int, MemoryUses] = {}
        self.accesses: list[tuple[Accessed, ...]] = []
        self.uses: list[dict[int, MemoryUse]] = []
        self.in_vain: Counter[int] = Counter()
        """By family, of how many submissions, one after the other, the dependences on all living
        ones were looked at although it was asked who wrote what they touch."""
        self.many = False
        """Whether accesses of many submissions have lived at once."""
        self.most = max(FEWEST_COMPARED, ALL_COMPARED // max(len(questions.submissions), 1))

    def note(self, s: int) -> None:
        """What submission ``s``, the next one, does to its memory."""
        accesses = accessed(self.questions, s)
        uses = uses_of(accesses)
        ways = {group: self._way(s, group) for group, use in uses.items() if use.writes}
        self.accesses.append(accesses)
        self.uses.append(uses)
        for group in uses:
            memory = self.memories.setdefault(group, MemoryUses())
            if group in ways:
                memory.writers.setdefault(ways[group], s)

    def consumer(self, s: int) -> tuple[PairScope, ...]:
        """The dependences of submission ``s``, the next one, once all are noted."""
        own = self.uses[s]
        producers = sorted(
            {
                p
                for group, use in own.items()
                for p, live in self.memories[group].live.items()
                if live.writes or (use.writes and live.reads)
            }
        )
        why = nothing_left()
        if why is None and len(producers) > self.most:
            why = (
                f"more than {self.most} submissions use this memory and nothing overwrites all of "
                "it: they are too many to compare"
            )
        found = [
            self._unknown(since[0], s, group, since[1])
            for group in own
            if (since := self.memories[group].unknown) is not None
        ]
        if why is not None:
            found += [
                self._unknown(p, s, group, why)
                for p in producers
                for group, use in own.items()
                if group in self.uses[p] and (use.writes or self.uses[p][group].writes)
            ]
            for group in own:
                memory = self.memories[group]
                if memory.writers:
                    memory.live.clear()
                    memory.unknown = s, why
            return tuple(found)
        many = self.many or len(producers) > FEW_LIVE
        exactly: dict[int, frozenset[int]] = {}
        in_vain = self.in_vain
        if not many:
            pairs = self._of_pairs(producers, s, many)
        else:
            in_vain = self.in_vain.copy()
            latest = self._of_latest(producers, s, in_vain)
            producers, pairs = list(latest), list(latest.values())
            exactly = {p: self._ended(p, s, *f) for p, f in zip(producers, pairs, strict=True)}
        partly = {
            (p, group): (*self.memories[group].live[p].partly, s)
            for p, (of_pair, _) in zip(producers, pairs, strict=True)
            for group in self._partly_written(p, of_pair)
            if len(self.memories[group].live[p].partly) < MOST_TOGETHER
        }
        asked = partly
        if many and not self.many:
            asked = {(p, g): self.memories[g].live[p].partly for p, g in self._living()} | partly
        together = self._overwritten_together(asked) if many else {}
        overwrites = {
            group
            for group, use in own.items()
            if use.writes and self._overwrites_all(self.memories[group], s, group)
        }
        self.many, self.in_vain = many, in_vain  # from here on nothing is asked
        for p, group in partly:
            self.memories[group].live[p].partly = partly[p, group]
        for p, (of_pair, overwritten) in zip(producers, pairs, strict=True):
            found += [f.between(p, s) for f in of_pair]
            for group in self.uses[p]:
                self._ends(p, group, overwritten | exactly.get(p, frozenset()))
        for (p, group), overwritten in together.items():
            self._ends(p, group, overwritten)
        for group, use in own.items():
            memory = self.memories[group]
            if group in overwrites:
                memory.live.clear()
                memory.unknown = None
            memory.live[s] = LiveAccesses(set(use.reads), set(use.writes))
        return tuple(found)

    def _ends(self, p: int, group: int, overwritten: frozenset[int]) -> None:
        """The ``overwritten`` accesses of a submission to a memory, by position, live no longer."""
        live = self.memories[group].live
        own = live.get(p)
        if own is not None and not overwritten.isdisjoint(own.reads | own.writes):
            own.reads -= overwritten
            own.writes -= overwritten
            if not own.reads and not own.writes:
                del live[p]

    def _partly_written(self, p: int, found: Sequence[PairScope]) -> set[int]:
        """The memories of which another submission, which depends on ``p`` so, writes elements that
        a living access of ``p`` touched."""
        arguments = {f.producer_argument for f in found if f.kind != "RAW" and f.scope != "NONE"}
        if not arguments:
            return arguments
        groups = {a.group for a in self.accesses[p] if a.argument in arguments}
        return {group for group in groups if p in self.memories[group].live}

    def _living(self) -> list[tuple[int, int]]:
        """The submissions, each with a memory, to which it has accesses that live."""
        return [(p, group) for group, memory in self.memories.items() for p in memory.live]

    def _overwritten_together(
        self, asked: Mapping[tuple[int, int], tuple[int, ...]]
    ) -> dict[tuple[int, int], frozenset[int]]:
        """The living accesses of a submission to a memory, by position, all of whose elements those
        have written together that have written a part of them; ``asked`` has these."""
        found = {}
        for (p, group), writers in asked.items():
            if len(writers) > 1:
                live = self.memories[group].live[p]
                found[p, group] = frozenset(
                    k
                    for k in live.reads | live.writes
                    if self._is_overwritten((p, *writers), k, group, True)
                )
        return found

    def _ended(
        self, p: int, s: int, found: Sequence[PairScope], overwritten: frozenset[int]
    ) -> frozenset[int]:
        """The living accesses of ``p``, by position, all of whose elements ``s`` writes, which
        depends on ``p`` as ``found`` and by an answer that serves other scalars, too, has written
        those of ``overwritten``."""
        questions = self.questions
        integers = questions.integers(p) + questions.integers(s)
        groups = self._partly_written(p, found) if integers else ()
        of_first, of_second = self._boxes(p) if groups else (), self._boxes(s) if groups else ()
        asked = tuple(
            k
            for group in groups
            for live in (self.memories[group].live[p],)
            for k in sorted((live.reads | live.writes) - overwritten)
            if may_hold([of_second[b] for b in self.uses[s][group].writes], of_first[k])
        )
        if not asked:
            return frozenset()
        question = "overwritten by these", asked, integers
        return questions.ask((p, s), question, partial(overwritten_by_these, positions=asked))

    def _boxes(self, s: int) -> tuple[Box, ...]:
        """The boxes around the elements of the accesses of a submission."""
        question = "element boxes", self.questions.integers(s)
        return self.questions.ask((s,), question, element_boxes)

    def _is_overwritten(
        self, members: Sequence[int], position: int, group: int, here: bool
    ) -> bool:
        """Whether the members after the first write all elements that an access of the first
        touches; for today's sizes, if ``here``."""
        access = self.accesses[members[0]][position]
        others = [
            tuple(sorted({b.argument for b in self.accesses[m] if b.group == group}))
            for m in members[1:]
        ]
        return self.questions.ask(
            members,
            ("overwritten", position, here),
            partial(is_overwritten, position=position, here=here),
            ((access.argument,), *others),
            other_sizes=True,
        )

    def _of_latest(
        self, producers: Sequence[int], s: int, in_vain: Counter[int]
    ) -> dict[int, _OfPair]:
        """As ``_of_pairs``, of those of ``producers`` alone that are not older than what wrote all
        that ``s`` touches: its dependences on older ones follow from those.  Counts what is asked
        ``in_vain``."""
        left = {group: use.reads | use.writes for group, use in self.uses[s].items()}
        tried: Counter[int] = Counter()

        def matters(p: int) -> bool:
            """Whether an access of ``s`` that is ``left`` may depend on one of ``p`` that lives."""
            for group, own in left.items():
                live = self.memories[group].live.get(p) if own else None
                if live and (live.writes or not own.isdisjoint(self.uses[s][group].writes)):
                    return True
            return False

        # Where it ends nothing time after time, that is asked at the first, second, fourth, … time.
        family = self.questions.family(s)
        tries = in_vain[family] & (in_vain[family] - 1) == 0
        found: dict[int, _OfPair] = {}
        older, count = list(producers), FEW_LIVE if tries else len(producers)
        while older and any(left.values()):
            some = list(filter(matters, older[-count:]))
            del older[-count:]
            count *= 2
            pairs = self._of_pairs(some, s, many=True)
            for p, pair in zip(reversed(some), reversed(pairs), strict=True):
                if not matters(p):
                    continue
                found[p] = pair
                for group in self._written_by(p, pair[0]) if tries else ():
                    boxes, own = self._boxes(p), self._boxes(s)
                    written = [boxes[k] for k in self.uses[p][group].writes]
                    few = [k for k in sorted(left[group]) if tried[k] < MOST_COVERING]
                    asked = [k for k in few if may_hold(written, own[k])]
                    tried.update(asked)
                    left[group] -= self._covered(s, asked, p, group)
        in_vain[family] = in_vain[family] + 1 if len(found) == len(producers) else 0
        return dict(sorted(found.items()))

    def _covered(self, s: int, asked: Sequence[int], p: int, group: int) -> frozenset[int]:
        """Those of the accesses of ``s`` that are ``asked`` about, by position, all of whose
        elements an earlier ``p`` has written."""
        if not asked:
            return frozenset()
        covered = frozenset(k for k in asked if self._is_overwritten((s, p), k, group, True))
        integers = self.questions.integers(s) + self.questions.integers(p)
        left = tuple([k for k in asked if k not in covered])
        if not left or not integers:
            return covered
        question = "overwritten by these", left, integers
        return covered | self.questions.ask(
            (s, p), question, partial(overwritten_by_these, positions=left)
        )

    def _written_by(self, p: int, found: Sequence[PairScope]) -> set[int]:
        """The memories of which ``p`` writes elements that another one touches, which depends on it
        as ``found``."""
        arguments = {f.producer_argument for f in found if f.kind != "WAR" and f.scope != "NONE"}
        return {a.group for a in self.accesses[p] if a.argument in arguments}

    def _of_pairs(
        self, producers: Sequence[int], s: int, many: bool
    ) -> list[_OfPair]:
        """The dependences of ``s`` on each of ``producers``, and the accesses of these, by
        position, all of whose elements ``s`` writes; ``many``: accesses of many submissions live,
        so that only those are looked at that do."""
        living = [
            self._alive(p) if many else tuple(range(len(self.accesses[p]))) for p in producers
        ]
        return self.questions.ask_of_each(
            producers,
            s,
            [("dependences", own, many) for own in living],
            lambda k: partial(self._compared, producers[k], s, living[k], many),
        )

    def _alive(self, p: int) -> tuple[int, ...]:
        """The accesses of a submission, by position, that live."""
        lives = [self.memories[group].live.get(p) for group in self.uses[p]]
        return tuple(sorted([k for one in lives if one for k in (*one.reads, *one.writes)]))

    def _compared(
        self, p: int, s: int, living: tuple[int, ...], many: bool, analysis: ListAnalysis
    ) -> _OfPair:
        """What ``_of_pairs`` returns of a pair.  One analysis for all of it takes a fraction of
        what one for each question does, and what is found is kept with the relations
        (``ListAnalysis.once``)."""
        first, second = self.accesses[p], self.accesses[s]

        def compare(a: int, b: int) -> Between:
            stop_if_late()
            return between(analysis, 0, living[a], 1, b)

        alive = [first[k] for k in living]
        overwritten: frozenset[int] = frozenset()
        if many and are_apart(analysis, living):
            found = dependences_between(0, 1, alive, second, _apart, self.unions)
        else:
            overwritten = frozenset(k for k in living if is_overwritten(analysis, k, many))
            found = dependences_between(0, 1, alive, second, compare, self.unions)
        if len(living) < len(first):  # the others may touch what the second touches
            found = tuple(f for f in found if f.scope != "NONE")
        return found, overwritten

    def _way(self, s: int, group: int) -> Hashable:
        """Equal for submissions that write the same elements of a memory."""
        questions = self.questions
        own = tuple(m for m in questions.memory(s) if m[1] == group)
        integers = questions.integers(s)
        if integers and not questions.ask((s,), "writes depend on scalars", _scalar_writes):
            integers = ()
        return questions.kind(s), own, integers

    def _overwrites_all(self, memory: MemoryUses, s: int, group: int) -> bool:
        """Whether a submission writes all elements that are ever written: nothing that came before
        matters to what comes after it."""
        if len(memory.writers) > MOST_WRITERS:
            return False
        way = self._way(s, group)
        if way not in memory.overwrites:
            memory.overwrites[way] = all(
                other == way or self._writes_within(writer, s, group)
                for other, writer in memory.writers.items()
            )
        return memory.overwrites[way]

    def _writes_within(self, writer: int, s: int, group: int) -> bool:
        pair = writer, s
        within = self.questions.ask(pair, "writes within", writes_within, other_sizes=True)
        return any(k in within for k, own, *_ in self.questions.memory(writer) if own == group)

    def _unknown(self, producer: int, consumer: int, group: int, why: str) -> PairScope:
        """A dependence between two submissions that share memory and are not compared, and ``why``;
        where both only read, on what was written before the first of them."""
        first, second = self.uses[producer][group], self.uses[consumer][group]
        written: DependenceKind = "WAW" if first.writes else "WAR"
        kind: DependenceKind = written if second.writes else "RAW"
        submissions = self.questions.submissions
        return PairScope(
            producer, consumer, first.argument, second.argument, kind, "UNKNOWN", why,
            submissions[producer].ir.span, submissions[consumer].ir.span,
        )  # fmt: skip


def _apart(_first: int, _second: int) -> Between:
    """Between accesses that have no element in common."""
    return Between("NONE", DIFFERENT_ELEMENTS)


def _scalar_writes(analysis: ListAnalysis) -> bool:
    """Of a single submission: whether which elements it writes depends on integer scalars."""
    _ = analysis.accesses
    scalars = set(analysis.shapes[0].params.values())
    return not scalars.isdisjoint(analysis.used_symbols(0, ("write",)))
