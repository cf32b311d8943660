"""IR expressions as quasi-affine functions and sets over work-item ids and loop variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod

import islpy as isl
import numpy as np

from fusionq.analysis.bits import WIDTH, and_constant, floor_of_power
from fusionq.analysis.symbols import Symbols
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import (
    ArrayDecl,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Load,
    Logical,
    Param,
    Select,
    Unary,
    Var,
)
from fusionq.ir.types import BOOL, INT64

INT64_LIMIT = 1 << 63
MOST_PIECES = 32
"""Cases in a value or a condition that is analysed, and elements of a constant array whose values
are looked up: questions about two values compare all cases of the one with all of the other."""

MOST_QUOTIENTS = 8
"""Integer divisions in a value that is analysed: what isl takes for more grows beyond any bound."""


@dataclass(frozen=True)
class Affine:
    """An integer value: exact wherever ``bound``, the largest possible magnitude, is below
    2**63; larger ones are never built, since int64 arithmetic would wrap."""

    value: isl.PwAff
    bound: int


@dataclass(frozen=True)
class Truth:
    """A bool value: the set of instances where it is true."""

    true: isl.Set


Value = Affine | Truth | None
"""None: not analysable."""


@dataclass
class AffineReader:
    """Reads expressions over a fixed instance space (ids first, then loop variables).

    ``queries`` gives the value of each item query, ``extents`` and ``params`` the symbol of
    each array extent and integer scalar.  A product or quotient of unknowns is made affine by
    putting in a symbol's present value, which ``pinned`` then names.
    """

    symbols: Symbols
    space: isl.Space
    queries: Callable[[ItemQuery], Value]
    extents: Mapping[tuple[str, int], str]
    params: Mapping[str, str]
    pinned: set[str]
    tables: Mapping[str, ArrayDecl] = field(default_factory=dict)
    """The kernel's constant arrays."""
    pins: bool = True
    """Whether symbols may be pinned; otherwise such products and quotients are not analysable."""

    def read(self, expr: Expr, env: Mapping[str, Value]) -> Value:
        """The value of ``expr``, or None if it is not analysable."""
        match expr:
            case Const(type, literal):
                if type == BOOL:
                    return Truth(self.everywhere() if literal else self.nowhere())
                return self.constant(int(literal)) if type.is_integer else None
            case Var(_, name):
                return env.get(name)
            case Param(_, name):
                symbol = self.params.get(name)
                return None if symbol is None else self.symbol(symbol)
            case Extent(array, dim):
                return self.symbol(self.extents[array, dim])
            case ItemQuery():
                return self.queries(expr)
            case Unary(_, "not", operand):
                inner = self.read(operand, env)
                if not isinstance(inner, Truth):
                    return None
                return truth(self.everywhere().subtract(inner.true))
            case Unary(type, op, operand) if type == INT64 and op in ("neg", "pos"):
                value = self.read(operand, env)
                if not isinstance(value, Affine):
                    return None
                return value if op == "pos" else affine(value.value.neg(), value.bound)
            case Cast(type, operand) if type == INT64 and operand.type.is_integer:
                # Only parameters and constants of another integer type have a value here.
                return self.read(operand, env)
            case Binary(type, op, lhs, rhs) if type == INT64:
                a, b = self.read(lhs, env), self.read(rhs, env)
                if isinstance(a, Affine) and isinstance(b, Affine):
                    return self.arithmetic(op, a, b)
                return None
            case Binary(type, op, lhs, rhs) if type == BOOL:
                return self._combine(op, self.read(lhs, env), self.read(rhs, env))
            case Logical(op, lhs, rhs):
                return self._combine(op, self.read(lhs, env), self.read(rhs, env))
            case Compare(op, lhs, rhs):
                a, b = self.read(lhs, env), self.read(rhs, env)
                if isinstance(a, Affine) and isinstance(b, Affine):
                    return truth(COMPARISONS[op](a.value, b.value))
                return None
            case Load(type, array, indices) if array in self.tables and type.is_integer:
                return self._table(self.tables[array], [self.read(i, env) for i in indices])
            case Select(_, cond, then, orelse):
                chosen = self.read(cond, env)
                if not isinstance(chosen, Truth):
                    return None
                return self.choose(chosen.true, self.read(then, env), self.read(orelse, env))
            case Call(type, "pymin" | "minimum" | "fmin", (lhs, rhs)) if type == INT64:
                return self._extremum(isl.PwAff.min, self.read(lhs, env), self.read(rhs, env))
            case Call(type, "pymax" | "maximum" | "fmax", (lhs, rhs)) if type == INT64:
                return self._extremum(isl.PwAff.max, self.read(lhs, env), self.read(rhs, env))
            case _:
                return None

    def _table(self, table: ArrayDecl, indices: Sequence[Value]) -> Value:
        """An element of a constant array; outside of it, where anything may be read, the last."""
        known = [index for index in indices if isinstance(index, Affine)]
        if len(known) < len(indices) or prod(table.shape) > MOST_PIECES:
            return None
        found: Value = None
        elements = table.elements
        for value in sorted(set(elements.ravel().tolist())):
            where = self.nowhere()
            for place in np.argwhere(elements == value).tolist():
                here = self.everywhere()
                for index, position in zip(known, place, strict=True):
                    there = isl.PwAff.val_on_domain(self.everywhere(), isl_val(position))
                    here = here.intersect(index.value.eq_set(there))
                where = where.union(here)
            here_value = self.constant(value)
            found = here_value if found is None else self.choose(where, here_value, found)
        return found

    # ------------------------------------------------------------------ building values
    def everywhere(self) -> isl.Set:
        return isl.Set.universe(self.space)

    def nowhere(self) -> isl.Set:
        return isl.Set.empty(self.space)

    def constant(self, value: int) -> Affine | None:
        pw = isl.PwAff.val_on_domain(self.everywhere(), isl_val(value))
        return affine(pw, abs(value))

    def symbol(self, name: str) -> Affine | None:
        position = self.space.find_dim_by_name(isl.dim_type.param, name)
        local = isl.LocalSpace.from_space(self.space)
        pw = isl.PwAff.var_on_domain(local, isl.dim_type.param, position)
        return affine(pw, self.symbols.bound(name))

    def dimension(self, position: int, bound: int) -> Affine | None:
        """The value of one instance dimension (a work-item id or a loop variable)."""
        local = isl.LocalSpace.from_space(self.space)
        return affine(isl.PwAff.var_on_domain(local, isl.dim_type.set, position), bound)

    def choose(self, where: isl.Set, then: Value, orelse: Value) -> Value:
        """``then`` inside ``where``, ``orelse`` outside."""
        elsewhere = self.everywhere().subtract(where)
        if isinstance(then, Affine) and isinstance(orelse, Affine):
            value = then.value.intersect_domain(where).union_add(
                orelse.value.intersect_domain(elsewhere)
            )
            return affine(value, max(then.bound, orelse.bound))
        if isinstance(then, Truth) and isinstance(orelse, Truth):
            return truth(then.true.intersect(where).union(orelse.true.intersect(elsewhere)))
        return None

    def _combine(self, op: str, a: Value, b: Value) -> Value:
        if not (isinstance(a, Truth) and isinstance(b, Truth)):
            return None
        if op == "and":
            return truth(a.true.intersect(b.true))
        if op == "or":
            return truth(a.true.union(b.true))
        if op == "xor":
            return truth(a.true.subtract(b.true).union(b.true.subtract(a.true)))
        return None

    def _extremum(
        self, pick: Callable[[isl.PwAff, isl.PwAff], isl.PwAff], a: Value, b: Value
    ) -> Value:
        if isinstance(a, Affine) and isinstance(b, Affine):
            return affine(pick(a.value, b.value), max(a.bound, b.bound))
        return None

    def arithmetic(self, op: str, a: Affine, b: Affine) -> Value:
        """``a op b`` in int64, or None where that is not affine or might wrap."""
        if op == "add":
            return affine(a.value.add(b.value), a.bound + b.bound)
        if op == "sub":
            return affine(a.value.sub(b.value), a.bound + b.bound)
        if op == "mul":
            if self._varies(b) and not self._varies(a):
                a, b = b, a
            constant = self.as_constant(b)
            if constant is None:
                a, constant = b, self.as_constant(a)
            if constant is None:
                return None
            return affine(a.value.scale_val(isl_val(constant)), a.bound * abs(constant))
        if op in ("floordiv", "mod"):
            divisor = self.as_constant(b)
            if divisor is None or divisor == 0:
                return None
            value = a.value if divisor > 0 else a.value.neg()
            quotient = value.scale_down_val(isl_val(abs(divisor))).floor()
            if op == "floordiv":
                return affine(quotient, a.bound)
            return affine(a.value.sub(quotient.scale_val(isl_val(divisor))), abs(divisor))
        if op in ("shl", "shr"):
            return self._shifted(op, a, b)
        if op in ("and", "or", "xor"):
            return self._bits(op, a, b)
        return None

    def _shifted(self, op: str, a: Affine, b: Affine) -> Value:
        """``a << b`` or ``a >> b`` by a constant that is less than the width."""
        places = self.as_constant(b)
        if places is None or not 0 <= places < WIDTH - 1:
            return None
        if op == "shr":
            return affine(floor_of_power(a.value, places), a.bound)
        return affine(a.value.scale_val(isl_val(1 << places)), a.bound << places)

    def _bits(self, op: str, a: Affine, b: Affine) -> Value:
        """``a & b``, ``a | b`` or ``a ^ b``, one of which is a constant."""
        constant = self.as_constant(b)
        if constant is None:
            a, constant = b, self.as_constant(a)
        if constant is None:
            return None
        common = and_constant(a.value, constant)
        if op == "and":
            return affine(common, constant if constant >= 0 else a.bound + ~constant)
        total = a.value.add_constant_val(isl_val(constant))
        found = common if op == "or" else common.scale_val(isl_val(2))
        return affine(total.sub(found), a.bound + abs(constant))

    def _varies(self, a: Affine) -> bool:
        """Whether ``a`` depends on a scalar that varies."""
        return any(
            a.value.involves_dims(isl.dim_type.param, position, 1)
            for position, name in enumerate(self.symbols.names)
            if name in self.symbols.varying_names
        )

    def as_constant(self, a: Affine) -> int | None:
        """The value of ``a`` if it depends on symbols only, which are then pinned."""
        if a.value.involves_dims(isl.dim_type.in_, 0, self.space.dim(isl.dim_type.set)):
            return None
        if not self.pins and not a.value.is_cst():
            return None
        here = a.value.intersect_params(self.symbols.point)
        value = here.max_val()
        if not value.is_int() or not here.min_val().eq(value):
            return None
        if not a.value.is_cst():
            self.pinned.update(
                name
                for position, name in enumerate(self.symbols.names)
                if a.value.involves_dims(isl.dim_type.param, position, 1)
                and name not in self.symbols.free
            )
        return int(value.to_python())


