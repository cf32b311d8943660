"""What a persistent kernel does to write down when its workers did what.

One lane looks at the clock, and writes a tile's row at once when the tile is done.  A worker that
follows its assignment takes no ticket, so that there is nothing to measure.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusionq.ir.nodes import InstructionRecords

_PUBLISH = "fq_publish(fq_record, fq_control, fq_tile);"


@dataclass(frozen=True)
class RecordText:
    """Lines before the loop over instructions, after an instruction is known, and in place of its
    publication."""

    start: str
    taken: str
    publish: str


NO_RECORDS = RecordText("", "", f"        if (fq_lane == 0) {_PUBLISH}\n")


def record_text(
    clock: str, buffer: str, base: str, rows: str, records: InstructionRecords
) -> RecordText:
    """The text for ``records``, whose parameters have these identifiers."""
    start = f"""\
    __global long* const fq_records = (__global long*){buffer};
    long fq_began = 0;
    if (fq_lane == 0) fq_began = {clock};
"""
    taken = f"""\
        const long fq_row = fq_tile < {rows}
            ? {base} + {records.rows_at} + {records.row_words} * (fq_stage * {rows} + fq_tile) : -1;
        long fq_taken = 0;
        if (fq_lane == 0) fq_taken = fq_static ? fq_began : {clock};
        long fq_ready = fq_taken;
"""
    publish = f"""\
        if (fq_lane == 0) {{
            const long fq_done = {clock};
            {_PUBLISH}
            const long fq_published = {clock};
            if (fq_row >= 0) {{
                fq_records[fq_row] = get_group_id(0) + 1;
                fq_records[fq_row + 1] = fq_began;
                fq_records[fq_row + 2] = fq_taken;
                fq_records[fq_row + 3] = fq_ready;
                fq_records[fq_row + 4] = fq_done;
                fq_records[fq_row + 5] = fq_published;
            }}
            fq_began = fq_published;
        }}
"""
    return RecordText(start, taken, publish)
