"""A persistent kernel's queue, barrier counters and bounded waits as source text.

The protocol is written once, over the primitives of ``Workers``; docs/megakernel-protocol.md has
the model that stands for it in every dialect.

See ``queue_layout`` for the memory.  Nothing is reset between launches: launch ``epoch`` moves
every counter on by what it counts, and the head of the queue by the number of instructions and
workers.
"""

from __future__ import annotations

from textwrap import indent

from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.queue_words import QueueWords
from fusionq.ir.nodes import Const
from fusionq.ir.types import UINT32

WAITED, STALLED = 1, 2
"""What a wait says: it took a while, or too long."""


def protocol(c: QueueWords, target: Target) -> str:
    """The functions that every persistent kernel for ``target`` has."""
    w, i64, u32, tables, words = c.workers, c.int64, c.uint32, c.tables, c.control
    relaxed, release = w.order("relaxed"), w.order("release")
    starts, checks = f"{target.start_spin_limit}", target.polls_between_checks
    if target.start_polls_each:
        starts += f" + {target.start_polls_each} * schedule[{q.INSTRUCTIONS}]"
    one = c.scalars.literal(Const(UINT32, 1)).text
    exchange = w.compare_exchange("mode", "seen", "wanted").replace("\n", "\n" + " " * 12)
    yield_processor = w.yield_processor(target)
    if yield_processor:
        when = f"!at_work && polls % {target.polls_between_yields} == 0"
        most = target.idle_checks * checks
        yield_processor = f"if ({when} && idle < {most})\n            {yield_processor}\n        "
    store = indent(
        w.store_relaxed(f"fq_word(control, {q.STALL}, {q.STALL_STAGE} + k)", "found[k]"), " " * 8
    )
    flag = indent(w.store_release(f"fq_word(control, {q.STALL}, {q.FLAG})", "1"), " " * 4)
    counting = f"""
// The number of this launch: launches do not overlap.
FQ_INLINE {u32} fq_this_launch({words} control) {{
    {words} const launches = fq_word(control, {q.MODE}, {q.LAUNCHES});
    return {w.load_relaxed("launches")} + 1;
}}

// Counts a worker as gone, and with the last of them the launch.
FQ_INLINE void fq_leave({tables} schedule, {words} control, {u32} epoch) {{
    const {u32} gone = fq_add(fq_word(control, {q.ARRIVED}, {q.LEFT}), 1, {relaxed}) + 1;
    if (gone == epoch * ({u32})schedule[{q.WORKERS}])
{indent(w.store_relaxed(f"fq_word(control, {q.MODE}, {q.LAUNCHES})", "epoch"), " " * 8)};
}}
"""
    if not w.counts_launches:
        counting = ""
    together = f"""
// The same for all lanes.
FQ_INLINE bool fq_stalled({words} control, int lane) {{
    {u32} seen = 0;
    if (lane == 0) seen = fq_stall_seen(control);
    return {w.broadcast("seen")} != 0;
}}
"""
    if w.first_lane_takes:
        together = ""
    return f"""\
{w.functions}\
// In a function of its own the compiler would not know that values are the same for all lanes.
// What the first lane does alone, in loops, is a function of its own: it is no lane of a vector.
#define FQ_INLINE {w.inline_function}

// A loop that is unlikely to be entered must not take registers from the loops that do the work.
{w.unlikely}

FQ_INLINE {words} fq_word({words} control, {i64} line, int word) {{
    return control + {target.control_line} * line + word;
}}

FQ_INLINE {u32} fq_read({words} word) {{
    return {w.load_acquire("word")};
}}

FQ_INLINE {u32} fq_add({words} word, {u32} value, {w.order_type} order) {{
    return order == {release}
        ? {w.fetch_add("word", "value", "release")}
        : {w.fetch_add("word", "value", "relaxed")};
}}

// The next instruction in order, or -1.
FQ_INLINE {i64} fq_ticket({tables} schedule, {words} control, {u32} epoch) {{
    const {u32} count = ({u32})schedule[{q.INSTRUCTIONS}];
    const {u32} first = (epoch - 1) * (count + ({u32})schedule[{q.WORKERS}]);
    const {u32} ticket = fq_add(fq_word(control, {q.HEAD}, 0), 1, {relaxed}) - first;
    return ticket < count ? schedule[schedule[{q.ORDER}] + ticket] : -1;
}}

// Takes the tickets of a launch in which nobody did.
FQ_INLINE void fq_skip_tickets({tables} schedule, {words} control) {{
    const {u32} count = ({u32})(schedule[{q.INSTRUCTIONS}] + schedule[{q.WORKERS}]);
    fq_add(fq_word(control, {q.HEAD}, 0), count, {relaxed});
}}

// Whether all workers have started, so that each can follow its own list: one answer for all.
{w.outlined_function} {u32} fq_started({tables} schedule, {words} control, {u32} epoch) {{
    {words} const mode = fq_word(control, {q.MODE}, 0);
    const {u32} now = epoch << 1;
    const {u32} here = fq_add(fq_word(control, {q.ARRIVED}, 0), 1, {relaxed}) + 1;
    {u32} seen = fq_read(mode);
    if (here != epoch * ({u32})schedule[{q.WORKERS}]) {{
        const {i64} most = {starts};
        for ({i64} polls = 0; polls < most && (seen & ~{one}) != now; polls++)
            {c.poll_again("seen = fq_read(mode);")}
    }}
    const {u32} wanted = here == epoch * ({u32})schedule[{q.WORKERS}] ? now | 1 : now;
    while ((seen & ~{one}) != now) {{
        if ({exchange}) seen = wanted;
    }}
    return seen & 1;
}}

FQ_INLINE bool fq_follows_assignment(
    {tables} schedule, {words} control, {u32} epoch, int lane) {{
    if (!schedule[{q.STATIC}]) return false;
    {u32} answer = 0;
    if (lane == 0) answer = fq_started(schedule, control, epoch);
    return {w.broadcast("answer")} != 0;
}}

// Whether some wait ran out, in this launch or one before: counters no longer mean anything.
FQ_INLINE {u32} fq_stall_seen({words} control) {{
    {words} const flag = fq_word(control, {q.STALL}, {q.FLAG});
    return {w.load_relaxed("flag")};
}}
{together}{counting}
// Counts a worker as at work, by 1, or as no longer so, by -1.
FQ_INLINE void fq_count_at_work({words} control, int by) {{
    fq_add(fq_word(control, {q.AT_WORK}, 0), ({u32})by, {relaxed});
}}

// Says which wait ran out, if it is the first.
{w.outlined_function} void fq_tell_stall(
    {words} control, {i64} line, {u32} target, {u32} seen, {i64} instruction) {{
    if (fq_add(fq_word(control, {q.STALL}, {q.CLAIM}), 1, {relaxed}) != 0) return;
    const {u32} found[] = {{
        ({u32})(instruction >> {q.TILE_BITS}), ({u32})instruction, ({u32})line, target, seen}};
    for (int k = 0; k < 5; k++)
{store};
{flag};
}}

// Waits until ``line`` has counted to ``target``: 0 if it had, {WAITED} if that took a while, and
// {STALLED} if nobody was at work for ``spin_limit`` polls: what is waited for may take any time.
FQ_INLINE int fq_wait(
    {words} control, {i64} line, {u32} target, {i64} spin_limit, {i64} instruction) {{
    {u32} seen = fq_read(fq_word(control, line, 0));
    int state = 0;
    {i64} idle = 0;
    bool at_work = true;
    for ({i64} polls = 1; FQ_UNLIKELY((int)(seen - target) < 0 && state < {STALLED}); polls++) {{
        state = {WAITED};
        if (polls % {checks} == 0) {{
            if (at_work) fq_count_at_work(control, -1);
            at_work = false;
            idle = fq_read(fq_word(control, {q.AT_WORK}, 0)) == 0 ? idle + {checks} : 0;
            if (idle >= spin_limit) fq_tell_stall(control, line, target, seen, instruction);
            if (fq_stall_seen(control)) state = {STALLED};
        }}
        {yield_processor}{c.poll_again("seen = fq_read(fq_word(control, line, 0));")}
    }}
    if (!at_work) fq_count_at_work(control, 1);
    return state;
}}
"""


