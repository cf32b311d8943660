"""Persistent kernels as source text: the queue's protocol around each stage's code.

A worker's first lane takes the ticket and polls counters, all lanes stride over the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.base.target import FloatMode, Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.array_access import Memory, slot_type
from fusionq.codegen.device_source import (
    DeviceSource,
    ExtentArgument,
    Pointer,
    Scalar,
    Slot,
    Stride,
)
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.instruction_loop import (
    NEAR_TABLES,
    loop_head,
    near_tables,
    publication,
    read_again,
    told_memory,
    told_row,
)
from fusionq.codegen.kernel_body import StatementLines, parameter_text
from fusionq.codegen.local_places import worker_bytes
from fusionq.codegen.names import Names
from fusionq.codegen.packed_arguments import head_of, is_packed
from fusionq.codegen.persistent_waits import WaitText
from fusionq.codegen.queue_protocol import protocol, publish_function
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.read_ahead_text import ReadAheadText
from fusionq.codegen.record_text import RecordText, no_records, record_text
from fusionq.codegen.stage_tables import code_bodies, operands_of, unwritten_parameters
from fusionq.codegen.stage_text import LOCAL, StageText
from fusionq.codegen.stream_text import StreamText
from fusionq.codegen.streamed_loops import READY, StreamedLoop, streams_of
from fusionq.ir.nodes import ArrayParam, Const, Kernel, Persistent, ScalarParam, StageCode
from fusionq.ir.types import INT64, UINT8, UINT32, ScalarType
from fusionq.ir.walk import takes_work_groups

_EPOCH = "*fq_epoch"
"""The number of the launch, where workers count them."""


def generate_persistent_kernel(
    kernel: Kernel, body: Persistent, fp: FloatMode, target: Target, dialect: Dialect
) -> DeviceSource:
    """The source of a persistent kernel for ``target``, whose body is ``body``."""
    return _PersistentPrinter(kernel, body, fp, target, dialect).print()


class _PersistentPrinter:
    def __init__(
        self, kernel: Kernel, body: Persistent, fp: FloatMode, target: Target, dialect: Dialect
    ) -> None:
        assert dialect.workers is not None, "the dialect has no persistent kernels"
        workers, target = dialect.workers.fitted(body, target)
        dialect = replace(dialect, workers=workers)
        self.kernel = kernel
        self.body = body
        self.fp = fp
        self.target = target
        self.dialect = dialect
        self.words = QueueWords.of(dialect)
        self.workers = self.words.workers
        self.memory = Memory(kernel, _Given(dialect.unit.is_reserved))
        self.helpers = Helpers(dialect)
        self.types: set[ScalarType] = {INT64, UINT32}
        self.functions: set[str] = set()
        self.epoch = _EPOCH
        if not self.workers.counts_launches:
            self.epoch = self.memory.identifier(Scalar(body.epoch))
        self.dims = max(code.kernel.ndim for code in body.codes)
        """The most dimensions of a stage."""
        self.records = self._records()
        self.local_bytes = worker_bytes(body, target.worker_size)
        self.bodies = code_bodies(body)
        self.operands = operands_of(body)
        self.near = self.workers.near_words(body, target)
        """Words of the memory that each worker has for tables."""
        self.given: dict[int, str] = {}
        """What a worker writes into each cell of its table."""
        at_once = self.workers.loads_at_once(body, target)
        self.stages = StageText(target, dialect, self.words, self.helpers, at_once)
        self.waits = WaitText(body, self.dims, dialect, target, self.helpers, self.types)
        self.streams = self._streams()
        streamed = () if self.streams is None else self.streams.bodies
        self.ahead = ReadAheadText(body, dialect, target, self.helpers, self.types, streamed)

    def print(self) -> DeviceSource:
        body, memory = self.body, self.memory
        typedefs: dict[str, None] = {}
        functions: list[str] = []
        cases: list[str] = []
        for number in range(len(set(self.bodies))):
            code = body.codes[self.bodies.index(number)]
            unwritten = unwritten_parameters(body, number)
            lines, loop = self.stages.lines(code, unwritten, self._loops(number))
            typedefs.update(dict.fromkeys(lines.typedefs))
            self.types |= lines.types
            self.functions |= lines.functions
            functions.append("\n".join(self._function(number, code, lines, loop)))
            cases += self._case(number, code, lines)
        waits = self.waits.functions()
        head, tail = self._head(), self._tail()
        memory.identifier(Scalar(body.spin_limit))
        entry_point = Names(self.dialect.unit.is_reserved).fresh(self.kernel.name)
        slots = memory.slots()
        packed = is_packed(len(slots), self.kernel, self.dialect)
        given = head_of(
            [parameter_text(self.kernel, slot, memory, self.dialect) for slot in slots],
            packed,
        )
        text = [
            *self.dialect.unit.prologue(self.types, self.fp, self.functions),
            "",
            *(f"{line}\n" for line in typedefs),
            *(line for helper in self.helpers.texts for line in (*helper.splitlines(), "")),
            protocol(self.words, self.target),
            publish_function(self.words, self.dims),
            *([] if self.workers.rings is None else [self.workers.rings.functions]),
            *filter(None, (self.records.helpers,)),
            *waits,
            *self.ahead.functions,
            *([] if self.streams is None else self.streams.functions),
            "\n\n".join(functions),
            *given.definition,
            f"{self.workers.kernel_qualifier(self.target)} {entry_point}(",
            ",\n".join(f"    {text}" for text in given.parameters) + ") {",
            *(f"    {line}" for line in given.first),
            *self._local_memory(),
            head,
            f"        switch ((int)fq_record[{q.BODY}]) {{",
            *cases,
            tail,
        ]
        worker = self.workers.worker_block(body, self.target)
        types = frozenset(self.types)
        return DeviceSource(
            "\n".join(text), entry_point, slots, types, worker=worker, is_packed=packed
        )

    def _head(self) -> str:
        """The start of the kernel's body, up to the work for an instruction."""
        c, body, memory = self.words, self.body, self.memory
        i64, tables, control, worker = c.int64, c.tables, c.control, self.workers.worker
        schedule = memory.identifier(Pointer(body.schedule))
        given_control = memory.identifier(Pointer(body.control))
        near = near_tables(c, self.near, self.operands.count, self.target.worker_size)
        spin_limit = memory.identifier(Scalar(body.spin_limit))
        wait = self.waits.call(self.epoch, spin_limit)
        listed = self.waits.listed(self.epoch, spin_limit)
        ahead = self.ahead.lines(self._operands)
        told = told_memory(c, self.dims, self.body.records is not None, bool(listed))
        return f"""\
    {tables} const fq_schedule = ({tables}){schedule};
    {control} const fq_control = ({control}){given_control};
    const int fq_lane = {self.workers.lane};
{self._counted()}\
    if (fq_lane == 0) fq_count_at_work(fq_control, 1);
    const bool fq_static = fq_follows_assignment(fq_schedule, fq_control, {self.epoch}, fq_lane);
    const {i64} fq_assigned = fq_schedule[{q.ASSIGNMENT}];
    {i64} fq_next = fq_schedule[{q.STARTS}], fq_stop = 0;
    if (fq_static) {{
        fq_stop = fq_schedule[fq_next + {worker} + 1];
        fq_next = fq_schedule[fq_next + {worker}];
    }}
{near}{self._given()}{told}{self._filling()}{self.records.start}\
{loop_head(c, self.epoch, self._tile(), ahead, wait, listed, self.records, self.dims)}"""

    def _counted(self) -> str:
        """What gets the number of the launch, where workers count them.  It lies in the worker's
        memory: in a register it would live through the work of all tiles."""
        c = self.words
        if not self.workers.counts_launches:
            return ""
        pointer = c.scalars.pointer(c.uint32, "local")
        lines = [
            *self.workers.local_memory("fq_epoch_bytes", 4),
            f"{pointer} const fq_epoch = ({pointer})fq_epoch_bytes;",
            f"if (fq_lane == 0) {_EPOCH} = fq_this_launch(fq_control);",
            f"{self.workers.barrier};",
        ]
        return "".join(f"    {line}\n" for line in lines)

    def _given(self) -> str:
        """What fills a worker's table, in which stages with one body find their arguments."""
        if not self.given:
            return ""
        c, lines = self.words, q.table_lines(self.operands.count, self.target.control_line)
        table = c.scalars.pointer(c.int64, "global")
        line = f"fq_schedule[{q.GIVEN}] + {lines} * {self.workers.worker}"
        place = "fq_near" if self.near else f"({table})fq_word(fq_control, {line}, 0)"
        stores = [f"        {text}" for _, text in sorted(self.given.items())]
        return "\n".join(
            [
                f"    {table} const fq_given = {place};",
                "    if (fq_lane == 0) {",
                *stores,
                "    }",
                f"    {self.workers.barrier};\n",
            ]
        )

    def _streams(self) -> StreamText | None:
        """How rows come to rings, where the workers have some."""
        rings = self.workers.rings
        if rings is None:
            return None
        streams = streams_of(self.body, self.target.worker_size, rings.slot_bytes)
        assert streams is not None and streams.size == rings.size
        return StreamText(self.body, streams, rings, self.dialect, self.helpers, self.types)

    def _loops(self, number: int) -> tuple[StreamedLoop, ...]:
        """The loops of a body over rows that rings stream."""
        return () if self.streams is None else self.streams.loops(number)

    def _filling(self) -> str:
        """What declares the rings, behind the tables, and fills them."""
        rings = self.workers.rings
        if rings is None or self.streams is None:
            return ""
        declared = rings.declared(NEAR_TABLES, 8 * self.near)
        lines = [*declared, *self.streams.filling(self._tile(), self._operands)]
        return "".join(f"    {line}\n" for line in lines)

    def _tile(self) -> list[str]:
        """The work-items of the instruction's tile.  Where one lane works them out for all, in 32
        bits: a division in 64 takes many times as long."""
        i64 = self.words.int64
        narrow = f"({self.words.uint32})" if self.workers.first_lane_takes else ""
        dims = range(self.dims)
        lines = []
        rest = f"{narrow}fq_tile"
        for d in reversed(dims):
            count = f"{narrow}fq_record[{q.COUNT + d}]"
            lines.append(f"const {i64} fq_at_{d} = {rest if d == 0 else f'{rest} % {count}'};")
            rest = f"({rest} / {count})"
        for d in dims:
            size = f"fq_record[{q.TILE + d}]"
            lines.append(f"const {i64} fq_first_{d} = fq_at_{d} * {size};")
            end = self.words.minimum(f"fq_first_{d} + {size}", f"fq_record[{q.EXTENT + d}]")
            lines.append(f"const {i64} fq_last_{d} = {end} - 1;")
        return lines

    def _tail(self) -> str:
        """The end of the kernel's body, after an instruction's work."""
        barrier = self.workers.barrier
        behind = f"        {barrier};\n"
        if self.workers.first_lane_takes:
            behind, barrier = "", self.workers.group_barrier
        leaves = ""
        if self.workers.counts_launches:
            leaves = f"    if (fq_lane == 0) fq_leave(fq_schedule, fq_control, {self.epoch});\n"
        last = f"fq_static && fq_lane == 0 && {self.workers.worker} == 0"
        over = ""
        if self.workers.rings is not None:
            over = f"    if (fq_lane == 0) {self.workers.rings.over}\n"
        again = "".join(f"        {line}\n" for line in read_again(self.words))
        return f"""\
        }}
{again}        {barrier};
{self.records.publish}{behind}    }}
{over}\
    if ({last}) fq_skip_tickets(fq_schedule, fq_control);
    if (fq_lane == 0) fq_count_at_work(fq_control, -1);
{leaves}}}
"""

    def _records(self) -> RecordText:
        """The text around the queue's protocol that reads the clock, where there are records."""
        records = self.body.records
        published = publication(self.words, self.target.worker_size)
        if records is None:
            return no_records(published)
        self.functions.add(records.clock)
        return record_text(
            self.words,
            published,
            self.dialect.items.device_function(records.clock),
            self.memory.identifier(Pointer(records.buffer)),
            self.memory.identifier(Scalar(records.base)),
            self.memory.identifier(Scalar(records.rows)),
            records,
            told_row(self.dims),
        )

    # ------------------------------------------------------------------------ stage codes
    def _local_memory(self) -> list[str]:
        """The declaration of the memory that a stage's local arrays lie in."""
        if not self.local_bytes:
            return []
        return [f"    {line}" for line in self.workers.local_memory(LOCAL, self.local_bytes)]

    def _function(
        self, number: int, code: StageCode, lines: StatementLines, loop: list[str]
    ) -> list[str]:
        i64 = self.words.int64
        parameters = ["const int fq_lane"]
        if takes_work_groups(code.kernel):
            scalars = self.dialect.scalars
            pool = scalars.pointer(scalars.storage_name(UINT8), "local")
            parameters += [f"{pool} const {LOCAL}"] if self.local_bytes else []
        parameters += [
            f"const {i64} fq_first_{d}, const {i64} fq_last_{d}" for d in range(code.kernel.ndim)
        ]
        if self.body.records is not None:
            parameters.append(f"const {i64} fq_row")
        if self._loops(number):
            assert self.workers.rings is not None
            parameters += [f"const bool {READY}", self.workers.rings.parameter]
        arrays = self._arrays(number, code, lines)
        for slot in lines.slots:
            own = f"const {parameter_text(code.kernel, slot, lines.memory, self.dialect)}"
            parameters.append(arrays[slot][0] if slot in arrays else own)
        return [
            f"{self.workers.inline_function} void fq_stage_{number}(",
            ",\n".join(f"    {p}" for p in parameters) + ") {",
            *(f"    {line}" for line in lines.pointers if not arrays),
            *loop,
            "}",
        ]

    def _arrays(
        self, number: int, code: StageCode, lines: StatementLines
    ) -> dict[Slot, tuple[str, str]]:
        """The parameters of a body's function that are arrays, each declared and made of its
        address; none where the function takes addresses."""
        scalars = self.dialect.scalars
        if not scalars.array_parameters:
            return {}
        unwritten = unwritten_parameters(self.body, number)
        found: dict[Slot, tuple[str, str]] = {}
        for slot, declared in lines.array_parameters.items():
            param = code.kernel.param(slot.param)
            assert isinstance(param, ArrayParam)
            value = scalars.address(lines.pointer_types[slot], lines.memory.identifier(slot))
            read_only = None
            if param.alignment is None and slot.param in unwritten:
                read_only = scalars.read_only(scalars.storage_name(param.dtype))
            if read_only is not None:
                type, text = read_only
                self.helpers.add(type.partition("<")[0], text)
                declared, value = f"const {type} {lines.names.of(slot.param)}", f"{{{value}}}"
            found[slot] = declared, f"{declared} = {value};"
        return found

    def _case(self, number: int, code: StageCode, lines: StatementLines) -> list[str]:
        """What a worker does for a tile of the stages with a body."""
        arguments = ["fq_lane"]
        if takes_work_groups(code.kernel) and self.local_bytes:
            arguments.append(LOCAL)
        arguments += [f"fq_first_{d}, fq_last_{d}" for d in range(code.kernel.ndim)]
        arguments += [self.records.row_of_tile] if self.body.records is not None else []
        ready: list[str] = []
        if self._loops(number):
            assert self.workers.rings is not None and self.streams is not None
            arguments += [READY, self.workers.rings.argument]
            ready = self.streams.ready(number, self._operands)
        arrays = self._arrays(number, code, lines)
        arguments += [
            lines.names.of(slot.param) if slot in arrays else lines.memory.identifier(slot)
            for slot in lines.slots
        ]
        pad = " " * 12
        return [
            f"        case {number}: {{",
            *(f"{pad}{line}" for line in self._operands(number, code, lines.memory, lines.slots)),
            *(f"{pad}{made}" for _, made in arrays.values()),
            *(f"{pad}{line}" for line in ready),
            f"{pad}fq_stage_{number}({', '.join(arguments)});",
            f"{pad}break;",
            "        }",
        ]

    def _operands(
        self, number: int, code: StageCode, memory: Memory, slots: Sequence[Slot]
    ) -> list[str]:
        """Declarations of the operands of stages with a body, whose parameters are those of
        ``code``: the kernel's parameters where they are the same for all stages, else from the
        worker's table."""
        position = {p.name: k for k, p in enumerate(code.kernel.params)}
        uses = [stage for stage in self.body.stages if self.bodies[stage.code] == number]
        varying, scalars = self.operands.varying[number], self.dialect.scalars
        lines: list[str] = []
        for slot in slots:
            place = position[slot.param]
            type = slot_type(code.kernel, slot)
            pointer = scalars.pointer(scalars.storage_name(type), "global")
            own = self._cell(code.kernel, slot)
            known = {self._known(_renamed(slot, stage.arguments[place])) for stage in uses}
            constant = known.pop() if len(known) == 1 else None
            if constant is not None:
                value = scalars.literal(Const(INT64, constant)).text
            elif place not in varying:
                value = self.memory.identifier(_renamed(slot, uses[0].arguments[place]))
            else:
                value = f"*({pointer})(fq_given + fq_operands[{varying.index(place)}] + {own})"
                for name in dict.fromkeys(stage.arguments[place] for stage in uses):
                    cell = self.operands.cells[name] + own
                    given = self.memory.identifier(_renamed(slot, name))
                    self.given[cell] = f"*({pointer})(fq_given + {cell}) = {given};"
            declared = parameter_text(code.kernel, slot, memory, self.dialect)
            lines.append(f"const {declared} = {value};")
        if varying:
            table = f"{self.words.tables} const fq_operands"
            lines.insert(0, f"{table} = fq_stages + fq_record[{q.OPERANDS}];")
        return lines

    def _known(self, slot: Slot) -> int | None:
        """The value of an argument of the persistent kernel where it has one only."""
        param = self.kernel.param(slot.param)
        match slot, param:
            case ExtentArgument(_, dim), ArrayParam():
                return param.extent(dim)
            case Scalar(), ScalarParam(bounds=(low, high)) if low == high:
                return low
        return None

    def _cell(self, kernel: Kernel, slot: Slot) -> int:
        """The cell of an argument among those of its parameter."""
        match slot:
            case ExtentArgument():
                return 1 + slot.dim
            case Stride():
                param = kernel.param(slot.param)
                assert isinstance(param, ArrayParam)
                return 1 + param.ndim + slot.dim
        return 0


class _Given(Names):
    """Names for the persistent kernel's parameters that are no stage's own."""

    def fresh(self, wanted: str) -> str:
        return super().fresh(f"given_{wanted}")


def _renamed(slot: Slot, param: str) -> Slot:
    return replace(slot, param=param)
