"""The printer: Python text that means what the IR means."""

import ast
import math

import pytest

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
    Expr,
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
from fusionq.ir.printer import print_body, print_expr, print_kernel
from fusionq.ir.types import BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT8

A, B, C = (Var(INT64, name) for name in "abc")
X = Var(FLOAT32, "x")
P, Q = Var(BOOL, "p"), Var(BOOL, "q")


def i64(op: str, lhs: Expr, rhs: Expr) -> Binary:
    return Binary(INT64, op, lhs, rhs)  # type: ignore[arg-type]  # any operator


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (i64("add", i64("add", A, B), C), "a + b + c"),
        (i64("add", A, i64("add", B, C)), "a + (b + c)"),
        (i64("mul", i64("add", A, B), C), "(a + b) * c"),
        (i64("add", A, i64("mul", B, C)), "a + b * c"),
        (i64("sub", A, i64("sub", B, C)), "a - (b - c)"),
        (i64("floordiv", A, i64("mod", B, C)), "a // (b % c)"),
        (i64("or", A, i64("and", B, C)), "a | b & c"),
        (i64("and", i64("or", A, B), C), "(a | b) & c"),
        (i64("shl", i64("add", A, B), C), "a + b << c"),
        (i64("add", A, i64("shr", B, C)), "a + (b >> c)"),
        (i64("pow", i64("pow", A, B), C), "(a ** b) ** c"),
        (i64("pow", A, i64("pow", B, C)), "a ** b ** c"),
        (Unary(INT64, "neg", i64("pow", A, B)), "-a ** b"),
        (i64("pow", Unary(INT64, "neg", A), B), "(-a) ** b"),
        (i64("pow", A, Unary(INT64, "neg", B)), "a ** -b"),
        (i64("pow", Const(INT64, -2), A), "(-2) ** a"),
        (Unary(INT64, "neg", i64("add", A, B)), "-(a + b)"),
        (Unary(INT64, "invert", A), "~a"),
        (i64("sub", A, Const(INT64, -1)), "a - -1"),
        (Unary(BOOL, "not", Compare("lt", A, B)), "not a < b"),
        (Compare("eq", Compare("lt", A, B), P), "(a < b) == p"),
        (Compare("eq", P, Unary(BOOL, "not", Q)), "p == (not q)"),
        (Logical("or", Logical("and", P, Q), P), "p and q or p"),
        (Logical("and", P, Logical("or", Q, P)), "p and (q or p)"),
        (Logical("and", P, Logical("and", Q, P)), "p and (q and p)"),
        (Select(INT64, P, A, Select(INT64, Q, B, C)), "a if p else b if q else c"),
        (Select(INT64, P, Select(INT64, Q, A, B), C), "(a if q else b) if p else c"),
        (i64("add", Select(INT64, P, A, B), C), "(a if p else b) + c"),
        (Call(INT64, "pymin", (A, i64("add", B, C))), "min(a, b + c)"),
        (Call(FLOAT32, "erf", (X,)), "math.erf(x)"),
        (Call(INT64, "clock", ()), "clock()"),
        (Call(BOOL, "sub_group_has_here", (B,)), "sub_group_has_here(b)"),
        (Call(FLOAT32, "maximum", (X, Const(FLOAT32, 0.0))), "np.maximum(x, 0.0)"),
        (Call(FLOAT32, "sqrt", (Const(FLOAT32, 2.0),)), "np.sqrt(np.float32(2.0))"),
        (Cast(FLOAT32, i64("add", A, B)), "np.float32(a + b)"),
        (Cast(BOOL, A), "np.bool_(a)"),
        (Param(FLOAT32, "s"), "s"),
        (Extent("a", 1), "a.shape[1]"),
        (Load(FLOAT32, "a", (A, i64("add", B, Const(INT64, 1)))), "a[a, b + 1]"),
        (Load(FLOAT32, "a", ()), "a[()]"),
        (ItemQuery("global_id", 0), "item.get_id(0)"),
        (ItemQuery("local_id", 1), "item.get_local_id(1)"),
        (ItemQuery("group_range", 2), "item.get_group().get_group_range(2)"),
    ],
)
def test_expressions_have_the_parentheses_they_need(expr: Expr, text: str) -> None:
    assert print_expr(expr) == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Binary(FLOAT32, "mul", X, Const(FLOAT32, 0.5)), "x * 0.5"),
        (Binary(FLOAT32, "mul", Const(FLOAT32, -0.0), X), "-0.0 * x"),
        (Const(FLOAT32, 0.5), "np.float32(0.5)"),
        (
            Binary(FLOAT32, "mul", Const(FLOAT32, 2.0), Const(FLOAT32, 3.0)),
            "np.float32(2.0) * np.float32(3.0)",
        ),
        (Cast(FLOAT32, Const(FLOAT64, 0.1)), "np.float32(0.1)"),
        (Cast(FLOAT32, Const(UINT8, 1)), "np.float32(np.uint8(1))"),
        (Binary(FLOAT32, "add", X, Const(FLOAT32, math.inf)), "x + np.inf"),
        (Binary(FLOAT32, "add", X, Const(FLOAT32, -math.inf)), "x + -np.inf"),
        (Binary(FLOAT32, "add", X, Const(FLOAT32, math.nan)), "x + np.nan"),
        (Select(FLOAT32, P, X, Const(FLOAT32, 0.0)), "x if p else np.float32(0.0)"),
        (Const(BOOL, True), "True"),
        (Const(INT64, 7), "7"),
        (Const(INT32, 7), "np.int32(7)"),
    ],
)
def test_literals_say_their_type_unless_their_neighbour_does(expr: Expr, text: str) -> None:
    assert print_expr(expr) == text


