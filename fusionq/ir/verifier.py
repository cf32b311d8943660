"""Checks that a kernel is well-formed IR: names, types, shapes, and where statements may stand.

Every pass leaves a kernel that passes, so that code generation need not check anything.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from fusionq.base.errors import FusionqError
from fusionq.base.span import NO_SPAN, Span
from fusionq.ir.functions import (
    DEVICE_FUNCTIONS,
    FLOAT_FUNCTIONS,
    INTEGER_FUNCTIONS,
    PREDICATES,
    SAME_TYPE_FUNCTIONS,
)
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
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Param,
    Persistent,
    Record,
    ScalarParam,
    Select,
    StageCode,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.printer import print_expr
from fusionq.ir.types import (
    BFLOAT16,
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UINT32,
    VALUE_TYPES,
    ScalarType,
)
from fusionq.ir.walk import has_barrier, is_work_group_function

_SHUFFLES = {"shift_left", "shift_right", "permute_xor", "select"}
_QUERIES = {
    "global_id", "global_range", "local_id", "local_range", "group_id", "group_range",
    "local_linear_id",
}  # fmt: skip
_OF_WORK_ITEMS = {"global_id", "local_id", "local_linear_id"}
_TILE_QUERIES = {"tile_first", "tile_last"}
_BOOL_OPS = {"add", "mul", "and", "or", "xor"}
_INTEGER_OPS = {"add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor", "shl", "shr"}
_FLOAT_OPS = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow"}
_ATOMICS = {
    True: {"add", "sub", "min", "max", "exchange", "load", "store", "compare_exchange"},
    False: {
        "add", "sub", "min", "max", "and", "or", "xor", "exchange", "load", "store",
        "compare_exchange",
    },
}  # fmt: skip
"""Atomic operations on floating types, and on integers."""


class VerificationError(FusionqError):
    """A kernel is not well-formed IR: a defect of fusionq, not of the user's kernel."""


def verify(kernel: Kernel) -> None:
    """Raise VerificationError, saying what is wrong and where, if ``kernel`` is malformed."""
    _Verifier(kernel).kernel()


