"""What arrays have in common that kernels use in the same way, whatever their sizes and places."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from fusionq.analysis.aliasing import layout
from fusionq.memory.foreign_array import alignment, component_size, components

Extents = tuple[tuple[int, ...], tuple[int, ...]]
"""Extents and strides (bytes) as kernels get them."""

CAPACITY = 4096
"""Beyond so many forms all are forgotten; their numbers are not used again."""

_forms: dict[Hashable, int] = {}
_numbers = count()


class SizedForm:
    """What arrays of one dtype, layout and flags and of the same sizes have in common.  Equal ones
    are one object as long as it is remembered, so tables that are asked by it compare no sizes.

    ``form``: a number for all sizes; None where elements do not lie at multiples of their size.
    """

    __slots__ = ("extents", "form")

    def __init__(self, form: int | None, extents: Extents) -> None:
        self.form, self.extents = form, extents


def sized_form(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    start: int,
    *flags: Hashable,
) -> SizedForm:
    """That of arrays of one dtype, shape, strides and ``flags``, the first element of which is at
    ``start``."""
    return _sized_form(shape, strides, dtype, start % (dtype.itemsize or 1), flags)


@lru_cache(CAPACITY)
def _sized_form(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    start: int,
    flags: Hashable,
) -> SizedForm:
    extents = components(shape, strides, dtype)
    if alignment(dtype, start, strides) is not None:
        return SizedForm(None, extents)
    form = dtype, len(shape), layout(*extents, component_size(dtype)), flags
    number = _forms.get(form)
    if number is None:
        if len(_forms) >= CAPACITY:
            _forms.clear()
        number = _forms.setdefault(form, next(_numbers))
    return SizedForm(number, extents)
