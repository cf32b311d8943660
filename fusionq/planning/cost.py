"""Whether a persistent kernel is faster than a launch for each stage: a model of both.

A launch takes what a launch costs or its work, whichever is longer, since the next one is enqueued
meanwhile; work-groups of a fixed size have to be started one by one.  Where work-items are threads
that wait (GPUs) it takes both, the work being at least what a single work-item waits for.  The work
of a stage is what its work-items load and store, at the bandwidth of the caches, the mathematical
functions that they evaluate, and what vector units cannot do for all lanes at once; arrays beyond
the caches are streamed by each launch.  Where a launch has code of its own for the inside of rows,
that is its work, and accesses are faster there.

A persistent kernel takes its start, an instruction for each tile and, where every stage waits for
the one before, a handover for each stage. Its work is the same, but without what conditions on ids
rule out for the inside of tiles, and accesses are faster there, without masks, and where each
worker has the same part of every stage, which then stays in its own cache; what lanes do one after
the other is slower. Where tiles wait for few others, the arrays are streamed once for each block of
stages.  It has as few workers as do its stages soonest: a single one hands nothing over, and its
launch has no other to wait for.

The costs are the target's.  What is computed beside accesses and functions is not counted: it made
no difference to how well the model fits.  All of that is coarse, so ``MARGIN`` asks for more than a
little.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.planning.counted_work import NOTHING as NOTHING
from fusionq.planning.counted_work import Work as Work

FEWEST_STAGES = 4
"""Launches; fewer leave too little to save for what it takes to compile a persistent kernel."""

MARGIN = 1.25
"""How much faster a persistent kernel has to be by the model before it is chosen: the regret is
least from 1.25 to 1.5 (benchmarks/cost_model.py)."""


@dataclass(frozen=True, slots=True)
class StageWork:
    """A stage as the model sees it.

    ``nbytes``: of the arrays that it touches, each once.  ``whole``: what all its work-items do;
    ``inside``: what they do where conditions are decided, as if all were inside of tiles; None
    where no conditions are.  ``launch``: which of the launches would do it.
    """

    launch: int
    items: int
    nbytes: int
    whole: Work
    inside: Work | None
    tiles: int
    groups: int | None = None
    """Work-groups of the launch, where their size is fixed."""
    chain: float = 0.0
    """Scalar operations that a work-item does one after the other; counted for devices whose
    threads wait for each of them."""
    along_rows: bool = False
    """Whether the launch has code of its own for ``inside``, too."""


@dataclass(frozen=True, slots=True)
class ListWork:
    """What a persistent kernel does.

    ``nbytes``: of all arrays, each once.  ``pipelined``: a tile waits for few tiles of each
    earlier stage.  ``block``: stages that run as one pipeline.  ``affinity``: each worker has the
    same part of every stage.
    """

    stages: tuple[StageWork, ...]
    nbytes: int
    pipelined: bool
    block: int
    affinity: bool


@dataclass(frozen=True, slots=True)
class OverlapEstimate:
    """Predicted seconds of the launches, and of those in which halos are computed anew."""

    launches: float
    overlapped: float

    @property
    def prefers_overlap(self) -> bool:
        """Whether computing halos anew is faster by enough."""
        return self.overlapped * MARGIN < self.launches

    def __str__(self) -> str:
        ratio = self.launches / self.overlapped
        return (
            f"estimated {self.overlapped * 1e6:.0f} µs with halos computed anew against "
            f"{self.launches * 1e6:.0f} µs as launches without ({ratio:.2f}x)"
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """Predicted seconds for the stages as a ``sequence`` of launches and as one ``persistent``
    kernel."""

    sequence: float
    persistent: float

    @property
    def prefers_persistent(self) -> bool:
        """Whether the persistent kernel is faster by enough."""
        return self.persistent * MARGIN < self.sequence

    def __str__(self) -> str:
        ratio = self.sequence / self.persistent
        return (
            f"estimated {self.persistent * 1e6:.0f} µs as one persistent kernel against "
            f"{self.sequence * 1e6:.0f} µs as a sequence of launches ({ratio:.2f}x)"
        )


def with_persistent(estimates: Sequence[Estimate], launches: OverlapEstimate) -> float:
    """Seconds of a list with persistent kernels in place of some of its launches."""
    replaced = sum(e.sequence for e in estimates)
    return sum(e.persistent for e in estimates) + max(launches.launches - replaced, 0.0)


def estimate(work: ListWork, target: Target) -> Estimate:
    """What ``work`` takes on ``target`` in its launches, and in one for all."""
    launches: dict[int, list[StageWork]] = {}
    for stage in work.stages:
        launches.setdefault(stage.launch, []).append(stage)
    sequence = sum(_launched(stages, work, target) for stages in launches.values())
    return Estimate(sequence, _persistent(work, target))


def launches_seconds(launches: Sequence[StageWork], nbytes: int, target: Target) -> float:
    """What ``launches``, one each, take on ``target``; they use arrays of ``nbytes`` together."""
    work = ListWork(tuple(launches), nbytes, False, 1, False)
    return sum(_launched([launch], work, target) for launch in launches)


def _launched(stages: Sequence[StageWork], work: ListWork, target: Target) -> float:
    """Seconds of a launch that does ``stages``."""
    items = max(stage.items for stage in stages)
    groups = -(-items // target.preferred_work_group)
    busy = 0.0
    for stage in stages:
        if stage.groups is None:
            busy += _busy(_in_launch(stage, target), groups, target)
        else:
            workers = max(min(stage.groups, target.resident_workers), 1)
            each = target.costs.instruction_seconds / workers
            busy += _busy(stage.whole, stage.groups, target) + stage.groups * each
    streamed = sum(_streamed(stage, work, target) for stage in stages)
    chain = sum(stage.chain for stage in stages) * target.costs.chain_seconds
    if chain:
        return target.costs.launch_seconds + max(streamed, busy, chain)
    return max(target.costs.launch_seconds, streamed, busy)


def _in_launch(stage: StageWork, target: Target) -> Work:
    """What most work-items of a stage do in a launch."""
    if stage.inside is None or not stage.along_rows:
        return stage.whole
    return stage.inside.with_accesses_faster(target.costs.interior_speedup)


def _persistent(work: ListWork, target: Target) -> float:
    """Seconds of one persistent kernel."""
    costs, stages = target.costs, work.stages
    if work.nbytes <= target.kept_bytes and not costs.chain_seconds:
        near = stays_near(work.nbytes, target)
        parts = [
            persistent_part(s.inside, s.whole, s.items, s.groups, near, target) for s in stages
        ]
        workers, soonest = fewest_workers(parts, target)
        if workers < target.resident_workers:
            return soonest
    seconds = 0.0
    for stage in stages:
        near = work.affinity and stage.tiles >= target.resident_workers
        done = _in_tiles(stage.inside, stage.whole, near, target)
        busy = _busy(done, stage.tiles, target)
        seconds += busy if work.pipelined else max(busy, _streamed(stage, work, target))
    if work.pipelined and work.nbytes > target.held_bytes:
        blocks = -(-len(stages) // work.block)
        once = work.nbytes / costs.memory_bandwidth
        each = sum(_streamed(stage, work, target) for stage in stages)
        seconds = max(seconds, min(blocks * once, each))
    tiles = sum(stage.tiles for stage in stages)
    seconds += costs.instruction_seconds * tiles / target.resident_workers
    if work.block == 1:
        seconds += costs.stage_seconds * len(stages)
    return costs.start_launches * costs.launch_seconds + seconds


MANY_MARGIN = 1.1
"""How much sooner more workers have to end: they take what others could use, and wait for it."""


@dataclass(frozen=True, slots=True)
class PersistentPart:
    """A stage of a persistent kernel: the ``seconds`` of a single worker, and into how many
    ``parts`` for others it can be cut, at most."""

    seconds: float
    parts: int


def stays_near(nbytes: int, target: Target) -> bool:
    """Whether a list's memory stays in the cache that a worker has for itself."""
    return nbytes <= target.worker_cache_bytes


