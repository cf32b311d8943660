"""Microbenchmarks of launches, of memory and of a persistent kernel's instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from fusionq.backends.base import Allocation, ArrayBinding, Backend, Binding, PreparedLaunch
from fusionq.base.target import Costs, LaunchShape
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
from fusionq.megakernel.launch import PersistentLaunch
from fusionq.megakernel.tiling import Assignment, Tiling
from fusionq.passes.sources import ArgumentSource, ParamSource, QueueSource

_STAGES = 48
"""Of the persistent kernel that is measured."""
_TILES = 8
"""For each worker, in the schedule that is measured against one of a tile for each worker."""
_CALM = 1.5
"""The median of times is no more than so many times the shortest where nobody else was busy."""
_REPEATS, _SECONDS = 15, 0.05
"""Of a measurement: so many, or as many as begin in that time."""
_MOST_BYTES = 1 << 30
"""Of arrays to measure memory with."""
_LONGEST = 0.25
"""Seconds of the longest launch that is measured, about: on a device that needs longer for as many
work-items as fill its memory's caches, fewer are measured."""
_GROWTH = 8
"""How many times as many work-items the next launch has, while it is tried how many can be."""


def measure(backend: Backend) -> tuple[Costs, bool]:
    """What launches, instructions and memory cost on the device of ``backend``, and whether nobody
    else was busy meanwhile.  The other costs are those of its target."""
    times = _Times(backend)
    launch, memory, cache, item = _launches(backend, times)
    instruction, stage = _instructions(backend, launch, item, times)
    costs = replace(
        backend.target.costs,
        launch_seconds=launch,
        instruction_seconds=instruction,
        stage_seconds=stage,
        memory_bandwidth=memory,
        cache_bandwidth=max(cache, memory),
        measured=True,
    )
    return costs, times.calm


class _Times:
    """Shortest times; ``calm`` as long as the others were like them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.calm = True

    def __call__(self, launch: PreparedLaunch, count: int = 1) -> float:
        """Seconds of one of ``count`` launches behind each other."""

        def launches() -> None:
            for _ in range(count):
                launch.launch()

        seconds = self._backend.seconds
        self.once(launch)  # makes the device ready
        if self.once(launch) * count > _LONGEST:
            count = 1
        elif count > 1:
            seconds(launches)
        taken = [seconds(launches)]
        while len(taken) < _REPEATS and sum(taken) < _SECONDS:
            taken.append(seconds(launches))
        self.calm = self.calm and len(taken) > 2 and median(taken) < _CALM * min(taken)
        return min(taken) / count

    def once(self, launch: PreparedLaunch) -> float:
        """Seconds of one launch."""
        return self._backend.seconds(launch.launch)


def _launches(backend: Backend, times: _Times) -> tuple[float, float, float, float]:
    """Seconds of a launch, bytes a second from memory and from the caches, and seconds of a
    work-item, about."""
    target = backend.target
    program = backend.build(_axpb("measured", restrict=True), "strict")
    beyond = min(8 * target.cache_bytes, _MOST_BYTES) // 8
    inside = min(target.kept_bytes // 64, beyond)
    group = min(target.largest_plain_group, target.device.max_work_group_size)
    least = min(group * target.device.compute_units, inside)  # a work-group for each unit
    memory = [backend.allocate(4 * beyond) for _ in range(2)]
    for block in memory:
        block.zero()

    def over(elements: int) -> PreparedLaunch:
        whole = -(-elements // group) * group
        bound: list[Binding] = [*(_vector(block, whole) for block in memory), 1.0, 1.0, elements]
        return backend.prepare(program, bound, LaunchShape((whole,), (group,)))

    launch = times(over(least), 32)
    beyond = _most_in_time(lambda elements: times.once(over(elements)), least, beyond)
    inside = min(inside, beyond)
    cached = times(over(inside), 16)
    far = times(over(beyond))
    memory_bandwidth = 8 * beyond / far
    cache_bandwidth = 8 * inside / max(cached - launch / 2, cached / 4)
    return launch, memory_bandwidth, cache_bandwidth, far / beyond


def _most_in_time(seconds: Callable[[int], float], least: int, most: int) -> int:
    """The largest number of work-items, from ``least`` to ``most``, that is likely to take no
    more than ``_LONGEST``; ``seconds`` is what a number takes."""
    elements = least
    while elements < most and _GROWTH * seconds(elements) <= _LONGEST:
        elements = min(_GROWTH * elements, most)
    return elements


def _instructions(
    backend: Backend, launch: float, item: float, times: _Times
) -> tuple[float, float]:
    """Seconds of an instruction whose waits are over, and of a stage that waits for the one before
    in all tiles; ``launch`` and ``item``: of a launch and of a work-item.  Those of a device that
    would take long for them, or where nobody asks, are assumed."""
    target = backend.target
    has_none = not (target.device.persistent_kernels and target.device.chooses_persistent)
    items = _STAGES * _TILES * target.resident_workers * target.worker_size
    if has_none or item * items > _LONGEST:
        return target.costs.instruction_seconds, target.costs.stage_seconds
    kernel, sources = _steps()
    program = backend.build(kernel, "strict")

    def seconds(tiles: int, assignment: Assignment) -> float:
        n = tiles * target.worker_size
        memory = [backend.allocate(4 * n) for _ in range(2)]
        for block in memory:
            block.zero()
        bindings: list[Binding] = [*(_vector(block, n) for block in memory), 1.0, 1.0, n]
        bindings += [0] * (len(sources) - len(bindings))  # the queue's own
        tiling = Tiling(((target.worker_size,),) * _STAGES, 1, assignment)
        persistent = PersistentLaunch(backend, program, kernel, sources, bindings, tiling=tiling)
        return times(persistent)

    workers = target.resident_workers
    single = seconds(workers, "turns")
    many = seconds(_TILES * workers, "tickets")
    if many <= single:  # somebody else had a core
        times.calm = False
        return target.costs.instruction_seconds, target.costs.stage_seconds
    instruction = (many - single) / (_STAGES * (_TILES - 1))
    start = target.costs.start_launches * launch
    return instruction, max((single - start) / _STAGES, instruction)


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
