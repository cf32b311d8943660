"""While loops that count become for loops; others stay, and all do what Python does."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.ir.nodes import For, While
from fusionq.ir.printer import print_kernel
from fusionq.ir.walk import statements
from tests.property.running import examples
from tests.unit.frontend.running import define, run_both, specialised


def lowered(text: str) -> Any:
    """The IR of a kernel in a work-group of 8 with a body ``text`` of ``a``, ``n`` and ``out``."""
    head = "def counting(item: fq.NdItem, a, n, out):\n    l = item.get_local_id(0)\n    t = 0\n"
    function = define(head + indent(text, "    ") + "\n    out[l] = t\n", fq=fq)
    array = np.zeros(8, np.int64)
    return specialised(function, fq.NdRange(8, 8), array, 5, array)


def loops(text: str) -> list[str]:
    """Which kinds of loops there are, outermost first."""
    found = statements(lowered(text).body)
    return [type(s).__name__ for s in found if isinstance(s, For | While)]


def test_what_it_becomes() -> None:
    text = "j = l\nt = 3\nwhile j < a.shape[0]:\n    t += a[j]\n    j += 8"
    assert print_kernel(lowered(text)).splitlines()[2:] == [
        "    l = item.get_local_id(0)",
        "    t = 3",
        "    for j_1 in range(l, a.shape[0], 8):",
        "        t = t + a[j_1]",
        "    out[l] = t",
    ]


@pytest.mark.parametrize(
    "text",
    (
        "j = l\nwhile j < n:\n    t += j\n    j += 1",
        "j = l\nwhile n > j:\n    t += j\n    j = 2 + j",
        "j = n\nwhile j > 0:\n    t += j\n    j -= 3",
        "j = a.shape[0]\nwhile j >= 1:\n    t += j\n    j -= 1",
        "j = l\nwhile j <= a.shape[0]:\n    t += j\n    j += item.get_local_range(0)",
        "s = item.get_local_range(0)\nj = l\nwhile j < n:\n    t += j\n    j += s",
        "s = item.get_local_range(0) * item.get_group().get_group_range(0)\nj = l\n"
        "while j < n:\n    t += j\n    j += s",
        "j = a[0]\nwhile j < n:\n    t += j\n    j += 1",
        "j = l\nwhile j < n:\n    if a[j % 8] > 3:\n        break\n    t += j\n    j += 1",
        "j = l\nwhile j < n:\n    t += j\n    j += 1\nj = 7\nt += j",
    ),
)
def test_loops_that_count(text: str) -> None:
    assert loops(text) == ["For"]


@pytest.mark.parametrize(
    "text",
    (
        "j = l\nwhile j < n:\n    t += j\n    j += 1\nt += j",  # read behind it
        "j = l\nwhile j < n:\n    t += j\n    j += n",  # perhaps 0, or negative
        "s = n * item.get_local_range(0)\nj = l\nwhile j < n:\n    t += j\n    j += s",
        "s = item.get_local_range(0)\nif n > 3:\n    s = s * 2\nj = l\n"
        "while j < n:\n    t += j\n    j += s",
        "j = l\nwhile j < a[0]:\n    t += j\n    j += 1",  # may be stored to
        "j = l\nwhile j < n + t:\n    t += j\n    j += 1",  # a limit that moves
        "j = l\nwhile j != n:\n    t += j\n    j += 2",  # never, perhaps
        "j = l\nwhile j <= n:\n    t += j\n    j += 1",  # the last integer ends no loop
        "j = l\nwhile j > n:\n    t += j\n    j += 1",  # away from it
        "j = l\nwhile j < n:\n    j += 1\n    t += j",  # counted before
        "j = l\nwhile j < n:\n    if t > 9:\n        j += 1\n    t += j\n    j += 1",
        "j = 0\nwhile j < n:\n    t += 1\n    if t < 4:\n        continue\n    j += 1",
        "j = l\nwhile j < n and t < 20:\n    t += j\n    j += 1",
        "j = l\nfor k in range(2):\n    while j < n:\n        t += j\n        j += 1\n"
        "    t += k",  # the next iteration of the outer loop reads it
        "j = l\nfor k in range(3):\n    while j < n:\n        t += j\n        j += 1\n"
        "    if t > k:\n        break\n    j = 2\nt += j",  # where the outer loop breaks
    ),
)
def test_other_loops_stay(text: str) -> None:
    assert "While" in loops(text)


def test_a_counter_that_begins_anew_counts_again() -> None:
    inner = "j = l\nwhile j < n:\n    t += j\n    j += 1"
    assert loops(f"{inner}\n{inner}") == ["For", "For"]
    assert loops(f"k = 0\nwhile k < 3:\n{indent(inner, '    ')}\n    k += 1") == ["For", "For"]
    otherwise = f"if n > 3:\n{indent(inner, '    ')}\nelse:\n    t = 2"
    assert loops(otherwise) == ["For"]
    assert loops(f"j = 0\n{otherwise}\nt += j") == ["While"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Loops that count, mostly, one in another and one behind another, of few counters."""
    made = ["t = 0", "i = item.get_id(0)", "j = i", "k = 1"]

    def statement(depth: int, inside: bool) -> list[str]:
        name, other = draw(st.sampled_from(("jk", "kj")))
        forms = ["set", "add", "add", "if", "break"] if inside else ["set", "add", "add"]
        form = draw(st.sampled_from([*forms, *(["loop"] * 4 if depth < 3 else [])]))
        if form == "set":
            return [f"{name} = {draw(st.sampled_from(('0', 'i', 'i % 3', other)))}"]
        if form == "add":
            return [f"t = t * 3 % 1009 + {draw(st.sampled_from((name, 'x[(k + j) % 6]', '1')))}"]
        if form == "if":
            return [f"if t % 3 == {draw(st.integers(0, 2))}:", *indented(statements_(depth + 1, 1))]
        if form == "break":
            return ["if t % 5 == 0:", "    break"]
        start = draw(st.sampled_from((f"{name} = 0", f"{name} = i", "t += 1")))
        limit = draw(st.sampled_from(("7", "n", "x.shape[0]", "i + 4", f"{other} + 5")))
        step = draw(st.integers(1, 3))
        body = statements_(depth + 1, 2)
        turns = ["turns += 1", "if turns > 60:", "    break"]
        loop = [f"while {name} < {limit}:", *indented([*turns, *body, f"{name} += {step}"])]
        return [start, *loop]

    def statements_(depth: int, most: int) -> list[str]:
        return [s for _ in range(draw(st.integers(1, most))) for s in statement(depth, depth > 0)]

    def indented(lines: list[str]) -> list[str]:
        return [f"    {line}" for line in lines]

    made += ["turns = 0", *statements_(0, 4), "out[i] = t * 100 + j * 10 + k"]
    return "\n".join(made)


@examples(100)
@given(programs(), st.integers(-2, 9))
def test_they_do_what_python_does(text: str, n: int) -> None:
    body = indent(text, "    ")
    function = define(f"def counting(item, x, n, out):\n{body}\n")
    x = np.arange(6) * 5 % 7
    run_both(function, (4,), x, n, np.zeros(4, np.int64))
