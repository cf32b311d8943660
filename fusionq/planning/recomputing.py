"""Which temporaries are computed anew where they are read: those of which that is proved.

A producer all of whose results are temporaries, each read at bounded distances, need not run: its
consumers compute what they read of it themselves.  What is proved of producer and consumer is in
``analysis/recomputation.py``; here it is put together for a list, whose temporaries depend on each
other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from functools import partial

from fusionq.analysis.dependence import Accessed, Between, between
from fusionq.analysis.live_accesses import accessed
from fusionq.analysis.questions import Questions
from fusionq.analysis.recomputation import Writer, halo_of, writer_of
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.steps import Steps
from fusionq.ir.nodes import Atomic, Barrier, Fence, GroupCall, ItemQuery, Kernel
from fusionq.ir.walk import expressions, statements
from fusionq.planning.promotion import Place

_LOCAL_QUERIES = frozenset({"local_id", "local_range", "group_id", "group_range"})


@dataclass(frozen=True, slots=True)
class Temporary:
    """Memory (alias group ``group``) that submission ``producer`` writes through its argument
    ``argument``; for each of its consumers how many of the producer's work-items it needs in each
    dimension."""

    group: int
    producer: int
    argument: int
    writer: Writer
    halo: dict[int, tuple[int, ...]]


@dataclass
class RecomputedTemporaries:
    """Those that are computed anew, by alias group, and why the others are not."""

    found: dict[int, Temporary] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)

    def refuse(self, group: int, reason: str) -> None:
        """Leave a temporary in memory."""
        del self.found[group]
        self.refused[group] = reason


def temporaries(questions: Questions, groups: Collection[int]) -> Steps[RecomputedTemporaries]:
    """Of the memories ``groups`` (alias groups) of a list those that are computed anew."""
    finder = _Finder(questions)
    uses: dict[int, list[Place]] = {group: [] for group in groups}
    for place, lies in questions.place.items():
        if lies.group in uses:
            uses[lies.group].append(place)
    for group, places in uses.items():
        made = finder.temporary(group, places)
        if isinstance(made, str):
            finder.all.refused[group] = made
        else:
            finder.all.found[group] = made
        yield "analysis"
    while finder.all.found:
        before = len(finder.all.found)
        finder.drop_partial()
        yield "analysis"
        yield from finder.drop_overwritten()
        if len(finder.all.found) == before:
            break
    return finder.all


class _Finder:
    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.all = RecomputedTemporaries()
        submissions = range(len(questions.submissions))
        self.accesses = [accessed(questions, s) for s in submissions]
        self.writers: dict[int, list[int]] = {}
        """The submissions that write to an alias group."""
        for s in submissions:
            for group in self._groups(s, "write"):
                self.writers.setdefault(group, []).append(s)

    def _groups(self, s: int, kind: str) -> Iterator[int]:
        return iter(dict.fromkeys(a.group for a in self.accesses[s] if a.kind == kind))

    def temporary(self, group: int, places: Sequence[Place]) -> Temporary | str:
        """The memory at ``places``, or why its elements are not computed anew."""
        questions = self.questions
        if any(questions.place[place].by_address is not None for place in places):
            return "the list uses it through views that differ or overlap themselves"
        writers = self.writers.get(group, [])
        if len(writers) != 1:
            return f"{len(writers)} submissions write it"
        producer = writers[0]
        used = {s: [a for a in self.accesses[s] if a.group == group] for s, _ in places}
        consumers = sorted(s for s, accesses in used.items() if accesses and s != producer)
        if not consumers:
            return "no other submission reads it"
        if consumers[0] < producer:
            first = self.questions.numbers[consumers[0]]
            return f"submission {first} reads what was there before"
        kernel = questions.submissions[producer].ir
        reason = impure(kernel)
        if reason is not None:
            return reason
        argument = used[producer][0].argument
        writer = questions.ask(
            (producer,),
            ("writer", argument),
            partial(writer_of, argument=argument),
            other_sizes=True,
        )
        if isinstance(writer, str):
            return writer
        halo: dict[int, tuple[int, ...]] = {}
        for s in consumers:
            read = used[s][0].argument
            items = questions.ask(
                (producer, s),
                ("halo", argument, read),
                partial(halo_of, written=argument, read=read),
                other_sizes=True,
            )
            if isinstance(items, str):
                return items
            halo[s] = items
        return Temporary(group, producer, argument, writer, halo)

    def drop_partial(self) -> None:
        """Leave out what submissions write that write other memory too."""
        while True:
            partly = [
                (t.group, other)
                for t in self.all.found.values()
                for other in self._groups(t.producer, "write")
                if other not in self.all.found
            ]
            if not partly:
                return
            for group, other in dict(partly).items():
                label = self._label(self.all.found[group].producer, other)
                self.all.refuse(group, f"the submission that writes it writes `{label}` too")

    def drop_overwritten(self) -> Steps[None]:
        """Leave out what is made of memory that is written before, or where, it would be read."""
        last: dict[int, int] = {}
        """By producer the last submission that computes what it does."""
        for t in sorted(self.all.found.values(), key=lambda t: -t.producer):
            reached = max(last.get(s, s) for s in t.halo)
            last[t.producer] = max(reached, last.get(t.producer, reached))
        for producer, reached in last.items():
            reason = self._overwritten(producer, reached)
            if reason is not None:
                for t in list(self.all.found.values()):
                    if t.producer == producer:
                        self.all.refuse(t.group, reason)
            yield "analysis"

    def _overwritten(self, producer: int, reached: int) -> str | None:
        """Why what ``producer`` reads is not the same until submission ``reached`` has run."""
        numbers = self.questions.numbers
        for k, read in enumerate(self.accesses[producer]):
            if read.kind != "read":
                continue
            writers = self.writers.get(read.group, [])
            first, beyond = (bisect_right(writers, s) for s in (producer, reached))
            for s in writers[first:beyond]:
                for b, written in enumerate(self.accesses[s]):
                    if written.kind != "write" or written.group != read.group:
                        continue
                    if self._between(producer, k, read, s, b, written).scope != "NONE":
                        return (
                            f"submission {numbers[s]} writes at {written.span} what submission "
                            f"{numbers[producer]} reads at {read.span}"
                        )
        return None

    def _between(
        self, producer: int, k: int, read: Accessed, s: int, b: int, written: Accessed
    ) -> Between:
        return self.questions.ask(
            (producer, s),
            ("between", k, b),
            lambda analysis: between(analysis, 0, k, 1, b),
            ((read.argument,), (written.argument,)),
            other_sizes=True,
        )

    def _label(self, s: int, group: int) -> str:
        position = next(k for k, other, *_ in self.questions.memory(s) if other == group)
        return self.questions.buffer_name(s, position)


def impure(kernel: Kernel, atomics: bool = False) -> str | None:
    """Why a kernel does more for a work-item than compute values, or ``atomics``; None if it does
    not."""
    with_atomics, others = _impure(kernel)
    return others if atomics else with_atomics


@cached_by_identity
def _impure(kernel: Kernel) -> tuple[str | None, str | None]:
    """Why a kernel is impure, and why where atomics do not count."""
    atomic = None
    for s in statements(kernel.body):
        if isinstance(s, (Barrier, GroupCall)):
            reason = f"{kernel.name} has work-group barriers or group functions"
            return atomic or reason, reason
        if isinstance(s, (Atomic, Fence)) and atomic is None:
            atomic = f"{kernel.name} has the atomic operation or fence at {s.span}"
    other = _impure_outside_of_statements(kernel)
    return atomic or other, other


def _impure_outside_of_statements(kernel: Kernel) -> str | None:
    if any(a.space == "local" for a in kernel.arrays):
        return f"{kernel.name} uses local memory"
    if kernel.sub_group_size is not None or any(
        isinstance(e, ItemQuery) and e.query in _LOCAL_QUERIES for e in expressions(kernel.body)
    ):
        return f"{kernel.name} asks for its place in a work-group"
    return None
