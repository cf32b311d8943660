"""Persistent kernels made from lists of submissions, and what their work-items really touch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.backends.reference.compile import compile_kernel
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.ir.nodes import Persistent, ScalarParam
from fusionq.megakernel.schedule import Schedule, make_schedule
from fusionq.megakernel.tiling import Tiling
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource, RangeSource
from fusionq.planning.plan import StagePlan
from fusionq.planning.planner import make_plan
from tests.unit.lists import root, submissions
from tests.unit.targets import REFERENCE

Item = tuple[int, ...]
Tile = tuple[int, int]
"""A stage and the number of its tile."""


class Traced:
    """An array that remembers which elements were read and written; ``numbers``: which those
    are, of all memory."""

    def __init__(self, data: npt.NDArray[Any], numbers: npt.NDArray[np.int64]) -> None:
        self._data = data
        self._numbers = numbers
        self.extents = tuple(map(np.int64, data.shape))
        self.read: set[int] = set()
        self.written: set[int] = set()

    def load(self, span: object, *indices: Any) -> Any:
        self.read.add(int(self._numbers[indices]))
        return self._data[indices]

    def store(self, span: object, value: Any, *indices: Any) -> None:
        self.written.add(int(self._numbers[indices]))
        self._data[indices] = value


@dataclass
class PersistentPlan:
    """The one persistent kernel that a list of submissions becomes."""

    stage: StagePlan
    submissions: list[Submission]
    calls: Sequence[tuple[Any, ...]]

    @property
    def body(self) -> Persistent:
        body = self.stage.kernel.body[0]
        assert isinstance(body, Persistent)
        return body

    def value(self, source: ParamSource) -> Any:
        """An array or an integer."""
        if isinstance(source, RangeSource):
            return global_range(self.submissions[source.submission])[source.dim]
        assert isinstance(source, ArgumentSource | ExtentSource)
        argument = self.submissions[source.submission].arguments[source.argument]
        if isinstance(argument, ScalarArgument):
            return argument.value
        assert isinstance(argument, ArrayArgument)
        array = self.calls[source.submission][2 + source.argument]
        return array.shape[source.dim] if isinstance(source, ExtentSource) else array

    def arguments(self, stage: int) -> dict[str, Any]:
        """What the code of a stage gets, by its parameters' names."""
        use = self.body.stages[stage]
        sources = dict(
            zip((p.name for p in self.stage.kernel.params), self.stage.sources, strict=True)
        )
        params = self.body.codes[use.code].kernel.params
        return {
            p.name: self.value(sources[name]) for p, name in zip(params, use.arguments, strict=True)
        }

    def params(self) -> list[Mapping[str, int]]:
        """For each stage, its code's integer parameters."""
        found: list[Mapping[str, int]] = []
        for number, use in enumerate(self.body.stages):
            scalars = {
                p.name
                for p in self.body.codes[use.code].kernel.params
                if isinstance(p, ScalarParam) and p.type.is_integer
            }
            values = self.arguments(number)
            found.append({name: int(v) for name, v in values.items() if name in scalars})
        return found

    def schedule(self, tiling: Tiling | None = None, workers: int = 3) -> Schedule:
        target = replace(REFERENCE, resident_workers=workers)
        return make_schedule(self.body, self.params(), 1 << 16, target, tiling)

    # ------------------------------------------------------------------- by brute force
    def touched(self) -> list[dict[Item, tuple[set[int], set[int]]]]:
        """For each stage and work-item, the elements that it reads and writes."""
        owners: dict[int, int] = {}
        space = 1 << 32
        found = []
        extents = self.schedule().stages
        for number, use in enumerate(self.body.stages):
            kernel = self.body.codes[use.code].kernel
            arguments: list[Any] = []
            traced: list[Traced] = []
            for param, value in zip(kernel.params, self.arguments(number).values(), strict=True):
                if isinstance(param, ScalarParam):
                    arguments.append(param.type.dtype.type(value))
                    continue
                base = root(value)
                at = owners.setdefault(id(base), len(owners)) * space
                start = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
                numbers = np.full(value.shape, at + start, np.int64)
                for d, (n, stride) in enumerate(zip(value.shape, value.strides, strict=True)):
                    along = np.arange(n, dtype=np.int64) * stride
                    numbers += along.reshape(n, *[1] * (value.ndim - 1 - d))
                traced.append(Traced(value.copy(), numbers))
                arguments.append(traced[-1])
            work_item = compile_kernel(kernel)(*arguments)()
            one: dict[Item, tuple[set[int], set[int]]] = {}
            ranges = tuple(map(np.int64, extents[number].extents))
            for item in product(*map(range, extents[number].extents)):
                for array in traced:
                    array.read, array.written = set(), set()
                ids = tuple(map(np.int64, item))
                with np.errstate(all="ignore"):
                    work_item(ids, ranges, ids, ranges, ids, ranges)
                one[item] = (
                    set().union(*(a.read for a in traced)),
                    set().union(*(a.written for a in traced)),
                )
            found.append(one)
        return found

    def needed(self) -> dict[tuple[int, int], set[tuple[Item, Item]]]:
        """For each two stages (the earlier, the later) the work-items of the later and of the
        earlier that touch an element which one of the two writes."""
        touched = self.touched()
        found = {}
        for consumer, producer in product(range(len(touched)), repeat=2):
            if producer < consumer:
                found[producer, consumer] = {
                    (mine, theirs)
                    for mine, (read, written) in touched[consumer].items()
                    for theirs, (read_before, written_before) in touched[producer].items()
                    if (read | written) & written_before or written & read_before
                }
        return found


