"""The target machine of planning, tiling, cost estimates, launch shapes and code generation."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from math import prod
from typing import Any, Literal, TypeAlias

from fusionq.base.assumptions import Column, assumed
from fusionq.base.frozen import dataclass

FloatMode: TypeAlias = Literal["strict", "fast"]


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device says of itself and people want to know; sizes in bytes."""

    name: str
    vendor: str
    driver: str
    filter_string: str
    kind: Literal["cpu", "gpu", "accelerator", "reference"]
    compute_units: int
    max_work_group_size: int
    local_memory_bytes: int
    has_fp16: bool
    has_fp64: bool
    host_memory: bool
    """True where kernels can reach ordinary host memory, such as a NumPy array's."""
    persistent_kernels: bool = True
    """Whether the backend compiles persistent kernels (``ir.Persistent``)."""
    reads_ahead: bool = False
    """Whether the workers of persistent kernels ask for memory before they have to wait."""
    streams_rows: bool = False
    """Whether memory is copied to local memory while work-items do something else, which hear when
    it is there."""
    groups_in_workers: bool = False
    """Whether the lanes of a worker can be the work-items of work-groups, side by side, each with
    barriers of its own: threads, not the lanes of a vector."""
    chooses_persistent: bool = True
    """Whether the cost model does, for ``auto``: where it was fitted to lists.  Trials try them all
    the same."""
    float_groups: Literal["replaced", "ordered", "unordered"] = "replaced"
    """What combines floats over work-groups: loads and stores in the order of
    ``language.combine.over_group``, functions of the device in that order, or functions of the
    device in an order of their own."""
    sub_group_sizes: tuple[int, ...] = ()
    """Work-items that a kernel's sub-groups may have; none where it cannot use them."""
    private_memory_bytes: int | None = None
    """Memory for the private arrays of all work-items that run at once; None where the runtime
    refuses by itself what takes more."""
    narrow_indices: bool = False
    """Whether kernels over small sizes get code of their own, with indices of 32 bits."""
    yields_processor: bool = False
    """Whether a kernel is code of threads of this process that can let others run on their
    processor, by a call of the C library's ``sched_yield``."""

    masks_vectors: bool = True
    """Whether vectors whose lanes are work-items have registers for masks: else a store under a
    guard takes many times as long as one without, and what stores around the caches may be no
    vector at all."""

    splits_rows: bool = False
    """Whether conditions on ids are worth code of their own for the inside of rows
    (``codegen.along_rows``): they would be masks of vectors."""

    jams_items: bool = False
    """Whether a work-item may do several neighbours of an outer dimension (``passes.jam_items``):
    where those of the last are lanes, of vectors or warps."""

    jams_rows: bool = False
    """Whether work-groups may do several vectors of a row together (``codegen.along_rows``): where
    work-items are lanes of a vector."""

    loads_together: bool = False
    """Whether launches of few work-items have code of their own, which loads for many iterations of
    a loop at once (``codegen.loads_together``)."""

    streams_stores: bool = False
    """Whether its compiler makes stores around the caches of non-temporal ones."""

    @property
    def supports_fusion(self) -> bool:
        """Whether lists of kernels can be fused there, as ``ext_codeplay_supports_fusion`` says of
        a SYCL device: fusing happens above the device, so on each that a queue can be made for.
        ``FusionQueue(fusion=False)`` forbids it for one queue."""
        return True


def private_items(info: DeviceInfo, local_range: tuple[int, ...] | None) -> int:
    """How many work-items have private memory at once: the work-groups that run, whose work-items
    all wait at barriers; without work-groups the lanes of vectors."""
    return info.compute_units * (_MOST_LANES if local_range is None else prod(local_range))


