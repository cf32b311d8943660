"""What a device says of itself, and what it can do that others cannot."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device says of itself and people want to know; sizes in bytes."""

    name: str
    vendor: str
    driver: str
    filter_string: str
    kind: Literal["cpu", "gpu", "accelerator", "reference"]
    compute_units: int
    max_work_group_size: int
    local_memory_bytes: int
    has_fp16: bool
    has_fp64: bool
    host_memory: bool
    """True where kernels can reach ordinary host memory, such as a NumPy array's."""
    persistent_kernels: bool = True
    """Whether the backend compiles persistent kernels (``ir.Persistent``)."""
    reads_ahead: bool = False
    """Whether the workers of persistent kernels ask for memory before they have to wait."""
    streams_rows: bool = False
    """Whether memory is copied to local memory while work-items do something else, which hear when
    it is there."""
    groups_in_workers: bool = False
    """Whether the lanes of a worker can be the work-items of work-groups, side by side, each with
    barriers of its own: threads, not the lanes of a vector."""
    chooses_persistent: bool = True
    """Whether the cost model does, for ``auto``: where it was fitted to lists.  Trials try them all
    the same."""
    float_groups: Literal["replaced", "ordered", "unordered"] = "replaced"
    """What combines floats over work-groups: loads and stores in the order of
    ``language.combine.over_group``, functions of the device in that order, or functions of the
    device in an order of their own."""
    sub_group_sizes: tuple[int, ...] = ()
    """Work-items that a kernel's sub-groups may have; none where it cannot use them."""
    private_memory_bytes: int | None = None
    """Memory for the private arrays of all work-items that run at once; None where the runtime
    refuses by itself what takes more."""
    narrow_indices: bool = False
    """Whether kernels over small sizes get code of their own, with indices of 32 bits."""
    yields_processor: bool = False
    """Whether a kernel is code of threads of this process that can let others run on their
    processor, by a call of the C library's ``sched_yield``."""

    masks_vectors: bool = True
    """Whether vectors whose lanes are work-items have registers for masks: else a store under a
    guard takes many times as long as one without, and what stores around the caches may be no
    vector at all."""

    group_lanes: int = 0
    """Work-items of a vector, where work-groups that are no whole number of them in the last
    dimension have no vectors at all if their work-items wait for each other; 0: they have."""

    splits_rows: bool = False
    """Whether conditions on ids are worth code of their own for the inside of rows
    (``codegen.along_rows``): they would be masks of vectors."""

    jams_items: bool = False
    """Whether a work-item may do several neighbours of an outer dimension (``passes.jam_items``):
    where those of the last are lanes, of vectors or warps."""

    jams_rows: bool = False
    """Whether work-groups may do several vectors of a row together (``codegen.along_rows``): where
    work-items are lanes of a vector."""

    loads_together: bool = False
    """Whether launches of few work-items have code of their own, which loads for many iterations of
    a loop at once (``codegen.loads_together``)."""

    streams_stores: bool = False
    """Whether its compiler makes stores around the caches of non-temporal ones."""

    @property
    def supports_fusion(self) -> bool:
        """Whether lists of kernels can be fused there, as ``ext_codeplay_supports_fusion`` says of
        a SYCL device: fusing happens above the device, so on each that a queue can be made for.
        ``FusionQueue(fusion=False)`` forbids it for one queue."""
        return True


def private_items(info: DeviceInfo, local_range: tuple[int, ...] | None) -> int:
    """How many work-items have private memory at once: the work-groups that run, whose work-items
    all wait at barriers; without work-groups the lanes of vectors."""
    return info.compute_units * (_MOST_LANES if local_range is None else prod(local_range))


_MOST_LANES = 64