COMPARISONS: dict[str, Callable[[isl.PwAff, isl.PwAff], isl.Set]] = {
    "lt": isl.PwAff.lt_set,
    "le": isl.PwAff.le_set,
    "gt": isl.PwAff.gt_set,
    "ge": isl.PwAff.ge_set,
    "eq": isl.PwAff.eq_set,
    "ne": isl.PwAff.ne_set,
}


def affine(value: isl.PwAff, bound: int) -> Affine | None:
    """An affine value, or None if int64 could not hold it or it is too long to analyse."""
    if bound >= INT64_LIMIT:
        return None
    pieces = value.get_pieces()
    if len(pieces) > MOST_PIECES:
        value = value.coalesce()
        pieces = value.get_pieces()
    if len(pieces) > MOST_PIECES:
        return None
    if any(piece.dim(isl.dim_type.div) > MOST_QUOTIENTS for _, piece in pieces):
        return None
    return Affine(value, bound)


def truth(true: isl.Set) -> Truth | None:
    """A condition that holds in ``true``, or None if that is too long to analyse."""
    return Truth(true) if is_short(true) else None


def is_short(instances: isl.Set) -> bool:
    """Whether a set is short enough to be analysed."""
    pieces = instances.get_basic_sets()
    return len(pieces) <= MOST_PIECES and all(
        piece.dim(isl.dim_type.div) <= 2 * MOST_QUOTIENTS for piece in pieces
    )


def isl_val(value: int) -> isl.Val:
    """A Python int as an isl value."""
    return isl.Val(str(value))
