"""``reversed``, ``enumerate`` and ``zip`` of ranges, and the ``else`` of loops: as in Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

BOUNDS = st.integers(-6, 9)
STEPS = st.integers(-4, 4).filter(bool)
NUMBERS = st.one_of(BOUNDS.map(str), BOUNDS.map("n + {}".format), BOUNDS.map("i + {}".format))
RANGES = st.one_of(
    NUMBERS.map("range({})".format),
    st.tuples(NUMBERS, NUMBERS).map(lambda b: f"range({b[0]}, {b[1]})"),
    st.tuples(NUMBERS, NUMBERS, STEPS).map(lambda b: f"range({b[0]}, {b[1]}, {b[2]})"),
)
HEADERS = st.one_of(
    RANGES.map("k in reversed({})".format),
    RANGES.map("m, k in enumerate({})".format),
    st.tuples(RANGES, RANGES).map(lambda r: f"m, k in zip({r[0]}, {r[1]})"),
    st.tuples(RANGES, RANGES).map(lambda r: f"m, k in zip(reversed({r[0]}), {r[1]})"),
    st.tuples(RANGES, RANGES).map(lambda r: f"m, (j, k) in enumerate(zip({r[0]}, {r[1]}))"),
    RANGES.map("m, k in zip(a, {})".format),
    RANGES.map("k, m in zip({}, a)".format),
    st.lists(BOUNDS, min_size=1, max_size=3).map(lambda t: f"m, k in zip(range(3), {tuple(t)})"),
)


@settings(max_examples=60, deadline=None)
@given(HEADERS, st.integers(0, 3))
def test_loops_go_over_what_python_goes_over(header, n):
    used = "k * 7 + m" if " m" in f" {header}" and "m" in header.split(" in ")[0] else "k * 7"
    text = (
        "def k(item, a, n, out):\n    i = item.get_id(0)\n    s = 1\n"
        f"    for {header}:\n        s = s * 3 % 1009 + {used}\n    out[i] = s\n"
    )
    a = np.arange(5, dtype=np.int64) * 3
    run_both(define(text), 4, a, np.int64(n), np.zeros(4, np.int64))


def test_ids_of_ranges_are_affine():
    """Each work-item's element is known, so that what follows joins it."""

    @fq.kernel
    def sweep(item, a, out):
        i = item.get_id(0)
        for k in reversed(range(a.shape[1])):
            out[i, k] = a[i, k] + 1

    with fq.FusionQueue("reference") as queue:
        a, b, c = (fq.Buffer(np.arange(24.0).reshape(4, 6)) for _ in range(3))
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(sweep, 4, a, b)
            queue.submit(sweep, 4, b, c)
        assert f.report.strategy == "fused"
        np.testing.assert_array_equal(c.numpy(), np.arange(24.0).reshape(4, 6) + 2)


ELSE = {
    "with break": """
    for k in range(6):
        if a[k] > i:
            out[i] = k
            break
    else:
        out[i] = -1
""",
    "no break": """
    for k in range(i):
        out[i] += k
    else:
        out[i] += 100
""",
    "while": """
    k = 0
    while k < 6:
        if a[k] > i:
            break
        k += 1
    else:
        k = -5
    out[i] = k
""",
    "nested": """
    for k in range(3):
        for m in range(4):
            if a[k] + a[m] > 2 * i:
                break
        else:
            if k == 1:
                break
            continue
        out[i] += k * 10 + m
    else:
        out[i] += 1000
""",
    "a break in the else of an inner loop": """
    for k in range(4):
        for m in range(2):
            if a[m] == i:
                break
        else:
            break
        out[i] += 1
    else:
        out[i] += 50
""",
    "tuple": """
    for k in (3, 1, 4):
        if a[k] == i:
            break
    else:
        k = 9
    out[i] = k
""",
    "name that is taken": """
    left0 = 4
    for k in range(3):
        if a[k] > i:
            break
    else:
        left0 = 7
    out[i] = left0
""",
    "return": """
    for k in range(5):
        if a[k] > i:
            return
        if a[k] == i:
            break
    else:
        out[i] = 2
    out[i] += 1
""",
}


@pytest.mark.parametrize("body", ELSE.values(), ids=ELSE)
def test_the_else_of_a_loop_runs_where_no_break_ended_it(body):
    function = define(f"def k(item, a, out):\n    i = item.get_id(0)\n{body}")
    a = np.array([0, 2, 1, 5, 3, 4, 6], np.int64)
    run_both(function, 8, a, np.zeros(8, np.int64))
    outputs = []
    for target in ("reference", None):
        with fq.FusionQueue(target) if target else fq.FusionQueue() as queue:
            out = fq.Buffer(np.zeros(8, np.int64))
            queue.submit(fq.kernel(function), 8, fq.Buffer(a), out)
            outputs.append(out.numpy().copy())
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("for k in reversed(range(0, 9, a[0])):", "a range whose step is not known"),
        ("for m, k in enumerate(range(0, 9, a[0])):", "a range whose step is not known"),
        ("for k in reversed(range(0, 9, 0)):", "the step of range is 0"),
        ("for k in reversed(a[0]):", "goes over tuples, or over arrays and ranges"),
    ],
)
def test_what_is_refused(loop, message):
    text = f"def k(item, a, out):\n    {loop}\n        out[0] = 1\n"
    with pytest.raises(KernelLanguageError, match=message):
        specialised(define(text), 1, np.zeros(4, np.int64), np.zeros(1, np.int64))
