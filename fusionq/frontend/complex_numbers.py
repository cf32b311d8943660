"""Complex numbers: a pair of floating numbers in the IR, with NumPy's results.

A complex array is, in the IR, an array of its parts' type with one more dimension, of extent 2.
"""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from fusionq.base.dtypes import numba_dtype
from fusionq.frontend import complex_bodies
from fusionq.frontend.callees import Callee
from fusionq.frontend.function_table import call_scalar_function
from fusionq.frontend.operators import Operators
from fusionq.frontend.typing_rules import WEAK_BOOL, arithmetic_type, floating, type_name
from fusionq.frontend.values import (
    ArrayValue,
    ComplexValue,
    Constant,
    Runtime,
    Scalar,
    TupleValue,
    Value,
)
from fusionq.ir.nodes import BinaryOp, CompareOp, Const, Expr, Load, Store, UnaryOp
from fusionq.ir.types import (
    BFLOAT16,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    WEAK_FLOAT,
    ScalarType,
    component_type,
)
from fusionq.ir.walk import reads_memory

Element = Scalar | ComplexValue

_BINARY: dict[object, BinaryOp] = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "truediv",
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
}  # fmt: skip
_COMPARE: dict[object, CompareOp] = {
    operator.eq: "eq", operator.ne: "ne", np.equal: "eq", np.not_equal: "ne",
}  # fmt: skip
_UNARY: dict[object, UnaryOp] = {
    operator.neg: "neg", operator.pos: "pos", np.negative: "neg", np.positive: "pos",
}  # fmt: skip
_POWERS = (pow, operator.pow, np.power)
_HINT = (
    "Complex numbers have + - * / **, == and !=, abs, conj, real and imag, exp, log, log2, log10, "
    "sqrt, square, reciprocal, sin, cos, tan, sinh, cosh, tanh, angle, isnan, isinf and isfinite; "
    "write other functions out in the real and the imaginary part."
)


