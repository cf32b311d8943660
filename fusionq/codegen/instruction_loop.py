"""How a worker comes to its next instruction, as source text.

The lanes of a vector go through it together.  Of many threads, the first one does it alone, with
all that it has to wait for, and the others hear of an instruction once they may begin: a barrier of
a block takes long, and so does what a thread loads from global memory, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.codegen import queue_layout as q
from fusionq.codegen.queue_protocol import STALLED
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.record_text import RecordText


def loop_head(
    c: QueueWords,
    epoch: str,
    tile: Sequence[str],
    ahead: Sequence[str],
    wait: Sequence[str],
    records: RecordText,
    dims: int,
) -> str:
    """The text from the start of the loop over instructions to where all lanes have one that they
    may begin: its ``fq_stage``, ``fq_record`` and ``fq_tile`` with its bounds, the lines ``tile``.
    ``wait``: the first lane's call that waits for producers; none where no stage waits.  ``ahead``:
    what the first lane, or all pollers, do before that, where only they go through it; ``dims``:
    the most dimensions of a tile."""
    if c.workers.first_lane_takes:
        lines = _by_the_first_lane(c, epoch, tile, [*ahead, *wait] if wait else [], records, dims)
    else:
        lines = _together(c, epoch, tile, wait, records)
    return "\n".join(["    for (;;) {", *_indented(lines, 2)])


def _together(
    c: QueueWords, epoch: str, tile: Sequence[str], wait: Sequence[str], records: RecordText
) -> list[str]:
    """An instruction is broadcast: Intel's compiler loses sight of its being the same for all
    lanes, and makes every access a gather."""
    over = [
        f"fq_waited = {c.workers.broadcast('fq_waited')};",
        f"if (fq_waited >= {STALLED}) break;",
        f"{c.workers.barrier};",
    ]
    return [
        f"const {c.int64} fq_found = fq_static",
        "    ? (fq_next < fq_stop ? fq_schedule[fq_assigned + fq_next++] : -1)",
        f"    : (fq_lane == 0 ? fq_ticket(fq_schedule, fq_control, {epoch}) : -1);",
        f"const {c.int64} fq_instruction = {c.workers.broadcast('fq_found')};",
        "if (fq_instruction < 0 || fq_stalled(fq_control, fq_lane)) break;",
        *decoded(c),
        "int fq_waited = 0;",
        *records.row,
        *records.taken,
        *tile,
        *(["if (fq_lane == 0)", *_indented(wait), *over] if wait else []),
        *records.ready,
    ]


def _by_the_first_lane(
    c: QueueWords,
    epoch: str,
    tile: Sequence[str],
    wait: Sequence[str],
    records: RecordText,
    dims: int,
) -> list[str]:
    """An instruction, its tile's bounds and the counter that counts it go through ``fq_told``,
    which is written before the waits are over: behind them there is one barrier, and nothing to
    work out."""
    ends = [f"fq_{end}_{d}" for d in range(dims) for end in ("first", "last")]
    awaited = [
        "if (fq_instruction >= 0) {",
        *_indented([*decoded(c), *tile, "if (fq_lane == 0) {"]),
        *_indented([f"fq_told[{k}] = {end};" for k, end in enumerate(ends, 2)], 2),
        "        fq_told[1] = fq_counter(fq_record, fq_tile);",
        "    }",
        *_indented([*records.row, *wait]),
        *([f"    if (fq_waited >= {STALLED}) fq_instruction = -1;"] if wait else []),
        *_indented(records.ready if wait else []),
        "}",
    ]
    alone = [
        "fq_instruction = fq_static",
        "    ? (fq_list[0] < fq_list[1] ? fq_schedule[fq_list[0]++] : -1)",
        f"    : fq_ticket(fq_schedule, fq_control, {epoch});",
        "if (fq_stall_seen(fq_control)) fq_instruction = -1;",
        *(line.removeprefix(f"const {c.int64} ") for line in records.taken),
    ]
    polled = f"fq_instruction = {c.workers.poller_broadcast('fq_instruction', '0')};"
    first = ["if (fq_lane == 0) {", *_indented(alone), "}", polled, *awaited]
    return [
        f"{c.int64} fq_instruction = -1;",
        "int fq_waited = 0;",
        *records.declared,
        f"if (fq_lane < {c.workers.pollers}) {{",
        *_indented([*first, "if (fq_lane == 0) fq_told[0] = fq_instruction;"]),
        "}",
        f"{c.workers.group_barrier};",
        "fq_instruction = fq_told[0];",
        "if (fq_instruction < 0) break;",
        *c.workers.lane_anew,
        *decoded(c),
        *([] if c.workers.lane_anew else ["const int fq_counted = (int)fq_told[1];"]),
        *(f"const {c.int64} {end} = fq_told[{k}];" for k, end in enumerate(ends, 2)),
    ]


def told_row(dims: int) -> str:
    """Where the first lane tells the others an instruction's row for its records."""
    return f"fq_told[{2 + 2 * dims}]"


