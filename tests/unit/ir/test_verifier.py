"""The verifier: each rule of well-formed IR, broken once."""

from dataclasses import replace

import pytest

from fusionq.base.span import Span
from fusionq.execution.cost_measurement import _steps
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
    Persistent,
    ScalarParam,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT8,
    WEAK_FLOAT,
    WEAK_INT,
    ScalarType,
)
from fusionq.ir.verifier import VerificationError, verify

ID = ItemQuery("global_id", 0)
X, N, FLAG = Var(FLOAT32, "x"), Var(INT64, "n"), Var(BOOL, "flag")
ZERO, ONE = Const(INT64, 0), Const(INT64, 1)


def kernel_of(*body: Stmt) -> Kernel:
    return Kernel(
        name="k",
        ndim=1,
        params=(ArrayParam("a", FLOAT32, 2), ArrayParam("m", INT32, 1), ScalarParam("s", FLOAT32)),
        variables=(("x", FLOAT32), ("n", INT64), ("flag", BOOL), ("small", INT8)),
        body=body,
        arrays=(ArrayDecl("own", FLOAT32, (4,), "private"),),
        span=Span("user.py", 3, "def k(item, a, m, s):"),
    )


def problem(kernel: Kernel) -> str | None:
    """What the verifier says against ``kernel``; None if nothing."""
    try:
        verify(kernel)
    except VerificationError as error:
        return str(error)
    return None


def value_of(expr: Expr, type_: ScalarType) -> Kernel:
    """A kernel that assigns ``expr`` to a variable of type ``type_``."""
    return replace(kernel_of(Assign("v", expr)), variables=(("v", type_), ("n", INT64)))


def loop(*body: Stmt, var: str = "k") -> For:
    return For(var, ZERO, ONE, ONE, body)


GOOD: list[Stmt] = [
    Assign("x", Load(FLOAT32, "a", (ID, ONE))),
    Assign("x", Load(FLOAT32, "own", (ZERO,))),
    Assign("n", Extent("a", 1)),
    Assign("x", Param(FLOAT32, "s")),
    Store("a", (ID, ID), Const(FLOAT32, 1e300)),
    Store("own", (ZERO,), X),
    Assign("flag", Logical("and", FLAG, Compare("lt", N, ID))),
    Assign("flag", Call(BOOL, "isnan", (X,))),
    Assign("n", Call(INT64, "clock", ())),
    Assign("flag", Call(BOOL, "sub_group_has_here", (N,))),
    Assign("flag", Binary(BOOL, "add", FLAG, FLAG)),
    Assign("flag", Unary(BOOL, "invert", FLAG)),
    Assign("x", Call(FLOAT32, "pymax", (X, X))),
    Assign("x", Select(FLOAT32, FLAG, X, Cast(FLOAT32, N))),
    Assign("small", Const(INT8, -128)),
    Assign("n", Binary(INT64, "pow", N, Const(INT64, 2))),
    Assign("n", Binary(INT64, "pow", N, Cast(INT64, Const(UINT8, 2)))),
    loop(loop(Assign("n", Var(INT64, "k")), Break(), var="j"), Continue()),
    Block("two loops with one variable", (loop(), loop())),
    While(FLAG, (Block("inside", (Break(),)),)),
    If(FLAG, (Assign("n", ZERO),), (Assign("n", ONE),)),
]


def test_well_formed_statements_pass() -> None:
    assert {problem(kernel_of(stmt)) for stmt in GOOD} == {None}
    assert problem(kernel_of(*GOOD)) is None