class ComplexNumbers(Operators):
    """Lowers operations on complex numbers; operands are evaluated already."""

    @abstractmethod
    def inline(
        self,
        callee: Callee,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.AST,
    ) -> Value:
        """The result of a call of a Python function."""

    def refuse_complex(self, what: str, node: ast.AST) -> NoReturn:
        """Raise the error for an operation that complex numbers do not have."""
        self.fail(node, f"{what} of a complex number", _HINT)

    def number_value(self, value: Value, node: ast.AST) -> Element:
        """The value if it is a number, also a complex one, else an error."""
        return value if isinstance(value, ComplexValue) else self.scalar(value, node)

    def once(self, value: Element, name: str, node: ast.AST) -> Element:
        """The number in new variables, unless it costs nothing to evaluate again."""
        if isinstance(value, ComplexValue):
            return ComplexValue(*[self.spilled(part, name, node) for part in value.parts])
        return self.spilled(value, name, node)

    # -------------------------------------------------------------------- conversions
    def as_complex(self, value: Element, part: ScalarType, node: ast.AST) -> ComplexValue:
        """A number as a complex one with parts of a type."""
        parts = value.parts if isinstance(value, ComplexValue) else (value, Constant(part, 0.0))
        return ComplexValue(*[self.retyped(p, part, node) for p in parts])

    def made_complex(self, value: Value, node: ast.AST) -> ComplexValue:
        """A number as a complex one with parts of its own type."""
        number = self.number_value(value, node)
        if isinstance(number, ComplexValue):
            return number
        return self.as_complex(number, _part_of(number.type), node)

    def _common(self, a: Element, b: Element, node: ast.AST) -> tuple[ComplexValue, ComplexValue]:
        """Both as complex numbers of the type of their arithmetic, evaluated once."""
        types = [x.real.type if isinstance(x, ComplexValue) else x.type for x in (a, b)]
        part = _part_of(arithmetic_type(*types))
        made = [self.as_complex(x, part, node) for x in (a, b)]
        first, second = [self.once(x, "part", node) for x in made]
        assert isinstance(first, ComplexValue)
        assert isinstance(second, ComplexValue)
        return first, second

    def converted_to_complex(
        self, obj: object, arguments: Sequence[Value], node: ast.Call
    ) -> ComplexValue:
        """``complex(x)``, ``complex(x, y)``, ``np.complex64(x)`` and its like."""
        target = complex_type(obj)
        part = WEAK_FLOAT if target is None else component_type(target)
        most = 2 if target is None else 1
        if not 1 <= len(arguments) <= most:
            name = ast.unparse(node.func)
            self.fail(node, f"{name} takes {most} number(s)", "Write z = x + y * 1j.")
        parts = [self.number_value(a, n) for a, n in zip(arguments, node.args, strict=True)]
        if len(parts) == 1:
            return self.as_complex(parts[0], part, node)
        if any(isinstance(p, ComplexValue) for p in parts):
            self.fail(node, "complex() of complex parts", "Give real numbers.")
        numbers = [self.retyped(p, part, node) for p in parts if not isinstance(p, ComplexValue)]
        return ComplexValue(*numbers)

    # --------------------------------------------------------------------- operators
    def arithmetic(self, op: BinaryOp, a: Element, b: Element, node: ast.AST) -> Element:
        """``a op b`` of numbers, complex or not."""
        if not (isinstance(a, ComplexValue) or isinstance(b, ComplexValue)):
            return self.binary(op, a, b, node)
        known = _python_numbers(a, b)
        if known is not None and op in ("add", "sub", "mul", "truediv", "pow"):
            return self._folded(op, known, node)
        if op not in ("add", "sub", "mul", "truediv", "pow"):
            symbol = {"floordiv": "//", "mod": "%"}.get(op, "a bitwise operation")
            self.refuse_complex(symbol, node)
        x, y = self._common(a, b, node)
        if op in ("truediv", "pow"):
            body = complex_bodies.quotient if op == "truediv" else complex_bodies.power
            return self._by(body, [*x.parts, *y.parts], node)
        if op != "mul":
            parts = [self.binary(op, p, q, node) for p, q in zip(x.parts, y.parts, strict=True)]
            return ComplexValue(*parts)

        def product(p: Scalar, q: Scalar) -> Scalar:
            return self.binary("mul", p, q, node)

        real = self.binary("sub", product(x.real, y.real), product(x.imag, y.imag), node)
        imag = self.binary("add", product(x.real, y.imag), product(x.imag, y.real), node)
        return ComplexValue(real, imag)

    def _by(self, body: Callable[..., Any], parts: Sequence[Scalar], node: ast.AST) -> ComplexValue:
        """The complex number whose parts a body gives."""
        assert isinstance(body, FunctionType)
        result = self.inline(Callee(body), parts, {}, node)
        assert isinstance(result, TupleValue)
        real, imag = [self.retyped(self.scalar(part, node), parts[0].type, node)
                      for part in result.items]  # fmt: skip
        return ComplexValue(real, imag)

    def _folded(self, op: BinaryOp, values: tuple[Any, Any], node: ast.AST) -> ComplexValue:
        function: Callable[..., Any] = {
            "add": operator.add, "sub": operator.sub, "mul": operator.mul,
            "truediv": operator.truediv, "pow": operator.pow,
        }[op]  # fmt: skip
        try:
            return complex_constant(complex(function(*values)))
        except ArithmeticError as error:
            self.fail(
                node, f"this constant expression cannot be computed: {error}", "Change it."
            )

    def sign(self, op: UnaryOp, a: Element, node: ast.AST) -> Element:
        """``+a``, ``-a`` and ``~a``."""
        if not isinstance(a, ComplexValue):
            return self.unary(op, a, node)
        if op == "invert":
            self.refuse_complex("~", node)
        return ComplexValue(*[self.unary(op, part, node) for part in a.parts])

    def compared(self, op: CompareOp, a: Element, b: Element, node: ast.AST) -> Scalar:
        """``a op b`` of numbers, complex or not."""
        if not (isinstance(a, ComplexValue) or isinstance(b, ComplexValue)):
            return self.compare(op, a, b, node)
        if op not in ("eq", "ne"):
            self.refuse_complex("an order", node)
        x, y = self._common(a, b, node)
        real, imag = [self.compare(op, p, q, node) for p, q in zip(x.parts, y.parts, strict=True)]
        return self.binary("and" if op == "eq" else "or", real, imag, node)

    def complex_truth(self, a: ComplexValue, node: ast.AST) -> Scalar:
        """Whether a complex number is not 0."""
        real, imag = [self.truth(part, node) for part in a.parts]
        if isinstance(real, Constant) and isinstance(imag, Constant):
            return Constant(WEAK_BOOL, bool(real.value or imag.value))
        return self.binary("or", real, imag, node)

    # --------------------------------------------------------------------- functions
    def complex_function(
        self, obj: object, arguments: Sequence[Element], node: ast.Call
    ) -> Element:
        """A call of a built-in function or one of NumPy's, with complex numbers among its
        arguments."""
        try:
            binary, compare, unary = _BINARY.get(obj), _COMPARE.get(obj), _UNARY.get(obj)
        except TypeError:  # not hashable
            binary = compare = unary = None
        first = arguments[0]
        if len(arguments) == 2 and binary is not None:
            return self.arithmetic(binary, first, arguments[1], node)
        if len(arguments) == 2 and compare is not None:
            return self.compared(compare, first, arguments[1], node)
        if len(arguments) == 1 and isinstance(first, ComplexValue):
            if unary is not None:
                return self.sign(unary, first, node)
            if obj is abs or obj is np.abs or obj is operator.abs:
                length = call_scalar_function(self, np.hypot, first.parts, _with_parts(node))
                assert length is not None
                return self.scalar(length, node)
            if obj is np.conjugate:
                return self.conjugate(first, node)
            if obj is np.real or obj is np.imag:
                return first.real if obj is np.real else first.imag
            body = complex_bodies.FUNCTIONS.get(obj)
            if body is not None:
                once = self.once(first, "part", node)
                assert isinstance(once, ComplexValue)
                return self._by(body, once.parts, node)
            real = complex_bodies.REAL_FUNCTIONS.get(obj)
            if real is not None:
                assert isinstance(real, FunctionType)
                return self.scalar(self.inline(Callee(real), first.parts, {}, node), node)
        if len(arguments) == 2 and obj in _POWERS:
            return self.arithmetic("pow", first, arguments[1], node)
        self.refuse_complex(ast.unparse(node.func), node)

    def conjugate(self, a: ComplexValue, node: ast.AST) -> ComplexValue:
        """The complex conjugate."""
        return ComplexValue(a.real, self.unary("neg", a.imag, node))

    def choice(
        self, cond: Scalar, a: Element, b: Element, node: ast.AST, what: str
    ) -> Element:
        """``a if cond else b`` as one expression, or two of a complex number."""
        if not (isinstance(a, ComplexValue) or isinstance(b, ComplexValue)):
            return self.select(cond, a, b, self.joined(a, b, node, what), node)
        cond = self.spilled(cond, "condition", node)
        x, y = self.both_complex(a, b, node, what)
        return ComplexValue(
            *[
                self.select(cond, p, q, self.joined(p, q, node, what), node)
                for p, q in zip(x.parts, y.parts, strict=True)
            ]
        )

    def both_complex(
        self, a: Element, b: Element, node: ast.AST, what: str
    ) -> tuple[ComplexValue, ComplexValue]:
        """Both values of a choice, of which one is complex; an error if the other is not."""
        if not (isinstance(a, ComplexValue) and isinstance(b, ComplexValue)):
            self.fail(
                node,
                f"{what} is a complex number or a real one",
                "Convert the real one: complex(x), or np.complex64(x).",
            )
        return a, b

    # -------------------------------------------------------------------------- memory
    def loaded_parts(self, array: ArrayValue, node: ast.AST) -> ComplexValue:
        """The value of an element of a complex array."""
        part = component_type(array.type.dtype)
        span = self.span(node)
        places = [(*array.indices, Const(INT64, k)) for k in range(2)]
        return ComplexValue(
            *[Runtime(part, Load(part.strong, array.name, p, span)) for p in places]
        )

    def stored(self, array: ArrayValue, value: Value, node: ast.AST) -> None:
        """Emit the store of a number to an element."""
        number, dtype = self.number_value(value, node), array.type.dtype
        if not dtype.is_complex:
            if isinstance(number, ComplexValue):
                self.fail(
                    node,
                    f"a complex number for an array of {type_name(dtype)}",
                    "Take its .real or abs(…), or use a complex array.",
                )
            self._store(array, array.indices, self.convert(number, dtype, node), node)
            return
        part = component_type(dtype)
        exprs = [self.convert(p, part, node) for p in self.as_complex(number, part, node).parts]
        if any(map(reads_memory, exprs)):
            exprs = [self.spilled_expr(expr, "part", node) for expr in exprs]
        if any(map(reads_memory, array.indices)):
            array = self.detached_part(array, node)
        for k, expr in enumerate(exprs):
            self._store(array, (*array.indices, Const(INT64, k)), expr, node)

    def _store(
        self, array: ArrayValue, indices: tuple[Expr, ...], value: Expr, node: ast.AST
    ) -> None:
        self.block.append(Store(array.name, indices, value, self.span(node)))


