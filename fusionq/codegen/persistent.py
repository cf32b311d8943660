"""Persistent kernels as source text: the queue's protocol around each stage's code.

A worker is a work-group of one sub-group, so that control flow is uniform: its first lane takes
the ticket and waits, all lanes stride over the tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fusionq.base.target import FloatMode, Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.device_source import DeviceSource, Pointer, Scalar, Slot
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.interior import parted
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.kernel_source import StatementLines, parameter_text, statement_lines
from fusionq.codegen.memory import Memory
from fusionq.codegen.names import Names
from fusionq.codegen.queue_protocol import STALLED, protocol, wait_function
from fusionq.codegen.record_text import NO_RECORDS, RecordText, record_text
from fusionq.codegen.scoping import Body
from fusionq.codegen.tile_loop import InnerPart, InTile, tile_loop
from fusionq.ir.nodes import Expr, Kernel, Persistent, StageCode
from fusionq.ir.types import INT64, UINT32, ScalarType

_HEAD = """\
__attribute__((intel_reqd_sub_group_size({lanes}), reqd_work_group_size({worker}, 1, 1)))
{qualifier} {name}(
{parameters}) {{
    __global const long* const fq_schedule = (__global const long*){schedule};
    __global atomic_uint* const fq_control = (__global atomic_uint*){control};
    const int fq_lane = get_sub_group_local_id();
    const bool fq_static = fq_follows_assignment(fq_schedule, fq_control, {epoch}, fq_lane);
    long fq_next = fq_schedule[{starts}], fq_stop = 0;
    if (fq_static) {{
        fq_stop = fq_schedule[fq_next + get_group_id(0) + 1];
        fq_next = fq_schedule[fq_next + get_group_id(0)];
    }}
{start}    for (;;) {{
        const long fq_instruction = fq_static
            ? (fq_next < fq_stop ? fq_schedule[fq_schedule[{assignment}] + fq_next++] : -1)
            : fq_ticket(fq_schedule, fq_control, {epoch}, fq_lane);
        if (fq_instruction < 0 || fq_given_up(fq_control, fq_lane)) break;
        const int fq_stage = (int)(fq_instruction >> {bits});
        const long fq_tile = fq_instruction & ((1L << {bits}) - 1);
        __global const long* const fq_record = fq_schedule + {header} + {record} * fq_stage;
        int fq_waited = 0;
{taken}        switch ((int)fq_record[{code}]) {{
"""

_TAIL = """\
        }}
        if (fq_waited >= {stalled}) break;
        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
{publish}        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
    }}
    if (fq_static && fq_lane == 0 && get_group_id(0) == 0) fq_skip_tickets(fq_schedule, fq_control);
}}
"""


@dataclass(frozen=True)
class _Code:
    """One stage code's text: its function, its slots, and a call for slots' values."""

    function: list[str]
    case: list[str]
    slots: tuple[Slot, ...]


def generate_persistent(
    kernel: Kernel, body: Persistent, fp: FloatMode, target: Target, dialect: Dialect
) -> DeviceSource:
    """The source of a persistent kernel on ``target``, whose body is ``body``."""
    return _PersistentPrinter(kernel, body, fp, target, dialect).print()


class _PersistentPrinter:
    def __init__(
        self, kernel: Kernel, body: Persistent, fp: FloatMode, target: Target, dialect: Dialect
    ) -> None:
        self.kernel = kernel
        self.body = body
        self.fp = fp
        self.target = target
        self.dialect = dialect
        self.memory = Memory(kernel, _Given(dialect))
        self.helpers = Helpers(dialect)
        self.types: set[ScalarType] = {INT64, UINT32}
        self.functions: set[str] = set()
        self.records = self._records()

    def print(self) -> DeviceSource:
        body, memory = self.body, self.memory
        typedefs: dict[str, None] = {}
        functions: list[str] = []
        cases: list[str] = []
        for number, code in enumerate(body.codes):
            lines, loop = self._lines(code)
            typedefs.update(dict.fromkeys(lines.typedefs))
            self.types |= lines.types
            self.functions |= lines.functions
            functions += [*self._function(number, code, lines, loop), ""]
            cases += self._case(number, code, lines)
        own = {
            "schedule": memory.identifier(Pointer(body.schedule)),
            "control": memory.identifier(Pointer(body.control)),
            "epoch": memory.identifier(Scalar(body.epoch)),
        }
        memory.identifier(Scalar(body.patience))
        entry_point = Names(self.dialect).fresh(self.kernel.name)
        records = self.records
        slots = memory.slots()
        head = _HEAD.format(
            lanes=self.target.sub_group_size, worker=self.target.worker_size,
            qualifier=self.dialect.kernel_qualifier, name=entry_point,
            parameters=",\n".join(f"    {parameter_text(self.kernel, s, memory, self.dialect)}"
                                  for s in slots),
            starts=q.STARTS, assignment=q.ASSIGNMENT, bits=q.TILE_BITS, header=q.HEADER,
            record=q.RECORD, code=q.CODE, start=records.start, taken=records.taken, **own,
        )  # fmt: skip
        text = [
            *self.dialect.prologue(self.types, self.fp, self.functions),
            "",
            *(f"{line}\n" for line in typedefs),
            *(line for helper in self.helpers.texts for line in (*helper.splitlines(), "")),
            protocol(self.target),
            *filter(None, (records.helpers,)),
            *(wait_function(ndim) for ndim in sorted(self._waited_dims())),
            *functions,
        ]
        source = "\n".join(text) + head + "".join(f"{line}\n" for line in cases)
        source += _TAIL.format(publish=records.publish, stalled=STALLED)
        return DeviceSource(source, entry_point, slots, frozenset(self.types))

    def _records(self) -> RecordText:
        """The text around the queue's protocol that looks at the clock, where there is to be."""
        records = self.body.records
        if records is None:
            return NO_RECORDS
        self.functions.add(records.clock)
        return record_text(
            self.dialect.device_function(records.clock),
            self.memory.identifier(Pointer(records.buffer)),
            self.memory.identifier(Scalar(records.base)),
            self.memory.identifier(Scalar(records.rows)),
            records,
        )

    def _waited_dims(self) -> set[int]:
        """The numbers of dimensions of the stages whose boxes are waited for."""
        body = self.body
        return {
            len(wait.bounds)
            for code in body.codes
            for wait in code.waits
            if wait.bounds is not None
        }

    # ------------------------------------------------------------------------ stage codes
    def _lines(self, code: StageCode) -> tuple[StatementLines, list[str]]:
        """A stage code's statements, and its loop over a tile."""
        kernel = code.kernel
        body, inner = parted(code)
        bodies: list[Body] = [body]
        values: tuple[Expr, ...] = ()
        if inner is not None:
            bodies.append(inner.body)
            values = (*inner.lows, *inner.highs, *inner.where)
        dialect = InTile(self.dialect, code.local_range, kernel.ndim)
        lines = statement_lines(kernel, bodies, dialect, self.helpers, values)
        texts = [[*lines.arrays, *body] for body in lines.bodies]
        lanes = self.target.worker_size
        if inner is None:
            return lines, tile_loop(kernel.ndim, lanes, texts[0])
        edges = len(inner.lows), len(inner.lows) + len(inner.highs)
        bounds = lines.values[: edges[0]], lines.values[edges[0] : edges[1]]
        where = lines.values[edges[1] :]
        return lines, tile_loop(kernel.ndim, lanes, texts[0], InnerPart(*bounds, where, texts[1]))

    def _function(
        self, number: int, code: StageCode, lines: StatementLines, loop: list[str]
    ) -> list[str]:
        parameters = ["const int fq_lane", *self._bounds_parameters(code)]
        if self.body.records is not None:
            parameters.append("const long fq_row")
        parameters += self._slot_parameters(code, lines.memory, lines.slots)
        return [
            f"__attribute__((always_inline)) static void fq_stage_{number}(",
            ",\n".join(f"    {p}" for p in parameters) + ") {",
            *(f"    {line}" for line in lines.pointers),
            *loop,
            "}",
        ]

    @staticmethod
    def _bounds_parameters(code: StageCode) -> list[str]:
        dims = range(code.kernel.ndim)
        return [f"const long fq_first_{d}, const long fq_last_{d}" for d in dims]

    def _slot_parameters(
        self, code: StageCode, memory: Memory, slots: tuple[Slot, ...]
    ) -> list[str]:
        return [f"const {parameter_text(code.kernel, s, memory, self.dialect)}" for s in slots]

    def _case(self, number: int, code: StageCode, lines: StatementLines) -> list[str]:
        ndim = code.kernel.ndim
        memory, names = lines.memory, lines.names
        printer = ExpressionPrinter(
            InTile(self.dialect, code.local_range, ndim), names, memory, self.helpers,
            Intervals(code.kernel),
        )  # fmt: skip
        extents = [printer.value(e) for e in code.extents]
        waits = []
        for position, wait in enumerate(code.waits):
            bounds = [f"{printer.value(a)}, {printer.value(b)}" for a, b in wait.bounds or ()]
            waits.append((position, wait.bounds is not None, bounds))
        slots = memory.slots()  # of the body, the extents and the bounds
        self.types |= printer.types
        pad = " " * 12
        out = [f"        case {number}: {{"]
        out += [f"{pad}{line}" for line in self._operands(number, code, memory, slots)]
        rest = "fq_tile"
        for d in reversed(range(ndim)):
            count = f"fq_record[{q.COUNT + d}]"
            at = rest if d == 0 else f"{rest} % {count}"
            out.append(f"{pad}const long fq_at_{d} = {at};")
            rest = f"({rest} / {count})"
        for d in range(ndim):
            size = f"fq_record[{q.TILE + d}]"
            out.append(f"{pad}const long fq_first_{d} = fq_at_{d} * {size};")
            end = f"min(fq_first_{d} + {size}, (long)({extents[d]}))"
            out.append(f"{pad}const long fq_last_{d} = {end} - 1;")
        for position, boxed, bounds in waits:
            head = (
                f"fq_schedule, fq_control, {self.memory.identifier(Scalar(self.body.epoch))}, "
                f"{self.memory.identifier(Scalar(self.body.patience))}, fq_instruction, fq_lane, "
                f"{self._producer(number, position)}"
            )
            call = (
                f"fq_wait_box_{len(bounds)}({head}, {', '.join(bounds)})"
                if boxed
                else f"fq_wait_all({head})"
            )
            out.append(f"{pad}if (fq_waited < {STALLED}) fq_waited |= {call};")
        if waits:
            out.append(f"{pad}fq_waited = sub_group_broadcast(fq_waited, 0);")
            out.append(f"{pad}if (fq_waited >= {STALLED}) break;")
            out.append(f"{pad}sub_group_barrier(CLK_GLOBAL_MEM_FENCE);")
        out += [f"{pad}{line}" for line in self.records.ready.splitlines()]
        arguments = ["fq_lane"]
        arguments += [f"fq_first_{d}, fq_last_{d}" for d in range(ndim)]
        arguments += ["fq_row"] if self.body.records is not None else []
        arguments += [memory.identifier(s) for s in lines.slots]
        out.append(f"{pad}fq_stage_{number}({', '.join(arguments)});")
        out += [f"{pad}break;", "        }"]
        return out

    def _producer(self, number: int, position: int) -> str:
        """The stage that a wait is about, by the stage that waits."""
        uses = {
            k: stage.producers[position]
            for k, stage in enumerate(self.body.stages)
            if stage.code == number
        }
        return _chosen(uses)

    def _operands(
        self, number: int, code: StageCode, memory: Memory, slots: tuple[Slot, ...]
    ) -> list[str]:
        """Declarations of a code's operands, from the persistent kernel's parameters."""
        position = {p.name: k for k, p in enumerate(code.kernel.params)}
        uses = [(k, s) for k, s in enumerate(self.body.stages) if s.code == number]
        lines: list[str] = []
        varying: list[tuple[str, list[str]]] = []
        for slot in slots:
            given = [
                self.memory.identifier(_renamed(slot, stage.arguments[position[slot.param]]))
                for _, stage in uses
            ]
            identifier = memory.identifier(slot)
            declared = parameter_text(code.kernel, slot, memory, self.dialect)
            if len(set(given)) == 1:
                lines.append(f"const {declared} = {given[0]};")
            else:
                lines.append(f"{declared};")
                varying.append((identifier, given))
        if varying:
            groups: dict[tuple[str, ...], list[int]] = {}
            for k, (stage, _) in enumerate(uses):
                groups.setdefault(tuple(given[k] for _, given in varying), []).append(stage)
            *others, last = groups.items()
            lines.append("switch (fq_stage) {")
            for values, stages in others:
                lines.append("".join(f"case {s}: " for s in stages).rstrip())
                lines += [f"    {_assigned(varying, values)} break;"]
            lines += ["default:", f"    {_assigned(varying, last[0])}", "}"]
        return lines


class _Given(Names):
    """Names for the persistent kernel's parameters that are no stage's own."""

    def fresh(self, wanted: str) -> str:
        return super().fresh(f"given_{wanted}")


def _assigned(varying: list[tuple[str, list[str]]], values: tuple[str, ...]) -> str:
    return " ".join(f"{name} = {v};" for (name, _), v in zip(varying, values, strict=True))


def _chosen(uses: Mapping[int, int]) -> str:
    """The producer as an expression over the stage: most stages wait for the one before."""
    distances = {stage - producer for stage, producer in uses.items()}
    if len(distances) == 1:
        return f"fq_stage - {distances.pop()}"
    text = ""
    *others, last = sorted(uses)
    for stage in others:
        text += f"fq_stage == {stage} ? {uses[stage]} : "
    return f"({text}{uses[last]})"


def _renamed(slot: Slot, param: str) -> Slot:
    return replace(slot, param=param)
