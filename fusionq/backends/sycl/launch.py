"""Kernels with their arguments in the device's form, and the events of their launches."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from fusionq.backends.arguments import bound_by_name, check_fits, misfit, values_of
from fusionq.backends.base import ArrayBinding, Binding, DeviceEvent
from fusionq.backends.sycl.program import SyclProgram
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape
from fusionq.codegen import Extent, Pointer, Scalar, Slot, Stride
from fusionq.codegen.intervals import Interval
from fusionq.ir.nodes import ScalarParam

_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8, "int8": ctypes.c_uint8, "int16": ctypes.c_int16,
    "int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "float16": ctypes.c_uint16, "float32": ctypes.c_float, "float64": ctypes.c_double,
}  # fmt: skip
"""float16 and int8 (which dpctl does not take) travel as their bits."""


class SyclEvent:
    """The event of one launch."""

    __slots__ = ("native",)

    def __init__(self, native: Any) -> None:
        self.native = native
        """The ``dpctl.SyclEvent``."""

    def wait(self) -> None:
        """Block until the launch has run; other Python threads go on meanwhile."""
        self.native.wait()

    @property
    def complete(self) -> bool:
        """Whether the launch has run."""
        status = self.native.execution_status
        return bool(status == type(status).complete)

    def times(self) -> tuple[int, int] | None:
        """When the device started and ended the launch; None where the queue records no times."""
        self.native.wait()
        with suppress(Exception):  # what dpctl raises then
            times = int(self.native.profiling_info_start), int(self.native.profiling_info_end)
            return times if all(times) else None
        return None


class LaunchOrder:
    """What keeps the launches of one queue in order.

    An in-order queue does that itself; on any other, each launch depends on the one before.
    """

    __slots__ = ("in_order", "last")

    def __init__(self, in_order: bool) -> None:
        self.in_order = in_order
        self.last: Any = None
        """The last launch's ``dpctl.SyclEvent``, where launches have to wait for it."""


class SyclLaunch:
    """A program bound to arguments and a launch shape."""

    __slots__ = (
        "_arguments", "_global", "_kernel", "_local", "_name", "_order", "_scalars", "_submit",
    )  # fmt: skip

    def __init__(
        self,
        queue: Any,
        order: LaunchOrder,
        program: SyclProgram,
        bindings: Sequence[Binding],
        shape: LaunchShape,
    ) -> None:
        by_name = bound_by_name(program.kernel, bindings)
        self._submit = queue.submit_async
        self._order = order
        self._kernel = program.native
        self._name = program.kernel.name
        self._global = list(shape.global_range)
        self._local = list(shape.local_range)
        self._scalars: dict[str, tuple[ScalarParam, Any, Interval | None]] = {}
        """The parameter, the argument, and what values it may have if it is an integer."""
        self._arguments = [self._argument(slot, program, by_name) for slot in program.slots]

    def _argument(self, slot: Slot, program: SyclProgram, bindings: Mapping[str, Binding]) -> Any:
        binding, param = bindings[slot.param], program.kernel.param(slot.param)
        match slot, binding:
            case Pointer(), ArrayBinding():
                return ctypes.c_uint64(binding.address)
            case Extent(), ArrayBinding():
                return ctypes.c_int64(binding.shape[slot.dim])
            case Stride(), ArrayBinding():
                return ctypes.c_int64(binding.strides[slot.dim])
            case Scalar(), bool() | int() | float() | np.generic():
                assert isinstance(param, ScalarParam)
                argument = _C_TYPES[param.type.name]()
                self._scalars[slot.param] = (param, argument, values_of(param))
                self.set_scalar(slot.param, binding)
                return argument
        raise misfit(program.kernel, param, binding)

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow.

        ArgumentError if an integer does not fit the parameter's type.
        """
        if name not in self._scalars:  # the kernel does not use it
            return
        param, argument, values = self._scalars[name]
        plain = value.item() if isinstance(value, np.generic) else value
        if values is not None:
            check_fits(param, plain, values)
            argument.value = int(plain)
        elif param.type.name == "float16":
            with np.errstate(over="ignore"):
                argument.value = int(np.float16(plain).view(np.uint16))
        else:
            argument.value = plain

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> SyclEvent:
        """Enqueue; returns at once.  Events of other kinds of devices are waited for."""
        order = self._order
        try:
            if not depends and order.in_order:
                return SyclEvent(
                    self._submit(self._kernel, self._arguments, self._global, self._local)
                )
            events = self._native_events(depends)
            if order.last is not None:
                events.append(order.last)
            event = self._submit(self._kernel, self._arguments, self._global, self._local, events)
        except load_dpctl().SyclKernelSubmitError as error:
            raise self._refused() from error
        if not order.in_order:
            order.last = event
        return SyclEvent(event)

    def _refused(self) -> DeviceError:
        groups = " x ".join(map(str, self._local))
        items = prod(self._global)
        hint = (
            f" It has {items:,} work-items, and devices of this kind take fewer than 2**31 in one "
            "launch: submit parts, with where each begins as an argument"
            if items >= 2**31 - 2**16
            else ""
        )
        return DeviceError(
            f"the device refuses to launch kernel {self._name!r} over "
            f"{' x '.join(map(str, self._global))} work-items in groups of {groups}.{hint}"
        )

    def _native_events(self, depends: Sequence[DeviceEvent]) -> list[Any]:
        native = load_dpctl().SyclEvent
        events = []
        for event in depends:
            if isinstance(event.native, native):
                events.append(event.native)
            else:
                event.wait()
        return events
