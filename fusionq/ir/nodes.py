"""The typed kernel IR: frozen dataclasses, one kernel a tree.

Semantics are NumPy's scalar semantics on concrete types: integers wrap, ``floordiv``
and ``mod`` are Python's (0 for an integer divisor of 0), a shift by the width or more
gives 0 (or -1), floating to integer casts truncate, saturate, and give 0 for NaN.

Statements and kernels; their expressions stand in ``ir/expressions.py``, what a persistent kernel's
stages have beside their kernels in ``ir/persistent_nodes.py``: all of it is imported from here.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.base.span import NO_SPAN, Span
from fusionq.ir.expressions import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Load,
    Logical,
    LogicalOp,
    Param,
    Query,
    Select,
    Space,
    Unary,
    UnaryOp,
    Var,
)
from fusionq.ir.parameters import SMALL, ArrayDecl, ArrayParam, KernelParam, ScalarParam
from fusionq.ir.persistent_nodes import (
    Clock,
    InstructionRecords,
    LaneDimension,
    PersistentStage,
    TileWait,
)
from fusionq.ir.types import ScalarType

__all__ = [
    "SMALL",
    "ArrayDecl",
    "ArrayParam",
    "Assign",
    "Atomic",
    "AtomicOp",
    "Barrier",
    "Binary",
    "BinaryOp",
    "Block",
    "Break",
    "Call",
    "Cast",
    "Clock",
    "Compare",
    "CompareOp",
    "Const",
    "Continue",
    "Expr",
    "Extent",
    "Fence",
    "For",
    "GroupCall",
    "GroupFunction",
    "GroupOp",
    "If",
    "InstructionRecords",
    "ItemQuery",
    "Kernel",
    "KernelParam",
    "LaneDimension",
    "Load",
    "Logical",
    "LogicalOp",
    "MemoryOrderName",
    "MemoryScopeName",
    "Param",
    "Persistent",
    "PersistentStage",
    "Prefetch",
    "Query",
    "Record",
    "RecordKind",
    "RecordPhase",
    "ScalarParam",
    "Select",
    "Space",
    "StageCode",
    "Stmt",
    "Store",
    "TileWait",
    "Unary",
    "UnaryOp",
    "Var",
    "While",
    "WorkItemLoop",
]  # fmt: skip

AtomicOp: TypeAlias = Literal[
    "add", "sub", "min", "max", "and", "or", "xor", "exchange", "load", "store",
    "compare_exchange",
]  # fmt: skip
MemoryOrderName: TypeAlias = Literal["relaxed", "acquire", "release", "acq_rel", "seq_cst"]
MemoryScopeName: TypeAlias = Literal["work_item", "sub_group", "work_group", "device", "system"]
GroupFunction: TypeAlias = Literal[
    "reduce", "inclusive_scan", "exclusive_scan", "broadcast", "any", "all",
    "shift_left", "shift_right", "permute_xor", "select",
]  # fmt: skip
GroupOp: TypeAlias = Literal["add", "mul", "min", "max", "and", "or", "xor"]
RecordKind: TypeAlias = Literal[
    "stage", "barrier", "ticket", "wait", "publish", "region", "mark", "counter"
]
RecordPhase: TypeAlias = Literal["start", "end", "instant"]


@dataclass(frozen=True, slots=True)
class Assign:
    """``name = value``; the variable has the value's type."""

    name: str
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    """``array[indices] = value``; the value has the array's dtype.  ``nontemporal``: nobody comes
    back to the element while it would be in a cache, so that one need not be used."""

    array: str
    indices: tuple[Expr, ...]
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)
    nontemporal: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """``if cond: then else: orelse``; ``cond`` is bool."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """``for var in range(start, stop, step)``; bounds are int64 and evaluated once, before
    the loop; ``var`` is visible in the body only and never assigned there.  A ``step`` of 0
    runs no iteration.  ``binds``: a name of the source that is read after the loop and bound in its
    body only, so that there has to be an iteration, which is proved before the kernel runs."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    binds: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """``while cond: body``; ``cond`` is bool and evaluated before each iteration."""

    cond: Expr
    body: tuple[Stmt, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Break:
    """Leave the innermost loop."""

    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the next iteration of the innermost loop."""

    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Barrier:
    """A work-group barrier that orders accesses to the named memories; every work-item of the
    group reaches it, or none."""

    global_memory: bool = True
    local_memory: bool = True
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Atomic:
    """One atomic operation on ``array[indices]``; ``result``, if any, is the variable that takes
    the value before it.  ``value`` has the array's dtype; None for ``load``.

    ``compare_exchange`` stores ``value`` where the element equals ``expected``, which has the dtype
    too; floats compare by value, but that a NaN equals a NaN."""

    op: AtomicOp
    array: str
    indices: tuple[Expr, ...]
    value: Expr | None
    result: str | None
    order: MemoryOrderName
    scope: MemoryScopeName
    span: Span = field(default=NO_SPAN, compare=False)
    expected: Expr | None = None


