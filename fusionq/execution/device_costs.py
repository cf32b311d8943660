"""What launches and memory cost on a device: measured once, kept on disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fusionq.backends.base import ArrayBinding, Backend, DeviceEvent
from fusionq.base.target import Costs, LaunchShape, Target
from fusionq.cache.disk import disk_store
from fusionq.cache.keys import digest
from fusionq.cache.serialise import MalformedData, decode, encode
from fusionq.ir.nodes import ArrayParam, Binary, Const, ItemQuery, Kernel, Load, Store
from fusionq.ir.types import FLOAT32

_SMALL, _LARGE = 1 << 18, 1 << 23
"""Elements of float32: in the caches, and beyond them."""

_known: dict[Target, Costs] = {}


def measured_target(backend: Backend) -> Target:
    """``backend.target`` with the costs of its device: remembered, from disk, or measured now (some
    tenths of a second).  The reference device's are assumed."""
    target = backend.target
    if target.device.kind == "reference":
        return target
    if target not in _known:
        kept = _kept(target)
        if kept is None:
            kept, calm = _measured(backend)
            if calm:
                _keep(target, kept)
        _known[target] = kept
    return replace(target, costs=_known[target])


def _measured(backend: Backend) -> tuple[Costs, bool]:
    """The costs, and whether they are worth keeping: a busy machine's are not."""
    index = ItemQuery("global_id", 0)
    value = Binary(FLOAT32, "add", Load(FLOAT32, "a", (index,)), Const(FLOAT32, 1.0))
    kernel = Kernel(
        "calibrate",
        1,
        (ArrayParam("a", FLOAT32, 1, restrict=True), ArrayParam("b", FLOAT32, 1, restrict=True)),
        (),
        (Store("b", (index,), value),),
    )
    program = backend.build(kernel, "strict")
    target = backend.target
    group = min(target.largest_plain_group, target.device.max_work_group_size)
    memory = [backend.allocate(4 * _LARGE) for _ in range(2)]
    for block in memory:
        block.zero()

    def launches(elements: int, count: int) -> Callable[[], None]:
        bound = [ArrayBinding(block.address, (elements,), (1,)) for block in memory]
        launch = backend.prepare(program, bound, LaunchShape((elements,), (group,)))

        def run() -> None:
            event: DeviceEvent | None = None
            for _ in range(count):
                event = launch.launch()
            assert event is not None
            event.wait()

        return run

    def seconds(run: Callable[[], None], repeats: int) -> tuple[float, bool]:
        """The shortest time, and whether the others are like it: nobody else was busy."""
        run()
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
        return min(times), float(np.median(times)) < 1.5 * min(times)

    enough = min(group * target.device.compute_units, _SMALL)  # a work-group for each unit
    launch, calm_1 = seconds(launches(enough, 32), 15)
    small, calm_2 = seconds(launches(_SMALL, 16), 15)
    large, calm_3 = seconds(launches(_LARGE, 1), 5)
    launch, small = launch / 32, small / 16
    memory_bandwidth = 8 * _LARGE / large
    costs = replace(
        target.costs,
        launch_seconds=launch,
        instruction_seconds=launch / 24,
        memory_bandwidth=memory_bandwidth,
        cache_bandwidth=max(8 * _SMALL / max(small - launch / 2, small / 4), memory_bandwidth),
        measured=True,
    )
    return costs, calm_1 and calm_2 and calm_3


def _kept(target: Target) -> Costs | None:
    store = disk_store()
    contents = None if store is None else store.get(_entry(target), "costs")
    if contents is None:
        return None
    try:
        return decode(Costs, json.loads(contents))
    except (ValueError, MalformedData):
        return None


def _keep(target: Target, costs: Costs) -> None:
    store = disk_store()
    if store is not None:
        store.put(_entry(target), "costs", json.dumps(encode(costs)).encode())


def _entry(target: Target) -> str:
    """Another device, driver, number of compute units or code has costs of its own."""
    return digest("costs", target)
