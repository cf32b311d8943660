"""What a persistent kernel does to write down when its workers did what.

One lane reads the clock, and writes down a tile's row.  A worker that follows its assignment
takes no ticket, and a wait may find its counters where they should be: then there is nothing to
measure.  A row's first words are written before the work, so that its cache line is there when the
others follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusionq.codegen.queue_words import QueueWords
from fusionq.ir.nodes import InstructionRecords

_PUBLISH = "if (fq_lane == 0) fq_publish(fq_record, fq_control, fq_tile);"


@dataclass(frozen=True)
class RecordText:
    """Text of its own for helper functions, before the loop over instructions, when an
    instruction is known, when its waits are over, and in place of its publication."""

    helpers: str
    start: str
    taken: str
    ready: str
    publish: str


NO_RECORDS = RecordText("", "", "", "", f"        {_PUBLISH}\n")


def record_text(
    c: QueueWords, clock: str, buffer: str, base: str, rows: str, records: InstructionRecords
) -> RecordText:
    """The text for ``records``, whose parameters have these identifiers; ``clock`` is the time as
    an expression."""
    i64, pointer = c.int64, c.scalars.pointer(c.int64, "global")
    helpers = f"""\
// The time, the same for all lanes.
FQ_INLINE {i64} fq_now(int lane) {{
    {i64} now = 0;
    if (lane == 0) now = {clock};
    return {c.workers.broadcast("now")};
}}
"""
    start = f"""\
    {pointer} const fq_records = ({pointer}){buffer};
    {i64} fq_began = fq_now(fq_lane);
"""
    taken = f"""\
        const {i64} fq_row = fq_tile < {rows}
            ? {base} + {records.rows_at} + {records.row_words} * (fq_stage * {rows} + fq_tile) : -1;
        const {i64} fq_taken = fq_static ? fq_began : fq_now(fq_lane);
"""
    ready = f"""\
const {i64} fq_ready = fq_waited ? fq_now(fq_lane) : fq_taken;
if (fq_row >= 0 && fq_lane == 0) {{
    fq_records[fq_row] = {c.workers.worker} + 1;
    fq_records[fq_row + 1] = fq_began;
    fq_records[fq_row + 2] = fq_taken;
    fq_records[fq_row + 3] = fq_ready;
}}
"""
    publish = f"""\
        const {i64} fq_done = fq_now(fq_lane);
        {_PUBLISH}
        fq_began = fq_now(fq_lane);
        if (fq_row >= 0 && fq_lane == 0) {{
            fq_records[fq_row + 4] = fq_done;
            fq_records[fq_row + 5] = fq_began;
        }}
"""
    return RecordText(helpers, start, taken, ready, publish)
