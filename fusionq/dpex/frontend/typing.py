"""What numba-dpex's type inference says: asked of numba itself, so that it is never guessed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from fusionq.ir.types import SCALAR_TYPES, ScalarType


class DpexTyping:
    """Answers of a numba typing context; all types are strong there."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._types = import_module("numba.core.types")
        # A question outside of the target makes numba take up its answers for another one.
        target = import_module("numba_dpex.kernel_api_impl.spirv.target").SPIRV_TARGET_NAME
        override = import_module("numba.core.target_extension").target_override
        self._asking = partial(override, target)
        with self._asking():
            context.refresh()

    def call(
        self, function: object, arguments: Sequence[ScalarType]
    ) -> tuple[ScalarType, tuple[ScalarType, ...]] | None:
        """The result's type, and those that the arguments are converted to; None where numba-dpex
        does not compile the call, or gives no number."""
        name = getattr(function, "__name__", None)
        of_dpnp = getattr(sys.modules.get("dpnp"), name, None) if isinstance(name, str) else None
        for candidate in (function, of_dpnp):
            try:
                with self._asking():
                    kind = self._context.resolve_value_type(candidate)
                    found = self._context.resolve_function_type(kind, self._numba(arguments), {})
            except Exception:  # numba raises errors of many kinds for "not this one"
                continue
            types = [scalar_of(t) for t in (found.return_type, *found.args)] if found else [None]
            if None not in types:
                result, *converted = (t for t in types if t is not None)
                return result, tuple(converted)
        return None

    def signature(self, dispatcher: object, arguments: Sequence[ScalarType]) -> Any:
        """The signature that a call of a function with signatures takes; None for none."""
        try:
            with self._asking():
                kind = self._context.resolve_value_type(dispatcher)
                return self._context.resolve_function_type(kind, self._numba(arguments), {})
        except Exception:  # numba raises errors of many kinds for "not this one"
            return None

    def unified(self, types: Sequence[ScalarType]) -> ScalarType | None:
        """The type of a variable that holds values of all these types; None if there is none."""
        with self._asking():
            return scalar_of(self._context.unify_types(*self._numba(types)))

    def _numba(self, types: Sequence[ScalarType]) -> tuple[Any, ...]:
        return tuple(getattr(self._types, "boolean" if t.is_bool else t.name) for t in types)


def scalar_of(numba_type: object) -> ScalarType | None:
    """The scalar type that a type of numba is; None for another one."""
    return SCALAR_TYPES.get(str(numba_type))
