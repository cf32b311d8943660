"""Prints the IR as readable Python in the kernel language's own style.

A literal stands bare where its neighbour gives it its type (``x * 0.5``), and in its type's
constructor elsewhere (``np.float32(0.5)``), so that the text says every type that it needs to.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from fusionq.ir.functions import BIT_CAST, DEVICE_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Atomic,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    For,
    GroupCall,
    GroupFunction,
    Kernel,
    KernelParam,
    Persistent,
    Record,
    Stmt,
)
from fusionq.ir.python_text import (
    INDENT,
    POWER,
    SELECT,
    PythonPrinter,
    constructor,
    literal,
    member,
    uses_groups,
)
from fusionq.ir.text import PRIMARY, UNARY, Text
from fusionq.ir.types import INT64

_PYTHON_FUNCTIONS = {
    "pymin": "min", "pymax": "max", "abs": "abs",
    "cospi": "fq.cospi", "sinpi": "fq.sinpi", "fma": "fq.fma", "clz": "fq.clz",
    "popcount": "fq.popcount",
    "erf": "math.erf", "erfc": "math.erfc", "gamma": "math.gamma", "lgamma": "math.lgamma",
}  # fmt: skip
_MOST_PRINTED = 64
"""Elements of a constant array that are all printed."""
_GROUP = "item.get_group()"
_SUB_GROUP = "item.get_sub_group()"
_GROUP_FUNCTIONS: dict[GroupFunction, str] = {
    "reduce": "reduce_over_group",
    "inclusive_scan": "inclusive_scan_over_group",
    "exclusive_scan": "exclusive_scan_over_group",
    "broadcast": "group_broadcast",
    "any": "any_of_group",
    "all": "all_of_group",
    "shift_left": "shift_group_left",
    "shift_right": "shift_group_right",
    "permute_xor": "permute_group_by_xor",
    "select": "select_from_group",
}


def print_kernel(kernel: Kernel) -> str:
    """The kernel as a Python function, with a final newline."""
    names = ", ".join(["item", *(p.name for p in kernel.params)])
    printer = _Printer(uses_groups(kernel))
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
    return _Printer().value(expr)


def _describe(param: KernelParam) -> str:
    if isinstance(param, ArrayParam):
        return f"{param.name}: {param.dtype}[{', '.join(':' * param.ndim)}]"
    return f"{param.name}: {param.type}"


def _declaration(array: ArrayDecl) -> str:
    if array.space == "constant":
        return f"{array.name} = np.array({_elements(array)}, {constructor(array.dtype)})"
    maker = "LocalAccessor" if array.space == "local" else "PrivateArray"
    shape = str(array.shape[0]) if len(array.shape) == 1 else str(array.shape)
    place = "" if array.memory is None else f"  # in memory {array.memory}"
    return f"{array.name} = {maker}({shape}, {constructor(array.dtype)}){place}"


def _elements(array: ArrayDecl) -> str:
    """A constant array's contents, of which long ones are abridged."""
    def printed(part: Any) -> str:
        if isinstance(part, list):
            return f"[{', '.join(map(printed, part))}]"
        return literal(Const(array.dtype, part)).text

    if prod(array.shape) > _MOST_PRINTED:
        return f"[{', '.join(map(printed, array.elements.ravel()[:4].tolist()))}, ...]"
    return printed(array.elements.tolist())


