"""Microbenchmarks of launches, of memory and of a persistent kernel's instructions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from fusionq.backends.base import Allocation, ArrayBinding, Backend, Binding, PreparedLaunch
from fusionq.base.costs import Costs
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Compare,
    Const,
    Expr,
    If,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Persistent,
    PersistentStage,
    ScalarParam,
    StageCode,
    Store,
    TileWait,
)
from fusionq.ir.types import FLOAT32, INT64, UINT32
from fusionq.megakernel.launch import ChosenWorkers, PersistentLaunch, all_workers
from fusionq.megakernel.tiling import Assignment, Tiling
from fusionq.passes.sources import ArgumentSource, ParamSource, QueueSource

_STAGES = 48
"""Of the persistent kernel that is measured."""
_TILES = 8
"""For each worker, in the schedule that is measured against one of a tile for each worker."""
_REPEATS, _SECONDS = 8, 0.02
"""Of a measurement in one round: so many, or as many as begin in that time."""
_ALIKE, _MOST_ROUNDS = 1.25, 6
"""Rounds are repeated until two of the last three differ by no more than that factor in all they
measure, or there have been so many."""
_LATEST = 3
_BEYOND, _MOST_BYTES = 8, 1 << 30
"""Arrays to measure memory with are so many times as large together as its caches, and at most so
large."""
_LEAST_BEYOND = 4
"""What has less, as a device that would take too long for more, measures its caches."""
_LONGEST = 0.25
"""Seconds of the longest launch that is measured, about: on a device that needs longer for as many
work-items as fill its memory's caches, fewer are measured."""
_SECONDS_IN_ALL = 3.0
"""After so many seconds nothing more is measured: it takes 0.3 to 1.5, where others leave the
device's workers a processor.  Beside a program whose kernels have all of them each launch waits for
its turn, and the rounds took 20 seconds without being alike."""
_GROWTH = 8
"""How many times as many work-items the next launch has, while it is tried how many can be."""


Rounds = Callable[[], tuple[float, ...]]
"""Measures several times once more; the shortest of each."""


class _TakesTooLong(Exception):
    """Others are busy, or the device is too slow to be measured."""


def measure(backend: Backend, clock: Callable[[], float] = time.monotonic) -> Costs | None:
    """What launches, instructions and memory cost on the device of ``backend``; the other costs
    are those of its target.  None where what is measured changes from one time to the next, or
    takes too long by the ``clock``, as where others are busy or some of the device's workers do not
    run."""
    try:
        return _measured(backend, _Times(backend, clock))
    except _TakesTooLong:
        return None


def _measured(backend: Backend, times: _Times) -> Costs | None:
    target = backend.target
    memory = _Memory(backend, times)
    launch_times = stable(lambda: tuple([times(*given) for given in memory.launches]))
    if launch_times is None:
        return None
    launch, cached, far = launch_times
    costs = replace(target.costs, launch_seconds=launch, measured=True)
    bandwidth = costs.memory_bandwidth
    if memory.is_beyond:
        bandwidth = 8 * memory.far / far
    cache = 8 * memory.inside / max(cached - launch / 2, cached / 4)
    costs = replace(costs, memory_bandwidth=bandwidth, cache_bandwidth=max(cache, bandwidth))
    has_none = not (target.device.persistent_kernels and target.device.chooses_persistent)
    items = _STAGES * _TILES * target.resident_workers * target.worker_size
    if has_none or far / memory.far * items > _LONGEST:
        return costs  # nobody asks, or it would take long
    launches = _persistent(backend)
    step_times = stable(lambda: tuple([times(launch) for launch in launches]))
    if step_times is None:
        return None
    single, many, alone = step_times
    if many <= single:  # somebody else had a core
        return None
    instruction = (many - single) / (_STAGES * (_TILES - 1))
    start = costs.start_launches * launch
    stage = max((single - start) / _STAGES, instruction)
    by_one = max((alone - launch) / _STAGES, instruction / _TILES)
    return replace(
        costs,
        instruction_seconds=instruction,
        stage_seconds=stage,
        alone_seconds=min(by_one, stage),
    )


def stable(measured: Rounds) -> tuple[float, ...] | None:
    """The shortest times of two rounds that are alike; None where no two of three that follow each
    other are."""
    rounds: list[tuple[float, ...]] = []
    for _ in range(_MOST_ROUNDS):
        latest = measured()
        for before in rounds[1 - _LATEST :]:
            pairs = list(zip(latest, before, strict=True))
            if all(max(pair) <= _ALIKE * min(pair) for pair in pairs):
                return tuple([min(pair) for pair in pairs])
        rounds.append(latest)
    return None


class _Times:
    """Shortest times of launches; ``_TakesTooLong`` where too much time has passed on the
    ``clock``."""

    def __init__(self, backend: Backend, clock: Callable[[], float]) -> None:
        self._backend = backend
        self._clock = clock
        self._until = clock() + _SECONDS_IN_ALL

    def __call__(self, launch: PreparedLaunch, count: int = 1) -> float:
        """Seconds of one of ``count`` launches behind each other, as one where the device repeats
        them so."""
        seconds = self._backend.seconds
        if self.once(launch) * count > _LONGEST:  # which makes the device ready, too
            count = 1
        one = self._backend.repeated([launch] * count) if count > 1 else None

        def launches() -> None:
            if one is not None:
                one.launch()
                return
            for _ in range(count):
                launch.launch()

        taken = [seconds(launches)]
        while len(taken) < _REPEATS and sum(taken) < _SECONDS:
            taken.append(seconds(launches))
        return min(taken) / count

    def once(self, launch: PreparedLaunch) -> float:
        """Seconds of one launch."""
        if self._clock() > self._until:
            raise _TakesTooLong
        return self._backend.seconds(launch.launch)


