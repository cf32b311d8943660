"""What lowering a function keeps track of: what names stand for, the statements so far."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NoReturn

from fusionq.base.errors import KernelLanguageError
from fusionq.base.span import Span
from fusionq.base.units import shown
from fusionq.frontend.callees import is_known
from fusionq.frontend.draft import Draft, Jump, stores
from fusionq.frontend.kernel_state import KernelState
from fusionq.frontend.path_conditions import PathConditions
from fusionq.frontend.source import FunctionSource
from fusionq.frontend.typing_rules import constant, type_name
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    Axis,
    ComplexValue,
    Constant,
    Environment,
    FunctionValue,
    ItemValue,
    MethodValue,
    NewPrivateArray,
    ObjectValue,
    ReductionValue,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    VectorValue,
    describe,
    is_record,
)
from fusionq.ir.nodes import (
    Assign,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Param,
    Var,
)
from fusionq.ir.types import WEAK_INT, ScalarType
from fusionq.ir.walk import reads_memory, subexpressions

ATOMS = (Const, Var, Param, Extent, ItemQuery)
"""Expressions that cost nothing to evaluate again."""


class NotConstant(KernelLanguageError):
    """A value has to be known at compile time; it would be if ``variables`` were."""

    def __init__(self, message: str, variables: set[str]) -> None:
        super().__init__(message)
        self.variables = variables


@dataclass(slots=True)
class LoopContext:
    """The jumps out of a loop's body, with what the names stood for there."""

    breaks: list[tuple[Jump, Environment]] = field(default_factory=list)
    continues: list[tuple[Jump, Environment]] = field(default_factory=list)