def publish_function(c: QueueWords, ndim: int) -> str:
    """``fq_counter``: the line of the counter that counts a tile of a stage with at most ``ndim``
    dimensions, or -1; and ``fq_publish``: counts one there as done."""
    i64, fence = c.int64, c.workers.release_fence
    release = c.workers.order("relaxed" if fence else "release")
    lines = [
        "// The line of the counter of a tile, if its stage has such.",
        f"{c.workers.outlined_function} {i64} fq_counter({c.tables} record, {i64} tile) {{",
        f"    if (record[{q.COUNTERS}] < 0) return -1;",
    ]
    # Where one lane does it for all, in 32 bits: a division in 64 takes many times as long.
    type, narrow = (c.uint32, f"({c.uint32})") if c.workers.first_lane_takes else (i64, "")
    rest = f"{narrow}tile"
    for d in reversed(range(1, ndim)):
        count = f"{narrow}record[{q.COUNT + d}]"
        lines += [
            f"    const {type} at_{d} = {rest} % {count}, rest_{d} = {rest} / {count};",
            f"    const {type} counters_{d} = {_counters('record', d, narrow)};",
        ]
        rest = f"rest_{d}"
    at = f"{rest} / {narrow}record[{q.SHARED}]"
    for d in range(1, ndim):
        at = f"({at}) * counters_{d} + at_{d} / {narrow}record[{q.SHARED + d}]"
    lines += [
        f"    return record[{q.COUNTERS}] + {at};",
        "}",
        "",
        "// Counts a tile as done: after its work, not when it was taken.",
        f"{c.workers.outlined_function} void fq_publish(",
        f"    {c.tables} record, {c.control} control, {i64} counter) {{",
        *([f"    {fence}"] if fence else []),
        f"    if (counter >= 0) fq_add(fq_word(control, counter, 0), 1, {release});",
        f"    if (record[{q.TOTAL}] >= 0)",
        f"        fq_add(fq_word(control, record[{q.TOTAL}], 0), 1, {release});",
        "}",
        "",
    ]
    return "\n".join(lines)


