"""The dependences of a list, each submission compared with those only that still matter.

A dependence on a submission follows from others where everything of it that a third one, between
the two, writes anew is all that it touched: what comes later depends on the third, and that on the
first.  So an access *lives* until what it touched has been written again, and a submission is
compared with accesses that live: the last writers of its memory and the readers since.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from functools import partial

from fusionq.analysis.dependence import (
    Accessed,
    Between,
    PairScope,
    Unions,
    accesses_of,
    between,
    dependences_between,
)
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.overwritten import is_overwritten, writes_within
from fusionq.analysis.proof import in_steps, nothing_left
from fusionq.analysis.questions import Questions
from fusionq.analysis.scope import DependenceKind
from fusionq.base.frozen import dataclass
from fusionq.base.steps import Steps

FEWEST_COMPARED, ALL_COMPARED = 64, 40_000
"""Submissions that one is compared with: as many as it takes where a list is short, so that
``ALL_COMPARED`` pairs are enough for it, and ``FEWEST_COMPARED`` in any case."""

MOST_WRITERS = 16
"""Different kinds of writers of one memory whose elements are compared."""


@dataclass
class _Live:
    """The accesses of a submission to one memory, by position, that still matter."""

    reads: set[int]
    writes: set[int]


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
        pairs = [self._of_pair(p, s) for p in producers]
        overwrites = {
            group
            for group, use in own.items()
            if use.writes and self._overwrites_all(self.memories[group], s, group)
        }
        for p, (of_pair, overwritten) in zip(producers, pairs, strict=True):
            found += [f.between(p, s) for f in of_pair]
            for group, use in self.uses[p].items():
                live = self.memories[group].live.get(p)
                if live is not None and not overwritten.isdisjoint(use.reads | use.writes):
                    live.reads -= overwritten
                    live.writes -= overwritten
                    if not live.reads and not live.writes:
                        del self.memories[group].live[p]
        for group, use in own.items():
            memory = self.memories[group]
            if group in overwrites:
                memory.live.clear()
                memory.unknown = None
            memory.live[s] = _Live(set(use.reads), set(use.writes))
        return tuple(found)

    def _of_pair(self, p: int, s: int) -> tuple[Sequence[PairScope], frozenset[int]]:
        """The dependences of ``s`` on ``p``, and the accesses of ``p``, by position, all of whose
        elements ``s`` writes."""
        questions, pair = self.questions, (p, s)
        first, second = self.accesses[p], self.accesses[s]

        def compare(a: int, b: int) -> Between:
            return questions.ask(
                pair,
                ("between", a, b),
                lambda analysis: between(analysis, 0, a, 1, b),
                ((first[a].argument,), (second[b].argument,)),
                other_sizes=True,
            )

        def answer(_: ListAnalysis) -> tuple[Sequence[PairScope], frozenset[int]]:
            overwritten = set()
            for k, a in enumerate(first):
                others = tuple(b.argument for b in second if b.group == a.group)
                question = ("overwritten", k), partial(is_overwritten, position=k)
                about = (a.argument,), others
                if questions.ask(pair, *question, about, other_sizes=True):
                    overwritten.add(k)
            found = dependences_between(0, 1, first, second, compare, self.unions)
            return found, frozenset(overwritten)

        return questions.ask(pair, "dependences", answer, other_sizes=True)

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
