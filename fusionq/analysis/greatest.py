"""The greatest value of an integer function."""

from __future__ import annotations

import islpy as isl


def greatest(value: isl.PwAff) -> isl.Val:
    """Of a function that is an integer all over its domain: infinity without a bound, NaN if the
    domain is empty.  ``PwAff.max_val`` refuses such a function where isl writes it as a quotient,
    which it does where the domain alone makes it whole: ``o/2`` of even ``o``."""
    return isl.Map.from_pw_aff(value).range().dim_max_val(0)
