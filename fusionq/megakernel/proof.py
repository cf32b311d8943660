"""Proof, over integer sets, that a persistent kernel's waits are enough.

It reads the waits back from the finished kernel and takes nothing from how they were made: for
every two stages of which one depends directly on the other, every work-item that a tile depends on
must be in a box that the tile waits for, or in one that a tile it waits for has waited for.  All
other dependences follow from those.  Sizes of ranges and tiles stay parameters, so the proof holds
for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Literal

import islpy as isl

from fusionq.analysis.isl_operations import (
    TOO_HARD,
    PlanTooHard,
    TooManyOperations,
    answered,
    in_steps,
)
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.stage_relations import Relation, StageItems, tile_context
from fusionq.analysis.stage_waits import StageRelations
from fusionq.base.frozen import dataclass
from fusionq.base.steps import Steps
from fusionq.ir.nodes import Binary, Call, Const, Expr, ItemQuery, Param, Persistent, TileWait
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.sources import ParamSource
from fusionq.passes.symbol_sources import of_members, sources_of_symbols

_TOO_LONG = "whether every tile waits for what it depends on takes too long to prove"


@dataclass(frozen=True)
class Undecided:
    """A plan is right if ``waits`` are enough, each with its producer and consumer, for which that
    is too hard to decide."""

    waits: frozenset[tuple[int, int]]

    @property
    def reason(self) -> str:
        return f"{_TOO_LONG}: {TOO_HARD}"


def check_plan(
    relations: StageRelations,
    fused: FusedKernel,
    identity: Callable[[ParamSource], Hashable],
) -> Steps[str | Undecided | None]:
    """Why the persistent kernel ``fused`` may be wrong; None if it is proved right.  Sources with
    equal ``identity`` have one value."""
    checker = _Checker(relations, fused, identity)
    try:
        reason = yield from checker.check()
    except TooManyOperations as error:
        return f"{_TOO_LONG}: {error}"
    if reason is None and checker.undecided:
        return Undecided(frozenset(checker.undecided))
    return reason


class _Checker:
    def __init__(
        self,
        relations: StageRelations,
        fused: FusedKernel,
        identity: Callable[[ParamSource], Hashable],
    ) -> None:
        self.relations = relations
        body = fused.kernel.body[0]
        assert isinstance(body, Persistent)
        self.body = body
        self.identities = {name: identity(source) for name, source in fused.sources.items()}
        self.identity = identity
        self.undecided: set[tuple[int, int]] = set()

    def check(self) -> Steps[str | None]:
        for consumer in range(len(self.body.stages)):
            reason = yield from in_steps(partial(self._stage, consumer))
            if reason is not None:
                return reason
            yield "analysis"
        return None

    def _stage(self, consumer: int) -> str | None:
        """Why the waits of a stage may not be enough; None if they are."""
        waited: list[int] = []
        for producer in sorted(set(self.body.stages[consumer].producers), reverse=True):
            if producer >= consumer:
                return f"stage {consumer} waits for stage {producer}, which comes after it"
            if not self._enough(producer, consumer):
                return (
                    f"stage {consumer} may not wait for all that it depends on of stage {producer}"
                )
            waited.append(producer)
        for producer in self.relations.producers(consumer):
            if producer in waited:
                continue
            if not self.relations.covered(producer, waited, consumer):
                return f"stage {consumer} depends on stage {producer} and does not wait for it"
        return None

    def _enough(self, producer: int, consumer: int) -> bool:
        """Whether the waits of ``consumer`` for ``producer`` hold all that it depends on, some one
        of them or all together."""
        stage = self.body.stages[consumer]
        waits = [
            wait
            for wait, other in zip(self.body.codes[stage.code].waits, stage.producers, strict=True)
            if other == producer
        ]
        if any(wait.bounds is None for wait in waits):
            return True
        relation = self.relations.between(producer, consumer)
        if relation is None:
            return True
        names = self._names((producer, consumer))
        ways: list[tuple[TileWait, ...]] = [(wait,) for wait in waits]
        if len(ways) > 1:
            ways.insert(0, tuple(waits))
        hard = False
        for way in ways:
            found = self.relations.ask(
                (producer, consumer),
                ("enough", id(relation), way, tuple(names.items())),
                partial(_hold, relation=relation, waits=way, names=names),
            )
            if found == "yes":
                return True
            hard = hard or found == "hard"
        if hard:
            self.undecided.add((producer, consumer))
        return hard

    def _names(self, stages: tuple[int, int]) -> dict[str, str]:
        """The symbols of two stages' submissions that the later one's parameters have the value
        of."""
        relations = self.relations
        members = relations.members(stages)
        symbols = relations.questions.ask(
            members, "sources of symbols", sources_of_symbols, other_sizes=True
        )
        symbol_of = {
            self.identity(of_members(source, members)): name for name, source in symbols.items()
        }
        stage = self.body.stages[stages[1]]
        params = self.body.codes[stage.code].kernel.params
        return {
            param.name: name
            for param, argument in zip(params, stage.arguments, strict=True)
            if (name := symbol_of.get(self.identities[argument]))
        }


def _hold(
    analysis: ListAnalysis,
    stages: tuple[StageItems, ...],
    relation: Relation,
    waits: tuple[TileWait, ...],
    names: Mapping[str, str],
) -> Literal["yes", "no", "hard"]:
    """Whether ``waits`` of the second of two stages hold together all that it depends on of the
    first, to which it has the ``relation``."""
    boxes = [wait.bounds for wait in waits if wait.bounds is not None]

    sides = [[_boxed((pair,), names) for pair in bounds] for bounds in boxes]

    def inside() -> bool:
        needed = _needed(relation, tile_context(analysis, stages[1]))
        if len(boxes) == 1:
            return _holds(sides[0], needed)
        pieces = map(isl.Set.from_basic_set, needed.get_basic_sets())
        if all(any(_holds(box, piece) for box in sides) for piece in pieces):
            return True
        union = reduce(isl.Set.union, [_boxed(bounds, names) for bounds in boxes])
        return bool(needed.is_subset(union))

    try:
        return "yes" if answered(inside, 4 * sum(map(len, boxes))) else "no"
    except PlanTooHard:
        raise
    except TooManyOperations:
        return "hard"


def _holds(box: Sequence[isl.Set], items: isl.Set) -> bool:
    """Whether a box holds ``items``: whether it does so in each dimension."""
    return all(bool(_projected(items, d).is_subset(side)) for d, side in enumerate(box))


def _needed(relation: Relation, context: isl.Set) -> isl.Set:
    ndim = relation.items.dim(isl.dim_type.in_)
    ids = [f"i{d}" for d in range(ndim)]
    ends = ", ".join(f"first_{d}, last_{d}" for d in range(ndim))
    inside = " and ".join(f"first_{d} <= {i} <= last_{d}" for d, i in enumerate(ids))
    tile = isl.Set(f"[{ends}] -> {{ [{', '.join(ids)}] : {inside} }}")
    return relation.items.intersect_domain(tile).intersect_params(context).range()


def _projected(items: isl.Set, dim: int) -> isl.Set:
    ndim = items.dim(isl.dim_type.set)
    rest = items.project_out(isl.dim_type.set, dim + 1, ndim - dim - 1)
    return rest.project_out(isl.dim_type.set, 0, dim).coalesce()


def _boxed(bounds: Sequence[tuple[Expr, Expr]], names: Mapping[str, str]) -> isl.Set:
    """The work-items between two bounds in each dimension, as a set whose parameters are symbols
    and the tile's first and last work-items."""
    parameters = sorted({n for pair in bounds for e in pair for n in _parameters(e, names)})
    inside = " and ".join(
        constraint
        for d, (low, high) in enumerate(bounds)
        for constraint in (*_at_least(f"o{d}", low, names), *_at_most(f"o{d}", high, names))
    )
    items = ", ".join(f"o{d}" for d in range(len(bounds)))
    return isl.Set(f"[{', '.join(parameters)}] -> {{ [{items}] : {inside} }}")


