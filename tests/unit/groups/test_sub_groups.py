"""Sub-groups: ids, shifts, permutations, reductions and scans, on devices and as plain Python."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from tests.unit.frontend.running import define

OPS = ("add", "mul", "min", "max", "and", "or", "xor")


def shuffles(item, a, out):
    """The reductions and scans are kernels of their own: of five in one the compiler takes twenty
    times as long as of one."""
    group = item.get_sub_group()
    i = item.get_global_linear_id()
    lane = group.get_local_linear_id()
    x = a[i]
    out[0, i] = fq.shift_group_left(group, x)
    out[1, i] = fq.shift_group_right(group, x, 3)
    out[2, i] = fq.permute_group_by_xor(group, x, 5)
    out[3, i] = fq.select_from_group(group, x, (lane * 3 + 1) % group.get_local_linear_range())
    out[4, i] = fq.group_broadcast(group, x, 2)
    out[5, i] = fq.shift_group_left(group, x, lane)
    out[6, i] = fq.select_from_group(group, x, 40 - 8 * lane)


def totals(item, a, out):
    i = item.get_global_linear_id()
    out[0, i] = fq.reduce_over_group(item.get_sub_group(), a[i])
    out[1, i] = fq.reduce_over_group(item.get_sub_group(), a[i], "min")


def sums_up_to(item, a, out):
    i = item.get_global_linear_id()
    out[0, i] = fq.inclusive_scan_over_group(item.get_sub_group(), a[i], "add")


def greatest_before(item, a, out):
    i = item.get_global_linear_id()
    out[0, i] = fq.exclusive_scan_over_group(item.get_sub_group(), a[i], "max")


def products_before(item, a, out):
    i = item.get_global_linear_id()
    out[0, i] = fq.exclusive_scan_over_group(item.get_sub_group(), a[i], "mul")


FUNCTIONS = (shuffles, totals, sums_up_to, greatest_before, products_before)


def queries(item, out):
    group = item.get_sub_group()
    i = item.get_global_linear_id()
    out[0, i] = group.get_group_linear_id() + 100 * group.get_group_id(0)
    out[0, i] += 10_000 * group.get_local_id() + 1_000_000 * group.get_local_range(0)
    out[1, i] = group.get_group_linear_range() + 100 * group.get_group_range()
    out[2, i] = group.get_local_linear_id()
    out[3, i] = group.get_local_linear_range() + 100 * group.get_max_local_range()
    out[4, i] = 1 if group.leader else 0
    out[5, i] = 1 if fq.any_of_group(group, group.get_local_linear_id() == 3) else 0
    out[6, i] = 1 if fq.all_of_group(group, item.get_local_linear_id() < 8) else 0
    if group.get_group_linear_id() % 2 == 1:
        out[7, i] = fq.reduce_over_group(group, i, "max")
    for k in range(group.get_group_linear_id()):
        out[8, i] += fq.inclusive_scan_over_group(group, k)


def bits(item, a, out):
    group = item.get_sub_group()
    i = item.get_global_id(0)
    out[0, i] = fq.reduce_over_group(group, a[i], "and")
    out[1, i] = fq.inclusive_scan_over_group(group, a[i], "or")
    out[2, i] = fq.exclusive_scan_over_group(group, a[i], "xor")
    out[3, i] = fq.shift_group_left(group, a[i], 2)


def values(dtype, n=64):
    random = np.random.default_rng(5)
    if np.dtype(dtype).kind == "f":
        found = random.standard_normal(n).astype(dtype)
        for place, odd in ((3, np.nan), (20, -0.0), (41, np.inf)):
            found[place % n] = odd
        return found
    return random.integers(0, 2 if dtype == "bool" else 100, n).astype(dtype)


def by_python(function, space, size, *arguments):
    own = [a.copy() for a in arguments]
    run_function(function, space, own, sub_group_size=size)
    return own[-1]


def by_queue(target, function, space, size, *arguments):
    made = fq.kernel(sub_group_size=size)(function)
    with fq.FusionQueue(target) as queue:
        own = [fq.Buffer(a) for a in arguments]
        queue.submit(made, space, *own)
        return own[-1].numpy().copy()


def same(a, b):
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        numbers = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])


@pytest.mark.in_turn
@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "uint16", "float16", "float64"])
def test_all_of_them_as_in_python(target, dtype):
    space, out = fq.NdRange((4, 16), (2, 16)), np.zeros((7, 64), dtype)
    a = values(dtype)
    if dtype in ("int64", "int8", "uint16"):
        a %= 7
    for size in (8, 16) if dtype == "float32" else (16,):
        for function in FUNCTIONS:
            same(
                by_queue(target, function, space, size, a, out),
                by_python(function, space, size, a, out),
            )


@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "uint64"])
def test_bits(target, dtype):
    space, out, a = fq.NdRange(64, 32), np.zeros((4, 64), dtype), values(dtype)
    got = by_queue(target, bits, space, 32, a, out)
    same(got, by_python(bits, space, 32, a, out))


@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize(("whole", "part"), [((64,), (32,)), ((4, 16), (2, 8)), ((2, 2, 8),) * 2])
def test_queries_and_calls_of_some_sub_groups(target, whole, part):
    space, out = fq.NdRange(whole, part), np.zeros((9, int(np.prod(whole))), np.int64)
    got = by_queue(target, queries, space, 4, out)
    same(got, by_python(queries, space, 4, out))
    groups = np.prod(part) // 4
    assert got[1].tolist() == [101 * groups] * out.shape[1]
    assert got[2].tolist() == list(range(4)) * (out.shape[1] // 4)


def test_floats_are_summed_in_a_tree():
    a = values("float32", 16)
    a[[3, 4, 9]] = 1
    space, out = fq.NdRange(16, 16), np.zeros((2, 16), np.float32)
    got = by_queue("reference", totals, space, 16, a, out)
    sums = a.copy()
    for distance in (8, 4, 2, 1):
        sums = sums + np.roll(sums, -distance)
    assert got[0, 0] == sums[0]


def smooth(item, a, out):
    group = item.get_sub_group()
    i = item.get_global_id(0)
    out[i] = a[i] + fq.permute_group_by_xor(group, a[i], 1) * fq.reduce_over_group(group, a[i])


@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize("strategy", ["fused", "megakernel", "sequence", "auto"])
def test_fused_kernels_have_the_same_results(target, strategy):
    made, n = fq.kernel(smooth), 256
    results = []
    for how in (strategy, "unfused"):
        with fq.FusionQueue(target) as queue:
            a, out = fq.Buffer(values("float32", n) / 64), fq.Buffer(n, np.float32)
            tmp = fq.Buffer(n, np.float32, promote_private=True)
            with fq.fusion(queue, strategy=how) as f:
                queue.submit(made, fq.NdRange(n, 64), a, tmp)
                queue.submit(made, fq.NdRange(n, 64), tmp, out)
            if how == "fused":
                assert len(f.report.stages) == 1
                assert f.report.promotions[0].scope == "private"
            results.append(out.numpy().copy())
    same(*results)


def backwards(item, a, out):
    i = item.get_id(0)
    out[i] = a[a.shape[0] - 1 - i]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["reference", None])
@pytest.mark.parametrize("size", [8, 16])
def test_a_persistent_kernel_has_those_that_are_as_large_as_a_workers(target, size):
    n = 512
    kernel = fq.kernel(sub_group_size=size)(smooth)
    with fq.FusionQueue(target) as queue:
        if size not in queue.device.sub_group_sizes:
            pytest.skip("the device has no such sub-groups")
        a, b, c, d = (fq.Buffer(values("float32", n) / 64) for _ in range(4))
        with fq.fusion(queue, strategy="megakernel") as f:
            queue.submit(kernel, fq.NdRange(n, 64), a, b)
            queue.submit(fq.kernel(backwards), n, b, c)
            queue.submit(kernel, fq.NdRange(n, 64), c, d)
        assert len(f.report.stages) == {8: 2, 16: 1}[size]
        reason = "functions of sub-groups of 8 work-items, and a worker's have 16"
        assert (reason in str(f.report)) == (size == 8)
        first = by_python(smooth, fq.NdRange(n, 64), size, a.numpy(), b.numpy())
        last = by_python(smooth, fq.NdRange(n, 64), size, first[::-1].copy(), b.numpy())
        same(d.numpy(), last)


def test_sub_groups_of_different_sizes_are_launches_of_their_own():
    with fq.FusionQueue("reference") as queue:
        a, b, out = (fq.Buffer(values("float32", 32)) for _ in range(3))
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(fq.kernel(sub_group_size=8)(smooth), fq.NdRange(32, 16), a, b)
            queue.submit(fq.kernel(sub_group_size=16)(smooth), fq.NdRange(32, 16), b, out)
        assert len(f.report.stages) == 2
        assert "their sub-groups have different sizes: 8, 16" in str(f.report)


def submitted(function, space, *arguments, **options):
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(**options)(function), space, *arguments)


OUT = np.zeros((12, 64), np.float32)
A = np.zeros(64, np.float32)


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        (fq.NdRange(48, 24), {}, "sub-groups of 16 work-items, which fill .* a multiple of 16"),
        (fq.NdRange((16, 4), (16, 4)), {"sub_group_size": 8}, "a multiple of 8"),
        (fq.NdRange(64, 32), {"sub_group_size": 12}, "wants sub-groups of 12 .* has 1, 2, 4"),
        (fq.NdRange(64, 32), {"work_group_size": 16}, r"work_group_size=\(16,\), and submitted"),
        (64, {"work_group_size": 16}, r"submit it with NdRange\(global_range, \(16,\)\)"),
    ],
)
def test_ranges_and_sizes_that_do_not_fit(space, options, message):
    with pytest.raises(fq.ArgumentError, match=message):
        submitted(shuffles, space, A, OUT, **options)


@pytest.mark.parametrize("options", [
    {"sub_group_size": 0}, {"sub_group_size": "8"}, {"work_group_size": (8, 0)},
    {"work_group_size": True},
])  # fmt: skip
def test_options_that_are_none(options):
    with pytest.raises(fq.KernelLanguageError, match="positive int"):
        fq.kernel(**options)


def test_options_are_taken():
    made = fq.kernel(work_group_size=(32,), sub_group_size=8)(shuffles)
    assert made.work_group_size == (32,) and made.sub_group_size == 8
    out = OUT.copy()
    with fq.FusionQueue("reference") as queue:
        queue.submit(made, fq.NdRange(64, 32), A, out)
    assert fq.kernel(made) is made
    assert fq.kernel(sub_group_size=16)(made).sub_group_size == 16


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fq.group_barrier(s)", "a barrier of a sub-group"),
        ("out[0, i] = fq.shift_group_left(g, 1.0)", "this is a function of sub-groups"),
        ("out[0, i] = fq.shift_group_left(s, 1.0, 1.5)", "delta is of type float"),
        ("out[0, i] = fq.reduce_over_group(s, a[i], 'and')", "'and' of float32 over a group"),
        ("out[0, i] = s.get_id(0)", "the SubGroup has no 'get_id'"),
        ("out[0, i] = s.get_local_id(1)", "dimension 1 of a range that has 1"),
        ("out[0, i] = fq.any_of_group(item, True)", "a group is needed here"),
        ("if i % 16 < 3:\n        out[0, i] = fq.reduce_over_group(s, 1)",
         "some work-items of a sub-group of 16 reach this barrier or group function"),
    ],
)  # fmt: skip
def test_what_is_refused(line, message):
    made = define(
        "def k(item, a, out):\n    i = item.get_global_id(0)\n    g = item.get_group()\n"
        f"    s = item.get_sub_group()\n    {line}\n",
        fq=fq,
    )
    with pytest.raises(fq.KernelLanguageError, match=message):
        submitted(made, fq.NdRange(64, 32), A, OUT)


def test_a_sub_group_is_a_piece_of_the_last_dimension():
    """Rows may differ, which one work-group has several of, columns may not."""

    def made(line):
        return define(
            "def k(item, a, out):\n    i = item.get_global_id(0)\n    j = item.get_global_id(1)\n"
            f"    s = item.get_sub_group()\n    if {line}:\n"
            "        out[i, j] = fq.reduce_over_group(s, a[i, j], 'add')\n",
            fq=fq,
        )

    a, out = np.ones((4, 32), np.float32), np.zeros((4, 32), np.float32)
    space = fq.NdRange((4, 32), (2, 32))
    submitted(made("i % 2 == 1 and j < 16"), space, a, out, sub_group_size=16)
    assert out.sum() == 2 * 16 * 16
    with pytest.raises(fq.KernelLanguageError, match="some work-items of a sub-group of 16 reach"):
        submitted(made("j < 15"), space, a, out, sub_group_size=16)


def test_a_missed_meeting_is_an_error_and_no_hang():
    made = define(
        "def k(item, a, out):\n    i = item.get_global_id(0)\n    s = item.get_sub_group()\n"
        "    if a[i] > 0:\n        out[0, i] = fq.reduce_over_group(s, 1)\n",
        fq=fq,
    )
    some = A.copy()
    some[3] = 1
    with pytest.raises(fq.DeviceError, match="1 of the 32 work-items of a group wait"):
        submitted(made, fq.NdRange(64, 32), some, OUT)
    with pytest.raises(fq.DeviceError, match="1 of the 32 work-items of a group wait"):
        by_python(made, fq.NdRange(64, 32), 16, some, OUT)
