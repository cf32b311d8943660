"""How many streams of memory launches read and write at once, and what that takes out of cache.

Neighbouring work-items of a launch access the same planes of their arrays at neighbouring elements:
each such plane is a stream.  A CPU's prefetchers follow some at once, and memory has some pages
open: sums over rows took 15 GB/s of 8 streams, 11 of 16, 8 of 32, 4 of 4,096 (AMD EPYC, Zen 3).
One launch for many that follow each other has the streams of all, and what a launch has touched
may be in the cache for the next one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import prod, sqrt

from fusionq.analysis.item_space import global_range
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.ir.nodes import Atomic, Expr, Kernel, Load, Store
from fusionq.ir.walk import expressions, statements
from fusionq.planning.known_values import KnownValues, Sizes, sizes_of
from fusionq.planning.strides import Strides

Plane = tuple[str, tuple[Hashable, ...]]
"""An array with its indices where these are the same for all work-items, and None where not."""

LEAST_SHARE = 0.25
"""Of memory's bandwidth, however many streams there are."""


def planes(kernel: Kernel, sizes: Sizes) -> dict[Plane, bool]:
    """The planes that the work-items of a launch access, and whether it is known which of its
    array each of them is."""
    values = KnownValues(kernel, sizes)
    strides = [Strides(kernel, values, dim) for dim in range(kernel.ndim)]
    own = {array.name for array in kernel.arrays}
    found: dict[Plane, bool] = {}
    for array, indices in _accesses(kernel):
        if array in own:
            continue
        uniform = [all(each.of(index) == 0 for each in strides) for index in indices]
        known = [values.value(i) if u else None for i, u in zip(indices, uniform, strict=True)]
        which: list[Hashable] = [
            i if u and value is None else value
            for i, u, value in zip(indices, uniform, known, strict=True)
        ]
        found[array, tuple(which)] = all(
            value is not None for u, value in zip(uniform, known, strict=True) if u
        )
    return found


def _accesses(kernel: Kernel) -> Iterable[tuple[str, tuple[Expr, ...]]]:
    for expr in expressions(kernel.body):
        if isinstance(expr, Load):
            yield expr.array, expr.indices
    for stmt in statements(kernel.body):
        if isinstance(stmt, (Store, Atomic)):
            yield stmt.array, stmt.indices


@dataclass
class _Member:
    """The planes of a submission with their bytes, and the seconds of a launch of it alone behind
    the one before."""

    planes: dict[Hashable, int]
    seconds: float


class MemoryStreams:
    """Those of submissions that follow each other, as one launch and as a launch each."""

    def __init__(self, questions: Questions, target: Target) -> None:
        self._questions = questions
        self._target = target
        self._members: list[_Member] = []
        self._together: dict[Hashable, tuple[int, int]] = {}
        """Bytes of a plane, and of how many members it is one."""
        self._nbytes = 0
        self.apart = 0.0
        """Seconds of a launch each, as memory gives and takes what they access."""

    def __len__(self) -> int:
        return len(self._members)

    def add(self, s: int) -> None:
        """One more submission, the last."""
        own = self._planes(s)
        before = self._members[-1].planes if self._members else {}
        if sum(before.values()) > self._target.cache_bytes:
            before = {}
        new = [nbytes for plane, nbytes in own.items() if plane not in before]
        seconds = self._seconds(sum(new), len(new))
        self._members.append(_Member(own, seconds))
        self.apart += seconds
        for plane, nbytes in own.items():
            known, count = self._together.get(plane, (0, 0))
            self._together[plane] = max(known, nbytes), count + 1
            self._nbytes += max(nbytes - known, 0)

    def remove_last(self) -> None:
        """Undo the last ``add``."""
        member = self._members.pop()
        self.apart -= member.seconds
        for plane in member.planes:
            nbytes, count = self._together.pop(plane)
            if count > 1:
                self._together[plane] = nbytes, count - 1
            else:
                self._nbytes -= nbytes

    @property
    def count(self) -> int:
        """The streams of one launch for all of them."""
        return len(self._together)

    @property
    def joined(self) -> float:
        """Seconds of that launch, as memory gives and takes what it accesses."""
        return self._seconds(self._nbytes, self.count)

    def _seconds(self, nbytes: int, streams: int) -> float:
        costs = self._target.costs
        share = min(sqrt(self._target.free_streams / max(streams, 1)), 1.0)
        return nbytes / costs.memory_bandwidth / max(share, LEAST_SHARE)

    def _planes(self, s: int) -> dict[Hashable, int]:
        """Of a submission, by where their memory lies."""
        submission = self._questions.submissions[s]
        items = global_range(submission).size
        memory = {k: (group, view) for k, group, view, _ in self._questions.memory(s)}
        place = {a.name: k for k, a in enumerate(submission.arguments)}
        found: dict[Hashable, int] = {}
        for (array, which), is_known in planes(submission.ir, sizes_of(submission)).items():
            argument = submission.arguments[place[array]]
            assert isinstance(argument, ArrayArgument)
            whole = prod(argument.shape)
            elements = min(items, whole) if is_known else whole
            found[(*memory[place[array]], which)] = elements * argument.dtype.nbytes
        return found
