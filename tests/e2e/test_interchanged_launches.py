"""Launches whose fastest dimension is another than the last one of their range: nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.kernels.library import Array
from fusionq.passes.permute_dimensions import inverse
from tests.e2e import against_reference
from tests.e2e.kernels_from_text import from_text
from tests.in_turn import is_whole, one_in
from tests.property.running import examples


@pytest.fixture
def queue(sycl_queue: fq.FusionQueue) -> fq.FusionQueue:
    if not sycl_queue._state.launcher.backend.target.device.jams_rows:
        pytest.skip("lanes of the device's launches have the last dimension")
    return sycl_queue


def run(queue: fq.FusionQueue, kernel: Any, extents: tuple[int, ...], *arguments: Any) -> Any:
    """The order of a launch's dimensions; what it writes to its last argument is what the reference
    backend makes of it, bit for bit."""
    report = against_reference.run(queue, kernel, extents, *arguments)
    (stage,) = report.plan.stages
    assert ("neighbours in dimension" in str(report)) == bool(stage.order)
    assert report.to_dict()["stages"][0]["order"] == list(stage.order)
    return stage.order


def numbers(*shape: int, dtype: str = "int64") -> Array:
    return (np.random.default_rng(shape).standard_normal(shape) * 50).astype(dtype)


@fq.kernel
def turned(item: fq.Item, a: Array, c: Array) -> None:
    x, y = item.get_id(0), item.get_id(1)
    c[y, x] = a[y, x] * 2 + x - 3 * y


@fq.kernel
def inside(item: fq.Item, a: Array, c: Array) -> None:
    x, y = item.get_id(0), item.get_id(1)
    if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
        c[y, x] = a[y, x - 1] + 2 * a[y, x + 1] + 3 * a[y - 1, x] + 5 * a[y + 1, x]
    else:
        c[y, x] = -a[y, x]


@fq.kernel
def sums(item: fq.Item, a: Array, c: Array) -> None:
    x, y = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k, x] * a[y, k % a.shape[1]]
    c[y, x] = total


@fq.kernel
def sizes(item: fq.Item, a: Array, c: Array) -> None:
    """What the range is, and the linear id."""
    x, y = item.get_id(0), item.get_id(1)
    c[y, x] = a[y, x] + item.get_linear_id() * 7 + item.get_range(0) * 1000 + item.get_range(1)


@fq.kernel
def flat(item: fq.Item, a: Array, c: Array) -> None:
    x, y = item.get_id(0), item.get_id(1)
    n = y * a.shape[1] + x
    c[y, x] = a[n // a.shape[1], n % a.shape[1]] + n


KERNELS = (turned, inside, sums, sizes, flat)
SHAPES = ((40, 33), (32, 100), (131, 64), (32, 32))


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_the_result_is_the_same(queue: fq.FusionQueue, kernel: Any) -> None:
    for rows, columns in SHAPES if kernel is not sums or is_whole() else SHAPES[::3]:
        a, c = numbers(rows, columns), numbers(rows, columns)
        order = run(queue, kernel, (columns, rows), a, c)
        assert order == (1, 0) or kernel is flat


def test_a_range_smaller_than_its_arrays(queue: fq.FusionQueue) -> None:
    for columns, rows in ((50, 40), (33, 71)):
        assert run(queue, turned, (columns, rows), numbers(80, 90), numbers(80, 90)) == (1, 0)


def test_narrow_ranges_are_left_alone(queue: fq.FusionQueue) -> None:
    for rows, columns in ((31, 100), (100, 31), (1, 64), (64, 1), (3, 3)):
        assert not run(queue, turned, (columns, rows), numbers(rows, columns),
                       numbers(rows, columns))  # fmt: skip
    for rows, columns in ((64, 64), (31, 64), (40, 40)):
        order = run(queue, turned, (columns, rows), numbers(rows, columns), numbers(rows, columns))
        assert bool(order) == (rows >= 32)


@fq.kernel
def box(item: fq.Item, a: Array, c: Array) -> None:
    x, y, z = item.get_id(0), item.get_id(1), item.get_id(2)
    c[z, y, x] = a[z, y, x] - 2 * a[z, y, max(x - 1, 0)]


@fq.kernel
def middle(item: fq.Item, a: Array, c: Array) -> None:
    y, x, z = item.get_id(0), item.get_id(1), item.get_id(2)
    c[z, y, x] = a[z, y, x] * 3


@fq.kernel
def as_it_is(item: fq.Item, a: Array, c: Array) -> None:
    z, y, x = item.get_id(0), item.get_id(1), item.get_id(2)
    c[z, y, x] = a[z, y, x] * 3


def test_boxes(queue: fq.FusionQueue) -> None:
    a, c = numbers(34, 5, 40), numbers(34, 5, 40)
    assert run(queue, box, (40, 5, 34), a, c) == (1, 2, 0)
    assert run(queue, middle, (5, 40, 34), a, c) == (0, 2, 1)
    assert not run(queue, as_it_is, (34, 5, 40), a, c)


def test_steps_between_elements_and_transposed_views(queue: fq.FusionQueue) -> None:
    a, c = numbers(80, 90), numbers(80, 90)
    run(queue, inside, (40, 40), a[::2, 5:45], c[::2, 5:45])
    run(queue, inside, (40, 40), a[::-2, 45:5:-1], c[::-2, 45:5:-1])
    run(queue, inside, (80, 90), a.T, c.T)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_dtypes(queue: fq.FusionQueue, dtype: str) -> None:
    a, c = numbers(50, 60, dtype=dtype), numbers(50, 60, dtype=dtype)
    assert run(queue, inside, (60, 50), a, c) == (1, 0)


def test_several_submissions_are_one_launch(queue: fq.FusionQueue) -> None:
    a, results = numbers(50, 60), []
    for strategy in ("unfused", "fused"):
        t, c = fq.Buffer((50, 60), np.int64, promote_private=True), np.zeros((50, 60), np.int64)
        with fq.fusion(queue, strategy=strategy) as f:
            queue.submit(turned, (60, 50), a, t)
            queue.submit(sizes, (60, 50), t, c)
        queue.wait()
        results.append(c)
    (stage,) = f.report.plan.stages
    assert stage.order == (1, 0) and f.report.plan.promotions[0].scope == "private"
    np.testing.assert_array_equal(*results)


@fq.kernel
def counted(item: fq.Item, a: Array, c: Array) -> None:
    x, y = item.get_id(0), item.get_id(1)
    c[y, x] = fq.AtomicRef(a, (y, x)).fetch_add(1)


@fq.kernel
def grouped(item: fq.NdItem, a: Array, c: Array) -> None:
    x, y = item.get_global_id(0), item.get_global_id(1)
    c[y, x] = a[y, x]


def test_atomic_operations_and_work_groups_are_left_alone(queue: fq.FusionQueue) -> None:
    a, c = numbers(64, 64), numbers(64, 64)
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(counted, (64, 64), a, c)
    assert not f.report.plan.stages[0].order
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(grouped, fq.NdRange((64, 64), (8, 8)), a, c)
    assert not f.report.plan.stages[0].order


@pytest.mark.usefixtures("every_program_compiled")
def test_profiles_replays_and_plain_submits(queue: fq.FusionQueue) -> None:
    a, wanted, c = numbers(50, 60), np.zeros((50, 60), np.int64), np.zeros((50, 60), np.int64)
    queue.submit(inside, (60, 50), a, wanted)
    with fq.profile(queue) as profile:
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(inside, (60, 50), a, c)
        queue.wait()
    assert f.report.plan.stages[0].order and "inside" in str(profile)
    np.testing.assert_array_equal(c, wanted)
    with fq.fusion(queue) as f:
        queue.submit(inside, (60, 50), a, c)
    c[:] = 0
    f.replay().wait()
    np.testing.assert_array_equal(c, wanted)


def test_checks_name_the_users_work_item(queue: fq.FusionQueue) -> None:
    @fq.kernel
    def beyond(item: fq.Item, n: Array, c: Array) -> None:
        x, y = item.get_id(0), item.get_id(1)
        if x == 41 and y == 7:
            c[y, x + n[0]] = 1
        else:
            c[y, x] = 0

    c = np.zeros((50, 60), np.int64)
    message = r"work-item \(41, 7\) writes element \[7, 1041\]"
    with pytest.raises(fq.ArgumentError, match=message), fq.fusion(queue, check=True):
        queue.submit(beyond, (60, 50), np.array([1000]), c)


@fq.kernel
def rows(item: fq.Item, a: Array, c: Array) -> None:
    y, x = item.get_id(0), item.get_id(1)
    c[y, x] = a[y, x] * 5 + x


@fq.kernel
def shifted(item: fq.Item, a: Array, c: Array) -> None:
    x, y = item.get_id(0), item.get_id(1)
    c[y, x] = a[max(y - 1, 0), x] + a[y, min(x + 1, a.shape[1] - 1)] * 3


@fq.kernel
def total(item: fq.Item, a: Array, r: Array) -> None:
    x, y = item.get_id(0), item.get_id(1)
    r.combine(a[y, x])


def lists(queue: fq.FusionQueue, strategy: Any, submit: Any, *shape: int) -> fq.Report:
    """The report of a list by ``strategy``, which leaves what the reference backend leaves."""
    results = []
    with fq.FusionQueue("reference") as reference:
        for each, asked in ((reference, "unfused"), (queue, strategy)):
            buffers = [fq.Buffer(numbers(*shape) + k) for k in range(4)]
            with fq.fusion(each, strategy=asked) as f:
                submit(each, *buffers)
            results.append([b.numpy().copy() for b in buffers])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)
    return f.report


STRATEGIES = ("auto", "fused", "megakernel", "overlap", "sequence")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_time_steps_by_all_strategies(queue: fq.FusionQueue, strategy: Any) -> None:
    def steps(q: fq.FusionQueue, a: Any, b: Any, *others: Any) -> None:
        columns, count = a.shape[1], a.shape[0]
        for _ in range(3):
            q.submit(inside, (columns, count), a, b)
            q.submit(shifted, (columns, count), b, a)

    for shape in one_in(
        2, ((40, 33), (33, 90), (20, 64), (70, 80)), STRATEGIES.index(strategy) % 2
    ):
        report = lists(queue, strategy, steps, *shape)
        if strategy == "megakernel":
            assert report.strategy == "megakernel"
        elif strategy == "sequence":
            assert bool(report.plan.stages[0].order) == (shape[0] >= 32)


def test_kernels_of_both_orders_are_one_launch(queue: fq.FusionQueue) -> None:
    def chain(q: fq.FusionQueue, a: Any, b: Any, c: Any, d: Any) -> None:
        q.submit(turned, (a.shape[1], a.shape[0]), a, b)
        q.submit(rows, a.shape, b, c)
        q.submit(sizes, (a.shape[1], a.shape[0]), c, d)

    for strategy in STRATEGIES:
        report = lists(queue, strategy, chain, 50, 60)
        if strategy == "fused":
            assert [stage.order for stage in report.plan.stages] == [(1, 0)]
    assert not any(stage.order for stage in lists(queue, "fused", chain, 20, 60).plan.stages)


def test_reductions_stay_as_they_are(queue: fq.FusionQueue) -> None:
    values = numbers(50, 60, dtype="float32")
    found = []
    for q in (queue, fq.FusionQueue("reference")):
        out = fq.Buffer(np.zeros(1, np.float32))
        with fq.fusion(q, strategy="unfused") as f:
            q.submit(total, (60, 50), values, fq.Reduction(out, "add"))
        assert not any(stage.order for stage in f.report.plan.stages)
        found.append(out.numpy()[0])
    assert found[0] == found[1]


def test_orders_are_undone() -> None:
    for order in ((1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1)):
        assert tuple(order[d] for d in inverse(order)) == tuple(range(len(order)))


LINES = st.lists(
    st.sampled_from(
        (
            "s += a[y, x]",
            "s += x * 3 + y",
            "if x > 0: s += a[y, x - 1]",
            "if y < item.get_range(1) - 1: s -= a[y + 1, x]",
            "if a[y, x] > 0: s = -s",
            "c[y, x] = s",
            "s += c[y, x]",
            "for k in range(3): s += a[y, (x + k) % a.shape[1]]",
            "s += item.get_linear_id()",
        )
    ),
    min_size=1,
    max_size=5,
)
AROUND = ("", "if 1 <= x < a.shape[1] - 1:", "if y > 2:", "if x + y < 70:")


@pytest.mark.slow
@examples(100)
@given(LINES, st.sampled_from(AROUND), st.integers(1, 70), st.integers(1, 70))
def test_random_bodies(
    queue: fq.FusionQueue, lines: list[str], around: str, rows: int, columns: int
) -> None:
    pad = "    " if around else ""
    text = [
        "def random_body(item: fq.Item, a: Array, c: Array) -> None:",
        "    x, y = item.get_id(0), item.get_id(1)",
        "    s = np.int64(0)",
        *([f"    {around}"] if around else []),
        *(f"    {pad}{line}" for line in lines),
        "    c[y, x] = c[y, x] + s",
    ]
    kernel = from_text("\n".join(text) + "\n")
    run(queue, kernel, (columns, rows), numbers(rows, columns), numbers(rows, columns))
