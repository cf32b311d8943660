"""The commands of a queue that are not kernels: copy, fill, a function on the host.

In fusion mode a copy or a fill joins the list where it can (``runtime.members``).  Else they run on
the host, in the queue's order: they wait for the launches that they depend on, and have run when
the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.base.call_site import user_span
from fusionq.base.dtypes import is_bfloat16, is_floating
from fusionq.base.errors import ArgumentError, DeviceError, FusionStateError
from fusionq.base.units import shown
from fusionq.ir.types import type_of_scalar
from fusionq.memory.buffer import Buffer
from fusionq.memory.buffer_sources import stored_array
from fusionq.memory.foreign import describe
from fusionq.memory.foreign_array import ForeignArray
from fusionq.memory.fusing_queues import LOCK, QUEUES
from fusionq.memory.host_access import Access, StoredArray, copy_on_device, host_arrays
from fusionq.memory.region import MemoryRegion
from fusionq.runtime.event import Event, as_dependences, pending_list_of
from fusionq.runtime.members import Dependences, Submit, join_copy, join_fill
from fusionq.runtime.state import QueueState

Operand = tuple[Buffer | ForeignArray, Access]
"""What a command uses, and what it does to it."""


def memcpy(
    queue: QueueState, submit: Submit, dst: object, src: object, depends_on: Dependences = ()
) -> Event:
    """See ``FusionQueue.memcpy``; ``submit`` is that of the queue."""
    target, source = _operand("memcpy", dst), _operand("memcpy", src)
    _require_writable("memcpy", target)
    if (target.shape, target.dtype) != (source.shape, source.dtype):
        raise ArgumentError(
            f"{user_span()}: memcpy copies between arrays of one shape and dtype, not from "
            f"{source.shape} {source.dtype} to {target.shape} {target.dtype}; slice or convert one"
        )
    if isinstance(depends_on, (int, np.integer)):
        raise ArgumentError(
            f"{user_span()}: memcpy takes no count, such as {depends_on}: it copies all of src to "
            "dst; slice both to copy a part, e.g. memcpy(dst[:n], src[:n])"
        )
    with LOCK:
        event, alone = join_copy(queue, submit, (dst, target), (src, source), depends_on)
    if event is not None:
        return event
    # What lies between the fields of records is not copied.
    how: Access = "write" if target.dtype.names is None else "read_write"
    operands: list[Operand] = [(target, how), (source, "read")]
    _synchronize(queue, "memcpy", operands, depends_on, alone)
    if how == "read_write" or not _copied_on_device(target, source):
        with _on_host("memcpy", operands) as (into, out_of):
            # NumPy copies some views that overlap, such as a[:8] to a[::2], element by element.
            _copy_fields(into, out_of.copy() if np.may_share_memory(into, out_of) else out_of)
    return Event()


def _copy_fields(into: npt.NDArray[Any], source: npt.NDArray[Any]) -> None:
    """Copy the elements, of records the fields."""
    if into.dtype.names is None:
        np.copyto(into, source)
    for name in into.dtype.names or ():
        _copy_fields(into[name], source[name])


def _copied_on_device(target: Buffer | ForeignArray, source: Buffer | ForeignArray) -> bool:
    """Copy between a GPU's memory and itself, or other memory that the host does not see; False,
    and nothing done, for other operands."""
    for operand in (target, source):
        if isinstance(operand, ForeignArray) and operand.home is None:
            return False
    return copy_on_device(_stored(target), _stored(source))


def fill(
    queue: QueueState,
    submit: Submit,
    buffer: object,
    value: object,
    depends_on: Dependences = (),
) -> Event:
    """See ``FusionQueue.fill``; ``submit`` is that of the queue."""
    target = _operand("fill", buffer)
    if target.dtype.names is not None:
        raise ArgumentError(
            f"{user_span()}: fill of records; fill their fields, such as "
            f"fill(buffer[{target.dtype.names[0]!r}], value)"
        )
    _require_writable("fill", target)
    element = _element(value, target.dtype)
    if element is None:
        raise ArgumentError(
            f"{user_span()}: fill cannot put {shown(value)} into an array of {target.dtype}; give "
            "a number that the dtype can hold"
        )
    with LOCK:
        event, alone = join_fill(queue, submit, (buffer, target), element, depends_on)
    if event is not None:
        return event
    _synchronize(queue, "fill", [(target, "write")], depends_on, alone)
    with _on_host("fill", [(target, "write")]) as (into,):
        into[...] = element
    return Event()


def _element(value: object, dtype: np.dtype[Any]) -> Any:
    """``value`` in ``dtype``: any number in a floating type unless it overflows, an integer or
    bool that fits in an integer type or, 0 and 1, in bool, all in a complex one; None for anything
    else."""
    if type_of_scalar(value) is None and not isinstance(value, (complex, np.complex64)):
        return None
    kind = "f" if is_floating(dtype) else dtype.kind
    kinds = {"b": "biu", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}[kind]
    number: Any = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic) and is_bfloat16(value.dtype):
        number = float(value)
    if np.asarray(number).dtype.kind not in kinds + ("O" if type(number) is int else ""):
        return None
    try:
        with np.errstate(over="ignore"):
            element: Any = np.array(number).astype(dtype)[()]
    except OverflowError:
        return None
    is_float = kind in "fc"
    overflows = is_float and np.isinf(element) and not np.isinf(number)
    return None if overflows or (not is_float and element != number) else element


def host_task(
    queue: QueueState,
    function: Callable[..., object],
    *buffers: object,
    depends_on: Dependences = (),
) -> Event:
    """See ``FusionQueue.host_task``."""
    if not callable(function):
        raise ArgumentError(
            f"{user_span()}: host_task calls a function, not {type(function).__name__}; the order "
            "is host_task(function, *buffers)"
        )
    operands: list[Operand] = [(_operand("host_task", b), "read_write") for b in buffers]
    _synchronize(queue, "host_task", operands, depends_on)
    queue.launcher.backend.wait()
    with _on_host("host_task", operands) as arrays:
        function(*arrays)
    return Event()


def _operand(command: str, value: object) -> Buffer | ForeignArray:
    if isinstance(value, Buffer):
        return value
    try:
        foreign = describe(value)
    except ArgumentError as error:
        raise ArgumentError(f"{user_span()}: {command}: {error}") from None
    if foreign is None:
        raise ArgumentError(
            f"{user_span()}: {command} takes Buffers and arrays, not {type(value).__name__}"
        )
    return foreign


def _require_writable(command: str, target: Buffer | ForeignArray) -> None:
    writable = target._storage.writable if isinstance(target, Buffer) else target.writable
    if not writable:
        raise ArgumentError(f"{user_span()}: {command} cannot write to a read-only array")


def _synchronize(
    queue: QueueState,
    command: str,
    operands: Sequence[Operand],
    depends_on: Dependences,
    alone: str | None = None,
) -> None:
    """End the fusions and wait for the kernels and events that come before the command, and let its
    Buffers have memory.  ``alone``: why the command is no member of the queue's list."""
    events = as_dependences(depends_on)
    with LOCK:
        if queue.closed:
            raise FusionStateError(
                f"{user_span()}: {command} on a closed queue; make a new FusionQueue"
            )
        if queue.is_recording:
            raise FusionStateError(
                f"{user_span()}: {alone or f'{command} runs on the host'}; a graph records "
                "kernels, and the copies and fills that kernels can do"
            )
        for fusing in tuple(QUEUES):
            if any(fusing.uses(_region(operand), how != "read") for operand, how in operands):
                reason = "" if alone is None or fusing is not queue else f"; {alone}"
                fusing.abort(f"{command} depends on the list{reason}")
        for event in events:
            pending = pending_list_of(event) if isinstance(event, Event) else None
            if pending is not None:
                pending.abort(f"{command} depends on an event of the list")
    for event in (*events, *queue.launcher.after):
        event.wait()
    for operand, _ in operands:
        if isinstance(operand, Buffer):
            operand._allocate()
            operand._storage.wait()
            if not operand._storage.owned:  # kernels may use its memory by another array
                queue.launcher.backend.wait()
        else:
            queue.launcher.backend.wait()
            if operand.work is not None:
                operand.work.wait()


@contextmanager
def _on_host(command: str, operands: Sequence[Operand]) -> Iterator[list[npt.NDArray[Any]]]:
    """The operands as NumPy arrays for as long as the block runs."""
    try:
        stored = [(_stored(operand), how) for operand, how in operands]
    except DeviceError as error:
        raise DeviceError(f"{user_span()}: {command}: {error}") from None
    with host_arrays(stored) as arrays:
        yield arrays


def _stored(operand: Buffer | ForeignArray) -> StoredArray:
    return operand._stored if isinstance(operand, Buffer) else stored_array(operand)


def _region(operand: Buffer | ForeignArray) -> MemoryRegion:
    return operand._storage.region if isinstance(operand, Buffer) else operand.region
