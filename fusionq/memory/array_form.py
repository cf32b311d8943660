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


def form_and_extents(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    start: int,
    *flags: Hashable,
) -> tuple[int | None, Extents]:
    """A number for arrays of one dtype, number of dimensions, layout and ``flags``, and the extents
    of this one, whose first element is at ``start``.  None in place of the number where elements do
    not lie at multiples of their size."""
    return _form_and_extents(shape, strides, dtype, start % (dtype.itemsize or 1), flags)


@lru_cache(CAPACITY)
def _form_and_extents(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    start: int,
    flags: Hashable,
) -> tuple[int | None, Extents]:
    extents = components(shape, strides, dtype)
    if alignment(dtype, start, strides) is not None:
        return None, extents
    form = dtype, len(shape), layout(*extents, component_size(dtype)), flags
    number = _forms.get(form)
    if number is None:
        if len(_forms) >= CAPACITY:
            _forms.clear()
        number = _forms.setdefault(form, next(_numbers))
    return number, extents
