"""The typed kernel IR as source text of a C-family kernel language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from fusionq.base.target import FloatMode, Target
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
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.codegen.statements import StatementPrinter
from fusionq.ir.nodes import ArrayParam, Atomic, Expr, Kernel, Persistent, ScalarParam, Store
from fusionq.ir.types import INT64, UINT64, ScalarType
from fusionq.ir.walk import local_memories, statements


def generate(
    kernel: Kernel, fp: FloatMode, target: Target, dialect: Dialect = OPENCL_C
) -> DeviceSource:
    """The source of ``kernel`` on ``target``; the same kernel gives the same text.

    Arrays arrive as 64-bit addresses: so one text serves USM and, where the device reaches
    it, ordinary host memory.
    """
    if kernel.body and isinstance(kernel.body[0], Persistent):
        from fusionq.codegen.persistent import generate_persistent

        return generate_persistent(kernel, kernel.body[0], fp, target, dialect)
    helpers = Helpers(dialect)
    lines = statement_lines(kernel, [shielded(flatten_blocks(kernel.body))], dialect, helpers)
    entry_point = Names(dialect).fresh(kernel.name)
    parameters = [f"    {parameter_text(kernel, s, lines.memory, dialect)}" for s in lines.slots]
    head = f"{dialect.kernel_qualifier} {entry_point}("
    declared = [*lines.pointers, *lines.arrays]
    body = [*declared, *([""] if declared else []), *lines.bodies[0]]
    text = [
        *dialect.prologue(lines.types, fp, lines.functions),
        "",
        *(f"{line}\n" for line in lines.typedefs),
        *(line for helper in helpers.texts for line in (*helper.splitlines(), "")),
        *([head, ",\n".join(parameters), ") {"] if parameters else [f"{head}) {{"]),
        *(f"    {line}" if line else line for line in body),
        "}",
    ]
    return DeviceSource("\n".join(text) + "\n", entry_point, lines.slots, lines.types)


@dataclass(frozen=True)
class StatementLines:
    """A kernel's statements as text: pointers from addresses, the arrays it declares, what it
    does, values; and what these lines need around them."""

    pointers: list[str]
    arrays: list[str]
    bodies: list[list[str]]
    values: list[str]
    slots: tuple[Slot, ...]
    types: frozenset[ScalarType]
    typedefs: tuple[str, ...]
    functions: frozenset[str]
    names: Names
    memory: Memory


def statement_lines(
    kernel: Kernel,
    bodies: Sequence[Body],
    dialect: Dialect,
    helpers: Helpers,
    values: Sequence[Expr] = (),
) -> StatementLines:
    """``bodies``, each the statements of ``kernel`` or a variant, and ``values`` as text; device
    functions go to ``helpers``."""
    names = Names(dialect)
    for param in kernel.params:
        names.of(param.name)
    memory = Memory(kernel, names)
    intervals = Intervals(kernel)
    expressions = ExpressionPrinter(dialect, names, memory, helpers, intervals)
    groups = GroupStatementPrinter(expressions, names, helpers, memory, kernel.ndim)
    printer = StatementPrinter(
        expressions, names, helpers, intervals, groups, dict(kernel.variables)
    )
    lines = [printer.body(body, frozenset(), indent=0) for body in bodies]
    texts = [expressions.value(value) for value in values]
    slots = memory.slots()
    types = expressions.types | {
        slot_type(kernel, slot) for slot in slots if not isinstance(slot, Pointer)
    }
    aliased = _aliased_types(kernel, dialect)
    typedefs = dict.fromkeys((*aliased, *_shared_types(kernel, dialect)))
    return StatementLines(
        _pointers(kernel, slots, names, memory, dialect, bool(aliased)),
        _array_declarations(kernel, names, dialect),
        lines,
        texts,
        slots,
        frozenset(types),
        tuple(typedefs),
        frozenset(expressions.device_functions),
        names,
        memory,
    )


def slot_type(kernel: Kernel, slot: Slot) -> ScalarType:
    """The type of an argument other than a pointer."""
    param = kernel.param(slot.param)
    return param.type if isinstance(param, ScalarParam) else INT64


def parameter_text(kernel: Kernel, slot: Slot, memory: Memory, dialect: Dialect) -> str:
    """The declaration of an argument."""
    type = UINT64 if isinstance(slot, Pointer) else slot_type(kernel, slot)
    return f"{dialect.storage_name(type)} {memory.identifier(slot)}"


def _aliased_types(kernel: Kernel, dialect: Dialect) -> tuple[str, ...]:
    """Definitions of types for arrays of different types that may share memory."""
    arrays = [p for p in kernel.params if isinstance(p, ArrayParam) and not p.restrict]
    types = dict(dialect.aliased_type(p.dtype) for p in arrays)
    return tuple(types.values()) if len(types) > 1 else ()


def _shared_types(kernel: Kernel, dialect: Dialect) -> list[str]:
    """Definitions of types for local arrays of different types that lie in one memory."""
    return [
        dialect.aliased_type(array.dtype)[1]
        for arrays in local_memories(kernel).values()
        for array in arrays
        if any(other.dtype != array.dtype for other in arrays)
    ]


def _pointers(
    kernel: Kernel,
    slots: tuple[Slot, ...],
    names: Names,
    memory: Memory,
    dialect: Dialect,
    aliased: bool,
) -> list[str]:
    stored = {s.array for s in statements(kernel.body) if isinstance(s, (Store, Atomic))}
    lines = []
    for slot in slots:
        if not isinstance(slot, Pointer):
            continue
        param = kernel.param(slot.param)
        assert isinstance(param, ArrayParam)
        const = "" if param.name in stored else "const "
        space = dialect.space_qualifier("global")
        element = dialect.storage_name(param.dtype)
        if not param.restrict and aliased:
            element = dialect.aliased_type(param.dtype)[0]
        type = f"{space}{const}{element}*"
        restrict = f" {dialect.restrict}" if param.restrict else ""
        name = names.of(param.name)
        lines.append(f"{type}{restrict} {name} = ({type}){memory.identifier(slot)};")
    return lines


def _array_declarations(kernel: Kernel, names: Names, dialect: Dialect) -> list[str]:
    lines = []
    shared = {name: arrays for name, arrays in local_memories(kernel).items() if len(arrays) > 1}
    for array in kernel.arrays:
        if array.memory not in shared:
            space = dialect.space_qualifier(array.space)
            element = dialect.storage_name(array.dtype)
            lines.append(f"{space}{element} {names.of(array.name)}[{prod(array.shape)}];")
    space = dialect.space_qualifier("local")
    for name, arrays in shared.items():
        memory, one_type = names.fresh(f"{name}_memory"), len({a.dtype for a in arrays}) == 1
        dtype = arrays[0].dtype if one_type else UINT64  # which aligns for all
        size = max(-(-array.nbytes // dtype.nbytes) for array in arrays)
        lines.append(f"{space}{dialect.storage_name(dtype)} {memory}[{size}];")
        for array in arrays:
            element = dialect.storage_name(array.dtype)
            if not one_type:
                element = dialect.aliased_type(array.dtype)[0]
            lines.append(f"{space}{element}* {names.of(array.name)} = ({space}{element}*){memory};")
    return lines
