"""Memory for the marks of what a checked list has written (``passes.written_marks``)."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.backends.base import Allocation, ArrayBinding, Backend
from fusionq.base.options import FusionOptions
from fusionq.memory.storage import Storage
from fusionq.planning.plan import ArgumentSource, StagePlan
from fusionq.submission.pending import SubmissionList


class WrittenMemory:
    """A byte for each place where an element may begin, of the allocations that a list has to write
    before it reads them: those that are new with it, and those that its options ask to promote."""

    def __init__(self, backend: Backend, pending: SubmissionList, options: FusionOptions) -> None:
        arguments = [
            a for s in pending.submissions() for a in s.arguments if isinstance(a, ArrayArgument)
        ]
        self._units: dict[int, int] = {}
        for a in arguments:
            unit = gcd(self._units.get(a.storage, 0), a.dtype.nbytes, a.offset, *a.strides)
            self._units[a.storage] = unit
        storages = {held.token: held for held in pending.memory if isinstance(held, Storage)}
        new = {token for token, held in storages.items() if held.address is None}
        kept = {a.storage for a in arguments if not _asked_to_promote(a, options)}
        self._marks: dict[int, Allocation] = {
            token: backend.allocate(max(held.nbytes // self._units[token], 1))
            for token, held in storages.items()
            if token in new or token not in kept
        }
        self._kept = new & kept
        self._launched = False

    def parameters(
        self, stage: StagePlan, submissions: Sequence[Submission]
    ) -> dict[str, ArrayArgument]:
        """The parameters of the stage's kernel that have marks, in order, and their arguments."""
        found = {}
        for param, source in zip(stage.kernel.params, stage.sources, strict=False):
            if isinstance(source, ArgumentSource):
                argument = submissions[source.submission].arguments[source.argument]
                if isinstance(argument, ArrayArgument) and argument.storage in self._marks:
                    found[param.name] = argument
        return found

    def binding(self, argument: ArrayArgument) -> ArrayBinding:
        """The marks of the argument's elements."""
        unit = self._units[argument.storage]
        return ArrayBinding(
            self._marks[argument.storage].address + argument.offset // unit,
            argument.shape,
            tuple(stride // unit for stride in argument.strides),
        )

    def begin(self) -> None:
        """A launch of the list begins: nothing has been written of what was new at its first one,
        and each time nothing of what is to be promoted."""
        for token, marks in self._marks.items():
            if self._launched and token in self._kept:
                marks.write(np.ones(marks.nbytes, np.uint8))
            else:
                marks.zero()
        self._launched = True


def _asked_to_promote(argument: ArrayArgument, options: FusionOptions) -> bool:
    if not argument.owned or options.promote == "none" or options.strategy == "unfused":
        return False
    flagged = argument.buffer_flag is not None or argument.access_flag is not None
    return flagged or (options.promote == "internal" and argument.internal)
