"""CUDA C++'s atomic operations with orders and scopes: NVRTC's ``__nv_atomic_*`` functions.

Source: NVIDIA, CUDA C++ Programming Guide 13, section Built-in Atomic Functions.
"""

from __future__ import annotations

from fusionq.codegen.cuda.scalars import TYPE_NAMES
from fusionq.codegen.dialect import Define
from fusionq.codegen.dialect.atomics import DIFFERS, FLOAT_UPDATES, bits_of, order_of
from fusionq.codegen.helper_functions import suffix
from fusionq.ir.nodes import AtomicOp, MemoryOrderName, MemoryScopeName, Space
from fusionq.ir.types import ScalarType

SCOPES: dict[MemoryScopeName, str] = {
    "work_item": "__NV_THREAD_SCOPE_THREAD",
    "sub_group": "__NV_THREAD_SCOPE_BLOCK",  # the smallest that holds a warp
    "work_group": "__NV_THREAD_SCOPE_BLOCK",
    "device": "__NV_THREAD_SCOPE_DEVICE",
    "system": "__NV_THREAD_SCOPE_SYSTEM",
}
_AS_BITS = {32: "__float_as_uint", 64: "__double_as_longlong"}
_OF_BITS = {32: "__uint_as_float", 64: "__longlong_as_double"}


def memory_order(order: MemoryOrderName, op: AtomicOp | None = None) -> str:
    """The name of the order in which ``op`` is done."""
    return f"__NV_ATOMIC_{order_of(order, op).upper()}"


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
    at = f"{memory_order(order, op)}, {SCOPES[scope]}"
    if type.is_float:
        return _of_floats(op, type, space, element, value, order, scope, define, at)
    if op in ("load", "store", "exchange"):
        arguments = [f"({TYPE_NAMES[type.name]}*)&{element}", *([value] if value else []), at]
        return f"__nv_atomic_{op}_n({', '.join(arguments)})"
    # Sums and bits are the same of both signs, and 64 bits are known without one only.
    wraps = op in ("add", "sub", "and", "or", "xor")
    known = bits_of(type) if wraps else type
    cell = f"({TYPE_NAMES[known.name]}*)&{element}"
    given = value if known == type else f"({TYPE_NAMES[known.name]})({value})"
    return f"({TYPE_NAMES[type.name]})__nv_atomic_fetch_{op}({cell}, {given}, {at})"


def _of_floats(
    op: AtomicOp,
    type: ScalarType,
    space: Space,
    element: str,
    value: str | None,
    order: MemoryOrderName,
    scope: MemoryScopeName,
    define: Define,
    at: str,
) -> str:
    cell = f"({TYPE_NAMES[bits_of(type).name]}*)&{element}"
    if op == "load":
        return f"{_OF_BITS[type.bits]}(__nv_atomic_load_n({cell}, {at}))"
    if op in ("store", "exchange"):
        call = f"__nv_atomic_{op}_n({cell}, {_AS_BITS[type.bits]}({value}), {at})"
        return call if op == "store" else f"{_OF_BITS[type.bits]}({call})"
    if op in ("add", "sub") and type.bits == 64:
        given = value if op == "add" else f"-({value})"
        return f"__nv_atomic_fetch_add((double*)&{element}, {given}, {at})"
    return f"{_retry_loop(op, type, space, order, scope, define)}(&{element}, {value})"


def _retry_loop(
    op: AtomicOp,
    type: ScalarType,
    space: Space,
    order: MemoryOrderName,
    scope: MemoryScopeName,
    define: Define,
) -> str:
    """The name of the function ``op`` on a floating type: repeat until nobody interfered.

    There are none of minimum and maximum, and the sum of float32 in global memory makes zeros of
    subnormal numbers (PTX ISA 9, atom)."""
    name = f"fq_atomic_{op}_f{type.bits}_{order}_{scope}"
    update = FLOAT_UPDATES[op]
    float_name, word = TYPE_NAMES[type.name], TYPE_NAMES[bits_of(type).name]
    text = f"""\
static __device__ inline {float_name} {name}(void* pointer, {float_name} value) {{
    {word}* cell = ({word}*)pointer;
    {word} seen = __nv_atomic_load_n(cell, __NV_ATOMIC_RELAXED, {SCOPES[scope]});
    {float_name} before;
    do {{
        before = {_OF_BITS[type.bits]}(seen);
    }} while (!__nv_atomic_compare_exchange_n(
        cell, &seen, ({word}){_AS_BITS[type.bits]}({update}), false,
        {memory_order(order)}, __NV_ATOMIC_RELAXED, {SCOPES[scope]}));
    return before;
}}"""
    define(name, text)
    return name


def compare_exchange(
    type: ScalarType, space: Space, order: MemoryOrderName, scope: MemoryScopeName, define: Define
) -> str:
    """The name of the function that compares and exchanges, and gives the value before.  Floats
    compare by value, so it repeats where the bits differ and the values do not."""
    bits = bits_of(type)
    word, type_name = TYPE_NAMES[bits.name], TYPE_NAMES[type.name]
    of_bits, as_bits = (
        (_OF_BITS[type.bits], f"({word}){_AS_BITS[type.bits]}")
        if type.is_float
        else (f"({type_name})", f"({word})")
    )
    name = f"fq_atomic_compare_exchange_{suffix(type)}_{order}_{scope}"
    failure = memory_order(order, "load")
    text = f"""\
static __device__ inline {type_name} {name}(
    void* pointer, {type_name} expected, {type_name} value
) {{
    {word}* cell = ({word}*)pointer;
    {word} seen = __nv_atomic_load_n(cell, {failure}, {SCOPES[scope]});
    for (;;) {{
        const {type_name} before = {of_bits}(seen);
        if ({DIFFERS}) return before;
        if (__nv_atomic_compare_exchange_n(
                cell, &seen, {as_bits}(value), false, {memory_order(order)}, {failure},
                {SCOPES[scope]}))
            return before;
    }}
}}"""
    define(name, text)
    return name
