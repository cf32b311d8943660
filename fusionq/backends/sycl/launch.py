"""Kernels with their arguments in the device's form, and the events of their launches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf, prod
from typing import Any

import numpy as np

from fusionq.backends.argument_structure import ArgumentStructure
from fusionq.backends.base import ArrayBinding, Binding, DeviceEvent
from fusionq.backends.interruptible import tell_running, wait_interruptibly
from fusionq.backends.native_arguments import NativeArguments
from fusionq.backends.sycl.program import SyclProgram
from fusionq.backends.sycl.runtime import load_dpctl
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape

DIRECT_OPERATIONS = 2e8
"""What takes some tenths of a second at most, and a millisecond where it is vectorised: the main
thread waits for that itself, which saves 8 to 15 µs, and Ctrl-C can wait as well."""
PERSISTENT_WEIGHT = 20.0
"""How often operations of persistent kernels count: their workers wait for each other, and only a
thread of fusionq's own leaves the processors of others alone."""
LATEST = 16
"""How many launches of a queue can be named as running."""


class SyclEvent:
    """The event of one launch, by the name of ``what``, on a queue with an ``order``; None for
    that of somebody else's launch."""

    __slots__ = ("_order", "native", "what")

    def __init__(self, native: Any, order: LaunchOrder | None = None, what: str = "") -> None:
        self.native = native
        """The ``dpctl.SyclEvent``."""
        self._order = order
        self.what = what

    def wait(self) -> None:
        """Block until the launch has run; other Python threads go on meanwhile, and Ctrl-C ends
        the wait."""
        if self._order is None:
            wait_interruptibly(self.native.wait)
        else:
            self._order.wait(self.native.wait, self)

    @property
    def complete(self) -> bool:
        """Whether the launch has run."""
        status = self.native.execution_status
        return bool(status == type(status).complete)

    def times(self) -> tuple[int, int] | None:
        """When the device started and ended the launch; None where the queue records no times."""
        self.wait()
        with suppress(Exception):  # what dpctl raises then
            times = int(self.native.profiling_info_start), int(self.native.profiling_info_end)
            return times if all(times) else None
        return None


class LaunchOrder:
    """What keeps the launches of one queue in order, and waits for them.

    An in-order queue keeps the order itself; on any other, each launch depends on the one before.
    """

    __slots__ = ("device", "in_order", "interrupted", "last", "latest", "pending", "waits_on_host")

    def __init__(self, in_order: bool, device: str, waits_on_host: bool = False) -> None:
        self.in_order = in_order
        self.device = device
        """Its name."""
        self.waits_on_host = waits_on_host
        """Whether the host waits for events of other queues, before it launches."""
        self.last: Any = None
        """The last launch's ``dpctl.SyclEvent``, where launches have to wait for it."""
        self.pending = 0.0
        """Operations, at most, of the launches since all had run."""
        self.latest: deque[SyclEvent] = deque(maxlen=LATEST)
        """The latest launches."""
        self.interrupted = False
        """Whether Ctrl-C has ended a wait, and none has ended by itself since."""

    def wait(self, block: Callable[[], object], event: SyclEvent | None = None) -> None:
        """Make a call that blocks until ``event``, or all that was launched, has run.  Ctrl-C ends
        it, and the KeyboardInterrupt says what is still running."""
        latest = self.latest
        last = event is None or (len(latest) > 0 and latest[-1] is event)
        if self.pending <= DIRECT_OPERATIONS:
            block()
        else:
            try:
                wait_interruptibly(block)
            except KeyboardInterrupt as interrupt:
                self.interrupted = True
                tell_running(interrupt, self.device, [e.what for e in latest if not e.complete])
                raise
        if last and (event is None or latest[-1] is event):  # nothing was launched meanwhile
            self.pending = 0.0
            self.interrupted = False