class FunctionState:
    """The lowering of one function: the kernel itself or a function inlined into it."""

    def __init__(
        self,
        kernel: KernelState,
        source: FunctionSource,
        environment: Environment,
        caller: tuple[FunctionState, ast.AST] | None = None,
    ) -> None:
        self.kernel = kernel
        self.source = source
        self.env: Environment | None = environment
        """What each local name stands for; None where no path leads."""
        self.caller = caller
        self.enclosing: FunctionState | None = None
        """What lowers the function in which this one is defined."""
        self.own_names: set[str] = set()
        """The names of its comprehensions."""
        self.rebound: frozenset[str] = frozenset()
        """Names that an expression of the present statement assigns."""
        self.path = PathConditions(
            kernel.versions, kernel.definitions, kernel.least, kernel.greatest
        )
        self.block: list[Draft] = []
        self.loops: list[LoopContext] = []
        self.open_regions: list[tuple[str, int]] = []
        """The regions around the current statement, with the number of loops around each."""
        self.returns: list[tuple[Jump, Value, ast.AST]] = []
        self.undo: list[Callable[[], object]] = []
        """Takes back what has been added to loops that were lowered before, the last one first."""
        self._variables: dict[tuple[str, ScalarType], str] = {}

    # ------------------------------------------------------------------ messages
    def error(self, node: ast.AST, message: str, hint: str) -> KernelLanguageError:
        """An error at a node, with the calls that lead to it."""
        if self.caller is not None and is_known(self.source.function.__module__):
            outer, call = self.caller
            return outer.error(call, message, hint)
        error = self.source.error(node, message, hint)
        if self.caller is None:
            return error
        frame: FunctionState | None = self
        calls = []
        while frame is not None and frame.caller is not None:
            outer, call = frame.caller
            calls.append(f"\n  called at {outer.source.span(call)}, in {outer.source.name!r}")
            frame = outer
        return KernelLanguageError(str(error) + "".join(calls))

    def fail(self, node: ast.AST, message: str, hint: str) -> NoReturn:
        raise self.error(node, message, hint)

    def span(self, node: ast.AST) -> Span:
        """Where a node stands; what the kernel language's own functions do stands at their call."""
        if self.caller is not None and is_known(self.source.function.__module__):
            outer, call = self.caller
            return outer.span(call)
        return self.source.span(node)

    @contextmanager
    def where(self, cond: Scalar, holds: bool) -> Iterator[None]:
        """Inside the block ``cond`` is known to hold, or not to."""
        known = self.path.facts
        if isinstance(cond, Runtime):
            self.path.facts = known + self.path.implied(cond.expr, holds)
        yield
        self.path.facts = known

    # ----------------------------------------------------------------- variables
    def variable(self, name: str, scalar: ScalarType) -> Var:
        """The variable that holds a local name's values of a type; the elements of a tuple
        ``t`` are named ``t.0``, ``t.1``, …"""
        key = (name, scalar.strong)
        if key not in self._variables:
            self._variables[key] = self.fresh(name)
        return Var(scalar.strong, self._variables[key])

    def variables_of(self, name: str) -> list[str]:
        """All variables that hold values of a local name."""
        return [variable for (local, _), variable in self._variables.items() if local == name]

    def fresh(self, name: str) -> str:
        """A new variable name; inlined functions put their own name before it."""
        name = name.replace(".", "_")
        return self.kernel.fresh(name if self.caller is None else f"{self.source.name}_{name}")

    def snapshot(self) -> Callable[[], None]:
        """A function that takes back all names given and statements emitted since."""
        restore_kernel = self.kernel.snapshot()
        variables, length, returns = dict(self._variables), len(self.block), len(self.returns)
        added = len(self.undo)

        def restore() -> None:
            restore_kernel()
            while len(self.undo) > added:
                self.undo.pop()()
            self._variables = dict(variables)
            del self.block[length:]
            del self.returns[returns:]

        return restore

    @contextmanager
    def nested(self) -> Iterator[list[Draft]]:
        """Collect the statements emitted inside in a block of their own."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def note_widening(self, held: ScalarType, wider: ScalarType, what: str, span: Span) -> None:
        """Note, for the report, that a value is held in a wider type than its own, since another
        path has a value of that type."""
        if not (held.weak or held == wider.strong):
            self.kernel.notes[
                f"{span}: {what} is {type_name(wider.strong)}, also where it is assigned a value "
                f"of type {type_name(held)}, since other paths need it"
            ] = None

    # --------------------------------------------------------------- conversions
    def convert(self, scalar: Scalar, target: ScalarType, node: ast.AST) -> Expr:
        """The scalar's value in a concrete type; an error for a Python int out of range."""
        if isinstance(scalar, Constant):
            try:
                return constant(scalar.value, target)
            except OverflowError:
                self.fail(
                    node,
                    f"the Python int {shown(scalar.value)} is out of the range of {target}",
                    f"Write a constant that fits {target}, or convert what it is combined with "
                    "to a wider type first, e.g. np.int64(…).",
                )
        if scalar.expr.type == target:
            return scalar.expr
        if target.is_bool:
            return Compare("ne", scalar.expr, constant(False, scalar.expr.type))
        if scalar.type == WEAK_INT and target.is_integer and isinstance(scalar.expr, Param):
            self.kernel.narrow(scalar.expr.name, target)
        return Cast(target, scalar.expr)

    # --------------------------------------------------------------- evaluation
    def spilled(self, scalar: Scalar, name: str, node: ast.AST) -> Scalar:
        """The scalar in a new variable, unless it costs nothing to evaluate again."""
        if isinstance(scalar, Constant):
            return scalar
        return Runtime(scalar.type, self.spilled_expr(scalar.expr, name, node))

    def spilled_expr(self, expr: Expr, name: str, node: ast.AST) -> Expr:
        """The expression's value in a new variable, unless it is free to evaluate again."""
        if isinstance(expr, ATOMS):
            return expr
        variable = Var(expr.type, self.fresh(name))
        self.block.append(Assign(variable.name, expr, self.span(node)))
        return variable

    def in_order(
        self, nodes: Sequence[ast.expr], evaluate: Callable[[ast.expr], Value]
    ) -> list[Value]:
        """The values of several expressions, evaluated from left to right.

        If a later one writes to memory (a call that was inlined), what the earlier ones read
        is put into variables before that.
        """
        values: list[Value] = []
        for node in nodes:
            position = len(self.block)
            value = evaluate(node)
            values = [
                self.evaluated_before(position, v, n) for v, n in zip(values, nodes, strict=False)
            ]
            values.append(value)
        return values

    def evaluated_before(self, position: int, value: Value, node: ast.AST) -> Value:
        """The value as it was before the statements from ``position`` on."""
        if not stores(self.block[position:]):
            return value
        with self.nested() as block:
            value = self._detached(value, node)
        self.block[position:position] = block
        return value

    def _detached(self, value: Value, node: ast.AST) -> Value:
        match value:
            case Runtime() if reads_memory(value.expr):
                return self.spilled(value, "value", node)
            case TupleValue():
                items = tuple(self._detached(v, node) for v in value.items)
                return replace(value, items=items)
            case ComplexValue() if any(reads_memory(e) for e in expressions_of(value)):
                return ComplexValue(*[self.spilled(p, "value", node) for p in value.parts])
            case ArrayValue():
                return self.detached_part(value, node)
            case VectorValue():
                return self.materialised("value", value, node)
            case AtomicValue():
                return replace(value, element=self.detached_part(value.element, node))
            case MethodValue(owner=AtomicValue() as owner):
                element = self.detached_part(owner.element, node)
                return MethodValue(replace(owner, element=element), value.name)
            case _:
                return value

    @abstractmethod
    def materialised(self, name: str, value: VectorValue, node: ast.AST) -> ArrayValue:
        """An expression's elements in a private array of their own."""

    def detached_part(self, array: ArrayValue, node: ast.AST) -> ArrayValue:
        """The part of an array that its indices denote now, whatever is written later."""
        return array.mapped(
            lambda index: self.spilled_expr(index, "index", node) if reads_memory(index) else index
        )

    def extents(self, array: ArrayValue) -> list[Scalar]:
        """``array.shape``, also of a part of an array."""
        cut = {d: axis for d, axis in enumerate(array.axes) if isinstance(axis, Axis)}
        return [
            as_constant(cut[d].extent) if d in cut else self.extent(array.name, d)
            for d in array.open
        ]

    def extent(self, array: str, dim: int) -> Scalar:
        """``array.shape[dim]`` of a whole array; one of records has its fields' first extents."""
        while array in self.kernel.fields:
            array = next(iter(self.kernel.fields[array].values()))
        declared = self.kernel.arrays.get(array)
        if declared is not None:
            return Constant(WEAK_INT, declared.shape[dim])
        known = self.kernel.field_extents.get(array, ())
        if dim < len(known) and (extent := known[dim]) is not None:
            return Constant(WEAK_INT, extent)
        return Runtime(WEAK_INT, Extent(array, dim))

    # -------------------------------------------------------------- expectations
    def scalar(self, value: Value, node: ast.AST) -> Scalar:
        """The value if it is a number, else an error."""
        if isinstance(value, (Runtime, Constant)):
            return value
        if isinstance(value, ObjectValue) and isinstance(value.object, IntEnum):
            return Constant(WEAK_INT, int(value.object))
        self.fail(node, f"a number is needed here, not {describe(value)}", _scalar_hint(value))

    def integer_constant(self, value: Value, node: ast.AST, what: str) -> int:
        """The value of a compile-time integer, else an error."""
        if isinstance(value, Constant) and value.type.is_integer:
            return int(value.value)
        error = self.error(
            node,
            f"{what} must be an integer constant",
            "Write a literal, a global or closure constant, or the variable of a loop over a short "
            "constant range without break and continue.",
        )
        reads = subexpressions(value.expr) if isinstance(value, Runtime) else ()
        raise NotConstant(str(error), {e.name for e in reads if isinstance(e, Var)})


