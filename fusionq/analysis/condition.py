"""Sets of parameter values as Python expressions."""

from __future__ import annotations

import islpy as isl


def python_condition(values: isl.Set) -> str:
    """A parameter set as a Python expression over its parameters."""
    build = isl.AstBuild.from_context(isl.Set("{ : }"))
    text = str(build.expr_from_set(values).to_C_str())
    if "?" in text:
        raise AssertionError(f"isl printed a conditional expression: {text}")
    # isl prints division by a positive constant of what is known to be divisible or
    # non-negative as /, and of anything else as floord.
    return text.replace("&&", "and").replace("||", "or").replace("/", "//").replace("!(", "not (")