def _part_of(type: ScalarType) -> ScalarType:
    """The type of the parts of a complex number that a real one of ``type`` becomes."""
    part = floating(type)
    return FLOAT32 if part in (BFLOAT16, FLOAT16) else part


def complex_type(obj: object) -> ScalarType | None:
    """The complex type that a Python object names, such as ``np.complex64``; None for others, and
    for ``complex``."""
    if isinstance(obj, np.dtype):
        obj = obj.type
    of_numba = numba_dtype(obj)
    obj = obj if of_numba is None else of_numba.type
    return COMPLEX64 if obj is np.complex64 else COMPLEX128 if obj is np.complex128 else None


def complex_constant(value: object) -> ComplexValue:
    """A complex number that is known at compile time."""
    if isinstance(value, np.complexfloating):
        part = FLOAT32 if value.dtype == np.complex64 else FLOAT64
        return ComplexValue(Constant(part, value.real), Constant(part, value.imag))
    assert isinstance(value, complex)
    return ComplexValue(Constant(WEAK_FLOAT, value.real), Constant(WEAK_FLOAT, value.imag))


def complex_of(value: Element) -> np.dtype[Any]:
    """The dtype of a number."""
    if isinstance(value, ComplexValue):
        return np.dtype("complex64" if value.real.type == FLOAT32 else "complex128")
    return value.type.dtype


def _python_numbers(a: Element, b: Element) -> tuple[Any, Any] | None:
    """Both as Python numbers, where they are that."""
    found = []
    for number in (a, b):
        parts = number.parts if isinstance(number, ComplexValue) else (number,)
        if not all(isinstance(p, Constant) and p.type.weak for p in parts):
            return None
        values = [p.value for p in parts if isinstance(p, Constant)]
        found.append(complex(*map(float, values)) if len(values) == 2 else values[0])
    return found[0], found[1]


def _with_parts(node: ast.Call) -> ast.Call:
    """A call with two arguments for one, the parts of that."""
    return ast.copy_location(ast.Call(node.func, [node.args[0]] * 2, []), node)

