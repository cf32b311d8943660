"""What was found out about a list that was made of a user's, in terms of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.questions import Questions
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Validity
from fusionq.base.frozen import dataclass
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource, RangeSource
from fusionq.planning.plan import StagePlan
from fusionq.planning.renamed_list import OF_RANGE, Place


@dataclass(frozen=True)
class UsersList:
    """The user's list, of ``questions``: ``numbers`` has that of each submission of the made list,
    ``origins`` the place of each of its arguments there; ``ranges``: for those whose range is the
    extents of an argument, that; ``shapes``: for those of the user's whose linear ids are done as
    rows, or by work-groups of another one, the sources of their extents."""

    questions: Questions
    numbers: Sequence[int]
    origins: Mapping[Place, Place]
    ranges: Mapping[int, int]
    shapes: Mapping[int, Sequence[RangeSource | ExtentSource]]

    @staticmethod
    def in_place(
        questions: Questions, shapes: Mapping[int, Sequence[RangeSource | ExtentSource]]
    ) -> UsersList:
        """That of a made list whose submissions and arguments are where the user's are."""
        places = {
            (s, k): (s, k)
            for s, submission in enumerate(questions.submissions)
            for k in range(len(submission.arguments))
        }
        return UsersList(questions, range(len(questions.submissions)), places, {}, shapes)

    def launches(self, plans: Sequence[StagePlan]) -> tuple[StagePlan, ...]:
        """The launches; each submission is in one of them: where it is done, or, if it is absent,
        where it is done first."""
        present = {self.numbers[s] for plan in plans for s in plan.present}
        return tuple(self._launch(plan, present) for plan in plans)

    def _launch(self, plan: StagePlan, present: set[int]) -> StagePlan:
        own = dict.fromkeys(self.numbers[s] for s in plan.present)
        absent = tuple(n for s in plan.absent if (n := self.numbers[s]) not in present)
        tiling = plan.tiling
        if tiling is not None:
            parts = tuple(
                replace(part, submissions=tuple(self.numbers[s] for s in part.submissions))
                for part in tiling.parts
            )
            tiling = replace(tiling, parts=parts)
        return replace(
            plan,
            submissions=(*own, *absent),
            sources=tuple(map(self._source, plan.sources)),
            geometry=self.numbers[plan.geometry],
            extents=self._rows(self.numbers[plan.geometry]),
            absent=absent,
            tiling=tiling,
        )

    def _rows(self, user: int) -> tuple[ExtentSource, ...]:
        """The sources of the extents of one of the user's submissions that is done as rows."""
        found = self.shapes.get(user, ())
        return tuple(source for source in found if isinstance(source, ExtentSource))

    def _source(self, source: ParamSource) -> ParamSource:
        match source:
            case ArgumentSource(s, k):
                return ArgumentSource(*self.origins[s, k])
            case ExtentSource(s, k, dim):
                user, argument = self.origins[s, k]
                if argument == OF_RANGE:
                    return self._extent(user, dim)
                return ExtentSource(user, argument, dim)
            case RangeSource(s, dim) if s in self.ranges:
                return self._source(ExtentSource(s, self.ranges[s], dim))
            case RangeSource(s, dim):
                return self._extent(self.numbers[s], dim)
            case _:
                return source

    def _extent(self, user: int, dim: int) -> RangeSource | ExtentSource:
        """An extent of the range of one of the user's submissions, or of its rows."""
        shape = self.shapes.get(user)
        return RangeSource(user, dim) if shape is None else shape[dim]

    def scopes(self, found: Iterable[PairScope]) -> tuple[PairScope, ...]:
        """Dependences between the submissions whose accesses cause them, wherever they are made."""
        made: dict[tuple[object, ...], PairScope] = {}
        for d in found:
            producer, first = self.origins[d.producer, d.producer_argument]
            consumer, second = self.origins[d.consumer, d.consumer_argument]
            key = producer, consumer, first, second, d.kind
            if producer != consumer and (key not in made or made[key].scope == "NONE"):
                made[key] = replace(
                    d, producer=producer, consumer=consumer,
                    producer_argument=first, consumer_argument=second,
                )  # fmt: skip
        return tuple(made.values())

    def validity(self, *validities: ListValidity) -> Validity:
        """For which of the user's lists all of ``validities`` hold, of lists made of it."""

        def place(source: Source) -> Source:
            s, dim = source.submission, source.dim
            k = self.ranges.get(s) if source.argument is None else source.argument
            user, argument = (self.numbers[s], OF_RANGE) if k is None else self.origins[s, k]
            if argument != OF_RANGE:
                return Source(user, argument, dim)
            assert dim is not None
            extent = self._extent(user, dim)
            k = extent.argument if isinstance(extent, ExtentSource) else None
            return Source(extent.submission, k, extent.dim)

        whole = ListValidity(self.questions.submissions)
        every = range(len(self.questions.submissions))
        for each in dict.fromkeys(validities):
            found = each.result()
            sources = tuple(
                (name, tuple(dict.fromkeys(map(place, places)))) for name, places in found.sources
            )
            whole.add(replace(found, sources=sources), every)
        return whole.result()
