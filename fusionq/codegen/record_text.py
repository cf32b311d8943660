"""What a persistent kernel does to write down when its workers did what.

One lane reads the clock, and writes down a tile's row.  A worker that follows its assignment
takes no ticket, and a wait may find its counters where they should be: then there is nothing to
measure.  A row's first words are written before the work, so that its cache line is there when the
others follow.
"""

from __future__ import annotations

from fusionq.base.frozen import dataclass
from fusionq.codegen.queue_words import QueueWords
from fusionq.ir.nodes import InstructionRecords


@dataclass(frozen=True)
class RecordText:
    """Text of its own for helper functions, before the loop over instructions, and for what is done
    with an instruction: variables, its row, when it is known, when its waits are over, and its
    publication."""

    helpers: str
    start: str
    declared: list[str]
    row: list[str]
    taken: list[str]
    ready: list[str]
    publish: str


def no_records(published: str) -> RecordText:
    """Nothing but the publication of an instruction."""
    return RecordText("", "", [], [], [], [], f"        {published}\n")


def record_text(
    c: QueueWords,
    published: str,
    clock: str,
    buffer: str,
    base: str,
    rows: str,
    records: InstructionRecords,
) -> RecordText:
    """The text for ``records``, whose parameters have these identifiers; ``published``: that of an
    instruction's publication; ``clock`` is the time as an expression."""
    i64, pointer = c.int64, c.scalars.pointer(c.int64, "global")
    now = "now" if c.workers.first_lane_takes else c.workers.broadcast("now")
    helpers = f"""\
// The time, for the first lane at least.
FQ_INLINE {i64} fq_now(int lane) {{
    {i64} now = 0;
    if (lane == 0) now = {clock};
    return {now};
}}
"""
    start = f"""\
    {pointer} const fq_records = ({pointer}){buffer};
    {i64} fq_began = fq_now(fq_lane);
"""
    row = f"""\
const {i64} fq_row = fq_tile < {rows}
    ? {base} + {records.rows_at} + {records.row_words} * (fq_stage * {rows} + fq_tile) : -1;
"""
    taken = f"const {i64} fq_taken = fq_static ? fq_began : fq_now(fq_lane);"
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
        {published}
        fq_began = fq_now(fq_lane);
        if (fq_row >= 0 && fq_lane == 0) {{
            fq_records[fq_row + 4] = fq_done;
            fq_records[fq_row + 5] = fq_began;
        }}
"""
    declared = [f"{i64} fq_taken = 0;"]
    return RecordText(
        helpers, start, declared, row.splitlines(), [taken], ready.splitlines(), publish
    )
