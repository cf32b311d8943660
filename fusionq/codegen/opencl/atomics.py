"""OpenCL C's atomic operations.

Source: Khronos, The OpenCL C Specification 3.0, section 6.15.12 (atomic functions).
"""

from __future__ import annotations

from fusionq.codegen.dialect import Define
from fusionq.codegen.dialect.atomics import DIFFERS, FLOAT_UPDATES, bits_of, order_of
from fusionq.codegen.helper_functions import suffix
from fusionq.codegen.opencl.scalars import TYPE_NAMES
from fusionq.ir.nodes import AtomicOp, MemoryOrderName, MemoryScopeName, Space
from fusionq.ir.types import ScalarType

SCOPES: dict[MemoryScopeName, str] = {
    "work_item": "memory_scope_work_item",
    "sub_group": "memory_scope_sub_group",
    "work_group": "memory_scope_work_group",
    "device": "memory_scope_device",
    "system": "memory_scope_all_svm_devices",
}
_TYPES = {
    "int32": "atomic_int", "uint32": "atomic_uint", "int64": "atomic_long",
    "uint64": "atomic_ulong", "float32": "atomic_float", "float64": "atomic_double",
}  # fmt: skip
_SPACES: dict[Space, str] = {"global": "__global", "local": "__local", "private": "__private"}


def memory_order(order: MemoryOrderName, op: AtomicOp | None = None) -> str:
    """The name of the order in which ``op`` is done."""
    return f"memory_order_{order_of(order, op)}"


def atomic(
    op: AtomicOp,
    type: ScalarType,
    space: Space,
    element: str,
    value: str | None,
    order: MemoryOrderName,
    scope: MemoryScopeName,
    define: Define,
) -> str:
    """The call; see ``Groups.atomic``."""
    if type.is_float and op in ("add", "sub", "min", "max"):
        return f"{_retry_loop(op, type, space, order, scope, define)}(&{element}, {value})"
    reference = f"(volatile {_SPACES[space]} {_TYPES[type.name]}*)&{element}"
    name = op if op in ("load", "store", "exchange") else f"fetch_{op}"
    arguments = [reference, *([value] if value is not None else []), memory_order(order, op)]
    return f"atomic_{name}_explicit({', '.join([*arguments, SCOPES[scope]])})"


def _retry_loop(
    op: AtomicOp,
    type: ScalarType,
    space: Space,
    order: MemoryOrderName,
    scope: MemoryScopeName,
    define: Define,
) -> str:
    """The name of the function ``op`` on a floating type, which OpenCL C 3.0 has not: repeat until
    nobody interfered."""
    bits, type_name = bits_of(type), TYPE_NAMES[type.name]
    word = TYPE_NAMES[bits.name]
    name = f"fq_atomic_{op}_f{type.bits}_{space}_{order}_{scope}"
    update = FLOAT_UPDATES[op]
    cell = f"volatile {_SPACES[space]} {_TYPES[bits.name]}*"
    on_success = f"{memory_order(order)}, memory_order_relaxed, {SCOPES[scope]}"
    text = f"""\
static inline {type_name} {name}(
    volatile {_SPACES[space]} {type_name}* pointer, {type_name} value
) {{
    {cell} cell = ({cell})pointer;
    {word} seen = atomic_load_explicit(cell, memory_order_relaxed, {SCOPES[scope]});
    {type_name} before;
    do {{
        before = as_{type_name}(seen);
    }} while (!atomic_compare_exchange_strong_explicit(
        cell, &seen, as_{word}({update}), {on_success}));
    return before;
}}"""
    define(name, text)
    return name


def compare_exchange(
    type: ScalarType, space: Space, order: MemoryOrderName, scope: MemoryScopeName, define: Define
) -> str:
    """The name of the function that compares and exchanges, and gives the value before.  Floats
    compare by value, so it repeats where the bits differ and the values do not."""
    bits = bits_of(type) if type.is_float else type
    word, type_name = TYPE_NAMES[bits.name], TYPE_NAMES[type.name]
    name = f"fq_atomic_compare_exchange_{suffix(type)}_{space}_{order}_{scope}"
    cell = f"volatile {_SPACES[space]} {_TYPES[bits.name]}*"
    failure = memory_order(order, "load")
    text = f"""\
static inline {type_name} {name}(
    volatile {_SPACES[space]} {type_name}* pointer, {type_name} expected, {type_name} value
) {{
    {cell} cell = ({cell})pointer;
    {word} seen = atomic_load_explicit(cell, {failure}, {SCOPES[scope]});
    for (;;) {{
        const {type_name} before = as_{type_name}(seen);
        if ({DIFFERS}) return before;
        if (atomic_compare_exchange_strong_explicit(
                cell, &seen, as_{word}(value), {memory_order(order)}, {failure}, {SCOPES[scope]}))
            return before;
    }}
}}"""
    define(name, text)
    return name
