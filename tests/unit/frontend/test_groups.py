"""Barriers, fences and group functions in kernels."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from fusionq.frontend import kernel
from fusionq.ir.nodes import (
    Barrier,
    Fence,
    GroupCall,
    Store,
)
from tests.unit.frontend.group_bodies import SPACE, TILE, X, both, found, ir_of, kernel_of, refused
from tests.unit.frontend.running import define, run_both, specialised


def test_a_wide_fence_scope_adds_fences():
    ir = ir_of("fq.group_barrier(group, fq.MemoryScope.DEVICE)")
    assert [s for s in ir.body if isinstance(s, (Barrier, Fence))] == [
        Fence("release", "device"), Barrier(), Fence("acquire", "device"),
    ]  # fmt: skip
    for scope in ("WORK_GROUP", "SUB_GROUP", "WORK_ITEM"):
        ir = ir_of(f"fq.group_barrier(group, fence_scope=fq.MemoryScope.{scope})")
        assert found(Barrier, ir) and not found(Fence, ir)


def test_fences():
    ir = ir_of("fq.atomic_fence(fq.MemoryOrder.ACQ_REL, ORDER)", ORDER=fq.MemoryScope.SYSTEM)
    assert found(Fence, ir) == [Fence("acq_rel", "system")]
    ir = ir_of("fq.atomic_fence(memory_scope=fq.MemoryScope.DEVICE, memory_order=SOME)",
               SOME=fq.MemoryOrder.SEQ_CST)  # fmt: skip
    assert found(Fence, ir) == [Fence("seq_cst", "device")]


def test_global_enumeration_members_enter_the_fingerprint():
    def made(order):
        return kernel(kernel_of("fq.atomic_fence(ORDER, fq.MemoryScope.DEVICE)", ORDER=order))

    acquire, release = made(fq.MemoryOrder.ACQUIRE), made(fq.MemoryOrder.RELEASE)
    assert acquire.fingerprint != release.fingerprint
    assert acquire.fingerprint == made(fq.MemoryOrder.ACQUIRE).fingerprint


def test_barriers_in_inlined_functions():
    helper = define(
        "def swap(group, tile, l, value):\n    tile[l] = value\n    fq.group_barrier(group)\n"
        "    return tile[3 - l]\n", fq=fq,
    )  # fmt: skip
    line = "out[i] = swap(group, tile, l, x[i]) + x[i]"
    k = kernel_of(line, parameters="x, tile, out", swap=helper)
    out = run_both(k, SPACE, X, TILE, np.zeros(8, "float32"))[1]
    assert out.tolist() == [4, 3, 3, 4, 1, 11, 11, 1]


def test_what_is_read_before_a_barrier_stays_before_it():
    helper = define(
        "def later(group, x, i):\n    fq.group_barrier(group)\n    x[i] = -1\n"
        "    fq.group_barrier(group)\n    return 0\n", fq=fq,
    )  # fmt: skip
    k = kernel_of("out[i] = x[7 - i] + later(group, x, i)", later=helper)
    space = fq.NdRange(8, 8)
    out = run_both(k, space, X, np.zeros(8, "float32"))[1]
    assert out.tolist() == X[::-1].tolist()


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("fq.group_barrier(item)", "a group is needed here, not the NdItem", "item.get_group()"),
        ("fq.group_barrier(i)", "not a number of type int64", "item.get_group()"),
        ("fq.group_barrier()", "missing a required argument: 'group'", "barrier(group, fence_s"),
        ("fq.group_barrier(group, 3)", "fence_scope is a MemoryScope", "MemoryScope.WORK_GROUP"),
        ("fq.group_barrier(group, fq.MemoryOrder.RELAXED)", "is a MemoryScope", "members"),
        ("fq.group_barrier(group, fq.MemoryScope.PLANET)", "Scope has no 'PLANET'", "See its"),
        ("fq.group_barrier(group, scope=1)", "unexpected keyword argument 'scope'", "fence_scope"),
        ("fq.atomic_fence(fq.MemoryOrder.ACQUIRE)", "missing a required argument", "atomic_fence("),
        ("fq.atomic_fence(fq.MemoryOrder.CONSUME_UNSUPPORTED, fq.MemoryScope.DEVICE)", "consume",
         "ACQUIRE"),
        ("out[i] = fq.group_barrier(group)", "a number is needed here, not None", ""),
    ],
)  # fmt: skip
def test_barriers_and_fences_refused(line, message, hint):
    text = refused(line)
    assert message in text and hint in text


def test_an_item_has_no_group():
    k = define("def k(item, out):\n    fq.group_barrier(item.get_group())\n", fq=fq)
    with pytest.raises(KernelLanguageError, match=r"the Item has no 'get_group'[^§]*NdRange"):
        specialised(k, 4, np.zeros(4))


# ----------------------------------------------------------------------- group functions
NUMBERS, BITS = ("add", "mul", "min", "max"), ("and", "or", "xor")
OPERATIONS = {
    "bool": BITS, "int8": NUMBERS + BITS, "uint8": NUMBERS + BITS, "int64": NUMBERS + BITS,
    "float32": NUMBERS,
}  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("function", ["reduce", "inclusive_scan", "exclusive_scan"])
@pytest.mark.parametrize(("dtype", "op"), [(d, op) for d, ops in OPERATIONS.items() for op in ops])
def test_reductions_and_scans(function, op, dtype):
    x = np.array([3, 100, 4, 1, 77, 9, 2, 6]).astype(dtype)
    if dtype == "bool":
        x = np.array([1, 0, 1, 1, 1, 1, 1, 1], bool)
    name = f"fq.{function}_over_group"
    out = both(f"out[i] = {name}(group, x[i], '{op}')", x=x, dtype=dtype)
    ufunc = {
        "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[op]  # fmt: skip
    totals = np.stack([ufunc.accumulate(part) for part in x.reshape(2, 4)]).astype(dtype)
    if function == "reduce":
        assert (out.reshape(2, 4) == totals[:, -1:]).all()
    elif function == "inclusive_scan":
        assert (out.reshape(2, 4) == totals).all()
    else:
        assert (out.reshape(2, 4)[:, 1:] == totals[:, :-1]).all()
        first = out[0]
        assert (ufunc(np.full(4, first), x[:4]) == x[:4]).all()


def test_the_operation():
    def op_of(text, **names):
        ir = ir_of(f"out[i] = fq.reduce_over_group(group, x[i]{text})", **names)
        return found(GroupCall, ir)[0].op

    assert op_of("") == "add"
    assert op_of(", 'mul'") == op_of(", op='mul'") == op_of(", OP", OP="mul") == "mul"
    assert op_of(", min") == "min" and op_of(", op=max") == "max"


def test_results_keep_their_type():
    lines = [
        f"r{n} = fq.reduce_over_group(group, {x})"
        for n, x in enumerate(("x[i]", "i", "1", "2.5", "np.int8(3)", "np.float16(1)"))
    ]
    ir = ir_of(*lines)
    assert [s.value.type.name for s in found(GroupCall, ir)] == [
        "float32", "int64", "int64", "float64", "int8", "float16",
    ]  # fmt: skip
    out = both("r = fq.reduce_over_group(group, 2)", "out[i] = r / 16", dtype="float64")
    assert out.tolist() == [0.5] * 8
    # A reduced Python number is an int64, and int64 and float32 make float64.
    (store,) = found(Store, ir_of("out[i] = x[i] * fq.reduce_over_group(group, 1)"))
    assert store.value.operand.type.name == "float64"


def test_broadcasts_and_votes():
    for source in range(4):
        out = both(f"out[i] = fq.group_broadcast(group, x[i], {source})")
        assert out.tolist() == [X[source]] * 4 + [X[4 + source]] * 4
    assert both("out[i] = fq.group_broadcast(group, x[i])").tolist() == [3] * 4 + [-5] * 4
    out = both("out[i] = fq.group_broadcast(group, i, group.get_group_id(0) + 1)", dtype="int64")
    assert out.tolist() == [1] * 4 + [6] * 4
    assert both("out[i] = fq.any_of_group(group, x[i] > 8)", dtype="bool").tolist() == (
        [False] * 4 + [True] * 4
    )
    assert both("out[i] = fq.all_of_group(group, x[i] > -2)", dtype="bool").tolist() == (
        [True] * 4 + [False] * 4
    )
    assert both("out[i] = fq.all_of_group(group, l)", dtype="bool").tolist() == [False] * 8


def test_a_group_functions_operands_are_read_where_it_stands():
    out = both(
        "total = fq.reduce_over_group(group, x[i])", "x[i] = 0", "out[i] = total + x[i]",
    )  # fmt: skip
    assert out.tolist() == [7] * 4 + [12] * 4


def test_group_functions_in_uniform_control_flow():
    out = both(
        "total = np.float32(0)", "for k in range(3):",
        "    if k != 1:", "        total += fq.reduce_over_group(group, x[i] * k)",
        "while fq.any_of_group(group, total > 5):", "    total -= 2", "out[i] = total",
    )  # fmt: skip
    assert out.tolist() == [4] * 8


def test_group_functions_in_two_dimensions():
    k = define(
        "def k(item, x, out):\n    i = item.get_global_id(0)\n    j = item.get_global_id(1)\n"
        "    out[i, j] = fq.inclusive_scan_over_group(item.get_group(), x[i, j])\n", fq=fq,
    )  # fmt: skip
    x = np.arange(24, dtype="int32").reshape(4, 6)
    out = run_both(k, fq.NdRange((4, 6), (2, 3)), x, np.zeros_like(x))[1]
    assert out[:2, :3].tolist() == [[0, 1, 3], [9, 16, 24]]


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("y = fq.reduce_over_group(group, x[i], 'sub')", "this is no operation", "'add', 'mul'"),
        ("y = fq.reduce_over_group(group, x[i], i)", "this is no operation", "'add', 'mul'"),
        ("y = fq.reduce_over_group(group, x[i], operator.add)", "this is no operation", "'add'"),
        ("y = fq.reduce_over_group(group, x[i], 'or')", "'or' of float32", "np.int64"),
        ("y = fq.reduce_over_group(group, i > 3)", "'add' of bools", "any_of_group"),
        ("y = fq.reduce_over_group(group, i > 3, min)", "'min' of bools", "all_of_group"),
        ("y = fq.reduce_over_group(group, x)", "a number is needed here, not a 1-d array", "index"),
        ("y = fq.reduce_over_group(x[i])", "missing a required argument", "op=…, init=…)"),
        ("y = fq.reduce_over_group(item, x[i])", "a group is needed", "get_group()"),
        ("y = fq.group_broadcast(group, x[i], 1.5)", "source of a broadcast", "local id"),
        ("y = fq.group_broadcast(group, x[i], -1)", "source of a broadcast", "local id"),
        ("y = fq.group_broadcast(group, x[i], (0, 1))", "a number is needed here", ""),
        ("y = x[i] if i > 2 else fq.reduce_over_group(group, x[i])",
         "a group function or barrier inside a conditional expression", "Call it before"),
        ("y = i > 2 and fq.any_of_group(group, l > 1)", "inside a conditional", "Call it before"),
        ("y = i < l < fq.reduce_over_group(group, l)", "inside a conditional", "Call it before"),
        ("y = total(group, x[i]) if i > 2 else x[i]", "inside a conditional", "Call it before"),
    ],
)  # fmt: skip
def test_group_functions_refused(line, message, hint):
    total = define("def total(group, v):\n    return fq.reduce_over_group(group, v)\n", fq=fq)
    text = refused(line, total=total)
    assert message in text and hint in text


def test_conditional_expressions_that_are_decided_when_compiling():
    out = both("out[i] = fq.reduce_over_group(group, l) if N > 1 else 0", N=2)
    assert out.tolist() == [6] * 8


def test_group_functions_need_a_group_that_runs():
    with pytest.raises(RuntimeError, match="barrier needs the other work-items of the group"):
        fq.group_barrier(None)


def test_a_property_that_is_called():
    assert "write group.leader without parentheses" in refused("y = group.leader()")
