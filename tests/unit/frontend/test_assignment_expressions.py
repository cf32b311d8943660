"""``x := value`` in expressions: what is assigned when, and what is read before and after."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

VALUES = np.random.default_rng(3).random(64)
CASES = '''
(x := a[i]); out[i] = x + 1
---
y = (x := a[i]) + (x := 2.0) * x; out[i] = x + y
---
x = a[i]
out[i] = x + (x := 3.0) + x
---
x = 1.0
y = x + (2.0 if i % 2 and (x := a[i]) > 0.3 else 1.0) + x
out[i] = y + x
---
if i % 2 == 0 and (x := a[i]) > 0.4:
    out[i] = x
else:
    out[i] = -1
---
if i % 2 == 0 or (x := a[i]) > 0.4:
    out[i] = 5
else:
    out[i] = x
---
n = 0
x = a[i]
while (x := x * 0.5) > 0.01:
    n += 1
out[i] = n + x
---
n = 0
x = a[i]
while n < 8 and (x := x * 0.5) > 0.01:
    n += 1
else:
    n += 100
out[i] = n + x
---
k = 0
while (k := k + 1) < i:
    if k % 3 == 0:
        continue
    if k == 7: break
    out[i] += k
out[i] += k * 100
---
t = 0
for k in range((n := i + 2)):
    t += k * n
    if (m := t % 5) == 3: n += m
out[i] = t * 10 + n
---
out[(k := i)] = 1 + (k := 4) + k
---
k = 0
out[(k := k + 1) % 1 + i] = (k := k + 5) * 2
out[i] += k
---
z = 1j
y = (z := z * 2) + z * (z := z + 1)
out[i] = y.real + z.imag * 3 + y.imag
---
y = (t := (i, a[i]))[1] + t[0] + (t := (3, 4.0))[1] + t[0]
out[i] = y
---
b = 3 < (x := i + 1) < 9
out[i] = x if b else -x
---
b = 3 < i < (x := 9) and (y := x + i) > 12
out[i] = y if b else i
---
s = 0
for k in range(3):
    if (c := a[(i + k) % 9]) > 0.5 and (d := c * 2) > 1.5:
        s += d
    elif c > 0.2:
        s -= c
out[i] = s
---
x = 3.0
for k in range(3):
    y = x + (lambda v, w=(x := v0 + k if (v0 := a[i]) > 0.2 else 1.0): v - w)(a[i]) + x
    out[i] += y
---
x = 3
y = x + (lambda v, *, w=(x := i): v - w)(2) + x * 10
out[i] = y
---
x = i
x += (x := 5) * x
out[i] = x
---
y = [x := i, x + 1, (x := 9), x]
out[i] = y[0] + y[1] * 10 + y[2] * 100 + y[3]
---
q = (x if (x := a[i]) > 0.5 else (x := 2.0)) + x
out[i] = q
'''.split("---\n")  # noqa: SIM905 (programs are read as text)

REFUSED = [
    ("if i and i > 2 or (x := a[i]) > 0:\n    out[i] = x", "number|'and' and 'or'|may not", ""),
    ("if i > 2 and (x := a[i]) > 0:\n    pass\nout[i] = x", "'x' may not", "every path"),
    ("if i > 2 or (x := a[i]) > 0:\n    out[i] = x", "'x' may not be assigned", "every path"),
    ("y = 1 if i > 2 else (x := 3)\nout[i] = x", "'x' may not be assigned", "every path"),
    ("out[i] = sum((x := v) for v in a)", ":= inside a comprehension", "for loop"),
    ("x = 1\ny = i > 2 and (x := True)\nout[i] = x", "'x' has no single type", "one type"),
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
