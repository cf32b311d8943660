"""How a persistent kernel's schedule and control memory are laid out.

The schedule (int64) starts with a header: the number of instructions, of workers, whether the
workers may follow the static assignment (0: no), and where the three tables begin: the order of all
instructions; for each worker the position of its first instruction in the assignment (and one past
the last); the assignment.  The header ends with the line of the control memory where the workers'
tables begin, and the bytes that a worker reads ahead.  A record for each stage follows, the
operands of stages that share a body, and what each stage waits for, then those three tables.  An
instruction is the stage's number above bit ``TILE_BITS`` and the tile's below, tiles counted with
the last dimension fastest.

Where the waits of few instructions are listed, as workers of many lanes want it, ``STATIC`` is the
place behind the assignment where for each worker the place of its own list stands.  A list has
``LISTED_WAITS`` words for each instruction and one for each of its waits, and ends with -1: the
instruction; from bit ``LINE_SHIFT`` on the place of the next one's words, from bit ``COUNT_BITS``
on one more than the line of the counter that counts its tile, and below that how many waits it has,
or ``BY_FORMS`` where these are too many to be listed; of a wait the line from bit ``LINE_SHIFT``
on, and below that how many tiles count there in a launch.  A worker reads ``LISTED_WORDS`` at once,
so that many follow the last list.

What differs from stage to stage stands in the records, so that the code does not grow with their
number.

The control memory (uint32) is made of lines of ``Target.control_line`` words, one cache line each:
first the queue's own, then the barrier counters, then for each worker a table of its own.  There it
writes the kernel's arguments at the start, those in which stages with one body differ, in cells of
64 bits: of an array the address, the extents and the strides, of a scalar its value.  The operands
of a stage are the first cells of its arguments.
"""

from __future__ import annotations

TILE_BITS = 40
DIMS = 3

# Header of the schedule.
INSTRUCTIONS, WORKERS, STATIC, ORDER, STARTS, ASSIGNMENT, GIVEN, AHEAD = range(8)
HEADER = 8

# Record of a stage: tile shape, tiles, tiles that share a counter, range (each by dimension, 1
# where the stage has fewer dimensions), first counter's line (-1: none), line of the counter of
# all tiles (-1: none), number of its code's body, where its operands begin, and how many stages it
# waits for with, from bit WAITED_SHIFT on, where its waits begin.
TILE, COUNT, SHARED, EXTENT, COUNTERS, TOTAL = 0, 3, 6, 9, 12, 13
BODY, OPERANDS, WAITS = 14, 15, 16
WAITED_SHIFT = 32
RECORD = 17

# A wait: the stage that is waited for and, from bit FORM_SHIFT on, the number of its closed form
# (-1: all tiles); from VALUES on the form's values, as many words for each wait as the most that
# one has.
AWAITED, VALUES = 0, 1
FORM_SHIFT = 32

# Lists of instructions with their waits.
LISTED_WORDS, LISTED_WAITS = 32, 2
COUNT_BITS, LINE_SHIFT = 8, 32
BY_FORMS = 255

# Lines of the control memory.
HEAD, ARRIVED, MODE, STALL, AT_WORK, FIRST_COUNTER = range(6)

# Words of the stall line; CLAIM is set by the one worker that fills it, FLAG when it has.
FLAG, CLAIM, STALL_STAGE, STALL_TILE, STALL_COUNTER, STALL_EXPECTED, STALL_SEEN = range(7)

LEFT, LAUNCHES = 1, 1
"""Words of the lines ``ARRIVED`` and ``MODE`` where workers count launches: how many workers have
left, in all launches together, and how many launches all workers have left."""

CELL_WORDS = 2
"""Words of the control memory that a cell takes."""


def table_lines(cells: int, line: int) -> int:
    """The lines of ``line`` words that a worker's table of so many ``cells`` takes."""
    return -(-cells * CELL_WORDS // line)
