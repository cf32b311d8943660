"""Kernels made with ``numba_dpex.kernel``: taken where both languages mean the same, and refused
with the difference where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fusionq as fq

numba_dpex = pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)
dpnp = pytest.importorskip("dpnp", exc_type=ModuleNotFoundError)
kapi = numba_dpex.kernel_api

HALF = np.float32(0.5)
THIRD = 1 / 3
N = 64
kernel = numba_dpex.kernel(error_model="numpy")


@pytest.fixture(scope="module")
def queue():
    with fq.FusionQueue("opencl:cpu") as made:
        yield made


def run_here(queue, function, arrays, scalars=(), range=N):
    own = [array.copy() for array in arrays]
    queue.submit(function, range, *own, *scalars)
    queue.wait()
    return own


def run_there(function, arrays, scalars=(), range=None):
    there = [dpnp.asarray(array) for array in arrays]
    numba_dpex.call_kernel(function, range or numba_dpex.Range(N), *there, *scalars)
    return [dpnp.asnumpy(array) for array in there]


def check_same(queue, function, arrays, scalars=(), range=None):
    here = run_here(queue, function, arrays, scalars, range or numba_dpex.Range(N))
    there = run_there(function, arrays, scalars, range)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b)


def floats(dtype=np.float32, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 4, N).astype(dtype)


def integers(dtype, seed=0):
    """All over the type's range, so that sums wrap."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, N, dtype=dtype)


# ------------------------------------------------------------------------------- taken
@numba_dpex.device_func(error_model="numpy")
def mean(x, y):
    return (x + y) * HALF


