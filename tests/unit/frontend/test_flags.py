"""Names that are bound wherever a flag is true."""

import pytest

from tests.unit.frontend.bodies import both, refused

SEARCH = ["f = False", "for k in range(n):", "    if x[k] > i:", "        f = True",
          "        y = k", "        break"]  # fmt: skip
READ = [
    [*SEARCH, "if f:", "    out[i, 0] = y"],
    [*SEARCH, "if not f:", "    return", "out[i, 0] = y"],
    [*SEARCH, "if f and y > 0:", "    out[i, 0] = y + 1"],
    [*SEARCH, "out[i, 0] = y if f else -1"],
    [*SEARCH, "g = f and x[i] > 0", "if g:", "    out[i, 0] = y + 1"],
    [*SEARCH, "if x[i] > 0:", "    z = 1", "else:", "    z = 2", "if f:", "    out[i, 0] = y + z"],
    [*SEARCH, "if x[i] > 0:", "    y = 25", "if f:", "    out[i, 0] = y"],
    ["f, k = False, 0", "while k < n:", "    if x[k] > i:", "        f, y = True, x[k]",
     "        break", "    if x[k] < -i:", "        f, y = True, k", "        break", "    k += 1",
     "if f:", "    out[i, 0] = y"],
    ["for j in range(3):", *(f"    {line}" for line in SEARCH), "    if f:",
     "        out[i, j] = y + 1"],
    ["f = False", "if x[i] > 0:", "    f, y = True, x[i]", "elif x[i] > -2:", "    f, y = True, 7",
     "if f:", "    out[i, 0] = y"],
    ["f = False", "if x[i] > 0:", "    f = True", "    y = x[i], i", "if f:",
     "    out[i, 0] = y[0] + y[1]"],
    ["for k in (1, 2, 3):", "    f = False", "    if x[k] > i:", "        f = True",
     "        y = k", "    if f:", "        out[i, k] = y"],
]  # fmt: skip


@pytest.mark.parametrize("lines", READ)
@pytest.mark.parametrize("n", [0, 1, 3, 6])
def test_as_in_python(lines, n):
    both(*lines, n=n)


@pytest.mark.parametrize(
    "lines",
    [
        # true on a path that does not bind the name
        [*SEARCH, "    if x[k] < -3:", "        f = True", "if f:", "    out[i, 0] = y"],
        [*SEARCH, "    if x[k] < -3:", "        f = True", "        break", "if f:",
         "    out[i, 0] = y"],
        ["f = False", "if x[i] > 0:", "    f, y = True, 1", "elif x[i] > -2:", "    f = True",
         "if f:", "    out[i, 0] = y"],
        # of a value that is not known before the loop, or assigned again after it
        ["f = i > 2", *SEARCH[1:], "if f:", "    out[i, 0] = y"],
        [*SEARCH, "f = x[i] > 3", "if f:", "    out[i, 0] = y"],
        [*SEARCH, "if x[i] > 3:", "    f = True", "if f:", "    out[i, 0] = y"],
        [*SEARCH, "for k in range(n):", "    if f:", "        out[i, 0] = y", "    f = x[k] > i"],
        # where it is false, or nothing is asked
        [*SEARCH, "if not f:", "    out[i, 0] = y"],
        [*SEARCH, "out[i, 0] = y"],
        [*SEARCH, "if f or x[i] > 0:", "    out[i, 0] = y"],
        # bound in an earlier turn, which the flag of this one does not say
        ["g = True", "for j in range(2):", *(f"    {line}" for line in SEARCH), "    g = g and f",
         "if g:", "    out[i, 0] = y"],
    ],
)  # fmt: skip
def test_where_the_flag_does_not_say_it(lines):
    assert "'y' may not be assigned here" in refused(*lines)
