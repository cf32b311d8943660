"""What a kernel asks of a device and of its arguments, checked: sizes of groups, local memory,
arrays that may be stored to."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from fusionq.analysis.item_space import local_range
from fusionq.analysis.kernel_facts import KernelFacts
from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    ScalarArgument,
    Submission,
    parameter_of,
)
from fusionq.backends.base import Backend
from fusionq.base.device_info import DeviceInfo, private_items
from fusionq.base.errors import ArgumentError
from fusionq.frontend.kernel import KernelFunction
from fusionq.language.ranges import NdRange, Range
from fusionq.memory.accessor import AccessorArgument
from fusionq.memory.buffer import Buffer
from fusionq.memory.foreign import describe


def sub_group_size(backend: Backend, function: KernelFunction) -> int | None:
    """Work-items of the kernel's sub-groups, if it asks for them."""
    sizes, wanted = backend.info.sub_group_sizes, function.sub_group_size
    if wanted is None:
        usual = backend.target.sub_group_size
        return usual if usual in sizes else max(sizes, default=None)
    if wanted not in sizes:
        known = f"has {', '.join(map(str, sizes))}" if sizes else "has none"
        raise ArgumentError(
            f"kernel {function.name!r} wants sub-groups of {wanted} work-items; "
            f"{backend.info.name} {known} (device.sub_group_sizes)"
        )
    return wanted


def check_work_group(function: KernelFunction, space: Range | NdRange, info: DeviceInfo) -> None:
    wanted = function.work_group_size
    local = tuple(space.local_range) if isinstance(space, NdRange) else None
    if local is not None and (size := prod(local)) > info.max_work_group_size:
        raise ArgumentError(
            f"kernel {function.name!r} has work-groups of {local}, {size} work-items; {info.name} "
            f"takes at most {info.max_work_group_size}. Submit it with a smaller local range"
        )
    if wanted is not None and wanted != local:
        raise ArgumentError(
            f"kernel {function.name!r} is made with work_group_size={wanted}, and submitted over "
            f"{space!r}; submit it with NdRange(global_range, {wanted})"
        )


def check_sub_groups(facts: KernelFacts, space: Range | NdRange) -> None:
    size = facts.sub_group_size
    if size is None:
        return
    local = space.local_range if isinstance(space, NdRange) else None
    if local is None or local[-1] % size:
        raise ArgumentError(
            f"kernel {facts.name!r} has sub-groups of {size} work-items, which fill its "
            f"work-groups' last dimension, and is submitted over {space!r}; submit it with an "
            f"NdRange whose last local extent is a multiple of {size}, or make the kernel with "
            "another sub_group_size"
        )


def check_broadcasts(facts: KernelFacts, space: Range | NdRange) -> None:
    if not facts.broadcast_from or not isinstance(space, NdRange):
        return
    items = prod(space.local_range)
    if facts.broadcast_from >= items:
        raise ArgumentError(
            f"kernel {facts.name!r} broadcasts from the linear local id {facts.broadcast_from}, "
            f"and its work-groups of {tuple(space.local_range)} have the ids 0 to {items - 1}; "
            "broadcast from one of these, or submit it with a larger local range"
        )


def check_local_memory(backend: Backend, submission: Submission, facts: KernelFacts) -> None:
    taken = facts.local_bytes
    if taken <= backend.info.local_memory_bytes:
        return
    arrays = [
        f"{a.name}: {a.dtype}{list(a.shape)}" for a in submission.ir.arrays if a.space == "local"
    ]
    remedy = "smaller LocalAccessors"
    if facts.ordered_functions:
        arrays.append("the values of its group functions")
        remedy = f"{remedy}, or an NdRange of smaller work-groups"
    raise ArgumentError(
        f"kernel {facts.name!r} takes {taken} bytes of local memory for each work-group "
        f"({', '.join(arrays)}); {backend.info.name} has {backend.info.local_memory_bytes}. Pass "
        f"{remedy}"
    )


def check_private_memory(info: DeviceInfo, submission: Submission, facts: KernelFacts) -> None:
    at_once = private_items(info, local_range(submission))
    most = info.private_memory_bytes
    if most is None or facts.private_bytes * at_once <= most:
        return
    arrays = [
        f"{a.name}: {a.dtype}{list(a.shape)}" for a in submission.ir.arrays if a.space == "private"
    ]
    raise ArgumentError(
        f"kernel {facts.name!r} takes {facts.private_bytes:,} bytes of private memory for each "
        f"work-item ({', '.join(arrays)}); {info.name} runs {at_once:,} of them at once, and has "
        f"{most:,} bytes. Make the PrivateArrays smaller, or pass an array with a part for each "
        "work-item"
    )


def check_atomics(facts: KernelFacts, arguments: Sequence[Argument]) -> None:
    for a in arguments:
        if isinstance(a, ArrayArgument) and a.alignment is not None and a.name in facts.atomic:
            raise ArgumentError(
                f"kernel {facts.name!r} has atomic operations on {a.parameter_text!r} (argument "
                f"`{a.text}`), whose elements of {a.dtype.nbytes} bytes do not all lie at "
                f"multiples of that, but of {a.alignment}; no device has these: make the dtype "
                "with np.dtype(…, align=True), or pass a copy"
            )


def check_writable(
    facts: KernelFacts, arguments: tuple[Argument, ...], args: Sequence[object]
) -> None:
    arrays = [a for a in arguments if not isinstance(a, ScalarArgument)]
    parameters = dict.fromkeys(map(parameter_of, arrays))
    given = [v for v in args if not isinstance(v, (bool, int, float, complex, np.generic))]
    values = dict(zip(parameters, given, strict=True))
    for argument in arrays:
        value = values[parameter_of(argument)]
        if argument.name not in facts.stored or not isinstance(argument, ArrayArgument):
            continue
        if isinstance(value, AccessorArgument):
            value = value.buffer
        if isinstance(value, Buffer):
            writable = value._storage.writable
        else:
            foreign = describe(value)
            writable = foreign is None or foreign.writable
        if not writable:
            raise ArgumentError(
                f"kernel {facts.name!r} stores to argument {argument.parameter_text!r} "
                f"({argument.text}), which is a read-only array; pass a writable copy"
            )