def persistent_part(
    inside: Work | None, whole: Work, items: int, groups: int | None, near: bool, target: Target
) -> PersistentPart:
    """The stage of ``items`` work-items, in so many work-groups if these are fixed, which do
    ``whole`` together, or most of them ``inside``, in the caches; ``near``: in a worker's own."""
    done = _in_tiles(inside, whole, True, target)
    if near:
        done = done.with_accesses_faster(target.costs.own_cache_speedup)
    return PersistentPart(_busy(done, 1, target), groups or -(-items // target.worker_size))


def fewest_workers(stages: Sequence[PersistentPart], target: Target) -> tuple[int, float]:
    """With how many workers ``stages`` that follow each other end soonest, by the model, and the
    seconds of the launch.  What is handed over to others takes the longer, the more there are."""
    costs, most = target.costs, target.resident_workers
    found, soonest = 1, 0.0
    workers = 1
    while True:
        share = log2(workers) / log2(most) if most > 1 else 0.0
        each = costs.alone_seconds + share * (costs.stage_seconds - costs.alone_seconds)
        start = 1.0 if workers == 1 else costs.start_launches + costs.others_launches
        seconds = start * costs.launch_seconds + each * len(stages)
        seconds += sum(s.seconds / max(min(s.parts, workers), 1) for s in stages)
        if workers == 1 or seconds * MANY_MARGIN < soonest:
            found, soonest = workers, seconds
        if workers == most:
            return found, soonest
        workers = min(2 * workers, most)


def _in_tiles(inside: Work | None, whole: Work, near: bool, target: Target) -> Work:
    """What a stage of a persistent kernel does, in terms of launches' work; ``near``: each worker
    has had the same part in the stage before."""
    costs = target.costs
    speedup = 1.0 if inside is None else costs.interior_speedup
    if near:
        speedup *= costs.affinity_speedup
    done = inside or whole
    serial = done.serial * costs.serial_slowdown
    return Work(done.accessed / speedup, done.functions, serial)


def tile_seconds(work: Work, operations: float, target: Target) -> float:
    """Seconds of one worker that does ``work`` for a work-item, with what is accessed in the
    caches; ``operations``: scalar ones of the work-item, for which workers that share a compute
    unit take turns."""
    busy = _busy(work, 1, target)
    if target.costs.chain_seconds:
        busy = max(busy, _chain_seconds(work, operations, target) / target.costs.busy_items)
    return busy


def items_for_build(seconds: float, target: Target) -> int | None:
    """Of how many work-items, each of which saves so many ``seconds`` of a worker, launches earn
    back what building code of their own takes; None where nothing is saved."""
    if seconds <= 0:
        return None
    return ceil(target.costs.split_saved_seconds * target.throughput_parts / seconds)


def waiting_seconds(work: Work, operations: float, target: Target) -> float:
    """Seconds that a work-item takes, however few there are, which does ``work``."""
    return _chain_seconds(work, operations, target)


def chain_of(work: Work, operations: float, target: Target) -> float:
    """The scalar operations that a work-item waits for, which does ``work``."""
    return operations + work.functions * target.costs.function_operations


def _chain_seconds(work: Work, operations: float, target: Target) -> float:
    return chain_of(work, operations, target) * target.costs.chain_seconds


def grouped_seconds(
    work: Work,
    operations: float,
    items: int,
    groups: int,
    row: int,
    target: Target,
    idle: int = 0,
) -> float:
    """Seconds of ``items`` work-items that do ``work`` and so many ``operations`` each in
    ``groups``, in which ``row`` of them are beside each other: fewer than run in lockstep access
    what is at other addresses.  Where there are more in a compute unit than keep it busy, with as
    many ``idle`` ones as there are, they take turns."""
    costs = target.costs
    parts = max(min(groups, target.throughput_parts), 1)
    busy = _busy(work * items, groups, target)
    if row < target.sub_group_size:
        lines = (work.accessed / target.weights.accessed_bytes + work.serial) * items / row
        busy = max(busy, lines * costs.serial_seconds * costs.used_once_slowdown / parts)
    turns = max((items + idle) / costs.busy_items / parts, 1.0)
    return busy + _chain_seconds(work, operations, target) * turns


def _busy(work: Work, parts: int, target: Target) -> float:
    """Seconds of a stage's ``work`` in so many ``parts`` side by side, with what is accessed in
    the caches."""
    costs, workers = target.costs, target.throughput_parts
    bandwidth = costs.cache_bandwidth * costs.access_efficiency / workers
    seconds = work.accessed / bandwidth + work.functions * costs.function_seconds
    seconds += work.serial * costs.serial_seconds
    return seconds / max(min(parts, workers), 1)


def _streamed(stage: StageWork, work: ListWork, target: Target) -> float:
    """Seconds in which memory gives and takes what a stage touches of its arrays, if the caches do
    not keep them."""
    if work.nbytes <= target.kept_bytes:
        return 0.0
    return min(stage.nbytes, stage.whole.accessed) / target.costs.memory_bandwidth
