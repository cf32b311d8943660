"""The typed kernel IR: frozen dataclasses, one kernel a tree.

Semantics are NumPy's scalar semantics on concrete types: integers wrap, ``floordiv``
and ``mod`` are Python's (0 for an integer divisor of 0), a shift by the width or more
gives 0 (or -1), floating to integer casts truncate, saturate, and give 0 for NaN.
Evaluation order is left to right; ``Logical`` and ``Select`` evaluate lazily.
"""

from __future__ import annotations

from dataclasses import field
from math import prod
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fusionq.base.frozen import dataclass
from fusionq.base.span import NO_SPAN, Span
from fusionq.ir.types import BOOL, INT64, ScalarType

Clock: TypeAlias = Literal["clock", "cycle_counter"]
"""The device functions that say the time."""

Query: TypeAlias = Literal[
    "global_id", "global_range", "local_id", "local_range", "group_id", "group_range",
    "local_linear_id", "tile_first", "tile_last",
]  # fmt: skip
UnaryOp: TypeAlias = Literal["neg", "pos", "not", "invert"]
BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow",
    "and", "or", "xor", "shl", "shr",
]  # fmt: skip
CompareOp: TypeAlias = Literal["lt", "le", "gt", "ge", "eq", "ne"]
LogicalOp: TypeAlias = Literal["and", "or"]
Space: TypeAlias = Literal["global", "local", "private", "constant"]
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


# ------------------------------------------------------------------ expressions
@dataclass(frozen=True, slots=True)
class Const:
    """A literal of a concrete type; ``value`` is a Python bool, int or float.

    Equal ones are the same literal: 0.0 and -0.0 are not, and a NaN is what it is.
    """

    type: ScalarType
    value: bool | int | float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        return self.type == other.type and self._number == other._number

    def __hash__(self) -> int:
        return hash((self.type, self._number))

    @property
    def _number(self) -> bool | int | float | str:
        value = self.value
        return value if value and value == value else repr(float(value))


@dataclass(frozen=True, slots=True)
class Var:
    """A local variable, declared in ``Kernel.variables``, or a ``For`` loop's variable."""

    type: ScalarType
    name: str


@dataclass(frozen=True, slots=True)
class Param:
    """The value of a scalar parameter."""

    type: ScalarType
    name: str


@dataclass(frozen=True, slots=True)
class Extent:
    """``array.shape[dim]`` of an array parameter."""

    array: str
    dim: int
    type: ScalarType = INT64


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """A work-item's id or range in one dimension (SYCL order: the last is fastest).

    ``local_linear_id``, of no dimension: the place in the work-group.  ``tile_first`` and
    ``tile_last``, in a ``TileWait`` only: the ids of the waiting tile's first and last work-item.
    """

    query: Query
    dim: int
    type: ScalarType = INT64


