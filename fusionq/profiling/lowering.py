"""Records become clock reads and stores into a buffer.

    record_stage_start("0: mul")  →  if group < 1048576:                    # there is room
                                         if first_sub_group():
                                             if leads_sub_group():
                                                 record_time = clock()
                                                 records[record_base + …] = record_time

One work-item of a group records, so that the others' vector code is left alone: what holds for the
whole group is asked first, since the compiler can ask that outside its loop over work-items, then
what holds for a whole sub-group.  Records at the same place share one clock read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from fusionq.base.target import Target
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    AtomicOp,
    Binary,
    BinaryOp,
    Block,
    Call,
    Clock,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Param,
    Record,
    ScalarParam,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.range_guard import RangeGuard, range_guard
from fusionq.ir.types import BOOL, INT64
from fusionq.ir.verifier import verify
from fusionq.ir.walk import rewrite_body, statements
from fusionq.profiling.layout import Key, key_of, layout_of
from fusionq.profiling.regions import (
    AGGREGATE_FIELDS,
    Overflow,
    RecordLayout,
    Slot,
)

RECORDS, BASE = "records", "record_base"
"""The parameters that lowering adds, in this order: the buffer (int64), and the launch's first
word in it.  Each parameter makes a launch slower by a microsecond."""


@dataclass(frozen=True)
class Lowered:
    """A kernel without records that writes them to its parameters ``extra``."""

    kernel: Kernel
    layout: RecordLayout
    extra: tuple[str, ...]


def without_records(kernel: Kernel, keep: Collection[str] = ()) -> Kernel:
    """``kernel`` as if nobody had asked but for the kinds ``keep``."""

    def kept(stmt: Stmt) -> tuple[Stmt, ...]:
        return () if isinstance(stmt, Record) and stmt.kind not in keep else (stmt,)

    return replace(kernel, body=rewrite_body(kernel.body, stmt=kept))


def lower_records(
    kernel: Kernel,
    headings: dict[str, int],
    *,
    overflow: Overflow,
    occurrences: int,
    buffer_words: int,
    target: Target,
    every: int = 1,
    clock: Clock | None = "clock",
) -> Lowered:
    """Lower the records of ``kernel``; ``headings`` gives the submission of each block's heading.

    ``occurrences``: how many of a region in a loop of unknown length are kept for each work-group.
    ``buffer_words``: room for the records of a launch.  One work-group in ``every`` records.
    ``clock``: the device function that reads the clock; without one only counters are kept.
    """
    if clock is None:
        kernel = without_records(kernel, keep=("counter",))
    layout = replace(layout_of(kernel, headings, overflow, occurrences, target), every=every)
    layout = layout.within(buffer_words)
    if not layout.slots and not layout.counters:
        return Lowered(without_records(kernel), layout, ())
    lowered = RecordLowering(kernel, layout, clock or "clock").run()
    verify(lowered.kernel)
    return lowered


@dataclass
class RecordLowering:
    """Lowers one kernel's records, whose places ``layout`` gives."""

    kernel: Kernel
    layout: RecordLayout
    clock: Clock
    variables: list[str] = field(default_factory=list)
    """New int64 variables.  Each place has its own: one that several places share would live
    through the vector code between them."""

    def __post_init__(self) -> None:
        kernel = self.kernel
        taken = [p.name for p in kernel.params] + [a.name for a in kernel.arrays]
        taken += [v for v, _ in kernel.variables]
        taken += [s.var for s in statements(kernel.body) if isinstance(s, For)]
        self.names = FreshNames(taken)
        self.records, self.base = (self.names.fresh(n) for n in (RECORDS, BASE))
        self.slots = {(s.region.stage, s.region.kind, s.region.name): s for s in self.layout.slots}
        self.happened: dict[tuple[Key, str], str] = {}
        self.guard = range_guard(kernel.body)

    def run(self) -> Lowered:
        kernel = self.kernel
        body = self._body(kernel.body, "")
        head: list[Stmt] = [Assign(name, Const(INT64, 0)) for name in self.happened.values()]
        params = (
            self._array_param(),
            ScalarParam(self.base, INT64),
        )
        lowered = replace(
            kernel,
            params=(*kernel.params, *params),
            variables=(*kernel.variables, *((name, INT64) for name in self.variables)),
            body=(*head, *body),
        )
        return Lowered(lowered, self.layout, (self.records, self.base))

    def _array_param(self) -> ArrayParam:
        return ArrayParam(self.records, INT64, 1, restrict=True, unit_stride=True)

    def _sum(self, lhs: Expr, rhs: Expr) -> Expr:
        return _op("add", lhs, rhs)

    def _body(self, body: Sequence[Stmt], heading: str) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for is_record, group in groupby(body, lambda s: isinstance(s, Record)):
            if is_record:
                result.extend(self._records([r for r in group if isinstance(r, Record)], heading))
            else:
                result.extend(self._nested(s, heading) for s in group)
        return tuple(result)

    def _nested(self, stmt: Stmt, heading: str) -> Stmt:
        match stmt:
            case Block(label, body):
                return Block(label, self._body(body, label))
            case For() | While():
                return replace(stmt, body=self._body(stmt.body, heading))
            case If():
                then, orelse = self._body(stmt.then, heading), self._body(stmt.orelse, heading)
                return replace(stmt, then=then, orelse=orelse)
            case _:
                return stmt

    # --------------------------------------------------------------------- who records
    def _records(self, records: Sequence[Record], heading: str) -> Iterator[Stmt]:
        for writer, group in groupby(records, self._writer):
            if writer is None:
                yield from (self._count(record) for record in group)
                continue
            # Kept in a variable, the condition would cost the CPU device's vector code dearly.
            condition = self._writes(writer)
            time = self._variable("record_time")
            clock = Assign(time.name, Call(INT64, self.clock, ()))
            stores = [s for record in group for s in self._store(record, heading, time)]
            yield self._if_recording(condition, (clock, *stores))

    def _if_recording(self, condition: Expr, stores: tuple[Stmt, ...]) -> Stmt:
        """``stores``, by one work-item of the sub-group of which ``condition`` holds.  One
        condition of all three would cost what all groups' recording costs."""
        inner = If(condition, (If(Call(BOOL, "leads_sub_group", ()), stores),))
        return If(self._has_row(), (inner,))

    def _writer(self, record: Record) -> str | None:
        return _writer(record)

    def _writes(self, writer: str) -> Expr:
        """Whether the sub-group is the one called ``writer``, of those that execute this."""
        if self.guard is None or writer not in ("first_sub_group", "last_sub_group"):
            return Call(BOOL, writer, ())
        if writer == "first_sub_group":
            return Call(BOOL, "first_sub_group_here", ())
        last = self._last_item(0, self.guard)
        for dim in range(1, self.kernel.ndim):
            last = _op("mul", last, ItemQuery("local_range", dim))
            last = _op("add", last, self._last_item(dim, self.guard))
        return Call(BOOL, "sub_group_has_here", (last,))

    @staticmethod
    def _last_item(dim: int, guard: RangeGuard) -> Expr:
        """The local id of the work-group's last work-item within ``guard``."""
        size = ItemQuery("local_range", dim)
        count: Expr = size
        if dim in guard.limits:
            before = _op("mul", _group_id(dim), size)
            count = Call(INT64, "minimum", (size, _op("sub", guard.limits[dim], before)))
        return _op("sub", count, Const(INT64, 1))

    def _has_row(self) -> Expr:
        """Whether the group records, and there is room."""
        condition: Expr = Const(BOOL, True)
        if self.layout.every > 1:
            turn = _op("mod", self._group(), Const(INT64, self.layout.every))
            condition = Compare("eq", turn, Const(INT64, 0))
        if self.layout.overflow == "truncate":
            fits = Compare("lt", self._place(), self._rows())
            condition = fits if self.layout.every == 1 else Logical("and", condition, fits)
        return condition

    def _variable(self, name: str) -> Var:
        self.variables.append(self.names.fresh(name))
        return Var(INT64, self.variables[-1])

    def _rows(self) -> Expr:
        return Const(INT64, self.layout.most_rows)

    def _group(self) -> Expr:
        """The work-group's linear id."""
        linear: Expr = _group_id(0)
        for dim in range(1, self.kernel.ndim):
            linear = _op("mul", linear, ItemQuery("group_range", dim))
            linear = _op("add", linear, ItemQuery("group_id", dim))
        return linear

    def _place(self) -> Expr:
        """The group's place among those that record."""
        if self.layout.every == 1:
            return self._group()
        return _op("floordiv", self._group(), Const(INT64, self.layout.every))

    # ----------------------------------------------------------------- where it is kept
    def _at(self, offset: Expr) -> tuple[Expr]:
        """The index of a word of the launch's records."""
        return (_op("add", Param(INT64, self.base), offset),)

    def _row(self, offset: Expr) -> tuple[Expr]:
        """The index of a word of the group's row."""
        row = self._place()
        if self.layout.overflow != "truncate":
            row = _op("mod", row, self._rows())
        start = _op("mul", row, Const(INT64, self.layout.row_words))
        start = _op("add", start, Const(INT64, self.layout.rows_at))
        return self._at(_op("add", start, offset))

    def _store(self, record: Record, heading: str, time: Var) -> Iterator[Stmt]:
        key = key_of(heading, record)
        slot = self.slots[key]
        if self.layout.overflow == "aggregate":
            yield from self._aggregate(record, slot, time)
            return
        field = slot.fields.index("end" if record.phase == "end" else "start")
        happened = None if slot.count is None else self._happened(key, record)
        first: Expr = Const(INT64, slot.offset)
        if happened is not None:
            place: Expr = happened
            if self.layout.overflow == "ring":
                place = _op("mod", place, Const(INT64, slot.capacity))
            first = _op("add", _op("mul", place, Const(INT64, len(slot.fields))), first)
        stores: list[Stmt] = [
            Store(self.records, self._row(_op("add", first, Const(INT64, field))), time)
        ]
        if record.payload is not None:
            last = _op("add", first, Const(INT64, len(slot.fields) - 1))
            stores.append(Store(self.records, self._row(last), record.payload))
        if happened is None:
            yield from stores
            return
        if self.layout.overflow == "truncate":
            yield If(Compare("lt", happened, Const(INT64, slot.capacity)), tuple(stores))
        else:
            yield from stores
        yield Assign(happened.name, _op("add", happened, Const(INT64, 1)))
        if record.phase != "end" and slot.count is not None:
            yield Store(self.records, self._row(Const(INT64, slot.count)), happened)

    def _happened(self, key: Key, record: Record) -> Var:
        """The variable that counts how often a work-item has executed this."""
        place = key, record.phase
        if place not in self.happened:
            self.happened[place] = self._variable(f"record_{record.phase}s").name
        return Var(INT64, self.happened[place])

    def _aggregate(self, record: Record, slot: Slot, time: Var) -> Iterator[Stmt]:
        """Sum, least, greatest and number of durations (of a mark: of payloads)."""
        scratch = self._row(Const(INT64, slot.offset))
        if record.phase == "start":
            yield Store(self.records, scratch, time)
            yield self._atomic("min", self._total(slot, "first"), time)
            return
        value: Expr = _op("sub", time, Load(INT64, self.records, scratch))
        if record.phase == "instant":
            value = record.payload or Const(INT64, 0)
        total = self._variable("record_value")
        yield Assign(total.name, value)
        yield self._atomic("add", self._total(slot, "sum"), total)
        yield self._atomic("min", self._total(slot, "min"), total)
        yield self._atomic("max", self._total(slot, "max"), total)
        yield self._atomic("add", self._total(slot, "count"), Const(INT64, 1))
        yield self._atomic("max", self._total(slot, "last"), time)

    def _total(self, slot: Slot, name: str) -> tuple[Expr]:
        at = self.layout.aggregates_at + self.layout.slots.index(slot) * self.layout.line
        return self._at(Const(INT64, at + AGGREGATE_FIELDS.index(name)))

    def _count(self, record: Record) -> Stmt:
        layout = self.layout
        place = layout.counters.index(record.region) * layout.copies * layout.line
        spread = _op("mod", self._group(), Const(INT64, layout.copies))
        spread = _op("mul", spread, Const(INT64, layout.line))
        assert record.payload is not None
        return self._atomic(
            "add", self._at(_op("add", spread, Const(INT64, place))), record.payload
        )

    def _atomic(self, op: AtomicOp, indices: tuple[Expr], value: Expr) -> Atomic:
        return Atomic(op, self.records, indices, value, None, "relaxed", "device")


def _op(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(INT64, op, lhs, rhs)


def _group_id(dim: int) -> Expr:
    return ItemQuery("group_id", dim)


def _writer(record: Record) -> str | None:
    """Which work-item records: the group's first where it begins, its last where it ends."""
    if record.kind == "counter":
        return None
    if record.kind not in ("stage", "barrier"):
        return "first_sub_group_here"
    # A barrier lasts from when the last work-item arrives until the first one goes on.
    opens = (record.phase == "start") == (record.kind == "stage")
    return "first_sub_group" if opens else "last_sub_group"
