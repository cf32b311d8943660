"""The submissions of a stage, as far as it matters which others may join them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from math import prod
from typing import Any

from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.ir.walk import private_bytes
from fusionq.passes.local_memory import launched_bytes
from fusionq.planning.cost import Work
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import sizes_of
from fusionq.planning.memory_streams import MemoryStreams
from fusionq.planning.work import operations, work_of


@dataclass
class _Counted:
    """How many members there are of a kind, and the first of them."""

    first: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """``count`` members that are like ``submission``; the ``work`` of one of its work-items, and
    its scalar ``operations``."""

    submission: Submission
    count: int
    work: Work
    operations: float


@dataclass
class KnownKinds:
    """What has been found out about kinds of a list's submissions: the work of a work-item and its
    operations; the bytes of local memory, and of private memory of a work-item; with the values of
    integer scalars the operations of all work-items."""

    done: dict[int, tuple[Work, float]] = field(default_factory=dict)
    taken: dict[int, tuple[int, int]] = field(default_factory=dict)
    operations: dict[Hashable, float] = field(default_factory=dict)


class Members:
    """Submissions that run together.  What is asked about them is asked of one of each kind, so
    that it costs no more where a stage has many; ``known``: what other stages of the list have
    found out."""

    def __init__(
        self,
        questions: Questions,
        target: Target,
        submissions: Sequence[int] = (),
        known: KnownKinds | None = None,
    ) -> None:
        self._questions = questions
        self._target = target
        self._known = known or KnownKinds()
        self._kinds: dict[int, _Counted] = {}
        self._works: dict[Hashable, _Counted] = {}
        self._memory: dict[tuple[int, int], tuple[int, int]] = {}
        self._streams = MemoryStreams(questions, target)
        self.numbers: list[int] = []
        self.private_bytes = 0
        """Of the private arrays of a work-item, for all of them."""
        self.local_bytes = 0
        """Local memory that a work-group takes for all of them."""
        for s in submissions:
            self.add(s)

    def add(self, s: int) -> None:
        """One more, the last."""
        questions = self._questions
        self.numbers.append(s)
        kind = questions.kind(s)
        local, private = self._memory_taken(s)
        self.local_bytes += local
        self.private_bytes += private
        self._kinds.setdefault(kind, _Counted(s)).count += 1
        self._works.setdefault((kind, questions.integers(s)), _Counted(s)).count += 1
        for k, group, view, _ in questions.memory(s):
            nbytes, count = self._memory.get((group, view), (0, 0))
            argument = questions.submissions[s].arguments[k]
            assert isinstance(argument, ArrayArgument)
            nbytes = nbytes or prod(argument.shape) * argument.dtype.nbytes
            self._memory[group, view] = nbytes, count + 1

    def remove_last(self) -> None:
        """Undo the last ``add``."""
        questions = self._questions
        s = self.numbers.pop()
        if len(self._streams) > len(self.numbers):
            self._streams.remove_last()
        kind = questions.kind(s)
        local, private = self._memory_taken(s)
        self.local_bytes -= local
        self.private_bytes -= private
        _uncount(self._kinds, kind)
        _uncount(self._works, (kind, questions.integers(s)))
        for _, group, view, _ in questions.memory(s):
            nbytes, count = self._memory[group, view]
            self._memory[group, view] = nbytes, count - 1
            if count == 1:
                del self._memory[group, view]

    def _memory_taken(self, s: int) -> tuple[int, int]:
        """The local memory that a submission takes, and the private memory of a work-item."""
        kind = self._questions.kind(s)
        taken = self._known.taken
        if kind not in taken:
            submission = self._questions.submissions[s]
            ir, local = submission.ir, local_range(submission)
            taken[kind] = launched_bytes(ir, local, self._target.device), private_bytes(ir)
        return taken[kind]

    @property
    def streams(self) -> MemoryStreams:
        """The streams of memory that they read and write."""
        for s in self.numbers[len(self._streams) :]:
            self._streams.add(s)
        return self._streams

    @property
    def different(self) -> list[Submission]:
        """One of each kind, in order."""
        return [self._questions.submissions[kind.first] for kind in self._kinds.values()]

    @property
    def kinds(self) -> list[Kind]:
        """Their kinds; the last of them is of the last kind of these."""
        last = self._questions.kind(self.numbers[-1])
        submissions = self._questions.submissions
        done = self._known.done
        found = []
        for number, kind in sorted(self._kinds.items(), key=lambda each: each[0] == last):
            submission = submissions[kind.first]
            if number not in done:
                sizes = sizes_of(submission)
                work = item_work(submission.ir, sizes, self._target)
                done[number] = work, operations(submission.ir, sizes)
            found.append(Kind(submission, kind.count, *done[number]))
        return found

    @property
    def work(self) -> float:
        """Scalar operations of all of them."""
        submissions, known = self._questions.submissions, self._known.operations
        for key, each in self._works.items():
            if key not in known:
                known[key] = work_of(submissions[each.first])
        return sum(each.count * known[key] for key, each in self._works.items())

    @property
    def memory_bytes(self) -> int:
        """Bytes of their arrays, each once."""
        return sum(nbytes for nbytes, _ in self._memory.values())

    def idle(self, items: int) -> int:
        """How often, of ``items`` work-items, one has nothing to do for one of them."""
        submissions = self._questions.submissions
        return sum(
            kind.count * (items - global_range(submissions[kind.first]).size)
            for kind in self._kinds.values()
        )

    def masked(self, local: Sequence[int], extents: Sequence[int]) -> int:
        """How many work-items, of all of them, are in groups of ``local`` of which a part is beyond
        the submission's range, in an index space of ``extents``."""
        submissions = self._questions.submissions
        found = 0
        for kind in self._kinds.values():
            range_ = global_range(submissions[kind.first])
            if len(range_) == len(extents):
                sides = zip(range_, local, strict=True)
                found += kind.count * (range_.size - prod(n // size * size for n, size in sides))
        return found


def _uncount(table: dict[Any, _Counted], key: Hashable) -> None:
    table[key].count -= 1
    if not table[key].count:
        del table[key]
