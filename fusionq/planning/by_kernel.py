"""What planning finds out about kernels, once for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from fusionq.ir.nodes import Kernel

T = TypeVar("T")


class ByKernel(Generic[T]):
    """What ``find`` says of kernels, which are told apart by identity: a list has one and the same
    for launches that are alike."""

    def __init__(self, find: Callable[[Kernel], T]) -> None:
        self._find = find
        self._found: dict[int, tuple[Kernel, T]] = {}
        """The kernel stays, so that no other one has its identity."""

    def __getitem__(self, kernel: Kernel) -> T:
        known = self._found.get(id(kernel))
        if known is None:
            known = self._found[id(kernel)] = kernel, self._find(kernel)
        return known[1]
