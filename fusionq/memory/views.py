"""Basic indexing: the geometry of a view."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from fusionq.base.errors import ArgumentError
from fusionq.base.units import shown

BasicIndex: TypeAlias = int | np.integer[Any] | slice | EllipsisType


def basic_view(
    key: object, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Extents, strides and the first element's distance of the view ``[key]`` of an array
    (strides and distance in one unit), as NumPy has them.

    ``key``: integers, slices and at most one ``...``, at most one for each dimension.
    ArgumentError for anything else, and where no dimension remains.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(k is None for k in keys):
        raise _no_index(None)
    ellipses = [place for place, k in enumerate(keys) if k is Ellipsis]
    spare = len(shape) - len(keys) + len(ellipses)
    if spare < 0 or len(ellipses) > 1:
        raise ArgumentError(f"too many indices for a Buffer of {len(shape)} dimensions: {key!r}")
    at = ellipses[0] if ellipses else len(keys)
    keys[at : at + len(ellipses)] = [slice(None)] * spare
    view_shape, view_strides, distance = [], [], 0
    for k, extent, stride in zip(keys, shape, strides, strict=True):
        if isinstance(k, slice):
            try:
                start, stop, step = k.indices(extent)
            except (TypeError, ValueError) as error:
                raise ArgumentError(f"{error}: {k!r}") from None
            length = len(range(start, stop, step))
            distance += start * stride if length else 0
            view_shape.append(length)
            view_strides.append(step * stride)
        elif isinstance(k, (int, np.integer)) and not isinstance(k, bool):
            if not -extent <= k < extent:
                raise ArgumentError(f"index {shown(k)} is out of bounds for an extent of {extent}")
            distance += int(k) % extent * stride
        else:
            raise _no_index(k)
    if not view_shape:
        raise ArgumentError(
            "one element is no Buffer; use a slice (buffer[i:i + 1]), or .numpy()[i] for its value"
        )
    return tuple(view_shape), tuple(view_strides), distance


def _no_index(key: object) -> ArgumentError:
    return ArgumentError(
        f"a Buffer is indexed with integers, slices and ..., not {type(key).__name__}; for "
        "anything else use .numpy()"
    )