@dataclass(frozen=True, slots=True)
class Fence:
    """``atomic_fence``."""

    order: MemoryOrderName
    scope: MemoryScopeName
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """``array[indices]``, which need not be an element, may come into the caches: it is read or
    written soon.  Without effect on anything else."""

    array: str
    indices: tuple[Expr, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class GroupCall:
    """``result = function(value)`` over the work-group; every work-item of the group reaches it,
    or none.  ``op`` for ``reduce`` and the scans, whose order is the linear local id; ``source``
    is the linear local id that ``broadcast`` takes the value of.  ``any`` and ``all`` take and
    give bool; the others keep the value's type.

    ``sub_group``: over a sub-group of so many work-items, a power of two, instead: neighbours in
    the last dimension, each with its place among them as local id.  Only there are shifts,
    permutations and ``select``, for which ``source`` is the distance, the mask, or the place to
    read from; a place that is none gives the work-item's own value.

    ``values``: the local array in which each work-item has stored its value, at its linear local
    id, and all have passed a barrier since: sub-groups of ``Kernel.sub_group_size`` then combine
    them in the order of ``language.combine.over_group``.  ``value`` is the work-item's own, loaded
    from there; a scan leaves results there.

    ``in_order``: in that order on each device, also on one that has an order of its own."""

    function: GroupFunction
    op: GroupOp | None
    value: Expr
    source: Expr | None
    result: str
    span: Span = field(default=NO_SPAN, compare=False)
    sub_group: int | None = None
    values: str | None = None
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A point that profiling records; without effect on anything else.

    ``region`` names what starts, ends or happens here.  ``stage`` and ``barrier`` are recorded
    once for the whole work-group (from its first work-item's start to its last one's end),
    ``region`` and ``mark`` for the group's first work-item.  A ``counter`` adds ``payload``
    (int64) over all work-items; of the others it is kept beside the time.
    """

    region: str
    kind: RecordKind
    phase: RecordPhase
    payload: Expr | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Statements under a heading, e.g. one submission's part of a fused kernel."""

    label: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class WorkItemLoop:
    """``body`` for each of the work-group's first ``items`` work-items, by their linear local ids,
    in any order.  What they all have done comes before what follows.

    Only in a work-group function, which runs once for a whole work-group: outside of its
    work-item loops are barriers, and conditions, loops and assignments that are the same for all
    of the group.
    """

    items: int
    body: tuple[Stmt, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class StageCode:
    """What a persistent kernel does for a tile of a stage: wait, then ``kernel`` for each of the
    tile's work-items or, if that is a work-group function, for each of its work-groups.

    Only a work-group function has barriers and local memory.  ``extents``, the stage's range, and
    the bounds of ``waits`` are expressions over its parameters.  ``local_range`` is the work-group
    size that the local and group ids mean of a work-group function, or of a kernel whose work-items
    are threads of a worker; any other asks for global ids alone.  ``reduced``: those of its array
    reductions (``ir.array_reductions``) whose arrays share memory with no other of the kernel's.
    ``lanes``: where neighbouring work-items of another dimension than the last may run as a vector.
    ``apart``: its array parameters that share memory with no other of its.
    """

    kernel: Kernel
    extents: tuple[Expr, ...]
    waits: tuple[TileWait, ...]
    local_range: tuple[int, ...] | None
    reduced: tuple[str, ...] = ()
    lanes: LaneDimension | None = None
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Persistent:
    """The whole body of a persistent kernel: workers take instructions, each a tile of a stage,
    from a queue, in an order in which a tile comes after those that it waits for.

    ``schedule``, ``control``, ``epoch`` and ``spin_limit`` are parameters: the plan's numbers
    (int64), the queue's and barrier counters (uint32), the number of this launch (uint32, from 1)
    and how often a wait polls its counter, while no worker is at work, before it stalls (int64).
    ``unwritten``: the array parameters that share memory with none that a stage writes.
    ``records``, where a profile is taken.  ``slot_bytes``: of a slot of the rings by which rows
    come to workers, where that is not the target's.
    """

    codes: tuple[StageCode, ...]
    stages: tuple[PersistentStage, ...]
    schedule: str
    control: str
    epoch: str
    spin_limit: str
    unwritten: tuple[str, ...] = ()
    records: InstructionRecords | None = None
    slot_bytes: int = 0
    span: Span = field(default=NO_SPAN, compare=False)


Stmt: TypeAlias = (
    Assign | Store | If | For | While | Break | Continue | Block
    | Barrier | Atomic | Fence | GroupCall | Persistent | Prefetch | Record | WorkItemLoop
)  # fmt: skip


# ---------------------------------------------------------------------- kernels
@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel over an ``ndim``-dimensional range; there is no ``return``: the front end
    turns early returns into conditions.

    ``variables``: each local variable's type (loop variables are int64 and not listed).
    ``notes``: what a report should say of it, each with its file and line.
    ``apart``: parameters that one statement of the source writes and reads as a whole: they share
    no memory or, where the third is True, are one and the same view.
    ``sub_group_size``: work-items of its sub-groups, where they matter; a work-group then is as
    long as a multiple of that in the last dimension.
    ``small_sizes``: each extent, and the numbers of work-items and of an array's elements, are 1 to
    ``SMALL``.
    ``row_lanes``: work-groups of so many work-items, lanes of a vector, do the range along its rows
    (``codegen.along_rows``).
    ``cuts_rows``: these rows are cut where quotients of ids change (``codegen.row_segments``); the
    divisors are positive.
    ``padded_row``: in the last dimension its work-groups have the first number of work-items, and
    are launched with the second: the others only take part in barriers (``codegen.padded_rows``).
    ``one_by_one``: no vectors are made of its work-items (``codegen.own_rows``).
    ``few_items``: so few of them that nothing hides how long memory takes, but what each does
    itself (``codegen.loads_together``).
    ``row_turns``: for how many iterations it loads at once, in loops in which neighbouring
    work-items go along rows of their own (``codegen.loads_together``); None where it does not.
    ``kept_turns``: iterations of loops over rows whose elements stay in registers for the next
    ones: all of the first number or none, and so many behind these under masks
    (``codegen.kept_rows``).
    """

    name: str
    ndim: int
    params: tuple[KernelParam, ...]
    variables: tuple[tuple[str, ScalarType], ...]
    body: tuple[Stmt, ...]
    arrays: tuple[ArrayDecl, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    sub_group_size: int | None = None
    apart: tuple[tuple[str, str, bool], ...] = field(default=(), compare=False)
    small_sizes: bool = False
    row_lanes: int | None = None
    cuts_rows: bool = False
    padded_row: tuple[int, int] | None = None
    one_by_one: bool = False
    few_items: bool = False
    row_turns: int | None = None
    kept_turns: tuple[int, int] | None = None

    def param(self, name: str) -> KernelParam:
        """The parameter of that name; KeyError if there is none."""
        for p in self.params:
            if p.name == name:
                return p
        raise KeyError(name)
