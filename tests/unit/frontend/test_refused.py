"""What is outside the kernel language: each with its place, its reason and a way out."""

import re

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, specialised

CASES = [
    ("assert i > 0", "assert of what is not known", "host"),
    ("assert x.ndim == 2", "this assertion does not hold: x.ndim == 2", "types and constants"),
    ("del i", "del is not supported", "Leave it out"),
    ("raise ValueError", "raise is not supported", "error code"),
    ("import math", "import inside a kernel", "top of the file"),
    ("from math import sin", "import inside a kernel", "top of the file"),
    ("global g", "global is not supported", "array argument"),
    ("with x: pass", "with is for regions only", "leave"),
    ("class C: pass", "a class cannot be defined", "plain arguments"),
    ("y = {1: 2}", "dicts are not supported", "variables"),
    ("y = {1, 2}", "sets are not supported", "tuple"),
    ("y = 1 + 'text'", "not the string 'text'", "Compare it"),
    ("y = b'text'", "a bytes literal", "floating point"),
    ("y = f'{i}'", "strings are not supported", "numbers"),
    ("y = ...", r"\.\.\. is not supported", "slice for each dimension"),
    ("y = m @ x", "@ of a 2-d array", "row such as"),
    ("y = x[0] @ x", "@ of a number of type float32", "row such as"),
    ("i @= 2", "@ is not supported", "loops"),
    ("y = i is x", "'is' compares with None", "=="),
    ("y = i in x", "'in' looks into tuples", "=="),
    ("print('i is', i)", "print cannot be called in a kernel", "print them on the host"),
    ("y = x[0.5]", "an index of type float", "int(x)"),
    ("y = x[i > 0]", "an index of type bool", "int(x)"),
    ("y = x[x[0]]", "an index of type float32", "int(x)"),
    ("y = x[i, 0]", "2 indices for the 1-d array 'x'", "each dimension"),
    ("y = x[None]", "a number is needed here", "numbers"),
    ("y = x[0][0]", "cannot be indexed", "arrays and tuples"),
    ("y = item[2]", "dimension 2 of a range that has", "count from 0"),
    ("y = x[..., ...]", r"\.\.\. twice in one index", "each dimension"),
    ("y = x[0] in range(3)", "a number of type float32 in a range", "<="),
    ("y = i in range(0, 9, i)", "in a range whose step is not known", "constant step"),
    ("y = m[0] + 1", "length is not known when the kernel is compiled", r"out[i, :] = …"),
    ("m[0] = m", "2 dimensions for the 1 of this part of 'm'", "as many dimensions"),
    ("x[0] = x + 1", "a number is needed here, not a 1-d array", r"out[i, :] = …"),
    ("y = x.T", "arrays have no 'T'", "shape, ndim, size, dtype"),
    ("x.shape = 3", "attributes cannot be assigned", "names or elements"),
    ("x.size += 1", "attributes cannot be assigned", "names or elements"),
    ("a, b, *c = 1,", "a tuple of 1 cannot be unpacked into 2 names and the rest", "is known"),
    ("a, *b = x", "cannot be unpacked into 1 names and the rest", "is known"),
    ("y = np.zeros(i)", "the shape of np.zeros must be an integer constant", "literal"),
    ("y = np.zeros(0)", r"np.zeros of the shape \(0,\)", "at least 1"),
    ("y = np.zeros(3, 'nothing')", "no dtype of the kernel language", "np.float32"),
    ("y = np.zeros(3, order='C')", "np.zeros with these arguments", r"np.zeros(shape, dtype)"),
    ("y = np.array((1, 2.5))", "np.array of numbers of several types", "a dtype"),
    ("y = np.array(x)", "np.array of a 1-d array", "in a loop"),
    ("y = np.full(2, 1j, np.complex64)", "a number is needed here", "abs"),
    ("y = np.ones(2, np.complex64)", "np.ones of complex64", "np.zeros"),
    ("y = np.sum(x, 0)", r"np.sum takes 1 array\(s\) in a kernel, not 2", "axes"),
    ("y = np.sum(m, axis=0)", "takes no keyword arguments in a kernel", "position"),
    ("y = m.sum(axis=0)", "m.sum takes no axis=", "all elements"),
    ("y = np.argmax(m)", "np.argmax of a 2-d array", "row such as"),
    ("y = np.cumsum(x)", "np.cumsum cannot be called", "fq.joint_reduce"),
    ("y = (x > 0).max()", r"\(x > 0\).max of bools", "any or all"),
    ("y = np.dot(x > 0, x)", "np.dot of bools", "np.int64"),
    ("y = sorted((1, 2), key=abs)", "sorted with these arguments", "reverse=True"),
    ("y = sorted((i, x[0]))", "sorted of numbers of several types", "Convert"),
    ("y = sorted([0] * 33)", "sorted of 33 items", "loops"),
    ("y = sorted(x)", "how many items there are is not known", "for loop"),
    ("y = i.bit_count(1)", "bit_count takes no arguments", r"bit_count()"),
    ("y = x[0].bit_count()", "bit_count of float32", "Integers"),
    ("y = np.random.rand()", "np.random.rand cannot be called", "random numbers in an array"),
    ("y = np.fft.fft(x)", "np.fft.fft cannot be called", "NumPy scalar functions"),
    ("y = x.cumsum()", "arrays have no 'cumsum'", "fq.Reduction"),
    ("a, b = 1, 2, 3", "a tuple of 3 cannot be unpacked into 2", "same length"),
    ("a, b = i", "a number of type int64 cannot be unpacked", "arrays of the same length"),
    ("t = (1, 2); t[0] = 3", "tuples cannot be changed", "np.zeros"),
    ("y = np", "a module cannot be assigned", "own name"),
    ("x[0] = x", "a number is needed here, not a 1-d array", "a[i]"),
    ("i + 1", "this expression has no effect", "Assign its value"),
    ("l = [1]; l.append(2); y = l[0]", "a list of 1 has no 'append'", "PrivateArray"),
    ("y = i.numerator", "has no attribute 'numerator'", "shape"),
    ("if x: pass", "a number is needed here, not a 1-d array", "a[i]"),
    ("for k in 3: pass", "or an array, not over a number", "for k in range(n)"),
    ("for k in abs(i): pass", "or an array, not over a number", "for k in range(n)"),
    ("for k in x[i]: pass", "or an array, not over a number", "for k in range(n)"),
    ("for k in x * 2: pass", "or an array, not over", "for k in range(n)"),
    ("for k, y in enumerate(i): pass", "in a kernel, not over a number", "index with k"),
    ("for k, y in zip(x, (1, i)): pass", "in a kernel, not over both together", "index with k"),
    ("for k in zip(): pass", "zip takes tuples, arrays and ranges only", "Leave other"),
    ("for k in reversed((1, 2), (3, 4)): pass", "reversed takes tuples, arrays", "Leave"),
    ("y = zip((1, 2))", "zip cannot be called", "for x, y in zip"),
    (f"for k in ({'1, ' * 65}): pass", "its body 65 times, more than 64", "index with k"),
    ("for k, l in (1, 2): pass", "cannot be unpacked into 2 names", "same length"),
    ("for k, l in range(3): pass", "range gives one variable", "range"),
    ("for k in range(3.0): pass", "range of type float", "int(x)"),
    ("for k in range(x[0]): pass", "range of type float32", "int(x)"),
    ("for k in range(0, 3, 0): pass", "the step of range is 0", "negative step"),
    ("for k in range(): pass", "range takes one to three", "start, stop, step"),
    ("y = range(3)", "range cannot be called", "for k in range"),
    ("y = x.dtype == 3", "a number is needed here", "numbers"),
    ("y = x.dtype < np.float32", "with == and != only", "tuple"),
    ("item = 3; y = item.get_id(0)", "has no attribute 'get_id'", "modules"),
    ("y = item.get_local_id(0)", "the Item has no 'get_local_id'", "get_id"),
    ("y = item.get_id(1)", "dimension 1 of a range that has 1", "more dimensions"),
    ("y = item.get_id(-1)", "dimension -1 of a range", "count from 0"),
    ("y = item.get_id(i)", "the dimension must be an integer constant", "literal"),
    ("y = item.get_id(0, 1)", "takes one dimension", "get_id(0)"),
    ("y = item.get_linear_id(0)", "takes no arguments", "get_linear_id()"),
    ("y = item.get_id(dim=0)", "no keyword arguments", "position"),
    ("y = f(**g)", r"\*\* is not supported in calls", "out"),
]


def refused(lines, **names):
    body = "".join(f"    {line}\n" for line in lines)
    function = define(f"def k(item, x, m):\n    i = item.get_id(0)\n{body}", **names)
    with pytest.raises(KernelLanguageError) as error:
        specialised(function, 1, np.zeros(1, "float32"), np.zeros((2, 2)))
    return function, str(error.value)


@pytest.mark.parametrize(("line", "message", "hint"), CASES, ids=[c[0] for c in CASES])
def test_refused(line, message, hint):
    function, text = refused([line], f=abs, g={})
    place, source, caret, last = text.splitlines()
    assert place.startswith(f"{function.__code__.co_filename}:3: in 'k': ")
    assert re.search(message, place)
    assert source == f"    {line}"
    assert caret.strip() == "^"
    assert hint in last


BLOCKS = [
    (["try:", "    y = 1", "except ValueError:", "    y = 2"], "try is not supported"),
    (["yield i"], "yield is not supported"),
    (["with x as y:", "    pass"], "with is for regions only"),
]


@pytest.mark.parametrize(("lines", "message"), BLOCKS, ids=[b[0][0] for b in BLOCKS])
def test_refused_blocks(lines, message):
    assert message in refused(lines)[1]
