"""Names that only a loop's body binds, read after a loop that runs for the arguments submitted."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import ArgumentError
from fusionq.ir.nodes import For
from fusionq.ir.walk import statements
from tests.unit.frontend.bodies import both, ir_of, kernel_of, refused

READ = [
    ["for k in range(n):", "    y = x[i] + k", "out[i, 0] = y", "out[i, 1] = k"],
    ["for k in range(n):", "    y = x[k]", "    if y > 1:", "        break", "out[i, 0] = y + k"],
    ["for k in range(n - 1, -1, -1):", "    if k > i:", "        y = 2.5", "        continue",
     "    y = k", "out[i, 0] = y"],
    ["for k in range(n):", "    y = k", "    break", "out[i, 0] = y"],
    ["for k in range(n):", "    for j in range(1, n + 1):", "        y = x[k] * j",
     "    z = y, k", "out[i, 0] = y + j", "out[i, 1] = z[0] + z[1]"],
    ["for k in range(out.shape[1]):", "    row = out[i]", "    row[k] = k", "row[0] = k"],
    ["for k in range(n):", "    y = x[k]", "t = 0", "for j in range(3):",
     "    t = t + y * k", "out[i, 0] = t"],
    ["for k in range(n):", "    y = k", "if i > 1:", "    out[i, 0] = y", "y = 2.5",
     "out[i, 1] = y"],
    ["for k in range(i, i + n):", "    y = k", "out[i, 0] = y"],
    # where it is known that the loop has run, nothing is asked of the arguments
    ["for k in range(n):", "    y = x[k]", "if n > 0:", "    out[i, 0] = y"],
    ["for k in range(n):", "    y = x[k]", "if n < 1:", "    return", "out[i, 0] = y"],
    ["m = n - 1", "for k in range(m):", "    y = k", "if 0 < m:", "    out[i, 0] = y"],
    ["for k in range(i):", "    y = x[k]", "if i > 0:", "    out[i, 0] = y"],
    ["for k in range(i, 2):", "    y = x[k]", "out[i, 0] = y if i < 2 else 7"],
]  # fmt: skip
GUARDED = READ[9:]


@pytest.mark.parametrize("lines", READ)
@pytest.mark.parametrize("n", [1, 3])
def test_as_in_python(lines, n):
    both(*lines, n=n)


@pytest.mark.parametrize("lines", GUARDED)
def test_a_condition_that_says_that_the_loop_has_run(lines):
    both(*lines, n=0)
    assert not [s for s in statements(ir_of(*lines).body) if isinstance(s, For) and s.binds]


@pytest.mark.parametrize(
    "lines",
    [
        ["for k in range(n):", "    if k > 0:", "        y = k", "out[i, 0] = y"],
        ["for k in range(n):", "    if x[k] > i:", "        break", "    y = k", "out[i, 0] = y"],
        ["for k in range(int(x[i])):", "    y = k", "out[i, 0] = y"],
        ["for k in range(n):", "    y = k", "for k in range(i):", "    out[i, 0] = y", "    y = 1"],
        ["for k in range(n):", "    y = k", "if i > 1:", "    y = 2", "out[i, 0] = y"],
        ["while i > n:", "    y = 1", "out[i, 0] = y"],
        ["for k in range(0):", "    y = k", "out[i, 0] = y"],
    ],
)  # fmt: skip
def test_names_that_a_run_of_the_loop_does_not_bind(lines):
    assert "'y' may not be assigned here" in refused(*lines)


X = np.array([0.5, -1.5, 2.5, 3.0], "float32")


@pytest.fixture
def queue():
    with fq.FusionQueue("reference") as made:
        yield made


def read_after(*head):
    return kernel_of(*head, "    y = x[k]", "out[i] = y")


def test_numbers_with_which_the_loop_does_not_run_are_refused(queue):
    kernel, out = fq.kernel(read_after("for k in range(n):")), fq.Buffer(4, np.float32)
    for n in (2, 4, 0, 3, -1, 1):
        if n > 0:
            queue.submit(kernel, 4, X, out, n)
            assert out.numpy().tolist() == [X[n - 1]] * 4
            continue
        with pytest.raises(ArgumentError) as error:
            queue.submit(kernel, 4, X, out, n)
        message = str(error.value)
        assert "'y' is read after a loop that alone binds it, and that loop does not" in message
        assert "finds its range empty" in message
        assert "for k in range(n):" in message
        assert "Give y a value before the loop" in message
        assert __file__ in message


def test_a_loop_that_does_not_run_for_some_work_items(queue):
    kernel, out = fq.kernel(read_after("for k in range(i, n):")), fq.Buffer(4, np.float32)
    queue.submit(kernel, 4, X, out, 4)
    with pytest.raises(ArgumentError, match=r"work-item \(3\) finds its range empty"):
        queue.submit(kernel, 4, X, out, 3)
    queue.submit(kernel, 3, X, out, 3)  # over fewer work-items it does


def test_sizes_with_which_the_loop_does_not_run_are_refused(queue):
    kernel = fq.kernel(read_after("for k in range(1, x.shape[0]):"))
    queue.submit(kernel, 4, X, out := fq.Buffer(4, np.float32), 0)
    assert out.numpy().tolist() == [3.0] * 4
    with pytest.raises(ArgumentError, match="does not run"):
        queue.submit(kernel, 4, X[:1], fq.Buffer(4, np.float32), 0)


def test_a_loop_whose_range_is_not_known_at_submission_is_refused(queue):
    kernel = fq.kernel(read_after("m = int(x[i]) + 9", "for k in range(m):"))
    with pytest.raises(ArgumentError, match="does not follow from sizes, ids and numbers"):
        queue.submit(kernel, 4, X, fq.Buffer(4, np.float32), 3)


def test_changed_numbers_are_checked_too(queue):
    kernel, out = fq.kernel(read_after("for k in range(n):")), fq.Buffer(4, np.float32)
    with fq.fusion(queue) as fusion:
        queue.submit(kernel, 4, X, out, 2)
    with pytest.raises(ArgumentError, match="does not run"):
        fusion.replay(n=0)
    fusion.replay(n=4)
    assert out.numpy().tolist() == [3.0] * 4
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(kernel, 4, X, out, 1)
    with pytest.raises(ArgumentError, match="does not run"):
        graph.update(n=-3)


def pathfinder(item, rows, wall, source, result, columns, first, border, block):
    """Some rows at a time, each work-group with a border that it computes anew."""
    previous, now = fq.PrivateArray(1, np.int64), fq.PrivateArray(1, np.int64)
    x = item.get_local_id(0)
    column = (block - rows * 2) * item.get_group().get_group_id(0) - border + x
    inside = 0 <= column < columns
    if inside:
        previous[0] = source[column]
    for row in range(rows):
        done = False
        if row + 1 <= x and x <= block - row - 2 and inside:
            done = True
            now[0] = previous[0] + wall[columns * (first + row) + column]
        fq.group_barrier(item.get_group())
        if row == rows - 1:
            break
        if done:
            previous[0] = now[0]
        fq.group_barrier(item.get_group())
    if done:
        result[column] = now[0]


def test_a_loop_that_is_left_in_its_last_iteration(queue):
    rows, columns, block = 3, 21, 16
    wall = np.arange(rows * columns, dtype=np.int64) % 7
    source, result = np.arange(columns, dtype=np.int64), np.zeros(columns, np.int64)
    space = fq.NdRange(-(-columns // (block - 2 * rows)) * block, block)
    queue.submit(fq.kernel(pathfinder), space, rows, wall, source, result, columns, 0, rows, block)
    queue.wait()
    assert result.tolist() == (source + wall.reshape(rows, columns).sum(0)).tolist()
