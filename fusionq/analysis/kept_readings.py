"""What has been read of kernels, for all plans of a process.

A list that is planned again, for another strategy, device or size, has the kernels of the one
before; and ``submit`` has read a kernel before the list is planned.  A reading that is taken over
counts as many operations as it took: what is known of a list depends on no other list.
"""

from __future__ import annotations

from collections.abc import Hashable

from fusionq.analysis.access import read_accesses
from fusionq.analysis.isl_operations import count_operations
from fusionq.analysis.kept_blocks import Untroubled
from fusionq.analysis.kernel_accesses import KernelAccesses, KernelShape
from fusionq.analysis.symbols import Symbols
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Kernel

MOST = 512
"""Readings that are kept; beyond that all are forgotten."""


@dataclass(frozen=True, slots=True)
class _Kept:
    kernel: Kernel
    """It stays, so that no other one has its identity."""
    values: tuple[tuple[str, int], ...]
    """Of the symbols that were pinned."""
    accesses: KernelAccesses
    operations: int


_KEPT: dict[Hashable, list[_Kept]] = {}


def known_accesses(
    kernel: Kernel, shape: KernelShape, symbols: Symbols, own_arrays: bool, pins: bool = True
) -> KernelAccesses:
    """``read_accesses``, or what that gave before for the same kernel over the same shape."""
    untroubled = Untroubled.now() if pins else None
    if untroubled is None:
        return read_accesses(kernel, shape, symbols, own_arrays, pins)
    key = (
        id(kernel),
        shape.global_range,
        shape.local_range,
        tuple(shape.extents.items()),
        tuple(shape.params.items()),
        symbols.alike,
        tuple([symbols.bound(name) for name in symbols.names]),
        symbols.varying_names,
        own_arrays and bool(kernel.arrays),
    )
    for kept in _KEPT.get(key, ()):
        if untroubled.is_without(kept.operations) and all(
            [symbols.values[name] == value for name, value in kept.values]
        ):
            count_operations(kept.operations)
            return kept.accesses
    found = read_accesses(kernel, shape, symbols, own_arrays)
    operations = untroubled.since()
    if operations is not None:
        if len(_KEPT) >= MOST:
            _KEPT.clear()
        values = tuple([(name, symbols.values[name]) for name in sorted(found.pinned)])
        _KEPT.setdefault(key, []).append(_Kept(kernel, values, found, operations))
    return found