def persistent(*calls: tuple[Any, ...], target: Target = REFERENCE) -> PersistentPlan:
    """The persistent kernel of a list of submissions, each given as (kernel, range, *args)."""
    listed = submissions(*calls)
    options = FusionOptions(strategy="megakernel", barriers="none")
    plan = make_plan(listed, options, target)
    assert plan.strategy == "megakernel", plan.fallback
    assert len(plan.stages) == 1
    return PersistentPlan(plan.stages[0], listed, calls)


def tile_of(schedule: Schedule, stage: int, item: Item) -> int:
    """The number of the tile that holds a work-item."""
    found = schedule.stages[stage]
    at = tuple(i // size for i, size in zip(item, found.tile, strict=True))
    return int(np.ravel_multi_index(at, found.count))


def waited(schedule: Schedule) -> dict[Tile, set[Tile]]:
    """The tiles that each tile waits for itself."""
    found: dict[Tile, set[Tile]] = {}
    for stage, boxes in enumerate(schedule.waits):
        for tile in range(schedule.stages[stage].tiles):
            own = found[stage, tile] = set()
            for box in boxes:
                source = schedule.stages[box.producer]
                if box.low is None or box.high is None:
                    own |= {(box.producer, t) for t in range(source.tiles)}
                    continue
                ranges = [
                    range(int(a[tile]), int(b[tile]) + 1)
                    for a, b in zip(box.low, box.high, strict=True)
                ]
                own |= {
                    (box.producer, int(np.ravel_multi_index(at, source.count)))
                    for at in product(*ranges)
                }
    return found


def before(schedule: Schedule) -> dict[Tile, set[Tile]]:
    """All tiles that are done before a tile begins."""
    own = waited(schedule)
    found: dict[Tile, set[Tile]] = {}
    for tile in sorted(own):
        found[tile] = set(own[tile]).union(*(found[other] for other in own[tile]))
    return found


def tilings(extents: Sequence[tuple[int, ...]], seed: int) -> Iterator[Tiling]:
    """Tiles of every small shape, the same for all stages, then some that differ."""
    ndim = max(map(len, extents))
    for shape in product((1, 2, 3, 5), repeat=ndim):
        yield Tiling(tuple(shape[: len(e)] for e in extents), len(extents), "tickets")
    random = np.random.default_rng(seed)
    for _ in range(6):
        tiles = tuple(tuple(int(random.integers(1, n + 2)) for n in e) for e in extents)
        block = int(random.integers(1, len(extents) + 1))
        yield Tiling(tiles, block, str(random.choice(["stages", "shares", "turns"])))  # type: ignore[arg-type]  # one of these