class _Memory:
    """``launches`` over a work-group for each unit, ``inside`` work-items whose memory the caches
    keep, and ``far`` whose memory they do not, if the device gets so far: ``is_beyond``.  With each
    launch how many of it are measured behind each other."""

    def __init__(self, backend: Backend, times: _Times) -> None:
        target = backend.target
        program = backend.build(_axpb("measured", restrict=True), "strict")
        beyond = min(_BEYOND * target.cache_bytes, _MOST_BYTES) // 8
        inside = min(target.kept_bytes // 64, beyond)
        group = min(target.largest_plain_group, target.device.max_work_group_size)
        least = min(group * target.device.compute_units, inside)
        memory = [backend.allocate(4 * beyond) for _ in range(2)]
        for block in memory:
            block.zero()

        def over(elements: int) -> PreparedLaunch:
            whole = -(-elements // group) * group
            bound: list[Binding] = [*(_vector(block, whole) for block in memory), 1.0, 1.0]
            bound.append(elements)
            return backend.prepare(program, bound, LaunchShape((whole,), (group,)))

        def seconds(elements: int) -> float:
            launch = over(elements)
            return min(times.once(launch), times.once(launch))

        self._memory = memory
        self.far = _most_in_time(seconds, least, beyond)
        self.inside = min(inside, self.far)
        self.is_beyond = 8 * self.far >= min(_LEAST_BEYOND * target.cache_bytes, _MOST_BYTES)
        self.launches = [(over(least), 32), (over(self.inside), 16), (over(self.far), 1)]


def _most_in_time(seconds: Callable[[int], float], least: int, most: int) -> int:
    """The largest number of work-items, from ``least`` to ``most``, that is likely to take no
    more than ``_LONGEST``; ``seconds`` is what a number takes."""
    elements = least
    while elements < most and _GROWTH * seconds(elements) <= _LONGEST:
        elements = min(_GROWTH * elements, most)
    return elements


def _persistent(backend: Backend) -> list[PersistentLaunch]:
    """A persistent kernel with a tile for each worker, one with ``_TILES`` of them, and one with a
    single worker."""
    target = backend.target
    kernel, sources = _steps()
    program = backend.build(kernel, "strict")

    def over(
        tiles: int, assignment: Assignment, choose: ChosenWorkers = all_workers
    ) -> PersistentLaunch:
        n = tiles * target.worker_size
        memory = [backend.allocate(4 * n) for _ in range(2)]
        for block in memory:
            block.zero()
        bindings: list[Binding] = [*(_vector(block, n) for block in memory), 1.0, 1.0, n]
        bindings += [0] * (len(sources) - len(bindings))  # the queue's own
        tiling = Tiling(((target.worker_size,),) * _STAGES, 1, assignment)
        return PersistentLaunch(backend, program, kernel, sources, bindings, tiling, choose)

    workers = target.resident_workers
    return [
        over(workers, "turns"),
        over(_TILES * workers, "tickets"),
        over(1, "turns", lambda *_: 1),
    ]


def _vector(allocation: Allocation, length: int) -> ArrayBinding:
    return ArrayBinding(allocation.address, (length,), (1,))


def _axpb(name: str, restrict: bool) -> Kernel:
    """``b[i] = x * a[i] + y`` for ``i < n``: as many arguments as kernels have, whose number is
    most of what a launch costs the host."""
    arrays = [ArrayParam(array, FLOAT32, 1, restrict=restrict) for array in ("a", "b")]
    scalars = [ScalarParam("x", FLOAT32), ScalarParam("y", FLOAT32), ScalarParam("n", INT64)]
    index = ItemQuery("global_id", 0)
    scaled = Binary(FLOAT32, "mul", Param(FLOAT32, "x"), Load(FLOAT32, "a", (index,)))
    value = Binary(FLOAT32, "add", scaled, Param(FLOAT32, "y"))
    inside = Compare("lt", index, Param(INT64, "n"))
    return Kernel(name, 1, (*arrays, *scalars), (), (If(inside, (Store("b", (index,), value),)),))


def _steps() -> tuple[Kernel, tuple[ParamSource, ...]]:
    """A persistent kernel, each tile of which waits for its neighbours in the stage
    before, and where its parameters come from."""
    step = _axpb("measured_step", restrict=False)
    low, high = ItemQuery("tile_first", 0), ItemQuery("tile_last", 0)
    bounds = _plus(low, -1), _plus(high, 1)
    extents = (Param(INT64, "n"),)
    first = StageCode(step, extents, (), None)
    later = StageCode(step, extents, (TileWait((bounds,)),), None)
    stages = tuple(
        PersistentStage(
            f"{k}: {step.name}",
            min(k, 1),
            ("a", "b", "x", "y", "n") if k % 2 == 0 else ("b", "a", "x", "y", "n"),
            (k - 1,) if k else (),
        )
        for k in range(_STAGES)
    )
    body = Persistent((first, later), stages, "schedule", "control", "epoch", "spin_limit")
    own = (
        ArrayParam("schedule", INT64, 1, restrict=True),
        ArrayParam("control", UINT32, 1, restrict=True),
        ScalarParam("epoch", UINT32),
        ScalarParam("spin_limit", INT64),
    )
    kernel = Kernel("measured_steps", 1, (*step.params, *own), (), (body,))
    given = [ArgumentSource(0, k) for k in range(len(step.params))]
    return kernel, (*given, *(QueueSource(param.name) for param in own))


def _plus(expr: Expr, value: int) -> Expr:
    return Binary(INT64, "add", expr, Const(INT64, value))