def told_memory(c: QueueWords, dims: int, records: bool) -> str:
    """What of an instruction the first lane tells the others, where it gets them alone, and where
    its list goes on and ends, which in registers would live through the work of all tiles;
    ``records``: with the row for its records."""
    if not c.workers.first_lane_takes:
        return ""
    pointer = c.scalars.pointer(c.int64, "local")
    lines = [
        *c.workers.local_memory("fq_told_bytes", 8 * (4 + 2 * dims + records)),
        f"{pointer} const fq_list = ({pointer})fq_told_bytes, * const fq_told = fq_list + 2;",
        "if (fq_lane == 0) {",
        "    fq_list[0] = fq_assigned + fq_next;",
        "    fq_list[1] = fq_assigned + fq_stop;",
        "}",
    ]
    return "".join(f"    {line}\n" for line in lines)


def decoded(c: QueueWords) -> list[str]:
    """Declarations of an instruction's stage, its tile and the stage's record."""
    return [
        f"const int fq_stage = (int)(fq_instruction >> {q.TILE_BITS});",
        f"const {c.int64} fq_tile = fq_instruction & (({c.literal(1)} << {q.TILE_BITS}) - 1);",
        f"{c.tables} const fq_record = fq_stages + {q.HEADER} + {q.RECORD} * fq_stage;",
    ]


def near_tables(c: QueueWords, words: int, cells: int, lanes: int) -> str:
    """What each worker has of the schedule: ``fq_stages``, all but the order of instructions and
    the workers' lists, in ``words`` of its own behind ``cells``, if it is no more than that."""
    if not words:
        return f"    {c.tables} const fq_stages = fq_schedule;\n"
    pointer, most = c.scalars.pointer(c.int64, "local"), words - cells
    declared = [f"    {line}\n" for line in c.workers.local_memory("fq_near_bytes", 8 * words)]
    return f"""\
{"".join(declared)}\
    {pointer} const fq_near = ({pointer})fq_near_bytes;
    const {c.int64} fq_kept = fq_schedule[{q.ORDER}] <= {most} ? fq_schedule[{q.ORDER}] : 0;
    for (int fq_k = fq_lane; fq_k < fq_kept; fq_k += {lanes})
        fq_near[{cells} + fq_k] = fq_schedule[fq_k];
    {c.tables} const fq_stages = fq_kept ? fq_near + {cells} : fq_schedule;
    {c.workers.barrier};
"""


def read_again(c: QueueWords) -> list[str]:
    """Before the barrier behind a tile's work, what counting it needs, where that would live in
    registers through the work of tiles that need all of them: a load of what a thread has stored
    for want of registers takes as long as any other, since caches forget with each acquire."""
    if not c.workers.lane_anew:
        return []
    done = f"(int)(fq_told[0] >> {q.TILE_BITS})"
    return [f"const int fq_counted = (int)fq_told[1], fq_stage_done = {done};"]


def publication(c: QueueWords, lanes: int) -> str:
    """Counts a tile as done.  Where the first lane gets the next instruction meanwhile, the last
    one does it: what all have stored has to be seen by others first, which takes long."""
    record = "fq_record"
    if c.workers.lane_anew:
        record = f"fq_stages + {q.HEADER} + {q.RECORD} * fq_stage_done"
    if c.workers.first_lane_takes:
        return f"if (fq_lane == {lanes - 1}) fq_publish({record}, fq_control, fq_counted);"
    return "if (fq_lane == 0) fq_publish(fq_record, fq_control, fq_counter(fq_record, fq_tile));"


def _indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]
