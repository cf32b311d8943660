"""Launches that touch more memory than stays in the caches, whose results go around them.

A compiler for CPUs makes vectors of such stores where its own model says that vectors pay.  With
AVX2 it leaves many kernels scalar for them, so that each element is a store to memory of its own:
4 million elements of two arrays took 3 s, and 23 ms as ordinary stores (AMD EPYC, Zen 3).  Kernels
over a range have none there; overlapped tiles, whose sub-groups have a size, are always vectors.
"""

from __future__ import annotations

from fusionq.analysis.list_validity import ListValidity
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.language.ranges import Range
from fusionq.passes.nontemporal_stores import with_nontemporal_stores
from fusionq.planning.by_kernel import ByKernel


class StreamedLaunches:
    """Finds those of a list on ``target``; for which sizes they are, ``validity`` remembers."""

    def __init__(self, target: Target, validity: ListValidity) -> None:
        self._target = target
        self._validity = validity
        self._streamed = ByKernel(with_nontemporal_stores)

    def kernel(self, kernel: Kernel, items: Range) -> Kernel:
        """``kernel`` as a launch over ``items`` runs it: with non-temporal stores where nothing of
        what it touches is in a cache when somebody comes to touch it again, be it the next launch.
        Where it may be, or may not be, depends on sizes: the plan serves those on one side."""
        device = self._target.device
        if not device.streams_stores or not device.masks_vectors:
            return kernel
        streamed = self._streamed[kernel]
        if streamed is None:
            return kernel
        return streamed.kernel if self.leaves_caches(streamed.bytes_per_item, items) else kernel

    def leaves_caches(self, bytes_per_item: int, items: Range) -> bool:
        """Whether a launch over ``items``, of which each touches so many bytes for itself, stores
        around the caches what nobody comes to touch again."""
        if not self._target.device.streams_stores or not bytes_per_item:
            return False
        fewest = self._target.kept_bytes // bytes_per_item + 1
        return self._validity.are_at_least(tuple(items), fewest)
