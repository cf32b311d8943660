"""Indices of 64 bits in place of narrower ones that are made of ids.

    i = int32(item.get_id(0))                i = item.get_id(0)
    if i < n - 1:                     →      if i < int64(n - 1):
        o[int64(i)] = a[int64(i + 1)]            o[i] = a[i + 1]

Compilers for CPUs do not see that neighbouring work-items access neighbours where an index is
extended from 32 bits: a sum might have wrapped around.  Where the intervals of ids and scalars say
that nothing does, the same numbers have 64 bits from the id on.  No value changes: what else is
made of a variable that is wider now takes it in its own type.

An index may also be below zero in 64 bits where it has wrapped around in 32, as ``a[i - 1]`` of an
unsigned ``i`` is: the one is outside of an array of fewer than 2³¹ elements, and so is the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from fusionq.base.identity_cache import cached_by_identity
from fusionq.codegen.helpers import EXTREMA
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.variable_intervals import variable_intervals
from fusionq.ir.interval_arithmetic import Interval, of_type, within
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    ItemQuery,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    map_operands,
    rewrite,
    rewrite_body,
    statements,
    subexpressions,
)

_OPERATIONS = frozenset({"add", "sub", "mul", "floordiv", "mod"})

_OF_INDICES: Interval = (-(1 << 31), (1 << 32) - 1)
"""Of these numbers those that 32 bits do not hold are outside of a small array, and so is what they
are in 32 bits, signed or not."""


@cached_by_identity
def has_narrow_ids(kernel: Kernel) -> bool:
    """Whether something narrower than 64 bits is made of ids or variables of ``kernel``."""
    return any(_is_narrowing(e) for e in expressions(kernel.body))


def with_wide_ids(
    kernel: Kernel,
    sizes: Mapping[Expr, Interval],
    params: Mapping[str, Interval],
    small_arrays: bool,
) -> Kernel:
    """``kernel`` with 64 bits where narrower integers are made of ids and are indices or compared;
    ``kernel`` itself where there are none.  ``sizes``: the intervals of ids, ranges and extents;
    ``params``: those of integer scalar parameters; ``small_arrays``: whether all arrays have
    ``SMALL`` elements at most."""
    types = {type for _, type in kernel.variables if type.is_integer}
    body = (kernel.body,)
    known = variable_intervals(kernel, body, Intervals(kernel, params, sizes), types)
    intervals = Intervals(kernel, {**params, **known}, sizes)
    widening = _Widening(_assigned(kernel), intervals, small_arrays)
    wide = widening.variables
    variables = tuple((name, INT64 if name in wide else type) for name, type in kernel.variables)
    made = rewrite_body(kernel.body, widening.expr, widening.stmt)
    return kernel if made == kernel.body else replace(kernel, variables=variables, body=made)


def _assigned(kernel: Kernel) -> dict[str, list[Expr]]:
    """The values of the narrow variables of ``kernel`` that are set by assignments only, and that
    indices or comparisons are made of."""
    types = dict(kernel.variables)
    values: defaultdict[str, list[Expr]] = defaultdict(list)
    others: set[str] = set()
    for s in statements(kernel.body):
        if isinstance(s, Assign):
            values[s.name].append(s.value)
        elif (name := assigned_variable(s)) is not None:
            others.add(name)
    found: set[str] = set()
    more = {
        name
        for e in expressions(kernel.body)
        for part in _asked_in_64_bits(e)
        for name in _variables(part)
    }
    while more:
        found |= more
        more = {n for name in more for value in values[name] for n in _variables(value)} - found
    return {
        name: values[name] for name in found if _is_narrow(types.get(name)) and name not in others
    }


def _asked_in_64_bits(e: Expr) -> tuple[Expr, ...]:
    """The narrow operands of ``e`` that are worth 64 bits, where they are made of ids."""
    match e:
        case Cast(type, operand) if type == INT64 and _is_narrow(operand.type):
            return (operand,)
        case Compare(_, lhs, rhs) if _is_narrow(lhs.type):
            return lhs, rhs
    return ()


def _values_of_ids(assigned: Mapping[str, list[Expr]]) -> dict[str, Expr]:
    """The values of variables that have one all the time, since they are set once, to what is made
    of ids and arguments and of such variables."""
    found: dict[str, Expr] = {}
    once = {name: values[0] for name, values in assigned.items() if len(values) == 1}
    more = True
    while more:
        more = False
        for name, value in once.items():
            if name in found or any(isinstance(part, Load) for part in subexpressions(value)):
                continue
            if _variables(value) <= found.keys():
                found[name] = value
                more = True
    return found


def _variables(e: Expr) -> set[str]:
    return {part.name for part in subexpressions(e) if isinstance(part, Var)}


def _is_narrow(type: ScalarType | None) -> bool:
    return type is not None and type.is_integer and type.bits < INT64.bits


def _is_of_32_bits(type: ScalarType) -> bool:
    return type.is_integer and type.bits == 32


def _is_narrowing(e: Expr) -> bool:
    """Whether ``e`` makes something narrow of ids, or of variables that may hold them."""
    if not isinstance(e, Cast) or not _is_narrow(e.type) or e.operand.type != INT64:
        return False
    return any(isinstance(part, (ItemQuery, Var)) for part in subexpressions(e.operand))


class _Widening:
    """Rewrites expressions and statements; a wide variable is, where it is read, of its former type
    again, ``int32(i)``, until something takes it in 64 bits."""

    def __init__(
        self, assigned: Mapping[str, list[Expr]], intervals: Intervals, small_arrays: bool
    ) -> None:
        self._intervals = intervals
        self._small_arrays = small_arrays
        self._alone = _values_of_ids(assigned)
        self.variables = set(assigned)
        """Those that have 64 bits, all of whose values are made of ids, or constants."""
        narrow: set[str] | None = None
        while narrow is None or narrow:
            narrow = {n for n in self.variables if not self._are_of_ids(assigned[n])}
            self.variables -= narrow

    def _are_of_ids(self, values: list[Expr]) -> bool:
        read = [rewrite(value, self._read) for value in values]
        found = [self._of_ids(value) is not None for value in read]
        others = (v for v, is_found in zip(read, found, strict=True) if not is_found)
        return any(found) and all(map(_is_of_arguments, others))

    def expr(self, e: Expr) -> Expr:
        """``e``, whose operands have been rewritten."""
        match e:
            case Cast(type, operand) if type == INT64 and _is_narrow(operand.type):
                return self._of_ids(operand) or e
            case Compare(_, lhs, rhs) if _is_narrow(lhs.type):
                of_lhs, of_rhs = self._of_ids(lhs), self._of_ids(rhs)
                if of_lhs is not None or of_rhs is not None:
                    return replace(e, lhs=of_lhs or _extended(lhs), rhs=of_rhs or _extended(rhs))
            case Load():
                return replace(e, indices=self._indices(e.indices))
        return self._read(e)

    def stmt(self, s: Stmt) -> tuple[Stmt, ...]:
        """``s``, whose expressions have been rewritten."""
        if isinstance(s, Assign) and s.name in self.variables:
            return (replace(s, value=self._wide(s.value)),)
        if isinstance(s, (Store, Atomic)):
            return (replace(s, indices=self._indices(s.indices)),)
        return (s,)

    def _indices(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Indices of an array, which have been rewritten."""
        if not self._small_arrays:
            return indices
        return tuple(map(self._index, indices))

    def _index(self, index: Expr) -> Expr:
        """One that may have wrapped around to where it is outside of the array either way."""
        if not isinstance(index, Cast) or not _is_of_32_bits(index.operand.type):
            return index
        found = self._modular(index.operand)
        fits = found is not None and within(self._intervals.of(found), _OF_INDICES)
        return found if fits and found is not None else index

    def _modular(self, e: Expr) -> Expr | None:
        """What ``e`` of 32 bits is but for multiples of 2³², computed in 64 bits from the ids on;
        None where it is made of none."""
        match e:
            case Var(_, name) if name in self._alone:
                return self._modular(rewrite(self._alone[name], self._read))
            case Cast(_, operand) if operand.type == INT64:
                return operand if _is_narrowing(e) else None
            case Cast(_, operand) if _is_of_32_bits(operand.type):
                return self._modular(operand)
            case Unary(_, "neg" | "pos") | Binary(_, "add" | "sub" | "mul"):
                return _of_operands(e, self._modular, self._wide)
        return None

    def _read(self, e: Expr) -> Expr:
        if isinstance(e, Var) and e.name in self.variables:
            return Cast(e.type, Var(INT64, e.name))
        return e

    def _wide(self, e: Expr) -> Expr:
        """The narrow ``e`` in 64 bits."""
        return self._of_ids(e) or _extended(e)

    def _of_ids(self, e: Expr) -> Expr | None:
        """The narrow ``e`` computed in 64 bits from the ids on that it is made of; None where it is
        made of none, or may wrap around."""
        intervals = self._intervals
        match e:
            case Cast(type, operand) if operand.type == INT64:
                fits = _is_narrowing(e) and within(intervals.of(operand), of_type(type))
                return operand if fits else None
            case Cast(type, operand) if _is_narrow(operand.type):
                fits = within(intervals.of(operand), of_type(type))
                return self._of_ids(operand) if fits else None
            case Unary(_, "neg" | "pos") | Binary() if intervals.wraps(e):
                return None
            case Unary(_, "neg" | "pos") | Select() | Call():
                if isinstance(e, Call) and e.function not in EXTREMA:
                    return None
            case Binary(_, op) if op in _OPERATIONS:
                pass
            case _:
                return None
        return _of_operands(e, self._of_ids, _extended)


def _of_operands(
    e: Expr, of_ids: Callable[[Expr], Expr | None], otherwise: Callable[[Expr], Expr]
) -> Expr | None:
    """The narrow operation ``e`` on operands of 64 bits: what ``of_ids`` makes of them, which is
    asked about each once, else ``otherwise``; None where none is made of ids."""
    are_found = []

    def one(operand: Expr) -> Expr:
        if not _is_narrow(operand.type):  # a condition
            return operand
        found = of_ids(operand)
        are_found.append(found is not None)
        return otherwise(operand) if found is None else found

    wide = map_operands(e, one)
    return replace(wide, type=INT64) if any(are_found) else None


def _is_of_arguments(e: Expr) -> bool:
    """Whether ``e`` is made of constants, scalars and extents."""
    return not any(isinstance(part, (ItemQuery, Load, Var)) for part in subexpressions(e))


def _extended(e: Expr) -> Expr:
    """The narrow ``e``, extended to 64 bits."""
    return Const(INT64, int(e.value)) if isinstance(e, Const) else Cast(INT64, e)
