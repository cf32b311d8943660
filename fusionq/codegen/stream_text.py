"""What fills the slots of a worker's rings, as source text: for each instruction that the worker
will do, in order, the rows that its work-groups read, a slot's part after the other.

It waits for slots only, never for a stage: nobody writes these arrays while the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fusionq.codegen import queue_layout as q
from fusionq.codegen.array_access import Memory
from fusionq.codegen.device_source import Pointer, Slot
from fusionq.codegen.dialect import Dialect, Rings, Scalars
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.instruction_loop import decoded
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.kernel_body import parameter_text
from fusionq.codegen.names import Names
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.stage_tables import code_bodies
from fusionq.codegen.statements import Around
from fusionq.codegen.streamed_loops import READ, READY, Row, StreamedLoop, Streams
from fusionq.codegen.tile_groups import ThreadGroupLoop
from fusionq.codegen.tile_items import ThreadItems
from fusionq.ir.nodes import ArrayParam, Persistent, StageCode
from fusionq.ir.text import PRIMARY, Text
from fusionq.ir.types import ScalarType

Operands = Callable[[int, StageCode, Memory, Sequence[Slot]], list[str]]
"""As of ``read_ahead_text``."""


class StreamText:
    """How the rings of the persistent kernel with ``body`` are filled, and which of its tiles read
    them; what the text needs is added to ``helpers`` and ``types``."""

    def __init__(
        self,
        body: Persistent,
        streams: Streams,
        rings: Rings,
        dialect: Dialect,
        helpers: Helpers,
        types: set[ScalarType],
    ) -> None:
        self._rings = rings
        self._streams = streams
        self._dialect = dialect
        self._words = QueueWords.of(dialect)
        self._helpers = helpers
        self._types = types
        self.functions: list[str] = []
        bodies = code_bodies(body)
        self._codes = {number: body.codes[bodies.index(number)] for number in streams.loops}
        self._filling: dict[int, tuple[Memory, tuple[Slot, ...]]] = {}
        self._ready: dict[int, tuple[Memory, tuple[Slot, ...]]] = {}
        for number, code in self._codes.items():
            self._add(number, code, streams.loops[number])

    @property
    def bodies(self) -> frozenset[int]:
        """The numbers of the bodies that read slots."""
        return frozenset(self._codes)

    def loops(self, number: int) -> tuple[StreamedLoop, ...]:
        """Those of a body that read slots."""
        return self._streams.loops.get(number, ())

    def filling(self, tile: Sequence[str], operands: Operands) -> list[str]:
        """What those do that fill rings, with the lines that say which work-items a tile has."""
        i64 = self._words.int64
        one, last = self._words.literal(1), f"fq_stop - {self._words.literal(1)}"
        behind = self._words.minimum(f"fq_next + {one}", last)
        lines = [
            f"const {i64} fq_instruction = fq_following;",
            f"fq_following = fq_schedule[fq_assigned + {behind}];",
            *decoded(self._words),
            *tile,
            f"switch ((int)fq_record[{q.BODY}]) {{",
        ]
        for number, (memory, slots) in self._filling.items():
            code = self._codes[number]
            arguments = [self._rings.arguments, self._rings.over_argument]
            arguments += [f"fq_first_{d}, fq_last_{d}" for d in range(code.kernel.ndim)]
            arguments += [memory.identifier(slot) for slot in slots]
            lines += [
                f"case {number}: {{",
                *(f"    {line}" for line in operands(number, code, memory, slots)),
                f"    fq_fill_{number}({', '.join(arguments)});",
                "    break;",
                "}",
            ]
        # The next instruction comes during this one's copies.
        first = "fq_next < fq_stop ? fq_schedule[fq_assigned + fq_next] : 0"
        return self._rings.filling([f"{i64} fq_following = {first};"], [*lines, "}"])

    def ready(self, number: int, operands: Operands) -> list[str]:
        """The declaration of what says whether the slots of a tile's rows are filled."""
        memory, slots = self._ready[number]
        arguments = ", ".join(memory.identifier(slot) for slot in slots)
        return [
            f"bool {READY} = {self._rings.streams};",
            "{",
            *(f"    {line}" for line in operands(number, self._codes[number], memory, slots)),
            f"    {READY} = {READY} && fq_streams_{number}({arguments});",
            "}",
        ]

    def _add(self, number: int, code: StageCode, loops: Sequence[StreamedLoop]) -> None:
        kernel, c = code.kernel, self._words
        assert code.local_range is not None
        names = Names(self._dialect.unit.is_reserved)
        for param in kernel.params:
            names.of(param.name)
        memory = Memory(kernel, names)
        items = ThreadItems(self._dialect.items, code.local_range, kernel.ndim)
        printer = ExpressionPrinter(
            replace(self._dialect, items=items), names, memory, self._helpers, Intervals(kernel)
        )
        conditions = list(dict.fromkeys(_conditions(kernel.params, loops, memory, printer, c,
                                                    self._rings.sector)))  # fmt: skip
        slots = memory.slots()
        self._ready[number] = memory, slots
        parameters = [f"const {parameter_text(kernel, s, memory, self._dialect)}" for s in slots]
        inline = self._words.workers.inline_function
        self.functions.append(
            "// Whether rows are where bulk copies may begin.\n"
            f"{inline} bool fq_streams_{number}(\n"
            + ",\n".join(f"    {p}" for p in parameters)
            + ") {\n    return "
            + "\n        && ".join(conditions)
            + ";\n}\n"
        )
        lines = [line for loop in loops for line in self._loop(loop, memory, printer)]
        self._types |= printer.types
        all_slots = memory.slots()
        self._filling[number] = memory, all_slots
        parameters = [self._rings.parameters, self._rings.over_parameter]
        parameters += [
            f"const {c.int64} fq_first_{d}, const {c.int64} fq_last_{d}"
            for d in range(kernel.ndim)
        ]
        parameters += [
            f"const {parameter_text(kernel, slot, memory, self._dialect)}" for slot in all_slots
        ]
        arguments = ", ".join(memory.identifier(slot) for slot in slots)
        groups = ThreadGroupLoop(c, code.local_range, self._rings.count)
        self.functions.append(
            "\n".join(
                [
                    "// Fills slots with the rows that a ring's work-groups of a tile read.",
                    f"{c.workers.outlined_function} void fq_fill_{number}(",
                    ",\n".join(f"    {p}" for p in parameters) + ") {",
                    f"    if (!fq_streams_{number}({arguments})) return;",
                    *(f"    {line}" for line in groups.of_ring(lines)),
                    "}\n",
                ]
            )
        )

    def _loop(self, loop: StreamedLoop, memory: Memory, printer: ExpressionPrinter) -> list[str]:
        """Statements that fill slots with the rows of a loop."""
        c, rings = self._words, self._rings
        columns = loop.columns(rings.slot_bytes, rings.size)
        lines, copies, place = ["{"], [], 0
        for k, row in enumerate(loop.rows):
            param = memory.array(row.array)
            nbytes = param.dtype.nbytes
            first = _offset(row, memory, printer)
            address = f"{memory.identifier(Pointer(row.array))} + {nbytes} * ({first})"
            lines.append(f"    const unsigned long long fq_row_{k} = {address};")
            at = f"fq_row_{k} + {nbytes} * fq_chunk"
            copies.append(rings.copied(place, at, f"{nbytes} * fq_length"))
            place += columns * nbytes
        stop = printer.value(loop.stop)
        return [
            *lines,
            f"    const {c.int64} fq_stop_at = {stop};",
            f"    for ({c.int64} fq_chunk = 0; fq_chunk < fq_stop_at; fq_chunk += {columns}) {{",
            f"        const unsigned fq_length = (unsigned)"
            f"{c.minimum('fq_stop_at - fq_chunk', c.literal(columns))};",
            *(f"        {line}" for line in rings.fill(f"{loop.element_bytes} * fq_length")),
            *(f"        {line}" for line in copies),
            *(f"        {line}" for line in rings.filled()),
            "    }",
            "}",
        ]