class _Verifier:
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

    @contextmanager
    def _at(self, span: Span) -> Iterator[None]:
        outer = self._span
        if span != NO_SPAN:
            self._span = span
        yield
        self._span = outer

    # --------------------------------------------------------------- declarations
    def kernel(self) -> None:
        kernel = self._kernel
        if not 1 <= kernel.ndim <= 3:
            self._fail(f"a kernel has 1 to 3 dimensions, not {kernel.ndim}")
        size = kernel.sub_group_size
        if size is not None and (size < 1 or size & size - 1):
            self._fail(f"sub-groups of {size} work-items")
        seen: set[str] = set()
        for name in (
            *(p.name for p in kernel.params),
            *(a.name for a in kernel.arrays),
            *(name for name, _ in kernel.variables),
        ):
            self._new_name(name, seen)
            seen.add(name)
        for param in kernel.params:
            self._concrete(
                param.type if isinstance(param, ScalarParam) else param.dtype, param.name
            )
            if isinstance(param, ArrayParam) and param.ndim < 0:
                self._fail(f"array '{param.name}' has {param.ndim} dimensions")
        for array in kernel.arrays:
            self._concrete(array.dtype, array.name)
            if array.space == "global":
                self._fail(f"array '{array.name}' is declared in {array.space} memory")
            size = array.nbytes if array.space == "constant" else 0
            if len(array.contents) != 2 * size:
                self._fail(f"array '{array.name}' has {len(array.contents) // 2} bytes, not {size}")
            if array.memory is not None and array.space != "local":
                self._fail(f"array '{array.name}' shares {array.space} memory")
            if any(extent < 1 for extent in array.shape):
                self._fail(f"array '{array.name}' has extents {array.shape}")
        for name, type_ in kernel.variables:
            self._concrete(type_, name)
        self._body(kernel.body)

    def _new_name(self, name: str, taken: Iterable[str]) -> None:
        if not name.isidentifier() or keyword.iskeyword(name):
            self._fail(f"'{name}' is not a name")
        if name in taken:
            self._fail(f"the name '{name}' is declared twice")

    def _concrete(self, type_: ScalarType, what: str) -> None:
        if type_.weak or type_.name not in VALUE_TYPES:
            self._fail(f"'{what}' has the type {type_!r}, which is not concrete")

    # ----------------------------------------------------------------- statements
    def _body(self, body: Iterable[Stmt]) -> None:
        for stmt in body:
            with self._at(NO_SPAN if isinstance(stmt, Block) else stmt.span):
                self._stmt(stmt)

    def _stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Assign():
                self._assign(stmt)
            case Store():
                array = self._changed(stmt.array, stmt.indices)
                self._typed(stmt.value, array.dtype, f"the value stored to '{stmt.array}'")
            case If():
                self._typed(stmt.cond, BOOL, "the condition")
                self._body(stmt.then)
                self._body(stmt.orelse)
            case For():
                for bound in (stmt.start, stmt.stop, stmt.step):
                    self._typed(bound, INT64, "a loop bound")
                self._new_name(
                    stmt.var, {*self._variables, *self._scalars, *self._arrays, *self._loops,
                     *self._outer_loops}
                )
                self._loop(stmt.var, stmt.body)
            case While():
                self._typed(stmt.cond, BOOL, "the condition")
                self._loop("", stmt.body)
            case Break() | Continue():
                if not self._loops:
                    self._fail(f"a {type(stmt).__name__.lower()} outside a loop")
            case Block():
                self._body(stmt.body)
            case Barrier() if self._items is not None:
                self._fail("work-items of a loop do not wait for each other")
            case Barrier() | Fence():
                pass
            case WorkItemLoop():
                self._work_item_loop(stmt)
            case Atomic():
                self._atomic(stmt)
            case GroupCall():
                self._group_call(stmt)
            case Persistent():
                self._persistent(stmt)
            case Record():
                self._record(stmt)
            case _:
                self._fail(f"not a statement: {stmt!r}")

    def _work_item_loop(self, stmt: WorkItemLoop) -> None:
        if stmt.items < 1 or self._items is not None:
            self._fail(f"a loop over {stmt.items} work-items, inside of one over {self._items}")
        loops, self._loops, self._items = self._loops, [], stmt.items
        self._outer_loops = loops
        self._body(stmt.body)
        self._loops, self._outer_loops, self._items = loops, [], None

    def _atomic(self, stmt: Atomic) -> None:
        array = self._changed(stmt.array, stmt.indices)
        dtype = array.dtype
        if dtype.bits < 32 or stmt.op not in _ATOMICS[dtype.is_float]:
            self._fail(f"no atomic '{stmt.op}' on {dtype}")
        if (stmt.value is None) != (stmt.op == "load"):
            self._fail(f"an atomic '{stmt.op}' {'takes no' if stmt.value else 'needs a'} value")
        if stmt.value is not None:
            self._typed(stmt.value, dtype, f"the operand of the atomic '{stmt.op}'")
        if (stmt.expected is not None) != (stmt.op == "compare_exchange"):
            self._fail(f"an atomic '{stmt.op}' with the expected value {stmt.expected}")
        if stmt.expected is not None:
            self._typed(stmt.expected, dtype, "the expected value")
        if stmt.result is not None:
            self._receives(stmt.result, dtype)

    def _group_call(self, stmt: GroupCall) -> None:
        if self._of_group and (stmt.values is None) == (self._items is None):
            self._fail("a group function in a work-group function")
        if self._of_group and stmt.values is None and stmt.sub_group is None:
            self._fail("a function of a work-group in a loop over its work-items")
        if stmt.values is not None:
            array = self._arrays.get(stmt.values)
            if not isinstance(array, ArrayDecl) or array.space != "local":
                self._fail(f"no local array '{stmt.values}' for the values of a group")
            if array.dtype != stmt.value.type or self._kernel.sub_group_size is None:
                self._fail(f"the values of a group in '{stmt.values}'")
        self._expr(stmt.value)
        type_ = stmt.value.type
        self._computed(type_, f"'{stmt.function}' over a group")
        combines = stmt.function in ("reduce", "inclusive_scan", "exclusive_scan")
        if (stmt.op is not None) != combines:
            self._fail(f"'{stmt.function}' over a group with the operation {stmt.op}")
        if stmt.function in ("any", "all"):
            self._typed(stmt.value, BOOL, f"the value of '{stmt.function}'")
        if stmt.op in ("and", "or", "xor") and type_.is_float:
            self._fail(f"no '{stmt.op}' of {type_} over a group")
        if stmt.sub_group != (None if stmt.sub_group is None else self._kernel.sub_group_size):
            self._fail(f"a sub-group of {stmt.sub_group} work-items")
        if stmt.function in _SHUFFLES and stmt.sub_group is None:
            self._fail(f"'{stmt.function}' over a work-group")
        reads_one = stmt.function == "broadcast" or stmt.function in _SHUFFLES
        if (stmt.source is not None) != reads_one:
            self._fail(f"'{stmt.function}' over a group with the source {stmt.source}")
        if stmt.source is not None:
            self._typed(stmt.source, INT64, "the source of a broadcast")
        self._receives(stmt.result, type_)

    # ------------------------------------------------------------ persistent kernels
    def _persistent(self, stmt: Persistent) -> None:
        if self._kernel.body != (stmt,):
            self._fail("a persistent kernel does nothing beside its stages")
        params = {p.name: p for p in self._kernel.params}
        for name, type_, what in (
            (stmt.schedule, INT64, "schedule"),
            (stmt.control, UINT32, "control memory"),
        ):
            array = params.get(name)
            if not isinstance(array, ArrayParam) or (array.dtype, array.ndim) != (type_, 1):
                self._fail(f"'{name}' is no one-dimensional {type_} array for the {what}")
        for name, type_ in ((stmt.epoch, UINT32), (stmt.spin_limit, INT64)):
            if self._scalars.get(name) != type_:
                self._fail(f"'{name}' is no scalar parameter of type {type_}")
        if stmt.records is not None:
            array = params.get(stmt.records.buffer)
            if not isinstance(array, ArrayParam) or (array.dtype, array.ndim) != (INT64, 1):
                self._fail("there is no one-dimensional int64 array for the records")
            for name in (stmt.records.base, stmt.records.rows):
                if self._scalars.get(name) != INT64:
                    self._fail(f"'{name}' is no scalar parameter of type int64")
        for code in stmt.codes:
            self._stage_code(code)
        for number, stage in enumerate(stmt.stages):
            code = stmt.codes[stage.code]
            if len(stage.producers) != len(code.waits):
                self._fail(f"stage {number} has {len(stage.producers)} producers for its waits")
            if not all(0 <= producer < number for producer in stage.producers):
                self._fail(f"stage {number} waits for stages {stage.producers}: not all earlier")
            for producer, wait in zip(stage.producers, code.waits, strict=True):
                ndim = stmt.codes[stmt.stages[producer].code].kernel.ndim
                if wait.bounds is not None and len(wait.bounds) != ndim:
                    self._fail(f"stage {number} waits for a box that stage {producer} has not")
            if len(stage.arguments) != len(code.kernel.params):
                self._fail(f"stage {number} has {len(stage.arguments)} arguments")
            for name, param in zip(stage.arguments, code.kernel.params, strict=True):
                given = params.get(name)
                if given is None or replace(param, name=name) != given:
                    self._fail(f"stage {number}: '{name}' is no argument for {param}")

    def _stage_code(self, code: StageCode) -> None:
        kernel = code.kernel
        verify(kernel)
        local = any(a.space == "local" for a in kernel.arrays)
        if is_work_group_function(kernel):
            if code.local_range is None or len(code.local_range) != kernel.ndim:
                self._fail(f"'{kernel.name}' is for work-groups of {code.local_range}")
        elif has_barrier(kernel.body) or local:
            self._fail(f"'{kernel.name}' in a persistent kernel needs a work-group")
        if len(code.extents) != kernel.ndim:
            self._fail(f"'{kernel.name}' has {len(code.extents)} extents")
        inner = _Verifier(kernel)
        for extent in code.extents:
            inner._typed(extent, INT64, "an extent")
        inner._in_wait = True
        for wait in code.waits:
            for bound in (b for pair in wait.bounds or () for b in pair):
                inner._typed(bound, INT64, "the bound of a wait")

    def _record(self, stmt: Record) -> None:
        instant = stmt.kind in ("mark", "counter")
        if (stmt.phase == "instant") != instant:
            self._fail(f"the {stmt.phase} of a {stmt.kind}")
        if stmt.kind == "counter" and stmt.payload is None:
            self._fail(f"counter '{stmt.region}' counts nothing")
        if stmt.payload is not None:
            self._typed(stmt.payload, INT64, f"the payload of '{stmt.region}'")

    def _receives(self, name: str, type_: ScalarType) -> None:
        if self._variables.get(name) != type_ or name in self._loops:
            self._fail(f"there is no variable '{name}' of type {type_} for the result")

    def _loop(self, var: str, body: tuple[Stmt, ...]) -> None:
        self._loops.append(var)
        self._body(body)
        self._loops.pop()

    def _assign(self, stmt: Assign) -> None:
        if stmt.name in self._loops:
            self._fail(f"the loop variable '{stmt.name}' is assigned inside its loop")
        if stmt.name not in self._variables:
            self._fail(f"'{stmt.name}' is assigned but not declared")
        self._typed(stmt.value, self._variables[stmt.name], f"the value of '{stmt.name}'")

    # ---------------------------------------------------------------- expressions
    def _typed(self, expr: Expr, type_: ScalarType, what: str) -> None:
        self._expr(expr)
        if expr.type != type_:
            self._fail(f"{what} is {expr.type}, not {type_}: {print_expr(expr)}")

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
                    self._fail(f"no array parameter has the extent {print_expr(expr)}")
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
                self._concrete(expr.type, print_expr(expr))
                self._expr(expr.operand)
                types = {expr.type, expr.operand.type}
                if BFLOAT16 in types and not types <= {BFLOAT16, FLOAT32}:
                    self._fail(f"a bfloat16 and no float32: {print_expr(expr)}")
            case Call():
                self._call(expr)
            case _:
                self._fail(f"not an expression: {expr!r}")

    def _computed(self, type_: ScalarType, what: str) -> None:
        if type_ == BFLOAT16:
            self._fail(f"{what} of {type_}, which is computed in float32")

    def _result(self, expr: Expr, type_: ScalarType) -> None:
        if expr.type != type_:
            self._fail(f"{print_expr(expr)} is {type_}, but is marked as {expr.type}")

    def _const(self, const: Const) -> None:
        self._concrete(const.type, repr(const.value))
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
            self._fail(f"no '{expr.op}' of {expr.type}: {print_expr(expr)}")

    def _binary(self, expr: Binary) -> None:
        self._typed(expr.lhs, expr.type, f"the left side of '{expr.op}'")
        self._typed(expr.rhs, expr.type, f"the right side of '{expr.op}'")
        self._computed(expr.type, f"'{expr.op}'")
        allowed = (
            _BOOL_OPS if expr.type.is_bool else (_FLOAT_OPS if expr.type.is_float else _INTEGER_OPS)
        )
        if expr.op not in allowed:
            self._fail(f"no '{expr.op}' of {expr.type}: {print_expr(expr)}")
        if expr.op == "pow" and expr.type.kind == "i" and not _is_natural(expr.rhs):
            self._fail(
                "the exponent of a signed integer power is neither a constant that is not "
                f"negative nor converted from an unsigned type: {print_expr(expr)}"
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
            self._fail(f"no {name}({given}) -> {call.type}: {print_expr(call)}")


def _is_natural(expr: Expr) -> bool:
    """Whether an integer expression is known not to be negative."""
    if isinstance(expr, Cast):
        return expr.operand.type.kind in "ub"
    return isinstance(expr, Const) and expr.value >= 0
