"""NumPy's functions of all elements of an array, as kernels have them: elements are combined in one
order, from the first to the last, with NumPy scalars."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.base.dtypes import is_bfloat16

ARRAY_FUNCTIONS: dict[object, str] = {
    np.sum: "sum", np.prod: "prod", np.max: "max", np.amax: "max", np.min: "min", np.amin: "min",
    np.any: "any", np.all: "all", np.mean: "mean", np.argmax: "argmax", np.argmin: "argmin",
    np.var: "var", np.std: "std", np.dot: "dot", np.inner: "dot", np.matmul: "dot",
    np.linalg.norm: "norm",
}  # fmt: skip
"""Function → what it computes; arrays have methods of these names, but for ``norm``."""
ARRAY_METHODS = frozenset(ARRAY_FUNCTIONS.values()) - {"norm"}


def combined(name: str, *arrays: npt.NDArray[Any]) -> Any:
    """What ``name`` gives of one array, ``dot`` of two."""
    match name:
        case "dot":
            return _dot(*arrays)
        case "norm":
            floats = _floats(arrays[0])
            return np.sqrt(_dot(floats, floats))
        case "mean":
            floats = _floats(arrays[0])
            return floats.dtype.type(_sum(floats) / floats.dtype.type(floats.size))
        case "var" | "std":
            return _variance(arrays[0], root=name == "std")
        case "sum" | "prod":
            return _sum(arrays[0], name == "prod")
        case "any" | "all":
            return np.bool_(getattr(np, name)([bool(x) for x in arrays[0].flat]))
        case "max" | "min":
            return reduce(np.maximum if name == "max" else np.minimum, arrays[0].flat)
    return np.int64(getattr(np, name)(arrays[0]))


def _is_floating(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or is_bfloat16(dtype)


def _floats(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array if _is_floating(array.dtype) else array.astype(np.float64)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What elements of a type are added in."""
    return np.dtype(np.float32) if _is_floating(dtype) and dtype.itemsize == 2 else dtype


def _sum(array: npt.NDArray[Any], product: bool = False) -> Any:
    result = array.dtype
    if result.kind in "bi":
        result = np.dtype(np.int64)
    elif result.kind == "u":
        result = np.dtype(np.uint64)
    wide = _wide(result).type
    total = wide(product)
    for x in array.flat:
        total = total * wide(x) if product else total + wide(x)
    return result.type(total)


def _variance(array: npt.NDArray[Any], root: bool) -> Any:
    result = _floats(array).dtype
    wide = _wide(result).type
    floats = array.astype(wide)
    mean = wide(_sum(floats) / wide(floats.size))
    squares = np.array([(x - mean) * (x - mean) for x in floats.flat], wide)
    variance = wide(_sum(squares) / wide(floats.size))
    return result.type(np.sqrt(variance) if root else variance)


def _dot(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Any:
    result = (a.dtype.type(0) * b.dtype.type(0)).dtype
    first, second = _wide(a.dtype).type, _wide(b.dtype).type
    total = (first(0) * second(0)).dtype.type(0)
    for x, y in zip(a, b, strict=True):
        total = total + first(x) * second(y)
    return result.type(total)
