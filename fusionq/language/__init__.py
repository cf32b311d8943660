"""What a kernel may use; everything here also runs as plain Python."""

from fusionq.language.atomics import AtomicRef, atomic_fence
from fusionq.language.groups import (
    all_of_group,
    any_of_group,
    exclusive_scan_over_group,
    group_barrier,
    group_broadcast,
    inclusive_scan_over_group,
    none_of_group,
    permute_group_by_xor,
    reduce_over_group,
    select_from_group,
    shift_group_left,
    shift_group_right,
)
from fusionq.language.item import Group, Item, NdItem, SubGroup
from fusionq.language.joint import (
    joint_all_of,
    joint_any_of,
    joint_exclusive_scan,
    joint_inclusive_scan,
    joint_none_of,
    joint_reduce,
)
from fusionq.language.local_memory import LocalAccessor, PrivateArray
from fusionq.language.math_functions import clz, cospi, fma, popcount, rsqrt, sinpi
from fusionq.language.memory_model import AddressSpace, MemoryOrder, MemoryScope
from fusionq.language.ranges import NdRange, Range
from fusionq.language.regions import mark, region

__all__ = [
    "AddressSpace",
    "AtomicRef",
    "Group",
    "Item",
    "LocalAccessor",
    "MemoryOrder",
    "MemoryScope",
    "NdItem",
    "NdRange",
    "PrivateArray",
    "Range",
    "SubGroup",
    "all_of_group",
    "any_of_group",
    "atomic_fence",
    "clz",
    "cospi",
    "exclusive_scan_over_group",
    "fma",
    "group_barrier",
    "group_broadcast",
    "inclusive_scan_over_group",
    "joint_all_of",
    "joint_any_of",
    "joint_exclusive_scan",
    "joint_inclusive_scan",
    "joint_none_of",
    "joint_reduce",
    "mark",
    "none_of_group",
    "permute_group_by_xor",
    "popcount",
    "reduce_over_group",
    "region",
    "rsqrt",
    "select_from_group",
    "shift_group_left",
    "shift_group_right",
    "sinpi",
]
