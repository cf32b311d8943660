"""The scalar functions that ``ir.Call`` may name, by NumPy's names.

``FLOAT_FUNCTIONS`` take and return one floating type.  ``PREDICATES`` take a floating type
and return bool.  ``SAME_TYPE_FUNCTIONS`` keep any numeric type.
"""

from __future__ import annotations

FLOAT_FUNCTIONS: dict[str, int] = {
    # name: number of arguments, all of the result's floating type
    "sqrt": 1, "cbrt": 1, "exp": 1, "exp2": 1, "expm1": 1,
    "log": 1, "log2": 1, "log10": 1, "log1p": 1,
    "sin": 1, "cos": 1, "tan": 1, "arcsin": 1, "arccos": 1, "arctan": 1,
    "sinh": 1, "cosh": 1, "tanh": 1, "arcsinh": 1, "arccosh": 1, "arctanh": 1,
    "erf": 1, "erfc": 1, "gamma": 1, "lgamma": 1,
    "floor": 1, "ceil": 1, "trunc": 1, "rint": 1,
    "arctan2": 2, "hypot": 2, "fmod": 2, "copysign": 2, "nextafter": 2,
    "cospi": 1, "sinpi": 1, "fma": 3,
}  # fmt: skip
"""``gamma`` and ``lgamma``, ``erf`` and ``erfc`` are Python's ``math`` functions,
``cospi``, ``sinpi`` and ``fma`` those of ``language.math_functions``.  ``ldexp`` is beside them,
of a floating type and an int32."""

BIT_CAST = "bit_cast"
"""The bits of a number as one of another type that has as many (``numpy.generic.view``), an integer
or a floating one."""

INTEGER_FUNCTIONS: dict[str, int] = {"clz": 1, "popcount": 1}
"""Of ``language.math_functions``; they keep their integer type."""

PREDICATES: dict[str, int] = {"isnan": 1, "isinf": 1, "isfinite": 1, "signbit": 1}

SAME_TYPE_FUNCTIONS: dict[str, int] = {
    "abs": 1,      # |x|; wraps for the most negative integer
    "sign": 1,     # -1, 0, 1; NaN stays NaN
    "minimum": 2,  # NaN wins (NumPy)
    "maximum": 2,
    "fmin": 2,     # NaN loses (NumPy, C)
    "fmax": 2,
    "pymin": 2,    # b if b < a else a (Python's min)
    "pymax": 2,    # b if b > a else a (Python's max)
}  # fmt: skip

DEVICE_FUNCTIONS: dict[str, tuple[str, int]] = {
    "clock": ("int64", 0),               # the device's clock, in nanoseconds
    "cycle_counter": ("int64", 0),       # of the processor, in counts of unknown length
    "first_sub_group": ("bool", 0),      # in the sub-group that holds the group's first work-item
    "first_sub_group_here": ("bool", 0), # the same, where that work-item runs
    "last_sub_group": ("bool", 0),       # in the sub-group that holds the group's last work-item
    "sub_group_has_here": ("bool", 1),   # whether the work-item of a linear local id runs here
    "leads_sub_group": ("bool", 0),      # first work-item of its sub-group
    "first_of_sub_group": ("int64", 1),  # an id less the work-item's place in its sub-group
    "sub_group_local_id": ("int64", 0),  # the work-item's place in its sub-group
    "sub_group_local_range": ("int64", 0), # how many work-items its sub-group has
    "hidden": ("int64", 1),              # its argument, of which the compiler knows nothing
    "record_row": ("int64", 0),          # in a persistent kernel: the tile's row, -1: it has none
}  # fmt: skip
"""What profiling and code generation ask of the device: types, and numbers of arguments, which are
int64.  All work-items of a sub-group must evaluate ``first_sub_group`` and ``last_sub_group``;
the others may stand in divergent control flow, the first among them."""
