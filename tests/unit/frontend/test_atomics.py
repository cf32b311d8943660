"""AtomicRef in kernels."""

from textwrap import dedent

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Const,
    Var,
)
from fusionq.ir.types import FLOAT32, INT32, INT64, scalar_type
from tests.unit.frontend.group_bodies import SPACE, X, found, ir_of, kernel_of, refused
from tests.unit.frontend.running import define, run_both, specialised

COUNTS = np.zeros(4, "int32")


def counted(*lines, counts=COUNTS, **names):
    """Run both ways over the parameters ``c``, ``x`` and ``out``; the counts and the output."""
    k = kernel_of(*lines, parameters="c, x, out", **names)
    arrays = run_both(k, SPACE, counts, X.astype("int32"), np.zeros(8, "int32"))
    return arrays[0].tolist(), np.sort(arrays[2]).tolist()


def atomics_of(*lines, dtype="int32", **names):
    k = kernel_of(*lines, parameters="c, x, out", **names)
    arguments = (np.zeros(4, dtype), X.astype(dtype), np.zeros(8, dtype))
    return found(Atomic, specialised(k, SPACE, *arguments))


@pytest.mark.parametrize(
    ("method", "after"),
    [
        ("fetch_add(x[i])", 19), ("fetch_sub(x[i])", -19), ("fetch_min(x[i])", -5),
        ("fetch_max(x[i])", 9), ("fetch_or(x[i])", -1), ("fetch_xor(3)", 0), ("fetch_and(6)", 0),
        ("store(7)", 7), ("exchange(7)", 7), ("load()", 0),
    ],
)  # fmt: skip
def test_atomic_statements(method, after):
    counts, _ = counted(f"fq.AtomicRef(c, 1).{method}")
    assert counts == [0, after, 0, 0]


def test_an_atomic_statement_has_no_result():
    (atomic,) = atomics_of("fq.AtomicRef(c, 1).fetch_add(1)")
    assert atomic == Atomic(
        "add", "c", (Const(INT64, 1),), Const(INT32, 1), None, "relaxed", "device"
    )
    k = kernel_of("fq.AtomicRef(c, 1).fetch_add(1)", parameters="c")
    assert {name for name, _ in specialised(k, SPACE, COUNTS).variables} == {"i", "l"}


def test_atomic_expressions_give_the_value_before():
    counts, out = counted("out[i] = fq.AtomicRef(c, 2).fetch_add(3) // 3")
    assert counts == [0, 0, 24, 0] and out == list(range(8))
    counts, out = counted("out[i] = fq.AtomicRef(c, 0).exchange(5)")
    assert counts == [5, 0, 0, 0] and out == [0] + [5] * 7


def test_orders_scopes_and_spaces():
    for text, order, scope in (
        ("", "relaxed", "device"),
        (", fq.MemoryOrder.ACQ_REL", "acq_rel", "device"),
        (", fq.MemoryOrder.SEQ_CST, fq.MemoryScope.SYSTEM", "seq_cst", "system"),
        (", memory_scope=fq.MemoryScope.WORK_GROUP", "relaxed", "work_group"),
        (", address_space=fq.AddressSpace.GLOBAL", "relaxed", "device"),
        (", address_space=fq.AddressSpace.GENERIC", "relaxed", "device"),
    ):
        (atomic,) = atomics_of(f"fq.AtomicRef(c, 1{text}).fetch_add(1)")
        assert (atomic.order, atomic.scope) == (order, scope)


def test_an_atomic_ref_with_a_name_keeps_its_element():
    counts, _ = counted(
        "k = i % 4", "v = fq.AtomicRef(c, k)", "k += 1", "v.fetch_add(1)", "v.fetch_add(10)",
    )  # fmt: skip
    assert counts == [22] * 4
    counts, _ = counted("x[i] = 2", "v = w = fq.AtomicRef(c, x[i])", "x[i] = 3", "w.fetch_add(1)")
    assert counts == [0, 0, 8, 0]
    (atomic,) = atomics_of("v = fq.AtomicRef(c, 1)", "v.fetch_add(1)")
    assert atomic.indices == (Const(INT64, 1),)


def test_atomic_refs_in_functions_and_tuples():
    bump = define("def bump(ref, by):\n    by += 1\n    return ref.fetch_add(by)\n")
    counts, out = counted("out[i] = bump(fq.AtomicRef(c, 3), 1)", bump=bump)
    assert counts == [0, 0, 0, 16] and out == list(range(0, 16, 2))
    counts, _ = counted("t = (fq.AtomicRef(c, 0), 5)", "ref, by = t", "ref.fetch_add(by)")
    assert counts == [40, 0, 0, 0]


