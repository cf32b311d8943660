"""KernelFunction: names, annotations, fingerprints, specialisation, argument errors."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

import fusionq.language as fq
from fusionq.base.errors import ArgumentError, KernelLanguageError
from fusionq.frontend import KernelFunction, kernel
from fusionq.frontend.signature import ArrayType, Signature
from fusionq.ir.nodes import ArrayParam, Assign, Binary, ItemQuery, Load, ScalarParam, Store, Var
from fusionq.ir.types import FLOAT32, INT64, WEAK_FLOAT, WEAK_INT, ScalarType
from tests.unit.frontend.running import define

ARRAY = ArrayType(FLOAT32, 1)


@kernel
def multiply(item: fq.Item, a, b, out):
    """The product."""
    i = item.get_id(0)
    out[i] = a[i] * b[i]


def item_signature(*arguments, ndim=1, item="item"):
    return Signature(item, ndim, arguments)


def test_the_ir_of_a_simple_kernel():
    ir = multiply.specialise(item_signature(ARRAY, ARRAY, ARRAY))
    i = Var(INT64, "i")
    assert (ir.name, ir.ndim) == ("multiply", 1)
    assert ir.params == tuple(ArrayParam(n, FLOAT32, 1) for n in ("a", "b", "out"))
    assert ir.variables == (("i", INT64),)
    product = Binary(FLOAT32, "mul", Load(FLOAT32, "a", (i,)), Load(FLOAT32, "b", (i,)))
    assert ir.body == (Assign("i", ItemQuery("global_id", 0)), Store("out", (i,), product))
    line = multiply.function.__code__.co_firstlineno
    assert [s.span.line for s in ir.body] == [line + 3, line + 4]
    assert ir.body[1].span.text == "out[i] = a[i] * b[i]"
    assert ir.body[1].value.lhs.span == ir.body[1].span
    assert ir.span.file == __file__ and ir.span.line == line + 1


def test_properties():
    assert isinstance(multiply, KernelFunction)
    assert (multiply.name, multiply.__name__, multiply.__doc__) == (
        "multiply", "multiply", "The product.",
    )  # fmt: skip
    assert multiply.parameter_names == ("a", "b", "out")
    assert multiply.span.text == "def multiply(item: fq.Item, a, b, out):"
    assert kernel(multiply) is multiply


def test_a_specialisation_is_made_once():
    first = multiply.specialise(item_signature(ARRAY, ARRAY, ARRAY))
    assert multiply.specialise(item_signature(ARRAY, ARRAY, ARRAY)) is first
    wide = ArrayType(ScalarType("float64"), 1)
    assert multiply.specialise(item_signature(wide, ARRAY, wide)) is not first


def test_threads_get_one_and_the_same_specialisation():
    made = define("def k(item, a):\n    a[0] = 1\n")
    function, results = kernel(made), []
    barrier = threading.Barrier(8)

    def run():
        barrier.wait()
        results.append(function.specialise(item_signature(ARRAY)))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all(r is results[0] for r in results)


def test_scalar_parameters_are_concrete():
    made = kernel(define("def k(item, a, n, x, s, b):\n    a[0] = 1\n"))
    scalars = (WEAK_INT, WEAK_FLOAT, FLOAT32, ScalarType("bool"))
    params = made.specialise(item_signature(ARRAY, *scalars)).params[1:]
    assert params == tuple(
        ScalarParam(n, ScalarType(t))
        for n, t in (("n", "int64"), ("x", "float64"), ("s", "float32"), ("b", "bool"))
    )


def test_calling_a_kernel_says_how_to_submit():
    with pytest.raises(KernelLanguageError, match=r"queue\.submit\(multiply"):
        multiply(1, 2)


@pytest.mark.parametrize("value", [3, None, np.sin, KernelFunction])
def test_only_functions_become_kernels(value):
    with pytest.raises(KernelLanguageError, match="made from a Python function"):
        kernel(value)


def test_a_foreign_kernel_gives_its_python_function():
    foreign = types.SimpleNamespace(py_func=multiply.function)
    assert kernel(foreign).function is multiply.function


# -------------------------------------------------------------------- annotations
class Other:
    pass


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ("fq.Item", "item"), ("fq.NdItem", "nd_item"), ("Item", "item"), ("Alias", "nd_item"),
        ("'fq.NdItem'", "nd_item"), ("'Item'", "item"), ("int", None), ("Other", None),
        ("'not python ('", None), ("unknown.Item", "item"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("future", [False, True])
def test_item_annotations(annotation, kind, future):
    first = "from __future__ import annotations\n" if future else ""
    names = {"fq": fq, "Item": fq.Item, "Alias": fq.NdItem, "Other": Other}
    if annotation == "unknown.Item":
        first = "from __future__ import annotations\n"  # else Python evaluates the name
    function = define(f"{first}def k(item: {annotation}, a):\n    a[0] = 1\n", **names)
    assert kernel(function).item_annotation == kind


def test_no_annotation():
    assert kernel(define("def k(item, a):\n    a[0] = 1\n")).item_annotation is None
    assert multiply.item_annotation == "item"  # this file's annotations are text


def test_an_annotation_that_contradicts_the_range():
    with pytest.raises(KernelLanguageError, match=r"NdItem has no 'get_id'[\s\S]*with a Range"):
        multiply.specialise(item_signature(ARRAY, ARRAY, ARRAY, item="nd_item"))
    nd = kernel(define("def k(item: 'NdItem', a):\n    a[0] = 1\n"))
    with pytest.raises(ArgumentError, match=r"annotated with NdItem, .* over a Range; .*NdRange"):
        nd.specialise(item_signature(ARRAY))
    nd.specialise(item_signature(ARRAY, item="nd_item"))


# ---------------------------------------------------------------- argument errors
def test_wrong_argument_counts():
    with pytest.raises(ArgumentError) as error:
        multiply.specialise(item_signature(ARRAY, ARRAY))
    assert "'multiply'" in str(error.value) and "takes 3 argument(s)" in str(error.value)
    assert "(a, b, out), not 2" in str(error.value)
    assert __file__ in str(error.value)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (ArrayType(ScalarType("longdouble"), 1), "has the dtype longdouble; convert"),
        (ArrayType(FLOAT32, 0), "0-dimensional"),
        ("text", "is a str; pass arrays and numbers"),
    ],
)
def test_arguments_of_wrong_types(argument, message):
    with pytest.raises(ArgumentError, match=rf"'b' of the kernel 'multiply'.*{message}"):
        multiply.specialise(item_signature(ARRAY, argument, ARRAY))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("item, *a", "positional parameters only"),
        ("item, a, *, b", "positional parameters only"),
        ("item, a, **b", "positional parameters only"),
        ("item, a, *, b=1", "positional parameters only"),
    ],
)
def test_parameters_that_kernels_do_not_have(parameters, message):
    made = kernel(define(f"def k({parameters}):\n    pass\n"))
    with pytest.raises(KernelLanguageError, match=message):
        made.specialise(item_signature(*[ARRAY] * parameters.count("a")))


# ------------------------------------------------------------------- fingerprints
def fingerprint(text, **names):
    return kernel(define(text, **names)).fingerprint


BASE = "def k(item, a):\n    a[item.get_id(0)] = C\n"


def test_layout_comments_docstrings_and_decorators_do_not_count():
    same = (
        "@(lambda f: f)\ndef k(item,\n      a):\n    '''Doc.'''\n"
        "    # comment\n    a[item.get_id(0)] = (C)\n"
    )
    assert fingerprint(BASE, C=1) == fingerprint(same, C=1)
    assert len(fingerprint(BASE, C=1)) == 64


def test_code_and_constants_count():
    prints = [
        fingerprint(BASE, C=c)
        for c in (1, 1.0, True, np.int64(1), np.float32(1), -0.0, 0.0, (1, 2), (1, (2,)), 2)
    ]
    prints += [fingerprint(BASE.replace("= C", "= C + 0"), C=1), fingerprint(BASE)]
    assert len(set(prints)) == len(prints)


def test_called_functions_and_their_constants_count():
    text = (
        "def inner(x):\n    return x + {}\n\ndef outer(x, d={}):\n    return inner(x) * d\n\n"
        "def k(item, a):\n    a[0] = {}(a[0])\n"
    )
    calls = [("1", "1", "outer"), ("2", "1", "outer"), ("1", "2", "outer"), ("D", "1", "outer")]
    prints = [fingerprint(text.format(*c), D=0) for c in calls]
    prints.append(fingerprint(text.format("D", "1", "outer"), D=1))
    prints.append(fingerprint(text.format("1", "1", "inner")))
    assert len(set(prints)) == len(prints)


def test_modules_attributes_and_closures_count():
    def print_of(value):
        module = types.ModuleType("constants")
        module.C = value
        return fingerprint("def k(item, a):\n    a[0] = m.C\n", m=module)

    assert print_of(1) == print_of(1) != print_of(2)

    def closure(value):
        def k(item, a):
            a[0] = value

        return kernel(k).fingerprint

    assert closure(1) == closure(1) != closure(2)


def test_functions_in_tuples_count():
    text = (
        "def f(x):\n    return x * {}\n\nFS = (f, f)\n\ndef k(item, a):\n    a[0] = FS[1](a[0])\n"
    )
    assert fingerprint(text.format(1)) == fingerprint(text.format(1)) != fingerprint(text.format(2))


def test_recursion_does_not_stop_the_fingerprint():
    assert fingerprint("def k(item, a):\n    a[0] = r(1)\n", r=_recursive)


def _recursive(n):
    return _recursive(n)


def test_constants_are_read_once():
    function = define(BASE, C=1)
    made = kernel(function)
    before = made.fingerprint
    function.__globals__["C"] = 2
    assert made.fingerprint == before
    assert made.specialise(item_signature(ARRAY)).body[-1].value.value == 1.0
    again = kernel(function)
    assert again.fingerprint != before
    assert again.specialise(item_signature(ARRAY)).body[-1].value.value == 2.0
