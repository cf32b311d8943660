"""The IR as Python: what all texts of it share.

``ir.printer`` prints it for people, the numba-dpex backend for numba.  They differ in how a
literal, a name and an element look, and in what Python's operators do to the values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Barrier,
    Binary,
    Block,
    Break,
    Call,
    Cast,
    Compare,
    Const,
    Continue,
    Expr,
    Extent,
    Fence,
    For,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Param,
    Persistent,
    Prefetch,
    Query,
    Record,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.text import PRIMARY, PRODUCT, SHIFT, SUM, UNARY, Text
from fusionq.ir.types import BFLOAT16, ScalarType
from fusionq.ir.walk import expressions, has_barrier

INDENT = "    "
POWER = 15
BIT_AND, XOR, BIT_OR, COMPARE, NOT, AND, OR, SELECT = 10, 9, 8, 7, 6, 5, 4, 3
"""Python's precedences, beside those of ``ir.text``."""

OPERATORS: dict[str, tuple[str, int]] = {
    "add": ("+", SUM), "sub": ("-", SUM),
    "mul": ("*", PRODUCT), "truediv": ("/", PRODUCT),
    "floordiv": ("//", PRODUCT), "mod": ("%", PRODUCT), "pow": ("**", POWER),
    "and": ("&", BIT_AND), "or": ("|", BIT_OR), "xor": ("^", XOR),
    "shl": ("<<", SHIFT), "shr": (">>", SHIFT),
}  # fmt: skip
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_SIGNS = {"neg": ("-", UNARY), "pos": ("+", UNARY), "invert": ("~", UNARY), "not": ("not ", NOT)}
_ND_ITEM: dict[Query, str] = {
    "global_id": "get_global_id",
    "global_range": "get_global_range",
    "local_id": "get_local_id",
    "local_range": "get_local_range",
    "group_id": "get_group().get_group_id",
    "group_range": "get_group().get_group_range",
}
_ITEM: dict[Query, str] = {**_ND_ITEM, "global_id": "get_id", "global_range": "get_range"}
_ATOMIC_METHODS = ("load", "store", "exchange", "compare_exchange")
"""Those that are not named ``fetch_…``."""


def uses_groups(kernel: Kernel) -> bool:
    """Whether the kernel asks for more than an ``Item`` can tell."""
    return has_barrier(kernel.body) or any(
        isinstance(e, ItemQuery) and e.query not in ("global_id", "global_range")
        for e in expressions(kernel.body)
    )


def constructor(type: ScalarType) -> str:
    """The constructor of a type: NumPy's, or that of ml_dtypes."""
    if type == BFLOAT16:
        return "ml_dtypes.bfloat16"
    return "np.bool_" if type.is_bool else f"np.{type.name}"


def literal(const: Const) -> Text:
    """A constant as Python's own number."""
    value = const.value
    if isinstance(value, float) and not math.isfinite(value):
        text = "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    else:
        text = repr(value)
    return Text(text, UNARY if text.startswith("-") else PRIMARY)


def member(enumeration: str, name: str) -> str:
    """A member of an enumeration of the kernel language."""
    return f"{enumeration}.{name.upper()}"


