"""Hand-built kernels on a backend, with NumPy arrays whose contents travel to it and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import fusionq as fq
from fusionq.backends.base import Allocation, ArrayBinding, Backend, Binding, DeviceEvent, Program
from fusionq.base.target import FloatMode, LaunchShape
from fusionq.codegen.launch_shape import launch_shape
from fusionq.ir.nodes import Kernel

Array = npt.NDArray[Any]
Scalar = bool | int | float | np.generic


class Launch:
    """A kernel over a range, prepared with the contents of arrays and with scalars.

    Arrays that are views of one array share the device's memory, as they share the host's.
    ``shape``: in place of the launch shape that a plain range gets.  ``program``: what has been
    built of the kernel.  ``sharing``: a launch whose memory the same arrays share.
    """

    def __init__(
        self,
        backend: Backend,
        kernel: Kernel,
        arguments: Sequence[Array | Scalar],
        items: int | tuple[int, ...],
        fp: FloatMode = "strict",
        shape: LaunchShape | None = None,
        program: Program | None = None,
        sharing: Launch | None = None,
    ) -> None:
        self._memory: dict[int, tuple[Allocation, Array]] = {}
        if sharing is not None:
            self._memory |= sharing._memory
        bindings = [self._binding(backend, argument) for argument in arguments]
        if shape is None:
            whole = items if isinstance(items, tuple) else (items,)
            shape = launch_shape(whole, backend.target)
        if program is None:
            program = backend.build(kernel, fp)
        self.prepared = backend.prepare(program, bindings, shape)

    def _binding(self, backend: Backend, argument: Array | Scalar) -> Binding:
        if not isinstance(argument, np.ndarray):
            return argument
        whole = argument
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if id(whole) not in self._memory:
            memory = backend.allocate(max(whole.nbytes, 1))
            memory.write(_bytes(whole))
            self._memory[id(whole)] = memory, whole
        distance = _address(argument) - _address(whole)
        strides = tuple(stride // argument.itemsize for stride in argument.strides)
        address = self._memory[id(whole)][0].address + distance
        return ArrayBinding(address, argument.shape, strides)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> DeviceEvent:
        """Enqueue."""
        return self.prepared.launch(depends)

    def fetch(self) -> None:
        """Bring the arrays' contents back; what was launched has run."""
        for memory, whole in self._memory.values():
            if whole.flags.writeable:
                memory.read(_bytes(whole))


def run(
    backend: Backend,
    kernel: Kernel,
    *arguments: Array | Scalar,
    items: int | tuple[int, ...],
    fp: FloatMode = "strict",
    shape: LaunchShape | None = None,
) -> None:
    """Launch ``kernel`` over ``items``, wait, and bring the arrays back."""
    launch = Launch(backend, kernel, arguments, items, fp, shape)
    launch.launch().wait()
    launch.fetch()


def submit(queue: fq.FusionQueue, kernel: object, space: object, *arguments: object) -> fq.Event:
    """As ``queue.submit``, with Buffers in place of NumPy arrays, which not every device reaches:
    the kernel may read them only."""
    own = [fq.Buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]
    return queue.submit(kernel, space, *own)  # type: ignore[arg-type]  # what a test gives it


def different(got: Array, wanted: Array, zeros_by_sign: bool = True) -> npt.NDArray[np.intp]:
    """Where two arrays differ in bits; NaNs are equal to each other."""
    got, wanted = np.ascontiguousarray(got).ravel(), np.ascontiguousarray(wanted).ravel()
    bits = np.dtype(f"u{got.itemsize}")
    unequal = got.view(bits) != wanted.view(bits)
    if got.dtype.kind == "f":
        unequal &= ~(np.isnan(got) & np.isnan(wanted))
        if not zeros_by_sign:
            unequal &= ~((got == 0) & (wanted == 0))
    return np.flatnonzero(unequal)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _bytes(array: Array) -> npt.NDArray[np.uint8]:
    """The memory of an array that owns it."""
    assert array.flags.c_contiguous
    return array.reshape(-1).view(np.uint8)
