"""A target's costs: measured once on its device, kept on disk."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from fusionq.backends.base import Backend
from fusionq.base.costs import Costs
from fusionq.base.target import Target
from fusionq.cache.disk import disk_store
from fusionq.cache.keys import digest
from fusionq.cache.serialise import MalformedData, decode, encode
from fusionq.execution.machine_load import is_busy

LOOK_AGAIN = 1.0
"""Seconds until the disk is asked again for costs that it did not have, and a worker process looks
again whether others are busy: every list of new sizes wants to know."""

QUIET_LOOKS, QUIET_SECONDS = 5, 0.01
"""How often, and how far from each other, a worker process looks whether others are busy before it
measures: a program is not while it submits."""

_known: dict[Target, Costs] = {}
_missing: dict[Target, float] = {}
"""Those that nobody has measured, with the time until which that is believed."""
_is_worker = False
"""Whether this process works beside the program that uses the device."""
_busy_until = 0.0
"""Until when others are believed to be busy."""


def in_worker() -> None:
    """From now on this process measures only while others leave it the processors: beside a busy
    program that says nothing of the device, and takes from that program."""
    global _is_worker
    _is_worker = True


def measured_target(backend: Backend) -> Target:
    """``backend.target`` with the costs of its device: remembered, from disk, or measured now (some
    tenths of a second, 3 s at most).  Those of a device without a queue of launches are assumed, as
    by who only builds, by a worker process beside busy ones, which asks again, and by this process
    those of one whose times were not stable: another one measures again."""
    target = backend.target
    if not backend.abilities.asynchronous:
        return target
    if target not in _known:
        kept = _kept(target)
        if kept is None and not (backend.abilities.launches and _may_measure()):
            return target
        if kept is None:
            from fusionq.execution.cost_measurement import measure

            kept = measure(backend)
            if kept is not None:
                _keep(target, kept)
        _known[target] = target.costs if kept is None else kept
        _missing.pop(target, None)
    return replace(target, costs=_known[target])


def known_target(backend: Backend) -> Target:
    """``backend.target`` with ``known_costs``."""
    return replace(backend.target, costs=known_costs(backend))


def _may_measure() -> bool:
    """Whether no others keep the processors busy, as far as this process cares."""
    global _busy_until
    if not _is_worker:
        return True
    if time.monotonic() < _busy_until:
        return False
    for _ in range(QUIET_LOOKS):
        if is_busy():
            _busy_until = time.monotonic() + LOOK_AGAIN
            return False
        time.sleep(QUIET_SECONDS)
    return True


def known_costs(backend: Backend) -> Costs:
    """Those of the device, where they have been measured already; else what its target assumes."""
    target = backend.target
    known = _known.get(target)
    if known is None and backend.abilities.asynchronous:
        now = time.monotonic()
        if now >= _missing.get(target, now):
            known = _kept(target)
            if known is None:
                _missing[target] = now + LOOK_AGAIN
            else:
                _known[target] = known
    return target.costs if known is None else known


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
