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

LOOK_AGAIN = 1.0
"""Seconds until the disk is asked again for costs that it did not have: every list of new sizes
wants to know."""

_known: dict[Target, Costs] = {}
_missing: dict[Target, float] = {}
"""Those that nobody has measured, with the time until which that is believed."""


def measured_target(backend: Backend) -> Target:
    """``backend.target`` with the costs of its device: remembered, from disk, or measured now (some
    tenths of a second).  Those of a device without a queue of launches are assumed, as by who only
    builds, and by this process those of one whose times were not stable: another one measures
    again."""
    target = backend.target
    if not backend.abilities.asynchronous:
        return target
    if target not in _known:
        kept = _kept(target)
        if kept is None and not backend.abilities.launches:
            return target
        if kept is None:
            from fusionq.execution.cost_measurement import measure

            kept = measure(backend)
            if kept is not None:
                _keep(target, kept)
        _known[target] = target.costs if kept is None else kept
        _missing.pop(target, None)
    return replace(target, costs=_known[target])


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
