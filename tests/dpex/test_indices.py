"""Negative indices in kernels of numba-dpex: they count from the end there, and so they do here."""

from __future__ import annotations

import linecache
from itertools import count

import numpy as np
import pytest

import fusionq as fq
from fusionq.dpex.frontend.kernel import dpex_kernel
from fusionq.ir.printer import print_kernel
from tests.unit.frontend.running import signature

numba_dpex = pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)
dpnp = pytest.importorskip("dpnp", exc_type=ModuleNotFoundError)

N = 64
_numbers = count()


@pytest.fixture(scope="module")
def queue():
    with fq.FusionQueue("opencl:cpu") as made:
        yield made


def kernel_of(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    text = f"def k(item, a, b, out):\n{body}"
    file = f"<index {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"np": np, "kapi": numba_dpex.kernel_api, "N": N}
    exec(compile(text, file, "exec"), names)
    return numba_dpex.kernel(error_model="numpy")(names["k"])


def arguments():
    a = np.arange(N) * 10
    return [a, np.random.default_rng(1).integers(-N, N, N), np.zeros(N, np.int64)]


def text_of(*lines):
    """The kernel's IR as Python."""
    return print_kernel(dpex_kernel(kernel_of(*lines)).specialise(signature(N, arguments())))


@pytest.mark.parametrize(
    "lines",
    [
        ("out[i] = a[i - 1]",),
        ("out[i] = a[-1] + a[-N]",),
        ("out[i] = a[b[i]]",),
        ("out[-1 - i] = a[i]",),
        ("out[a.shape[0] - 1 - i] = a[i]",),
        ("for k in range(4):", "    out[i] += a[i - k]"),
        ("for k in range(i - 3, i):", "    out[i] += a[k]"),
        ("out[i] = a[(i + b[i]) % 64] + a[b[i] & 63]",),
        ("if i > 0 or b[i] > 0:", "    out[i] = a[i - 1]"),
        ("k = i", "while k > i - 3:", "    k -= 1", "    out[i] += a[k]"),
        ("kapi.AtomicRef(out, -1 - i % 4).fetch_add(a[i])",),
        ("out[i] = a[np.uint64(i)] + a[np.int32(i) - np.int64(70) + 6]",),
        ("scratch = kapi.PrivateArray(4, np.int64)", "for k in range(1, 5):",
         "    scratch[-k] = k * i", "out[i] = scratch[0] + 100 * scratch[3]"),
    ],
)  # fmt: skip
def test_both_read_and_write_the_same_elements(queue, lines):
    a, b, here = arguments()
    queue.submit(kernel_of(*lines), N, a, b, here).wait()
    there = dpnp.zeros(N, dtype=np.int64)
    numba_dpex.call_kernel(
        kernel_of(*lines), numba_dpex.Range(N), dpnp.asarray(a), dpnp.asarray(b), there
    )
    np.testing.assert_array_equal(here, dpnp.asnumpy(there))


@pytest.mark.parametrize(
    "lines",
    [
        ("out[i] = a[i] + a[i + 1] + a[2 * i] + a[i // 2] + a[i >> 1]",),
        ("if i > 0:", "    out[i] = a[i - 1]"),
        ("if 1 <= i and i < N:", "    out[i] = a[i - 1]"),
        ("if i == 0:", "    return", "out[i] = a[i - 1]"),
        ("if not i < 2:", "    out[i] = a[i - 2]"),
        ("j = i - 3", "if j >= 0:", "    out[i] = a[j]"),
        ("if i - 3 > -1:", "    j = i - 3", "    out[i] = a[j]"),
        ("out[i] = a[i - 1] if i > 0 else a[0]",),
        ("if i > 0 and a[i - 1] > 0:", "    out[i] = 1"),
        ("out[i] = a[max(i - 1, 0)] + a[min(i, 5)]",),
        ("for k in range(i + 1):", "    if k < 1:", "        continue", "    out[i] += a[k - 1]"),
        ("for k in range(9, 0, -1):", "    out[i] += a[k - 1]"),
        ("out[i] = a[np.uint64(b[i])]",),
        ("out[i] = a[b[i] % 64] + a[b[i] & 63]",),
    ],
)  # fmt: skip
def test_an_index_that_is_not_negative_stays_as_it_is(lines):
    assert "a.shape[0]" not in text_of(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("if i > 0 or b[i] > 0:", "    out[i] = a[i - 1]"),
        ("if i < 1:", "    out[i] = a[i - 1]"),
        ("if i > 0:", "    out[i] = a[i - 2]"),
        ("j = i", "if j > 0:", "    j = i - 5", "    out[i] = a[j]"),
        ("for k in range(9, -2, -1):", "    out[i] += a[k]"),
        ("out[i] = a[min(i - 1, 0)]",),
        ("out[i] = a[b[i] % -4]",),
    ],
)
def test_an_index_that_may_be_negative_counts_from_the_end(lines):
    assert "a.shape[0]" in text_of(*lines)


def test_guarded_neighbours_fuse(queue):
    """What is known not to be negative is as easy to analyse as in a kernel of our own."""
    first, second = kernel_of("out[i] = a[i] + b[i]"), kernel_of("if i > 0:", "    out[i] = a[i]")
    a, b, out = arguments()
    middle = fq.Buffer(N, np.int64, promote_private=True)
    with fq.fusion(queue, require=True) as f:
        queue.submit(first, N, a, b, middle)
        queue.submit(second, N, middle, b, out)
    f.event.wait()
    assert not middle.is_allocated
    np.testing.assert_array_equal(out[1:], (a + b)[1:])


def test_a_reversed_index_is_analysed(queue):
    reverse = kernel_of("out[a.shape[0] - 1 - i] = a[i]")
    a, b, out = arguments()
    middle = fq.Buffer(N, np.int64)
    with fq.fusion(queue) as f:
        queue.submit(reverse, N, a, b, middle)
        queue.submit(reverse, N, middle, b, out)
    f.event.wait()
    assert {d.scope for d in f.report.dependences} <= {"GLOBAL", "GROUP"}
    np.testing.assert_array_equal(out, a)
