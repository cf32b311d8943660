"""Tuples that are joined and compared, 'and' and 'or' of numbers, where ``enumerate`` starts;
conditional expressions of tuples and of parts of arrays, and of calls that do something; what
loops whose condition is false from the start have done; a loop's variable behind its ``else``."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

VALUES = np.random.default_rng(3).random(64)
CASES = '''
t = (a[i], 1) + (2, i); u = (0.5,) * 3 + 2 * (1,)
out[i] = t[0] + t[2] * t[3] + len(t) * 100 + u[4] + len(u)
---
t = [1, 2] + [i]
out[i] = sum(t) + len(t)
---
p = ((i % 3, i % 2) == (1, 0)) + 2 * ((i % 3, a[i]) != (1, a[3]))
out[i] = p + 4 * ((1, 2) == (1, 2, 3)) + 8 * ((1, 2) != (1, 2, i))
---
p = ((i % 3, a[i]) < (1, 0.5)) + 2 * ((i % 3, i % 2) <= (1, 0))
out[i] = p + 4 * ((i % 3, a[i]) > (1, 0.5)) + 8 * ((i % 2, i % 3) >= (1, 0, 0))
---
out[i] = ((i % 2, (i % 3, 1)) == (1, (2, 1))) + ((a[i] / 0.0 - a[i] / 0.0, 1) < (1.0, 2)) * 2
---
for k, v in enumerate((3, 4, 5), 1):
    out[i] += k * v
for k, v in enumerate(a, start=i):
    out[i] += k * v
for k, v in enumerate(range(i), i * 2):
    out[i] += k * v
for k, (p, q) in enumerate(zip(a, a[1:]), -3):
    out[i] += k * p - q
---
x = i % 3 or 7
y = i % 2 and 5
out[i] = x * 10 + y
---
x = i % 3 and i % 2 and 9 or 4
out[i] = x
---
def f():
    out[i] += 1
    return i % 2
x = f() or f() or 8
out[i] += x * 100
---
x = 0 or i
y = 3 and i
z = 0 and i
out[i] = x + y * 10 + z + (5 or i)
---
b = i > 3 and i < 6
out[i] = b or i == 1
---
x = (y := i % 4) and (z := y * 2)
out[i] = x + y
---
k = 0
while (k < 3 and i) or k < 1:
    k += 1
out[i] = k
---
p, q = (a[i], i) if a[i] > 0.5 else (2.0, i * 2)
out[i] = p - q * 3
---
r = a[1:4] if i % 2 else a[4:7]
out[i] = r[0] + r[2]
---
def bump(k):
    out[k] += 1
    return 0
x = bump(i) if i % 2 else bump(i)
y = bump(i) + bump(i) if i % 3 else bump(i)
out[i] += x
---
def never():
    out[i] += 1
    return False
while never():
    out[i] += 100
---
x = 1
def bump():
    out[i] += x
    return True
r = i % 2 == 1 and bump() or bump() if i % 3 else bump()
---
q = (1.0, (a[i], 2)) if i % 2 else (a[i], (3.0, 2))
out[i] = q[0] + q[1][0] + q[1][1]
---
r = a[i:] if i % 2 else a[3:]
out[i] = r[0] + len(r)
---
r = a[i:] if i % 2 else a[3:]
a[i] = 7
out[i] = r[0]
---
def put(k, v):
    out[k] += v
    return None
x = put(i, 1) if i % 2 else put(i, 2)
---
p, q = (i, 1) if i > 3 else (1, i)
p, q = (q, p) if p > q else (p, q)
out[i] = p * 10 + q
---
for k in range(i):
    if a[k] > 0.8:
        break
else:
    k = 100
out[i] = k
---
n = 0
for k in range(5):
    for j in range(i):
        if a[j] > 0.4 + k * 0.1:
            break
        if j == 6: break
    else:
        j = 50
        n += 1
    n += j
else:
    k = -1
out[i] = n * 100 + k
---
k = 1000
for k in range(i):
    if a[k] > 0.8:
        break
else:
    k += 1
out[i] = k
---
for k, v in enumerate(a):
    if v > a[i]:
        break
else:
    k, v = -1, 0.5
out[i] = k + v
---
for k in range(3):
    if a[k] > 0.8 and i > 3:
        break
else:
    k += 7
out[i] = k
'''.split("---\n")  # noqa: SIM905 (programs are read as text)

REFUSED = [
    ("t = (1, 2) + 3", r"a tuple of 2 \+ a number", "joined by"),
    ("t = (1, 2) + [3]", r"a tuple of 2 \+ a list of 1", "joined by"),
    ("t = (1, 2) - (1, 2)", "a tuple of 2 - a tuple of 2", "one by one"),
    ("t = (1, 2) * i", "how often a tuple is repeated must be", "literal"),
    ("t = (1, 2) * 40", r"a tuple of 2 \* a number", "64 items"),
    ("x = (1, a) < (1, 2)", "a number is needed here", "index"),
    ("x = i % 2 or a[i]", "has type int64 or float64", "np.float64"),
    ("x = i > 2 and i", "'and' and 'or' give one of their operands", "Compare it"),
    ("for k, v in enumerate(a, 0.5): pass", "enumerate from float", "integer"),
    ("for k, v in enumerate(a, first=1): pass", "takes tuples, arrays and ranges only", "Leave"),
    ("t = (1, 2) if i > 2 else (1, 2, 3)", "is a tuple of 2 or of 3", "as many items"),
    ("t = (1, 2) if i > 2 else 3", "a number is needed here, not a tuple", "unpack"),
    ("t = a[1:] if i > 2 else a[::2]", "a number is needed here", "index"),
    ("t = a[1:] if i > 2 else out[1:]", "a number is needed here", "index"),
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
