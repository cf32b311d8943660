"""The typed kernel IR as source text of a C-family kernel language."""

from __future__ import annotations

from fusionq.backends.base import FloatMode
from fusionq.codegen.device_source import DeviceSource, Pointer, Slot
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.early_exits import shielded
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.group_statements import GroupStatementPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.memory import Memory
from fusionq.codegen.names import Names
from fusionq.codegen.opencl_c import OPENCL_C
from fusionq.codegen.scoping import flatten_blocks
from fusionq.codegen.statements import StatementPrinter
from fusionq.ir.nodes import ArrayParam, Atomic, Kernel, ScalarParam, Store
from fusionq.ir.types import INT64, UINT64, ScalarType
from fusionq.ir.walk import statements


def generate(kernel: Kernel, fp: FloatMode, dialect: Dialect = OPENCL_C) -> DeviceSource:
    """The source of ``kernel``; the same kernel gives the same text.

    Arrays arrive as 64-bit addresses: so one text serves USM and, where the device reaches
    it, ordinary host memory.
    """
    return _KernelPrinter(kernel, fp, dialect).print()


class _KernelPrinter:
    def __init__(self, kernel: Kernel, fp: FloatMode, dialect: Dialect) -> None:
        self.kernel = kernel
        self.fp = fp
        self.dialect = dialect
        self.names = Names(dialect)
        for param in kernel.params:
            self.names.of(param.name)
        self.memory = Memory(kernel, self.names)
        self.helpers = Helpers(dialect)
        self.intervals = Intervals(kernel)
        self.expressions = ExpressionPrinter(
            dialect, self.names, self.memory, self.helpers, self.intervals
        )

    def print(self) -> DeviceSource:
        body = shielded(flatten_blocks(self.kernel.body))
        printer = StatementPrinter(
            self.expressions,
            self.names,
            self.helpers,
            self.intervals,
            GroupStatementPrinter(
                self.expressions, self.names, self.helpers, self.memory, self.kernel.ndim
            ),
            dict(self.kernel.variables),
        )
        lines = printer.body(body, frozenset(), indent=1)
        slots = self.memory.slots()
        lines = self._array_declarations(slots) + lines
        types = self.expressions.types | {
            self._slot_type(slot) for slot in slots if not isinstance(slot, Pointer)
        }
        entry_point = Names(self.dialect).fresh(self.kernel.name)
        parameters = [f"    {self._parameter(slot)}" for slot in slots]
        head = f"{self.dialect.kernel_qualifier} {entry_point}("
        text = [
            *self.dialect.prologue(types, self.fp),
            "",
            *(f"{line}\n" for line in self._aliased_types().values()),
            *(line for helper in self.helpers.texts for line in (*helper.splitlines(), "")),
            *([head, ",\n".join(parameters), ") {"] if parameters else [f"{head}) {{"]),
            *lines,
            "}",
        ]
        return DeviceSource("\n".join(text) + "\n", entry_point, slots, frozenset(types))

    def _slot_type(self, slot: Slot) -> ScalarType:
        param = self.kernel.param(slot.param)
        return param.type if isinstance(param, ScalarParam) else INT64

    def _parameter(self, slot: Slot) -> str:
        type = UINT64 if isinstance(slot, Pointer) else self._slot_type(slot)
        return f"{self.dialect.storage_name(type)} {self.memory.identifier(slot)}"

    def _aliased_types(self) -> dict[str, str]:
        """Types for arrays of different types that may share memory, and their definitions."""
        arrays = [p for p in self.kernel.params if isinstance(p, ArrayParam) and not p.restrict]
        types = dict(self.dialect.aliased_type(p.dtype) for p in arrays)
        return types if len(types) > 1 else {}

    def _array_declarations(self, slots: tuple[Slot, ...]) -> list[str]:
        stored = {s.array for s in statements(self.kernel.body) if isinstance(s, (Store, Atomic))}
        aliased = self._aliased_types()
        lines = []
        for slot in slots:
            if not isinstance(slot, Pointer):
                continue
            param = self.kernel.param(slot.param)
            assert isinstance(param, ArrayParam)
            const = "" if param.name in stored else "const "
            space = self.dialect.space_qualifier("global")
            element = self.dialect.storage_name(param.dtype)
            if not param.restrict and aliased:
                element = self.dialect.aliased_type(param.dtype)[0]
            type = f"{space}{const}{element}*"
            restrict = f" {self.dialect.restrict}" if param.restrict else ""
            name = self.names.of(param.name)
            lines.append(f"    {type}{restrict} {name} = ({type}){self.memory.identifier(slot)};")
        for array in self.kernel.arrays:
            space = self.dialect.space_qualifier(array.space)
            element = self.dialect.storage_name(array.dtype)
            size = 1
            for extent in array.shape:
                size *= extent
            lines.append(f"    {space}{element} {self.names.of(array.name)}[{max(size, 1)}];")
        return [*lines, ""] if lines else []
