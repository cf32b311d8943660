"""How many workers the persistent kernels of a backend have, by its device's costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from fusionq.backends.base import Backend, Binding
from fusionq.base.costs import Costs
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.execution.device_costs import known_costs
from fusionq.ir.nodes import Kernel
from fusionq.megakernel.launch import ChosenWorkers
from fusionq.planning.workers import workers_for


def chosen_workers(backend: Backend) -> ChosenWorkers:
    """What chooses for kernels on ``backend``; equal for equal costs, which have been measured, or
    are assumed."""
    return _by_costs(known_costs(backend))


@lru_cache(16)
def _by_costs(costs: Costs) -> ChosenWorkers:
    @cached_by_identity
    def costing(target: Target) -> Target:
        return replace(target, costs=costs)

    def choose(kernel: Kernel, bindings: Mapping[str, Binding], target: Target) -> int:
        return workers_for(kernel, bindings, costing(target))

    return choose
