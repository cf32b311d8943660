"""OpenCL C's barriers, atomic operations and group functions.

Source: Khronos, The OpenCL C Specification 3.0, sections 6.15.8 (barriers), 6.15.12 (atomic
functions) and 6.15.16 (work-group collective functions).
"""

from __future__ import annotations

from fusionq.ir.nodes import (
    AtomicOp,
    GroupFunction,
    GroupOp,
    MemoryOrderName,
    MemoryScopeName,
    Space,
)
from fusionq.ir.types import FLOAT16, FLOAT32, INT32, INT64, UINT32, UINT64, ScalarType

_SCOPES: dict[MemoryScopeName, str] = {
    "work_item": "memory_scope_work_item",
    "sub_group": "memory_scope_sub_group",
    "work_group": "memory_scope_work_group",
    "device": "memory_scope_device",
    "system": "memory_scope_all_svm_devices",
}
_ATOMIC_TYPES = {
    "int32": "atomic_int", "uint32": "atomic_uint", "int64": "atomic_long",
    "uint64": "atomic_ulong", "float32": "atomic_float", "float64": "atomic_double",
}  # fmt: skip
_SPACES: dict[Space, str] = {"global": "__global", "local": "__local", "private": "__private"}
_COLLECTIVE_OPS = ("add", "min", "max")
"""The operations for which OpenCL C 3.0 has collective functions."""


def _order(order: MemoryOrderName, op: AtomicOp | None = None) -> str:
    """A load cannot release and a store cannot acquire: they take the other half."""
    if op == "load" and order in ("acq_rel", "release"):
        order = "acquire" if order == "acq_rel" else "relaxed"
    elif op == "store" and order in ("acq_rel", "acquire"):
        order = "release" if order == "acq_rel" else "relaxed"
    return f"memory_order_{order}"


def barrier(global_memory: bool, local_memory: bool) -> str:
    """A work-group barrier that orders the named memories."""
    flags = [
        flag
        for flag, wanted in (
            ("CLK_GLOBAL_MEM_FENCE", global_memory),
            ("CLK_LOCAL_MEM_FENCE", local_memory),
        )
        if wanted
    ]
    return f"barrier({' | '.join(flags) or '0'})"


def fence(order: MemoryOrderName, scope: MemoryScopeName) -> str:
    """``atomic_fence`` over both memories."""
    memories = "CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE"
    return f"atomic_work_item_fence({memories}, {_order(order)}, {_SCOPES[scope]})"


def needs_retry_loop(op: AtomicOp, type: ScalarType) -> bool:
    """Whether OpenCL C 3.0 has no such function and it is made of compare and exchange."""
    return type.is_float and op in ("add", "sub", "min", "max")


def atomic(
    op: AtomicOp,
    type: ScalarType,
    space: Space,
    pointer: str,
    value: str | None,
    order: MemoryOrderName,
    scope: MemoryScopeName,
) -> str:
    """The call; for what ``needs_retry_loop`` the helper's name is put in by the caller."""
    reference = f"(volatile {_SPACES[space]} {_ATOMIC_TYPES[type.name]}*){pointer}"
    name = op if op in ("load", "store", "exchange") else f"fetch_{op}"
    arguments = [reference, *([value] if value is not None else []), _order(order, op)]
    return f"atomic_{name}_explicit({', '.join([*arguments, _SCOPES[scope]])})"


def retry_loop(
    op: AtomicOp,
    type: ScalarType,
    type_name: str,
    space: Space,
    order: MemoryOrderName,
    scope: MemoryScopeName,
) -> tuple[str, str]:
    """Name and text of the function ``op`` on a floating type: repeat until nobody interfered."""
    bits = UINT32 if type.bits == 32 else UINT64
    word = "uint" if bits == UINT32 else "ulong"
    name = f"fq_atomic_{op}_f{type.bits}_{space}_{order}_{scope}"
    update = {
        "add": "before + value",
        "sub": "before - value",
        "min": "value < before ? value : before",
        "max": "value > before ? value : before",
    }[op]
    cell = f"volatile {_SPACES[space]} {_ATOMIC_TYPES[bits.name]}*"
    text = f"""\
static inline {type_name} {name}(
    volatile {_SPACES[space]} {type_name}* pointer, {type_name} value
) {{
    {cell} cell = ({cell})pointer;
    {word} seen = atomic_load_explicit(cell, memory_order_relaxed, {_SCOPES[scope]});
    {type_name} before;
    do {{
        before = as_{type_name}(seen);
    }} while (!atomic_compare_exchange_strong_explicit(
        cell, &seen, as_{word}({update}), {_order(order)}, memory_order_relaxed, {_SCOPES[scope]}));
    return before;
}}"""
    return name, text


def collective_type(type: ScalarType) -> ScalarType:
    """The type in which group functions compute ``type``: the smallest that they take."""
    if type.is_float:
        return type
    if type.bits < 32:
        return INT32
    return type if type in (INT32, INT64, UINT32, UINT64) else INT32


def broadcast_type(type: ScalarType) -> ScalarType:
    """The type in which broadcasts pass ``type`` on.  (Intel's compiler crashes on half.)"""
    return FLOAT32 if type == FLOAT16 else collective_type(type)


def is_collective(function: GroupFunction, op: GroupOp | None) -> bool:
    """Whether OpenCL C 3.0 has the group function."""
    return op is None or op in _COLLECTIVE_OPS


def collective(function: GroupFunction, op: GroupOp | None, value: str) -> str:
    """The call of a group function, but for ``broadcast``."""
    if function in ("any", "all"):
        return f"work_group_{function}({value})"
    if function == "reduce":
        return f"work_group_reduce_{op}({value})"
    return f"work_group_scan_{function.removesuffix('_scan')}_{op}({value})"


def broadcast(value: str, source: str, ndim: int) -> str:
    """``work_group_broadcast`` from the work-item with the linear local id ``source``."""
    size = "get_local_size({})".format
    ids = {
        1: [source],
        2: [f"({source}) % {size(0)}", f"({source}) / {size(0)}"],
        3: [
            f"({source}) % {size(0)}",
            f"({source}) / {size(0)} % {size(1)}",
            f"({source}) / ({size(0)} * {size(1)})",
        ],
    }[ndim]
    return f"work_group_broadcast({', '.join([value, *ids])})"


LINEAR_LOCAL_RANGE = "get_local_size(0) * get_local_size(1) * get_local_size(2)"
LINEAR_LOCAL_ID = "get_local_linear_id()"
