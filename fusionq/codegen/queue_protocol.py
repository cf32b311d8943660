"""A persistent kernel's queue, barrier counters and bounded waits as OpenCL C.

See ``queue_layout`` for the memory.  Nothing is reset between launches: launch ``epoch`` moves
every counter on by what it counts, and the head of the queue by the number of instructions and
workers.
"""

from __future__ import annotations

from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q

WAITED, STALLED = 1, 2
"""What a wait says: it took a while, or too long."""


def protocol(target: Target) -> str:
    """The functions that every persistent kernel on ``target`` has."""
    polls = target.polls_between_checks
    return f"""\
// In a function of its own the compiler would not know that values are the same for all lanes.
#define FQ_INLINE __attribute__((always_inline)) static

// A loop that is seldom entered must not take registers from the loops that do the work.
#ifdef __clang__
#define FQ_SELDOM(condition) __builtin_expect((condition) ? 1 : 0, 0)
#else
#define FQ_SELDOM(condition) (condition)
#endif

FQ_INLINE __global atomic_uint* fq_word(__global atomic_uint* control, long line, int word) {{
    return control + {target.control_line} * line + word;
}}

FQ_INLINE uint fq_read(__global atomic_uint* word) {{
    return atomic_load_explicit(word, memory_order_acquire, memory_scope_device);
}}

FQ_INLINE uint fq_add(__global atomic_uint* word, uint value, memory_order order) {{
    return order == memory_order_release
        ? atomic_fetch_add_explicit(word, value, memory_order_release, memory_scope_device)
        : atomic_fetch_add_explicit(word, value, memory_order_relaxed, memory_scope_device);
}}

// The next instruction in order, or -1.
FQ_INLINE long fq_ticket(
    __global const long* schedule, __global atomic_uint* control, uint epoch, int lane) {{
    const uint count = (uint)schedule[{q.INSTRUCTIONS}];
    uint ticket = 0;
    if (lane == 0) {{
        const uint first = (epoch - 1) * (count + (uint)schedule[{q.WORKERS}]);
        ticket = fq_add(fq_word(control, {q.HEAD}, 0), 1, memory_order_relaxed) - first;
    }}
    ticket = sub_group_broadcast(ticket, 0);
    return ticket < count ? schedule[schedule[{q.ORDER}] + ticket] : -1;
}}

// Takes the tickets of a launch in which nobody did.
FQ_INLINE void fq_skip_tickets(__global const long* schedule, __global atomic_uint* control) {{
    const uint count = (uint)(schedule[{q.INSTRUCTIONS}] + schedule[{q.WORKERS}]);
    fq_add(fq_word(control, {q.HEAD}, 0), count, memory_order_relaxed);
}}

// Whether all workers have started, so that each can follow its own list: one answer for all.
FQ_INLINE bool fq_follows_assignment(
    __global const long* schedule, __global atomic_uint* control, uint epoch, int lane) {{
    if (!schedule[{q.STATIC}]) return false;
    uint answer = 0;
    if (lane == 0) {{
        __global atomic_uint* const mode = fq_word(control, {q.MODE}, 0);
        const uint now = epoch << 1;
        const uint here = fq_add(fq_word(control, {q.ARRIVED}, 0), 1, memory_order_relaxed) + 1;
        uint seen = fq_read(mode);
        if (here != epoch * (uint)schedule[{q.WORKERS}]) {{
            for (int polls = 0; polls < {target.start_spin_limit} && (seen & ~1u) != now; polls++)
                seen = fq_read(mode);
        }}
        const uint wanted = here == epoch * (uint)schedule[{q.WORKERS}] ? now | 1 : now;
        while ((seen & ~1u) != now) {{
            if (atomic_compare_exchange_strong_explicit(
                    mode, &seen, wanted, memory_order_acq_rel, memory_order_acquire,
                    memory_scope_device)) seen = wanted;
        }}
        answer = seen & 1;
    }}
    return sub_group_broadcast(answer, 0) != 0;
}}

// What a word says: one look for all lanes.
FQ_INLINE uint fq_look(__global atomic_uint* control, long line, int word, int lane) {{
    uint seen = 0;
    if (lane == 0) seen = fq_read(fq_word(control, line, word));
    return sub_group_broadcast(seen, 0);
}}

// Whether some wait ran out, in this launch or one before: counters no longer mean anything.
FQ_INLINE bool fq_given_up(__global atomic_uint* control, int lane) {{
    return fq_look(control, {q.STALL}, {q.FLAG}, lane) != 0;
}}

// Says which wait ran out, if it is the first.
static void fq_tell_stall(
    __global atomic_uint* control, long line, uint target, uint seen, long instruction) {{
    if (fq_add(fq_word(control, {q.STALL}, {q.CLAIM}), 1, memory_order_relaxed) != 0) return;
    const uint found[] = {{
        (uint)(instruction >> {q.TILE_BITS}), (uint)instruction, (uint)line, target, seen}};
    for (int k = 0; k < 5; k++)
        atomic_store_explicit(
            fq_word(control, {q.STALL}, {q.STALL_STAGE} + k), found[k],
            memory_order_relaxed, memory_scope_device);
    atomic_store_explicit(
        fq_word(control, {q.STALL}, {q.FLAG}), 1, memory_order_release, memory_scope_device);
}}

// Waits until ``line`` has counted to ``target``: 0 if it had, {WAITED} if that took a while, and
// {STALLED} if it took too long.
FQ_INLINE int fq_wait(
    __global atomic_uint* control, long line, uint target, long patience, long instruction,
    int lane) {{
    uint seen = fq_look(control, line, 0, lane);
    int state = 0;
    for (long polls = 1; FQ_SELDOM((int)(seen - target) < 0 && state < {STALLED}); polls++) {{
        state = {WAITED};
        if (polls % {polls} == 0 && fq_given_up(control, lane)) state = {STALLED};
        if (polls >= patience) {{
            if (lane == 0) fq_tell_stall(control, line, target, seen, instruction);
            state = {STALLED};
        }}
        seen = fq_look(control, line, 0, lane);
    }}
    return state;
}}

// Waits for all tiles of a stage.
FQ_INLINE int fq_wait_all(
    __global const long* schedule, __global atomic_uint* control, uint epoch, long patience,
    long instruction, int lane, long producer) {{
    __global const long* const record = schedule + {q.HEADER} + {q.RECORD} * producer;
    const long tiles = record[{q.COUNT}] * record[{q.COUNT + 1}] * record[{q.COUNT + 2}];
    return fq_wait(control, record[{q.TOTAL}], (uint)tiles * epoch, patience, instruction, lane);
}}

// Counts a tile as done: after its work, not when it was taken.
FQ_INLINE void fq_publish(
    __global const long* record, __global atomic_uint* control, long tile, int lane) {{
    if (record[{q.COUNTERS}] >= 0) {{
        const long at_2 = tile % record[{q.COUNT + 2}], rest = tile / record[{q.COUNT + 2}];
        const long at_1 = rest % record[{q.COUNT + 1}], at_0 = rest / record[{q.COUNT + 1}];
        const long shared_1 = record[{q.SHARED + 1}], shared_2 = record[{q.SHARED + 2}];
        const long counters_1 = (record[{q.COUNT + 1}] + shared_1 - 1) / shared_1;
        const long counters_2 = (record[{q.COUNT + 2}] + shared_2 - 1) / shared_2;
        const long at = (at_0 / record[{q.SHARED}] * counters_1 + at_1 / shared_1) * counters_2
            + at_2 / shared_2;
        if (lane == 0)
            fq_add(fq_word(control, record[{q.COUNTERS}] + at, 0), 1, memory_order_release);
    }}
    if (record[{q.TOTAL}] >= 0 && lane == 0)
        fq_add(fq_word(control, record[{q.TOTAL}], 0), 1, memory_order_release);
}}
"""


