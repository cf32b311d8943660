"""Put stages into one persistent kernel.

    blur(a, b, range_0): …        megakernel64_blur(a, b, range_0, schedule, control, …):
    blur(b, a, range_0): …   →        for stage, tile in instructions(schedule, control):
    …                                     a, b = arguments[stage]
                                          wait(producers[stage][0], items[first - 1:last + 2])
                                          for item in tile.items(range=(range_0)): …
                                          publish(stage, tile)

Stages that differ in their arguments only share their code.  Work-items that need no work-group
ask for their global ids alone (``passes.ids_of_groups``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fusionq.base.steps import Steps
from fusionq.ir.array_reductions import array_reductions
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Block,
    Expr,
    Kernel,
    KernelParam,
    LaneDimension,
    Param,
    Persistent,
    PersistentStage,
    ScalarParam,
    StageCode,
    Stmt,
    TileWait,
)
from fusionq.ir.types import INT64, UINT32
from fusionq.ir.verifier import verify
from fusionq.ir.walk import (
    rewrite,
    rewrite_body,
    stored_arrays,
    subexpressions,
    takes_work_groups,
)
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.ids_of_groups import in_global_ids
from fusionq.passes.labels import number_in
from fusionq.passes.shared_params import SharedParams
from fusionq.passes.sources import ParamSource, QueueSource


@dataclass(frozen=True, eq=False)
class StageWait:
    """A wait for tiles of the stage ``producer``: ``bounds`` as those of a ``TileWait``, but with
    ``symbols`` for parameters, which have the values of sources."""

    producer: int
    bounds: tuple[tuple[Expr, Expr], ...] | None
    symbols: Mapping[str, ParamSource]


@dataclass(frozen=True)
class StageParts:
    """A stage to put into a persistent kernel.

    ``kernel`` over the stage's own work-items; ``extents``: for each dimension the sources whose
    product is its extent; ``lanes``: as of a ``StageCode``.
    """

    kernel: FusedKernel
    label: str
    extents: tuple[tuple[ParamSource, ...], ...]
    waits: tuple[StageWait, ...]
    local_range: tuple[int, ...] | None
    lanes: LaneDimension | None = None


def persist(
    stages: Sequence[StageParts],
    name: str,
    identity: Callable[[ParamSource], Hashable],
    memory: Callable[[ParamSource], Hashable],
) -> Steps[FusedKernel]:
    """One persistent kernel for ``stages``; sources with equal ``identity`` have one value, arrays
    of which ``memory`` differs share none."""
    return _Persister(SharedParams(identity, FreshNames()), memory).run(stages, name)


@dataclass
class _Persister:
    params: SharedParams
    memory: Callable[[ParamSource], Hashable]
    codes: dict[StageCode, int] = field(default_factory=dict)
    made: dict[Hashable, tuple[int, tuple[KernelParam, ...]]] = field(default_factory=dict)
    """Codes and their parameters by what they are made of."""

    def run(self, stages: Sequence[StageParts], name: str) -> Steps[FusedKernel]:
        placed = []
        for stage in stages:
            placed.append(self._stage(stage))
            yield "passes"
        body = Persistent(
            codes=tuple(self.codes),
            stages=tuple(placed),
            schedule=self._own(ArrayParam("schedule", INT64, 1, restrict=True)),
            control=self._own(ArrayParam("control", UINT32, 1, restrict=True)),
            epoch=self._own(ScalarParam("epoch", UINT32)),
            spin_limit=self._own(ScalarParam("spin_limit", INT64)),
            unwritten=self._unwritten(placed),
        )
        kernel = Kernel(
            name, 1, tuple(self.params.params), (), (body,), span=stages[0].kernel.kernel.span
        )
        verify(kernel)
        return FusedKernel(kernel, self.params.sources, {})

    def _unwritten(self, stages: Sequence[PersistentStage]) -> tuple[str, ...]:
        """The array parameters whose memory no stage writes."""
        sources, codes = self.params.sources, list(self.codes)
        stored = [stored_arrays(code.kernel.body) for code in codes]
        arrays: dict[str, Hashable] = {}
        written: set[Hashable] = set()
        for stage in stages:
            params = codes[stage.code].kernel.params
            for param, name in zip(params, stage.arguments, strict=True):
                if isinstance(param, ArrayParam):
                    arrays[name] = self.memory(sources[name])
                    if param.name in stored[stage.code]:
                        written.add(arrays[name])
        return tuple(name for name, memory in arrays.items() if memory not in written)

    def _own(self, param: KernelParam) -> str:
        return self.params.own(param, QueueSource(param.name))

    def _stage(self, stage: StageParts) -> PersistentStage:
        kernel, sources = stage.kernel.kernel, dict(stage.kernel.sources)
        names = FreshNames([*(p.name for p in kernel.params), *(n for n, _ in kernel.variables)])
        added: list[ScalarParam] = []
        found = {
            self.params.identity(sources[p.name]): p.name
            for p in kernel.params
            if isinstance(p, ScalarParam) and p.type == INT64
        }

        def value(source: ParamSource) -> Param:
            identity = self.params.identity(source)
            if identity not in found:
                fresh = found[identity] = names.fresh(f"size_{len(added)}")
                added.append(ScalarParam(fresh, INT64))
                sources[fresh] = source
            return Param(INT64, found[identity])

        extents = tuple(_product([value(s) for s in factors]) for factors in stage.extents)
        values = [
            {symbol: value(wait.symbols[symbol]) for symbol in _parameters(wait)}
            for wait in stage.waits
        ]
        # What is made of the same objects is equal, and often there are very many.
        key = (
            id(kernel),
            extents,
            tuple((id(w.bounds), *v.items()) for w, v in zip(stage.waits, values, strict=True)),
            stage.local_range,
            stage.lanes,
        )
        if key not in self.made:
            waits = tuple(map(_wait, stage.waits, values))
            params = tuple(
                replace(p, restrict=False, stored_by_one=False) if isinstance(p, ArrayParam) else p
                for p in kernel.params
            )
            body, local = rewrite_body(kernel.body, stmt=_plain), stage.local_range
            if local is not None and not takes_work_groups(kernel):
                body, local = in_global_ids(body, local), None
            own = replace(kernel, params=(*params, *added), body=body)
            reduced, apart = _reduced(kernel), _apart(kernel)
            code = StageCode(own, extents, waits, local, reduced, stage.lanes, apart)
            self.made[key] = self.codes.setdefault(code, len(self.codes)), own.params
        number, own_params = self.made[key]
        return PersistentStage(
            stage.label,
            number,
            tuple(self.params.of(p, sources[p.name]) for p in own_params),
            tuple(wait.producer for wait in stage.waits),
        )


def _parameters(wait: StageWait) -> list[str]:
    """The symbols in the bounds of a wait."""
    bounds = [expr for pair in wait.bounds or () for expr in pair]
    return list(
        dict.fromkeys(e.name for b in bounds for e in subexpressions(b) if isinstance(e, Param))
    )


def _wait(wait: StageWait, values: Mapping[str, Param]) -> TileWait:
    def put_in(expr: Expr) -> Expr:
        return values[expr.name] if isinstance(expr, Param) else expr

    if wait.bounds is None:
        return TileWait(None)
    return TileWait(tuple((rewrite(a, put_in), rewrite(b, put_in)) for a, b in wait.bounds))


def _reduced(kernel: Kernel) -> tuple[str, ...]:
    """The arrays that ``kernel`` only reduces into, without others in the same memory."""
    alone = _apart(kernel)
    return tuple(name for name in array_reductions(kernel) if name in alone)


def _apart(kernel: Kernel) -> tuple[str, ...]:
    """The arrays of ``kernel`` that share memory with no other of its."""
    return tuple(p.name for p in kernel.params if isinstance(p, ArrayParam) and p.restrict)


def _product(factors: Sequence[Expr]) -> Expr:
    total = factors[0]
    for factor in factors[1:]:
        total = Binary(INT64, "mul", total, factor)
    return total


def _plain(stmt: Stmt) -> tuple[Stmt, ...]:
    """Blocks without the number of their submission: what differs in nothing else is equal."""
    if isinstance(stmt, Block) and number_in(stmt.label) is not None:
        return (replace(stmt, label=stmt.label.partition(": ")[2]),)
    return (stmt,)
