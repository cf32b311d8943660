"""Kernels built by hand, node by node, for tests of code generation."""

from __future__ import annotations

from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Cast,
    Compare,
    Const,
    Continue,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Param,
    ScalarParam,
    Select,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT8,
    ScalarType,
)

ITEM, J = Var(INT64, "i"), Var(INT64, "j")
N = Param(INT64, "n")
IDS = (Assign("i", ItemQuery("global_id", 0)), Assign("j", ItemQuery("global_id", 1)))


def const(value, type: ScalarType = INT64):
    return Const(type, value)


def binary(op, lhs, rhs):
    return Binary(lhs.type, op, lhs, rhs)


def add(lhs, rhs):
    return binary("add", lhs, rhs)


def sub(lhs, rhs):
    return binary("sub", lhs, rhs)


def mul(lhs, rhs):
    return binary("mul", lhs, rhs)


def less(lhs, rhs):
    return Compare("lt", lhs, rhs)


def load(array, *indices, type: ScalarType = FLOAT32):
    return Load(type, array, indices)


def arrays(names, dtype=FLOAT32, ndim=1, contiguous=True, restrict=True):
    return tuple(ArrayParam(name, dtype, ndim, contiguous, restrict) for name in names)


def elementwise(name, inputs, result, value, scalars=()):
    """``out[i] = value`` for i < n; ``inputs`` maps array names to types."""
    params = tuple(ArrayParam(a, t, 1, True, True) for a, t in inputs.items())
    params += (ArrayParam("out", result, 1, True, True), *scalars, ScalarParam("n", INT64))
    body = (IDS[0], If(less(ITEM, N), (Store("out", (ITEM,), value),)))
    return Kernel(name, 1, params, (("i", INT64),), body)


def fused_example():
    """Four element-wise kernels, fused, their temporaries in private variables."""
    t1, t2, t3 = (Var(FLOAT32, f"t{k}") for k in (1, 2, 3))
    steps = (
        ("mul", Assign("t1", mul(load("a", ITEM), load("b", ITEM)))),
        ("sub", Assign("t2", sub(load("a", ITEM), load("c", ITEM)))),
        ("mul", Assign("t3", mul(t2, load("d", ITEM)))),
        ("sub", Store("out", (ITEM,), sub(t1, t3))),
    )
    body = tuple(Block(f"submission {k}: {name}", (s,)) for k, (name, s) in enumerate(steps))
    return Kernel(
        "mul_sub_mul_sub",
        1,
        (*arrays("abcd"), *arrays(["out"]), ScalarParam("n", INT64)),
        (("i", INT64), *((t.name, FLOAT32) for t in (t1, t2, t3))),
        (IDS[0], If(less(ITEM, N), body)),
    )


def strided_2d():
    """A sum over 3 × 3 windows of a strided image, written to a contiguous array."""
    total, r, c = Var(FLOAT32, "total"), Var(INT64, "r"), Var(INT64, "c")
    window = load("image", sub(add(ITEM, const(2)), r), add(J, c))
    inside = Logical("and", less(ITEM, Extent("out", 0)), less(J, Extent("out", 1)))
    loop = For(
        "r", const(0), const(3), const(1),
        (For("c", const(0), const(3), const(1), (Assign("total", add(total, window)),)),),
    )  # fmt: skip
    body = (
        Assign("total", const(0.0, FLOAT32)),
        loop,
        Store("out", (ITEM, J), mul(total, const(1 / 9, FLOAT32))),
    )
    return Kernel(
        "window_sum",
        2,
        (*arrays(["image"], ndim=2, contiguous=False, restrict=False), *arrays(["out"], ndim=2)),
        (("i", INT64), ("j", INT64), ("total", FLOAT32)),
        (*IDS, If(inside, body)),
    )


def nontemporal():
    """Stores around the caches: rows of a float16 image with strides, and a plane of uint8."""
    inside = Logical("and", less(ITEM, Extent("out", 0)), less(J, Extent("out", 1)))
    image = ArrayParam("image", FLOAT16, 2, contiguous=False, restrict=True, unit_stride=True)
    pixel = load("a", ITEM, J, type=FLOAT16)
    body = (
        Store("image", (ITEM, J), add(pixel, pixel), nontemporal=True),
        Store("out", (ITEM, J), Cast(UINT8, pixel), nontemporal=True),
    )
    return Kernel(
        "nontemporal",
        2,
        (*arrays(["a"], FLOAT16, 2), image, *arrays(["out"], UINT8, 2)),
        (("i", INT64), ("j", INT64)),
        (*IDS, If(inside, body)),
    )


def loops():
    """Every kind of loop; bounds that change inside; a value carried between iterations."""
    k, last, x = Var(INT64, "k"), Var(INT64, "last"), Var(INT32, "x")
    item = load("a", k, type=INT32)
    return Kernel(
        "loops",
        1,
        (*arrays(["a"], INT32), *arrays(["out"], INT32), ScalarParam("n", INT64),
         ScalarParam("step", INT64)),
        (("i", INT64), ("last", INT64), ("x", INT32), ("seen", INT32), ("half", INT32)),
        (
            IDS[0],
            Assign("last", N),
            Assign("x", const(0, INT32)),
            For("k", const(0), last, const(2), (
                Assign("last", sub(last, const(1))),
                If(Compare("eq", item, const(0, INT32)), (Continue(),)),
                Assign("half", binary("floordiv", item, const(2, INT32))),
                Assign("x", add(x, Var(INT32, "half"))),
            )),
            For("k", sub(N, const(1)), const(-1), const(-1), (Assign("x", mul(x, item)),)),
            For("k", ITEM, N, Param(INT64, "step"), (
                If(
                    Compare("eq", k, ITEM),
                    (Assign("seen", item),),
                    (Assign("x", add(x, Var(INT32, "seen"))),),
                ),
            )),
            While(less(x, const(100, INT32)), (
                Assign("x", mul(x, const(3, INT32))),
                If(Compare("eq", x, const(0, INT32)), (Break(),)),
            )),
            Store("out", (ITEM,), x),
        ),
    )  # fmt: skip


