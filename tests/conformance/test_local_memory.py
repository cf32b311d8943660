"""Kernels that share local memory, on each device, against NumPy."""

import numpy as np
import pytest

import fusionq as fq
from tests.conformance.running import submit
from tests.conformance.test_operators import types_of
from tests.unit.groups.kernels import (
    reverse_in_group,
    rotate_in_box,
    stencil,
    transpose_tiles,
    two_tiles,
)
from tests.unit.tables import for_each

RNG = np.random.default_rng(3)


def numbers(shape, dtype="float32"):
    return RNG.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("size", [1, 2, 7, 16, 64])
@pytest.mark.parametrize("groups", [1, 3])
def test_reverse_in_group(queue, size, groups):
    x, out = numbers(size * groups), fq.Buffer(size * groups, np.float32)
    space = fq.NdRange(size * groups, size)
    submit(queue, reverse_in_group, space, x, fq.LocalAccessor(size, np.float32), out)
    assert out.numpy().tolist() == x.reshape(groups, size)[:, ::-1].ravel().tolist()


def test_every_dtype_in_local_memory(queue, backend):
    dtypes = tuple(str(type) for type in types_of(backend))
    inputs = {d: numbers(24, d) if d != "bool" else numbers(24) > 50 for d in dtypes}
    outputs = {dtype: fq.Buffer(24, dtype) for dtype in dtypes}
    kernel = for_each(reverse_in_group, ("x", "tile", "out"), dtypes)
    arguments = [
        argument
        for dtype, x in inputs.items()
        for argument in (x, fq.LocalAccessor(8, dtype), outputs[dtype])
    ]
    submit(queue, kernel, fq.NdRange(24, 8), *arguments)
    for dtype, x in inputs.items():
        wanted = x.reshape(3, 8)[:, ::-1]
        assert outputs[dtype].numpy().tobytes() == wanted.tobytes(), dtype


def test_a_store_to_local_memory_converts(queue):
    x, out = np.array([1.75, -2.5, 300.0, np.nan]), fq.Buffer(4, np.float64)
    submit(queue, reverse_in_group, fq.NdRange(4, 4), x, fq.LocalAccessor(4, np.int8), out)
    assert out.numpy().tolist() == [0, 127, -2, 1]


@pytest.mark.parametrize(("side", "shape"), [(1, (2, 3)), (4, (8, 12)), (8, (24, 8))])
def test_transpose_by_tiles(queue, side, shape):
    x, out = numbers(shape), fq.Buffer(shape[::-1], np.float32)
    tile = fq.LocalAccessor((side, side), np.float32)
    submit(queue, transpose_tiles, fq.NdRange(shape, (side, side)), x, tile, out)
    assert (out.numpy() == x.T).all()


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
def test_stencil_with_halo(queue, target, n):
    if target == "dpex":
        pytest.skip("the compiler of oneAPI 2024.2 crashes on what numba-dpex makes of it")
    x, out = numbers(n), fq.Buffer(n, np.float32)
    space = fq.NdRange(-(-n // 16) * 16, 16)
    submit(queue, stencil, space, x, fq.LocalAccessor(18, np.float32), out)
    padded = np.pad(x, 1)
    assert (out.numpy() == (padded[:-2] + padded[1:-1] + padded[2:]) / np.float32(3)).all()


def test_three_dimensions(queue):
    x, out = numbers((4, 2, 6), "int32"), fq.Buffer((4, 2, 6), np.int32)
    box = fq.LocalAccessor((2, 2, 2), np.int32)
    submit(queue, rotate_in_box, fq.NdRange((4, 2, 6), (2, 2, 2)), x, box, out)
    found = out.numpy()
    for corner in np.ndindex(2, 1, 3):
        part = tuple(slice(2 * c, 2 * c + 2) for c in corner)
        assert (found[part] == x[part].transpose(1, 2, 0)).all()


def test_two_accessors_and_values_across_barriers(queue):
    x = numbers(12, "int64") - 50
    out = fq.Buffer(12, np.int64)
    accessors = fq.LocalAccessor(6, np.int64), fq.LocalAccessor(6, bool)
    submit(queue, two_tiles, fq.NdRange(12, 6), x, *accessors, out)
    wanted = []
    for part in x.reshape(2, 6):
        whole = part
        for distance in (1, 2):
            whole = part + np.roll(np.where(part > 0, whole, 0), -distance)
        wanted += whole.tolist()
    assert out.numpy().tolist() == wanted


def test_one_accessor_twice_is_two_arrays(queue):
    @fq.kernel
    def swap(item: fq.NdItem, a, b, out):
        local = item.get_local_id(0)
        a[local] = local
        b[local] = 10 * local
        fq.group_barrier(item.get_group())
        out[item.get_global_id(0)] = a[3 - local] + b[local]

    out, tile = fq.Buffer(4, np.int32), fq.LocalAccessor(4, np.int32)
    submit(queue, swap, fq.NdRange(4, 4), tile, tile, out)
    assert out.numpy().tolist() == [3, 12, 21, 30]


def test_private_arrays(queue):
    @fq.kernel
    def sort_of(item: fq.Item, x, out):
        i = item.get_id(0)
        best = fq.PrivateArray(3, np.int32, fill_zeros=True)
        for k in range(x.shape[1]):
            value = x[i, k]
            for place in range(3):
                if value > best[place]:
                    kept = best[place]
                    best[place] = value
                    value = kept
        for place in range(3):
            out[i, place] = best[place]

    x, out = numbers((5, 9), "int32"), fq.Buffer((5, 3), np.int32)
    submit(queue, sort_of, 5, x, out)
    assert (out.numpy() == np.sort(x)[:, :-4:-1]).all()


def test_the_size_of_local_memory_is_checked(queue):
    limit = queue.device.local_memory_bytes
    x, out = numbers(4), fq.Buffer(4, np.float32)

    def take(nbytes):
        tile = fq.LocalAccessor(nbytes // 4, np.float32)
        submit(queue, reverse_in_group, fq.NdRange(4, 4), x, tile, out)

    with pytest.raises(fq.ArgumentError) as error:
        take(limit + 4)
    for part in (f"takes {limit + 4} bytes", f"has {limit}", "reverse_in_group"):
        assert part in str(error.value)
    take(limit // 2)
    assert out.numpy().tolist() == x[::-1].tolist()


def test_local_accessors_need_an_nd_range(queue):
    @fq.kernel
    def anything(item, tile, out):
        out[0] = 1

    with pytest.raises(fq.ArgumentError, match=r"'tile' .* submitted over a Range; .*NdRange"):
        submit(queue, anything, 4, fq.LocalAccessor(4, np.float32), fq.Buffer(4, np.float32))


def test_the_same_shape_is_no_new_submission(queue):
    x, out = fq.Buffer(numbers(8)), fq.Buffer(8, np.float32)

    def known(tile):
        submit(queue, reverse_in_group, fq.NdRange(8, 4), x, tile, out)
        return len(queue._state.launcher.cache.known)

    first = known(fq.LocalAccessor(4, np.float32))
    assert known(fq.LocalAccessor((4,), "f4")) == first
    assert known(fq.LocalAccessor(5, np.float32)) == first + 1
    assert known(fq.LocalAccessor(4, np.float64)) == first + 2
    assert out.numpy().tolist() == x.numpy().reshape(2, 4)[:, ::-1].ravel().tolist()
