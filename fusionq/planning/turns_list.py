"""A list whose submissions that go through a range in turns are over that range.

    submit(scale, 4096, a, b, n)    # for i in range(item.get_id(0), n, item.get_range(0)):
                                    # or a chunk of it for each work-item

Between the turns of a work-item lies a stride, of pages mostly, or neighbouring work-items access
elements that are a chunk apart.  Over the range neighbours access neighbours, and other kernels'
work-items their own elements.  Where work-items are threads, nothing was measured: there it is not
done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fusionq.analysis.independent_items import are_independent
from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition, Validity
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.ir.nodes import Const, Expr, Extent, Kernel, Param
from fusionq.language.ranges import Range
from fusionq.passes.items_of_turns import ItemsOfTurns, items_of_turns
from fusionq.passes.sources import ExtentSource, ParamSource, RangeSource
from fusionq.planning.plan import Plan, StagePlan

RestsOn = Callable[[ListValidity], None]

_BOUND = 1 << 62
"""Below it, the last id of a chunk does not wrap around."""


@dataclass(frozen=True)
class TurnsList:
    """``submissions``, some of which are over what they go through in turns: an extent of an array
    of theirs (``shapes``).  ``found``: for which of these lists that is right; ``demanded``: for
    which of the user's it is so, each with its places.  ``before`` let the user's list's validity
    remember for which sizes and scalars it is as it is."""

    submissions: tuple[Submission, ...]
    shapes: Mapping[int, ExtentSource]
    before: tuple[RestsOn, ...]
    found: Validity | None = None
    demanded: tuple[tuple[Condition, Mapping[str, Source]], ...] = ()

    @property
    def rest_on(self) -> tuple[RestsOn, ...]:
        """Let this list's validity remember for which sizes and scalars it is as it is."""
        return (self._rests_on,) if self.shapes else self.before

    def _rests_on(self, validity: ListValidity) -> None:
        if self.found is not None:
            validity.add(self.found, range(len(self.submissions)))

    def serves(self, plan: Plan) -> bool:
        """Whether no launch of ``plan`` has such submissions side by side with others, of which the
        ranges are put together."""
        return all(
            part.geometry not in self.shapes for stage in plan.stages for part in stage.beside
        )

    def users_plan(self, plan: Plan, users: Sequence[Submission]) -> Plan:
        """``plan``, which is of this list, for the ``users`` list."""
        if not self.demanded:
            return plan
        found = plan.validity
        sources = tuple((name, tuple(map(self._place, at))) for name, at in found.sources)
        constants = tuple((self._place(at), value) for at, value in found.constants)
        whole = ListValidity(users)
        whole.add(replace(found, sources=sources, constants=()), range(len(users)))
        for condition, places in self.demanded:
            whole.demand(condition, places)
        for rests_on in self.before if self.shapes else ():
            rests_on(whole)
        stages = tuple(map(self._launch, plan.stages))
        return replace(plan, stages=stages, validity=whole.result(constants))

    def _launch(self, stage: StagePlan) -> StagePlan:
        extents = stage.extents
        if not extents and stage.geometry in self.shapes:
            extents = (self.shapes[stage.geometry],)
        return replace(stage, sources=tuple(map(self._source, stage.sources)), extents=extents)

    def _source(self, source: ParamSource) -> ParamSource:
        if isinstance(source, RangeSource):
            return self.shapes.get(source.submission, source)
        return source

    def _place(self, place: Source) -> Source:
        if place.argument is None and place.dim is not None and place.submission in self.shapes:
            extent = self.shapes[place.submission]
            return Source(extent.submission, extent.argument, extent.dim)
        return place


def turns_list(
    submissions: Sequence[Submission], target: Target, before: tuple[RestsOn, ...]
) -> TurnsList:
    """The list with submissions over what they go through in turns on ``target``, where their
    work-items may then be done in any order; ``before``: see there."""
    made = list(submissions)
    shapes: dict[int, ExtentSource] = {}
    demanded: dict[int, tuple[Condition, Mapping[str, Source]]] = {}
    for s, submission in enumerate(submissions if target.device.jams_rows else ()):
        if submission.ir.ndim != 1 or not global_range(submission).size:
            continue
        turns = _turns(submission.ir)
        if turns is None:
            continue
        found = _over(s, submissions, turns)
        if found is None:
            continue
        extent, condition, places = found
        if condition.holds({name: at.value(submissions) for name, at in places.items()}):
            shapes[s] = extent
            made[s] = replace(
                submission,
                kernel=turns.kernel,
                range=Range(places["extent"].value(submissions)),
                fingerprint=f"{submission.fingerprint} over its turns",
                form=None,
            )
        else:
            condition = replace(condition, text=f"not ({condition.text})")
        demanded[s] = condition, places
    if not shapes:
        return TurnsList(tuple(made), shapes, before, None, tuple(demanded.values()))
    questions = Questions(made)
    for s in tuple(shapes):
        if not questions.ask((s,), "independent items", are_independent):
            made[s] = submissions[s]
            del shapes[s], demanded[s]
    rests_on = questions.validity.result() if shapes else None
    return TurnsList(tuple(made), shapes, before, rests_on, tuple(demanded.values()))


@cached_by_identity
def _turns(kernel: Kernel) -> ItemsOfTurns | None:
    return items_of_turns(kernel)


def _over(
    s: int, submissions: Sequence[Submission], turns: ItemsOfTurns
) -> tuple[ExtentSource, Condition, Mapping[str, Source]] | None:
    """An extent that the ``s``-th submission may go through, and what has to hold, of what at which
    places, so that it goes through all of that; None where it has no arrays."""
    submission = submissions[s]
    places = {"range": Source(s, None, 0)}
    count = _number(s, submission, turns.count, "count", places)
    extents = [
        (extent != count, k, dim)
        for k, argument in enumerate(submission.arguments)
        if isinstance(argument, ArrayArgument)
        for dim, extent in enumerate(argument.shape)
    ]
    if not extents:
        return None
    _, k, dim = min(extents)
    places["extent"] = Source(s, k, dim)
    texts = ["count == extent >= 1", "range >= 1"]
    if turns.each is not None:
        _number(s, submission, turns.each, "each", places)
        each = str(int(turns.each.value)) if isinstance(turns.each, Const) else "each"
        texts += [f"{each} >= 1", f"count <= range * {each} < {_BOUND}"]
    condition = Condition(" and ".join(texts), tuple(places), (tuple(places),))
    return ExtentSource(s, k, dim), condition, places


def _number(s: int, submission: Submission, e: Expr, name: str, places: dict[str, Source]) -> int:
    """The value of an argument or an extent, whose place has that ``name``, or of a constant."""
    match e:
        case Const(_, value):
            return int(value)
        case Param() | Extent():
            array = e.array if isinstance(e, Extent) else e.name
            k = next(k for k, a in enumerate(submission.arguments) if a.name == array)
            argument = submission.arguments[k]
            if isinstance(e, Extent):
                assert isinstance(argument, ArrayArgument)
                places[name] = Source(s, k, e.dim)
                return argument.shape[e.dim]
            assert isinstance(argument, ScalarArgument)
            places[name] = Source(s, k, None)
            return int(argument.value)
    raise AssertionError(e)
