"""Work-groups whose work-items wait for each other, and which are no whole number of vectors:
launches on CPUs have more work-items, of which nobody hears."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import one_in

pytestmark = pytest.mark.usefixtures("group_functions")

SIZES = (1, 7, 8, 9, 15, 17, 100, 250, 257)


@fq.kernel
def tree(item: fq.NdItem, x, s: fq.LocalAccessor, n, sums, places):
    """A sum by a tree of any length, under a guard, and the ids of each work-item."""
    i, own, size = item.get_global_id(0), item.get_local_id(0), item.get_local_range(0)
    s[own] = np.float32(0)
    if i < n:
        s[own] = x[i]
    fq.group_barrier(item.get_group())
    width = size
    while width > 1:
        half = (width + 1) // 2
        if own + half < width:
            s[own] += s[own + half]
        fq.group_barrier(item.get_group())
        width = half
    if i >= n:
        return
    places[i, 0] = item.get_local_linear_id()
    places[i, 1] = item.get_global_range(0) + i
    sums[i] = s[0] + np.float32(item.get_group().get_group_id(0))


def expected_sums(x: np.ndarray, size: int, groups: int) -> np.ndarray:
    padded = np.zeros(groups * size, np.float32)
    padded[: x.size] = x
    rows, width = padded.reshape(groups, size), size
    while width > 1:
        half = (width + 1) // 2
        rows[:, : width - half] += rows[:, half:width]
        width = half
    found = rows[:, 0] + np.arange(groups, dtype=np.float32)
    return np.repeat(found, size)[: x.size]


def test_trees_of_any_length(queue):
    for size in one_in(2, SIZES):
        groups = 3
        n = groups * size - min(size - 1, 2)
        x = np.random.default_rng(size).standard_normal(n).astype(np.float32)
        sums, places = fq.Buffer(np.full(n + 9, -7.0, np.float32)), fq.Buffer((n, 2), np.int64)
        tile = fq.LocalAccessor(size, np.float32)
        queue.submit(tree, fq.NdRange(groups * size, size), fq.Buffer(x), tile, n, sums, places)
        np.testing.assert_array_equal(sums.numpy()[:n], expected_sums(x, size, groups))
        assert (sums.numpy()[n:] == -7).all(), size
        i = np.arange(n)
        np.testing.assert_array_equal(places.numpy()[:, 0], i % size)
        np.testing.assert_array_equal(places.numpy()[:, 1], i + groups * size)


@fq.kernel
def transposed(item: fq.NdItem, a, tile: fq.LocalAccessor, count, b):
    """Each work-group counts its work-items, and turns what it has over."""
    i, j = item.get_global_id(0), item.get_global_id(1)
    y, x = item.get_local_id(0), item.get_local_id(1)
    place = y * item.get_local_range(1) + x
    tile[place] = a[i, j]
    fq.AtomicRef(count, item.get_group().get_group_linear_id()).fetch_add(1)
    for turn in range(2):
        fq.group_barrier(item.get_group())
        value = tile[item.get_local_range(0) * item.get_local_range(1) - 1 - place]
        fq.group_barrier(item.get_group())
        tile[place] = value + turn
    b[i, j] = tile[place] + item.get_local_linear_id()


@pytest.mark.parametrize("local", [(3, 11), (1, 250), (2, 33), (5, 7), (16, 9)])
def test_planes(queue, local):
    rows, columns = local
    groups = 2, 3
    shape = rows * groups[0], columns * groups[1]
    a = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    count, b = fq.Buffer(np.zeros(6, np.int32)), fq.Buffer(np.zeros(shape, np.int32))
    tile = fq.LocalAccessor(rows * columns, np.int32)
    queue.submit(transposed, fq.NdRange(shape, local), fq.Buffer(a), tile, count, b)
    places = np.tile(np.arange(rows * columns).reshape(local), groups)
    np.testing.assert_array_equal(b.numpy(), a + places + 1)
    assert (count.numpy() == rows * columns).all()


@fq.kernel
def turned_in_groups(item: fq.NdItem, a, tile: fq.LocalAccessor, b):
    z, y, x = item.get_global_id(0), item.get_global_id(1), item.get_global_id(2)
    size = item.get_local_range(0) * item.get_local_range(1) * item.get_local_range(2)
    place = item.get_local_linear_id()
    tile[place] = a[z, y, x] + 3 * item.get_local_id(1)
    fq.group_barrier(item.get_group())
    b[z, y, x] = tile[size - 1 - place] + item.get_local_id(0) - item.get_local_id(2)


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
@pytest.mark.parametrize("local", [(1, 3, 11), (2, 3, 13), (3, 1, 9), (2, 2, 33), (2, 5, 7)])
def test_rows_of_work_groups_in_stages(queue, local, strategy) -> None:
    shape = 2 * local[0], 3 * local[1], 2 * local[2]
    values = np.random.default_rng(3).integers(-9, 9, shape)
    found = []
    for own, way in ((queue, strategy), (fq.FusionQueue("reference"), "unfused")):
        a, b = fq.Buffer(values), fq.Buffer(shape, np.int64)
        tile = fq.LocalAccessor(local[0] * local[1] * local[2], np.int64)
        with fq.fusion(own, strategy=way):
            for one, other in ((a, b), (b, a), (a, b)):
                own.submit(turned_in_groups, fq.NdRange(shape, local), one, tile, other)
        found.append([a.numpy().copy(), b.numpy().copy()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@fq.kernel
def scaled(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[i, j] * np.float32(1.5)


@fq.kernel
def total_and_most(item: fq.Item, b, total, most):
    i, j = item.get_id(0), item.get_id(1)
    total += b[i, j]
    most.combine(b[i, j])


def reduced(queue: fq.FusionQueue, strategy: str, shape: tuple[int, int]) -> list[bytes]:
    a = fq.Buffer(np.random.default_rng(3).standard_normal(shape).astype(np.float32))
    b, total, most = (
        fq.Buffer(shape, np.float32),
        fq.Buffer(1, np.float32),
        fq.Buffer(1, np.float32),
    )
    with fq.fusion(queue, strategy=strategy):
        queue.submit(scaled, shape, a, b)
        queue.submit(
            total_and_most, shape, b, fq.Reduction(total, "add", initialize=True),
            fq.Reduction(most, "maximum", initialize=True),
        )  # fmt: skip
    return [x.numpy().tobytes() for x in (b, total, most)]


SHAPES = [(7, 600), (5, 1000), (3, 333), (40, 17), (9, 5), (4, 1030)]
STRATEGIES = ("unfused", "fused", "megakernel")


@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_of_planes_have_the_bits_of_the_reference_backend(queue, shape):
    with fq.FusionQueue("reference") as reference:
        expected = reduced(reference, "unfused", shape)
    for strategy in one_in(3, STRATEGIES, first=SHAPES.index(shape) % 3):
        assert reduced(queue, strategy, shape) == expected, strategy


def test_zeros_of_either_sign_are_summed_as_they_are(queue):
    """An identity in the place of padding would make 0 of -0."""
    shape = 2, 17
    a = fq.Buffer(np.full(shape, -0.0, np.float32))
    total = fq.Buffer(np.full(1, -0.0, np.float32))
    most = fq.Buffer(np.full(1, -np.inf, np.float32))
    queue.submit(
        total_and_most, shape, a, fq.Reduction(total, "add"), fq.Reduction(most, "maximum")
    )
    with fq.FusionQueue("reference") as reference:
        other = fq.Buffer(np.full(1, -0.0, np.float32))
        unused = fq.Buffer(np.full(1, -np.inf, np.float32))
        b = fq.Buffer(np.full(shape, -0.0, np.float32))
        reference.submit(
            total_and_most, shape, b, fq.Reduction(other, "add"), fq.Reduction(unused, "maximum")
        )
        assert other.numpy().tobytes() == total.numpy().tobytes()
        assert unused.numpy().tobytes() == most.numpy().tobytes()


@fq.kernel
def functions(item: fq.NdItem, a, out):
    i, group = item.get_global_id(0), item.get_group()
    source = item.get_local_range(0) // 2
    if i % 3 == 0:
        a[i] = a[i] - 1
    out[i, 0] = fq.reduce_over_group(group, a[i], "add")
    out[i, 1] = fq.reduce_over_group(group, a[i], "min")
    out[i, 2] = fq.reduce_over_group(group, a[i], "max")
    out[i, 3] = fq.inclusive_scan_over_group(group, a[i], "add")
    out[i, 4] = fq.exclusive_scan_over_group(group, a[i], "max")
    out[i, 5] = fq.any_of_group(group, a[i] > 7)
    out[i, 6] = fq.all_of_group(group, a[i] > -100)
    out[i, 7] = fq.group_broadcast(group, a[i], source)
    for k in range(2):
        out[i, 8 + k] = fq.reduce_over_group(group, a[i] * (k + 1), "mul")
    out[i, 10] = fq.reduce_over_group(group, a[i] != 3, "and")


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
@pytest.mark.parametrize("size", [7, 9, 100, 250])
def test_functions_of_work_groups(queue, size, dtype):
    values = np.random.default_rng(size).integers(0, 9, 3 * size).astype(dtype)
    found = []
    for own in (queue, fq.FusionQueue("reference")):
        a, out = fq.Buffer(values), fq.Buffer((3 * size, 11), np.int64)
        own.submit(functions, fq.NdRange(3 * size, size), a, out)
        found.append(out.numpy().copy())
    np.testing.assert_array_equal(*found)


@fq.kernel
def functions_of_planes(item: fq.NdItem, a, out):
    i, j, group = item.get_global_id(0), item.get_global_id(1), item.get_group()
    out[i, j, 0] = fq.reduce_over_group(group, a[i, j], "add")
    out[i, j, 1] = fq.inclusive_scan_over_group(group, a[i, j], "add")
    out[i, j, 2] = fq.exclusive_scan_over_group(group, a[i, j], "min")
    out[i, j, 3] = fq.any_of_group(group, a[i, j] == 8)


@pytest.mark.parametrize("local", [(3, 11), (2, 33), (4, 9)])
def test_functions_of_planes(queue, local):
    shape = 2 * local[0], 2 * local[1]
    values = np.random.default_rng(3).integers(0, 9, shape)
    found = []
    for own in (queue, fq.FusionQueue("reference")):
        out = fq.Buffer((*shape, 4), np.int64)
        own.submit(functions_of_planes, fq.NdRange(shape, local), fq.Buffer(values), out)
        found.append(out.numpy().copy())
    np.testing.assert_array_equal(*found)


@fq.kernel
def along_flat_rows(item: fq.Item, a, b, w):
    """A row of a flat plane, turned over, beside its neighbour."""
    i = item.get_id(0)
    y, x = i // w, i % w
    left = a[i - 1] if x > 0 else a[i]
    b[i] = a[y * w + w - 1 - x] + left * (y + 2)


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
@pytest.mark.parametrize("rows, width", [(9, 33), (40, 17), (4, 331), (6, 256)])
def test_flat_rows_stay_in_their_work_groups(queue, rows, width, strategy) -> None:
    a = np.random.default_rng(width).integers(-9, 9, rows * width)
    first, second = fq.Buffer(a), fq.Buffer(a.size, np.int64)
    with fq.fusion(queue, strategy=strategy):
        queue.submit(along_flat_rows, a.size, first, second, width)
        queue.submit(along_flat_rows, a.size, second, first, width)
    plane = a.reshape(rows, width)
    for _ in range(2):
        left = np.concatenate([plane[:, :1], plane[:, :-1]], axis=1)
        plane = plane[:, ::-1] + left * (np.arange(rows)[:, None] + 2)
    np.testing.assert_array_equal(first.numpy().reshape(rows, width), plane)


@pytest.mark.parametrize("size", [250, 256])
def test_profiles_record_each_group_once(queue, size):
    n = 3 * size
    x, sums = fq.Buffer(np.ones(n, np.float32)), fq.Buffer(n, np.float32)
    places = fq.Buffer((n, 2), np.int64)
    tile = fq.LocalAccessor(size, np.float32)
    with fq.profile(queue) as profile, fq.fusion(queue):
        queue.submit(tree, fq.NdRange(n, size), x, tile, n, sums, places)
    queue.wait()
    expected = np.arange(size, size + 3, dtype=np.float32)
    np.testing.assert_array_equal(sums.numpy(), np.repeat(expected, size))
    steps = (size - 1).bit_length()
    barriers = sum(r.count for r in profile.statistics if r.kind == "barrier")
    assert barriers in (0, 3 * (1 + steps))
