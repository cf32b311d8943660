"""Device functions and statements of OpenCL C that only some devices' kernels have."""

from __future__ import annotations

from fusionq.codegen.opencl.atomics import compare_exchange
from fusionq.codegen.opencl.streaming import OpenCLStreaming
from fusionq.ir.types import FLOAT16, FLOAT32, FLOAT64, INT32, ScalarType


def defined(type: ScalarType, order: str, scope: str) -> tuple[str, str]:
    """The name of the function for local memory, and its text."""
    texts: dict[str, str] = {}

    def define(name: str, text: str) -> None:
        texts[name] = text

    name = compare_exchange(type, "local", order, scope, define)  # type: ignore[arg-type]
    assert list(texts) == [name]
    return name, texts[name]


def test_integers_are_compared_and_exchanged_as_they_are() -> None:
    name, text = defined(INT32, "acq_rel", "work_group")
    assert name.endswith("_local_acq_rel_work_group")
    assert text.startswith(f"static inline int {name}(")
    assert "volatile __local atomic_int* cell" in text
    assert "as_int(value), memory_order_acq_rel, memory_order_acquire" in text
    assert text.count("memory_scope_work_group") == 2


def test_floats_are_compared_by_value_and_exchanged_as_bits() -> None:
    name, text = defined(FLOAT32, "relaxed", "device")
    assert f"static inline float {name}(" in text
    assert "volatile __local atomic_uint* cell" in text
    assert "uint seen = atomic_load_explicit(cell, memory_order_relaxed, " in text
    assert "const float before = as_float(seen);" in text
    assert "return before;" in text and "as_uint(value), memory_order_relaxed" in text
    assert name != defined(FLOAT64, "relaxed", "device")[0]


def test_nontemporal_stores_of_a_vector_of_neighbours() -> None:
    streaming = OpenCLStreaming()
    name, declared = streaming.vector_type(FLOAT32)
    assert declared == f"typedef float __attribute__((aligned(64))) {name};"
    fence, store = streaming.store("p", "x", FLOAT32)
    assert fence.startswith("atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_relaxed")
    assert store == "__builtin_nontemporal_store(x, p);"


def test_half_precision_is_stored_as_bits() -> None:
    name, declared = OpenCLStreaming().vector_type(FLOAT16)
    assert declared == f"typedef ushort __attribute__((aligned(32))) {name};"
    store = OpenCLStreaming().store("p", "h", FLOAT16)[1]
    assert store.startswith("__builtin_nontemporal_store((ushort)(as_ushort(h) ^ ")
    assert store.endswith("), p);")
