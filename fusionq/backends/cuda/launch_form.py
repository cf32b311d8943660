"""What launches have in common that differ in their arguments alone, in the driver's form."""

from __future__ import annotations

import functools
from typing import Any

from fusionq.backends.cuda.grid import Grid
from fusionq.backends.cuda.program import CudaProgram
from fusionq.backends.cuda.runtime import load_driver
from fusionq.backends.cuda.streams import Stream
from fusionq.base.frozen import dataclass

CAPACITY = 1024
"""Beyond so many a stream forgets all."""


@dataclass(frozen=True, slots=True)
class LaunchForm:
    """A function of the driver and the grid over which it is launched on a stream; ``config``: the
    driver's ``CUlaunchConfig``."""

    function: Any
    grid: Grid
    shared_bytes: int
    config: Any

    def node_parameters(self, parameters: int) -> Any:
        """The driver's ``CUDA_KERNEL_NODE_PARAMS``, with ``parameters``: where the arguments'
        addresses are."""
        found = _with_grid(load_driver().CUDA_KERNEL_NODE_PARAMS(), self.grid, self.shared_bytes)
        found.func = self.function
        found.kernelParams = parameters
        return found


def form_of(
    stream: Stream, program: CudaProgram, function: Any, grid: Grid, may_begin_early: bool
) -> LaunchForm:
    """The form in which ``stream`` launches a ``function`` of ``program`` over ``grid``;
    ``may_begin_early``: before the launch before it has ended."""
    shared, at_once = program.shared_bytes, program.runs_at_once
    key = int(function), grid, shared, at_once, may_begin_early
    form = stream.forms.get(key)
    if form is None:
        config = _with_grid(load_driver().CUlaunchConfig(), grid, shared)
        config.hStream = stream.native
        attributes = [_all_at_once()] if at_once else [_early()] if may_begin_early else []
        config.attrs = attributes
        config.numAttrs = len(attributes)
        if len(stream.forms) >= CAPACITY:
            stream.forms.clear()
        form = stream.forms[key] = LaunchForm(function, grid, shared, config)
    assert isinstance(form, LaunchForm)
    return form


@functools.cache
def _all_at_once() -> Any:
    """The driver's attribute of a launch that it refuses where not all blocks can be resident."""
    driver = load_driver()
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    attribute.value.cooperative = 1
    return attribute


@functools.cache
def _early() -> Any:
    """The driver's attribute of a launch that may begin before the one before it has ended."""
    driver = load_driver()
    attribute = driver.CUlaunchAttribute()
    attribute.id = (
        driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    )
    attribute.value.programmaticStreamSerializationAllowed = 1
    return attribute


def _with_grid(config: Any, grid: Grid, shared_bytes: int) -> Any:
    """``config`` of the driver, with grid, block and shared memory."""
    config.gridDimX, config.gridDimY, config.gridDimZ = grid.blocks
    config.blockDimX, config.blockDimY, config.blockDimZ = grid.threads
    config.sharedMemBytes = shared_bytes
    return config
