"""Typing: NumPy's promotion (NEP 50), joins where control flow meets, exact comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from fusionq.base.dtypes import numba_dtype
from fusionq.base.units import shown
from fusionq.frontend.values import Constant, Number, Scalar
from fusionq.ir.nodes import Const
from fusionq.ir.types import (
    BFLOAT16,
    BOOL,
    FLOAT64,
    INT64,
    UINT64,
    VALUE_TYPES,
    WEAK_FLOAT,
    WEAK_INT,
    ScalarType,
    promote,
    scalar_type,
)
from fusionq.ir.value_bounds import Bounds
from fusionq.language.casts import cast, integer_limits

WEAK_BOOL = ScalarType("bool", weak=True)
"""A Python bool: what ``not`` and comparisons of Python numbers give."""

Holds: TypeAlias = Callable[[ScalarType, Scalar], bool]
"""Whether an integer type is known to hold a Python int."""


def type_name(scalar: ScalarType) -> str:
    """The type's name for messages."""
    return "bool" if scalar.is_bool else str(scalar)


def number_type(value: object) -> ScalarType | None:
    """The type of a compile-time number, or None if the language has none."""
    if isinstance(value, np.generic):
        return scalar_type(value.dtype)
    if isinstance(value, bool):
        return WEAK_BOOL
    if isinstance(value, int):
        return WEAK_INT
    return WEAK_FLOAT if isinstance(value, float) else None


def arithmetic_type(a: ScalarType, b: ScalarType) -> ScalarType:
    """The type of arithmetic on ``a`` and ``b``; a Python bool is an int."""
    if a.is_bool and b.is_bool:
        return WEAK_BOOL if a.weak and b.weak else BOOL
    for one, other in ((a, b), (b, a)):
        if one == WEAK_BOOL:
            return other if other.weak else promote(BOOL, other)
    return promote(a, b)


def join(a: ScalarType, b: ScalarType) -> ScalarType | None:
    """The type of a value that is of type ``a`` on one path and ``b`` on another.

    The type of their arithmetic, where it holds all values of both: a weak number takes the type
    of the strong one, and int32 and float32 have float64.
    """
    if a == b:
        return a
    if a.strong == b.strong:
        return a.strong
    if a.is_bool or b.is_bool:
        return None
    common = arithmetic_type(a, b)
    return common if all(t.weak or holds_all(common, t) for t in (a, b)) else None


def common_type(scalars: Sequence[Scalar], holds: Holds) -> ScalarType | None:
    """The join of the types; None if there is none.  A Python int that does not fit into the
    integer types of the others, as ``holds`` says, has int64."""
    strong = {s.type for s in scalars if s.type.is_integer and not s.type.weak}
    types = [
        INT64 if s.type == WEAK_INT and not all(holds(t, s) for t in strong) else s.type
        for s in scalars
    ]
    common: ScalarType | None = types[0] if types else None
    for other in types[1:]:
        common = None if common is None else join(common, other)
    if common is None or not common.is_integer:
        return common
    constants = [s for s in scalars if isinstance(s, Constant) and s.type.is_integer]
    return common if all(fits(c.value, common) for c in constants) else None


def lies_in(number: Scalar, target: ScalarType, bounds: Bounds) -> bool:
    """Whether a Python int is known to fit into an integer type."""
    if isinstance(number, Constant):
        return fits(number.value, target)
    least, greatest = bounds.least(number.expr), bounds.greatest(number.expr)
    low, high = integer_limits(target.dtype)
    enough = target.bits == 64 or (greatest is not None and greatest <= high)
    return enough and (target == INT64 or (least is not None and least >= low))


def holds_all(wider: ScalarType, narrower: ScalarType) -> bool:
    """Whether each value of one type is a value of the other; unlike NumPy's ``can_cast``, which
    lets int64 pass for float64."""
    if wider.is_float and narrower.is_integer:
        digits = narrower.bits - (narrower.kind == "i")
        return digits <= (8 if wider == BFLOAT16 else np.finfo(wider.name).nmant + 1)
    return bool(np.can_cast(narrower.dtype, wider.dtype, "safe"))


def comparison_type(a: ScalarType, b: ScalarType) -> ScalarType | None:
    """A concrete type in which ``a`` and ``b`` compare exactly; None if there is none.

    Comparisons with a floating operand are in the type of their arithmetic.
    """
    if a.is_bool and b.is_bool:
        return BOOL
    common = arithmetic_type(a, b).strong
    if common.is_float:
        exact = a.is_float or b.is_float
        return common if exact else None
    if a.weak == b.weak or a.is_bool or b.is_bool:
        return common
    strong = b if a.weak else a
    return None if strong == UINT64 else INT64


def fits(value: Number, target: ScalarType) -> bool:
    """Whether a constant is in the range of an integer type."""
    low, high = integer_limits(target.dtype)
    return low <= int(value) <= high


def constant(value: Number, target: ScalarType) -> Const:
    """A constant converted to a concrete type; OverflowError for a Python int out of range."""
    if target.is_bool:
        return Const(target, bool(value))
    if target.is_integer:
        if isinstance(value, int) and not fits(value, target):
            raise OverflowError(f"{shown(value)} is out of the range of {target}")
        return Const(target, int(cast(value, target.dtype)))
    return Const(target, float(cast(value, target.dtype)))


def one_of(scalar: ScalarType) -> Number:
    """The number 1 in a type, a Python number for a weak type."""
    if scalar.weak:
        return {"b": True, "i": 1, "f": 1.0}[scalar.kind]
    return scalar.dtype.type(1)


def with_numpy_types(values: Sequence[Number]) -> list[Number]:
    """The operands of one operation, each Python number beside NumPy scalars as a scalar of the
    type that NEP 50 gives it; NumPy itself does that from 2.0 on.

    Raises OverflowError for a Python int out of the range of that type.
    """
    types = [t for value in values if (t := number_type(value)) is not None]
    if len(types) < len(values) or len({t.weak for t in types}) == 1:
        return list(values)
    common = reduce(arithmetic_type, types)
    return [
        common.dtype.type(constant(value, common.strong).value) if type.weak else value
        for value, type in zip(values, types, strict=True)
    ]


def result_type(function: Callable[..., Any], arguments: Sequence[ScalarType]) -> ScalarType | None:
    """The type that a NumPy function gives for arguments of these types; None if it refuses
    them or the language has no such type."""
    try:
        with np.errstate(all="ignore"):
            result = function(*with_numpy_types([one_of(a) for a in arguments]))
    except (TypeError, OverflowError):
        return None
    return scalar_type(np.asarray(result).dtype)


def floating(scalar: ScalarType) -> ScalarType:
    """The type of ``/`` and of Python's float conversion on a type: float64 for integers."""
    if scalar.is_float:
        return scalar
    return WEAK_FLOAT if scalar.weak else FLOAT64


def named_type(obj: object) -> ScalarType | None:
    """The scalar type that a Python object names: ``np.float32``, or ``int`` (weak)."""
    if obj is int:
        return WEAK_INT
    if obj is float:
        return WEAK_FLOAT
    if obj is bool:
        return WEAK_BOOL
    if isinstance(obj, type) and issubclass(obj, np.generic):
        try:
            return VALUE_TYPES.get(np.dtype(obj).name)
        except TypeError:
            return None
    of_numba = numba_dtype(obj)
    return None if of_numba is None else scalar_type(of_numba)
