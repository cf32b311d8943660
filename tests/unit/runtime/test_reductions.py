"""Reductions as arguments of submit: the result of every operation, in one order, however it
runs."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fusionq as fq
from fusionq.frontend import first_kernels
from fusionq.frontend.kernel import KernelFunction
from fusionq.language.combine import joint_reduction
from fusionq.memory.temporaries import MOST_BYTES
from fusionq.runtime import combining_kernels, reductions
from fusionq.runtime.reductions import group_shape
from tests.in_turn import one_in
from tests.property.reductions import in_order
from tests.unit.runtime.reduced import add_all, combine_all, multiply, reads, two_of_one, values

NUMBERS = ["int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]
INTEGERS = ["bool", "int8", "uint32", "int64"]
OPERATIONS = [
    ("add", NUMBERS, np.add), (np.multiply, NUMBERS, np.multiply), ("mul", ["int32"], np.multiply),
    ("min", NUMBERS, np.minimum), (max, NUMBERS, np.maximum), ("maximum", ["uint8"], np.maximum),
    ("bit_and", INTEGERS, np.bitwise_and), ("bit_or", INTEGERS, np.bitwise_or),
    ("bit_xor", INTEGERS, np.bitwise_xor), (np.bitwise_or, ["int16"], np.bitwise_or),
    ("logical_and", [*INTEGERS, "float32"], np.logical_and),
    ("logical_or", [*INTEGERS, "float64"], np.logical_or),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_operations_and_dtypes(number):
    """The old value takes part unless it is initialised; a range of one work-group, and of two.
    Operations have every other type in turn."""
    op, dtypes, numpy = OPERATIONS[number]
    dtypes = one_in(2, dtypes, number % 2) or dtypes
    with fq.FusionQueue("reference") as queue:
        for position, dtype in enumerate(dtypes):
            for n in (5,) if position else (5, 300):
                a = values(dtype, n)
                old = values(dtype, 1, seed=2)
                found, new = fq.Buffer(old), fq.Buffer(old)
                queue.submit(combine_all, n, fq.Buffer(a), fq.Reduction(found, op))
                queue.submit(combine_all, n, fq.Buffer(a), fq.Reduction(new, op, initialize=True))
                with np.errstate(all="ignore"):
                    want = numpy.reduce(a, dtype=None if "logical" in str(op) else dtype)
                    both = numpy(old[0], want)
                if np.dtype(dtype).kind == "f" and numpy in (np.add, np.multiply):
                    near = dict(rtol=n * np.finfo(dtype).eps, atol=n * np.finfo(dtype).eps)
                    np.testing.assert_allclose(new.numpy()[0], want, **near)
                    np.testing.assert_allclose(found.numpy()[0], both, **near)
                else:
                    assert new.numpy()[0] == want, (dtype, n)
                    assert found.numpy()[0] == both, (dtype, n)
                assert found.dtype == dtype


def test_bfloat16_extremes():
    with fq.FusionQueue("reference") as queue:
        a = fq.Buffer(np.float32([3.5, -2.0, 7.25, 1.0]))
        least, most = fq.Buffer(1, "bfloat16"), fq.Buffer(1, "bfloat16")
        queue.submit(combine_all, 4, a, fq.Reduction(least, "min"))
        queue.submit(combine_all, 4, a, fq.Reduction(most, "max"))
        assert (float(least.numpy()[0]), float(most.numpy()[0])) == (-2.0, 7.25)


@fq.kernel
def of_rows(item: fq.Item, a, r):
    r += a[item.get_id(0), item.get_id(1)]


@fq.kernel
def of_cubes(item: fq.Item, a, r, s):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    r += a[i, j, k]
    s.combine(item.get_linear_id() + item.get_range(1) + item.get_linear_range())


@fq.kernel
def of_groups(item: fq.NdItem, a, r):
    r += a[item.get_global_id(0)]


def test_the_order_of_operations_is_that_of_the_documentation(target):
    rng = np.random.default_rng(0)
    with fq.FusionQueue(target) as queue:

        def check(kernel, space, extents, local, *more):
            a = rng.normal(size=extents).astype("float32") * np.float32(1e3)
            out = fq.Buffer(np.float32([0.1]))
            queue.submit(kernel, space, fq.Buffer(a), fq.Reduction(out, "add"), *more)
            want = np.float32(0.1) + in_order("add", np.float32(0) + a, local)
            assert out.numpy()[0].tobytes() == want.tobytes(), (space, out.numpy(), want)

        for n in (100, 256, 512, 1000):
            check(add_all, n, (n,), (256,))
        check(of_groups, fq.NdRange(96, 12), (96,), (12,))
        check(of_rows, (7, 5), (7, 5), (51, 5))
        check(of_rows, (3, 258), (3, 258), (1, 129))
        total = fq.Buffer(1, "int64")
        check(of_cubes, (5, 4, 3), (5, 4, 3), (21, 4, 3), fq.Reduction(total, "add"))
        assert total.numpy()[0] == sum(range(60)) + 60 * (4 + 60)


@pytest.mark.parametrize(
    "extents,shape",
    [
        ((10**9,), (256,)),
        ((0,), (256,)),
        ((1000, 1024), (1, 256)),
        ((1000, 1000), (1, 250)),
        ((2160, 64), (4, 64)),
        ((100, 1009), (4, 64)),
        ((100, 7), (36, 7)),
        ((9, 0), (256 // 256, 256)),
        ((4, 6, 10), (4, 6, 10)),
        ((300, 1, 2), (64, 1, 2)),
    ],
)
def test_work_groups_of_ranges(extents, shape):
    """All dimensions but the first divide the range, so that other kernels can be fused with it."""
    assert group_shape(extents) == shape


@fq.kernel
def sometimes(item: fq.Item, a, low, total, count, limit):
    i = item.get_id(0)
    if a[i] < limit:
        return
    for k in range(3):
        if k == 1:
            continue
        total += a[i] * (k + 1)
    record(low, a[i])
    same = count
    while i > 0:
        same += 1
        i = i // 2


def record(extreme, x):
    if x < 5:
        extreme.combine(x)


def test_combination_under_conditions_in_loops_and_in_functions(target):
    a = values("float64", 400)
    with fq.FusionQueue(target) as queue:
        low, total = fq.Buffer(np.float64([9])), fq.Buffer(np.float64([2]))
        count = fq.Buffer(1, np.int16)
        queue.submit(
            sometimes, 400, fq.Buffer(a), fq.Reduction(low, "min"),
            fq.Reduction(total, "add", initialize=True), fq.Reduction(count, "add"), 0.5,
        )  # fmt: skip
        kept = a >= 0.5
        assert low.numpy()[0] == a[kept & (a < 5)].min()
        np.testing.assert_allclose(total.numpy()[0], 4 * a[kept].sum())
        assert count.numpy()[0] == sum(int(i).bit_length() for i in np.flatnonzero(kept))


@fq.kernel
def nothing(item: fq.Item, a, r):
    if a[item.get_id(0)] > 10:
        r += 1


def test_a_reduction_in_which_nothing_is_combined_leaves_the_identity(target):
    with fq.FusionQueue(target) as queue:
        a = fq.Buffer(300, "float32")
        for n in (0, 300):
            kept, new = fq.Buffer(np.int32([7])), fq.Buffer(np.int32([7]))
            queue.submit(nothing, n, a, fq.Reduction(kept, "add"))
            queue.submit(nothing, n, a, fq.Reduction(new, "add", initialize=True))
            assert (kept.numpy()[0], new.numpy()[0]) == (7, 0)


STRATEGIES = ("unfused", "fused", "sequence", "megakernel", "overlap", "auto")


@fq.kernel
def scaled(item: fq.Item, a, total, out):
    i = item.get_id(0)
    out[i] = a[i] / total[0]


@pytest.mark.slow
def test_every_strategy_gives_the_same_bits(target):
    """A sum of products that are made in the same list, which scales something: the producer fuses
    with the reduction, whose temporary then takes no memory."""
    n = 520
    a, b = values("float32", n), values("float32", n, 2)
    found = set()
    with fq.FusionQueue(target) as queue:
        for strategy in STRATEGIES:
            tmp = fq.Buffer(n, "float32", promote_private=True)
            total, low, out = fq.Buffer(1, "float32"), fq.Buffer(1, "float32"), fq.Buffer(a)
            with fq.fusion(queue, strategy=strategy) as f:
                queue.submit(multiply, n, fq.Buffer(a), fq.Buffer(b), tmp)
                queue.submit(add_all, n, tmp, fq.Reduction(total, "add"))
                queue.submit(combine_all, n, tmp, fq.Reduction(low, "min"))
                queue.submit(scaled, n, out, total, out)
            found.add(b"".join(x.numpy().tobytes() for x in (total, low, out)))
            if strategy == "fused":
                together = [k.kernel for k in f.report.stages[0].kernels]
                assert together[:2] == ["multiply", "add_all"], f.report
    assert len(found) == 1
    want = np.add.reduce(a * b)
    np.testing.assert_allclose(total.numpy()[0], want, rtol=1e-4)


def test_a_temporary_that_is_only_reduced_takes_no_memory(target):
    with fq.FusionQueue(target) as queue:
        for n in (512, 700):
            tmp = fq.Buffer(n, "float32", promote_private=True)
            out = fq.Buffer(1, "float32")
            with fq.fusion(queue, strategy="fused") as f:
                queue.submit(multiply, n, values("f4", n), values("f4", n), tmp)
                queue.submit(add_all, n, tmp, fq.Reduction(out, "add"))
            assert not tmp.is_allocated, f.report
            names = [[k.kernel for k in stage.kernels] for stage in f.report.stages]
            assert names == [["multiply", "add_all"], ["combine_result"]]
            text = str(f.report)
            assert "the reduction 'r' (by 'add'): each work-group of 256 stores a partial" in text
            assert "partial results of out" in {d.buffer for d in f.report.dependences}


def test_many_partial_results_are_combined_in_stretches(monkeypatch):
    """64 work-groups of 2: 64 partial results, 8 of 8 each, 1 of these."""
    monkeypatch.setattr(combining_kernels, "STRETCH", 8)
    monkeypatch.setattr(reductions, "STRETCH", 8)
    monkeypatch.setattr(reductions, "MOST_AT_ONCE", 8)
    a = values("float32", 126)
    kernel = fq.kernel(of_groups.function)
    with fq.FusionQueue("reference") as queue:
        out = fq.Buffer(1, "float32")
        with fq.fusion(queue) as f:
            queue.submit(kernel, fq.NdRange(126, 2), fq.Buffer(a), fq.Reduction(out, "add"))
        assert [k.kernel for s in f.report.stages for k in s.kernels] == [
            "of_groups", "combine_partial_results", "combine_result"
        ]  # fmt: skip
        pairs = [a[i] + a[i + 1] for i in range(0, 126, 2)]
        level = [
            joint_reduction("add", pairs[i : i + 8], np.dtype("f4"), 256) for i in range(0, 63, 8)
        ]
        want = joint_reduction("add", level, np.dtype("f4"), 256)
        assert out.numpy()[0].tobytes() == (np.float32(0) + want).tobytes()


def test_other_arrays_than_buffers(target):
    """Views, elements of one array, NumPy arrays of any dimensions with one element, fields."""
    a = fq.Buffer(np.arange(10, dtype=np.float32))
    with fq.FusionQueue(target) as queue:
        found = fq.Buffer((2, 3), "float32")
        queue.submit(
            two_of_one,
            10,
            a,
            fq.Reduction(found[0, 1:2], "add"),
            fq.Reduction(found[:1, 2:], "max"),
        )
        assert found.numpy().tolist() == [[0, 45, 9], [0, 0, 0]]
        for shape in ((), (1,), (1, 1)):
            array = np.full(shape, 5, np.int32)
            queue.submit(add_all, 10, a, fq.Reduction(array, "add"))
            queue.wait()
            assert array.reshape(-1).tolist() == [50]
        points = fq.Buffer(1, np.dtype([("n", "i4"), ("x", "f4")], align=True))
        queue.submit(
            two_of_one, 10, a, fq.Reduction(points["n"], "add"), fq.Reduction(points["x"], "max")
        )
        assert points.numpy()[0].tolist() == (45, 9)


def test_replay_graphs_and_checks(target):
    n = 300
    factor = np.float32(2)
    with fq.FusionQueue(target) as queue:
        a, out = fq.Buffer(np.ones(n, "f4")), fq.Buffer(1, "f4")
        with fq.fusion(queue) as f:
            queue.submit(add_scaled, n, a, factor, fq.Reduction(out, "add"))
        f.replay(factor=np.float32(3)).wait()
        assert out.numpy()[0] == 5 * n
        other = fq.Buffer(1, "f4")
        graph = fq.Graph()
        with graph.record(queue):
            queue.submit(add_scaled, n, a, factor, fq.Reduction(out, "add", initialize=True))
        graph.launch()
        assert out.numpy()[0] == 2 * n
        graph.update(out=other)
        graph.launch().wait()
        graph.launch().wait()
        assert (out.numpy()[0], other.numpy()[0]) == (2 * n, 2 * n)
        with pytest.raises(fq.ArgumentError, match="Buffer like the one that was recorded"):
            graph.update(r=other)
        with fq.fusion(queue, check=True):
            event = queue.submit(add_scaled, n, a, factor, fq.Reduction(out, "add"))
        event.wait()
        assert out.numpy()[0] == 4 * n
        with pytest.raises(fq.FusionqError, match=r"add_beyond.*\n?.*a\["):
            with fq.fusion(queue, check=True) as f:
                queue.submit(add_beyond, n, a, fq.Reduction(out, "add"), n)
            f.event.wait()
            queue.wait()


@fq.kernel
def add_scaled(item: fq.Item, a, factor, r):
    r += a[item.get_id(0)] * factor


@fq.kernel
def add_beyond(item: fq.Item, a, r, n):
    r += a[item.get_id(0) * n]


def test_queues_wait_for_each_other(target):
    with fq.FusionQueue(target) as first, fq.FusionQueue(target) as second:
        a, total, out = fq.Buffer(values("f4", 1000)), fq.Buffer(1, "f4"), fq.Buffer(1, "f4")
        event = first.submit(add_all, 1000, a, fq.Reduction(total, "add"))
        second.submit(add_all, 1, total, fq.Reduction(out, "add"), depends_on=event)
        assert out.numpy()[0] == total.numpy()[0] != 0


@pytest.mark.slow
def test_calls_use_the_memory_of_partial_results_again():
    """And two reductions of one list never the same."""
    n = 260
    with fq.FusionQueue("reference") as queue:
        a, out, most = fq.Buffer(values("f4", n)), fq.Buffer(1, "f4"), fq.Buffer(1, "f4")
        counts = set()
        for _ in range(2):
            queue.submit(two_of_one, n, a, fq.Reduction(out, "add"), fq.Reduction(most, "max"))
            with fq.fusion(queue):
                queue.submit(add_all, n, a, fq.Reduction(out, "add"))
                queue.submit(combine_all, n, a, fq.Reduction(most, "max"))
            gc.collect()
            kept = queue._state.temporaries._kept
            counts.add(sum(map(len, kept.values())))
        assert counts == {2}
        assert len(queue._state.launcher.cache.known) <= 8
        large = MOST_BYTES // 4 + 4
        first = queue._state.temporaries.take(large, np.dtype("f4"))
        assert queue._state.temporaries.take(large, np.dtype("f4")) is not first
        assert not queue._state.temporaries._kept

    assert queue._state.temporaries._bytes == 0


def test_other_sizes_are_like_the_first(monkeypatch):
    """No kernel is made anew for them."""
    monkeypatch.setattr(first_kernels, "_first", {})
    kernel = fq.kernel(add_all.function)
    with fq.FusionQueue("reference") as queue:
        out = fq.Buffer(1, "f4")
        for n in (512, 768, 300, 600):
            a = fq.Buffer(np.ones(n, "f4"))
            queue.submit(kernel, n, a, fq.Reduction(out, "add", initialize=True))
            assert out.numpy()[0] == n
    made = [type(one).__name__ for one in kernel.made.values() if isinstance(one, KernelFunction)]
    assert sorted(made) == ["CombiningKernel", "ReducingKernel", "ReducingKernel"]


def test_a_failed_submission_leaves_the_list_as_it_was():
    with fq.FusionQueue("reference") as queue:
        a, out = fq.Buffer(300, "f4"), fq.Buffer(1, "f4")
        with fq.fusion(queue) as f:
            queue.submit(multiply, 300, a, a, a)
            with pytest.raises(fq.KernelLanguageError):
                queue.submit(reads, 300, a, fq.Reduction(out, "add"))
            with pytest.raises(fq.ArgumentError):
                queue.submit(add_all, 300, a, fq.Reduction(a[1:2], "add"))
        assert [k.kernel for s in f.report.stages for k in s.kernels] == ["multiply"]


@fq.kernel
def add_scalar(item: fq.NdItem, a, s):
    i = item.get_global_id(0)
    if i < a.shape[0]:
        a[i] = a[i] + s


def test_a_size_that_equals_a_narrow_scalar():
    """Its value is that scalar's in a persistent kernel."""
    queue = fq.FusionQueue("reference")
    a, total = fq.Buffer(np.arange(8, dtype=np.int16)), fq.Buffer(np.zeros(1, np.int16))
    with fq.fusion(queue, strategy="megakernel") as fused:
        for s in (7, 8):
            queue.submit(add_scalar, fq.NdRange(8, 4), a, np.int16(s))
        queue.submit(add_all, 8, a, fq.Reduction(total, "add"))
    assert fused.report.strategy == "megakernel"
    assert total.numpy()[0] == 28 + 8 * 15
