"""Put stages into one persistent kernel.

    blur(a, b, range_0): …        megakernel64_blur(a, b, range_0, schedule, control, …):
    blur(b, a, range_0): …   →        for stage, tile in instructions(schedule, control):
    …                                     a, b = arguments[stage]
                                          wait(producers[stage][0], items[first - 1:last + 2])
                                          for item in tile.items(range=(range_0)): …
                                          publish(stage, tile)

Stages that differ in their arguments only share their code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Block,
    Expr,
    Kernel,
    KernelParam,
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
from fusionq.ir.walk import rewrite_body
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.names import Names
from fusionq.passes.sources import ParamSource, QueueSource

WaitMaker = Callable[[Callable[[ParamSource], Expr]], TileWait]
"""Makes a wait from the means to have a source's value as an expression."""


@dataclass(frozen=True)
class StageParts:
    """A stage to put into a persistent kernel.

    ``kernel`` over the stage's own work-items; ``extents``: for each dimension the sources whose
    product is its extent; ``waits``: the producing stage and what makes the wait for it.
    """

    kernel: FusedKernel
    label: str
    extents: tuple[tuple[ParamSource, ...], ...]
    waits: tuple[tuple[int, WaitMaker], ...]
    local_range: tuple[int, ...] | None


def persist(
    stages: Sequence[StageParts], name: str, identity: Callable[[ParamSource], Hashable]
) -> FusedKernel:
    """One persistent kernel for ``stages``; sources with equal ``identity`` have one value."""
    return _Persister(identity).run(stages, name)


@dataclass
class _Persister:
    identity: Callable[[ParamSource], Hashable]
    names: Names = field(default_factory=Names)
    params: list[KernelParam] = field(default_factory=list)
    sources: dict[str, ParamSource] = field(default_factory=dict)
    known: dict[Hashable, str] = field(default_factory=dict)
    codes: dict[StageCode, int] = field(default_factory=dict)

    def run(self, stages: Sequence[StageParts], name: str) -> FusedKernel:
        placed = tuple(self._stage(stage) for stage in stages)
        body = Persistent(
            codes=tuple(self.codes),
            stages=placed,
            schedule=self._own(ArrayParam("schedule", INT64, 1, restrict=True)),
            control=self._own(ArrayParam("control", UINT32, 1, restrict=True)),
            epoch=self._own(ScalarParam("epoch", UINT32)),
            patience=self._own(ScalarParam("patience", INT64)),
        )
        kernel = Kernel(
            name, 1, tuple(self.params), (), (body,), span=stages[0].kernel.kernel.span
        )
        verify(kernel)
        return FusedKernel(kernel, self.sources, {})

    def _own(self, param: KernelParam) -> str:
        name = self.names.fresh(param.name)
        self.params.append(replace(param, name=name))
        self.sources[name] = QueueSource(param.name)
        return name

    def _stage(self, stage: StageParts) -> PersistentStage:
        kernel, sources = stage.kernel.kernel, dict(stage.kernel.sources)
        names = Names([*(p.name for p in kernel.params), *(n for n, _ in kernel.variables)])
        added: list[ScalarParam] = []
        found = {
            self.identity(sources[p.name]): p.name
            for p in kernel.params
            if isinstance(p, ScalarParam) and p.type == INT64
        }

        def value(source: ParamSource) -> Expr:
            identity = self.identity(source)
            if identity not in found:
                fresh = found[identity] = names.fresh(f"size_{len(added)}")
                added.append(ScalarParam(fresh, INT64))
                sources[fresh] = source
            return Param(INT64, found[identity])

        extents = tuple(_product([value(s) for s in factors]) for factors in stage.extents)
        waits = tuple(make(value) for _, make in stage.waits)
        params = tuple(
            replace(p, restrict=False) if isinstance(p, ArrayParam) else p for p in kernel.params
        )
        own = replace(kernel, params=(*params, *added), body=rewrite_body(kernel.body, stmt=_plain))
        code = StageCode(own, extents, waits, stage.local_range)
        return PersistentStage(
            stage.label,
            self.codes.setdefault(code, len(self.codes)),
            tuple(self._argument(p, sources[p.name]) for p in own.params),
            tuple(producer for producer, _ in stage.waits),
        )

    def _argument(self, param: KernelParam, source: ParamSource) -> str:
        key = self.identity(source), replace(param, name="")
        if key not in self.known:
            name = self.known[key] = self.names.fresh(param.name)
            self.params.append(replace(param, name=name))
            self.sources[name] = source
        return self.known[key]


def _product(factors: Sequence[Expr]) -> Expr:
    total = factors[0]
    for factor in factors[1:]:
        total = Binary(INT64, "mul", total, factor)
    return total


def _plain(stmt: Stmt) -> tuple[Stmt, ...]:
    """Blocks without the number of their submission: what differs in nothing else is equal."""
    if isinstance(stmt, Block):
        number, _, name = stmt.label.partition(": ")
        return (replace(stmt, label=name if number.isdigit() else stmt.label),)
    return (stmt,)
