"""Comprehensions and generators, with names of their own."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

VALUES = np.random.default_rng(3).random(64)
CASES = '''
out[i] = sum(a[k] for k in range(i))
---
out[i] = sum(a[k] * w for k, w in zip(range(2, 9), a) if k % 2)
---
out[i] = sum([a[k] for k in range(i + 1)])
---
out[i] = any(a[k] > 0.9 for k in range(i)) + 2 * all(v > 0.1 for v in a[:i])
---
p = any(a[k] + a[j] > 1.8 for k in range(i) for j in range(k))
q = all(a[k] + a[j] > 0.2 for k in range(i) if k % 2 for j in range(k))
out[i] = p + 2 * q
---
k = 7
t = [a[k] * k for k in range(4)]
out[i] = t[0] + t[3] * k + len(t)
---
t = tuple(x * y for x in (1, 2, 3) for y in (4, 5) if x != y - 3)
out[i] = sum(t) + len(t) * 100
---
out[i] = max(a[k] for k in range(5)) - min(x * 2 for x in (a[i], a[0], 0.5))
---
x = 3
t = [x * k for x in range(x) for k in range(x + 1)]
out[i] = sum(t) + x
---
t = [[x * y for x in range(3)] for y in range(2)]
out[i] = t[1][2] + t[0][1]
---
t = [x for x in [x + 1 for x in (i, 2, 3)]]
out[i] = t[0] * t[1] + t[2]
---
t = list(range(2, 11, 3)); u = tuple(t)
out[i] = sum(u) + t[1]
---
w = fq.PrivateArray(3, np.float64)
for k, v in enumerate([a[i] * c for c in (1, 2, 3)]): w[k] = v
out[i] = sum(v * v for v in w)
'''.split("---\n")  # noqa: SIM905 (programs are read as text)

REFUSED = [
    ("y = (k for k in a)", "a generator that nothing goes over", "sum, any, all"),
    ("t = [a[k] for k in range(i)]", "how many items there are is not known", "for loop"),
    ("t = tuple(a)", "how many items there are is not known", "for loop"),
    ("t = [k for k in (1, 2) if a[k] > 0.5]", "how many items this comprehension", "PrivateArray"),
    ("t = [k for k in range(9) for j in range(9)]", "more than 64", "PrivateArray"),
    ("out[i] = max(a[k] for k in range(i))", "how many items there are is not known", "for loop"),
    ("t = {k for k in range(3)}", "sets are not supported", "tuple"),
    ("t = {k: 1 for k in range(3)}", "dicts are not supported", "variables"),
    ("t = [w for w in range(3)]\nout[i] = w", "the name 'w' is not defined", "Define"),
    ("t = [j for k in range(3) for j in range(k + i)]", "how many items there are", "for loop"),
    ("t = tuple(i)", "items of a number", "tuples, ranges"),
    ("t = [j + 1 for j in (i, a)]", "not known when the kernel is compiled|1-d array", ""),
]


def body_of(lines):
    """A kernel with these statements."""
    text = "import fusionq as fq\ndef k(item, a, out):\n    i = item.get_id(0)\n"
    return define(text + "".join(f"    {line}\n" for line in lines.strip().splitlines()))


@pytest.mark.parametrize("lines", CASES)
def test_it_does_what_python_does(lines):
    run_both(body_of(lines), 9, VALUES[:9].copy(), np.zeros(9))


def test_devices_agree():
    outputs = []
    for queue in (fq.FusionQueue("reference"), fq.FusionQueue()):
        with queue:
            a, out = fq.Buffer(VALUES), fq.Buffer(np.zeros(64))
            for lines in CASES[::3]:
                queue.submit(fq.kernel(body_of(lines)), 9, a, out)
            outputs.append(out.numpy().tobytes())
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(("lines", "message", "hint"), REFUSED)
def test_what_is_refused(lines, message, hint):
    with pytest.raises(KernelLanguageError) as error:
        specialised(body_of(lines), 9, np.zeros(9), np.zeros(9))
    assert re.search(message, str(error.value)), str(error.value)
    assert hint in str(error.value)


@pytest.mark.parametrize(
    "line",
    [
        "x, y, z = (a[i, k] * 2 for k in range(3))",
        "x, *y, z = (a[i, k] for k in range(4) if k != 1); y = y[0]",
        "[x, y], z = (a[i, k] for k in range(2)), 3",
    ],
)
def test_names_for_the_items_of_a_generator(line):
    lines = ["i = item.get_id(0)", line, "out[i] = x + 10 * y + z"]
    text = "def k(item, a, out):\n" + "".join(f"    {each}\n" for each in lines)
    a = np.random.default_rng(1).integers(0, 7, (5, 4)).astype(np.float32)
    if line.startswith("["):
        with pytest.raises(KernelLanguageError, match="nothing goes over"):
            specialised(define(text), 5, a, np.zeros(5))
        return
    run_both(define(text), 5, a, np.zeros(5))
