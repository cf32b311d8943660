"""The dpex backend: what numba-dpex has compiled, against NumPy and against the unfused run."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import fusionq as fq

dpnp = pytest.importorskip("dpnp", exc_type=ModuleNotFoundError)


@fq.kernel
def mul(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def sub(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] - b[i]


@fq.kernel
def scaled(item: fq.Item, factor, a, shift, out):
    i = item.get_id(0)
    out[i] = factor * a[i] + shift


@fq.kernel
def numbered(item: fq.Item, out):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    out[i, j, k] = 10_000 * i + 100 * j + k + item.get_linear_id()


@fq.kernel
def transposed(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[j, i] = a[i, j]


@fq.kernel
def reversed_inside(item: fq.NdItem, a, scratch, out):
    local, place = item.get_local_id(0), item.get_global_id(0)
    group = item.get_group()
    scratch[local] = a[place]
    fq.group_barrier(group)
    out[place] = scratch[group.get_local_range(0) - 1 - local] + group.get_group_id(0)


@fq.kernel
def histogram(item: fq.Item, a, counts):
    i = item.get_id(0)
    fq.AtomicRef(counts, a[i] % 8).fetch_add(1)


@fq.kernel
def guarded_from_both_ends(item: fq.Item, a):
    i, j = item.get_id(0), item.get_id(1)
    if 0 <= a.shape[0] - 3 - i < a.shape[0] and j < a.shape[1]:
        a[a.shape[0] - 3 - i, j] = i


@fq.kernel
def smoothed(item: fq.Item, a, out):
    i = item.get_id(0)
    window = fq.PrivateArray(3, np.float64)
    for k in range(3):
        window[k] = a[min(max(i + k - 1, 0), a.shape[0] - 1)]
    total = 0.0
    for k in range(3):
        total += window[k]
    out[i] = total / 3


WEIGHTS = (np.float32(0.25), 3, np.int8(-2))


@fq.kernel
def weighted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = WEIGHTS[0] * a[i] + WEIGHTS[1] - WEIGHTS[2]


@fq.kernel
def quotients(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i, 0] = a[i] / b[i]
    out[i, 1] = a[i] // b[i]
    out[i, 2] = a[i] % b[i]


@fq.kernel
def shifted(item: fq.Item, shift, a, out):
    i = item.get_id(0)
    out[i] = a[i + shift]


@fq.kernel
def copied_beyond(item: fq.Item, a):
    i = item.get_id(0)
    if i + 2 < a.shape[0]:
        a[i + 2] = a[i + 2]


@fq.kernel
def halves(item: fq.Item, a):
    i = item.get_id(0)
    a[i] = a[i] * 0.5


@pytest.fixture(scope="module")
def queue():
    with fq.FusionQueue("dpex") as made:
        yield made


def random(n, *, seed=0):
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("target", ["dpex", "dpex:opencl:cpu"])
def test_a_target_is_dpex_and_a_filter_string(target):
    with fq.FusionQueue(target) as queue:
        out = fq.Buffer(3, np.float32)
        queue.submit(scaled, 3, np.float32(2), fq.Buffer(random(3)), np.float32(1), out)
        np.testing.assert_array_equal(out.numpy(), np.float32(2) * random(3) + np.float32(1))


def test_no_such_device_is_an_error():
    with pytest.raises(fq.DeviceError, match="nosuch"):
        fq.FusionQueue("dpex:nosuch")


@pytest.mark.parametrize("n", [1, 1000, 100_003])
def test_four_kernels_fused_and_promoted_agree_with_numpy(queue, n):
    a, b, c, d = (random(n, seed=k) for k in range(4))
    wanted = a * b - (a - c) * d
    for fused, promoted in ((False, False), (True, False), (True, True)):
        inputs = [fq.Buffer(x) for x in (a, b, c, d)]
        preset = np.full(n, -1, np.float32)
        first, second, third = (fq.Buffer(preset, promote_private=promoted) for _ in range(3))
        out = fq.Buffer(n, np.float32)

        def submit_all():
            queue.submit(mul, n, inputs[0], inputs[1], first)  # noqa: B023  # called at once
            queue.submit(sub, n, inputs[0], inputs[2], second)  # noqa: B023
            queue.submit(mul, n, second, inputs[3], third)  # noqa: B023
            queue.submit(sub, n, first, third, out)  # noqa: B023

        if fused:
            with fq.fusion(queue, require=True) as f:
                submit_all()
            assert len(f.report.stages) == 1
            assert "@kernel(error_model=" in f.report.device_source
        else:
            submit_all()
        np.testing.assert_array_equal(out.numpy(), wanted)
        assert (third.numpy() == -1).all() == promoted


def test_views_of_every_stride(queue):
    """numba-dpex itself gets strided views wrong from 16 elements on."""
    base = np.arange(4096, dtype=np.int32)
    for part in (slice(None, None, 3), slice(7, 2000), slice(None, None, -1), slice(4000, 10, -5)):
        buffer = fq.Buffer(base)
        out = fq.Buffer(np.zeros(4096, np.int32))
        n = len(base[part])
        queue.submit(sub, n, buffer[part], buffer[:n], out[part])
        wanted = np.zeros(4096, np.int32)
        wanted[part] = base[part] - base[:n]
        np.testing.assert_array_equal(out.numpy(), wanted)


def test_dimensions_count_as_in_sycl(queue):
    out = fq.Buffer((3, 5, 7), np.int64)
    queue.submit(numbered, (3, 5, 7), out)
    i, j, k = np.indices((3, 5, 7))
    np.testing.assert_array_equal(
        out.numpy(), 10_000 * i + 100 * j + k + np.arange(105).reshape(3, 5, 7)
    )


def test_two_dimensions_with_a_view(queue):
    a = np.arange(20 * 30, dtype=np.float64).reshape(20, 30)
    out = fq.Buffer((30, 40), np.float64)
    out.write(np.zeros((30, 40)))
    queue.submit(transposed, (20, 30), fq.Buffer(a), out[:, 5:25])
    np.testing.assert_array_equal(out.numpy()[:, 5:25], a.T)
    assert not out.numpy()[:, :5].any()


@pytest.mark.parametrize("factor", [2.5, np.float32(2.5), 3, np.int8(3), True])
def test_scalars_change_between_launches(queue, factor):
    a, out = fq.Buffer(random(50)), fq.Buffer(50, np.float64)
    for shift in (1.5, -0.25, 0.0):
        queue.submit(scaled, 50, factor, a, np.float64(shift), out)
        wanted = (np.float32(factor) * random(50)).astype(np.float64) + shift
        np.testing.assert_array_equal(out.numpy(), wanted)


def test_numpy_arrays_are_reached_where_they_are(queue):
    a, out = random(1000), np.empty(1000, np.float32)
    queue.submit(mul, 1000, a, a, out)
    queue.wait()
    np.testing.assert_array_equal(out, a * a)


def test_dpnp_arrays_are_taken_without_a_copy(queue):
    a = dpnp.arange(100, dtype=np.float32)
    out = dpnp.zeros(100, dtype=np.float32)
    queue.submit(mul, 100, a, a, out)
    queue.wait()
    np.testing.assert_array_equal(dpnp.asnumpy(out), np.arange(100, dtype=np.float32) ** 2)


def test_local_memory_and_barriers(queue):
    a, out = np.arange(96, dtype=np.int64), fq.Buffer(96, np.int64)
    scratch = fq.LocalAccessor(16, np.int64)
    queue.submit(reversed_inside, fq.NdRange(96, 16), fq.Buffer(a), scratch, out)
    wanted = a.reshape(6, 16)[:, ::-1] + np.arange(6)[:, None]
    np.testing.assert_array_equal(out.numpy(), wanted.ravel())


def test_private_arrays(queue):
    a = np.random.default_rng(3).standard_normal(100)
    out = fq.Buffer(100, np.float64)
    queue.submit(smoothed, 100, fq.Buffer(a), out)
    padded = np.concatenate([a[:1], a, a[-1:]])
    np.testing.assert_array_equal(out.numpy(), (padded[:-2] + padded[1:-1] + padded[2:]) / 3)


def test_atomic_operations(queue):
    a = np.random.default_rng(5).integers(0, 100, 1000)
    counts = fq.Buffer(np.zeros(8, np.int64))
    queue.submit(histogram, 1000, fq.Buffer(a), counts)
    np.testing.assert_array_equal(counts.numpy(), np.bincount(a % 8, minlength=8))


def test_guards_that_fall_with_the_id(queue):
    """Intel's CPU compiler gets such guards wrong where they lead straight to the end."""
    a = fq.Buffer(np.full((4, 4), 9, np.int32))
    queue.submit(guarded_from_both_ends, (4, 4), a)
    np.testing.assert_array_equal(a.numpy(), np.array([[1], [0], [9], [9]]) * np.ones(4, int))


