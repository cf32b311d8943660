"""What a persistent kernel does to write down when its workers did what.

One lane reads the clock, and writes down a tile's row.  A worker that follows its assignment
takes no ticket, and a wait may find its counters where they should be: then there is nothing to
measure.  A row's first words are written before the work, so that its cache line is there when the
others follow.  Where the first lane takes instructions for all others, it writes what it knows
before it waits, and where the row is lies beside what it tells the others: in registers that would
live through the waits and the work of all tiles.
"""

from __future__ import annotations

from fusionq.base.frozen import dataclass
from fusionq.codegen.queue_protocol import STALLED
from fusionq.codegen.queue_words import QueueWords
from fusionq.ir.nodes import InstructionRecords


@dataclass(frozen=True)
class RecordText:
    """Text of its own for helper functions, before the loop over instructions, and for what is done
    with an instruction: variables, its row, when it is known, when its waits are over, and its
    publication; ``row_of_tile``: the row as an expression, for its work."""

    helpers: str
    start: str
    declared: list[str]
    row: list[str]
    taken: list[str]
    ready: list[str]
    publish: str
    row_of_tile: str = ""


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
    told: str,
) -> RecordText:
    """The text for ``records``, whose parameters have these identifiers; ``published``: that of an
    instruction's publication; ``clock`` is the time as an expression; ``told``: where the first
    lane tells the others an instruction's row, if it does."""
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
    found = ""
    if c.workers.first_lane_takes:
        row, ready = _by_the_first_lane(c, row, told)
        found = f"        const {i64} fq_row = {told};\n"
    else:
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
{found}\
        if (fq_row >= 0 && fq_lane == 0) {{
            fq_records[fq_row + 4] = fq_done;
            fq_records[fq_row + 5] = fq_began;
        }}
"""
    declared = [f"{i64} fq_taken = 0;"]
    of_tile = told if c.workers.first_lane_takes else "fq_row"
    return RecordText(
        helpers, start, declared, row.splitlines(), [taken], ready.splitlines(), publish, of_tile
    )


def _by_the_first_lane(c: QueueWords, row: str, told: str) -> tuple[str, str]:
    """What the first lane does once a row is known, and when the waits are over, as text: it
    writes what it knows before it waits, so that nothing of it lives through that."""
    written = f"""\
{row}\
if (fq_lane == 0) {{
    {told} = fq_row;
    if (fq_row >= 0) {{
        fq_records[fq_row] = {c.workers.worker} + 1;
        fq_records[fq_row + 1] = fq_began;
        fq_records[fq_row + 2] = fq_records[fq_row + 3] = fq_taken;
    }}
}}
"""
    ready = f"""\
if (fq_waited && fq_lane == 0 && {told} >= 0) {{
    if (fq_waited < {STALLED}) fq_records[{told} + 3] = fq_now(0);
    else fq_records[{told}] = 0;
}}
"""
    return written, ready