def test_atomics_on_local_arrays_and_rows():
    k = kernel_of(
        "if l == 0:", "    tile[0] = 0", "fq.group_barrier(group)",
        "fq.AtomicRef(tile, 0, address_space=fq.AddressSpace.LOCAL).fetch_add(x[i])",
        "fq.group_barrier(group)", "if group.leader:",
        "    fq.AtomicRef(out[1], group.get_group_id(0)).fetch_add(tile[0])",
        parameters="x, tile, out",
    )  # fmt: skip
    out = run_both(k, SPACE, X.astype("int64"), fq.LocalAccessor(1, "i8"), np.zeros((2, 3), "i8"))
    assert out[1].tolist() == [[0, 0, 0], [7, 12, 0]]
    k = kernel_of("fq.AtomicRef(out, (1, l % 2)).fetch_add(1)", parameters="out")
    assert run_both(k, SPACE, np.zeros((2, 2), "u4"))[0].tolist() == [[0, 0], [4, 4]]


def test_operands_are_of_the_elements_type_or_python_numbers():
    counts, _ = counted("fq.AtomicRef(c, 0).fetch_add(np.int32(2.9))")
    assert counts == [16, 0, 0, 0]
    (atomic,) = atomics_of("fq.AtomicRef(c, 0).fetch_add(1)", dtype="float64")
    assert atomic.value == Const(scalar_type(np.dtype("f8")), 1.0)


def test_a_method_by_a_known_name():
    counts, out = counted("out[i] = getattr(fq.AtomicRef(c, i % 4), method)(3)", method="fetch_add")
    assert counts == [6] * 4 and out == [0] * 4 + [3] * 4


def test_atomics_are_evaluated_as_lazily_as_python_does():
    counts, out = counted("out[i] = 5 if i > 2 else fq.AtomicRef(c, 0).fetch_add(1)")
    assert counts == [3, 0, 0, 0] and out == [0, 1, 2] + [5] * 5
    counts, _ = counted("if i > 5 and fq.AtomicRef(c, 0).fetch_add(1) >= 0 or i == 0:",
                        "    fq.AtomicRef(c, 1).fetch_add(1)")  # fmt: skip
    assert counts == [2, 3, 0, 0]
    counts, _ = counted("while fq.AtomicRef(c, i % 4).fetch_add(1) < 3:", "    pass")
    assert counts == [5] * 4


