"""Integer scalars by which fusions divide, shift or mask, as constants where the plan holds for one
value only.

    i = pair // j * (2 * j) + pair % j    →    i = pair // 4 * 8 + pair % 4

A division by a constant is a multiplication or a shift; one by a scalar of 64 bits takes a GPU some
hundred instructions, and keeps a CPU's compiler from vectors.  What is proved about such indices
holds for the value that the scalar has (``Validity.pinned``), so the constant costs no plan.  It
costs a kernel for each value: only those of several submissions have it, which are built for the
list anyway, those that are alike but for these values ``MOST_VALUES`` times at most, and none where
another value has been seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from functools import cached_property

from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ScalarArgument
from fusionq.analysis.validity import ScalarPlace
from fusionq.ir.nodes import Binary, Const, Kernel, Param
from fusionq.ir.walk import expressions, operands, subexpressions
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.specialise import MOST_VALUES

_SECOND = ("floordiv", "mod", "shl", "shr")
_EITHER = ("and", "or", "xor")


class PinnedConstants:
    """Those of the list of ``questions``, but for scalars whose other values have been ``seen``."""

    def __init__(self, questions: Questions, seen: Collection[ScalarPlace]) -> None:
        self._questions = questions
        self._seen = frozenset(seen)
        self._wanted = ByKernel(_wanted)
        self._kinds: defaultdict[Hashable, set[tuple[int, ...]]] = defaultdict(set)
        """The values that fusions have, by what is alike of them."""
        self.used: dict[ScalarPlace, int] = {}
        """Those that are constants in some kernel."""

    @cached_property
    def _pinned(self) -> dict[ScalarPlace, int]:
        return self._questions.validity.pinned()

    def of(self, members: Sequence[int]) -> dict[ScalarPlace, int]:
        """The scalar arguments of ``members``, by their places in the list, to put in as constants
        in their one kernel, with their values."""
        submissions = self._questions.submissions
        if len(members) == 1 or not any(self._wanted[submissions[s].ir] for s in members):
            return {}
        found = {
            (s, k): int(argument.value)
            for s in members
            for names in (self._wanted[submissions[s].ir],)
            for k, argument in enumerate(submissions[s].arguments)
            if isinstance(argument, ScalarArgument)
            and argument.name in names
            and self._pinned.get((s, k)) == argument.value
            and (s, k) not in self._seen
        }
        number = self._questions.answers.number
        kinds = self._kinds[tuple([number(submissions[s].ir) for s in members])]
        values = tuple(found.values())
        if values not in kinds and len(kinds) == MOST_VALUES:
            return {}
        kinds.add(values)
        self.used |= found
        return found


def _wanted(kernel: Kernel) -> frozenset[str]:
    """The integer scalar parameters in what the kernel divides, shifts or masks by, where that is
    made of scalar parameters and constants only."""
    found: set[str] = set()
    for e in expressions(kernel.body):
        if not isinstance(e, Binary) or not e.type.is_integer:
            continue
        by_what = (e.rhs,) if e.op in _SECOND else (e.lhs, e.rhs) if e.op in _EITHER else ()
        for by in by_what:
            parts = list(subexpressions(by))
            if all(operands(part) or isinstance(part, (Const, Param)) for part in parts):
                found |= {part.name for part in parts if isinstance(part, Param)}
    return frozenset(found)
