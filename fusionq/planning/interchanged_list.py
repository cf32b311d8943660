"""A list whose ranges have the dimension last along which neighbours access neighbours.

    x, y = item.get_id(0), item.get_id(1)           y, x = item.get_id(0), item.get_id(1)
    c[y, x] = a[y, x]                       →       c[y, x] = a[y, x]
    over (columns, rows)                            over (rows, columns)

Lanes of a vector, and threads of a warp, are neighbours in the last dimension.  Where kernels take
the first id for the last index, as those do that come from languages whose first dimension is the
fastest, each lane accesses memory by itself, and each cache line is loaded again and again.  All
planning is about the list in this order, so that such kernels also join others and have the tiles
that these have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.ir.walk import OWN_STATEMENTS, statements
from fusionq.language.ranges import Range
from fusionq.passes.permute_dimensions import permute_dimensions
from fusionq.passes.sources import ParamSource, RangeSource
from fusionq.planning.known_values import Sizes, sizes_of
from fusionq.planning.lane_dimension import is_free, vector_cost
from fusionq.planning.plan import Plan, StagePlan

TIMES = 2.0
"""By how much vectors along another dimension have to be cheaper: both are estimates."""

FEWEST_VECTORS = 2
"""Of either dimension."""

Order = tuple[int, ...]
"""The dimensions of a range, each by its number, from the slowest on."""


@dataclass(frozen=True)
class InterchangedList:
    """``submissions``, some of them with their dimensions in another order (``orders``).  Sizes on
    which that depends: ``asked``, each with the fewest that decides."""

    submissions: tuple[Submission, ...]
    orders: Mapping[int, Order]
    asked: tuple[tuple[int, int], ...]

    def rests_on(self, validity: ListValidity) -> None:
        """Let ``validity``, of the list in this order, remember on which sizes it depends."""
        for extent, fewest in self.asked:
            validity.are_at_least((extent,), fewest)

    def users_plan(self, plan: Plan) -> Plan:
        """``plan``, which is of the list in this order, for the user's list."""
        if not self.orders:
            return plan
        found = plan.validity
        validity = replace(
            found,
            sources=tuple((name, tuple(map(self._place, at))) for name, at in found.sources),
            constants=tuple((self._place(at), value) for at, value in found.constants),
        )
        return replace(plan, stages=tuple(map(self._launch, plan.stages)), validity=validity)

    def _launch(self, stage: StagePlan) -> StagePlan:
        is_as_it_was = stage.inner or stage.extents or stage.mode == "linear"
        ranges = stage.present if stage.mode == "hull" else (stage.geometry,)
        own = tuple([self.orders.get(s, ()) for s in ranges])
        alike = len(set(own)) == 1
        return replace(
            stage,
            sources=tuple(map(self._source, stage.sources)),
            beside=tuple(replace(p, order=self.orders.get(p.geometry, ())) for p in stage.beside),
            order=own[0] if alike and not is_as_it_was else (),
            orders=() if alike else own,
        )

    def _source(self, source: ParamSource) -> ParamSource:
        if isinstance(source, RangeSource) and source.submission in self.orders:
            return replace(source, dim=self.orders[source.submission][source.dim])
        return source

    def _place(self, place: Source) -> Source:
        if place.argument is None and place.dim is not None and place.submission in self.orders:
            return replace(place, dim=self.orders[place.submission][place.dim])
        return place


def interchanged_list(submissions: Sequence[Submission], target: Target) -> InterchangedList:
    """The list with the dimensions of its ranges in the order that is faster on ``target``."""
    made, orders = list(submissions), {}
    asked: dict[tuple[int, int], None] = {}
    fewest = FEWEST_VECTORS * target.sub_group_size
    known: dict[int, tuple[Kernel, Order | None, Kernel]] = {}
    """By the kernel's identity; it stays, so that no other one has it."""
    has_lanes = target.device.jams_rows or target.device.kind == "gpu"
    for s, submission in enumerate(submissions if has_lanes else ()):
        items = submission.range
        if not isinstance(items, Range) or len(items) == 1 or not items.size:
            continue
        kernel = submission.ir
        if id(kernel) not in known:
            order = _faster_order(kernel, sizes_of(submission), target)
            other = kernel if order is None else permute_dimensions(kernel, order)
            known[id(kernel)] = kernel, order, other
        _, order, other = known[id(kernel)]
        if order is None:
            continue
        sides = {(items[d], fewest): None for d in (order[-1], len(items) - 1)}
        asked |= sides
        if any(extent < least for extent, least in sides):
            continue
        orders[s] = order
        made[s] = replace(
            submission,
            kernel=other,
            range=Range(*(items[d] for d in order)),
            fingerprint=f"{submission.fingerprint} in order {order}",
            form=None,
        )
    return InterchangedList(tuple(made), orders, tuple(asked))


def _faster_order(kernel: Kernel, sizes: Sizes, target: Target) -> Order | None:
    """The dimensions of ``kernel`` with another one as the last, if vectors along that are cheaper
    by enough and work-items may be done in any order."""
    own = all(isinstance(s, OWN_STATEMENTS) for s in statements(kernel.body))
    if not own or not is_free(kernel):
        return None
    costs = [vector_cost(kernel, sizes, d, target.weights) for d in range(kernel.ndim)]
    best = min(range(kernel.ndim), key=costs.__getitem__)
    if costs[best] * TIMES > costs[-1]:
        return None
    return (*(d for d in range(kernel.ndim) if d != best), best)
