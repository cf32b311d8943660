"""Functions that are defined in a kernel: closures that see names as they are at the call."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

VALUES = np.random.default_rng(3).random(64)
CASES = '''
x = 5
f = lambda y: (x := y * 2) + x
out[i] = f(a[i]) + x
---
f = lambda y: y + g
g = 1
p = f(a[i])
g = 2
out[i] = p + f(a[i]) * 10
---
def f(y, k=i * 2):
    k += 1
    return y * k
i2 = i
k = 100
out[i] = f(a[i]) + f(1, 5) + f(2, k=7) + k
---
fs = [lambda y: y * k for k in (1, 2, 3)]
out[i] = fs[0](1) + fs[1](10) + fs[2](100)
---
fs = [lambda y, k=k: y * k for k in (1, 2, 3)]
out[i] = fs[0](1) + fs[1](10) + fs[2](100)
---
def outer(y):
    c = y + 1
    def inner(z):
        return z * c + i
    c = y + 2
    return inner(3)
out[i] = outer(a[i])
---
def store(v):
    out[i] = v
    return v + 1
store(store(store(a[i])))
---
def ab(v):
    if v > 0.5:
        return v, 1
    return -v, 2
x, y = ab(a[i])
out[i] = x * y
---
def fact(f, n): return f(n) + 1
out[i] = fact(lambda q: q * q + i, a[i])
---
s = 0.0
for k in range(4):
    h = lambda v: v * k + s
    s = h(a[i])
    def h2(v): return h(v) + k
    s += h2(1)
out[i] = s
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
g = lambda: a[i]
v = g()
a[i] = 5.0
out[i] = v + g() * 10
---
out[i] = (lambda x, y=2: x * y)(a[i]) + (lambda: 3)()
---
def f(*, p, q=3): return p * q
out[i] = f(p=i) + f(q=1, p=2)
---
def rec(n):
    if n == 0: return 1
    n -= 1
    return n
out[i] = rec(rec(i))
'''.split("---\n")  # noqa: SIM905 (programs are read as text)

REFUSED = [
    ("def f(n):\n    return f(n - 1)\nout[i] = f(2)", "'f' calls itself", "loop"),
    ("out[i] = f(2)\ndef f(n):\n    return n", "'f' is read before it is assigned", "Assign"),
    ("f = lambda: y\nout[i] = f()\ny = 1", "'y' is read before it is assigned", "Assign"),
    ("def make(k):\n    def f(x):\n        return x * k\n    return f\nout[i] = make(2)(3)",
     "'k' is a name of 'make', which has returned", "k=k"),
    ("if i > 3:\n    f = lambda: 1\nelse:\n    f = lambda: 2\nout[i] = f()",
     "'f' has no single type here", "another name"),
    ("def f(n):\n    nonlocal i\n    i = 3\nf(2)", "nonlocal is not supported", "constants"),
    ("@abs\ndef f(n):\n    return n\nout[i] = f(2)", "a decorator of a function", "inlined"),
    ("f = lambda x, y: x\nout[i] = f(2)", "'lambda_' needs the argument 'y'", "are x, y"),
    ("f = lambda x: x\nout[i] = f(2, 3)", "takes 1 arguments, not 2", "parameters are x"),
    ("f = lambda *x: x\nout[i] = f(2)", r"takes \* or \*\* arguments", "named parameters"),
    ("f = lambda x: x\nout[i] = f + 1", "not the function 'lambda_'", "Call it"),
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
