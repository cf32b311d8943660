"""What the work of a device, of a work-item and of the device's compiler costs."""

from __future__ import annotations

from fusionq.base.frozen import dataclass


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
    vectors_slowdown: float
    """How much longer kernels take that are faster without vectors of work-items, where other
    submissions of the launch have them."""
    scalars_slowdown: float
    """How much longer kernels take that have vectors of work-items by themselves, where another
    submission of the launch is faster without."""
    own_rows_share: float
    """What kernels take whose work-items go along rows of their own without vectors, in a launch of
    theirs alone, of what they take beside others."""
    columns_slowdown: float
    """How much longer arrays beyond the caches take that work-groups read in columns."""
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
