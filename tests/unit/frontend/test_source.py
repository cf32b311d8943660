"""Where a kernel's source comes from, and what is said where there is none."""

import functools
import linecache
import textwrap

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from fusionq.frontend import kernel
from fusionq.frontend.source import function_source
from tests.unit.frontend.running import define, specialised


def plain(function):
    return function


def wrapping(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


@plain
@plain
def decorated(item, a):  # a comment
    """Doc."""
    a[0] = 1


class Holder:
    @staticmethod
    @plain
    def method(item, a):
        text = 1  # indented source
        a[0] = text


def test_a_function_of_a_file():
    source = function_source(decorated)
    line = decorated.__code__.co_firstlineno
    assert (source.name, source.parameters) == ("decorated", ("item", "a"))
    assert source.tree.decorator_list == []
    assert source.span(source.tree).line == line + 2
    assert source.span(source.tree.body[1]).text == "a[0] = 1"
    assert source.normalised == "def decorated(item, a):\n    a[0] = 1"


def test_an_indented_function():
    source = function_source(Holder.method)
    assert source.span(source.tree.body[1]).line == Holder.method.__code__.co_firstlineno + 4
    error = source.error(source.tree.body[1].value, "wrong", "Do it right.")
    assert str(error).splitlines()[1:] == ["    a[0] = text", "           ^", "  Do it right."]


def test_source_with_lines_at_column_zero():
    def k(item, a):
        a[0] = (
1 +
2)  # fmt: skip

    assert specialised(k, 1, np.zeros(1)).body[0].value.value == 3.0


BLOCKS = [
    "def k(item, a): a[0] = 1\n",
    "def k(item, a):\n    a[0] = 1",
    "def k(\n    item, a\n):\n    a[0] = 1\n",
    "@plain\n@plain  # twice\ndef k(item, a):\n    a[0] = 1\n",
    "@plain and (\n    plain\n)\ndef k(item, a):\n    a[0] = 1\n",
    "def k(item, a):\n    a[0] = 1\n# a comment\n    a[1] = 2\n",
    "def k(item, a):\n    a[0] = 1\n\n\n    a[1] = 2\n",
    "def k(item, a):\n    a[0] = (\n1\n)\n",
    "def k(item, a):\n    a[0] = \\\n1\n",
    "def k(item, a):\n    return\n    a[0] = [\n1\n][0]\n",
    'def k(item, a):\n    a[0] = 1\n    """\nat the margin\n"""\n',
    'def k(item, a):\n    return\n    """\nat the margin\n"""\n    pass\n',
    "def k(item, a):\n    if a:\n        return\n    else:\n        pass\n",
    "def k(item, a):\n    def inner():\n        return 1\n    a[0] = inner()\n",
    "def k(item, a):\n\tif a:\n\t\ta[0] = 1\n",
]
"""Functions, each as it is written."""
BEHIND = [
    "",
    "\n\n",
    "\n# a comment\n",
    "\n    # a comment\n",
    "\n\ndef k(item, a):\n    a[0] = 2\n",
    "x = 1\n",
]
"""What may follow them in a file."""


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("indentation", ["", "    ", "\t"])
def test_where_a_function_ends(indentation, block, behind):
    if indentation and ("margin" in block or "\n1" in block or not block.endswith("\n")):
        return  # indented, these are others
    before = "def plain(f):\n    return f\n\n\nif True:\n    pass\n"
    if indentation:
        before += f"if True:\n{indentation}pass\n"
        block, behind = (textwrap.indent(text, indentation) for text in (block, behind))
    if not block.endswith("\n") and behind:
        behind = "\n" + behind
    text = before + block
    namespace = {}
    name = f"<{len(linecache.cache)} {hash(text + behind)}>"
    linecache.cache[name] = (1, None, (text + behind).splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)
    assert "".join(function_source(namespace["k"]).lines).rstrip() == block.rstrip()


def test_nested_functions_and_closures():
    def outer(scale):
        def inner(item, a):
            a[0] = scale

        return inner

    assert specialised(outer(4), 1, np.zeros(1)).body[0].value.value == 4.0


def test_code_from_exec_with_linecache():
    function = define("\n\ndef k(item, a):\n    a[0] = 1\n")
    ir = specialised(function, 1, np.zeros(1))
    assert ir.body[0].span.line == 4
    assert ir.body[0].span.text == "a[0] = 1"


def test_a_notebook_cell():
    """IPython compiles each cell under a name of its own and enters it in linecache."""
    cell = "@kernel\ndef k(item, a):\n    a[item.get_id(0)] = 2\n"
    name = "/tmp/ipykernel_1/1234.py"
    linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
    namespace = {"kernel": kernel, "__name__": "__main__"}
    exec(compile(cell, name, "exec"), namespace)
    assert str(namespace["k"].span) == f"{name}:2"


def test_unicode_before_the_column():
    function = define("def k(item, a):\n    größe = 1; a[0] = größe @ 2\n")
    with pytest.raises(KernelLanguageError) as error:
        specialised(function, 1, np.zeros(1))
    lines = str(error.value).splitlines()
    assert lines[2].index("^") == lines[1].index("größe @")


def test_a_lambda_is_no_kernel():
    with pytest.raises(KernelLanguageError, match=r"(?s)kernel cannot be a lambda.*with def"):
        specialised(lambda item, a: None, 1, np.zeros(1))


def factor(by):
    return lambda x: x * by


STEPS = (lambda x: x + 1, lambda x: x * 2, factor(3), lambda x, by=5: max(x,
         by), lambda x: x + 1)  # fmt: skip
ZEROS = (lambda x: 0.0 * x, lambda x: -0.0 * x)


def test_lambdas_are_told_apart_by_what_they_compile_to():
    function = define(
        "def k(item, a):\n"
        "    i = item.get_id(0)\n"
        "    x = a[i]\n"
        "    for step in STEPS:\n"
        "        x = step(x) * 10\n"
        "    a[i] = x\n",
        STEPS=STEPS,
    )
    a = np.array([1, 7])
    queue = fq.FusionQueue("reference")
    queue.submit(fq.kernel(function), 2, a).wait()
    expected = [1, 7]
    for step in STEPS:
        expected = [step(x) * 10 for x in expected]
    assert a.tolist() == expected


def test_constants_of_lambdas_are_told_apart_by_their_bits():
    function = define("def k(item, a):\n    a[0] = ZEROS[0](a[0])\n    a[1] = ZEROS[1](a[1])\n",
                      ZEROS=ZEROS)  # fmt: skip
    a = np.ones(2)
    fq.FusionQueue("reference").submit(fq.kernel(function), 1, a).wait()
    assert np.signbit(a).tolist() == [False, True]


def test_what_a_lambda_may_not_do_is_refused_where_it_stands():
    bad = define("bad = lambda x: {x}\n\ndef k(item, a):\n    a[0] = bad(a[0])\n")
    with pytest.raises(KernelLanguageError) as error:
        specialised(bad, 1, np.zeros(1))
    lines = str(error.value).splitlines()
    assert lines[0].endswith(":1: in 'lambda_': sets are not supported")
    assert lines[1].index("{x}") == lines[2].index("^")
    assert "called at" in lines[4]


def test_no_source():
    namespace = {}
    exec("def k(item, a):\n    a[0] = 1\n", namespace)
    with pytest.raises(KernelLanguageError, match=r"(?s)source of 'k' cannot be had.*linecache"):
        specialised(namespace["k"], 1, np.zeros(1))


def test_source_that_changed():
    text = "def k(item, a):\n    a[0] = 1\n"
    function = define(text)
    name = function.__code__.co_filename
    other = "def another(item, a):\n    a[0] = 1\n"
    linecache.cache[name] = (len(other), None, other.splitlines(True), name)
    with pytest.raises(KernelLanguageError, match=r"(?s)not that of 'k'.*Import it again"):
        specialised(function, 1, np.zeros(1))


def test_a_source_file_that_became_shorter():
    function = define("\n" * 20 + "def k(item, a):\n    a[0] = 1\n")
    name = function.__code__.co_filename
    linecache.cache[name] = (1, None, ["x = 1\n"], name)
    with pytest.raises(KernelLanguageError, match=r"cannot be had \(.* has only 1 lines\)"):
        specialised(function, 1, np.zeros(1))


def test_a_wrapper_does_not_stand_for_what_it_wraps():
    with pytest.raises(KernelLanguageError, match="positional parameters only"):
        specialised(wrapping(decorated), 1, np.zeros(1))


def test_an_async_function_is_refused():
    async def k(item, a):
        a[0] = 1

    with pytest.raises(KernelLanguageError, match="async function"):
        specialised(k, 1, np.zeros(1))
