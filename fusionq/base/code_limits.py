"""How much generated code does at once, keeps and copies."""

from __future__ import annotations

from fusionq.base.assumptions import assumed
from fusionq.base.frozen import dataclass


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
