"""The OpenCL built-in functions that generated kernels call, for float32 and float64.

Those that numba-dpex lacks are among them, and all are the ones that OpenCL C calls by the same
names.  To be imported when numba-dpex is loaded, see ``environment.load_numba_dpex``.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic
from numba_dpex.core.utils import cgutils_extra, itanium_mangler
from numba_dpex.kernel_api_impl.spirv.target import SPIRV_TARGET_NAME

from fusionq.dpex.backend.helpers import OPENCL_NAMES
from fusionq.ir.functions import FLOAT_FUNCTIONS

_ARGUMENTS = FLOAT_FUNCTIONS | {"abs": 1, "pow": 2}


def _builtin(name: str, count: int) -> Any:
    symbol = OPENCL_NAMES.get(name, name)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = cgutils_extra.declare_function(
            context, builder, symbol, signature, signature.args, mangler=itanium_mangler.mangle
        )
        return builder.call(function, arguments)

    def of_one(typing_context: Any, a: Any) -> Any:
        return a(a), generate

    def of_two(typing_context: Any, a: Any, b: Any) -> Any:
        return a(a, b), generate

    def of_three(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        return a(a, b, c), generate

    typing = {1: of_one, 2: of_two, 3: of_three}[count]
    typing.__name__ = typing.__qualname__ = name
    return intrinsic(target=SPIRV_TARGET_NAME)(typing)


def _work_dim(typing_context: Any) -> Any:
    """The number of dimensions of the launch, which the compiler does not know."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = cgutils_extra.declare_function(
            context, builder, "get_work_dim", signature, (), mangler=itanium_mangler.mangle
        )
        return builder.call(function, ())

    return types.uint32(), generate


work_dim = intrinsic(target=SPIRV_TARGET_NAME)(_work_dim)
_FUNCTIONS = {name: _builtin(name, count) for name, count in _ARGUMENTS.items()}


def __getattr__(name: str) -> Any:
    """A function by NumPy's name, see ``ir.functions``; ``pow`` is the operator."""
    try:
        return _FUNCTIONS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
