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

NEAR_TABLES = "fq_near_bytes"
"""The memory of a worker that has its tables."""


def loop_head(
    c: QueueWords,
    epoch: str,
    tile: Sequence[str],
    ahead: Sequence[str],
    wait: Sequence[str],
    listed: Sequence[str],
    records: RecordText,
    dims: int,
) -> str:
    """The text from the start of the loop over instructions to where all lanes have one that they
    may begin: its ``fq_stage``, ``fq_record`` and ``fq_tile`` with its bounds, the lines ``tile``.
    ``wait``: the first lane's call that waits for producers; none where no stage waits; ``listed``:
    that of all pollers where waits are listed, if they may be.  ``ahead``: what the first lane, or
    all pollers, do before that, where only they go through it; ``dims``: the most dimensions of a
    tile."""
    if c.workers.first_lane_takes:
        ahead = ahead if wait else []
        lines = _by_the_first_lane(c, epoch, tile, ahead, wait, listed, records, dims)
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
    ahead: Sequence[str],
    wait: Sequence[str],
    listed: Sequence[str],
    records: RecordText,
    dims: int,
) -> list[str]:
    """An instruction, its tile's bounds and the counter that counts it go through ``fq_told``,
    which is written before the waits are over: behind them there is one barrier, and nothing to
    work out.

    Where waits are ``listed``, as a negative end of the list says, all pollers hold a word each of
    the next instruction, and have those of the one behind it copied while they wait.  Whether
    somebody has stalled they look at where that takes long, and before the first instruction:
    counters tell the truth until the end of a launch."""
    ends = [f"fq_{end}_{d}" for d in range(dims) for end in ("first", "last")]
    counter = "fq_counter(fq_record, fq_tile)"
    if listed:
        of_list = f"({c.int64})(({c.uint32})fq_head >> {q.COUNT_BITS}) - 1"
        counter = f"fq_listed ? {of_list} : {counter}"
        wait = _listed_or(c, wait, listed)
    awaited = [
        "if (fq_instruction >= 0) {",
        *_indented([*decoded(c), *tile, *(_head(c) if listed else ()), "if (fq_lane == 0) {"]),
        *_indented([f"fq_told[{k}] = {end};" for k, end in enumerate(ends, 2)], 2),
        f"        fq_told[1] = {counter};",
        "    }",
        *_indented([*records.row, *ahead, *wait]),
        *([f"    if (fq_waited >= {STALLED}) fq_instruction = -1;"] if wait else []),
        *_indented(records.ready if wait else []),
        "}",
    ]
    taken = [line.removeprefix(f"const {c.int64} ") for line in records.taken]
    alone = [
        "fq_instruction = fq_static",
        "    ? (fq_list[0] < fq_list[1] ? fq_schedule[fq_list[0]++] : -1)",
        f"    : fq_ticket(fq_schedule, fq_control, {epoch});",
        "if (fq_stall_seen(fq_control)) fq_instruction = -1;",
        *taken,
    ]
    broadcast = c.workers.poller_broadcast
    polled = f"fq_instruction = {broadcast('fq_instruction', '0')};"
    first = ["if (fq_lane == 0) {", *_indented(alone), "}", polled]
    if listed:
        first = [
            f"{c.int64} fq_entry = -1;",
            "const bool fq_listed = fq_list[1] < 0;",
            "if (fq_listed) {",
            *filter(None, (f"    {c.workers.words_copied()}",)),
            "    fq_entry = fq_ahead[fq_lane];",
            f"    fq_instruction = {broadcast('fq_entry', '0')};",
            *(["    if (fq_lane == 0) {", *_indented(taken, 2), "    }"] if taken else []),
            "} else {",
            *_indented(first),
            "}",
        ]
    anew = c.workers.lane_anew
    return [
        *anew,
        f"{c.int64} fq_instruction = -1;",
        "int fq_waited = 0;",
        *records.declared,
        f"if (fq_lane < {c.workers.pollers}) {{",
        *_indented([*first, *awaited, "if (fq_lane == 0) fq_told[0] = fq_instruction;"]),
        "}",
        f"{c.workers.group_barrier};",
        "fq_instruction = fq_told[0];",
        "if (fq_instruction < 0) break;",
        *anew[1:],
        *decoded(c),
        *([] if anew else ["const int fq_counted = (int)fq_told[1];"]),
        *(f"const {c.int64} {end} = fq_told[{k}];" for k, end in enumerate(ends, 2)),
    ]


