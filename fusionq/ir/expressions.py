"""The expressions of the kernel IR, from which statements (``ir/nodes.py``) are made.

Evaluation order is left to right; ``Logical`` and ``Select`` evaluate lazily.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.base.span import NO_SPAN, Span
from fusionq.ir.types import BOOL, INT64, ScalarType

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
    """``array[indices]``; one int64 index for each dimension, never negative.  ``halved``: as two
    halves, where a compiler then loads those of neighbours together (``codegen.halved_loads``)."""

    type: ScalarType
    array: str
    indices: tuple[Expr, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    halved: bool = False


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
    """``then if cond else orelse``; only the chosen side is evaluated, or both where it is
    ``speculated``: nothing else shows that they are."""

    type: ScalarType
    cond: Expr
    then: Expr
    orelse: Expr
    speculated: bool = False


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