def branches():
    """Selects, chains of conditions, variables that only some branches need."""
    x, y, near = Var(FLOAT64, "x"), Var(FLOAT64, "y"), Var(BOOL, "near")
    zero, one = const(0.0, FLOAT64), const(1.0, FLOAT64)
    number = Unary(BOOL, "not", Call(BOOL, "isnan", (x,)))
    flagged = Logical("and", load("flags", ITEM, type=BOOL), number)
    sign = Select(FLOAT64, less(x, zero), Unary(FLOAT64, "neg", one),
                  Select(FLOAT64, Compare("gt", x, zero), one, zero))  # fmt: skip
    return Kernel(
        "branches",
        1,
        (*arrays("a", FLOAT64), *arrays(["flags"], BOOL), *arrays(["out"], FLOAT64),
         ScalarParam("negate", BOOL), ScalarParam("n", INT64)),
        (("i", INT64), ("x", FLOAT64), ("y", FLOAT64), ("near", BOOL)),
        (
            IDS[0],
            If(less(ITEM, N), (
                Assign("x", load("a", ITEM, type=FLOAT64)),
                Assign("near", Logical("or", less(x, one), flagged)),
                If(near, (Assign("y", sign),), (
                    If(Param(BOOL, "negate"), (Assign("y", Unary(FLOAT64, "neg", x)),), (
                        Assign("y", Call(FLOAT64, "maximum", (x, const(float("-inf"), FLOAT64)))),
                    )),
                )),
                Store("flags", (ITEM,), near),
                Store("out", (ITEM,), y),
            )),
        ),
    )  # fmt: skip


def private_array():
    """An item that owns four elements of a promoted buffer."""
    k = Var(INT64, "k")
    element = add(mul(ITEM, const(4)), k)
    four = (const(0), const(4), const(1))
    return Kernel(
        "private_array",
        1,
        (*arrays(["source", "out"], UINT8), ScalarParam("n", INT64)),
        (("i", INT64),),
        (
            IDS[0],
            If(less(ITEM, N), (
                For("k", *four, (Store("kept", (k,), load("source", element, type=UINT8)),)),
                For("k", *four, (
                    Store("out", (element,), mul(
                        load("kept", sub(const(3), k), type=UINT8), const(2, UINT8))),
                )),
            )),
        ),
        (ArrayDecl("kept", UINT8, (4,), "private"),),
    )  # fmt: skip


def awkward_names():
    """Names that the device language has taken, float16, a three-dimensional array."""
    x = Var(FLOAT16, "exp")
    index = (binary("floordiv", ITEM, const(3)), binary("mod", ITEM, const(3)), const(1))
    value = binary("truediv", Call(FLOAT16, "exp", (x,)), Cast(FLOAT16, Param(INT32, "half")))
    return Kernel(
        "float",
        1,
        (ArrayParam("local", FLOAT16, 3), ScalarParam("half", INT32), ScalarParam("μ", FLOAT16)),
        (("i", INT64), ("exp", FLOAT16)),
        (
            IDS[0],
            Assign("exp", Binary(FLOAT16, "add", Load(FLOAT16, "local", index),
                                 Param(FLOAT16, "μ"))),
            Store("local", index, value),
        ),
    )  # fmt: skip


BFLOAT16_TABLE = (0x7FC0, 0x3F80, 0x8000, 0x0001, 0xFF80, 0xC2F7)


def bfloat16_conversions(rows):
    """``wide``: of ``narrow`` as float32; ``rounded``: of each row of ``numbers`` as bfloat16;
    ``chosen``: constants, a scalar, elements of ``BFLOAT16_TABLE``, and a choice."""
    here = load("narrow", ITEM, type=BFLOAT16)
    body = [IDS[0], Store("wide", (ITEM,), Cast(FLOAT32, here))]
    for k in range(rows):
        place = (const(k), ITEM)
        body.append(Store("rounded", place, Cast(BFLOAT16, load("numbers", *place))))
    values = (float("nan"), float("-inf"), -0.0, 1.5, 2.0**-133)
    chosen = [
        *(Const(BFLOAT16, value) for value in values),
        Param(BFLOAT16, "scalar"),
        *(load("table", const(k), type=BFLOAT16) for k in range(len(BFLOAT16_TABLE))),
        Select(BFLOAT16, less(ITEM, const(7)), here, Const(BFLOAT16, -3.0)),
    ]
    body += [Store("chosen", (const(k), ITEM), value) for k, value in enumerate(chosen)]
    params = (
        *arrays(("narrow",), BFLOAT16),
        *arrays(("wide",)),
        *arrays(("numbers",), ndim=2),
        *arrays(("rounded", "chosen"), BFLOAT16, ndim=2),
        ScalarParam("scalar", BFLOAT16),
    )
    contents = b"".join(bits.to_bytes(2, "little") for bits in BFLOAT16_TABLE).hex()
    table = ArrayDecl("table", BFLOAT16, (len(BFLOAT16_TABLE),), "constant", contents=contents)
    return Kernel("conversions", 1, params, (("i", INT64),), tuple(body), (table,))


GOLDEN_KERNELS = (
    fused_example, strided_2d, nontemporal, loops, branches, private_array, awkward_names,
)  # fmt: skip
