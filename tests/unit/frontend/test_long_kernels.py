"""Long and deep kernels are compiled, or refused by an error of ours."""

import sys

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.recursion import room_for_recursion
from tests.unit.frontend.running import define

A = np.arange(4, dtype=np.float64)


def result(target, text, *arrays):
    out = np.zeros(4)
    with fq.FusionQueue(target) as queue:
        queue.submit(fq.kernel(define(text)), 4, A, out, *arrays)
        queue.wait()
    return out


def body(*lines, parameters=""):
    return "".join(
        f"{line}\n"
        for line in (f"def k(item, a, out{parameters}):", "    i = item.get_id(0)", *lines)
    )


@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize("count", [200, 1000])
def test_a_sum_of_many_terms(target, count):
    terms = [f"a[i] * {k}" for k in range(count)]
    before = sys.getrecursionlimit()
    np.testing.assert_array_equal(
        result(target, body(f"    out[i] = {' - '.join(terms)}")), -A * sum(range(count))
    )
    assert sys.getrecursionlimit() == before


def test_a_long_condition():
    long = " and ".join(f"a[i] > {-k}" for k in range(400))
    found = result("reference", body(f"    if {long}:", "        out[i] = 1"))
    assert found.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(("target", "count"), [("reference", 400), (None, 150)])
def test_a_chain_of_branches(target, count):
    branches = [f"    elif i == {k}:\n        y = a[i] + {k}" for k in range(count)]
    text = body("    y = 7.0", "    if i < 0:", "        y = 0.5", *branches, "    out[i] = y")
    np.testing.assert_array_equal(result(target, text), A * 2)


@pytest.mark.parametrize("target", ["reference", None])
def test_300_parameters(target):
    names = [f"p{k}" for k in range(300)]
    total = " + ".join(f"{name}[i]" for name in names)
    text = body(f"    out[i] = {total}", parameters="".join(f", {name}" for name in names))
    np.testing.assert_array_equal(result(target, text, *[A] * 300), A * 300)


def test_what_the_reference_cannot_nest_is_an_error_of_ours():
    choices = "".join(f"{k} if i == {k} else " for k in range(300))
    deep = body(f"    out[i] = {choices}7")
    with pytest.raises(fq.DeviceError, match="nested too deeply for the reference backend"):
        result("reference", deep)


def test_what_is_too_deep_for_the_compiler_is_an_error_of_ours():
    def nested(depth):
        return nested(depth + 1)

    before = sys.getrecursionlimit()
    with (
        pytest.raises(fq.KernelLanguageError, match="too long or too deeply nested"),
        room_for_recursion("the kernel"),
        room_for_recursion("a part of it"),
    ):
        nested(0)
    assert sys.getrecursionlimit() == before


def test_short_loops_are_unrolled_where_their_variable_has_to_be_known():
    made = define(
        "def helper(item, d):\n    return item.get_id(d)\n"
        "def k(item, a, out):\n"
        "    total = 0\n"
        "    for d in range(2):\n"
        "        total = total * 10 + helper(item, d)\n"
        "        for e in range(2):\n"
        "            if d == e:\n"
        "                total += 100 * a.shape[e]\n"
        "    out[item.get_id(0), item.get_id(1)] = total + d\n"
    )
    out = np.zeros((3, 2))
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(made), (3, 2), out.copy(), out)
        queue.wait()
    i, j = np.indices((3, 2))
    np.testing.assert_array_equal(out, (i + 300) * 10 + j + 200 + 1)


def test_short_loops_that_are_unrolled_are_left_by_jumps():
    made = define(
        "def k(item, a, out):\n"
        "    total = 0\n"
        "    for d in range(3):\n"
        "        if d == 2:\n"
        "            break\n"
        "        if item.get_id(d) == 1:\n"
        "            continue\n"
        "        total = total * 10 + item.get_id(d) + 1\n"
        "    out[item.get_id(0), item.get_id(1)] = total\n"
    )
    out = np.zeros((3, 2))
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(made), (3, 2), out.copy(), out)
        queue.wait()
    np.testing.assert_array_equal(out, [[11, 1], [1, 0], [31, 3]])


@pytest.mark.parametrize(
    "lines",
    [
        ["    for d in range(n):", "        out[i] = item.get_id(d)"],
        ["    for d in range(65):", "        out[i] = item.get_id(d * 0)"],
        ["    for d in range(1):", "        out[i] = item.get_id(n)"],
    ],
)
def test_loops_that_cannot_be_unrolled(lines):
    made = define(body(*lines, parameters=", n"))
    with (
        fq.FusionQueue("reference") as queue,
        pytest.raises(
            fq.KernelLanguageError,
            match=r"dimension must be an integer constant[\s\S]*short constant",
        ),
    ):
        queue.submit(fq.kernel(made), 4, A, np.zeros(4), 1)


@pytest.mark.parametrize("shape", ["2 ** 63", "(2 ** 21, 2 ** 21, 2 ** 21)", "2 ** 61"])
def test_private_arrays_beyond_int64(shape):
    text = body(f"    own = fq.PrivateArray({shape}, np.int32)", "    out[i] = own[0]")
    made = define(text, fq=fq)
    with (
        fq.FusionQueue("reference") as queue,
        pytest.raises(fq.KernelLanguageError, match=r"of 2\*\*63 bytes or more"),
    ):
        queue.submit(fq.kernel(made), 4, A, np.zeros(4))
