"""Checks that expressions are well-formed IR: names, types and shapes."""

from __future__ import annotations

from typing import NoReturn

from fusionq.base.errors import FusionqError
from fusionq.base.span import NO_SPAN
from fusionq.ir.functions import (
    BIT_CAST,
    DEVICE_FUNCTIONS,
    FLOAT_FUNCTIONS,
    INTEGER_FUNCTIONS,
    PREDICATES,
    SAME_TYPE_FUNCTIONS,
)
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Param,
    Select,
    Unary,
    Var,
)
from fusionq.ir.types import BFLOAT16, BOOL, FLOAT32, INT32, INT64, VALUE_TYPES, ScalarType
from fusionq.ir.walk import is_work_group_function

_QUERIES = {
    "global_id", "global_range", "local_id", "local_range", "group_id", "group_range",
    "local_linear_id",
}  # fmt: skip
_OF_WORK_ITEMS = {"global_id", "local_id", "local_linear_id"}
_TILE_QUERIES = {"tile_first", "tile_last"}
_BOOL_OPS = {"add", "mul", "and", "or", "xor"}
_INTEGER_OPS = {"add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor", "shl", "shr"}
_FLOAT_OPS = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow"}


class VerificationError(FusionqError):
    """A kernel is not well-formed IR: a defect of fusionq, not of the user's kernel."""