def as_constant(expr: Expr) -> Scalar:
    """A Python int whose value is ``expr``."""
    if isinstance(expr, Const):
        return Constant(WEAK_INT, int(expr.value))
    return Runtime(WEAK_INT, expr)


def expressions_of(value: ComplexValue) -> list[Expr]:
    """Those of the parts that are not constant."""
    return [part.expr for part in value.parts if isinstance(part, Runtime)]


def _scalar_hint(value: Value) -> str:
    match value:
        case ArrayValue() if is_record(value):
            return 'Take one of its fields, e.g. r.x or r["x"].'
        case ArrayValue():
            return "Give one index for each dimension, e.g. a[i] or a[i, j]."
        case TupleValue():
            return "Take one element, e.g. t[0], or unpack it: x, y = t."
        case VectorValue():
            return "Assign it to a part of an array, e.g. out[i, :] = …"
        case ComplexValue():
            return "Take its real or imaginary part, z.real or z.imag, or abs(z)."
        case MethodValue() | FunctionValue():
            return "Call it: put parentheses after it."
        case AtomicValue():
            return "Call a method of it, e.g. .load()."
        case ReductionValue():
            return (
                "Its value is known when all work-items have run: read the buffer in a kernel that "
                f"is submitted later.  Work-items combine: {value.name}.combine(x)."
            )
        case ObjectValue(object=str()):
            return "Compare it with another constant, by == or in; kernels compute with numbers."
        case NewPrivateArray():
            return "Assign it to a name, and index that."
        case ItemValue():
            return "Ask it for an id, e.g. item.get_id(0)."
        case _:
            return "Kernels compute with numbers: bool, integers and floating point."
