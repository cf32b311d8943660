"""The target machine of planning, tiling, cost estimates, launch shapes and code generation."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, TypeAlias

from fusionq.base.assumptions import Column, assumed
from fusionq.base.costs import BuildCosts, Costs, Weights
from fusionq.base.device_info import DeviceInfo
from fusionq.base.frozen import dataclass

FloatMode: TypeAlias = Literal["strict", "fast"]


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Launched work-items (SYCL order), a multiple of the local range; the kernel itself
    guards what exceeds the user's range."""

    global_range: tuple[int, ...]
    local_range: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A machine as the compiler sees it.

    ``device`` and the fields in ``asked`` come from the device; the other fields are assumed, by
    ``base.assumptions``, which has the source of each; ``costs`` are measured where they say so.
    A *worker* is the work-group that takes the tiles of a persistent kernel: one sub-group on a
    CPU, a block on a GPU.  Targets that differ in their costs only are equal: no proof rests on
    those.
    """

    device: DeviceInfo

    sub_group_size: int
    """Work-items that run in lockstep and can exchange values."""
    worker_size: int
    """Work-items of a worker; a multiple of ``sub_group_size``."""
    resident_workers: int
    """Workers that run at once."""

    vector_width: int
    """Work-items of the last dimension that run as one vector: a multiple leaves no remainder."""
    preferred_work_group: int
    """Work-items of a work-group: enough for vectors and for what a group's start costs, few enough
    to share the work among compute units."""
    largest_plain_group: int
    """Work-items of a work-group of a plain range, at most."""
    largest_barrier_group: int
    """Work-items of a work-group that keeps a dependence inside, at most: a group runs on one
    compute unit."""
    largest_tile_group: int
    """The same where the work-group is a tile that the dependence asks for, such as a row."""
    groups_per_compute_unit: int
    """Work-groups that keep all compute units busy to the end."""

    largest_launch: int
    """Work-items of a launch, at most: more are several launches."""

    cache_line_bytes: int
    """What two workers must not write to at once."""
    worker_cache_bytes: int
    """Of the largest cache that a worker has for itself."""
    cache_bytes: int
    """Of the largest cache that all workers share."""
    private_bytes: int
    """Of private memory that a promoted buffer may take in a work-item before it spills."""

    launch_operations: int
    """Scalar operations of all work-items that take as long as a launch, whatever their order."""
    launch_idle_items: int
    """Work-items of a compute unit that take as long as a launch to find nothing to do between two
    barriers."""
    free_streams: int
    """Streams of memory, planes of arrays that a launch reads or writes at once, that take no more
    time than fewer; the bandwidth of more falls with the square root of how many there are."""
    launch_masked_items: int
    """Work-items whose stores under masks take no longer than a launch, where there are no
    registers for masks (``DeviceInfo.masks_vectors``)."""
    side_by_side_launches: int
    """How many launches' time a stage takes at most that shares one with others."""
    side_by_side_share: int
    """One part in so many of the memory that submissions take each by itself is common to several,
    at most, where they leave work-groups in which it is read once."""
    machine_balance: int
    """Operations for each byte from which on it does not matter how memory is read."""

    smallest_tile: int
    """Work-items of a tile for which an instruction costs little."""
    pipelined_tile: int
    """Work-items of a tile that goes through many stages: few enough for a worker's cache."""
    unequal_tile: int
    """Work-items of the largest tile of a part of the memory where stages differ in size: the
    other stages' tiles are smaller."""
    largest_tile: int
    """Work-items of a tile, at most."""
    small_stage: int
    """Work-items below which a stage is cut into one tile for each worker."""
    tiles_per_worker: int
    """Tiles of a larger stage for each worker, so that all end at about the same time."""
    shortest_block: int
    """Stages that memory goes through at once even where they leave a worker's cache."""
    small_stage_parts: int
    """Stages with so many times fewer work-items than the largest are small, as those over
    borders."""
    small_stage_rows: int
    """Rows of the large stages' tiles for each of a small stage's."""

    worker_cache_share: int
    """One part in so many of a worker's cache is for tiles that it keeps from stage to stage."""
    block_cache_share: int
    """One part in so many of a worker's cache is for a tile of each of its stages in a block:
    stages of time steps share their arrays, so that less is needed."""
    kept_tiles: int
    """Tiles with all of their arrays that fit at least into a worker's part of its cache."""
    rounds_of_tiles: int
    """Tiles of a stage for each worker from which on it does not matter that the last ones have no
    whole round of the workers: the others begin with the next stage."""

    shortest_split_row: int
    """Steps of a work-group in the shortest row whose inside has code of its own in a launch."""
    least_split_share: float
    """Of such a row, which is inside: the rest is done under masks."""

    overlapped_cache_share: int
    """One part in so many of a worker's cache is for the elements of an overlapped tile that are in
    local memory together."""
    largest_overlapped_tile: int
    """Work-items of an overlapped tile, at most."""
    tile_rows: int
    """Work-items of such a tile in a dimension that is not the last, at most."""
    row_parts: int
    """Into how many parts a row is cut, at most, while they are longer than a work-group."""

    read_ahead_bytes: int
    """Of arrays that no stage of a persistent kernel writes, how many the workers of a compute unit
    ask for before what they have to wait for is there; 0: they ask for none."""

    streaming_lanes: int
    """Work-items of a worker, the only one of its compute unit, whose rows are fetched by others,
    ahead of all waits (``DeviceInfo.streams_rows``)."""
    slot_bytes: int
    """Of a slot of local memory that such rows come to; a work-group has a ring of slots."""
    streamed_bytes: int
    """How many of such rows are on their way to a compute unit at once, at most; a slot of each
    ring where that is more."""

    start_spin_limit: int
    """Polls after which a worker no longer waits for the others to start, and takes tickets."""
    start_polls_each: int
    """As many more for each of a launch's instructions: without lists of their own workers have
    each other's data in their caches, and a long launch can wait for longer."""
    polls_between_checks: int
    """Polls of a counter after which a waiting worker checks whether another has stalled."""
    idle_checks: int
    """Checks in a row that have found nobody at work, after which a worker keeps its processor
    while it waits."""
    polls_between_yields: int
    """Polls after which a worker that has polled for that long lets other threads run, where it
    can."""
    spin_limit: int
    """Polls of a counter, while no worker is at work, after which a wait has stalled: far longer
    than a busy machine keeps a worker from seeing what it waits for."""

    counter_copies: int
    """Places over which work-groups spread a counter of a profile."""
    early_clock_ns: int
    """How much earlier than the statements before it a cycle counter may be read."""
    time_slice_ns: int
    """For how long, at least, an operating system gives a core to another thread."""

    costs: Costs = field(compare=False)
    weights: Weights = field(compare=False)
    build: BuildCosts = field(compare=False)
    asked: frozenset[str] = field(default=frozenset(), compare=False)
    """The fields beside ``device`` that the device itself gave."""

    @property
    def control_line(self) -> int:
        """Words (uint32) of a line of a persistent kernel's control memory: a cache line."""
        return self.cache_line_bytes // 4

    @property
    def throughput_parts(self) -> int:
        """What shares out the throughput of accesses and operations: workers, or where several of
        these wait for each other's turns in a compute unit, compute units."""
        return self.device.compute_units if self.costs.chain_seconds else self.resident_workers

    @property
    def kept_bytes(self) -> int:
        """Bytes of a list's memory that stay in the caches from launch to launch: half of what
        they hold, since the rest of the machine uses them too."""
        return self.cache_bytes // 2

    @property
    def held_bytes(self) -> int:
        """Bytes of a list's memory that stay in the caches through one launch: on a GPU, of which
        nobody else uses them meanwhile, three quarters of what they hold."""
        return self.cache_bytes * 3 // 4 if self.device.kind == "gpu" else self.kept_bytes


def target_of(device: DeviceInfo, **asked: Any) -> Target:
    """The target of ``device``: ``asked`` is what the device itself says (0 where it says nothing);
    the other fields are assumed."""
    column: Column = "gpu" if device.kind in ("gpu", "accelerator") else "cpu"
    given = {name: value for name, value in asked.items() if value}
    return Target(
        device,
        **{**assumed(Target, column), "resident_workers": device.compute_units, **given},
        asked=frozenset({"resident_workers", *given}),
        costs=Costs(**assumed(Costs, column)),
        weights=Weights(**assumed(Weights, column)),
        build=BuildCosts(**assumed(BuildCosts, column)),
    )
