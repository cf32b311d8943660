"""Loops over the elements of arrays: rows, slices, private arrays, enumerate, zip and reversed."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError
from fusionq.ir.nodes import For
from fusionq.ir.walk import statements
from tests.unit.frontend.bodies import X, both, ir_of
from tests.unit.frontend.running import define, run_both

ROWS = np.arange(20.0).reshape(4, 5) % 7 - 2
LOOPS = [
    ["for v in a[i]:", "    s = s * 2 + v"],
    ["for v in a[i, 1:4:2]:", "    s = s * 2 + v"],
    ["for v in reversed(a[i]):", "    s = s * 2 + v"],
    ["for k, v in enumerate(a[i]):", "    s = s * 2 + k * v"],
    ["for v, w in zip(a[i], b):", "    s = s * 2 + v * w"],
    ["for v, w in zip(a[i, 1:], a[i, :3]):", "    s = s * 2 + v * w"],
    ["for k, (v, w) in enumerate(zip(reversed(b), a[i])):", "    s = s * 2 + v * w + k"],
    ["for v, w in zip(a[i], (0.25, 0.5, 0.25)):", "    s = s * 2 + v * w"],
    ["for w, v, k in zip([3, 1, 4, 1, 5, 9], a[i], range(i, 9)):", "    s = s * 2 + v * w - k"],
    ["s = sum(v * x * y for (x, y), v in zip(((1, 2), (3, 4)), a[i]))"],
    ["for row in a:", "    s = s * 2 + row[i]"],
    ["for row in a[1:]:", "    for v in row[i:]:", "        s = s * 2 + v"],
    ["for v in a[i]:", "    if v < 0:", "        continue", "    if v > 3:", "        break",
     "    s = s * 2 + v"],
    ["for v in a[i]:", "    a[i, 4] = v + 1", "    s = s * 2 + v"],
    ["for v in a[i]:", "    v = v + 1", "    s = s * 2 + v", "s = s * v"],
    ["for a[i, 0] in b:", "    s = s * 2 + a[i, 0]"],
    ["i = 3 - i", "row = a[i]", "for v in row:", "    i = 0", "    s = s * 2 + v", "    row = b"],
]  # fmt: skip


@pytest.mark.parametrize("lines", LOOPS)
def test_as_in_python(lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", "s = 1.0", *lines))
    made = define(f"def k(item, a, b, out):\n{body}    out[i] = s\n")
    run_both(made, 4, ROWS, ROWS[2, :4].copy(), np.zeros(4))


@pytest.mark.parametrize("end", ["out[i, 0] = p[0]", "for v in p:", "for k, v in enumerate(p):"])
def test_private_arrays(end):
    lines = ["p = fq.PrivateArray(3, np.float32)", "for k in range(3):", "    p[k] = x[i + k]", end]
    made = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    made += "        out[i, 1] += v\n" * end.startswith("for")
    run_both(define(f"def k(item, x, out):\n{made}", fq=fq), 4, X, np.zeros((4, 4)))


def test_a_body_that_needs_the_number_is_repeated():
    """As in a loop over a short constant range."""
    made = define(
        "def k(item, x, out):\n    i = item.get_id(0)\n    p = fq.PrivateArray(3, np.int64)\n"
        "    for k, v in enumerate(p):\n        out[i, k] = (1.5, x[i], i)[k]\n",
        fq=fq,
    )
    run_both(made, 4, X, np.zeros((4, 4)))


def test_a_name_that_only_the_loop_binds():
    """Is read where the loop has run, which submit proves from the sizes."""
    both("for v in x[2:]:", "    last = v", "out[i, 0] = last")
    made = fq.kernel(
        define("def k(item, x, out):\n    for v in x[4:]:\n        last = v\n    out[0] = last\n")
    )
    with fq.FusionQueue("reference") as queue:
        queue.submit(made, 1, np.arange(6.0), np.zeros(1)).wait()
        with pytest.raises(ArgumentError, match="'last' is read after a loop"):
            queue.submit(made, 1, np.arange(4.0), np.zeros(1))


def test_one_loop_over_the_extent():
    ir = ir_of("for k, v in enumerate(out[i]):", "    out[i, 1] += v")
    loops = [s for s in statements(ir.body) if isinstance(s, For)]
    assert len(loops) == 1
    assert str(loops[0].stop).startswith("Extent")
