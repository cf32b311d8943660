"""Turns the IR into a Python function that works on NumPy scalars with the IR's semantics.

The generated source is::

    def bind(a, b, n):                  # once a launch
        def work_group():               # once a work-group: declares local arrays
            def work_item(global_id, global_range, local_id, local_range, group_id, group_range):
                ...
            return work_item
        return work_group

In a kernel with barriers or group functions ``work_item`` is a generator that yields at each
of them, see ``groups``.  In a work-group function it is one that does a whole group,
``work_item(items, global_range, local_range, group_id, group_range)``: ``items(n)`` gives the ids
of the group's first n work-items, and it yields after each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from fusionq.backends.reference.checked_arrays import CheckedArray, declared_array, new_bytes
from fusionq.backends.reference.groups import Steps, atomic, combined, run_group
from fusionq.backends.reference.livelock import waiting
from fusionq.backends.reference.scalars import FUNCTIONS, Scalar, int64_range
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import (
    ArrayDecl,
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
    Prefetch,
    Select,
    StageCode,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.waiting_loops import awaited_arrays
from fusionq.ir.walk import is_work_group_function, local_memories, statements
from fusionq.language.casts import cast

Ids = tuple[Any, ...]
WorkItem = Callable[[Ids, Ids, Ids, Ids, Ids, Ids], "Steps | None"]
WorkGroup = Callable[[], WorkItem]
Bind = Callable[..., WorkGroup]

_QUERIES = "global_id, global_range, local_id, local_range, group_id, group_range"
_GROUP_QUERIES = "items, global_range, local_range, group_id, group_range"
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
_COMPARISON = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_UNARY = {"neg": "-", "pos": "+", "not": "~", "invert": "~"}


def compile_kernel(kernel: Kernel) -> Bind:
    """The kernel's function of its arguments (CheckedArray or NumPy scalar), see above."""
    compiler = _Compiler(kernel.name)
    exec(_compiled(compiler.kernel(kernel), kernel.name), compiler.namespace)
    bind: Bind = compiler.namespace["bind"]
    return bind


@dataclass(frozen=True, slots=True)
class ClosedForms:
    """A stage's range, and the boxes that a tile of it waits for, as Python functions.

    ``extents``: of the code's arguments.  ``waits``: of those and of the tile's first and last
    work-item; for each wait first and last work-item by dimension, None where it is for all.
    """

    extents: Callable[..., tuple[Scalar, ...]]
    waits: Callable[..., Callable[[Ids, Ids], tuple[tuple[tuple[Scalar, Scalar], ...] | None, ...]]]


def compile_closed_forms(code: StageCode) -> ClosedForms:
    """The functions of a persistent kernel's stage."""
    compiler = _Compiler(code.kernel.name)
    exec(_compiled(compiler.closed_forms(code), code.kernel.name), compiler.namespace)
    return ClosedForms(compiler.namespace["extents"], compiler.namespace["waits"])


def _compiled(lines: Iterable[str], kernel: str) -> CodeType:
    """Generated source, compiled; DeviceError where it is nested deeper than Python allows."""
    try:
        return compile("\n".join(lines), f"<reference {kernel}>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise DeviceError(
            f"the kernel {kernel!r} is nested too deeply for the reference backend, whose kernels "
            f"Python compiles ({error.__class__.__name__}: {error})\n"
            "  Assign parts of the expression to variables, split deep branches into several "
            "kernels, or run it on a SYCL device."
        ) from None


def _name(name: str) -> str:
    """The IR's names live beside the helpers, under a prefix."""
    return "u_" + name


def _memory(name: str) -> str:
    return "m_" + name