@kernel
def vecadd(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + b[i]


@kernel
def axpy(item: kapi.Item, a, b, c, factor):
    i = item.get_id(0)
    c[i] = factor * a[i] + b[i]


@kernel
def stencil(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        c[i] = (a[i - 1] + a[i] + a[i + 1]) / np.float32(3)


@kernel
def with_device_func(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = mean(a[i], b[i])


@kernel
def accumulated(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(8):
        total += a[(i + k) % a.size]
    c[i] = total


@kernel
def with_functions(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = math.sqrt(a[i]) + max(abs(b[i]), HALF) + dpnp.floor(a[i]) + np.float32(i)


@kernel
def compared(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    if a[i] > 1 and b[i] <= 2.5:
        c[i] = a[i]
    else:
        c[i] = -b[i]


@pytest.mark.parametrize(
    "function", [vecadd, stencil, with_device_func, accumulated, with_functions, compared]
)
def test_float32_kernels_give_numba_dpex_results(queue, function):
    check_same(queue, function, [floats(), floats(seed=1), np.zeros(N, np.float32)])


def test_scalars_of_a_type_of_their_own(queue):
    arrays = [floats(), floats(seed=1), np.zeros(N, np.float32)]
    check_same(queue, axpy, arrays, [np.float32(2.5)])


@pytest.mark.parametrize("factor", [2.5, 3, np.float64(0.1)])
def test_python_numbers_beside_float64(queue, factor):
    arrays = [floats(np.float64), floats(np.float64, 1), np.zeros(N)]
    check_same(queue, axpy, arrays, [factor])


@kernel
def integer_mix(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    total = 0
    for k in range(4):
        total += a[(i + k) % 64] * 3
    if a[i] & 1 == 0:
        total = -total
    c[i] = (total - b[i]) ^ (a[i] >> 1)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
def test_integers_that_wrap_in_their_type_only(queue, dtype):
    """numba computes them in 64 bits, and both store the same."""
    arrays = [integers(dtype), integers(dtype, 1), np.zeros(N, dtype)]
    if dtype is np.int64:  # overflow is undefined in numba
        arrays[:2] = [array >> 8 for array in arrays[:2]]
    check_same(queue, integer_mix, arrays)


@kernel
def cut_before_use(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    if np.int32(a[i] + b[i]) < 0:
        c[i] = 1


def test_a_conversion_makes_wrapping_explicit(queue):
    check_same(
        queue, cut_before_use, [integers(np.int32), integers(np.int32, 1), np.zeros(N, np.int32)]
    )


@kernel
def transposed(item: kapi.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    b[j, i] = a[i, j] * np.float32(2)


def test_two_dimensions(queue):
    a, b = floats().reshape(4, 16), np.zeros((16, 4), np.float32)
    check_same(queue, transposed, [a, b], range=numba_dpex.Range(4, 16))


@kernel
def reversed_groups(item: kapi.NdItem, a, b, scratch):
    local = item.get_local_id(0)
    group = item.get_group()
    scratch[local] = a[item.get_global_id(0)]
    kapi.group_barrier(group, kapi.MemoryScope.WORK_GROUP)
    b[item.get_global_id(0)] = scratch[15 - local]


def test_work_groups_local_memory_and_barriers(queue):
    a, b = floats(), np.zeros(N, np.float32)
    scratch = kapi.LocalAccessor((16,), np.float32)
    queue.submit(reversed_groups, kapi.NdRange((N,), (16,)), a, b, scratch)
    queue.wait()
    np.testing.assert_array_equal(b.reshape(4, 16), a.reshape(4, 16)[:, ::-1])


@kernel
def counted(item: kapi.Item, a, counts):
    i = item.get_id(0)
    counter = kapi.AtomicRef(
        counts, a[i], memory_order=kapi.MemoryOrder.RELAXED, memory_scope=kapi.MemoryScope.DEVICE
    )
    counter.fetch_add(1)


def test_atomic_operations(queue):
    a = np.random.default_rng(2).integers(0, 8, N)
    counts = np.zeros(8, np.int64)
    queue.submit(counted, N, a, counts)
    queue.wait()
    np.testing.assert_array_equal(counts, np.bincount(a, minlength=8))


def test_taken_kernels_fuse(queue):
    a, b = floats(), floats(seed=1)
    temporary = fq.Buffer(np.full(N, -1, np.float32), promote_private=True)
    out = fq.Buffer(N, np.float32)
    with fq.fusion(queue, require=True) as f:
        queue.submit(vecadd, numba_dpex.Range(N), a, b, temporary)
        queue.submit(axpy, N, temporary, b, out, np.float32(3))
    np.testing.assert_array_equal(out.numpy(), np.float32(3) * (a + b) + b)
    assert len(f.report.stages) == 1
    assert (temporary.numpy() == -1).all()
    assert "test_kernels.py" in str(f.report)


def test_they_run_on_the_dpex_backend_too():
    a, b = floats(), floats(seed=1)
    with fq.FusionQueue("dpex") as queue:
        (_, _, c) = run_here(queue, vecadd, [a, b, np.zeros(N, np.float32)])
    np.testing.assert_array_equal(c, a + b)


# ----------------------------------------------------------------------------- refused
@kernel
def literal_beside_float32(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] * 0.5


@kernel
def global_beside_float32(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + THIRD


@kernel
def loop_variable_beside_float32(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    for k in range(3):
        c[i] += a[i] * k


@kernel
def accumulator_of_python(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    total = 0.0
    for _k in range(3):
        total += a[i]
    c[i] = total


@kernel
def choice_of_types(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] if a[i] > b[i] else 0.0


@kernel
def variable_of_two_types(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    value = a[i]
    if i > 3:
        value = 0.5
    c[i] = value


@kernel
def inexact_comparison(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    if a[i] > 0.1:
        c[i] = a[i]


@kernel
def floor_of_math(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = math.floor(a[i])


@kernel
def larger_than_a_literal(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = max(a[i], 0.0)


@kernel
def zeros_of_dpnp(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = dpnp.mod(a[i], b[i])


@numba_dpex.kernel
def divided(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] / b[i]


@numba_dpex.device_func
def quotient(x, y):
    return x / y


@kernel
def divided_elsewhere(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = quotient(a[i], b[i])


def test_bfloat16_is_no_type_of_numba_dpex(queue):
    bfloat16 = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes").bfloat16

    @kernel
    def copied(item, a, out):
        i = item.get_id(0)
        out[i] = a[i]

    arrays = [floats(), np.zeros(N, bfloat16)]
    with pytest.raises(fq.ArgumentError, match=r"'out' .* is of bfloat16, a type that numba-dpex"):
        run_here(queue, copied, arrays)
    queue.submit(fq.kernel(copied.py_func), N, *arrays).wait()
    np.testing.assert_array_equal(arrays[1], arrays[0].astype(bfloat16))


@pytest.mark.parametrize(
    ("function", "difference", "remedy"),
    [
        (literal_beside_float32, "float64 in numba-dpex, and float32 here", "np.float32(0.5)"),
        (global_beside_float32, "float64 in numba-dpex, and float32 here", "np.float32(0.333"),
        (loop_variable_beside_float32, "float32 and the Python int is float64", "np.float32(…)"),
        (accumulator_of_python, "the Python float and float32 is float64", "np.float32(…)"),
        (choice_of_types, "this conditional expression is float64", "np.float32(0.0)"),
        (variable_of_two_types, "'value' is float64 in numba-dpex", "np.float32(…)"),
        (inexact_comparison, "compares in float64 in numba-dpex", "np.float32(0.1)"),
        (floor_of_math, "math.floor of float32 is float32 in numba-dpex", "dpnp.floor"),
        (larger_than_a_literal, "the result is float64 in numba-dpex", "np.float32(0.0)"),
        (zeros_of_dpnp, "gives zeros of another sign in numba-dpex", "x % y"),
        (divided, "in numba-dpex the work-item ends there", 'error_model="numpy"'),
        (divided_elsewhere, "in numba-dpex the work-item ends there", 'error_model="numpy"'),
    ],
)
def test_float32_kernels_with_another_meaning(queue, function, difference, remedy):
    arrays = [floats(), floats(seed=1), np.zeros(N, np.float32)]
    with pytest.raises(fq.KernelLanguageError) as error:
        run_here(queue, function, arrays)
    message = str(error.value)
    assert difference in message
    assert remedy in message
    assert (
        f"test_kernels.py:{function.py_func.__code__.co_firstlineno + 3}" in message
        or (
            function in (loop_variable_beside_float32, accumulator_of_python, variable_of_two_types)
        )
        or function is divided_elsewhere
    )


@kernel
def wrapped_and_divided(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = (a[i] + b[i]) // 2


@kernel
def wrapped_and_compared(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    total = a[i] * b[i]
    if total < 0:
        c[i] = 1


@kernel
def wrapped_and_widened(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = np.int64(a[i] - b[i]) >> 3


@pytest.mark.parametrize(
    "function", [wrapped_and_divided, wrapped_and_compared, wrapped_and_widened]
)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16])
def test_integers_whose_wrapped_value_is_used(queue, function, dtype):
    arrays = [integers(dtype), integers(dtype, 1), np.zeros(N, dtype)]
    name = np.dtype(dtype).name
    with pytest.raises(fq.KernelLanguageError, match=f"has {name} here, which wraps") as error:
        run_here(queue, function, arrays)
    assert f"np.{name}(…)" in str(error.value)


@kernel
def integer_power(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] ** 2


def test_integer_powers(queue):
    """numba-dpex computes them in float64, so that large ones lose digits."""
    a, c = np.full(N, 2**31 - 1), np.zeros(N, np.int64)
    (_, _, there) = run_there(integer_power, [a, a, c])
    assert (there != a * a).all()
    with pytest.raises(fq.KernelLanguageError, match="goes through float64") as error:
        run_here(queue, integer_power, [a, a, c])
    assert "x * x" in str(error.value)


@kernel
def unsigned_and_literal(item: kapi.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] * 3


def test_uint64_beside_a_literal(queue):
    arrays = [integers(np.uint64), integers(np.uint64), np.zeros(N, np.uint64)]
    with pytest.raises(fq.KernelLanguageError, match="int64 in numba-dpex, and uint64 here"):
        run_here(queue, unsigned_and_literal, arrays)


def test_a_python_float_beside_float32(queue):
    arrays = [floats(), floats(seed=1), np.zeros(N, np.float32)]
    with pytest.raises(fq.KernelLanguageError, match="float64 in numba-dpex, and float32 here"):
        run_here(queue, axpy, arrays, [2.5])


def test_the_same_text_with_our_own_rules_is_another_kernel(queue):
    arrays = [floats(), floats(seed=1), np.zeros(N, np.float32)]
    own = fq.kernel(literal_beside_float32.py_func)
    (a, _, c) = run_here(queue, own, arrays)
    np.testing.assert_array_equal(c, a * np.float32(0.5))
    with pytest.raises(fq.KernelLanguageError):
        run_here(queue, literal_beside_float32, arrays)


def test_questions_to_numba_leave_it_working(queue):
    """Asking numba's type inference outside of its target would break its next compilation."""
    before = [floats(), floats(seed=1), np.zeros(N, np.float32)]

    @kernel
    def fresh(item: kapi.Item, a, b, c):
        i = item.get_id(0)
        c[i] = a[i] - b[i]

    check_same(queue, fresh, before)


@numba_dpex.device_func
def ratio(x, y):
    return x / y


@numba_dpex.kernel
def divides(item, a, b, out):
    i = item.get_id(0)
    out[i] = ratio(a[i], b[i]) + a[i] / b[i]


def test_a_queue_with_numpys_error_model_takes_divisions_as_they_are():
    a, b, out = floats(), floats(seed=1), np.zeros(N, np.float32)
    b[3] = 0
    with fq.FusionQueue("reference", error_model="numpy") as queue:
        queue.submit(divides, N, a, b, out)
        queue.wait()
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(out, a / b + a / b)
    with (
        fq.FusionQueue("reference") as queue,
        pytest.raises(fq.KernelLanguageError, match="by what may be zero"),
    ):
        queue.submit(divides, N, a, b, out)
    with pytest.raises(fq.ArgumentError, match="error_model='c' is none"):
        fq.FusionQueue("reference", error_model="c")


@numba_dpex.device_func
def within(x, low, high):
    return x >= low and x <= high


@numba_dpex.kernel
def pathfinder(item, rows, wall, source, result, columns, first, border, block, previous, now):
    x = item.get_local_id(0)
    start = (block - rows * 2) * item.get_group().get_group_id(0) - border
    column = start + x
    low = -start if start < 0 else 0
    high = columns - 1 - start if start + block > columns else block - 1
    left = low if x - 1 < low else x - 1
    right = high if x + 1 > high else x + 1
    valid = within(x, low, high)
    if within(column, 0, columns - 1):
        previous[x] = source[column]
    kapi.group_barrier(item.get_group())
    for row in range(rows):
        done = False
        if within(x, row + 1, block - row - 2) and valid:
            done = True
            least = min(min(previous[left], previous[x]), previous[right])
            now[x] = least + wall[columns * (first + row) + column]
        kapi.group_barrier(item.get_group())
        if row == rows - 1:
            break
        if done:
            previous[x] = now[x]
        kapi.group_barrier(item.get_group())
    if done:
        result[column] = now[x]


def test_a_name_that_a_loop_binds_is_read_after_it(queue):
    """The pathfinder of dpbench (after Rodinia), whose loop runs for as many rows as are passed."""
    rows, columns, block = 3, 21, 16
    wall = np.random.default_rng(1).integers(0, 9, rows * columns)
    best, result = np.arange(columns), np.zeros(columns, np.int64)
    space = kapi.NdRange((-(-columns // (block - 2 * rows)) * block,), (block,))
    tiles = [kapi.LocalAccessor(block, np.int64) for _ in range(2)]
    numbers = columns, 0, rows, block
    queue.submit(pathfinder, space, rows, wall, best, result, *numbers, *tiles).wait()
    for row in wall.reshape(rows, columns):
        wide = np.pad(best, 1, mode="edge")
        best = np.minimum(np.minimum(wide[:-2], wide[1:-1]), wide[2:]) + row
    np.testing.assert_array_equal(result, best)
    with pytest.raises(fq.ArgumentError, match="'done' is read after a loop that alone binds it"):
        queue.submit(pathfinder, space, 0, wall, best, result, *numbers, *tiles)
