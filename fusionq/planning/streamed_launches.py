"""Launches that touch more memory than stays in the caches, whose results go around them.

A compiler for CPUs makes vectors of such stores where its own model says that vectors pay.  With
AVX2 it leaves many kernels scalar for them, so that each element is a store to memory of its own:
4 million elements of two arrays took 3 s, and 23 ms as ordinary stores (AMD EPYC, Zen 3).  Kernels
over a range have none there; overlapped tiles, whose sub-groups have a size, are always vectors.

Such a vector has to begin at a multiple of its size, and a kernel has ordinary stores beside them
for memory where it does not.  Over several dimensions these take four times as long as those of a
kernel that has no others (the sum of two arrays of 2,048 x 2,049 float32: 1.98 ns an element and
0.52; of 2,048 x 2,048 by non-temporal stores 0.46), so where rows are no multiples there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusionq.analysis.aliasing import is_contiguous
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel, Store
from fusionq.ir.walk import statements
from fusionq.language.ranges import Range
from fusionq.passes.nontemporal_stores import with_nontemporal_stores
from fusionq.passes.sources import ArgumentSource, ParamSource
from fusionq.planning.by_kernel import ByKernel


class StreamedLaunches:
    """Finds those of a list of ``submissions`` on ``target``; for which sizes they are,
    ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._streamed = ByKernel(with_nontemporal_stores)

    def kernel(
        self, kernel: Kernel, sources: Mapping[str, ParamSource], items: Range
    ) -> Kernel:
        """``kernel`` as a launch over ``items`` runs it: with non-temporal stores where nothing of
        what it touches is in a cache when somebody comes to touch it again, be it the next launch.
        Where it may be, or may not be, depends on sizes: the plan serves those on one side.
        ``sources``: of its parameters."""
        device = self._target.device
        if not device.streams_stores or not device.masks_vectors:
            return kernel
        streamed = self._streamed[kernel]
        if streamed is None:
            return kernel
        if not self.leaves_caches(streamed.bytes_per_item, items):
            return kernel
        stored = {
            s.array for s in statements(streamed.kernel.body)
            if isinstance(s, Store) and s.nontemporal
        }  # fmt: skip
        are_vectors = [self._are_vectors(sources[array]) for array in sorted(stored)]
        return streamed.kernel if all(are_vectors) else kernel

    def _are_vectors(self, array: ParamSource) -> bool:
        """Whether each row of an array of several dimensions begins where a vector may.  The plan
        asks for extents like these, not for a first element, nor strides, like those of today."""
        assert isinstance(array, ArgumentSource)
        at = array.submission, array.argument
        argument = self._submissions[at[0]].arguments[at[1]]
        assert isinstance(argument, ArrayArgument)
        if len(argument.shape) == 1:
            return True
        lanes = self._target.vector_width
        if is_contiguous(argument):
            fits = argument.shape[-1] % lanes == 0
            condition = Condition(
                f"row % {lanes} {'==' if fits else '!='} 0", ("row",), (("n",),)
            )
            self._validity.demand(condition, {"n": Source(*at, len(argument.shape) - 1)})
        begins = argument.address or argument.offset
        return all(
            nbytes % (lanes * argument.dtype.nbytes) == 0
            for nbytes in (begins, *argument.strides[:-1])
        )

    def leaves_caches(self, bytes_per_item: int, items: Range) -> bool:
        """Whether a launch over ``items``, of which each touches so many bytes for itself, stores
        around the caches what nobody comes to touch again."""
        if not self._target.device.streams_stores or not bytes_per_item:
            return False
        fewest = self._target.kept_bytes // bytes_per_item + 1
        return self._validity.are_at_least(tuple(items), fewest)