class ExpressionVerifier:
    """What names mean where a statement of ``kernel`` stands, and whether expressions there are
    well-formed; methods raise VerificationError."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._span = kernel.span
        self._variables: dict[str, ScalarType] = dict(kernel.variables)
        self._scalars: dict[str, ScalarType] = {}
        self._arrays: dict[str, ArrayParam | ArrayDecl] = {a.name: a for a in kernel.arrays}
        for param in kernel.params:
            if isinstance(param, ArrayParam):
                self._arrays[param.name] = param
            else:
                self._scalars[param.name] = param.type
        self._in_wait = False
        self._of_group = is_work_group_function(kernel)
        self._items: int | None = None
        """The work-items of the loop around the current statement of a work-group function."""
        self._outer_loops: list[str] = []
        """Those around the current loop over work-items."""
        self._loops: list[str] = []
        """The loops around the current statement: a ``For``'s variable, "" for a ``While``."""

    def _fail(self, what: str) -> NoReturn:
        where = "" if self._span == NO_SPAN else f" at {self._span}"
        text = f": {self._span.text.strip()}" if self._span.text else ""
        raise VerificationError(
            f"kernel '{self._kernel.name}' is not well-formed IR{where}{text}\n  {what}\n"
            "  This is a defect of fusionq; please report it with the kernel."
        )

    def _concrete(self, type_: ScalarType, what: str | Expr) -> None:
        if type_.weak or type_.name not in VALUE_TYPES:
            shown = what if isinstance(what, str) else _shown(what)
            self._fail(f"'{shown}' has the type {type_!r}, which is not concrete")

    def _typed(self, expr: Expr, type_: ScalarType, what: str) -> None:
        self._expr(expr)
        if expr.type != type_:
            self._fail(f"{what} is {expr.type}, not {type_}: {_shown(expr)}")

    def _access(self, name: str, indices: tuple[Expr, ...]) -> ArrayParam | ArrayDecl:
        array = self._arrays.get(name)
        if array is None:
            self._fail(f"there is no array '{name}'")
        ndim = array.ndim if isinstance(array, ArrayParam) else len(array.shape)
        if len(indices) != ndim:
            self._fail(f"'{name}' has {ndim} dimensions and gets {len(indices)} indices")
        for index in indices:
            self._typed(index, INT64, f"an index of '{name}'")
        return array

    def _changed(self, name: str, indices: tuple[Expr, ...]) -> ArrayParam | ArrayDecl:
        array = self._access(name, indices)
        if isinstance(array, ArrayDecl) and array.space == "constant":
            self._fail(f"the constant array '{name}' is changed")
        return array

    def _expr(self, expr: Expr) -> None:
        match expr:
            case Const():
                self._const(expr)
            case Var():
                self._var(expr)
            case Param():
                if self._scalars.get(expr.name) != expr.type:
                    self._fail(f"there is no scalar parameter '{expr.name}' of type {expr.type}")
            case Extent():
                array = self._arrays.get(expr.array)
                if not isinstance(array, ArrayParam) or not 0 <= expr.dim < array.ndim:
                    self._fail(f"no array parameter has the extent {_shown(expr)}")
                self._result(expr, INT64)
            case ItemQuery():
                queries = _TILE_QUERIES if self._in_wait else _QUERIES
                if expr.query not in queries or not 0 <= expr.dim < self._kernel.ndim:
                    self._fail(
                        f"no {expr.query} in dimension {expr.dim} "
                        f"of a kernel of {self._kernel.ndim} dimensions"
                    )
                if self._of_group and self._items is None and expr.query in _OF_WORK_ITEMS:
                    self._fail(f"{expr.query} of no work-item")
                self._result(expr, INT64)
            case Load():
                self._result(expr, self._access(expr.array, expr.indices).dtype)
            case Unary():
                self._unary(expr)
            case Binary():
                self._binary(expr)
            case Compare():
                self._expr(expr.lhs)
                self._typed(expr.rhs, expr.lhs.type, "the right side of a comparison")
                self._computed(expr.lhs.type, f"'{expr.op}'")
                self._result(expr, BOOL)
            case Logical():
                self._typed(expr.lhs, BOOL, f"the left side of '{expr.op}'")
                self._typed(expr.rhs, BOOL, f"the right side of '{expr.op}'")
                self._result(expr, BOOL)
            case Select():
                self._typed(expr.cond, BOOL, "the condition")
                self._typed(expr.then, expr.type, "the first choice")
                self._typed(expr.orelse, expr.type, "the second choice")
            case Cast():
                self._concrete(expr.type, expr)
                self._expr(expr.operand)
                types = {expr.type, expr.operand.type}
                if BFLOAT16 in types and not types <= {BFLOAT16, FLOAT32}:
                    self._fail(f"a bfloat16 and no float32: {_shown(expr)}")
            case Call():
                self._call(expr)
            case _:
                self._fail(f"not an expression: {expr!r}")

    def _computed(self, type_: ScalarType, what: str) -> None:
        if type_ == BFLOAT16:
            self._fail(f"{what} of {type_}, which is computed in float32")

    def _result(self, expr: Expr, type_: ScalarType) -> None:
        if expr.type != type_:
            self._fail(f"{_shown(expr)} is {type_}, but is marked as {expr.type}")

    def _const(self, const: Const) -> None:
        self._concrete(const.type, const)
        value = const.value
        if const.type.is_bool:
            fits = isinstance(value, bool)
        elif const.type.is_float:
            fits = isinstance(value, float)
        else:
            low = 0 if const.type.kind == "u" else -(1 << const.type.bits - 1)
            fits = type(value) is int and low <= value < low + (1 << const.type.bits)
        if not fits:
            self._fail(f"{value!r} ({type(value).__name__}) is no constant of type {const.type}")

    def _var(self, var: Var) -> None:
        if var.name in self._loops or var.name in self._outer_loops:
            self._result(var, INT64)
        elif var.name in self._variables:
            self._result(var, self._variables[var.name])
        else:
            self._fail(f"'{var.name}' is neither a declared variable nor a loop's around it")

    def _unary(self, expr: Unary) -> None:
        self._typed(expr.operand, expr.type, f"the operand of '{expr.op}'")
        self._computed(expr.type, f"'{expr.op}'")
        allowed = {
            "neg": not expr.type.is_bool,
            "pos": not expr.type.is_bool,
            "not": expr.type.is_bool,
            "invert": not expr.type.is_float,
        }
        if not allowed.get(expr.op, False):
            self._fail(f"no '{expr.op}' of {expr.type}: {_shown(expr)}")

    def _binary(self, expr: Binary) -> None:
        self._typed(expr.lhs, expr.type, f"the left side of '{expr.op}'")
        self._typed(expr.rhs, expr.type, f"the right side of '{expr.op}'")
        self._computed(expr.type, f"'{expr.op}'")
        allowed = (
            _BOOL_OPS if expr.type.is_bool else (_FLOAT_OPS if expr.type.is_float else _INTEGER_OPS)
        )
        if expr.op not in allowed:
            self._fail(f"no '{expr.op}' of {expr.type}: {_shown(expr)}")
        if expr.op == "pow" and expr.type.kind == "i" and not _is_natural(expr.rhs):
            self._fail(
                "the exponent of a signed integer power is neither a constant that is not "
                f"negative nor converted from an unsigned type: {_shown(expr)}"
            )

    def _call(self, call: Call) -> None:
        for arg in call.args:
            self._expr(arg)
            self._computed(arg.type, call.function)
        name = call.function
        types = {arg.type for arg in call.args}
        if name in FLOAT_FUNCTIONS:
            arity, right = FLOAT_FUNCTIONS[name], types == {call.type} and call.type.is_float
        elif name == "ldexp":
            operands = [arg.type for arg in call.args]
            arity, right = 2, call.type.is_float and operands == [call.type, INT32]
        elif name == BIT_CAST:
            arity, right = 1, {t.bits for t in types} == {call.type.bits}
            right = right and not (call.type.is_bool or BOOL in types or call.type == BFLOAT16)
        elif name in INTEGER_FUNCTIONS:
            arity, right = INTEGER_FUNCTIONS[name], types == {call.type} and call.type.is_integer
        elif name in PREDICATES:
            floats = len(types) == 1 and all(t.is_float for t in types)
            arity, right = PREDICATES[name], call.type == BOOL and floats
        elif name in SAME_TYPE_FUNCTIONS:
            numeric = name != "sign" or not call.type.is_bool
            arity, right = SAME_TYPE_FUNCTIONS[name], types == {call.type} and numeric
        elif name in DEVICE_FUNCTIONS:
            type_name, arity = DEVICE_FUNCTIONS[name]
            right = call.type.name == type_name and types <= {INT64}
        else:
            self._fail(f"there is no function '{name}'")
        if len(call.args) != arity:
            self._fail(f"'{name}' takes {arity} arguments, not {len(call.args)}")
        if not right:
            given = ", ".join(str(arg.type) for arg in call.args)
            self._fail(f"no {name}({given}) -> {call.type}: {_shown(call)}")


def _shown(expr: Expr) -> str:
    from fusionq.ir.printer import print_expr  # nothing is wrong with most kernels

    return print_expr(expr)


def _is_natural(expr: Expr) -> bool:
    """Whether an integer expression is known not to be negative."""
    if isinstance(expr, Cast):
        return expr.operand.type.kind in "ub"
    return isinstance(expr, Const) and expr.value >= 0