BAD: list[tuple[Stmt, str]] = [
    (Assign("nowhere", X), "'nowhere' is assigned but not declared"),
    (Assign("s", X), "'s' is assigned but not declared"),
    (Assign("n", X), "the value of 'n' is float32, not int64"),
    (Assign("x", Var(FLOAT32, "y")), "'y' is neither a declared variable nor a loop's"),
    (Assign("x", Var(FLOAT64, "x")), "x is float32, but is marked as float64"),
    (Assign("x", Param(FLOAT32, "a")), "no scalar parameter 'a'"),
    (Assign("x", Param(FLOAT64, "s")), "no scalar parameter 's' of type float64"),
    (Assign("x", Load(FLOAT32, "b", (ID,))), "there is no array 'b'"),
    (Assign("x", Load(FLOAT32, "a", (ID,))), "'a' has 2 dimensions and gets 1 indices"),
    (Assign("x", Load(FLOAT32, "a", (ID, Const(INT32, 0)))), "an index of 'a' is int32"),
    (Assign("x", Load(FLOAT32, "m", (ID,))), "is int32, but is marked as float32"),
    (Store("m", (ID,), X), "the value stored to 'm' is float32, not int32"),
    (Store("own", (ID, ID), X), "'own' has 1 dimensions and gets 2 indices"),
    (Assign("n", Extent("a", 2)), "no array parameter has the extent a.shape[2]"),
    (Assign("n", Extent("own", 0)), "no array parameter has the extent"),
    (Assign("n", ItemQuery("global_id", 1)), "no global_id in dimension 1"),
    (If(N, ()), "the condition is int64, not bool"),
    (While(N, ()), "the condition is int64, not bool"),
    (For("k", ZERO, Const(INT32, 1), ONE, ()), "a loop bound is int32"),
    (loop(loop()), "the name 'k' is declared twice"),
    (loop(var="x"), "the name 'x' is declared twice"),
    (loop(var="a"), "the name 'a' is declared twice"),
    (loop(var="own"), "the name 'own' is declared twice"),
    (loop(Assign("k", ZERO)), "the loop variable 'k' is assigned inside its loop"),
    (Block("", (loop(), Assign("n", Var(INT64, "k")))), "'k' is neither"),
    (Break(), "a break outside a loop"),
    (If(FLAG, (Continue(),)), "a continue outside a loop"),
    (Assign("flag", Logical("or", FLAG, N)), "the right side of 'or' is int64"),
    (Assign("flag", Compare("lt", N, X)), "the right side of a comparison is float32, not int64"),
]


@pytest.mark.parametrize(("stmt", "what"), BAD)
def test_malformed_statements_are_refused(stmt: Stmt, what: str) -> None:
    with pytest.raises(VerificationError) as error:
        verify(kernel_of(stmt))
    assert what in str(error.value)


I8 = Const(INT8, 1)
F32 = Const(FLOAT32, 1.0)
BAD_VALUES: list[tuple[Expr, ScalarType, str]] = [
    (Const(INT8, 128), INT8, "128 (int) is no constant of type int8"),
    (Const(UINT8, -1), UINT8, "-1 (int) is no constant of type uint8"),
    (Const(INT8, 1.0), INT8, "1.0 (float) is no constant of type int8"),
    (Const(INT8, True), INT8, "True (bool) is no constant of type int8"),
    (Const(BOOL, 1), BOOL, "1 (int) is no constant of type bool"),
    (Const(FLOAT32, 1), FLOAT32, "1 (int) is no constant of type float32"),
    (Const(WEAK_INT, 1), INT64, "not concrete"),
    (Cast(WEAK_FLOAT, I8), FLOAT64, "not concrete"),
    (Binary(INT8, "add", I8, Const(INT32, 1)), INT8, "the right side of 'add' is int32, not int8"),
    (Binary(FLOAT32, "add", I8, F32), FLOAT32, "the left side of 'add' is int8"),
    (Binary(INT8, "truediv", I8, I8), INT8, "no 'truediv' of int8"),
    (Binary(FLOAT32, "xor", F32, F32), FLOAT32, "no 'xor' of float32"),
    (Binary(BOOL, "sub", Const(BOOL, True), Const(BOOL, True)), BOOL, "no 'sub' of bool"),
    (Binary(INT64, "pow", N, N), INT64, "the exponent of a signed integer power"),
    (Binary(INT64, "pow", N, Cast(INT64, I8)), INT64, "the exponent of a signed integer power"),
    (Binary(INT64, "pow", N, Const(INT64, -1)), INT64, "the exponent of a signed integer power"),
    (Unary(FLOAT32, "invert", F32), FLOAT32, "no 'invert' of float32"),
    (Unary(BOOL, "neg", Const(BOOL, True)), BOOL, "no 'neg' of bool"),
    (Unary(INT8, "not", I8), INT8, "no 'not' of int8"),
    (Unary(INT32, "neg", I8), INT32, "the operand of 'neg' is int8, not int32"),
    (Select(INT8, Const(BOOL, True), I8, N), INT8, "the second choice is int64, not int8"),
    (Select(INT8, I8, I8, I8), INT8, "the condition is int8, not bool"),
    (Call(FLOAT32, "sine", (F32,)), FLOAT32, "there is no function 'sine'"),
    (Call(FLOAT32, "sin", (F32, F32)), FLOAT32, "'sin' takes 1 arguments, not 2"),
    (Call(INT8, "sin", (I8,)), INT8, "no sin(int8) -> int8"),
    (Call(FLOAT64, "sin", (F32,)), FLOAT64, "no sin(float32) -> float64"),
    (Call(BOOL, "isnan", (I8,)), BOOL, "no isnan(int8) -> bool"),
    (Call(INT64, "clock", (N,)), INT64, "'clock' takes 0 arguments, not 1"),
    (Call(FLOAT64, "clock", ()), FLOAT64, "no clock() -> float64"),
    (Call(BOOL, "sub_group_has_here", (F32,)), BOOL, "no sub_group_has_here(float32) -> bool"),
    (Call(INT8, "pymin", (I8, N)), INT8, "no pymin(int8, int64) -> int8"),
    (Call(BOOL, "sign", (Const(BOOL, True),)), BOOL, "no sign(bool) -> bool"),
    (Compare("lt", I8, I8, type=INT8), INT8, "is bool, but is marked as int8"),
]


