"""bfloat16 arrays and numbers as arguments: buffers, fusion, promotion, commands, DLPack."""

import copy
import pickle

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from fusionq.memory.dlpack import imported

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")
bfloat16 = ml_dtypes.bfloat16

N = 1000


def numbers(n=N, seed=7):
    return np.random.default_rng(seed).normal(size=n).astype(bfloat16)


def bits(array):
    return np.asarray(array).view(np.uint16)


@fq.kernel
def add(item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def scale(item, a, s, out):
    i = item.get_id(0)
    out[i] = a[i] * s


@fq.kernel
def smooth(item, a, out):
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        out[i] = (a[i - 1] + a[i] + a[i + 1]) / 3
    else:
        out[i] = a[i]


@fq.kernel
def accumulate(item, a, total):
    i = item.get_id(0)
    total[i] = total[i] + a[i]


@fq.kernel
def reverse(item, a, scratch, out):
    i, k = item.get_global_id(0), item.get_local_id(0)
    scratch[k] = a[i]
    fq.group_barrier(item.get_group())
    out[i] = scratch[item.get_local_range(0) - 1 - k]


@pytest.fixture
def queue(target):
    with fq.FusionQueue(target) as made:
        yield made


def test_plain_submissions(queue):
    a, b = numbers(), numbers(seed=8)
    out, buffer = np.zeros(N, bfloat16), fq.Buffer(N, "bfloat16")
    for _ in range(3):
        queue.submit(add, N, fq.Buffer(a), b[::-1], out)
        queue.submit(scale, N, out, bfloat16(0.1), buffer)
    queue.wait()
    np.testing.assert_array_equal(bits(out), bits(a + b[::-1]))
    np.testing.assert_array_equal(bits(buffer.numpy()), bits((a + b[::-1]) * bfloat16(0.1)))
    assert (buffer.dtype, buffer.nbytes) == (bfloat16, 2 * N)
    assert "bfloat16" in repr(buffer)


def test_scalars_of_all_kinds(queue):
    a, out = numbers(), fq.Buffer(N, bfloat16)
    for value in (bfloat16(1.5), bfloat16(-3e38), 0.1, 3, np.float16(0.1)):
        queue.submit(scale, N, a, value, out)
        with np.errstate(all="ignore"):
            same = a * bfloat16(value)
            wide = (a.astype(np.float32) * np.float32(value)).astype(bfloat16)
        expected = wide if isinstance(value, np.float16) else same
        np.testing.assert_array_equal(bits(out.numpy()), bits(expected))


def test_other_types_beside_it(queue):
    a, total = numbers(), fq.Buffer(N, np.float32)
    for _ in range(5):
        queue.submit(accumulate, N, a, total)
    expected = np.zeros(N, np.float32)
    for _ in range(5):
        expected = expected + a.astype(np.float32)
    np.testing.assert_array_equal(total.numpy(), expected)
    assert (total.numpy() != total.numpy().astype(bfloat16).astype(np.float32)).any()


@pytest.mark.in_turn
@pytest.mark.parametrize("strategy", ["auto", "fused", "megakernel"])
def test_a_fused_list_is_the_unfused_one(queue, strategy):
    a, b = fq.Buffer(numbers()), fq.Buffer(numbers(seed=9))
    results, scopes = [], set()
    for fused in (False, True):
        first, last = fq.Buffer(N, bfloat16), fq.Buffer(N, bfloat16)
        tmp = fq.Buffer(N, bfloat16, promote_private=True)

        def submit(first=first, last=last, tmp=tmp):
            queue.submit(add, N, a, b, tmp)
            queue.submit(scale, N, tmp, 1.1, first)
            queue.submit(smooth, N, first, last)
            queue.submit(accumulate, N, last, first)

        if fused:
            with fq.fusion(queue, strategy=strategy) as f:
                submit()
            scopes = {p.scope for p in f.report.promotions}
        else:
            submit()
        results.append((bits(first.numpy()), bits(last.numpy())))
    np.testing.assert_array_equal(results[0], results[1])
    assert scopes == {"private"}


def test_what_is_promoted_keeps_its_rounding(queue):
    """In float32 the sum would be 257."""
    ones = fq.Buffer(np.ones(N, bfloat16))
    tmp, out = fq.Buffer(N, bfloat16, promote_private=True), fq.Buffer(N, np.float32)
    large = fq.Buffer(np.full(N, 256, bfloat16))
    with fq.fusion(queue) as f:
        queue.submit(add, N, large, ones, tmp)
        queue.submit(scale, N, tmp, 1, out)
    assert [p.scope for p in f.report.promotions] == ["private"]
    assert (out.numpy() == 256).all()


def test_local_memory(queue):
    a, out = numbers(64), fq.Buffer(64, bfloat16)
    queue.submit(reverse, fq.NdRange(64, 16), a, fq.LocalAccessor(16, bfloat16), out)
    expected = a.reshape(4, 16)[:, ::-1].ravel()
    np.testing.assert_array_equal(bits(out.numpy()), bits(expected))


def test_members_of_records(queue):
    record = np.dtype([("x", bfloat16), ("y", np.float32), ("v", bfloat16, (3,))], align=True)

    @fq.kernel
    def update(item, p, out):
        i = item.get_id(0)
        p[i].x = p[i].x * 2 + p[i].y
        out[i] = p[i].x + p[i]["v"][1]

    p, out = np.zeros(8, record), np.zeros(8, bfloat16)
    p["x"], p["y"], p["v"] = np.arange(8), 0.3, 1.5
    queue.submit(update, 8, p, out).wait()
    expected = (2 * np.arange(8, dtype=np.float32) + np.float32(0.3)).astype(bfloat16)
    np.testing.assert_array_equal(bits(p["x"].copy()), bits(expected))
    np.testing.assert_array_equal(bits(out), bits(expected + bfloat16(1.5)))


def test_commands(queue):
    a, out = fq.Buffer(numbers()), fq.Buffer(N, bfloat16)
    queue.fill(a, 0.1)
    queue.memcpy(out[5:], a[:-5])
    with fq.fusion(queue) as f:
        queue.fill(a[::2], bfloat16(2.5))
        queue.submit(add, N, a, out, out)
        queue.memcpy(a, out)
    assert len(f.report.submissions) == 3
    tenth, expected = bfloat16(0.1), np.zeros(N, bfloat16)
    expected[5:] = tenth
    filled = np.full(N, tenth)
    filled[::2] = 2.5
    np.testing.assert_array_equal(bits(a.numpy()), bits(filled + expected))
    with pytest.raises(fq.ArgumentError, match="fill cannot put 1e"):
        queue.fill(a, 1e39)
    queue.fill(fq.Buffer(3, np.float32), bfloat16(2))


def test_a_graph_takes_other_arguments(queue):
    a, b, out = fq.Buffer(numbers()), fq.Buffer(numbers(seed=3)), fq.Buffer(N, bfloat16)
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(scale, N, a, bfloat16(2), out)
    graph.launch().wait()
    graph.update(a=b, s=bfloat16(3))
    graph.launch().wait()
    np.testing.assert_array_equal(bits(out.numpy()), bits(b.numpy() * bfloat16(3)))
    with pytest.raises(fq.ArgumentError, match="like the one that was recorded"):
        graph.update(a=fq.Buffer(N, np.uint16))


def test_buffers_convert_copy_and_pickle():
    made = fq.Buffer(np.linspace(0, 1, 7, dtype=np.float32).astype(bfloat16))
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        np.testing.assert_array_equal(bits(other.numpy()), bits(made.numpy()))
    made.write(np.ones(7, bfloat16))
    assert (np.asarray(made, np.float32) == 1).all()
    assert not hasattr(made, "__sycl_usm_array_interface__")


def test_dlpack_both_ways(queue):
    array = numbers(12).reshape(3, 4)[:, ::2]

    class Foreign:
        """As PyTorch's tensors on the host: DLPack, and nothing else."""

        def __dlpack__(self, **options):
            return fq.Buffer(array, copy=False).__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    tensor = imported(fq.Buffer(array, copy=False).__dlpack__)
    assert (tensor.dtype, tensor.shape, tensor.strides) == (bfloat16, (3, 2), (4, 2))
    assert tensor.address == array.ctypes.data
    shared = fq.Buffer(Foreign(), copy=False)
    assert shared.dtype == bfloat16
    np.testing.assert_array_equal(bits(shared.numpy()), bits(array))
    queue.fill(shared, 3)
    assert (array == 3).all()
    with pytest.raises(BufferError, match="read-only"):
        frozen = numbers(4)
        frozen.flags.writeable = False
        fq.Buffer(frozen, copy=False).__dlpack__()


@fq.kernel
def group_sums(item, a, out, scanned, before):
    group, i = item.get_group(), item.get_global_id(0)
    out[i, 0] = fq.reduce_over_group(group, a[i])
    out[i, 1] = fq.reduce_over_group(group, a[i], "mul")
    out[i, 2] = fq.inclusive_scan_over_group(group, a[i])
    out[i, 3] = fq.exclusive_scan_over_group(group, a[i], "add", init=0.5)
    out[i, 4] = fq.reduce_over_group(item.get_sub_group(), a[i])
    out[i, 5] = fq.joint_reduce(group, a)
    out[i, 6] = fq.joint_reduce(group, a, "max", init=2)
    fq.joint_inclusive_scan(group, a, scanned[group.get_group_id(0)], "add")
    fq.joint_exclusive_scan(group, a, before[group.get_group_id(0)], "add", init=1)


@pytest.mark.slow
def test_sums_over_groups_are_those_of_float32_rounded_once(queue):
    """Joint functions over more elements than they have lanes, 256."""
    items, n, space = 32, 288, fq.NdRange(32, 16)
    a = numbers(n)
    ours, pythons, wide = (
        (np.zeros((items, 7), dtype), np.zeros((2, n), dtype), np.zeros((2, n), dtype))
        for dtype in (bfloat16, bfloat16, np.float32)
    )
    queue.submit(group_sums, space, a, *ours)
    queue.submit(group_sums, space, a.astype(np.float32), *wide)
    queue.wait()
    run_function(group_sums.function, space, [a, *pythons])
    for narrow, python, exact in zip(ours, pythons, wide, strict=True):
        np.testing.assert_array_equal(bits(narrow), bits(python))
        columns = [0, 1, 2, 4, 5, 6] if len(exact) == items else slice(None)  # no init after it
        rounded = bits(exact.astype(bfloat16))
        np.testing.assert_array_equal(bits(narrow)[:, columns], rounded[:, columns])


def test_tensors_of_pytorch(queue):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, out = torch.randn(N).to(torch.bfloat16), torch.zeros(N, dtype=torch.bfloat16)
    queue.submit(scale, N, a, 1.5, out)
    queue.wait()
    assert torch.equal(out, a * 1.5)
    assert torch.equal(torch.from_dlpack(fq.Buffer(out)), out)


def test_other_types_of_two_bytes_are_refused(queue):
    void = np.zeros(4, "V2")
    with pytest.raises(fq.ArgumentError, match=r"dtype \|V2 are not supported.*bfloat16"):
        queue.submit(scale, 4, void, 1, void)
    with pytest.raises(fq.ArgumentError, match="float8"):
        fq.Buffer(4, ml_dtypes.float8_e4m3fn)