def test_what_is_read_before_an_atomic_stays_before_it():
    counts, out = counted("out[i] = x[i] + fq.AtomicRef(x, i).fetch_add(100)")
    assert out == sorted((2 * X).astype(int).tolist())
    counts, _ = counted("c[fq.AtomicRef(x, i).exchange(np.int32(i % 4)) * 0 + x[i]] = 9")
    assert counts == [9] * 4
    bump = define("def bump(x, i):\n    x[i] = 1\n    return 5\n")
    counts, _ = counted("x[i] = 3", "fq.AtomicRef(c, x[i]).fetch_add(bump(x, i))", bump=bump)
    assert counts == [0, 0, 0, 40]


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("fq.AtomicRef(small, 0).fetch_add(1)", "no atomic operations on int8", "int32, int64"),
        ("fq.AtomicRef(out, 0).fetch_and(1)", "fetch_and of float32", "array of integers"),
        ("fq.AtomicRef(out, 0).fetch_mul(1)", "an AtomicRef has no 'fetch_mul'", "fetch_add"),
        ("fq.AtomicRef(out, 0).compare_exchange(1, 2)", "expected is a 1-d", "fq.PrivateArray(1"),
        ("fq.AtomicRef(out, 0).fetch_add(i)", "fetch_add of int64 on", "np.float32(…)"),
        ("fq.AtomicRef(flat, (0, 0)).fetch_max(0.5)", "fetch_max of float on", "np.int32(…)"),
        ("fq.AtomicRef(flat, (0, 0)).fetch_add(i > 1)", "fetch_add of bool on", "np.int32(…)"),
        ("fq.AtomicRef(out, 0).fetch_add()", "fetch_add takes one value", "fetch_add(x)"),
        ("fq.AtomicRef(out, 0).load(1)", "load takes no argument", "load()"),
        ("fq.AtomicRef(out, 0).fetch_add(value=1)", "takes no keyword arguments", "by position"),
        ("fq.AtomicRef(out).fetch_add(1)", "missing a required argument", "AtomicRef(array, index"),
        ("fq.AtomicRef(i, 0).fetch_add(1)", "an array is needed here", "Pass an array"),
        ("fq.AtomicRef(out, 1.5).fetch_add(1)", "an index of type float", "int(x)"),
        ("fq.AtomicRef(out, (0, 0)).fetch_add(1)", "2 indices for the 1-d array", "Give one index"),
        ("fq.AtomicRef(flat, 0).fetch_add(1)", "1 indices for the 2-d array", "single element"),
        ("fq.AtomicRef(out, 0, 3).fetch_add(1)", "memory_order is a MemoryOrder", "RELAXED"),
        ("fq.AtomicRef(out, 0, address_space=fq.AddressSpace.LOCAL).load()",
         "'out' is in global memory, not in AddressSpace.LOCAL", "Write AddressSpace.GLOBAL"),
        ("y = fq.AtomicRef(out, 0) + 1", "a number is needed here, not an AtomicRef", ".load()"),
        ("y = fq.AtomicRef(out, 0).store(1) + 1", "a number is needed here", ""),
        ("y = fq.AtomicRef(out, 0) if i > 2 else 1", "a number is needed here", ".load()"),
    ],
)  # fmt: skip
def test_atomics_refused(line, message, hint):
    arguments = (np.zeros(8, "float32"), np.zeros(8, "int8"), np.zeros((2, 2), "int32"))
    text = refused(*line.split("; "), parameters="out, small, flat", arguments=arguments)
    assert message in text and hint in text


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_private_memory_has_plain_operations(dtype):
    made = define(
        dedent("""
        def k(item, a, out):
            i = item.get_id(0)
            p = fq.PrivateArray((2, 2), a.dtype, fill_zeros=True)
            expected = fq.PrivateArray(1, a.dtype, fill_zeros=True)
            ref = fq.AtomicRef(p, (1, 0), address_space=fq.AddressSpace.PRIVATE)
            out[i, 0] = ref.fetch_add(a[i])
            ref.fetch_sub(1)
            out[i, 1] = ref.fetch_max(5)
            out[i, 2] = ref.fetch_min(a[i] * 2)
            ref.store(ref.load() + 1)
            out[i, 3] = ref.exchange(7)
            out[i, 4] = ref.compare_exchange(expected, 9)
            out[i, 5] = ref.compare_exchange(expected, 11)
            out[i, 6] = p[1, 0]
            out[i, 7] = expected[0]
        """),
        fq=fq,
    )
    run_both(made, 8, np.arange(8).astype(dtype), np.zeros((8, 8)))


def test_the_memory_models_members_are_numbers():
    made = define(
        dedent("""
        def k(item, out):
            out[0] = fq.MemoryOrder.SEQ_CST
            out[1] = fq.MemoryScope.WORK_GROUP + fq.AddressSpace.LOCAL
        """),
        fq=fq,
    )
    (out,) = run_both(made, 1, np.zeros(2, np.int64))
    assert out.tolist() == [5, 5]


def test_an_atomic_ref_that_differs_between_paths_cannot_be_used():
    text = refused(
        "v = fq.AtomicRef(out, 0)", "if i > 2:", "    v = fq.AtomicRef(out, 1)", "v.fetch_add(1)",
    )  # fmt: skip
    assert "'v' has no single type here: it is an AtomicRef" in text


def test_variables_of_results_are_declared():
    ir = ir_of("v = fq.AtomicRef(out, 0).fetch_add(1)", "w = fq.any_of_group(group, v > 1)",
               "out[i] = 1 if w else v")  # fmt: skip
    types = {name: str(type_) for name, type_ in ir.variables}
    assert types["before"] == types["v"] == "float32" and types["any_item"] == "bool"
    assert Var(FLOAT32, "before") in [s.value for s in found(Assign, ir)]


def test_references_to_numpy_arrays_outside_of_kernels():
    """As when a kernel's function is called by hand, for a debugger."""
    counts = np.zeros(2, "int32")
    assert fq.AtomicRef(counts, 1).fetch_add(3) == 0
    assert fq.AtomicRef(counts, (1,)).fetch_max(np.int32(9)) == 3
    assert counts.tolist() == [0, 9]