class _Printer(PythonPrinter):
    def __init__(self, nd_item: bool = False) -> None:
        super().__init__(nd_item)

    def bare(self, expr: Expr, precedence: int = SELECT) -> str:
        """``expr`` where its place gives a literal its type."""
        text = literal(expr) if isinstance(expr, Const) else self.text(expr)
        return text.at(precedence)

    def stored(self, value: Expr) -> str:
        return self.bare(value)

    def constant(self, const: Const) -> Text:
        if const.type.is_bool or const.type == INT64:
            return literal(const)
        return Text(f"{constructor(const.type)}({literal(const).text})", PRIMARY)

    def element(self, array: str, indices: tuple[Expr, ...]) -> str:
        return f"{array}[{self._indices(indices)}]"

    def _indices(self, indices: tuple[Expr, ...]) -> str:
        return ", ".join(self.bare(i) for i in indices) if indices else "()"

    def pair(self, lhs: Expr, rhs: Expr, left: int, right: int) -> tuple[str, str]:
        """A literal is bare beside one that has a type itself."""
        if isinstance(rhs, Const) and not isinstance(lhs, Const):
            return self.text(lhs).at(left), self.bare(rhs, right)
        if isinstance(lhs, Const) and not isinstance(rhs, Const):
            return self.bare(lhs, left), self.text(rhs).at(right)
        return super().pair(lhs, rhs, left, right)

    def binary(self, expr: Binary) -> Text:
        if expr.op != "pow":
            return super().binary(expr)
        # Binds to the right, and its right side may carry a sign.
        lhs, rhs = self.pair(expr.lhs, expr.rhs, POWER + 1, UNARY)
        return Text(f"{lhs} ** {rhs}", POWER)

    def cast(self, cast: Cast) -> Text:
        operand = cast.operand
        plain = isinstance(operand, Const) and operand.type.name in ("bool", "int64", "float64")
        value = self.bare(operand) if plain else self.value(operand)
        return Text(f"{constructor(cast.type)}({value})", PRIMARY)

    def call(self, call: Call) -> Text:
        if call.function == BIT_CAST:
            (operand,) = call.args
            number = f"{constructor(operand.type)}({self.value(operand)})"
            return Text(f"{number}.view({constructor(call.type)})", PRIMARY)
        default = call.function if call.function in DEVICE_FUNCTIONS else f"np.{call.function}"
        name = _PYTHON_FUNCTIONS.get(call.function, default)
        if len(call.args) == 2:
            arguments = list(self.pair(*call.args, SELECT, SELECT))
        else:
            arguments = [self.value(a) for a in call.args]
        return Text(f"{name}({', '.join(arguments)})", PRIMARY)

    def range(self, loop: For) -> str:
        start, stop, step = (self.bare(e) for e in (loop.start, loop.stop, loop.step))
        if step != "1":
            return f"{start}, {stop}, {step}"
        return stop if start == "0" else f"{start}, {stop}"

    def reference(self, atomic: Atomic) -> str:
        indices = self._indices(atomic.indices)
        index = f"({indices})" if len(atomic.indices) > 1 else indices
        order, scope = member("MemoryOrder", atomic.order), member("MemoryScope", atomic.scope)
        return f"AtomicRef({atomic.array}, {index}, {order}, {scope})"

    def group_call(self, call: GroupCall) -> str:
        group = _GROUP if call.sub_group is None else _SUB_GROUP
        arguments = [group, self.value(call.value)]
        if call.op is not None:
            arguments.append(repr(call.op))
        if call.source is not None:
            arguments.append(self.bare(call.source))
        return f"{call.result} = {_GROUP_FUNCTIONS[call.function]}({', '.join(arguments)})"

    def record(self, record: Record) -> list[str]:
        payload = "" if record.payload is None else f", {self.bare(record.payload)}"
        phase = "" if record.phase == "instant" else f"_{record.phase}"
        return [f"record_{record.kind}{phase}({record.region!r}{payload})"]

    def persistent(self, persistent: Persistent) -> list[str]:
        """The worker's loop: what it waits for and does for a tile of each stage."""
        lines = [f"for stage, tile in instructions({persistent.schedule}, {persistent.control}):"]
        for number, code in enumerate(persistent.codes):
            uses = [k for k, stage in enumerate(persistent.stages) if stage.code == number]
            which = f"== {uses[0]}" if len(uses) == 1 else f"in {tuple(uses)}"
            lines.append(f"{INDENT}{'elif' if number else 'if'} stage {which}:")
            names = ", ".join(p.name for p in code.kernel.params)
            inner = [f"{names} = arguments[stage]"] if names else []
            for position, wait in enumerate(code.waits):
                items = (
                    "all"
                    if wait.bounds is None
                    else ", ".join(f"{self.bare(a)}:{self.bare(b)} + 1" for a, b in wait.bounds)
                )
                inner.append(f"wait(producers[stage][{position}], items[{items}])")
            extents = ", ".join(self.bare(e) for e in code.extents)
            inner.append(f"for item in tile.items(range=({extents})):")
            inner += [f"{INDENT}{_declaration(array)}" for array in code.kernel.arrays]
            inner += self.body(code.kernel.body, 1)
            lines += [f"{INDENT * 2}{line}" for line in inner]
        return [*lines, f"{INDENT}publish(stage, tile)"]
