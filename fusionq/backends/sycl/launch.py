"""Kernels with their arguments in the device's form, and the events of their launches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from fusionq.backends.base import Binding, DeviceEvent
from fusionq.backends.native_arguments import NativeArguments
from fusionq.backends.sycl.program import SyclProgram
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape


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

    __slots__ = ("in_order", "last", "waits_on_host")

    def __init__(self, in_order: bool, waits_on_host: bool = False) -> None:
        self.in_order = in_order
        self.waits_on_host = waits_on_host
        """Whether the host waits for events of other queues, before it launches."""
        self.last: Any = None
        """The last launch's ``dpctl.SyclEvent``, where launches have to wait for it."""


class SyclLaunch:
    """A program bound to arguments and a launch shape."""

    __slots__ = (
        "_arguments", "_global", "_kernel", "_local", "_name", "_order", "_prepared", "_submit",
    )  # fmt: skip

    def __init__(
        self,
        queue: Any,
        order: LaunchOrder,
        program: SyclProgram,
        bindings: Sequence[Binding],
        shape: LaunchShape,
    ) -> None:
        self._submit = queue.submit_async
        self._order = order
        self._kernel = program.native
        self._name = program.kernel.name
        self._global = list(shape.global_range)
        self._local = list(shape.local_range)
        self._prepared = NativeArguments(program.kernel, program.slots, bindings)
        self._arguments = self._prepared.values

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow.

        ArgumentError if an integer does not fit the parameter's type.
        """
        self._prepared.set_scalar(name, value)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> SyclEvent:
        """Enqueue; returns at once.  Events of other kinds of devices are waited for."""
        order = self._order
        if depends and order.waits_on_host:
            for dependence in depends:
                dependence.wait()
            depends = ()
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