def wait_function(ndim: int) -> str:
    """``fq_wait_box_…``: waits for the tiles of a stage that hold a box of its work-items."""
    dims = range(ndim)
    box = ", ".join(f"long first_{d}, long last_{d}" for d in dims)
    lines = [
        f"// Waits for the tiles that hold a box of work-items of a stage of {ndim} dimensions.",
        f"FQ_INLINE int fq_wait_box_{ndim}(",
        "    __global const long* schedule, __global atomic_uint* control, uint epoch,",
        f"    long patience, long instruction, int lane, long producer, {box}) {{",
        f"    __global const long* const record = schedule + {q.HEADER} + {q.RECORD} * producer;",
    ]
    for d in dims:
        tile, count, shared = (f"record[{field + d}]" for field in (q.TILE, q.COUNT, q.SHARED))
        lines += [
            f"    if (last_{d} < max(first_{d}, 0L)) return 0;",
            f"    first_{d} = max(first_{d}, 0L) / {tile};",
            f"    last_{d} = min(last_{d} / {tile}, {count} - 1);",
            f"    const long shared_{d} = {shared};",
            f"    const long counters_{d} = ({count} + shared_{d} - 1) / shared_{d};",
        ]
    lines.append("    int state = 0;")
    for d in dims:
        start, stop = f"first_{d} / shared_{d}", f"last_{d} / shared_{d}"
        on = f"c_{d} <= {stop} && state < {STALLED}"
        lines.append(f"    for (long c_{d} = {start}; {on}; c_{d}++)")
    at, tiles = "c_0", "1"
    for d in dims:
        if d:
            at = f"({at}) * counters_{d} + c_{d}"
        tiles += f" * min(shared_{d}, record[{q.COUNT + d}] - c_{d} * shared_{d})"
    lines += [
        f"        state |= fq_wait(control, record[{q.COUNTERS}] + {at},",
        f"            (uint)({tiles}) * epoch, patience, instruction, lane);",
        "    return state;",
        "}",
        "",
    ]
    return "\n".join(lines)
