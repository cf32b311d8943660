"""Indices that are negative whatever the arguments are count from the end, as in Python; others
that are negative with the arguments submitted are refused."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError, KernelLanguageError
from tests.unit.frontend.bodies import both, kernel_of, refused
from tests.unit.frontend.running import define, run_both, specialised

A = np.arange(20, dtype=np.float64).reshape(4, 5)
FROM_THE_END = [
    ["out[i, -1] = x[-1] + x[-8]", "x[-2] += 1"],
    ["j = -3", "out[j, j] = x[j + 1]"],
    ["j = -i - 1", "out[j, 0] = x[j]", "out[-1 - i, 1] = x[-2 * i - 2]"],
    ["out[~i, 0] = x[~i] + x[~(i // 2)]", "out[i, ~i] = x[-1 - abs(i - 2)]", "x[n + 1 + ~i] += 1"],
    ["for k in range(n):", "    out[i, -1 - k] = x[-1 - k] + x[-(k + 2)]"],
    ["for k in range(-1, -n - 1, -1):", "    out[i, k] = x[k]"],
    ["for k in range(-3, 0):", "    out[i, k] = x[max(k, -2)] + x[min(k, -x.shape[0])]"],
    ["out[(i + 2) % 4 - 4, 1] = x[i * 3 % 8 - 8]"],
    ["j = np.int64(-1)", "out[i, 0] = x[j - i if i > 1 else -4]"],
    ["t = fq.PrivateArray(3, np.float64)", "t[-3], t[1], t[-1] = 1, x[i], x[i + 1]",
     "for k in range(3):", "    out[i, k] = t[-1 - k] + t[k]"],
    ["r = out[i]", "for k in range(3):", "    r[-1 - k] = x[k]", "r[1:][-3] += 7"],
    ["r = x[2:7:2]", "for k in range(3):", "    out[i, k] = r[-1 - k]", "out[i, 3] = r[-3]"],
    ["r = x[-3:]", "out[i, 0] = len(r)", "out[i, 1] = r[-1] + x[:-5][-1] + len(x[-50:-6])",
     "out[i, 2] = len(x[:-50]) + len(x[4:-6])", "out[i, 3] = x[-1 - i:][0]"],
    ["if i > 1:", "    j = i", "else:", "    j = -1 - i", "if i > 2:", "    j = 3",
     "out[i, 0] = x[j] if j >= 0 else 5"],
]  # fmt: skip


@pytest.mark.parametrize("lines", FROM_THE_END)
def test_as_in_python(lines):
    function = kernel_of(*lines)
    function.__globals__["fq"] = fq
    x = np.array([0.5, -1.5, 2.5, 3.0, -0.25, 8.0, 1.0, -7.5], "float32")
    run_both(function, 4, x, np.zeros((4, 4)), 3)


def test_records_tables_and_atomic_operations():
    p = np.array([(1, (2, 3)), (4, (5, 6))], [("n", "i4"), ("v", "f4", 2)])
    text = (
        "def k(item, p, out):\n    i = item.get_id(0)\n"
        "    p[-1]['v'][-2] = p['v'][-1 - i, -1] + TABLE[-1 - i]\n"
        "    out[i] = p[-2].n + TABLE[-3]\n    fq.AtomicRef(out, -1).fetch_add(2)\n"
    )
    function = define(text, fq=fq, TABLE=(1.0, 2.0, 4.0))
    p_, out = p.copy(), np.zeros(3, np.float32)
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(function), 2, p_, out)
        queue.wait()
    assert p_["v"].tolist() == [[2, 3], [3 + 2, 6]] and out.tolist() == [2, 2, 4]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("out[i, 0] = TABLE[-4]", "the index -4 is outside 'TABLE', which has 3 elements"),
        ("out[i, 0] = fq.PrivateArray(2, np.int32)[-3]", "cannot be indexed"),
    ],
)
def test_too_far_from_the_end_is_refused_where_the_extent_is_known(line, message):
    function = kernel_of(line)
    function.__globals__.update(fq=fq, TABLE=np.ones(3))
    with pytest.raises(KernelLanguageError, match=message):
        specialised(function, 4, A[0], np.zeros((4, 4)), 3)


REFUSED = {
    "of one work-item": ["out[i] = x[i - 1]"],
    "too far from the end": ["out[i] = x[-5]"],
    "of all work-items": ["out[i] = x[i - n]"],
}


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED)
def test_negative_indices_of_which_only_submit_knows_are_refused(lines):
    x, out = np.arange(4.0), np.zeros(4)
    with fq.FusionQueue("reference") as queue:
        kernel = fq.kernel(kernel_of(*lines))
        with pytest.raises(ArgumentError, match="element") as error:
            queue.submit(kernel, 4, x, out, 4)
    message = str(error.value)
    assert "from the end only where it is negative whatever the arguments are" in message
    assert "element [-" in message and "The element's number counts from the first" in message
    assert lines[-1].strip() in message


@pytest.mark.parametrize(
    "lines",
    [
        ["if x[i] > 9:", "    out[i] = x[i - n]"],
        ["while x[i] > 9:", "    out[n - 5] = 1", "    break"],
        ["j = i - 2", "if j < 0:", "    if x[i] > 9:", "        out[i] = x[j]"],
        ["if i * i >= n * n:", "    out[i] = x[i - n]"],
        ["if x[0] < float(n) < 1.5:", "    out[i] = x[i - n]"],
    ],
)
def test_an_access_that_need_not_happen_is_accepted(lines):
    """What lets work-items through may be known to the user only."""
    x, out = np.arange(4.0), np.zeros(4)
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(kernel_of(*lines)), 4, x, out, 4)
        queue.wait()
    assert not out.any()


def test_what_may_be_no_index_at_all_is_accepted():
    x, out = np.arange(4.0), np.zeros(4)
    with fq.FusionQueue("reference") as queue:
        for n, count in ((3, 4), (0, 0), (0, 4), (-2, 4)):
            kernel = fq.kernel(kernel_of("if x[i] > 9:", "    out[i] = x[n + i - 1]"))
            queue.submit(kernel, count, x, out, n)  # an empty range; mixed signs
        for cond in ("i >= n and x[i] > 9", "not (i < n or x[i] < 9)", "x[i] > 9 and i >= n"):
            kernel = fq.kernel(kernel_of(f"if {cond}:", "    out[i] = x[i - n]"))
            queue.submit(kernel, 4, x, out, 4)  # nobody comes so far
            kernel = fq.kernel(kernel_of(f"out[i] = x[i - n] if {cond} else 0.0"))
            queue.submit(kernel, 4, x, out, 4)
        queue.wait()
    assert not out.any()


def test_a_bool_says_what_it_was_assigned_on_the_path_that_was_taken():
    for lines in (
        ["if i > 1:", "    c = i > 2", "else:", "    c = i < n"],
        ["c = i > 2", "for k in range(n - 5):", "    c = i < n"],
        ["c = i > 2", "while i > n:", "    c = i < n"],
    ):
        after = ["if i < n:", "    y = 1.0", "if c:", "    out[i, 0] = y"]
        assert "'y' may not be assigned here" in refused(*lines, *after)
    both("c = i < n", "if c:", "    y = 1", "if i > 1:", "    z = 1", "if c:", "    out[i, 0] = y")