def _head(c: QueueWords) -> list[str]:
    """The word of an instruction's list that says how many waits it has, what counts it, and where
    the next one's words are."""
    return [f"const {c.int64} fq_head = {c.workers.poller_broadcast('fq_entry', '1')};"]


def _listed_or(c: QueueWords, wait: Sequence[str], listed: Sequence[str]) -> list[str]:
    """The waits of an instruction, by the list if there is one, or else by ``wait``."""
    i64, broadcast = c.int64, c.workers.poller_broadcast
    own = broadcast("fq_entry", f"(fq_lane + {q.LISTED_WAITS}) % {q.LISTED_WORDS}")
    mask = (1 << q.COUNT_BITS) - 1
    behind = f"fq_schedule + (fq_head >> {q.LINE_SHIFT}) + fq_lane"
    copied = c.workers.copied_word("fq_ahead + fq_lane", behind)
    return [
        f"const int fq_count = fq_listed ? (int)(fq_head & {mask}) : {q.BY_FORMS};",
        "if (fq_listed) {",
        f"    {copied}",
        "}",
        f"if (fq_count != {q.BY_FORMS}) {{",
        f"    const {i64} fq_listed_wait = {own};",
        *_indented(listed),
        "} else {",
        *_indented(wait),
        "}",
    ]


def told_row(dims: int) -> str:
    """Where the first lane tells the others an instruction's row for its records."""
    return f"fq_told[{2 + 2 * dims}]"


def told_memory(c: QueueWords, dims: int, records: bool, listed: bool) -> str:
    """What of an instruction the first lane tells the others, where it gets them alone, and where
    its list goes on and ends, which in registers would live through the work of all tiles;
    ``records``: with the row for its records; ``listed``: with the words of the next instruction,
    where waits may be listed."""
    if not c.workers.first_lane_takes:
        return ""
    pointer = c.scalars.pointer(c.int64, "local")
    words = 4 + 2 * dims + records
    lines = [
        *c.workers.local_memory("fq_told_bytes", 8 * (words + listed * q.LISTED_WORDS)),
        f"{pointer} const fq_list = ({pointer})fq_told_bytes, * const fq_told = fq_list + 2;",
        "if (fq_lane == 0) {",
        "    fq_list[0] = fq_assigned + fq_next;",
        "    fq_list[1] = fq_assigned + fq_stop;",
        "}",
    ]
    if listed:
        lists, place = f"fq_schedule[{q.STATIC}]", f"fq_schedule[fq_lists + {c.workers.worker}]"
        lines += [
            f"{pointer} const fq_ahead = fq_list + {words};",
            f"const {c.int64} fq_lists = fq_static ? {lists} : 0;",
            f"if (fq_lists > 1 && fq_lane < {q.LISTED_WORDS}) {{",
            f"    const {c.int64} fq_begin = {place};",
            f"    const {c.int64} fq_word_0 = fq_schedule[fq_begin + fq_lane];",
            "    fq_ahead[fq_lane] = fq_stall_seen(fq_control) ? -1 : fq_word_0;",
            "    if (fq_lane == 0) fq_list[1] = -1;",
            "}",
            f"{c.workers.barrier};",
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
    the workers' lists, in ``words`` of its own behind ``cells``, if it is no more than that; beside
    rings, which have the more memory so, without what stages wait for."""
    if not words:
        return f"    {c.tables} const fq_stages = fq_schedule;\n"
    pointer, most = c.scalars.pointer(c.int64, "local"), words - cells
    declared = [f"    {line}\n" for line in c.workers.local_memory(NEAR_TABLES, 8 * words)]
    end = f"fq_schedule[{q.ORDER}]"
    if c.workers.rings is not None:
        end = f"(fq_schedule[{q.HEADER + q.WAITS}] >> {q.WAITED_SHIFT})"
    return f"""\
{"".join(declared)}\
    {pointer} const fq_near = ({pointer}){NEAR_TABLES};
    const {c.int64} fq_kept = {end} <= {most} ? {end} : 0;
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
        call = f"fq_publish({record}, fq_control, fq_counted);"
        rings = c.workers.rings
        if rings is not None:
            call = f"{{ {rings.counting} {call} {rings.counted} }}"
        return f"if (fq_lane == {lanes - 1}) {call}"
    return "if (fq_lane == 0) fq_publish(fq_record, fq_control, fq_counter(fq_record, fq_tile));"


def _indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]