def test_captured_tuples_are_constants(queue):
    """numba-dpex crashes on them."""
    out = fq.Buffer(100, np.float32)
    queue.submit(weighted, 100, fq.Buffer(random(100)), out)
    wanted = np.float32(0.25) * random(100) + np.float32(3) + np.float32(2)
    np.testing.assert_array_equal(out.numpy(), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_division_by_zero_stores_its_result(queue, dtype):
    """By default the work-item would end there."""
    a, b = np.array([1, -1, 0, 7], dtype), np.array([0, 0, 0, 2], dtype)
    out = fq.Buffer(np.full((4, 3), 9.0))
    queue.submit(quotients, 4, fq.Buffer(a), fq.Buffer(b), out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out.numpy(), np.stack([a / b, a // b, a % b], axis=1))


def test_indices_are_unsigned(queue):
    """numba would make a gather of the choice that it makes for signed ones."""
    a, out = fq.Buffer(random(100)), fq.Buffer(90, np.float32)
    with fq.fusion(queue) as f:
        queue.submit(shifted, 90, 10, a, out)
    np.testing.assert_array_equal(out.numpy(), random(100)[10:])
    stored = [line for line in f.report.device_source.splitlines() if "out[" in line]
    assert stored and all("out[np.uint64(" in line for line in stored)
    assert "a[np.uint64(" in stored[0]


def test_there_are_no_persistent_kernels(queue):
    a, middle, out = (fq.Buffer(random(5000)) for _ in range(3))
    with fq.fusion(queue, strategy="megakernel") as f:
        queue.submit(sub, 5000, a, a, middle)
        queue.submit(sub, 5000, middle[::-1], a, out)
    assert "compiles no persistent kernels" in f.report.fallback
    np.testing.assert_array_equal(out.numpy(), -random(5000))


SCRIPT = """
import numpy as np
import fusionq as fq


@fq.kernel
def mul(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def sub(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] - b[i]


a = np.linspace(-1, 1, 1000, dtype=np.float32)
middle, out = fq.Buffer(1000, np.float32, promote_private=True), fq.Buffer(1000, np.float32)
queue = fq.FusionQueue("dpex")
with fq.fusion(queue, require=True) as f:
    queue.submit(mul, 1000, a, a, middle)
    queue.submit(sub, 1000, middle, a, out)
assert (out.numpy() == a * a - a).all()
print(f.report.cache)
"""


def test_fresh_processes_need_no_environment_variables(tmp_path):
    """The second takes its plan from the disk cache."""
    hidden = ("LD_LIBRARY_PATH", "OCL_ICD_FILENAMES", "ONEAPI_ROOT", "LD_PRELOAD")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment |= {"FUSIONQ_CACHE": "on", "FUSIONQ_CACHE_DIR": str(tmp_path / "cache")}
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for cache in ("miss", "disk"):
        done = subprocess.run(
            [sys.executable, str(script)],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout.strip()) == (0, cache), done.stderr


def test_a_promoted_buffer_that_no_work_item_reads(queue):
    """numba wants an assignment before each use of a variable, also of one that never runs."""
    a = fq.Buffer(2, np.float32, promote_private=True)
    with fq.fusion(queue, require=True) as f:
        queue.submit(copied_beyond, 2, a)
    assert [p.scope for p in f.report.promotions] == ["private"]


def test_float16_is_refused_with_the_reason(queue):
    with pytest.raises(fq.DeviceError, match="float16, which numba-dpex cannot compile"):
        queue.submit(halves, 4, fq.Buffer(np.ones(4, np.float16)))


def test_what_numba_dpex_cannot_compile_says_so(queue):
    """numba-dpex has atomic operations on signed integers and floating types only."""
    with pytest.raises(fq.DeviceError, match=r"test_backend.py:\d+: numba-dpex cannot compile"):
        queue.submit(histogram, 4, fq.Buffer(np.ones(4, np.int64)), fq.Buffer(8, np.uint32))