class _Compiler:
    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._of_group = False
        self._private: list[ArrayDecl] = []
        self.namespace: dict[str, Any] = {
            "int64_range": int64_range,
            "cast": cast,
            "declared_array": declared_array,
            "new_bytes": new_bytes,
            "atomic": atomic,
            "combined": combined,
            "run_group": run_group,
            "waiting": waiting,
            **{f"call_{name}": function for name, function in FUNCTIONS.items()},
        }

    def _object(self, value: object) -> str:
        """A name for ``value`` in the generated source."""
        name = f"object_{len(self.namespace)}"
        self.namespace[name] = value
        return name

    # ----------------------------------------------------------------- statements
    def kernel(self, kernel: Kernel) -> Iterator[str]:
        self._of_group = is_work_group_function(kernel)
        yield f"def bind({', '.join(_name(p.name) for p in kernel.params)}):"
        yield "    def work_group():"
        for name, arrays in local_memories(kernel).items():
            yield f"        {_memory(name)} = new_bytes({max(a.nbytes for a in arrays)})"
            yield from (f"        {self._declare(a, _memory(name))}" for a in arrays)
        for array in kernel.arrays:
            if array.space == "constant":
                table = CheckedArray(self._kernel, array.name, array.elements)
                yield f"        {_name(array.name)} = {self._object(table)}"
        queries = _GROUP_QUERIES if is_work_group_function(kernel) else _QUERIES
        yield f"        def work_item({queries}):"
        self._private = [array for array in kernel.arrays if array.space == "private"]
        yield from (f"            {self._declare(array)}" for array in self._private)
        yield from self._body(kernel.body, "            ")
        yield "        return work_item"
        yield "    return work_group"

    def _declare(self, array: ArrayDecl, memory: str | None = None) -> str:
        dtype, memory = self._object(array.dtype), memory or f"new_bytes({array.nbytes})"
        arguments = f"{self._kernel!r}, {array.name!r}, {array.shape!r}, {dtype}, {memory}"
        return f"{_name(array.name)} = declared_array({arguments})"

    def _body(self, body: Iterable[Stmt], pad: str) -> Iterator[str]:
        yield f"{pad}pass"
        for stmt in body:
            yield from self._stmt(stmt, pad)

    def _stmt(self, stmt: Stmt, pad: str) -> Iterator[str]:
        inner = pad + "    "
        match stmt:
            case Assign():
                yield f"{pad}{_name(stmt.name)} = {self._expr(stmt.value)}"
            case Store():
                arguments = ", ".join(map(self._expr, (stmt.value, *stmt.indices)))
                yield f"{pad}{_name(stmt.array)}.store({self._object(stmt.span)}, {arguments})"
            case If():
                yield f"{pad}if {self._expr(stmt.cond)}:"
                yield from self._body(stmt.then, inner)
                orelse = stmt.orelse
                while len(orelse) == 1 and isinstance(branch := orelse[0], If):
                    yield f"{pad}elif {self._expr(branch.cond)}:"
                    yield from self._body(branch.then, inner)
                    orelse = branch.orelse
                yield f"{pad}else:"
                yield from self._body(orelse, inner)
            case For():
                bounds = ", ".join(map(self._expr, (stmt.start, stmt.stop, stmt.step)))
                yield f"{pad}for {_name(stmt.var)} in int64_range({bounds}):"
                yield from self._body(stmt.body, inner)
            case While() if awaited_arrays(stmt):
                yield f"{pad}for _ in waiting({self._object(stmt.span)}):"
                yield f"{inner}if not ({self._expr(stmt.cond)}):"
                yield f"{inner}    break"
                yield from self._body(stmt.body, inner)
            case While():
                yield f"{pad}while {self._expr(stmt.cond)}:"
                yield from self._body(stmt.body, inner)
            case Break():
                yield f"{pad}break"
            case Continue():
                yield f"{pad}continue"
            case Block():
                yield from self._body(stmt.body, pad)
            case WorkItemLoop() if any(isinstance(s, GroupCall) for s in statements(stmt.body)):
                ids = "global_id, local_id, local_linear_id"
                yield f"{pad}def region({ids}):"
                yield from (f"{inner}{self._declare(a)}" for a in self._private)
                yield from self._body(stmt.body, inner)
                yield f"{inner}if False:"
                yield f"{inner}    yield"
                items = f"(int(i[2][0]), region(*i)) for i in items({stmt.items})"
                yield f"{pad}run_group({self._kernel!r}, [{items}])"
                yield f"{pad}yield"
            case WorkItemLoop():
                ids = "global_id, local_id, local_linear_id"
                yield f"{pad}for {ids} in items({stmt.items}):"
                yield from self._body(stmt.body, inner)
                yield f"{inner}yield"
            case Barrier() if self._of_group:
                pass
            case Barrier():
                yield f"{pad}yield {self._object(stmt)}, None, None"
            case GroupCall(values=str() as values) if self._of_group:
                yield (
                    f"{pad}{_name(stmt.result)} = combined({_name(values)}, "
                    f"{self._object(stmt)}, local_range)"
                )
            case GroupCall():
                source = "None" if stmt.source is None else self._expr(stmt.source)
                meeting = f"{self._object(stmt)}, {self._expr(stmt.value)}, {source}"
                yield f"{pad}{_name(stmt.result)} = yield {meeting}"
            case Atomic():
                value = "None" if stmt.value is None else self._expr(stmt.value)
                if stmt.expected is not None:
                    value = f"({self._expr(stmt.expected)}, {value})"
                indices = "".join(f", {self._expr(i)}" for i in stmt.indices)
                target = "" if stmt.result is None else f"{_name(stmt.result)} = "
                yield (
                    f"{pad}{target}atomic({_name(stmt.array)}, {self._object(stmt.span)}, "
                    f"{stmt.op!r}, {value}{indices})"
                )
            case Fence() | Prefetch():
                pass

    # --------------------------------------------------------------- closed forms
    def closed_forms(self, code: StageCode) -> Iterator[str]:
        params = ", ".join(_name(p.name) for p in code.kernel.params)
        yield f"def extents({params}):"
        yield f"    return {self._tuple(map(self._expr, code.extents))}"
        boxes = (
            "None"
            if wait.bounds is None
            else self._tuple(self._tuple(map(self._expr, pair)) for pair in wait.bounds)
            for wait in code.waits
        )
        yield f"def waits({params}):"
        yield "    def boxes(tile_first, tile_last):"
        yield f"        return {self._tuple(boxes)}"
        yield "    return boxes"

    @staticmethod
    def _tuple(parts: Iterable[str]) -> str:
        return f"({''.join(f'{part}, ' for part in parts)})"

    # ---------------------------------------------------------------- expressions
    def _expr(self, expr: Expr) -> str:
        match expr:
            case Const():
                with np.errstate(all="ignore"):
                    return self._object(expr.type.dtype.type(expr.value))
            case Var() | Param():
                return _name(expr.name)
            case Extent():
                return f"{_name(expr.array)}.extents[{expr.dim}]"
            case ItemQuery():
                return f"{expr.query}[{expr.dim}]"
            case Load():
                indices = "".join(f", {self._expr(i)}" for i in expr.indices)
                return f"{_name(expr.array)}.load({self._object(expr.span)}{indices})"
            case Unary():
                return f"({_UNARY[expr.op]}{self._expr(expr.operand)})"
            case Binary():
                return f"({self._expr(expr.lhs)} {_BINARY[expr.op]} {self._expr(expr.rhs)})"
            case Compare():
                return f"({self._expr(expr.lhs)} {_COMPARISON[expr.op]} {self._expr(expr.rhs)})"
            case Logical():
                return f"({self._expr(expr.lhs)} {expr.op} {self._expr(expr.rhs)})"
            case Select():
                then, orelse = self._expr(expr.then), self._expr(expr.orelse)
                return f"({then} if {self._expr(expr.cond)} else {orelse})"
            case Cast():
                return self._cast(expr)
            case Call(function="bit_cast", args=(operand,)):
                dtype = self._object(expr.type.dtype)
                return f"{self._expr(operand)}.view({dtype})"
            case Call():
                return f"call_{expr.function}({', '.join(map(self._expr, expr.args))})"

    def _cast(self, expr: Cast) -> str:
        operand = self._expr(expr.operand)
        if expr.type == expr.operand.type:
            return operand
        dtype = self._object(expr.type.dtype)
        if expr.operand.type.is_float and expr.type.is_integer:
            return f"cast({operand}, {dtype})"
        return f"{operand}.astype({dtype})"