KERNEL = Kernel(
    name="smooth",
    ndim=1,
    params=(ArrayParam("a", FLOAT32, 1), ArrayParam("b", FLOAT32, 2), ScalarParam("n", INT64)),
    variables=(("i", INT64), ("total", FLOAT32)),
    arrays=(
        ArrayDecl("own", FLOAT32, (4,), "private"),
        ArrayDecl("tile", UINT8, (2, 3), "local"),
    ),
    body=(
        Assign("i", ItemQuery("global_id", 0)),
        Block(
            "submission 0: smooth",
            (
                If(
                    Compare("lt", Var(INT64, "i"), Param(INT64, "n")),
                    (
                        Assign("total", Const(FLOAT32, 0.0)),
                        For(
                            "k",
                            Const(INT64, 0),
                            Extent("b", 1),
                            Const(INT64, 1),
                            (
                                If(Compare("eq", Var(INT64, "k"), Const(INT64, 3)), (Break(),)),
                                Assign(
                                    "total",
                                    Binary(
                                        FLOAT32,
                                        "add",
                                        Var(FLOAT32, "total"),
                                        Load(FLOAT32, "b", (Var(INT64, "i"), Var(INT64, "k"))),
                                    ),
                                ),
                            ),
                        ),
                        Store("a", (Var(INT64, "i"),), Var(FLOAT32, "total")),
                    ),
                    (
                        If(
                            Compare("eq", Var(INT64, "i"), Const(INT64, 0)),
                            (Store("a", (Const(INT64, 0),), Const(FLOAT32, 1.5)),),
                            (While(Const(BOOL, True), (Continue(),)),),
                        ),
                    ),
                ),
            ),
        ),
    ),
)  # fmt: skip


def test_a_kernel_prints_as_a_python_function() -> None:
    assert print_kernel(KERNEL) == (
        "def smooth(item, a, b, n):\n"
        "    # a: float32[:], b: float32[:, :], n: int64\n"
        "    own = PrivateArray(4, np.float32)\n"
        "    tile = LocalAccessor((2, 3), np.uint8)\n"
        "    i = item.get_id(0)\n"
        "    # submission 0: smooth\n"
        "    if i < n:\n"
        "        total = np.float32(0.0)\n"
        "        for k in range(b.shape[1]):\n"
        "            if k == 3:\n"
        "                break\n"
        "            total = total + b[i, k]\n"
        "        a[i] = total\n"
        "    elif i == 0:\n"
        "        a[0] = 1.5\n"
        "    else:\n"
        "        while True:\n"
        "            continue\n"
    )


def test_a_kernel_that_asks_for_its_group_takes_an_nd_item() -> None:
    kernel = Kernel(
        "k",
        1,
        (),
        (("i", INT64), ("j", INT64)),
        (Assign("i", ItemQuery("global_id", 0)), Assign("j", ItemQuery("local_id", 0))),
    )
    assert "i = item.get_global_id(0)\n" in print_kernel(kernel)


def test_loops_print_the_bounds_that_differ_from_the_default() -> None:
    one, two, minus = Const(INT64, 1), Const(INT64, 2), Const(INT64, -1)
    body = (For("k", one, A, one, ()), For("k", A, one, minus, ()), For("k", two, A, two, ()))
    assert print_body(body) == (
        "for k in range(1, a):\n    pass\n"
        "for k in range(a, 1, -1):\n    pass\n"
        "for k in range(2, a, 2):\n    pass"
    )


def test_a_body_of_comments_only_gets_a_pass() -> None:
    assert print_body((If(P, (Block("two\nlines", ()),)),)) == (
        "if p:\n    # two\n    # lines\n    pass"
    )


def test_printed_text_is_python() -> None:
    (function,) = ast.parse(print_kernel(KERNEL)).body
    assert isinstance(function, ast.FunctionDef)
    assert function.name == KERNEL.name
    assert [a.arg for a in function.args.args] == ["item", *(p.name for p in KERNEL.params)]