def _counters(record: str, dim: int, narrow: str = "") -> str:
    """How many counters a stage has in a dimension; ``narrow``: a cast to fewer bits."""
    count, shared = (f"{narrow}{record}[{at + dim}]" for at in (q.COUNT, q.SHARED))
    return f"({count} + {shared} - 1) / {shared}"


def wait_function(c: QueueWords, target: Target, ndim: int) -> str:
    """``fq_wait_tiles``: waits for the tiles of a stage that hold a box of its work-items, or for
    all of its tiles."""
    i64, u32, tables, zero = c.int64, c.uint32, c.tables, c.literal(0)
    dims = range(ndim)
    box = ", ".join(f"{i64} first_{d}, {i64} last_{d}" for d in dims)
    lines = [
        "// Waits for the tiles that hold a box of work-items of a stage, or for all its tiles.",
        f"{c.workers.outlined_function} int fq_wait_tiles(",
        f"    {tables} schedule, {c.control} control, {u32} epoch,",
        f"    {i64} spin_limit, {i64} instruction, {i64} producer, bool boxed, {box}",
        ") {",
        f"    {tables} const record = schedule + {q.HEADER} + {q.RECORD} * producer;",
        f"    {i64} " + ", ".join(f"shared_{d} = 1" for d in dims) + ";",
        "    if (boxed) {",
    ]
    for d in dims:
        tile, shared, extent = (f"record[{field + d}]" for field in (q.TILE, q.SHARED, q.EXTENT))
        first, width = c.maximum(f"first_{d}", zero), f"{tile} * shared_{d}"
        lines += [
            f"        if (last_{d} < {first}) return 0;",
            f"        shared_{d} = {shared};",
            f"        first_{d} = {first} / ({width});",
            f"        last_{d} = {c.minimum(f'last_{d}', f'{extent} - 1')} / ({width});",
        ]
    at, tiles = "c_0", "1"
    for d in dims:
        if d:
            counters = f"((record[{q.COUNT + d}] + shared_{d} - 1) / shared_{d})"
            at = f"({at}) * {counters} + c_{d}"
        rest = f"record[{q.COUNT + d}] - c_{d} * shared_{d}"
        tiles += f" * {c.minimum(f'shared_{d}', rest)}"
    every = " * ".join(f"record[{q.COUNT + d}]" for d in range(q.DIMS))
    line = f"boxed ? record[{q.COUNTERS}] + {at} : record[{q.TOTAL}]"
    wanted = f"({u32})(boxed ? {tiles} : {every}) * epoch"
    lines.append("    }")
    lines.append("    int state = 0;")
    for d in dims:
        on = f"c_{d} <= last_{d} && state < {STALLED}"
        lines.append(f"    for ({i64} c_{d} = first_{d}; {on}; c_{d}++)")
    lines += [
        "        state |= fq_wait(",
        f"            control, {line},",
        f"            {wanted}, spin_limit, instruction);",
        "    return state;",
        "}",
        "",
    ]
    return "\n".join(lines)
