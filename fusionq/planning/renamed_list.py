"""A list in which versions that are computed anew have memories of their own.

    step(a, t);  edge(t, b)      →      step'(a, t');  t[i] = t'[i];  edge(t', b)

A submission that writes such versions is two: one computes them, for all elements of the memory
where its work-items have not all that are read; the other does all else, and stores what the buffer
has to have afterwards.  Those who read a version read its own memory, so
no work-item waits for the store, and none is in the way of what is written to the buffer next.
That memory is never allocated: all of it is computed anew where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from fusionq.analysis.item_space import global_range
from fusionq.analysis.live_accesses import accessed
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import Argument, ArrayArgument, Submission
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import Kernel, Store
from fusionq.ir.walk import statements
from fusionq.language.ranges import Range
from fusionq.passes.extended_range import Writing
from fusionq.passes.renamed_results import (
    NotRenamed,
    ResultsAlone,
    results_alone,
    results_copied,
)
from fusionq.planning.versions import Key, Version, Versions
from fusionq.planning.writing_items import writing_items

Place = tuple[int, int]
"""A submission and the position of one of its arguments."""

OF_RANGE = -1
"""In the place of a position: that what an argument has, its extents, are the range's."""


@dataclass(frozen=True)
class RenamedList:
    """``submissions`` that do what those of a user's list do, whose numbers are ``numbers``;
    ``origins``: whose each array argument is there; ``ranges``: for each submission whose range is
    the extents of one of its arguments, that; ``versions``: the argument by which each version is
    written, of which the ``stored`` ones are written to the user's memory as well."""

    submissions: tuple[Submission, ...]
    numbers: tuple[int, ...]
    origins: Mapping[Place, Place]
    ranges: Mapping[int, int]
    versions: Mapping[Place, Key]
    stored: frozenset[Key]


class NotDivided(Exception):
    """A submission cannot be divided: the versions ``keys`` stay in memory."""

    def __init__(self, keys: tuple[Key, ...], reason: str) -> None:
        super().__init__(reason)
        self.keys = keys


def renamed_list(questions: Questions, found: Versions, options: FusionOptions) -> RenamedList:
    """The list in which the versions ``found`` have memories of their own.

    Raises NotDivided where a submission cannot be divided so.
    """
    maker = _Maker(questions, found, options)
    for s in range(len(questions.submissions)):
        maker.add(s)
    return RenamedList(
        tuple(maker.made), tuple(maker.numbers), maker.origins, maker.ranges, maker.versions,
        maker.stored,
    )  # fmt: skip


