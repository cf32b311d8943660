"""What a worker reads ahead for its next instruction, as source text: of arrays that no stage
writes the elements that the instruction's tile reads, row by row, up to a number of bytes.

It asks for memory and takes nothing: no result depends on it.  It stays inside of the arrays, so
boxes need not be right.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.array_access import Memory
from fusionq.codegen.device_source import Pointer, Slot
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.kernel_body import parameter_text
from fusionq.codegen.names import Names
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.stage_tables import code_bodies
from fusionq.codegen.tile_items import TileItems
from fusionq.ir.nodes import ArrayParam, Persistent, StageCode
from fusionq.ir.text import PRIMARY, Text
from fusionq.ir.tile_footprint import Box, read_ahead
from fusionq.ir.types import ScalarType

Operands = Callable[[int, StageCode, Memory, Sequence[Slot]], list[str]]
"""Declares the operands of the stages with a body: its number, a code, its memory and slots."""


class ReadAheadText:
    """What the workers of the persistent kernel with ``body`` read ahead on ``target``, but for the
    bodies ``streamed``; what the text needs is added to ``helpers`` and ``types``."""

    def __init__(
        self,
        body: Persistent,
        dialect: Dialect,
        target: Target,
        helpers: Helpers,
        types: set[ScalarType],
        streamed: Collection[int] = (),
    ) -> None:
        self._dialect = dialect
        self._words = QueueWords.of(dialect)
        self._helpers = helpers
        self._types = types
        self.functions: list[str] = []
        self._calls: list[tuple[int, StageCode, Memory, tuple[Slot, ...]]] = []
        if not target.device.reads_ahead:
            return
        bodies, stages = code_bodies(body), read_ahead(body)
        for number in set(bodies).difference(streamed):
            code = body.codes[bodies.index(number)]
            of_body = [
                ahead.boxes
                for ahead, stage in zip(stages, body.stages, strict=True)
                if bodies[stage.code] == number
            ]
            boxes = {k: b for k, b in of_body[0].items() if all(k in other for other in of_body)}
            if boxes:
                self._add(number, code, boxes)

    def lines(self, operands: Operands) -> list[str]:
        """The calls, before an instruction's waits."""
        if not self._calls:
            return []
        lines = [f"if ((int)fq_record[{q.WAITS}]) switch ((int)fq_record[{q.BODY}]) {{"]
        for number, code, memory, slots in self._calls:
            dims = range(code.kernel.ndim)
            arguments = ["fq_lane", f"fq_stages[{q.AHEAD}]"]
            arguments += [f"fq_first_{d}, fq_last_{d}" for d in dims]
            arguments += [memory.identifier(slot) for slot in slots]
            lines += [
                f"case {number}: {{",
                *(f"    {line}" for line in operands(number, code, memory, slots)),
                f"    fq_read_ahead_{number}({', '.join(arguments)});",
                "    break;",
                "}",
            ]
        return [*lines, "}"]

    def _add(self, number: int, code: StageCode, boxes: dict[str, Box]) -> None:
        kernel, i64 = code.kernel, self._words.int64
        names = Names(self._dialect.unit.is_reserved)
        for param in kernel.params:
            names.of(param.name)
        memory = Memory(kernel, names)
        items = TileItems(self._dialect.items, kernel.ndim)
        dialect = replace(self._dialect, items=items)
        printer = ExpressionPrinter(dialect, names, memory, self._helpers, Intervals(kernel))
        lines = []
        for param in kernel.params:
            if param.name in boxes:
                assert isinstance(param, ArrayParam)
                lines += self._array(param, boxes[param.name], memory, printer)
        self._types |= printer.types
        slots = memory.slots()
        parameters = ["const int fq_lane", f"{i64} fq_left"]
        parameters += [
            f"const {i64} fq_first_{d}, const {i64} fq_last_{d}" for d in range(kernel.ndim)
        ]
        parameters += [
            f"const {parameter_text(kernel, slot, memory, self._dialect)}" for slot in slots
        ]
        self._calls.append((number, code, memory, slots))
        self.functions.append(
            "\n".join(
                [
                    "// Asks for what the tile reads of arrays that no stage writes.",
                    f"{self._words.workers.outlined_function} void fq_read_ahead_{number}(",
                    ",\n".join(f"    {p}" for p in parameters) + ") {",
                    *(f"    {line}" for line in lines),
                    "}\n",
                ]
            )
        )

    def _array(
        self, param: ArrayParam, box: Box, memory: Memory, printer: ExpressionPrinter
    ) -> list[str]:
        """Statements that ask for the rows of a box, of neighbours in the last dimension, until
        ``fq_left`` bytes have been."""
        c, i64 = self._words, self._words.int64
        dims, lanes = range(param.ndim), c.workers.pollers
        lines = []
        for d, (low, high) in enumerate(box):
            low_text = c.maximum(f"({i64})({printer.value(low)})", c.literal(0))
            end = f"({i64})({memory.extent(param.name, d).text} - 1)"
            high_text = c.minimum(f"({i64})({printer.value(high)})", end)
            lines += [
                f"const {i64} low_{d} = {low_text};",
                f"const {i64} count_{d} = {high_text} - low_{d} + 1;",
            ]
        last = param.ndim - 1
        rows = " * ".join(f"count_{d}" for d in range(last)) or c.literal(1)
        at, rest = [Text(f"low_{last}", PRIMARY)], "row"
        for d in reversed(range(last)):
            step = rest if d == 0 else f"{rest} % count_{d}"
            at.insert(0, Text(f"(low_{d} + {step})", PRIMARY))
            rest = f"({rest} / count_{d})"
        place = f"{memory.offset(param.name, at).text}"
        address = f"{memory.identifier(Pointer(param.name))} + {param.dtype.nbytes} * ({place})"
        there = " && ".join([*(f"count_{d} > 0" for d in dims), "fq_left > 0"])
        asked = c.minimum("length", "fq_left")
        return [
            f"{{  // {param.name}",
            *(f"    {line}" for line in lines),
            f"    if ({there}) {{",
            f"        const {i64} length = {param.dtype.nbytes} * count_{last};",
            f"        const {i64} nbytes = {asked};",
            f"        const {i64} rows = {c.minimum(rows, 'fq_left / nbytes')};",
            f"        for ({i64} row = fq_lane; row < rows; row += {lanes})",
            f"            {c.workers.read_ahead(address, 'nbytes')}",
            "        fq_left -= rows * nbytes;",
            "    }",
            "}",
        ]
