"""Copies and fills in fusion mode: kernels of ours, which join the list as any do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from fusionq.analysis.aliasing import has_element_twice
from fusionq.base.call_site import located, user_span
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.memory.buffer import Buffer
from fusionq.memory.foreign_array import ForeignArray, byte_bounds
from fusionq.memory.storage import HostBytes, check_reachable
from fusionq.runtime.copy_kernels import COPIES, FILLS
from fusionq.runtime.event import Event
from fusionq.runtime.state import QueueState

Dependences: TypeAlias = Event | Iterable[object]

Submit: TypeAlias = Callable[..., Event]
"""``FusionQueue.submit``."""

Given: TypeAlias = tuple[object, Buffer | ForeignArray]
"""An argument of a command, and what it was found to be."""

MOST_WORK = 10_000
"""Steps in which it has to be told whether two views have an element in common."""

_ANYWHERE = 1 << 20
"""An address for memory that there is not yet."""


def join_copy(
    queue: QueueState, submit: Submit, dst: Given, src: Given, depends_on: Dependences
) -> tuple[Event | None, str | None]:
    """The event of a copy that has joined the queue's list, None where it has not, and why not."""
    if queue.list is None:
        return None, None
    target, source = dst[1], src[1]
    reason = _why_not(queue, dst, src)
    if reason is None and has_element_twice(target.shape, target.strides, target.dtype.itemsize):
        reason = "elements of its destination lie in one place"
    if reason is not None:
        return None, _left_out(queue, "memcpy", reason)
    shape = target.shape
    kernel = COPIES[len(shape) - 1]
    given = src[0]
    if _overlap(target, source):
        between = Buffer(shape, target.dtype, internal=True)
        submit(kernel, shape[:3], between, given, depends_on=depends_on)
        given = between
    return submit(kernel, shape[:3], dst[0], given, depends_on=depends_on), None


def join_fill(
    queue: QueueState,
    submit: Submit,
    given: Given,
    element: np.generic,
    depends_on: Dependences,
) -> tuple[Event | None, str | None]:
    """The event of a fill that has joined the queue's list, None where it has not, and why not."""
    if queue.list is None:
        return None, None
    reason = _why_not(queue, given)
    if reason is not None:
        return None, _left_out(queue, "fill", reason)
    shape = given[1].shape
    kernel = FILLS[len(shape) - 1]
    return submit(kernel, shape[:3], given[0], element, depends_on=depends_on), None


def _left_out(queue: QueueState, command: str, reason: str) -> str:
    """Note in the list's report that a command did not join it, and why; what the note says."""
    pending = queue.list
    assert pending is not None
    said = f"{command} does not join the list: {reason}"
    pending.left_out = [*pending.left_out, located(user_span(), said)]
    return said


def _why_not(queue: QueueState, *operands: Given) -> str | None:
    """Why kernels of the queue cannot do a command on these; None if they can."""
    backend = queue.launcher.backend
    dimensions = len(operands[0][1].shape)
    if dimensions > len(COPIES):
        return f"its arrays have {dimensions} dimensions, and kernels of ours up to {len(COPIES)}"
    device, dtype = queue.target.device, operands[0][1].dtype
    if (dtype == np.float64 and not device.has_fp64) or (
        dtype == np.float16 and not device.has_fp16
    ):
        return f"kernels of {device.name!r} have no {dtype}"
    for _, operand in operands:
        try:
            if isinstance(operand, Buffer):
                if not operand._storage.owned:  # what is owned moves to where kernels need it
                    operand._storage.check_reachable(backend)
            elif operand.home is None and operand.usm_interface is None:
                return (
                    "an array of the host is read, or written, when the call returns; make it a "
                    "Buffer: Buffer(array), or Buffer(array, copy=False) to share its memory"
                )
            else:
                check_reachable(backend, operand.usm_interface, "the array", operand.home)
        except (ArgumentError, DeviceError) as error:
            return str(error)
    return None


def _overlap(target: Buffer | ForeignArray, source: Buffer | ForeignArray) -> bool:
    """Whether some element of one shares memory with another element of the other; True also where
    that takes too long to tell."""
    addresses = _addresses(target, source)
    if addresses is None:
        return False
    if addresses[0] == addresses[1] and _strides(target) == _strides(source):
        return False
    return share_memory(target, source)


def share_memory(target: Buffer | ForeignArray, source: Buffer | ForeignArray) -> bool:
    """Whether some element of one shares memory with one of the other; True also where that takes
    too long to tell."""
    addresses = _addresses(target, source)
    if addresses is None or 0 in target.shape or 0 in source.shape:
        return False
    bounds = [
        (address + low, address + high)
        for address, operand in zip(addresses, (target, source), strict=True)
        for low, high in (byte_bounds(operand.shape, operand.strides, operand.dtype.itemsize),)
    ]
    if bounds[0][0] >= bounds[1][1] or bounds[1][0] >= bounds[0][1]:
        return False
    start, end = min(low for low, _ in bounds), max(high for _, high in bounds)
    memory = np.asarray(HostBytes(start, end - start, False, None))  # which nobody looks at
    views: list[np.ndarray[Any, Any]] = [
        np.ndarray(operand.shape, operand.dtype, memory, address - start, operand.strides)
        for address, operand in zip(addresses, (target, source), strict=True)
    ]
    try:
        return np.shares_memory(
            views[0],
            views[1],
            max_work=MOST_WORK,  # type: ignore[arg-type]  # any number; NumPy's stubs know two
        )
    except np.exceptions.TooHardError:
        return True


def _addresses(
    target: Buffer | ForeignArray, source: Buffer | ForeignArray
) -> tuple[int, int] | None:
    """Where the first elements are; None where the two share no memory, since one has none yet."""
    if (
        isinstance(target, Buffer)
        and isinstance(source, Buffer)
        and target._storage is source._storage
    ):
        address = target._storage.address or _ANYWHERE
        return address + target._offset, address + source._offset
    found = _address(target), _address(source)
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _address(operand: Buffer | ForeignArray) -> int | None:
    if isinstance(operand, ForeignArray):
        return operand.address
    address = operand._storage.address
    return None if address is None else address + operand._offset


def _strides(operand: Buffer | ForeignArray) -> tuple[int, ...]:
    """Those that matter: of dimensions with more than one element."""
    dims = zip(operand.shape, operand.strides, strict=True)
    return tuple(stride for extent, stride in dims if extent > 1)
