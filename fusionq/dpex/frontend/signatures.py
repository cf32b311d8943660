"""Signatures in the decorators of numba-dpex: which one a call takes, and what it converts.

numba compiles such a function for these signatures only.  A call takes the best of them, also
where that loses something: ``int32(int32)`` called with 1.5 gets 1.  A kernel's have to fit as they
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusionq.base.frozen import dataclass
from fusionq.dpex.frontend.typing import DpexTyping, scalar_of
from fusionq.frontend.signature import ArrayType, LocalType, Signature
from fusionq.frontend.values import ArrayValue, Constant, ItemValue, Runtime, Value
from fusionq.ir.types import ScalarType

_ITEMS = {"item": "ItemType", "nd_item": "NdItemType", "group": "GroupType"}


@dataclass(frozen=True, slots=True)
class Conversions:
    """The types that a call converts its arguments to, None for what is no number; ``result``:
    that of the call, None where it gives no number."""

    arguments: tuple[ScalarType | None, ...]
    result: ScalarType | None


def kernel_problem(signatures: Sequence[Any], signature: Signature) -> str | None:
    """Why none of the kernel's numba ``signatures`` fits a submission; None if one does."""
    given: list[Any] = [ItemValue(signature.item), *signature.arguments]
    for one in signatures:
        if len(one.args) == len(signature.arguments):
            given = list(signature.arguments)
        if len(one.args) == len(given) and all(map(_fits, given, one.args)):
            return None
    known = " or ".join(_text(s.args) for s in signatures)
    types = ", ".join(
        str(t.strong if isinstance(t, ScalarType) else t) for t in signature.arguments
    )
    return (
        f"is compiled by numba-dpex for {known} only, not for ({types}); pass arguments of these "
        "types, or leave the signature out of numba_dpex.kernel"
    )


def conversions(
    numba: DpexTyping, dispatcher: Any, values: Sequence[Value]
) -> Conversions | str:
    """What a call of a function with signatures converts, or why that is not known."""
    signatures = [s for s in dispatcher.nopython_signatures if len(s.args) == len(values)]
    scalars = [v.type.strong for v in values if isinstance(v, (Runtime, Constant))]
    if len(scalars) == len(values):
        found = numba.signature(dispatcher, scalars)
        if found is not None:
            return _conversions(found)
    else:
        fitting = [s for s in signatures if all(map(_may_take, values, s.args))]
        exact = [s for s in fitting if all(map(_fits, map(_kind, values), s.args))]
        if len(exact) == 1 or len(fitting) == 1:
            return _conversions((exact or fitting)[0])
    known = " or ".join(_text(s.args) for s in dispatcher.nopython_signatures)
    return f"numba-dpex compiles it for {known} only, and which of these it takes is not known"


def _conversions(signature: Any) -> Conversions:
    return Conversions(tuple(map(scalar_of, signature.args)), scalar_of(signature.return_type))


def _kind(value: Value) -> object:
    match value:
        case Runtime() | Constant():
            return value.type
        case ArrayValue():
            return ArrayType(value.type.dtype, value.ndim)
        case _:
            return value


def _may_take(value: Value, parameter: Any) -> bool:
    """Whether a parameter takes the value as it is, or converts it."""
    number = isinstance(value, (Runtime, Constant))
    return scalar_of(parameter) is not None if number else _fits(_kind(value), parameter)


def _fits(kind: object, parameter: Any) -> bool:
    """Whether a parameter takes a value of a kind as it is."""
    match kind:
        case ScalarType():
            return scalar_of(parameter) == kind.strong
        case ArrayType() | LocalType():
            ndim = kind.ndim if isinstance(kind, ArrayType) else len(kind.shape)
            dtype = scalar_of(getattr(parameter, "dtype", None))
            return dtype == kind.dtype and getattr(parameter, "ndim", None) == ndim
        case ItemValue():
            return type(parameter).__name__ == _ITEMS[kind.kind]
        case _:
            return False


def _text(parameters: Sequence[Any]) -> str:
    return f"({', '.join(map(_parameter_text, parameters))})"


def _parameter_text(parameter: Any) -> str:
    dtype = scalar_of(getattr(parameter, "dtype", None))
    ndim = getattr(parameter, "ndim", None)
    if dtype is None or ndim is None:
        return str(parameter)
    return str(ArrayType(dtype, int(ndim)))
