"""Device functions for what Python's operators do differently in numba than in the IR.

numba computes integers below 64 bits in 64, leaves shifts by the width or more and conversions
of large floating numbers undefined, and has no floor division by -1 of the smallest integer.
The bodies are those of ``codegen.helpers``, in Python.
"""

from __future__ import annotations

from textwrap import dedent, indent

from fusionq.codegen.helper_functions import HelperFunctions
from fusionq.ir.python_text import constructor
from fusionq.ir.types import INT64, ScalarType
from fusionq.language.casts import integer_limits

OPENCL_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "gamma": "tgamma",
    "abs": "fabs",
}  # fmt: skip
"""Where OpenCL's name of a floating function is not NumPy's."""

_COMMON = {
    "square": "return a * a",
    "pymin": "return b if b < a else a",
    "pymax": "return b if b > a else a",
}

_FLOATING = _COMMON | {
    "minimum": "return a if a < b or a != a else b",
    "maximum": "return a if a > b or a != a else b",
    "fmin": "return a if a < b or b != b else b",
    "fmax": "return a if a > b or b != b else b",
    "sign": """\
        if a > $0:
            return $1
        if a < $0:
            return -$1
        return $0 if a == $0 else a""",
    "isinf": "return abs(a) == $T(np.inf)",
    "isfinite": "return abs(a) < $T(np.inf)",
    "signbit": "return copysign($1, a) < $0",
    "floordiv": """\
        if b == $0:
            return a / b
        remainder = fmod(a, b)
        quotient = (a - remainder) / b
        if remainder != $0 and (b < $0) != (remainder < $0):
            quotient = quotient - $1
        if quotient == $0:
            return copysign($0, a / b)
        whole = floor(quotient)
        return whole + $1 if quotient - whole > $T(0.5) else whole""",
    "mod": """\
        remainder = fmod(a, b)
        if b == $0:
            return remainder
        if remainder == $0:
            return copysign($0, b)
        return remainder + b if (b < $0) != (remainder < $0) else remainder""",
}

_ORDERED = _COMMON | {
    "minimum": _COMMON["pymin"],
    "maximum": _COMMON["pymax"],
    "fmin": _COMMON["pymin"],
    "fmax": _COMMON["pymax"],
}

_INTEGER = _ORDERED | {
    "shl": "return $T(a << b) if b >= $0 and b < $T($BITS) else $0",
    "pow": """\
        result = np.uint64(1)
        square = np.uint64(a)
        rest = np.uint64(b)
        while rest != np.uint64(0):
            if rest & np.uint64(1) != np.uint64(0):
                result = result * square
            square = square * square
            rest = rest >> np.uint64(1)
        return $T(result)""",
}

_SIGNED = _INTEGER | {
    "abs": "return $T(np.uint64(0) - np.uint64(a)) if a < $0 else a",
    "sign": """\
        if a > $0:
            return $1
        return $T(-1) if a < $0 else $0""",
    "shr": """\
        if b >= $0 and b < $T($BITS):
            return $T(a >> b)
        return $T(-1) if a < $0 else $0""",
    "floordiv": """\
        if b == $0:
            return $0
        if b == $T(-1):
            return $T(np.uint64(0) - np.uint64(a))
        return $T(a // b)""",
    "mod": "return $0 if b == $0 or b == $T(-1) else $T(a % b)",
}

_UNSIGNED = _INTEGER | {
    "sign": "return $1 if a > $0 else $0",
    "shr": "return $T(a >> b) if b < $T($BITS) else $0",
    "floordiv": "return $0 if b == $0 else $T(a // b)",
    "mod": "return $0 if b == $0 else $T(a % b)",
}

_BODIES = {"f": _FLOATING, "i": _SIGNED, "u": _UNSIGNED, "b": _ORDERED}
_ONE_OPERAND = frozenset({"square", "sign", "abs", "isinf", "isfinite", "signbit"})
_CALLED = {
    "floordiv": ("copysign", "floor", "fmod"),
    "mod": ("copysign", "fmod"), "signbit": ("copysign",),
    "isinf": ("abs",), "isfinite": ("abs",),
}  # fmt: skip
"""The device functions that the bodies for floating types call."""

_RANGE_LENGTH = """\
    first = np.uint64(start)
    last = np.uint64(stop)
    stride = np.uint64(step)
    if step > 0 and start < stop:
        return np.int64((last - first - np.uint64(1)) // stride + np.uint64(1))
    if step < 0 and start > stop:
        distance = np.uint64(0) - stride
        return np.int64((first - last - np.uint64(1)) // distance + np.uint64(1))
    return 0"""


class PythonHelpers(HelperFunctions):
    """The helper functions of a kernel for numba."""

    def __init__(self) -> None:
        super().__init__()
        self.device_functions: set[str] = set()
        """What kernel and helpers use of ``device_functions``."""

    def function(self, name: str) -> str:
        """The name under which a function of ``device_functions`` is called."""
        self.device_functions.add(name)
        return name

    def operation_text(self, name: str, operation: str, type: ScalarType) -> str:
        """See ``HelperFunctions``."""
        if type.is_float:
            self.device_functions.update(_CALLED.get(operation, ()))
        head = "a" if operation in _ONE_OPERAND else "a, b"
        return _function(name, head, _BODIES[type.kind][operation], type)

    def range_length_text(self, name: str) -> str:
        """See ``HelperFunctions``."""
        return _function(name, "start, stop, step", _RANGE_LENGTH, INT64)

    def saturating_cast_text(self, name: str, target: ScalarType, source: ScalarType) -> str:
        """See ``HelperFunctions``."""
        low, high = integer_limits(target.dtype)
        made = constructor(target)
        body = f"""\
        if a != a:
            return {made}(0)
        if a <= $T({low}):
            return {made}({low})
        if a >= $T({high}):
            return {made}({high})
        return {made}(a)"""
        return _function(name, "a", body, source)


def _function(name: str, head: str, body: str, type: ScalarType) -> str:
    made = constructor(type)
    text = body.replace("$T", made).replace("$BITS", str(type.bits))
    text = text.replace("$0", f"{made}(0)").replace("$1", f"{made}(1)")
    lines = indent(dedent(text), "    ")
    return f'@device_func(error_model="numpy")\ndef {name}({head}):\n{lines}\n'


def stored_name(type: ScalarType) -> str:
    """NumPy's name of the type that an element has in memory; bools lie there as bytes."""
    return "uint8" if type.is_bool else type.name
