"""What a persistent kernel does to write down when its workers did what.

One lane looks at the clock, and writes down a tile's row.  A worker that follows its assignment
takes no ticket, and a wait may find its counters where they should be: then there is nothing to
measure.  A row's first words are written before the work, so that its cache line is there when the
others follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusionq.ir.nodes import InstructionRecords

_PUBLISH = "fq_publish(fq_record, fq_control, fq_tile, fq_lane);"


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
    clock: str, buffer: str, base: str, rows: str, records: InstructionRecords
) -> RecordText:
    """The text for ``records``, whose parameters have these identifiers."""
    helpers = f"""\
// The time, the same for all lanes.
FQ_INLINE long fq_now(int lane) {{
    long now = 0;
    if (lane == 0) now = {clock};
    return sub_group_broadcast(now, 0);
}}
"""
    start = f"""\
    __global long* const fq_records = (__global long*){buffer};
    long fq_began = fq_now(fq_lane);
"""
    taken = f"""\
        const long fq_row = fq_tile < {rows}
            ? {base} + {records.rows_at} + {records.row_words} * (fq_stage * {rows} + fq_tile) : -1;
        const long fq_taken = fq_static ? fq_began : fq_now(fq_lane);
"""
    ready = """\
const long fq_ready = fq_waited ? fq_now(fq_lane) : fq_taken;
if (fq_row >= 0 && fq_lane == 0) {
    fq_records[fq_row] = get_group_id(0) + 1;
    fq_records[fq_row + 1] = fq_began;
    fq_records[fq_row + 2] = fq_taken;
    fq_records[fq_row + 3] = fq_ready;
}
"""
    publish = f"""\
        const long fq_done = fq_now(fq_lane);
        {_PUBLISH}
        fq_began = fq_now(fq_lane);
        if (fq_row >= 0 && fq_lane == 0) {{
            fq_records[fq_row + 4] = fq_done;
            fq_records[fq_row + 5] = fq_began;
        }}
"""
    return RecordText(helpers, start, taken, ready, publish)