_MOST_LANES = 64


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Launched work-items (SYCL order), a multiple of the local range; the kernel itself
    guards what exceeds the user's range."""

    global_range: tuple[int, ...]
    local_range: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """What launches, instructions of a persistent kernel and accesses cost: seconds, bytes a
    second, and what they are multiplied by."""

    launch_seconds: float
    """Of a launch behind others that does next to nothing; a list that is repeated as a graph of
    its device has such launches."""
    host_launch_seconds: float
    """Of the host, for a launch that is none of a graph's; 0: no more than ``launch_seconds``."""
    instruction_seconds: float
    """Of taking and completing one tile, where it need not wait."""
    stage_seconds: float
    """Of a stage of one tile for each worker, which wait for those of the stage before."""
    alone_seconds: float
    """Of an instruction of a persistent kernel with one worker, which waits for nobody."""
    memory_bandwidth: float
    """Of arrays beyond the caches, all workers together."""
    cache_bandwidth: float
    """Of arrays that stay in the caches, all workers together."""

    access_efficiency: float
    """The part of ``cache_bandwidth`` that the loads and stores of a kernel reach."""
    function_seconds: float
    """Of evaluating a mathematical function for one work-item, in one worker."""
    serial_seconds: float
    """Of an element of an array for one work-item, in one worker, where its neighbours' are not
    beside it: what lanes do one after the other is counted in such."""
    serial_slowdown: float
    """How much longer that takes in a persistent kernel."""
    chain_seconds: float
    """Of a scalar operation of a work-item, which its next one waits for: what a launch takes at
    least, however few work-items it has.  0: that is not counted, as where a worker has few threads
    and runs their operations ahead of each other."""
    busy_items: int
    """Work-items of a compute unit that keep it busy while each waits for its own operations."""
    function_operations: float
    """Scalar operations in a row that take a work-item as long as a mathematical function."""
    division_operations: float
    """Scalar operations of a work-item that finds its ids by division."""
    used_once_slowdown: float
    """How much longer an access takes whose cache line no other one uses, than those that loops
    come back to."""
    ordered_slowdown: float
    """How much longer loops take that load and store arrays which other submissions of the launch
    write: their loads stay behind the stores before them."""
    clamped_slowdown: float
    """How much longer indices take that are clamped at the ends of rows where each is asked for, in
    work-groups with barriers, than in launches along rows, which ask at the ends only."""
    start_launches: float
    """Launches that the start of a persistent kernel costs: its last worker often begins late."""
    masked_store_seconds: float
    """Of a store of a vector of work-items under a guard, in one worker, where there are no
    registers for masks (``DeviceInfo.masks_vectors``)."""
    interior_speedup: float
    """How much faster the same accesses are in the inside of tiles, without masks."""
    whole_tile_speedup: float
    """The same of overlapped tiles whose work-items are threads: their loops are unrolled, too."""
    affinity_speedup: float
    """How much faster a stage is whose tiles each worker has written itself in the stage before."""
    saved_seconds: float
    """Of each run of a list, that computing halos anew has to be able to save: finding out how, and
    building that, is then earned back by 2,000 runs."""
    own_cache_speedup: float
    """The same of a list whose memory stays in the caches that the workers have for themselves."""
    others_launches: float
    """Launches that it costs a program which waits for a persistent kernel that this has more than
    one worker: they begin at different times, and the last one is waited for."""
    split_saved_seconds: float
    """Of each launch, that code of its own for the inside of rows has to save: building the kernel,
    which takes longer, is then earned back by 6,000 launches."""
    measured: bool = False
    """Whether those up to ``cache_bandwidth`` were measured on this device."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the operations of a work-item take in terms of each other."""

    float_division: float
    """Mathematical functions in the time of a division of floats or a square root."""
    group_function: float
    """Mathematical functions in the time of a work-item's part of a work-group function."""
    integer_division: float
    """Elements that are gathered in the time of a division of integers, which is no shift and not
    the same for neighbours."""
    atomic_operation: float
    """Elements that are gathered in the time of an atomic operation."""
    gathered_bytes: float
    """Bytes at consecutive addresses that are accessed in the time of an element that is gathered
    in a loop."""
    accessed_bytes: float
    """Bytes of an access, where it is not known."""

    lane_gathered: float
    """Loads of four bytes for a vector's lanes, side by side, in the time of a load at an address
    of its own for each, at whatever stride."""
    lane_scattered: float
    """The same of a store."""
    lane_operation: float
    """The same of an operation of four bytes."""
    lane_function: float
    """The same of a mathematical function."""
    lane_division: float
    """The same of a division of floats or a square root."""
    lane_integer_division: float
    """The same of a division of integers."""

    tile_row: float
    """Instructions of a persistent kernel in the time of a row of a tile beside its work-items: its
    bounds, and its edges under masks."""


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """How much generated code does at once, keeps and copies: the same for all targets so far."""

    vector_kept_bytes: int
    """Of what a thread loads and stores with vectors of neighbours, which lives in registers."""
    shortest_vector: int
    """Work-items that are worth one."""
    ahead_kept_bytes: int
    """Of what a lane loads and stores with several vectors at once."""
    loads_at_once: int
    """Of the work-items that a lane does at once: their values live in registers together."""
    jammed_bytes: int
    """Of the variables of a lane's work-items that share the iterations of a loop, as far as they
    live from one to the next."""
    jammed_temporaries: int
    """The same with those of an iteration."""
    jammed_iterations: int
    """Of a loop of work-items that are neighbours in an outer dimension, from which on one does
    several of them."""
    jammed_row_iterations: int
    """Of a loop that reads rows of memory, from which on launches do several vectors of a row."""
    strip_items: int
    """Work-items of a strip of columns, which stay in the nearest cache."""
    shortest_segment: int
    """Work-items of a segment below which no constant divisor cuts rows."""
    shortest_interior: int
    """Work-items at the beginning of a row that are no interior: where a constant bounds by fewer
    what is decided, as in ``id % 8`` and ``id < 4``, the others are most of a row."""
    private_copies_bytes: int
    """Of a lane's copies of reduced arrays together."""
    items_per_copy: int
    """Work-items of a tile for each element of such copies, from which on they are worth it."""
    local_alignment: int
    """Bytes that local memories of a work-group function are multiples of."""
    prefetch_distance: int
    """Bytes of a tile by which rows of elements are read ahead, at least."""
    most_prefetched_rows: int
    """Rows of arrays that are read ahead at once."""
    peeled_expressions: int
    """In the body of a loop whose iterations all of a work-group's work-items do are apart."""
    scalar_operations: int
    """For each element that a loop accesses, at most, where a work-item's iterations are done
    without vectors."""
    beside_scalars: int
    """Expressions of a work-item beside such loops, at most."""
    own_rows_at_once: int
    """Work-items that one lane of a persistent kernel does together, each of which reads a row of
    its own."""
    own_row_iterations: int
    """Elements of such a row from which on that is faster."""
    own_row_operations: int
    """For each of its elements, at most, where a launch has no vectors for it."""
    streamed_expressions: int
    """In the body of a loop that is short."""
    iterations_ahead: int
    """Iterations whose loads are made at once, at most."""
    fewest_ahead: int
    """The same, at least."""
    loads_ahead: int
    """Values that a work-item of a block loads before it uses them, where it has 128 registers."""
    iterations_together: int
    """Iterations of a loop of a work-group whose loads a launch makes at once, at most."""
    masked_together: int
    """The same of the iterations that are left, under masks."""
    streamed_together: int
    """Iterations of a short loop over memory that the compiler is told to unroll, at most."""
    unrolled_expressions: int
    """Of the loops over memory of a kernel, at most, if each does as many iterations at once as it
    may: with more, each does fewer."""
    values_together: int
    """Values that a work-item then loads before it uses them, at most."""
    few_items: int
    """Work-items of a launch for each compute unit, at most, that count as few."""
    few_times_together: int
    """How many times as many iterations these load for at once."""
    few_bytes: int
    """Of the values that such a work-item then loads before it uses them, at most."""
    row_turns: int
    """Iterations for which other launches load at once along rows that neighbouring work-items
    have one each of."""
    kept_words: int
    """32-bit registers of what a work-item keeps of rows between loops, at most."""
    kept_turns_together: int
    """Iterations of such loops whose other loads are made at once."""
    early_values: int
    """Values that a work-item loads before the launch before has ended, at most."""
    early_step: int
    """Work-items that load a row together, from which on that is done."""
    block_planes: int
    """Work-items of a work-group in the first of three dimensions, at most, for all devices."""
    static_bytes: int
    """Of a block's shared memory that the compiler may place."""
    worker_threads: int
    """Of a block that is a worker of a persistent kernel."""
    copy_alignment: int
    """Bytes that bulk copies into a worker's rings begin and end at multiples of."""
    ring_alignment: int
    """Bytes that rings begin at multiples of."""
    box_counters: int
    """Counters that a wait of work-groups for a box of tiles looks at, at most."""
    shortest_poll: float
    """Seconds that a poll of a counter takes at least."""
    near_words: int
    """Words of 8 bytes of a block's shared memory for the tables of a persistent kernel."""
    most_near_words: int
    """The same where work-groups are threads, which look up more."""
    combined_together: int
    """Work-items that combine what lies farther apart, without a barrier between: each has the
    places that leave its own number when they are divided by that."""
    combined_alone: int
    """Work-items of a group for which the first combines all."""


CODE_LIMITS = CodeLimits(**assumed(CodeLimits, "cpu"))


@dataclass(frozen=True, slots=True)
class BuildCosts:
    """What the device's compiler takes for what a kernel's text has: processor seconds each."""

    build_program: float
    """For any kernel."""
    build_operation: float
    """An expression or statement."""
    build_division: float
    """``//`` or ``%`` of integers, beyond that."""
    build_loop: float
    build_condition: float
    build_array_pair: float
    """Two array parameters, which may overlap."""
    build_region: float
    """A loop over the work-items of a work-group function."""
    build_workers: float
    """A persistent kernel's protocol."""
    build_body: float
    """The code of some of its stages."""
    build_wait: float
    """A closed form of what tiles wait for."""
    build_operand: float
    """An argument in a worker's table, and one that a body takes from there."""
    build_unrolled: float
    """An expression or statement that unrolled loops add."""
    build_function: float
    """A function that is long when it is inlined: powers, sines, and any of doubles."""
    build_quotient: float
    """A division or square root of floats."""


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
    """How many of such rows are on their way to a compute unit at once, at most."""

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
