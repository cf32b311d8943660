"""``fq_wait_all`` where some lanes, the pollers, poll as many counters at once: what each of the
instruction's waits is about is worked out beforehand, a lane a wait, so that once the last counter
is reached nothing is left to do but to see that.

A counter that is reached is not polled again.  After so many polls the first lane waits for each
counter alone, in bounded time, as where there is one poller.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.queue_protocol import STALLED, WAITED
from fusionq.codegen.queue_words import QueueWords


def joint_wait_function(
    c: QueueWords,
    target: Target,
    ndim: int,
    boxed_dims: int,
    entry: str,
    box: Sequence[str],
    boxed: bool,
) -> str:
    """The text for stages with at most ``ndim`` dimensions and boxes with ``boxed_dims``.
    ``entry``: the place of the wait ``fq_turn`` among the tables; ``box``: the lines that set the
    ends of its box; ``boxed``: whether there are boxes at all."""
    w, i64, u32 = c.workers, c.int64, c.uint32
    # Where rings leave few registers and waits are listed, it is rarely called.
    all_of_them = w.outlined_function if w.rings is None else w.cold_function
    dims = range(boxed_dims)
    tile = ", ".join(f"{i64} fq_first_{d}, {i64} fq_last_{d}" for d in range(ndim))
    names = ["fq_number", "fq_source", "fq_is_box"]
    names += [f"fq_{what}_{d}" for d in dims for what in ("begin", "many")]
    lines = [
        "// Waits for the counters of the first ``count`` lanes, one after the other.",
        f"{w.cold_function} int fq_wait_one_by_one(",
        f"    {c.control} control, {i64} line, {u32} wanted,",
        f"    {i64} spin_limit, {i64} instruction, int count, int lane) {{",
        f"    int state = {WAITED};",
        f"    for (int k = 0; k < count && state < {STALLED}; k++) {{",
        f"        const {i64} next = {w.poller_broadcast('line', 'k')};",
        f"        const {u32} target = {w.poller_broadcast('wanted', 'k')};",
        "        if (lane == 0)",
        "            state |= fq_wait(control, next, target, spin_limit, instruction);",
        f"        state = {w.poller_broadcast('state', '0')};",
        "    }",
        "    return state;",
        "}",
        "",
        *_wait_lines(c, target),
        "// Waits for all that an instruction depends on.",
        f"{all_of_them} int fq_wait_all(",
        f"    {c.tables} fq_stages, {c.control} fq_control, {u32} epoch,",
        f"    {i64} spin_limit, {i64} instruction, {c.tables} fq_record, {tile},",
        "    int lane) {",
        f"    const int fq_waits = (int)fq_record[{q.WAITS}];",
        "    int state = 0;",
        f"    for (int fq_from = 0; fq_from < fq_waits && state < {STALLED}; "
        f"fq_from += {w.pollers}) {{",
        "        // A lane a wait: which counters it is about, and how many.  The latest stages",
        "        // come last: once their counters are reached, all others have been seen.",
        "        const int fq_turn = fq_waits - 1 - fq_from - lane;",
        f"        int {', '.join(f'{name} = 0' for name in names)};",
        "        if (fq_turn >= 0) {",
        f"            {c.tables} const fq_awaited = fq_stages + {entry};",
        f"            fq_source = (int)fq_awaited[{q.AWAITED}];",
        "            fq_number = 1;",
        *([*_indented(box, 3), *_indented(_counters(c, boxed_dims), 3)] if boxed else []),
        "        }",
        "        int fq_before = 0, fq_all = 0;",
        f"        const int fq_here = {_least('fq_waits - fq_from', w.pollers)};",
        "        for (int fq_k = 0; fq_k < fq_here; fq_k++) {",
        "            if (fq_k == lane) fq_before = fq_all;",
        f"            fq_all += {w.poller_broadcast('fq_number', 'fq_k')};",
        "        }",
        f"        for (int fq_base = 0; fq_base < fq_all && state < {STALLED}; "
        f"fq_base += {w.pollers}) {{",
        "            // A lane a counter: of the last wait that begins no later.",
        "            const int fq_at = fq_base + lane;",
        "            int fq_of = 0;",
        "            for (int fq_k = 1; fq_k < fq_here; fq_k++)",
        f"                if ({w.poller_broadcast('fq_before', 'fq_k')} <= fq_at) fq_of = fq_k;",
        f"            int fq_rest = fq_at - {w.poller_broadcast('fq_before', 'fq_of')};",
    ]
    for name in names[1:]:
        short = name.replace("fq_", "fq_its_")
        lines.append(f"            const int {short} = {w.poller_broadcast(name, 'fq_of')};")
    lines += _indented(_line_and_target(c, boxed_dims, boxed), 3)
    lines += [
        f"            const int fq_left = {_least('fq_all - fq_base', w.pollers)};",
        "            const int found = fq_wait_lines(",
        "                fq_control, fq_line, fq_wanted, spin_limit, instruction, fq_left, lane);",
        "            if (found) state = found;",
        "        }",
        "    }",
        "    return state;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _wait_lines(c: QueueWords, target: Target) -> list[str]:
    """``fq_wait_lines``."""
    w, i64, u32 = c.workers, c.int64, c.uint32
    return [
        "// Waits for a counter of each of the first ``count`` lanes.",
        f"{w.outlined_function} int fq_wait_lines(",
        f"    {c.control} control, {i64} line, {u32} wanted,",
        f"    {i64} spin_limit, {i64} instruction, int count, int lane) {{",
        "    int state = 0;",
        "    // Most waits are over soon.",
        "    bool mine = lane >= count, reached = false;",
        f"    for (int polls = 0; polls < {target.polls_between_checks}; polls++) {{",
        "        if (!mine)",
        "            mine = (int)(fq_read(fq_word(control, line, 0)) - wanted) >= 0;",
        f"        reached = {w.all_pollers('mine')};",
        "        if (reached) break;",
        f"        state = {WAITED};",
        f"        {w.pause}",
        "    }",
        "    if (!reached)",
        "        state = fq_wait_one_by_one(",
        "            control, line, wanted, spin_limit, instruction, count, lane);",
        "    return state;",
        "}",
        "",
    ]


def _counters(c: QueueWords, boxed_dims: int) -> list[str]:
    """Statements that set the first counter and the number of counters by dimension, and the
    number of all, of a box that ends at ``fq_low_…`` and ``fq_high_…``."""
    i64 = c.int64
    lines = [
        "fq_is_box = fq_boxed ? 1 : 0;",
        f"{c.tables} const fq_of = fq_stages + {q.HEADER} + {q.RECORD} * fq_source;",
        "if (fq_boxed) {",
    ]
    for d in range(boxed_dims):
        low = c.maximum(f"fq_low_{d}", c.literal(0))
        high = c.minimum(f"fq_high_{d}", f"fq_of[{q.EXTENT + d}] - 1")
        lines += [
            f"    const {i64} fq_size_{d} = fq_of[{q.TILE + d}] * fq_of[{q.SHARED + d}];",
            f"    const {i64} fq_start_{d} = {low}, fq_end_{d} = {high};",
            f"    fq_begin_{d} = (int)(fq_start_{d} / fq_size_{d});",
            f"    fq_many_{d} = fq_end_{d} < fq_start_{d} ? 0"
            f" : (int)(fq_end_{d} / fq_size_{d}) - fq_begin_{d} + 1;",
        ]
    many = " * ".join(f"fq_many_{d}" for d in range(boxed_dims))
    return [*lines, f"    fq_number = {many};", "}"]


def _line_and_target(c: QueueWords, boxed_dims: int, boxed: bool) -> list[str]:
    """Statements that declare the line and the target of the counter that is ``fq_rest`` after the
    first one of its wait."""
    u32 = c.uint32
    every = " * ".join(f"fq_of_its[{q.COUNT + d}]" for d in range(q.DIMS))
    lines = [
        f"{c.tables} const fq_of_its = fq_stages + {q.HEADER} + {q.RECORD} * fq_its_source;",
        f"{c.int64} fq_line = fq_of_its[{q.TOTAL}];",
        f"{u32} fq_wanted = ({u32})({every}) * epoch;",
    ]
    if not boxed:
        return lines
    lines.append("if (fq_its_is_box && fq_at < fq_all) {")
    at, tiles = "", []
    for d in reversed(range(boxed_dims)):
        step = "fq_rest" if d == 0 else f"fq_rest % fq_its_many_{d}"
        lines.append(f"    const int c_{d} = fq_its_begin_{d} + {step};")
        if d:
            lines.append(f"    fq_rest /= fq_its_many_{d};")
    for d in range(boxed_dims):
        count, shared = f"(int)fq_of_its[{q.COUNT + d}]", f"(int)fq_of_its[{q.SHARED + d}]"
        lines.append(f"    const int n_{d} = {count}, s_{d} = {shared};")
        at = f"({at}) * ((n_{d} + s_{d} - 1) / s_{d}) + c_{d}" if d else f"c_{d}"
        tiles.append(f"(s_{d} < n_{d} - c_{d} * s_{d} ? s_{d} : n_{d} - c_{d} * s_{d})")
    return [
        *lines,
        f"    fq_line = fq_of_its[{q.COUNTERS}] + {at};",
        f"    fq_wanted = ({u32})({' * '.join(tiles)}) * epoch;",
        "}",
    ]


def _least(value: str, most: int) -> str:
    return f"{value} < {most} ? {value} : {most}"


def _indented(lines: Sequence[str], depth: int) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]