class PythonPrinter(ABC):
    """Prints statements and expressions; subclasses say what is their own."""

    def __init__(self, nd_item: bool) -> None:
        self._queries: Mapping[Query, str] = _ND_ITEM if nd_item else _ITEM

    # ------------------------------------------------------------------ for subclasses
    def name(self, name: str) -> str:
        """The identifier for a variable or an array of the kernel."""
        return name

    @abstractmethod
    def constant(self, const: Const) -> Text:
        """A literal of its own type."""

    def parameter(self, param: Param) -> Text:
        """The value of a scalar parameter."""
        return Text(self.name(param.name), PRIMARY)

    def extent(self, extent: Extent) -> Text:
        """``array.shape[dim]``."""
        return Text(f"{self.name(extent.array)}.shape[{extent.dim}]", PRIMARY)

    @abstractmethod
    def element(self, array: str, indices: tuple[Expr, ...]) -> str:
        """``array[…]``, to read or to write."""

    def load(self, load: Load) -> Text:
        """An element's value."""
        return Text(self.element(load.array, load.indices), PRIMARY)

    def stored(self, value: Expr) -> str:
        """What is written to an element or given to an atomic operation."""
        return self.value(value)

    @abstractmethod
    def cast(self, cast: Cast) -> Text:
        """A conversion."""

    @abstractmethod
    def call(self, call: Call) -> Text:
        """A scalar function."""

    @abstractmethod
    def range(self, loop: For) -> str:
        """The arguments of ``range``."""

    @abstractmethod
    def reference(self, atomic: Atomic) -> str:
        """The ``AtomicRef`` of an atomic operation."""

    def barrier(self, barrier: Barrier) -> str:
        """A group barrier."""
        return "group_barrier(item.get_group())"

    @abstractmethod
    def group_call(self, call: GroupCall) -> str:
        """A group function."""

    def record(self, record: Record) -> list[str]:
        """A point that profiling records."""
        return []

    @abstractmethod
    def persistent(self, persistent: Persistent) -> list[str]:
        """The body of a persistent kernel."""

    # ---------------------------------------------------------------------- statements
    def body(self, body: Iterable[Stmt], depth: int) -> list[str]:
        """The lines of a statement list, indented by ``depth`` levels."""
        lines = [line for stmt in body for line in self._stmt(stmt)]
        if all(line.lstrip().startswith("#") for line in lines):
            lines.append("pass")
        return [INDENT * depth + line for line in lines]

    def _stmt(self, stmt: Stmt) -> list[str]:
        match stmt:
            case Assign():
                return [self.assignment(stmt)]
            case Store():
                note = "  # non-temporal" if stmt.nontemporal else ""
                target = self.element(stmt.array, stmt.indices)
                return [f"{target} = {self.stored(stmt.value)}{note}"]
            case If():
                return self._if(stmt, "if")
            case For():
                return self.loop(stmt)
            case While():
                return [f"while {self.value(stmt.cond)}:", *self.body(stmt.body, 1)]
            case Break():
                return ["break"]
            case Continue():
                return ["continue"]
            case Block():
                heading = [f"# {line}".rstrip() for line in stmt.label.splitlines()]
                return heading + [line for inner in stmt.body for line in self._stmt(inner)]
            case Barrier():
                return [self.barrier(stmt)]
            case Fence():
                order, scope = member("MemoryOrder", stmt.order), member("MemoryScope", stmt.scope)
                return [f"atomic_fence({order}, {scope})"]
            case Atomic():
                method = stmt.op if stmt.op in _ATOMIC_METHODS else f"fetch_{stmt.op}"
                operands = (e for e in (stmt.expected, stmt.value) if e is not None)
                value = ", ".join(map(self.stored, operands))
                target = "" if stmt.result is None else f"{self.name(stmt.result)} = "
                return [f"{target}{self.reference(stmt)}.{method}({value})"]
            case Prefetch():
                return [f"# read ahead: {self.element(stmt.array, stmt.indices)}"]
            case GroupCall():
                return [self.group_call(stmt)]
            case Record():
                return self.record(stmt)
            case WorkItemLoop():
                head = f"for item in item.get_group().items({stmt.items}):"
                return [head, *self.body(stmt.body, 1)]
            case Persistent():
                return self.persistent(stmt)

    def _if(self, stmt: If, keyword: str) -> list[str]:
        lines = [f"{keyword} {self.value(stmt.cond)}:", *self.body(stmt.then, 1)]
        match stmt.orelse:
            case ():
                return lines
            case (If() as only,):
                return [*lines, *self._if(only, "elif")]
        return [*lines, "else:", *self.body(stmt.orelse, 1)]

    def assignment(self, stmt: Assign) -> str:
        """An assignment to a variable."""
        return f"{self.name(stmt.name)} = {self.value(stmt.value)}"

    def loop(self, loop: For) -> list[str]:
        """A ``for`` statement."""
        head = f"for {self.name(loop.var)} in range({self.range(loop)}):"
        return [head, *self.body(loop.body, 1)]

    # --------------------------------------------------------------------- expressions
    def value(self, expr: Expr) -> str:
        """A whole right-hand side, condition or argument."""
        return self.text(expr).text

    def text(self, expr: Expr) -> Text:
        """An expression with its outermost operator's precedence."""
        match expr:
            case Const():
                return self.constant(expr)
            case Var():
                return Text(self.name(expr.name), PRIMARY)
            case Param():
                return self.parameter(expr)
            case Extent():
                return self.extent(expr)
            case ItemQuery():
                if expr.query == "local_linear_id":
                    return Text("item.get_local_linear_id()", PRIMARY)
                if expr.query in ("tile_first", "tile_last"):
                    return Text(f"tile.{expr.query.removeprefix('tile_')}({expr.dim})", PRIMARY)
                return Text(f"item.{self._queries[expr.query]}({expr.dim})", PRIMARY)
            case Load():
                return self.load(expr)
            case Unary():
                return self.unary(expr)
            case Binary():
                return self.binary(expr)
            case Compare():
                lhs, rhs = self.pair(expr.lhs, expr.rhs, COMPARE + 1, COMPARE + 1)
                return Text(f"{lhs} {_COMPARISONS[expr.op]} {rhs}", COMPARE)
            case Logical():
                own = OR if expr.op == "or" else AND
                lhs, rhs = self.text(expr.lhs).at(own), self.text(expr.rhs).at(own + 1)
                return Text(f"{lhs} {expr.op} {rhs}", own)
            case Select():
                then, cond = self.text(expr.then).at(OR), self.text(expr.cond).at(OR)
                return Text(f"{then} if {cond} else {self.text(expr.orelse).at(SELECT)}", SELECT)
            case Cast():
                return self.cast(expr)
            case Call():
                return self.call(expr)

    def pair(self, lhs: Expr, rhs: Expr, left: int, right: int) -> tuple[str, str]:
        """Two operands of one type, where the operator needs these precedences."""
        return self.text(lhs).at(left), self.text(rhs).at(right)

    def unary(self, expr: Unary) -> Text:
        """An operation on one operand."""
        symbol, own = _SIGNS[expr.op]
        return Text(symbol + self.text(expr.operand).at(own), own)

    def binary(self, expr: Binary) -> Text:
        """An operation on two operands, which binds to the left."""
        symbol, own = OPERATORS[expr.op]
        lhs, rhs = self.pair(expr.lhs, expr.rhs, own, own + 1)
        return Text(f"{lhs} {symbol} {rhs}", own)
