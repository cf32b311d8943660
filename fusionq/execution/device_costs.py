"""What launches and memory cost on a device: measured once, kept on disk."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from fusionq.backends.base import ArrayBinding, Backend, DeviceEvent
from fusionq.base import version
from fusionq.base.target import LaunchShape
from fusionq.cache.disk import disk_store
from fusionq.ir.nodes import ArrayParam, Binary, Const, ItemQuery, Kernel, Load, Store
from fusionq.ir.types import FLOAT32
from fusionq.planning.cost import DeviceCosts

_REFERENCE = DeviceCosts(20e-6, 2e-6, 10e9, 40e9, 1 << 24)
"""For a backend that is not measured: the order of magnitude of a small CPU."""

_SMALL, _LARGE = 1 << 18, 1 << 23
"""Elements of float32: in the caches, and beyond them."""

_known: dict[tuple[str, str], DeviceCosts] = {}


def device_costs(backend: Backend) -> DeviceCosts:
    """The costs of ``backend``'s device: remembered, from disk, or measured now (some tenths of
    a second)."""
    info = backend.info
    if info.kind == "reference":
        return _REFERENCE
    key = info.name, info.driver
    if key not in _known:
        kept = _kept(key)
        if kept is None:
            kept, calm = _measured(backend)
            if calm:
                _keep(key, kept)
        _known[key] = kept
    return _known[key]


def _measured(backend: Backend) -> tuple[DeviceCosts, bool]:
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
    memory = [backend.allocate(4 * _LARGE) for _ in range(2)]
    for block in memory:
        block.host_view()[:] = 0

    def launches(elements: int, count: int) -> Callable[[], None]:
        group = min(4096, backend.info.max_work_group_size, elements)
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

    enough = min(4096 * backend.info.compute_units, _SMALL)  # a work-group for each unit
    launch, calm_1 = seconds(launches(enough, 32), 15)
    small, calm_2 = seconds(launches(_SMALL, 16), 15)
    large, calm_3 = seconds(launches(_LARGE, 1), 5)
    launch, small = launch / 32, small / 16
    memory_bandwidth = 8 * _LARGE / large
    costs = DeviceCosts(
        launch_seconds=launch,
        instruction_seconds=launch / 24,
        memory_bandwidth=memory_bandwidth,
        cache_bandwidth=max(8 * _SMALL / max(small - launch / 2, small / 4), memory_bandwidth),
        cache_bytes=1 << 24,
    )
    return costs, calm_1 and calm_2 and calm_3


_FIELDS = {
    "launch_seconds": float, "instruction_seconds": float, "memory_bandwidth": float,
    "cache_bandwidth": float, "cache_bytes": int,
}  # fmt: skip


def _entry(key: tuple[str, str]) -> str:
    return hashlib.sha256(repr((version.__version__, *key)).encode()).hexdigest()


def _kept(key: tuple[str, str]) -> DeviceCosts | None:
    store = disk_store()
    contents = None if store is None else store.get(_entry(key), "costs")
    if contents is None:
        return None
    try:
        values = json.loads(contents)
        return DeviceCosts(**{name: type_(values[name]) for name, type_ in _FIELDS.items()})
    except (ValueError, TypeError, KeyError):
        return None


def _keep(key: tuple[str, str], costs: DeviceCosts) -> None:
    store = disk_store()
    if store is not None:
        store.put(_entry(key), "costs", json.dumps(asdict(costs)).encode())
