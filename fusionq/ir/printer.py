"""Prints the IR as readable Python in the kernel language's own style.

A literal stands bare where its neighbour gives it its type (``x * 0.5``), and in its type's
constructor elsewhere (``np.float32(0.5)``), so that the text says every type that it needs to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
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
    GroupFunction,
    If,
    ItemQuery,
    Kernel,
    KernelParam,
    Load,
    Logical,
    Param,
    Persistent,
    Query,
    Record,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import expressions, has_barrier

INDENT = "    "

# Binding strength of Python's operators, weakest first.
(
    _SELECT, _OR, _AND, _NOT, _COMPARE, _BIT_OR, _XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT,
    _SIGN, _POWER, _ATOM,
) = range(14)  # fmt: skip

_BINARY: dict[str, tuple[str, int]] = {
    "add": ("+", _SUM), "sub": ("-", _SUM),
    "mul": ("*", _PRODUCT), "truediv": ("/", _PRODUCT),
    "floordiv": ("//", _PRODUCT), "mod": ("%", _PRODUCT), "pow": ("**", _POWER),
    "and": ("&", _BIT_AND), "or": ("|", _BIT_OR), "xor": ("^", _XOR),
    "shl": ("<<", _SHIFT), "shr": (">>", _SHIFT),
}  # fmt: skip
_COMPARISON = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_UNARY = {"neg": ("-", _SIGN), "pos": ("+", _SIGN), "invert": ("~", _SIGN), "not": ("not ", _NOT)}
_ITEM_QUERIES: dict[Query, str] = {"global_id": "get_id", "global_range": "get_range"}
_ND_ITEM_QUERIES: dict[Query, str] = {
    "global_id": "get_global_id",
    "global_range": "get_global_range",
    "local_id": "get_local_id",
    "local_range": "get_local_range",
    "group_id": "get_group().get_group_id",
    "group_range": "get_group().get_group_range",
}
_PYTHON_FUNCTIONS = {
    "pymin": "min", "pymax": "max", "abs": "abs",
    "erf": "math.erf", "erfc": "math.erfc", "gamma": "math.gamma", "lgamma": "math.lgamma",
}  # fmt: skip

_GROUP = "item.get_group()"
_GROUP_FUNCTIONS: dict[GroupFunction, str] = {
    "reduce": "reduce_over_group",
    "inclusive_scan": "inclusive_scan_over_group",
    "exclusive_scan": "exclusive_scan_over_group",
    "broadcast": "group_broadcast",
    "any": "any_of_group",
    "all": "all_of_group",
}
_ATOMIC_METHODS = ("load", "store", "exchange")


def print_kernel(kernel: Kernel) -> str:
    """The kernel as a Python function, with a final newline."""
    names = ", ".join(["item", *(p.name for p in kernel.params)])
    printer = _Printer(_uses_groups(kernel))
    lines = [f"def {kernel.name}({names}):"]
    if kernel.params:
        lines.append(f"{INDENT}# {', '.join(map(_describe, kernel.params))}")
    lines += [INDENT + _declaration(array) for array in kernel.arrays]
    lines += printer.body(kernel.body, 1)
    return "\n".join(lines) + "\n"


def print_body(body: Iterable[Stmt], indent: int = 0) -> str:
    """Statements as Python text, one a line, without a final newline."""
    return "\n".join(_Printer().body(body, indent))


def print_expr(expr: Expr) -> str:
    """An expression as Python text."""
    return _Printer().expr(expr)


def _uses_groups(kernel: Kernel) -> bool:
    """Whether the kernel asks for more than an ``Item`` can tell."""
    return has_barrier(kernel.body) or any(
        isinstance(e, ItemQuery) and e.query not in _ITEM_QUERIES for e in expressions(kernel.body)
    )


def _describe(param: KernelParam) -> str:
    if isinstance(param, ArrayParam):
        return f"{param.name}: {param.dtype}[{', '.join(':' * param.ndim)}]"
    return f"{param.name}: {param.type}"


def _declaration(array: ArrayDecl) -> str:
    maker = "LocalAccessor" if array.space == "local" else "PrivateArray"
    shape = str(array.shape[0]) if len(array.shape) == 1 else str(array.shape)
    place = "" if array.memory is None else f"  # in memory {array.memory}"
    return f"{array.name} = {maker}({shape}, {_constructor(array.dtype)}){place}"


def _member(enumeration: str, name: str) -> str:
    return f"{enumeration}.{name.upper()}"


def _scope(name: str) -> str:
    return _member("MemoryScope", name)


def _constructor(type_: ScalarType) -> str:
    return "np.bool_" if type_.is_bool else f"np.{type_.name}"


def _literal(const: Const) -> str:
    if not isinstance(const.value, float):
        return str(const.value)
    if math.isnan(const.value):
        return "np.nan"
    if math.isinf(const.value):
        return "np.inf" if const.value > 0 else "-np.inf"
    return repr(const.value)


def _is_negative(const: Const) -> bool:
    return not const.type.is_bool and math.copysign(1, const.value) < 0


class _Printer:
    """Expressions are printed with the strength of their outermost operator."""

    def __init__(self, nd_item: bool = False) -> None:
        self._queries = _ND_ITEM_QUERIES if nd_item else {**_ND_ITEM_QUERIES, **_ITEM_QUERIES}

    # ------------------------------------------------------------- statements
    def body(self, body: Iterable[Stmt], depth: int) -> list[str]:
        lines = [line for stmt in body for line in self._stmt(stmt, depth)]
        if all(line.lstrip().startswith("#") for line in lines):
            lines.append(INDENT * depth + "pass")
        return lines

    def _stmt(self, stmt: Stmt, depth: int) -> Iterator[str]:
        pad = INDENT * depth
        match stmt:
            case Assign():
                yield f"{pad}{stmt.name} = {self.expr(stmt.value)}"
            case Store():
                target = f"{stmt.array}[{self._indices(stmt.indices)}]"
                yield f"{pad}{target} = {self.bare(stmt.value)}"
            case If():
                yield from self._if(stmt, depth, "if")
            case For():
                yield f"{pad}for {stmt.var} in range({self._range(stmt)}):"
                yield from self.body(stmt.body, depth + 1)
            case While():
                yield f"{pad}while {self.expr(stmt.cond)}:"
                yield from self.body(stmt.body, depth + 1)
            case Break():
                yield f"{pad}break"
            case Continue():
                yield f"{pad}continue"
            case Barrier() | Fence() | Atomic() | GroupCall():
                yield pad + self._shared(stmt)
            case Persistent():
                yield from self._persistent(stmt, depth)
            case Record():
                payload = "" if stmt.payload is None else f", {self.bare(stmt.payload)}"
                phase = "" if stmt.phase == "instant" else f"_{stmt.phase}"
                yield f"{pad}record_{stmt.kind}{phase}({stmt.region!r}{payload})"
            case Block():
                yield from (f"{pad}# {line}".rstrip() for line in stmt.label.splitlines())
                for inner in stmt.body:
                    yield from self._stmt(inner, depth)

    def _persistent(self, stmt: Persistent, depth: int) -> Iterator[str]:
        """The worker's loop: what it waits for and does for a tile of each stage."""
        pad, inner = INDENT * depth, INDENT * (depth + 1)
        yield f"{pad}for stage, tile in instructions({stmt.schedule}, {stmt.control}):"
        for number, code in enumerate(stmt.codes):
            uses = [k for k, stage in enumerate(stmt.stages) if stage.code == number]
            which = f"== {uses[0]}" if len(uses) == 1 else f"in {tuple(uses)}"
            yield f"{inner}{'elif' if number else 'if'} stage {which}:"
            deep = INDENT * (depth + 2)
            names = ", ".join(p.name for p in code.kernel.params)
            if names:
                yield f"{deep}{names} = arguments[stage]"
            for position, wait in enumerate(code.waits):
                items = (
                    "all"
                    if wait.bounds is None
                    else ", ".join(f"{self.bare(a)}:{self.bare(b)} + 1" for a, b in wait.bounds)
                )
                yield f"{deep}wait(producers[stage][{position}], items[{items}])"
            extents = ", ".join(self.bare(e) for e in code.extents)
            yield f"{deep}for item in tile.items(range=({extents})):"
            yield from (f"{INDENT * (depth + 3)}{_declaration(a)}" for a in code.kernel.arrays)
            yield from self.body(code.kernel.body, depth + 3)
        yield f"{inner}publish(stage, tile)"

    def _shared(self, stmt: Barrier | Fence | Atomic | GroupCall) -> str:
        """A statement that several work-items take part in."""
        match stmt:
            case Barrier():
                return f"group_barrier({_GROUP})"
            case Fence():
                return f"atomic_fence({_member('MemoryOrder', stmt.order)}, {_scope(stmt.scope)})"
            case Atomic():
                indices = self._indices(stmt.indices)
                index = f"({indices})" if len(stmt.indices) > 1 else indices
                reference = (
                    f"AtomicRef({stmt.array}, {index}, {_member('MemoryOrder', stmt.order)}, "
                    f"{_scope(stmt.scope)})"
                )
                method = stmt.op if stmt.op in _ATOMIC_METHODS else f"fetch_{stmt.op}"
                value = "" if stmt.value is None else self.bare(stmt.value)
                target = "" if stmt.result is None else f"{stmt.result} = "
                return f"{target}{reference}.{method}({value})"
            case GroupCall():
                arguments = [_GROUP, self.expr(stmt.value)]
                if stmt.op is not None:
                    arguments.append(repr(stmt.op))
                if stmt.source is not None:
                    arguments.append(self.bare(stmt.source))
                function = _GROUP_FUNCTIONS[stmt.function]
                return f"{stmt.result} = {function}({', '.join(arguments)})"

    def _if(self, stmt: If, depth: int, keyword: str) -> Iterator[str]:
        pad = INDENT * depth
        yield f"{pad}{keyword} {self.expr(stmt.cond)}:"
        yield from self.body(stmt.then, depth + 1)
        match stmt.orelse:
            case ():
                return
            case (If() as only,):
                yield from self._if(only, depth, "elif")
            case orelse:
                yield f"{pad}else:"
                yield from self.body(orelse, depth + 1)

    def _range(self, loop: For) -> str:
        start, stop, step = (self.bare(e) for e in (loop.start, loop.stop, loop.step))
        if step != "1":
            return f"{start}, {stop}, {step}"
        return stop if start == "0" else f"{start}, {stop}"

    def _indices(self, indices: tuple[Expr, ...]) -> str:
        return ", ".join(self.bare(i) for i in indices) if indices else "()"

    # ------------------------------------------------------------ expressions
    def expr(self, expr: Expr, strength: int = _SELECT) -> str:
        """``expr`` in parentheses if its operator binds weaker than ``strength``."""
        text, own = self._expr(expr)
        return f"({text})" if own < strength else text

    def bare(self, expr: Expr, strength: int = _SELECT) -> str:
        """As ``expr``, for a place that gives a literal its type."""
        if isinstance(expr, Const):
            text = _literal(expr)
            return f"({text})" if _is_negative(expr) and strength > _SIGN else text
        return self.expr(expr, strength)

    def _expr(self, expr: Expr) -> tuple[str, int]:
        match expr:
            case Const():
                return self._const(expr)
            case Var() | Param():
                return expr.name, _ATOM
            case Extent():
                return f"{expr.array}.shape[{expr.dim}]", _ATOM
            case ItemQuery():
                if expr.query in ("tile_first", "tile_last"):
                    return f"tile.{expr.query.removeprefix('tile_')}({expr.dim})", _ATOM
                return f"item.{self._queries[expr.query]}({expr.dim})", _ATOM
            case Load():
                return f"{expr.array}[{self._indices(expr.indices)}]", _ATOM
            case Unary():
                symbol, own = _UNARY[expr.op]
                return symbol + self.expr(expr.operand, own), own
            case Binary():
                return self._binary(expr)
            case Compare():
                lhs, rhs = self._pair(expr.lhs, expr.rhs, _COMPARE + 1, _COMPARE + 1)
                return f"{lhs} {_COMPARISON[expr.op]} {rhs}", _COMPARE
            case Logical():
                own = _OR if expr.op == "or" else _AND
                lhs, rhs = self.expr(expr.lhs, own), self.expr(expr.rhs, own + 1)
                return f"{lhs} {expr.op} {rhs}", own
            case Select():
                then, cond = self.expr(expr.then, _OR), self.expr(expr.cond, _OR)
                return f"{then} if {cond} else {self.expr(expr.orelse)}", _SELECT
            case Cast():
                return f"{_constructor(expr.type)}({self._bare_if_default(expr.operand)})", _ATOM
            case Call():
                return self._call(expr), _ATOM

    def _bare_if_default(self, expr: Expr) -> str:
        """As ``bare`` for the literals whose Python type is their type already."""
        if isinstance(expr, Const) and expr.type.name in ("bool", "int64", "float64"):
            return self.bare(expr)
        return self.expr(expr)

    def _const(self, const: Const) -> tuple[str, int]:
        if const.type.is_bool or const.type == INT64:
            return _literal(const), _SIGN if _is_negative(const) else _ATOM
        return f"{_constructor(const.type)}({_literal(const)})", _ATOM

    def _binary(self, expr: Binary) -> tuple[str, int]:
        symbol, own = _BINARY[expr.op]
        if expr.op == "pow":  # binds to the right, and its right side may carry a sign
            lhs, rhs = self._pair(expr.lhs, expr.rhs, own + 1, _SIGN)
        else:
            lhs, rhs = self._pair(expr.lhs, expr.rhs, own, own + 1)
        return f"{lhs} {symbol} {rhs}", own

    def _pair(self, lhs: Expr, rhs: Expr, left: int, right: int) -> tuple[str, str]:
        """Two operands of one type: a literal is bare beside one that has a type itself."""
        if isinstance(rhs, Const) and not isinstance(lhs, Const):
            return self.expr(lhs, left), self.bare(rhs, right)
        if isinstance(lhs, Const) and not isinstance(rhs, Const):
            return self.bare(lhs, left), self.expr(rhs, right)
        return self.expr(lhs, left), self.expr(rhs, right)

    def _call(self, call: Call) -> str:
        default = call.function if call.function in DEVICE_FUNCTIONS else f"np.{call.function}"
        name = _PYTHON_FUNCTIONS.get(call.function, default)
        if len(call.args) == 2:
            return f"{name}({', '.join(self._pair(*call.args, _SELECT, _SELECT))})"
        return f"{name}({', '.join(self.expr(a) for a in call.args)})"