class _Maker:
    def __init__(self, questions: Questions, found: Versions, options: FusionOptions) -> None:
        self._questions = questions
        self._found = found.found
        self._options = options
        self.made: list[Submission] = []
        self.numbers: list[int] = []
        self.origins: dict[Place, Place] = {}
        self.ranges: dict[int, int] = {}
        self.versions: dict[Place, Key] = {}
        self._storage: dict[Key, int] = {key: -1 - n for n, key in enumerate(found.found)}
        self._now: dict[int, Key] = {}
        """For each alias group the version that it has, if that has a memory of its own."""
        self._results_alone: dict[object, tuple[ResultsAlone, str]] = {}
        self._rests: dict[object, tuple[Kernel, Mapping[str, str], str]] = {}
        """The parts of kernels that are divided in the same way, with their fingerprints; what
        copies results with its new parameters."""
        wholly = self._wholly_renamed()
        self.stored = frozenset(
            key
            for key, v in self._found.items()
            if not v.replaced and not (v.flagged and v.group in wholly)
        )

    def _wholly_renamed(self) -> set[int]:
        """The alias groups that no submission touches any more but to store them."""
        touched = set()
        now: dict[int, Key] = {}
        for s in range(len(self._questions.submissions)):
            own = accessed(self._questions, s)
            writes = {a.group for a in own if a.kind == "write"}
            for group in {a.group for a in own}:
                v = self._found.get((s, group))
                in_place = v is None or v.completed if group in writes else group not in now
                if in_place:
                    touched.add(group)
            for group in writes:
                if (s, group) in self._found:
                    now[group] = s, group
                else:
                    now.pop(group, None)
        return {group for _, group in self._found} - touched

    def add(self, s: int) -> None:
        """The submissions that do what submission ``s``, the next one, does."""
        submission = self._questions.submissions[s]
        own = accessed(self._questions, s)
        writes = {a.group for a in own if a.kind == "write"}
        results = {group: v for group in writes if (v := self._found.get((s, group))) is not None}
        arguments = [
            self._renamed(a, key)
            if (lies := self._questions.place.get((s, k))) is not None
            and lies.group not in writes
            and (key := self._now.get(lies.group)) is not None
            else a
            for k, a in enumerate(submission.arguments)
        ]
        if results:
            self._divided(s, submission, arguments, results)
        else:
            self._put(s, replace(submission, arguments=tuple(arguments)), {})
        for group in writes:
            if group in results:
                self._now[group] = s, group
            else:
                self._now.pop(group, None)

    def _divided(
        self,
        s: int,
        submission: Submission,
        arguments: list[Argument],
        results: Mapping[int, Version],
    ) -> None:
        """The submission that computes ``results``, and the one that does the rest, if there is
        any."""
        questions = self._questions
        parameters = {
            group: [
                a.name
                for k, a in enumerate(arguments)
                if isinstance(a, ArrayArgument) and questions.place[s, k].group == group
            ]
            for group in results
        }
        names = [name for each in parameters.values() for name in each]
        written = {e.array for e in statements(submission.ir.body) if isinstance(e, Store)}
        completed = [
            name
            for group, v in results.items()
            if v.completed
            for name in parameters[group]
            if name in written
        ]
        position = {a.name: k for k, a in enumerate(arguments)}
        version_of = {name: (s, group) for group, each in parameters.items() for name in each}
        kept = [name for name in names if version_of[name] in self.stored and name in written]
        large = next((v for v in results.values() if v.extended is not None), None)
        extended = None
        if large is not None and large.extended is not None:
            array = arguments[large.argument].name
            extended = Writing(array, writing_items(submission, large.extended))
        try:
            computed = self._results(submission, names, completed, extended)
            rest = self._rest(submission, names, kept)
        except NotRenamed as reason:
            raise NotDivided(tuple(v.key for v in results.values()), str(reason)) from None
        alone, fingerprint = computed
        new = list(arguments)
        origins = {}
        for name in names:
            argument = arguments[position[name]]
            assert isinstance(argument, ArrayArgument)
            new[position[name]] = self._renamed(argument, version_of[name])
        for name, parameter in alone.before.items():
            origins[len(new)] = position[name]
            new.append(replace(arguments[position[name]], name=parameter))
        for name in names:
            self.versions[len(self.made), position[name]] = version_of[name]
        made = replace(submission, kernel=alone.kernel, fingerprint=fingerprint, form=None)
        if large is not None:
            assert alone.range_of is not None
            own = new[large.argument]
            assert isinstance(own, ArrayArgument)
            self.ranges[len(self.made)] = large.argument
            origins[len(new)] = OF_RANGE
            size = replace(own, name=alone.range_of, shape=tuple(global_range(submission)))
            new.append(_alone(size, -1 - len(self._found) - len(self.ranges)))
            made = replace(made, range=Range(*own.shape))
        self._put(s, replace(made, arguments=tuple(new)), origins)
        kernel, added, fingerprint = rest
        if not any(isinstance(e, Store) for e in statements(kernel.body)):
            return
        new, origins = list(arguments), {}
        for name in names:
            if name not in added:  # and so not touched any more
                new[position[name]] = self._renamed(new[position[name]], version_of[name])
        for name, parameter in added.items():
            argument = arguments[position[name]]
            assert isinstance(argument, ArrayArgument)
            origins[len(new)] = position[name]
            new.append(replace(self._renamed(argument, version_of[name]), name=parameter))
        self._put(
            s,
            replace(
                submission, kernel=kernel, arguments=tuple(new), fingerprint=fingerprint, form=None
            ),
            origins,
        )

    def _results(
        self,
        submission: Submission,
        names: list[str],
        completed: list[str],
        extended: Writing | None,
    ) -> tuple[ResultsAlone, str]:
        items = None if extended is None else (extended.array, *extended.items)
        key = (*_same(submission), "results", *names, *completed, items)
        if key not in self._results_alone:
            alone = results_alone(submission.ir, names, completed, extended)
            number = len(self._results_alone)
            self._results_alone[key] = alone, f"{submission.fingerprint} results {number}"
        return self._results_alone[key]

    def _rest(
        self, submission: Submission, names: list[str], kept: list[str]
    ) -> tuple[Kernel, Mapping[str, str], str]:
        key = (*_same(submission), "rest", *names, *kept)
        if key not in self._rests:
            kernel, added = results_copied(submission.ir, names, kept)
            number = len(self._rests)
            self._rests[key] = kernel, added, f"{submission.fingerprint} rest {number}"
        return self._rests[key]

    def _put(self, s: int, submission: Submission, added: Mapping[int, int]) -> None:
        number = len(self.made)
        self.made.append(submission)
        self.numbers.append(s)
        for k in range(len(submission.arguments)):
            self.origins[number, k] = s, added.get(k, k)

    def _renamed(self, argument: Argument, key: Key) -> ArrayArgument:
        """An argument in the memory of a version's own."""
        assert isinstance(argument, ArrayArgument)
        return replace(_alone(argument, self._storage[key]), buffer_flag="private")


def _alone(argument: ArrayArgument, storage: int) -> ArrayArgument:
    """An argument that has a memory of its own."""
    nbytes, shape = argument.dtype.nbytes, argument.shape
    strides = [nbytes * prod(shape[dim + 1 :]) for dim in range(len(shape))]
    return replace(
        argument,
        strides=tuple(strides),
        storage=storage,
        offset=0,
        address=None,
        owned=True,
        buffer_flag=None,
        access_flag=None,
        internal=False,
        alignment=None,
    )


def _same(submission: Submission) -> tuple[object, ...]:
    """Equal for submissions of the same kernel."""
    return submission.fingerprint, submission.signature, id(submission.ir)
