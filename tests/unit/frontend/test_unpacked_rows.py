"""Rows as tuples: x, y, z = a[i], and a[i] = x, y, z."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError, KernelLanguageError
from tests.unit.frontend.running import define, run_both

ROWS = np.arange(12.0, dtype=np.float32).reshape(4, 3) % 5 - 1
MATRICES = np.arange(16.0).reshape(4, 2, 2) ** 2 % 11 + 1


def made(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    return define(f"def k(item, a, m, out):\n{body}", fq=fq)


@pytest.mark.parametrize(
    "lines",
    [
        ["x, y, z = a[i]", "out[i, 0] = x + y * 10 + z * 100"],
        ["x, y = a[i, 1:]", "out[i, 1] = x - y"],
        ["x, out[i, 0], z = a[3 - i]", "out[i, 1] = x - z"],
        ["(b, c), (d, e) = m[i]", "out[i, 0] = b * e - c * d"],
        ["u, v = m[i]", "out[i, 0] = u[1] - v[0]", "m[i, 0, 1] = 7", "out[i, 1] = u[1]"],
        ["k, (x, y, z) = i, a[i]", "out[i, 2] = k * x + y - z"],
        ["for x, y, z in a[i:]:", "    out[i, 0] += x * 2 + y - z"],
        ["x, y, z = a[i]", "a[i, 0] = z", "a[i, 1] = x", "a[i, 2] = y"],
        ["out[i] = a[i, 2], i, 0.5"],
        ["out[i, 1:] = i, a[i, 0]"],
        ["out[i, ::2] = (a[i, 0],)"],
        ["a[i] = a[i, 2], a[i, 0], a[i, 1]"],
        ["m[i] = (m[i, 1, 1], m[i, 1, 0]), (m[i, 0, 1], m[i, 0, 0])"],
        ["out[i] = out[i, 1], a[i, 0] > 1, np.float32(2) * i"],
    ],
)
def test_as_in_python(lines):
    run_both(made(*lines), 4, ROWS, MATRICES, np.zeros((4, 3)))


def test_lengths_that_are_known():
    kind = np.dtype([("m", "f8", (2, 2))])
    records = np.zeros(3, kind)
    records["m"] = MATRICES[:3]
    swap = define(
        "def k(item, p):\n    m = p[item.get_id(0)].m\n    u, v = m\n    m[:] = m[1], u * 2\n"
        "    q = fq.PrivateArray(2, np.float64)\n    q[:] = v\n    x, y = q\n    m[0, 0] = x - y\n",
        fq=fq,
    )
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(swap), 3, records).wait()
    expected = np.stack([MATRICES[:3, 1], MATRICES[:3, 0] * 2], 1)
    expected[:, 0, 0] = expected[:, 1, 0] - expected[:, 1, 1]
    np.testing.assert_array_equal(records["m"], expected)


@pytest.mark.parametrize("line", ["x, y, z = a[i]", "a[i] = i, 1, 2"])
@pytest.mark.parametrize("columns", [2, 4])
def test_other_lengths(line, columns):
    """Are refused by submit, as accesses outside of the array."""
    with (
        fq.FusionQueue("reference") as queue,
        pytest.raises(ArgumentError, match="outside array 'a'"),
    ):
        queue.submit(fq.kernel(made(line)), 4, np.zeros((4, columns)), MATRICES, np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x, y = fq.PrivateArray(3, np.int8)", "cannot be unpacked"),
        ("x, y = a[i, 0]", "a number of type float32 cannot be unpacked into 2 names"),
        ("a[i, 0] = 1, 2", "a number is needed here, not a tuple of 2"),
        ("a[i] = (1, 2), 3, 4", "a number is needed here, not a tuple of 2"),
        ("m[i] = m[i, 1], m[i, 0]", "length is not known"),
    ],
)
def test_refused(line, message):
    with fq.FusionQueue("reference") as queue, pytest.raises(KernelLanguageError, match=message):
        queue.submit(fq.kernel(made(line)), 4, ROWS.copy(), MATRICES.copy(), np.zeros((4, 3)))
