"""The typed kernel IR as the Python source of a numba-dpex kernel."""

from __future__ import annotations

from fusionq.base.errors import DeviceError
from fusionq.codegen import DeviceSource, Pointer, Slot
from fusionq.codegen.array_access import Memory, slot_type
from fusionq.dpex.backend.helpers import PythonHelpers, stored_name
from fusionq.dpex.backend.names import python_names
from fusionq.dpex.backend.printer import NumbaPrinter
from fusionq.ir.nodes import (
    ArrayParam,
    Atomic,
    Const,
    For,
    Kernel,
    Store,
    Var,
)
from fusionq.ir.python_text import INDENT, uses_groups
from fusionq.ir.types import BFLOAT16, FLOAT16, UINT8, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    statement_expressions,
    statements,
    subexpressions,
)


def generate(kernel: Kernel) -> DeviceSource:
    """The source of a module with the kernel; the same kernel gives the same text.

    The kernel's dimensions are SYCL's: the launch has to give numba-dpex its extents reversed.
    Raises DeviceError for what numba-dpex cannot compile.
    """
    try:
        return _KernelPrinter(kernel).print()
    except DeviceError as error:
        raise DeviceError(
            f"{kernel.span}: kernel {kernel.name!r} cannot run on the dpex backend: {error}; use "
            "a queue on the SYCL device itself, e.g. FusionQueue('opencl:cpu')"
        ) from None


def argument_type(slot: Slot, kernel: Kernel) -> ScalarType:
    """The type of the kernel argument that a slot stands for; bools are bytes."""
    type = slot_type(kernel, slot)
    return UINT8 if type.is_bool else type


class _KernelPrinter:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.types = frozenset(e.type for e in expressions(kernel.body))
        if FLOAT16 in self.types:
            raise DeviceError("it computes in float16, which numba-dpex cannot compile")
        if BFLOAT16 in self.types:
            raise DeviceError("it has bfloat16 numbers, which numba-dpex has not")
        if any(isinstance(p, ArrayParam) and p.alignment is not None for p in kernel.params):
            raise DeviceError(
                "it has an array whose elements do not lie at multiples of their size, which "
                "numba-dpex cannot address"
            )
        self.groups = uses_groups(kernel)
        self.helpers = PythonHelpers()
        self.names = python_names()
        self.entry_point = self.names.fresh(kernel.name)
        self.memory = Memory(kernel, self.names)
        self.printer = NumbaPrinter(kernel, self.names, self.memory, self.helpers)

    def print(self) -> DeviceSource:
        declarations = map(self.printer.declaration, self.kernel.arrays)
        body = [line for lines in declarations for line in lines]
        lines = self.printer.body(self.kernel.body, 1)
        slots = self.memory.slots()
        arrays = [self._array(slot) for slot in slots if isinstance(slot, Pointer)]
        item = f"item: {'NdItem' if self.groups else 'Item'}"
        parameters = ", ".join([item, *(self.memory.identifier(slot) for slot in slots)])
        text = [
            *self._imports(),
            "",
            "",
            *(f"{helper}\n" for helper in self.helpers.texts),
            '@kernel(error_model="numpy")',
            f"def {self.entry_point}({parameters}):",
            *(INDENT + line for line in (*self._comment(slots), *arrays, *body)),
            *(INDENT + line for line in self._undefined()),
            *lines,
            *(INDENT + line for line in self._last()),
        ]
        return DeviceSource("\n".join(text) + "\n", self.entry_point, slots, self.types)

    def _undefined(self) -> list[str]:
        """Values for variables that the text reads before it assigns them, which numba refuses:
        no work-item does."""
        assigned: set[str] = set()
        found: dict[str, Var] = {}
        for stmt in statements(self.kernel.body):
            for expr in statement_expressions(stmt):
                for part in subexpressions(expr):
                    if isinstance(part, Var) and part.name not in assigned:
                        found.setdefault(part.name, part)
            assigned.update(n for n in (assigned_variable(stmt),) if n is not None)
            if isinstance(stmt, For):
                assigned.add(stmt.var)
        zeros = {n: Const(v.type, v.type.dtype.type(0).item()) for n, v in found.items()}
        return [f"{self.names.of(n)} = {self.printer.value(zero)}" for n, zero in zeros.items()]

    def _last(self) -> list[str]:
        """What keeps guards from leading straight to the kernel's end, without ever running.

        Where they do, Intel's CPU compiler makes loop bounds of them, and wrong ones of some that
        fall with the id, such as ``0 <= n - 1 - i`` behind ``i < n`` (seen with its versions
        2024.2 and 2026.1).
        """
        for stmt in statements(self.kernel.body):
            if not isinstance(stmt, (Store, Atomic)):
                continue
            param = next((p for p in self.kernel.params if p.name == stmt.array), None)
            if isinstance(param, ArrayParam):
                zero = f"np.{stored_name(param.dtype)}(0)"
                name = self.names.of(stmt.array)
                return ["if work_dim() > 3:", f"{INDENT}{name}[np.uint64(0)] = {zero}"]
        return []

    def _imports(self) -> list[str]:
        lines = [
            "import numpy as np",
            "from numba_dpex import device_func, kernel",
            "from numba_dpex.kernel_api import (",
            "    AddressSpace, AtomicRef, Item, MemoryOrder, MemoryScope, NdItem, atomic_fence,",
            "    group_barrier,",
            ")",
            "from fusionq.dpex.backend.device_arrays import (",
            "    global_array, local_array, private_array,",
            ")",
        ]
        called = sorted({"work_dim", *self.helpers.device_functions})
        if called:
            lines.append(f"from fusionq.dpex.backend.device_functions import {', '.join(called)}")
        return lines

    def _comment(self, slots: tuple[Slot, ...]) -> list[str]:
        """The arguments' types, which numba is given when it compiles the kernel."""
        described = [
            f"{self.memory.identifier(slot)}: {argument_type(slot, self.kernel)}" for slot in slots
        ]
        return [f"# {', '.join(described)}"] if described else []

    def _array(self, slot: Pointer) -> str:
        param = self.kernel.param(slot.param)
        assert isinstance(param, ArrayParam)
        name, address = self.names.of(slot.param), self.memory.identifier(slot)
        return f"{name} = global_array({address}, np.{stored_name(param.dtype)})"