@pytest.mark.parametrize(("expr", "type_", "what"), BAD_VALUES)
def test_malformed_expressions_are_refused(expr: Expr, type_: ScalarType, what: str) -> None:
    with pytest.raises(VerificationError) as error:
        verify(value_of(expr, type_))
    assert what in str(error.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"ndim": 4}, "a kernel has 1 to 3 dimensions, not 4"),
        ({"variables": (("a", INT64),)}, "the name 'a' is declared twice"),
        ({"variables": (("x", INT64), ("x", INT64))}, "the name 'x' is declared twice"),
        ({"variables": (("not ok", INT64),)}, "'not ok' is not a name"),
        ({"variables": (("for", INT64),)}, "'for' is not a name"),
        ({"variables": (("x", WEAK_INT),)}, "not concrete"),
        ({"params": (ScalarParam("s", WEAK_FLOAT),)}, "not concrete"),
        ({"arrays": (ArrayDecl("g", FLOAT32, (2,), "global"),)}, "declared in global memory"),
        ({"arrays": (ArrayDecl("g", FLOAT32, (0,), "private"),)}, "has extents (0,)"),
    ],
)
def test_malformed_declarations_are_refused(change: dict[str, object], what: str) -> None:
    with pytest.raises(VerificationError) as error:
        verify(replace(kernel_of(), **change))  # type: ignore[arg-type]  # one field a case
    assert what in str(error.value)


def test_the_message_names_the_kernel_and_the_line() -> None:
    inner = Store("m", (ID,), X, span=Span("user.py", 7, "    m[i] = x"))
    with pytest.raises(VerificationError) as error:
        verify(kernel_of(If(FLAG, (inner,), span=Span("user.py", 6))))
    message = str(error.value)
    assert "kernel 'k'" in message
    assert "user.py:7: m[i] = x" in message


def test_more_may_be_known_of_a_persistent_kernels_parameters_than_its_stages_ask_for() -> None:
    """Sizes that are constants in all of it; not others than a stage has."""
    kernel, _ = _steps()
    array = next(p for p in kernel.params if isinstance(p, ArrayParam) and p.ndim == 1)
    (body,) = kernel.body
    assert isinstance(body, Persistent)

    def knowing(extents: tuple[int, ...], of_stages: tuple[int, ...] = ()) -> Kernel:
        params = tuple(replace(p, extents=extents) if p == array else p for p in kernel.params)
        codes = []
        for code in body.codes:
            own = tuple(
                replace(p, extents=of_stages) if isinstance(p, ArrayParam) else p
                for p in code.kernel.params
            )
            codes.append(replace(code, kernel=replace(code.kernel, params=own)))
        return replace(kernel, params=params, body=(replace(body, codes=tuple(codes)),))

    assert any(array.name in stage.arguments for stage in body.stages)
    verify(knowing((64,)))
    for wrong in (knowing((), (64,)), knowing((32,), (64,))):
        with pytest.raises(VerificationError, match="is no argument for"):
            verify(wrong)
