"""``match`` with values, alternatives, names, guards and tuples."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

VALUES = np.random.default_rng(3).random(64)
CASES = '''
match i % 4:
    case 0:
        y = a[i]
    case 1 | 2:
        y = 2.0
    case n:
        y = n * 2.0
out[i] = y
---
match (i % 3, a[i] > 0.5):
    case (0, _):
        y = 1
    case (k, c) if c:
        y = k * 10 + i
    case (1, c) if not c:
        y = 7
    case _:
        y = -1
out[i] = y
---
match i:
    case 1 if a[i] > 0.1:
        out[i] = 1
    case k if k % 2 and (z := k * 3) > 5:
        out[i] = z + k
    case _ if i > 5:
        pass
    case j:
        out[i] = j * 100
---
out[i] = 0
match i:
    case 3:
        out[i] = 5
for k in range(4):
    match k:
        case 1: continue
        case 3: break
    out[i] += k + 1
---
def name(m):
    match m:
        case "add": return 1
        case "mul" | "div": return 2
        case None: return 3
        case _: return 4
out[i] = name("add") + name("div") * 10 + name(None) * 100 + name("x") * 1000
---
x = a[i]
match x:
    case y if y > 0.5:
        x = 0.0
        out[i] = y + x
    case _:
        out[i] = y - x
'''.split("---\n")  # noqa: SIM905 (programs are read as text)

REFUSED = [
    (f"match i:\n    case {pattern}:\n        out[i] = 1", "match with such a pattern",
     "if and elif")
    for pattern in ("True", "[1, *_]", "int(x)", "{1: 2}", "(1, 2)", "1 | True")
] + [
    ("match i:\n    case 1:\n        y = 1\nout[i] = y", "'y' may not be assigned", "every path"),
    ("match i, 2:\n    case 1:\n        y = 1", "match with such a pattern", "if and elif"),
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