def _at_least(value: str, bound: Expr, names: Mapping[str, str]) -> Iterator[str]:
    """Constraints of isl's that together say that ``value`` is no less than ``bound``.  Maxima and
    quotients become several affine ones: isl makes a union of many pieces of the text as it is."""
    match bound:
        case Call(_, "maximum", args):
            for arg in args:
                yield from _at_least(value, arg, names)
        case Binary(_, "floordiv", lhs, Const(_, int(divisor))) if divisor > 0:
            yield from _at_least(f"({divisor} * {value} + {divisor - 1})", lhs, names)
        case _:
            yield f"{_text(bound, names)} <= {value}"


def _at_most(value: str, bound: Expr, names: Mapping[str, str]) -> Iterator[str]:
    """As ``_at_least``: that ``value`` is no more than ``bound``."""
    match bound:
        case Call(_, "minimum", args):
            for arg in args:
                yield from _at_most(value, arg, names)
        case Binary(_, "floordiv", lhs, Const(_, int(divisor))) if divisor > 0:
            yield from _at_most(f"({divisor} * {value})", lhs, names)
        case _:
            yield f"{value} <= {_text(bound, names)}"


def _parameters(expr: Expr, names: Mapping[str, str]) -> list[str]:
    match expr:
        case Param():
            return [names[expr.name]]
        case ItemQuery():
            return [f"{expr.query.removeprefix('tile_')}_{expr.dim}"]
        case Binary():
            return _parameters(expr.lhs, names) + _parameters(expr.rhs, names)
        case Call():
            return [name for arg in expr.args for name in _parameters(arg, names)]
        case _:
            return []


def _text(expr: Expr, names: Mapping[str, str]) -> str:
    """A closed form in isl's notation."""
    match expr:
        case Const():
            return f"({expr.value})"
        case Param():
            return names[expr.name]
        case ItemQuery():
            return f"{expr.query.removeprefix('tile_')}_{expr.dim}"
        case Binary(_, "add", lhs, rhs):
            return f"({_text(lhs, names)} + {_text(rhs, names)})"
        case Binary(_, "mul", Const() as factor, rhs):
            return f"({factor.value} * {_text(rhs, names)})"
        case Binary(_, "floordiv", lhs, Const() as divisor):
            return f"floor({_text(lhs, names)} / {divisor.value})"
        case Call(_, "maximum" | "minimum" as function, args):
            return f"{function[:3]}({', '.join(_text(a, names) for a in args)})"
    raise AssertionError(f"no closed form has {expr}")
