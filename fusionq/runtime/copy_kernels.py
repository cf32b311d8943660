"""The kernels of ``memcpy`` and ``fill``: a work-item an element, or a row of four dimensions."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from fusionq.frontend.callees import Callee
from fusionq.frontend.kernel import KernelFunction
from fusionq.language.item import Item

Array: TypeAlias = Any
"""An argument that is an array in the kernel."""


def _kernel(function: Callable[..., None]) -> KernelFunction:
    """A kernel made of a function of this package, which users' kernels cannot call."""
    assert isinstance(function, FunctionType)
    return KernelFunction(Callee(function))


@_kernel
def copy_1d(item: Item, dst: Array, src: Array) -> None:
    i = item.get_id(0)
    dst[i] = src[i]


@_kernel
def copy_2d(item: Item, dst: Array, src: Array) -> None:
    i, j = item.get_id(0), item.get_id(1)
    dst[i, j] = src[i, j]


@_kernel
def copy_3d(item: Item, dst: Array, src: Array) -> None:
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    dst[i, j, k] = src[i, j, k]


@_kernel
def copy_4d(item: Item, dst: Array, src: Array) -> None:
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    for m in range(dst.shape[3]):
        dst[i, j, k, m] = src[i, j, k, m]


@_kernel
def fill_1d(item: Item, buffer: Array, value: Any) -> None:
    buffer[item.get_id(0)] = value


@_kernel
def fill_2d(item: Item, buffer: Array, value: Any) -> None:
    buffer[item.get_id(0), item.get_id(1)] = value


@_kernel
def fill_3d(item: Item, buffer: Array, value: Any) -> None:
    buffer[item.get_id(0), item.get_id(1), item.get_id(2)] = value


@_kernel
def fill_4d(item: Item, buffer: Array, value: Any) -> None:
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    for m in range(buffer.shape[3]):
        buffer[i, j, k, m] = value


COPIES = (copy_1d, copy_2d, copy_3d, copy_4d)
"""By the arrays' dimensions, from 1 on."""

FILLS = (fill_1d, fill_2d, fill_3d, fill_4d)
"""By the array's dimensions, from 1 on."""
