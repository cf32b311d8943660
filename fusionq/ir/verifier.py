"""Checks that a kernel is well-formed IR: names, types, shapes, and where statements may stand.

Every pass leaves a kernel that passes, so that code generation need not check anything.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from fusionq.base.articles import with_article
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.span import NO_SPAN, Span
from fusionq.ir.array_reductions import array_reductions
from fusionq.ir.expression_verifier import ExpressionVerifier, VerificationError
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Continue,
    Fence,
    For,
    GroupCall,
    If,
    Kernel,
    KernelParam,
    Load,
    Persistent,
    Prefetch,
    Record,
    ScalarParam,
    StageCode,
    Stmt,
    Store,
    While,
    WorkItemLoop,
)
from fusionq.ir.types import BOOL, INT64, UINT32, ScalarType
from fusionq.ir.walk import stored_arrays, takes_work_groups

__all__ = ["VerificationError", "verify"]

_SHUFFLES = {"shift_left", "shift_right", "permute_xor", "select"}
_ATOMICS = {
    True: {"add", "sub", "min", "max", "exchange", "load", "store", "compare_exchange"},
    False: {
        "add", "sub", "min", "max", "and", "or", "xor", "exchange", "load", "store",
        "compare_exchange",
    },
}  # fmt: skip
"""Atomic operations on floating types, and on integers."""


def verify(kernel: Kernel) -> None:
    """Raise VerificationError, saying what is wrong and where, if ``kernel`` is malformed."""
    _Verifier(kernel).kernel()


class _Verifier(ExpressionVerifier):
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
                    stmt.var,
                    {
                        *self._variables,
                        *self._scalars,
                        *self._arrays,
                        *self._loops,
                        *self._outer_loops,
                    },
                )
                self._loop(stmt.var, stmt.body)
            case While():
                self._typed(stmt.cond, BOOL, "the condition")
                self._loop("", stmt.body)
            case Break() | Continue():
                if not self._loops:
                    self._fail(f"{with_article(type(stmt).__name__.lower())} outside a loop")
            case Block():
                self._body(stmt.body)
            case Barrier() if self._items is not None:
                self._fail("work-items of a loop do not wait for each other")
            case Barrier() | Fence():
                pass
            case Prefetch():
                self._access(stmt.array, stmt.indices)
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
            if not isinstance(stmt.value, Load) or stmt.value.array != stmt.values:
                self._fail(f"a value that is not read from '{stmt.values}'")
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
        if stmt.slot_bytes < 0 or stmt.slot_bytes % CODE_LIMITS.ring_alignment:
            self._fail(f"rings with slots of {stmt.slot_bytes} bytes")
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
        stored = [stored_arrays(code.kernel.body) for code in stmt.codes]
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
                if given is None or not _may_be_given(param, given):
                    self._fail(f"stage {number}: '{name}' is no argument for {param}")
                if name in stmt.unwritten and param.name in stored[stage.code]:
                    self._fail(f"stage {number} writes '{name}', which no stage writes")

    def _stage_code(self, code: StageCode) -> None:
        kernel = code.kernel
        verify(kernel)
        groups = takes_work_groups(kernel)
        if groups and (code.local_range is None or len(code.local_range) != kernel.ndim):
            self._fail(f"'{kernel.name}' is for work-groups of {code.local_range}")
        if len(code.extents) != kernel.ndim:
            self._fail(f"'{kernel.name}' has {len(code.extents)} extents")
        for name in code.reduced:
            if name not in array_reductions(kernel):
                self._fail(f"'{kernel.name}' does more with '{name}' than reduce into it")
        if code.lanes is not None and not 0 <= code.lanes.dim < kernel.ndim - 1:
            self._fail(f"'{kernel.name}' has no dimension {code.lanes.dim} before the last")
        inner = ExpressionVerifier(kernel)
        for extent in code.extents:
            inner._typed(extent, INT64, "an extent")
        inner._in_wait = True
        for wait in code.waits:
            for bound in (b for pair in wait.bounds or () for b in pair):
                inner._typed(bound, INT64, "the bound of a wait")

    def _record(self, stmt: Record) -> None:
        instant = stmt.kind in ("mark", "counter")
        if (stmt.phase == "instant") != instant:
            self._fail(f"the {stmt.phase} of {with_article(stmt.kind)}")
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


def _may_be_given(param: KernelParam, given: KernelParam) -> bool:
    """Whether a stage's parameter may be one of its kernel: they are the same, but that more may be
    known of the kernel's, sizes that are constants in all of it."""
    if isinstance(param, ArrayParam) and isinstance(given, ArrayParam):
        known = given.extents[len(given.extents) - len(param.extents) :]
        if len(param.extents) <= len(given.extents) and param.extents == known:
            param = replace(param, extents=given.extents)
    elif isinstance(param, ScalarParam) and isinstance(given, ScalarParam):
        param = replace(param, bounds=given.bounds)
    return replace(param, name=given.name) == given