class SyclLaunch:
    """A program bound to arguments and a launch shape."""

    __slots__ = (
        "_arguments", "_global", "_has_changed", "_kernel", "_local", "_name", "_operations",
        "_order", "_pointers", "_prepared", "_program", "_submit", "_what",
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
        self._program = program
        self._kernel = program.native
        self._name = program.kernel.name
        self._what = program.what
        self._be_over(bindings, shape)
        self._prepared: ArgumentStructure | NativeArguments
        self._arguments: list[Any]
        if program.is_packed:
            self._prepared = ArgumentStructure(program.kernel, program.slots, bindings)
            self._arguments, self._has_changed = [], True
        else:
            self._prepared = NativeArguments(program.kernel, program.slots, bindings)
            self._arguments, self._has_changed = self._prepared.values, False
        self._pointers: list[tuple[Any, int]] = []
        """The arrays' addresses among the arguments of a copy, with the arrays' places."""

    def _be_over(self, bindings: Sequence[Binding], shape: LaunchShape) -> None:
        program, whole, local = self._program, shape.global_range, shape.local_range
        work, shapes = program.work, {}
        if work.depends_on_shapes:
            arrays = zip(program.kernel.params, bindings, strict=False)
            shapes = {p.name: b.shape for p, b in arrays if isinstance(b, ArrayBinding)}
        weight = PERSISTENT_WEIGHT if work.is_persistent and whole != local else 1.0
        self._operations = weight * work.operations(prod(whole), shapes)
        self._global, self._local = list(whole), list(local)

    def resize(self, arguments: Sequence[Binding], shape: LaunchShape) -> bool:
        """See ``ResizableLaunch``; where the arguments are one structure."""
        prepared = self._prepared
        if not isinstance(prepared, ArgumentStructure):
            return False
        prepared.bind(self._program.kernel, arguments)
        self._has_changed = True
        self._be_over(arguments, shape)
        return True

    def copy(self, places: Mapping[str, int]) -> SyclLaunch:
        """The same launch, which takes other arguments by itself; ``places``: of its arrays, by
        parameter, among the addresses that it moves to."""
        other = object.__new__(SyclLaunch)
        other._submit, other._order, other._kernel = self._submit, self._order, self._kernel
        other._program = self._program
        other._name, other._what, other._operations = self._name, self._what, self._operations
        other._global, other._local = self._global, self._local
        other._prepared = prepared = self._prepared.copy()
        other._has_changed = isinstance(prepared, ArgumentStructure)
        other._arguments = [] if isinstance(prepared, ArgumentStructure) else prepared.values
        other._pointers = prepared.pointers(places)
        return other

    def move(self, addresses: Sequence[int | None]) -> None:
        """Have the arrays of a copy at other ``addresses`` in the launches that follow."""
        self._prepared.move(self._pointers, addresses)
        self._has_changed = isinstance(self._prepared, ArgumentStructure)

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow.

        ArgumentError if an integer does not fit the parameter's type.
        """
        prepared = self._prepared
        if prepared.set_scalar(name, value) and isinstance(prepared, ArgumentStructure):
            self._has_changed = True

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> SyclEvent:
        """Enqueue; returns at once.  Events of other kinds of devices are waited for."""
        order, prepared = self._order, self._prepared
        if self._has_changed and isinstance(prepared, ArgumentStructure):
            self._arguments = [load_dpctl().RawKernelArg(prepared.content)]
            self._has_changed = False
        if depends and order.waits_on_host:
            for dependence in depends:
                dependence.wait()
            depends = ()
        order.pending += self._operations
        try:
            if not depends and order.in_order:
                native = self._submit(self._kernel, self._arguments, self._global, self._local)
                event = SyclEvent(native, order, self._what)
                order.latest.append(event)
                return event
            order.pending = inf  # what it depends on may take any time
            events = self._native_events(depends)
            if order.last is not None:
                events.append(order.last)
            native = self._submit(self._kernel, self._arguments, self._global, self._local, events)
        except load_dpctl().SyclKernelSubmitError as error:
            raise self._refused() from error
        if not order.in_order:
            order.last = native
        event = SyclEvent(native, order, self._what)
        order.latest.append(event)
        return event

    def _refused(self) -> DeviceError:
        groups = " x ".join(map(str, self._local))
        return DeviceError(
            f"the device refuses to launch kernel {self._name!r} over "
            f"{' x '.join(map(str, self._global))} work-items in groups of {groups}"
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