def _conditions(
    params: Sequence[object],
    loops: Sequence[StreamedLoop],
    memory: Memory,
    printer: ExpressionPrinter,
    c: QueueWords,
    sector: int,
) -> list[str]:
    """When the rows of ``loops`` begin and end at multiples of so many bytes."""
    found = []
    for loop in loops:
        for row in loop.rows:
            param = memory.array(row.array)
            assert isinstance(param, ArrayParam)
            nbytes, last = param.dtype.nbytes, param.ndim - 1
            found.append(f"{memory.identifier(Pointer(row.array))} % {sector} == 0")
            zero = [Text("0", PRIMARY)] * param.ndim
            for d in range(last):
                one = [*zero[:d], Text("1", PRIMARY), *zero[d + 1 :]]
                step = memory.offset(row.array, one).text
                found.append(f"({nbytes} * ({step})) % {sector} == 0")
            stop = printer.value(loop.stop)
            found.append(f"({nbytes} * (long long)({stop})) % {sector} == 0")
    return found


def _offset(row: Row, memory: Memory, printer: ExpressionPrinter) -> str:
    """The place of a row's first element, in elements."""
    indices = [Text(f"({printer.value(index)})", PRIMARY) for index in row.indices]
    return memory.offset(row.array, [*indices, Text("0", PRIMARY)]).text


def slot_lines(
    loops: Sequence[StreamedLoop], rings: Rings, scalars: Scalars, last_group: str
) -> Around:
    """What the iterations of ``loops`` over slots begin and end with, and what follows the last of
    them; ``last_group``: whether the ring's work-group is the last one of its tile."""
    several = tuple(range(rings.together))
    by_chunk: dict[str, tuple[StreamedLoop, Sequence[int | None]]] = {}
    for loop in loops:
        by_chunk[loop.chunk()] = loop, (None,)
        by_chunk[loop.together()] = loop, several

    def around(variable: str, names: Names) -> tuple[list[str], list[str]]:
        if variable == READ:
            return rings.held(last_group), []
        if variable not in by_chunk:
            return [], []
        loop, slots = by_chunk[variable]
        columns, begin = loop.columns(rings.slot_bytes, rings.size), rings.full(len(slots))
        for slot in slots:
            place = 0
            for k, load in enumerate(loop.loads):
                type = scalars.pointer(scalars.storage_name(load.type), "local", constant=True)
                name = names.of(loop.kept(k, slot))
                begin.append(f"{type} const {name} = {rings.row(type, place, slot or 0)};")
                place += columns * load.type.nbytes
        return begin, rings.free(len(slots))

    return around
