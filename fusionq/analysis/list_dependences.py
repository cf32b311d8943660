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

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from functools import partial

from fusionq.analysis.dependence import (
    DIFFERENT_ELEMENTS,
    Accessed,
    Between,
    PairScope,
    Unions,
    accesses_of,
    between,
    dependences_between,
)
from fusionq.analysis.element_boxes import Box, element_boxes, may_hold
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.overwritten import (
    are_apart,
    is_overwritten,
    overwritten_by_these,
    writes_within,
)
from fusionq.analysis.proof import in_steps, nothing_left, stop_if_late
from fusionq.analysis.questions import Questions
from fusionq.analysis.scope import DependenceKind
from fusionq.base.frozen import dataclass
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


@dataclass
class _Live:
    """The accesses of a submission to one memory, by position, that still matter."""

    reads: set[int]
    writes: set[int]
    partly: tuple[int, ...] = ()
    """The submissions since then that have written a part of it."""

    def __contains__(self, position: int) -> bool:
        return position in self.reads or position in self.writes


@dataclass
class _Memory:
    """What a list does to one memory: the live accesses by submission; a writer for each way in
    which it is written; and which of these ways write all that any of them does."""

    live: dict[int, _Live] = field(default_factory=dict)
    writers: dict[Hashable, int] = field(default_factory=dict)
    overwrites: dict[Hashable, bool] = field(default_factory=dict)
    unknown: tuple[int, str] | None = None
    """The last submission that was not compared with all that it would have to be, and why."""


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
        self.memories: dict[int, _Memory] = {}
        self.accesses: list[tuple[Accessed, ...]] = []
        self.uses: list[dict[int, _Use]] = []
        self.many = False
        """Whether accesses of many submissions have lived at once."""
        self.most = max(FEWEST_COMPARED, ALL_COMPARED // max(len(questions.submissions), 1))

    def note(self, s: int) -> None:
        """What submission ``s``, the next one, does to its memory."""
        accesses = accessed(self.questions, s)
        uses = _uses(accesses)
        ways = {group: self._way(s, group) for group, use in uses.items() if use.writes}
        self.accesses.append(accesses)
        self.uses.append(uses)
        for group in uses:
            memory = self.memories.setdefault(group, _Memory())
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
        pairs = [self._of_pair(p, s, many) for p in producers]
        exactly: dict[int, frozenset[int]] = {}
        if many:
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
        self.many = many
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
            memory.live[s] = _Live(set(use.reads), set(use.writes))
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
        group_of = {a.argument: a.group for a in self.accesses[p]}
        groups = {
            group_of[f.producer_argument] for f in found if f.kind != "RAW" and f.scope != "NONE"
        }
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

    def _of_pair(self, p: int, s: int, many: bool) -> tuple[Sequence[PairScope], frozenset[int]]:
        """The dependences of ``s`` on ``p``, and the accesses of ``p``, by position, all of whose
        elements ``s`` writes; ``many``: accesses of many submissions live, so that only those are
        looked at that do."""
        questions, pair = self.questions, (p, s)
        first, second = self.accesses[p], self.accesses[s]
        living = tuple(
            k
            for k, a in enumerate(first)
            if not many or ((live := self.memories[a.group].live.get(p)) and k in live)
        )

        def answer(analysis: ListAnalysis) -> tuple[Sequence[PairScope], frozenset[int]]:
            # Of the same two submissions: one analysis for all of it takes a fraction of what one
            # for each does, and what is found is kept with the relations (``ListAnalysis.once``).
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

        return questions.ask(pair, ("dependences", living, many), answer, other_sizes=True)

    def _way(self, s: int, group: int) -> Hashable:
        """Equal for submissions that write the same elements of a memory."""
        questions = self.questions
        own = tuple(m for m in questions.memory(s) if m[1] == group)
        integers = questions.integers(s)
        if integers and not questions.ask((s,), "writes depend on scalars", _scalar_writes):
            integers = ()
        return questions.kind(s), own, integers

    def _overwrites_all(self, memory: _Memory, s: int, group: int) -> bool:
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


@dataclass(frozen=True)
class _Use:
    """The accesses of a submission to one memory, by position; an argument that they go to."""

    argument: int
    reads: frozenset[int]
    writes: frozenset[int]


def _uses(accesses: Sequence[Accessed]) -> dict[int, _Use]:
    """What a submission does to each memory (alias group) that it touches."""
    found: dict[int, tuple[int, set[int], set[int]]] = {}
    for position, access in enumerate(accesses):
        _, reads, writes = found.setdefault(access.group, (access.argument, set(), set()))
        (reads if access.kind == "read" else writes).add(position)
    return {
        group: _Use(argument, frozenset(reads), frozenset(writes))
        for group, (argument, reads, writes) in found.items()
    }


def accessed(questions: Questions, s: int) -> tuple[Accessed, ...]:
    """The accesses of a submission, in program order."""
    group_of = {k: group for k, group, *_ in questions.memory(s)}
    accesses = questions.ask(
        (s,), "accesses", lambda analysis: accesses_of(analysis, 0), other_sizes=True
    )
    return tuple([Accessed(a.argument, group_of[a.argument], a.kind, a.span) for a in accesses])


def _scalar_writes(analysis: ListAnalysis) -> bool:
    """Of a single submission: whether which elements it writes depends on integer scalars."""
    _ = analysis.accesses
    scalars = set(analysis.shapes[0].params.values())
    return not scalars.isdisjoint(analysis.used_symbols(0, ("write",)))
