"""Lowering of numba-dpex's kernels: with our rules, checked against numba's at each step.

To numba every literal, Python number and loop variable is an int64 or a float64; here they take
the type beside them (NEP 50).  As long as both languages give each operation the same type, and
convert its operands alike, they give it the same value; where they do not, the kernel is refused,
and the message names the difference.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from fusionq.dpex.frontend.captures import DeviceFunction, DpexCaptures
from fusionq.dpex.frontend.signatures import conversions
from fusionq.frontend.callees import Callee
from fusionq.frontend.function_handlers import convert_number
from fusionq.frontend.joined_paths import State
from fusionq.frontend.lowering import FunctionLowering
from fusionq.frontend.source import FunctionSource
from fusionq.frontend.typing_rules import Holds, named_type, type_name
from fusionq.frontend.values import (
    Axis,
    Binding,
    Constant,
    FunctionValue,
    Runtime,
    Scalar,
    Unusable,
    Value,
    VectorValue,
)
from fusionq.ir.nodes import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from fusionq.ir.types import ScalarType

_BINARY: dict[BinaryOp, tuple[Callable[..., Any], str]] = {
    "add": (operator.add, "+"), "sub": (operator.sub, "-"), "mul": (operator.mul, "*"),
    "truediv": (operator.truediv, "/"), "floordiv": (operator.floordiv, "//"),
    "mod": (operator.mod, "%"), "pow": (operator.pow, "**"),
    "and": (operator.and_, "&"), "or": (operator.or_, "|"), "xor": (operator.xor, "^"),
    "shl": (operator.lshift, "<<"), "shr": (operator.rshift, ">>"),
}  # fmt: skip
_UNARY: dict[UnaryOp, tuple[Callable[..., Any], str]] = {
    "neg": (operator.neg, "-"), "pos": (operator.pos, "+"), "invert": (operator.invert, "~"),
}  # fmt: skip
_COMPARISONS: dict[CompareOp, tuple[Callable[..., Any], str]] = {
    "lt": (operator.lt, "<"), "le": (operator.le, "<="), "gt": (operator.gt, ">"),
    "ge": (operator.ge, ">="), "eq": (operator.eq, "=="), "ne": (operator.ne, "!="),
}  # fmt: skip
_DIVISIONS = ("truediv", "floordiv", "mod")
_KEEP_NARROW = (abs, min, max)
"""Functions whose integers below 64 bits may be wider in numba, with the same value."""
_INSTEAD: dict[object, str] = {
    getattr(
        math, name
    ): f"Write dpnp.{name}(…), which keeps the type in both; np.int64(…) of it is the integer."
    for name in ("floor", "ceil", "trunc")
}
_OTHER_ZEROS: dict[object, str] = {
    np.sign: "is -0.0 for -0.0 in numba-dpex, and 0.0 here",
    np.remainder: "gives zeros of another sign in numba-dpex",
    np.floor_divide: "is -0.0 for 1.0 and -inf in numba-dpex, and -1.0 here",
}
_WITH_OPERATORS = "Write it with operators, x % y or x // y, or with conditions."
_EXACT_IN_FLOAT64 = 2**53


class DpexLowering(FunctionLowering):
    """Lowers a function of a numba-dpex kernel; see the module."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._conflicts: dict[str, str] = {}
        """Names whose type differs between the languages where paths meet."""
        captures = self.kernel.captures
        assert isinstance(captures, DpexCaptures)
        self._numba = captures.numba
        self.divides_by_zero = captures.kernel.divides_by_zero
        """Whether numba computes a division by zero in this function."""

    # -------------------------------------------------------------- device functions
    def inside(self, callee: Callee, source: FunctionSource, node: ast.AST) -> DpexLowering:
        """What lowers the body of a function that is called here."""
        inner = super().inside(callee, source, node)
        assert isinstance(inner, DpexLowering)
        inner.divides_by_zero = not isinstance(callee, DeviceFunction) or callee.divides_by_zero
        return inner

    def inline_bound(
        self, callee: Callee, source: FunctionSource, bound: Mapping[str, Value], node: ast.AST
    ) -> Value:
        """The result of a call; with the conversions of the function's signatures, if it has
        any."""
        if not isinstance(callee, DeviceFunction) or callee.dispatcher is None:
            return super().inline_bound(callee, source, bound, node)
        order = [bound[name] for name in source.parameters]
        found = conversions(self._numba, callee.dispatcher, order)
        if isinstance(found, str):
            self.fail(node, f"{source.name}: {found}", "Convert the arguments to its types.")
        converted = {
            name: self._converted(value, target, node)
            for name, value, target in zip(
                source.parameters, order, found.arguments, strict=True
            )
        }
        result = super().inline_bound(callee, source, converted, node)
        return self._converted(result, found.result, node)

    def _converted(self, value: Value, target: ScalarType | None, node: ast.AST) -> Value:
        """A number as numba passes it; anything else as it is."""
        if target is None or not isinstance(value, (Runtime, Constant)):
            return value
        number = convert_number(self, target, value, node)
        return Runtime(target, _marked(number.expr)) if isinstance(number, Runtime) else number

    def nested_function(self, node: ast.FunctionDef | ast.Lambda) -> FunctionValue:
        """Refused: how numba compiles closures, and divides in them, is its own affair."""
        self.fail(
            node,
            "a function that is defined in a kernel of numba-dpex",
            "Define it outside, as numba_dpex.device_func.",
        )

    def array_call(
        self, function: object, arguments: Sequence[Value], node: ast.Call
    ) -> None:
        """None: numba-dpex compiles no functions of whole arrays in kernels."""

    def array_method(self, node: ast.Call) -> None:
        """None, as of ``array_call``."""

    def numpy_array(
        self,
        function: object,
        positional: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.Call,
    ) -> None:
        """None: numba-dpex makes no arrays in kernels but its PrivateArrays."""

    def matrix_product(self, left: Value, right: Value, node: ast.BinOp) -> NoReturn:
        """Refused, as of ``array_call``."""
        self.fail(node, "@ in a kernel of numba-dpex", "Write the loops out.")

    def of_expression(
        self, function: object, values: VectorValue, node: ast.Call
    ) -> NoReturn:
        """Refused, as of ``array_call``."""
        self.fail(
            node, f"{ast.unparse(node.func)} in a kernel of numba-dpex", "Write the loops out."
        )

    def sorted_items(self, node: ast.Call) -> NoReturn:
        """Refused: numba-dpex makes no lists in kernels."""
        self.fail(node, "sorted in a kernel of numba-dpex", "Write the loops out.")

    def and_or(self, node: ast.BoolOp) -> Value:
        """Of bools alone: which type numba gives to one of two numbers is its own affair."""
        return self.logical_operation(node, self.bool_operand)

    # ------------------------------------------------------------------- operators
    def binary(self, op: BinaryOp, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        """``a op b``, if numba gives it the same type."""
        result = super().binary(op, a, b, node)
        function, symbol = _BINARY[op]
        if op in _DIVISIONS:
            self._check_divisor(b, symbol, node)
        self._check_type(function, f"{symbol} of", (a, b), result, node)
        if op == "pow" and result.type.is_integer and not _is_small(result):
            self.fail(
                node,
                "an integer power goes through float64 in numba-dpex, and is exact here",
                "Write the product, x * x, or a power of floating numbers, np.float64(x) ** 2.",
            )
        return result

    def unary(self, op: UnaryOp, a: Scalar, node: ast.AST) -> Scalar:
        """``op a``, if numba gives it the same type."""
        result = super().unary(op, a, node)
        if op in _UNARY:
            function, symbol = _UNARY[op]
            self._check_type(function, f"unary {symbol} of", (a,), result, node)
        return result

    def compare(self, op: CompareOp, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        """``a op b``, if numba compares the same values."""
        result = super().compare(op, a, b, node)
        function, symbol = _COMPARISONS[op]
        found = self._numba.call(function, (a.type.strong, b.type.strong))
        if found is None:
            return result
        there = found[1][0]
        here = there
        if isinstance(result, Runtime) and isinstance(result.expr, Compare):
            here = result.expr.lhs.type
        if not _compare_alike(a, b, here, there):
            self._differ(
                node,
                f"{symbol} of {_operands((a, b))} compares in {there} in numba-dpex, and "
                f"{'in ' + str(here) if here != there else 'exactly'} here",
                (a, b),
            )
        return result

    def _check_divisor(self, divisor: Scalar, symbol: str, node: ast.AST) -> None:
        nonzero = isinstance(divisor, Constant) and divisor.value != 0
        if nonzero or self.divides_by_zero:
            return
        self.fail(
            node,
            f"{symbol} by what may be zero: in numba-dpex the work-item ends there without a "
            "word, and here the result is NumPy's",
            'Make the kernel with NumPy\'s rules in both: numba_dpex.kernel(error_model="numpy") '
            "(device_func alike).",
        )

    # ----------------------------------------------------------------------- calls
    def object_call(self, obj: object, arguments: Sequence[Value], node: ast.Call) -> Value:
        """A call of a type or a function, if numba gives it the same type."""
        result = super().object_call(obj, arguments, node)
        scalars = [a for a in arguments if isinstance(a, (Runtime, Constant))]
        if not isinstance(result, (Runtime, Constant)) or len(scalars) < len(arguments):
            return result
        what = f"{ast.unparse(node.func)} of"
        types = [s.type.strong for s in scalars]
        if obj is int and types[0].kind == "i":
            return result  # numba keeps its type, and widens it at the next operation
        if obj is round and types[0].is_integer:
            self._differ(node, f"{what} {types[0]} goes through float64 in numba-dpex", scalars)
        if obj in _OTHER_ZEROS and any(t.is_float for t in types):
            self._differ(node, f"{what} {types[0]} {_OTHER_ZEROS[obj]}", scalars, _WITH_OPERATORS)
        narrow, hint = obj in _KEEP_NARROW, _INSTEAD.get(obj)
        self._check_type(obj, what, scalars, result, node, narrow, hint)
        if named_type(obj) is not None and isinstance(result, Runtime):
            return Runtime(result.type, _marked(result.expr))
        return result

    def range_bounds(self, call: ast.Call) -> tuple[Expr, Expr, Expr]:
        """Start, stop and step of ``range(…)``, whose variable is an int64 in both languages."""
        bounds = super().range_bounds(call)
        constants = [self.value(a) for a in call.args if isinstance(a, (ast.Name, ast.Attribute))]
        types = [b.operand.type for b in bounds if isinstance(b, Cast)]
        types += [c.type for c in constants if isinstance(c, Constant)]
        unsigned = [t for t in types if t.kind == "u"]
        if unsigned:
            self.fail(
                call,
                f"the variable of a loop over range({unsigned[0]}) is a uint64 in numba-dpex, and "
                "a Python int here",
                "Convert it: range(np.int64(n)).",
            )
        return bounds

    def from_start(self, index: Expr, extent: Scalar) -> Expr:
        """Any negative index counts from the end, see ``indices``; known ones of arrays with a
        known extent do so here."""
        known = isinstance(extent, Constant) and isinstance(index, Const)
        return super().from_start(index, extent) if known else index

    def axis(self, node: ast.Slice, extent: Scalar) -> Axis:
        """Slices have other rules there: bounds and indices count from the end."""
        self.fail(
            node,
            "slices in numba-dpex's kernels count from the end where they are negative",
            "Index single elements, or write the kernel with @fusionq.kernel.",
        )

    # -------------------------------------------------------- where paths meet
    def joined(
        self, a: Scalar, b: Scalar, node: ast.AST, what: str, holds: Holds | None = None
    ) -> ScalarType:
        """The type of a choice between two numbers, if numba chooses the same."""
        common = super().joined(a, b, node, what, holds)
        there = self._numba.unified([a.type.strong, b.type.strong])
        if there is not None and not _agree(common.strong, there, narrow=True):
            self._differ(
                node,
                f"{what} is {there} in numba-dpex, and {type_name(common)} here: a choice "
                f"between {_operands((a, b))}",
                (a, b),
            )
        return common

    def meet(self, name: str, values: Sequence[Value]) -> Value | None:
        """What a name stands for that has one of these values; None if there is no such thing,
        or numba's has another type."""
        target = super().meet(name, values)
        types = [v.type.strong for v in values if isinstance(v, (Runtime, Constant))]
        if not isinstance(target, Runtime) or len(types) < len(values):
            return target
        there = self._numba.unified(types)
        if there is None or _agree(target.type.strong, there, narrow=True):
            return target
        self._conflicts[name] = (
            f"{name!r} is {there} in numba-dpex, and {type_name(target.type)} here: it is "
            f"{' or '.join(dict.fromkeys(_described(v) for v in values))}"
        )
        return None

    def _merged(self, name: str, states: Sequence[State]) -> Binding | Unusable:
        return self._explained(name, super()._merged(name, states))

    def name(self, node: ast.Name) -> Value:
        """The value of a name; an error that names the difference where it has two types."""
        bound = (self.env or {}).get(node.id)
        if isinstance(bound, Unusable) and node.id in self._conflicts:
            self.fail(node, self._conflicts[node.id], bound.hint)
        return super().name(node)

    def _explained(self, name: str, bound: Binding | Unusable) -> Binding | Unusable:
        if isinstance(bound, Unusable) and name in self._conflicts:
            return Unusable(self._conflicts[name], bound.hint)
        return bound

    # ---------------------------------------------------------------------- checks
    def _check_type(
        self,
        function: object,
        what: str,
        operands: Sequence[Scalar],
        result: Scalar,
        node: ast.AST,
        narrow: bool = True,
        hint: str | None = None,
    ) -> None:
        """Refuse a result whose type is another in numba; integers below 64 bits may be wider
        there (``integers`` looks after their values)."""
        found = self._numba.call(function, [o.type.strong for o in operands])
        if found is None:
            return  # numba-dpex does not compile it: there is nothing to differ from
        here, there = result.type.strong, found[0]
        if not _agree(here, there, narrow=narrow):
            message = f"{what} {_operands(operands)} is {there} in numba-dpex, and {here} here"
            self._differ(node, message, operands, hint)
        if isinstance(result, Constant) and result.type.weak and not _fits_int64(result):
            message = "numba-dpex computes this constant in int64, which it exceeds"
            self._differ(node, message, operands)

    def _differ(
        self, node: ast.AST, message: str, operands: Sequence[Scalar], hint: str | None = None
    ) -> None:
        strong = {o.type for o in operands if not o.type.weak}
        weak = [o for o in operands if o.type.weak]
        if hint is None and len(strong) == 1 and weak:
            example = _example(weak[0], *strong)
            hint = f"Write the type, so that both languages agree: {example}."
        hint = hint or "Convert the operands to one type, e.g. np.float64(…), np.int64(…)."
        self.fail(node, message, hint)


def _marked(expr: Expr) -> Expr:
    """A conversion that changes nothing here, but may in numba: ``np.int32(a + b)``."""
    computed = expr.type.is_integer and isinstance(expr, (Binary, Unary, Var, Select, Call))
    return Cast(expr.type, expr) if computed else expr


def _agree(here: ScalarType, there: ScalarType, narrow: bool) -> bool:
    """Whether two types are one; with ``narrow``, numba's integer may be wider than ours."""
    wider = here.is_integer and there.is_integer and here.bits < there.bits
    return here == there or (narrow and wider)


def _compare_alike(a: Scalar, b: Scalar, here: ScalarType, there: ScalarType) -> bool:
    """Whether a comparison in either type compares the same values."""
    if not there.is_float:
        return True
    if not here.is_float:  # exact here
        constants = [s.value for s in (a, b) if isinstance(s, Constant)]
        return any(abs(int(c)) <= _EXACT_IN_FLOAT64 for c in constants)
    return here == there or all(_is_exact(s, t) for s in (a, b) for t in (here, there))


def _is_exact(scalar: Scalar, target: ScalarType) -> bool:
    """Whether every value of the scalar keeps its value in a floating type."""
    if isinstance(scalar, Constant):
        value = scalar.value.item() if isinstance(scalar.value, np.generic) else scalar.value
        with np.errstate(all="ignore"):
            return bool(float(target.dtype.type(value)) == value)
    return bool(np.can_cast(scalar.type.dtype, target.dtype, "safe"))


def _is_small(scalar: Scalar) -> bool:
    """Whether the integer is a constant that float64 holds."""
    return isinstance(scalar, Constant) and abs(int(scalar.value)) <= _EXACT_IN_FLOAT64


def _fits_int64(constant: Constant) -> bool:
    return constant.type.is_float or -(2**63) <= int(constant.value) < 2**63


def _described(value: Value) -> str:
    assert isinstance(value, (Runtime, Constant))
    if not value.type.weak or value.type.is_bool:
        return type_name(value.type)
    literal = f" {value.value}" if isinstance(value, Constant) else ""
    return f"the Python {value.type}{literal}"


def _operands(operands: Sequence[Scalar]) -> str:
    return " and ".join(map(_described, operands))


def _example(weak: Scalar, strong: ScalarType) -> str:
    value = repr(weak.value) if isinstance(weak, Constant) else "…"
    return f"np.{strong}({value})"