@dataclass(frozen=True, slots=True)
class Load:
    """``array[indices]``; one int64 index for each dimension, never negative."""

    type: ScalarType
    array: str
    indices: tuple[Expr, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """The operand has ``type``; of ``not`` both are bool."""

    type: ScalarType
    op: UnaryOp
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """Both operands have ``type`` (``truediv`` and ``pow``: floating, or ``pow`` of integers
    with a non-negative constant or unsigned exponent)."""

    type: ScalarType
    op: BinaryOp
    lhs: Expr
    rhs: Expr


@dataclass(frozen=True, slots=True)
class Compare:
    """Both operands have one and the same type; the result is bool."""

    op: CompareOp
    lhs: Expr
    rhs: Expr
    type: ScalarType = BOOL


@dataclass(frozen=True, slots=True)
class Logical:
    """Short-circuit ``and`` / ``or`` of bools."""

    op: LogicalOp
    lhs: Expr
    rhs: Expr
    type: ScalarType = BOOL


@dataclass(frozen=True, slots=True)
class Select:
    """``then if cond else orelse``; only the chosen side is evaluated."""

    type: ScalarType
    cond: Expr
    then: Expr
    orelse: Expr


@dataclass(frozen=True, slots=True)
class Cast:
    """The operand's value as ``type``."""

    type: ScalarType
    operand: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function by its canonical NumPy name, see ``ir.functions``."""

    type: ScalarType
    function: str
    args: tuple[Expr, ...]


Expr: TypeAlias = (
    Const | Var | Param | Extent | ItemQuery | Load | Unary | Binary | Compare | Logical
    | Select | Cast | Call
)  # fmt: skip


# ------------------------------------------------------------------- statements
@dataclass(frozen=True, slots=True)
class Assign:
    """``name = value``; the variable has the value's type."""

    name: str
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    """``array[indices] = value``; the value has the array's dtype."""

    array: str
    indices: tuple[Expr, ...]
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


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
    them in the order of ``language.combine.over_group``.  In a work-group function, where it stands
    outside of work-item loops, a scan leaves each work-item's result there."""

    function: GroupFunction
    op: GroupOp | None
    value: Expr
    source: Expr | None
    result: str
    span: Span = field(default=NO_SPAN, compare=False)
    sub_group: int | None = None
    values: str | None = None


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
class TileWait:
    """What a tile waits for: the tiles of an earlier stage that hold its work-items from the
    first to the second of ``bounds`` (int64, inclusive, cut to the stage's range; nothing if the
    first exceeds the second) in each dimension; all of the stage if ``bounds`` is None."""

    bounds: tuple[tuple[Expr, Expr], ...] | None


@dataclass(frozen=True, slots=True)
class LaneDimension:
    """The dimension ``dim`` that neighbouring lanes have work-items of where that is faster than
    the last one: a vector of the last takes ``benefit`` sixteenths of what one of ``dim`` does."""

    dim: int
    benefit: int


@dataclass(frozen=True, slots=True)
class StageCode:
    """What a persistent kernel does for a tile of a stage: wait, then ``kernel`` for each of the
    tile's work-items or, if that is a work-group function, for each of its work-groups.

    Only a work-group function has barriers and local memory.  ``extents``, the stage's range, and
    the bounds of ``waits`` are expressions over its parameters.  ``local_range`` is the work-group
    size that its local and group ids mean.  ``reduced``: those of its array reductions
    (``ir.array_reductions``) whose arrays share memory with no other of the kernel's.  ``lanes``:
    where neighbouring work-items of another dimension than the last may run as a vector.
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
class PersistentStage:
    """A stage of a persistent kernel: ``code`` is the position of its code, ``arguments`` the
    persistent kernel's parameter for each of the code's, ``producers`` the earlier stage that
    each of its waits is about."""

    label: str
    code: int
    arguments: tuple[str, ...]
    producers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InstructionRecords:
    """Where a persistent kernel writes down what its workers do: ``buffer`` (int64), ``base`` (the
    launch's first word) and ``rows`` (how many tiles of each stage have a row) are parameters.

    The row of a stage's tile lies ``rows_at + row_words * (stage * rows + tile)`` words after
    ``base``.  It starts with the worker's number, from 1, and five times: when the worker began to
    look for an instruction, when it had one, when its waits were over (the same if none took a
    while), when its work was done, and when that was published.  ``clock``: the device function
    that says the time.
    """

    clock: Clock
    buffer: str
    base: str
    rows: str
    rows_at: int
    row_words: int


@dataclass(frozen=True, slots=True)
class Persistent:
    """The whole body of a persistent kernel: workers take instructions, each a tile of a stage,
    from a queue, in an order in which a tile comes after those that it waits for.

    ``schedule``, ``control``, ``epoch`` and ``spin_limit`` are parameters: the plan's numbers
    (int64), the queue's and barrier counters (uint32), the number of this launch (uint32, from 1)
    and how often a wait polls its counter, while no worker is at work, before it stalls (int64).
    ``unwritten``: the array parameters that share memory with none that a stage writes.
    ``records``, where a profile is taken.
    """

    codes: tuple[StageCode, ...]
    stages: tuple[PersistentStage, ...]
    schedule: str
    control: str
    epoch: str
    spin_limit: str
    unwritten: tuple[str, ...] = ()
    records: InstructionRecords | None = None
    span: Span = field(default=NO_SPAN, compare=False)


Stmt: TypeAlias = (
    Assign | Store | If | For | While | Break | Continue | Block
    | Barrier | Atomic | Fence | GroupCall | Persistent | Record | WorkItemLoop
)  # fmt: skip


# ---------------------------------------------------------------------- kernels
SMALL = (1 << 31) - (1 << 16)
"""A size up to which 32 bits hold an index, and what a kernel adds to one."""


@dataclass(frozen=True, slots=True)
class ArrayParam:
    """An array in global memory.

    ``contiguous``: C-contiguous, so that strides follow from the extents.
    ``unit_stride``: neighbours in the last dimension are neighbours in memory.
    ``restrict``: no other array of the kernel shares memory with it.
    ``alignment``: bytes of which all elements lie at multiples, where that is less than their size,
    as of packed records; strides are then multiples of that many bytes, and the array is not
    ``contiguous`` nor has it ``unit_stride``.
    """

    name: str
    dtype: ScalarType
    ndim: int
    contiguous: bool = True
    restrict: bool = False
    unit_stride: bool = False
    alignment: int | None = None


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A scalar passed by value; ``type`` is concrete.

    ``bounds``: the inclusive range of its values, where that is known: for a Python ``int``
    argument that the kernel converts to a narrower integer, those for which that is exact.
    """

    name: str
    type: ScalarType
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ArrayDecl:
    """A fixed-size array in private or local memory, contents undefined at first; or in constant
    memory, which is only read.

    Local arrays of one ``memory`` are never in use at the same time, so that they may lie in the
    same place.  ``contents``: a constant array's elements in C order, each in little-endian bytes,
    as hexadecimal digits.
    """

    name: str
    dtype: ScalarType
    shape: tuple[int, ...]
    space: Space
    memory: str | None = None
    contents: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes by itself."""
        return prod(self.shape) * self.dtype.nbytes

    @property
    def elements(self) -> npt.NDArray[np.generic]:
        """A constant array's contents, in its shape."""
        stored = np.frombuffer(bytes.fromhex(self.contents), self.dtype.dtype.newbyteorder("<"))
        return stored.astype(self.dtype.dtype).reshape(self.shape)


KernelParam: TypeAlias = ArrayParam | ScalarParam


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

    def param(self, name: str) -> KernelParam:
        """The parameter of that name; KeyError if there is none."""
        for p in self.params:
            if p.name == name:
                return p
        raise KeyError(name)
