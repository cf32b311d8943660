"""Prefix sums, histograms, and bitonic sort."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

GROUP = 256


# -------------------------------------------------------------------------------- prefix sums
@fq.kernel
def add_from_left(item: fq.Item, distance: Scalar, x: Array, out: Array) -> None:
    i = item.get_id(0)
    if i >= distance:
        out[i] = x[i] + x[i - distance]
    else:
        out[i] = x[i]


@fq.kernel
def scan_groups(item: fq.NdItem, x: Array, out: Array, sums: Array) -> None:
    i = item.get_global_id(0)
    total = fq.inclusive_scan_over_group(item.get_group(), x[i], "add")
    out[i] = total
    if item.get_local_id(0) == item.get_local_range(0) - 1:
        sums[item.get_group().get_group_id(0)] = total


@fq.kernel
def scan_sums(item: fq.Item, sums: Array, starts: Array) -> None:
    total = item.get_id(0)
    for block in range(sums.shape[0]):
        starts[block] = total
        total += sums[block]


@fq.kernel
def add_starts(item: fq.NdItem, starts: Array, out: Array) -> None:
    i = item.get_global_id(0)
    out[i] += starts[item.get_group().get_group_id(0)]


@fq.kernel
def add_starts_by_division(item: fq.Item, starts: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] += starts[i // GROUP]


def submit_scan_doubling(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    x, out, spare, _, _ = arrays
    distance, source = 1, x
    targets = (out, spare) if (n - 1).bit_length() % 2 else (spare, out)
    step = 0
    while distance < n:
        target = targets[step % 2]
        queue.submit(add_from_left, n, distance, source, target)
        distance, source, step = 2 * distance, target, step + 1


def submit_scan_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    x, out, _, sums, starts = arrays
    queue.submit(scan_groups, fq.NdRange(n, GROUP), x, out, sums)
    queue.submit(scan_sums, 1, sums, starts)
    queue.submit(add_starts, fq.NdRange(n, GROUP), starts, out)


def submit_scan_mixed(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    x, out, _, sums, starts = arrays
    queue.submit(scan_groups, fq.NdRange(n, GROUP), x, out, sums)
    queue.submit(scan_sums, 1, sums, starts)
    queue.submit(add_starts_by_division, n, starts, out)


def scan_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    (n,) = size
    x = rng.integers(-9, 10, n)
    blocks = {name: np.zeros(n // GROUP, np.int64) for name in ("sums", "starts")}
    return {"x": x, "out": np.zeros_like(x), "spare": np.zeros_like(x), **blocks}


def scan_numpy(size: Size, x: Array, out: Array, *_: Array) -> None:
    np.cumsum(x, out=out)


# ---------------------------------------------------------------------------------- histogram
LEVELS = 256
BLOCKS = 64


@fq.kernel
def clear(item: fq.Item, counts: Array) -> None:
    counts[item.get_id(0)] = 0


@fq.kernel
def count_atomically(item: fq.Item, image: Array, counts: Array) -> None:
    fq.AtomicRef(counts, image[item.get_id(0)]).fetch_add(1)


@fq.kernel
def cumulate(item: fq.Item, counts: Array, cdf: Array) -> None:
    total = item.get_id(0)
    for level in range(counts.shape[0]):
        total += counts[level]
        cdf[level] = total


@fq.kernel
def equalise(item: fq.Item, cdf: Array, image: Array, out: Array) -> None:
    i = item.get_id(0)
    out[i] = (cdf[image[i]] * 255) // image.shape[0]


@fq.kernel
def count_locally(
    item: fq.NdItem, image: Array, local: fq.LocalAccessor, counts: Array
) -> None:
    k = item.get_local_id(0)
    local[k] = 0
    fq.group_barrier(item.get_group())
    for i in range(item.get_global_id(0), image.shape[0], item.get_global_range(0)):
        fq.AtomicRef(local, image[i]).fetch_add(1)
    fq.group_barrier(item.get_group())
    fq.AtomicRef(counts, k).fetch_add(local[k])


def submit_histogram_global(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    image, counts, cdf, out = arrays
    queue.submit(clear, LEVELS, counts)
    queue.submit(count_atomically, n, image, counts)
    queue.submit(cumulate, 1, counts, cdf)
    queue.submit(equalise, n, cdf, image, out)


def submit_histogram_local(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    image, counts, cdf, out = arrays
    groups = fq.NdRange(BLOCKS * LEVELS, LEVELS)
    queue.submit(clear, LEVELS, counts)
    queue.submit(count_locally, groups, image, fq.LocalAccessor(LEVELS, np.int32), counts)
    queue.submit(cumulate, 1, counts, cdf)
    queue.submit(equalise, n, cdf, image, out)


def histogram_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    (n,) = size
    return {
        "image": np.minimum(rng.integers(0, 512, n), LEVELS - 1),
        "counts": np.ones(LEVELS, np.int32),
        "cdf": np.zeros(LEVELS, np.int64),
        "out": np.zeros(n, np.int64),
    }


def histogram_numpy(size: Size, image: Array, counts: Array, cdf: Array, out: Array) -> None:
    counts[...] = np.bincount(image, minlength=LEVELS)
    np.cumsum(counts, out=cdf)
    out[...] = cdf[image] * 255 // size[0]


# -------------------------------------------------------------------------------- bitonic sort
@fq.kernel
def exchange_guarded(item: fq.Item, k: Scalar, j: Scalar, x: Array) -> None:
    i = item.get_id(0)
    other = i ^ j
    if other > i:
        a = x[i]
        b = x[other]
        ascending = (i & k) == 0
        if (a > b) == ascending:
            x[i] = b
            x[other] = a


@fq.kernel
def exchange_pairs(item: fq.Item, k: Scalar, j: Scalar, x: Array) -> None:
    pair = item.get_id(0)
    i = pair // j * (2 * j) + pair % j
    a = x[i]
    b = x[i + j]
    low = min(a, b)
    high = max(a, b)
    ascending = i // k % 2 == 0
    x[i] = low if ascending else high
    x[i + j] = high if ascending else low


def submit_sort_guarded(queue: fq.FusionQueue, size: Size, x: fq.Buffer) -> None:
    n, longest = size
    k = 2
    while k <= longest:
        j = k // 2
        while j > 0:
            queue.submit(exchange_guarded, n, k, j, x)
            j //= 2
        k *= 2


def submit_sort_pairs(queue: fq.FusionQueue, size: Size, x: fq.Buffer) -> None:
    n, longest = size
    k = 2
    while k <= longest:
        j = k // 2
        while j > 0:
            queue.submit(exchange_pairs, n // 2, k, j, x)
            j //= 2
        k *= 2


def sort_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    return {"x": rng.integers(-(1 << 30), 1 << 30, size[0], dtype=np.int32)}


def sort_numpy(size: Size, x: Array) -> None:
    """Runs of ``longest``, sorted up and down alternately."""
    runs = x.reshape(-1, size[1])
    runs.sort(axis=1)
    runs[1::2] = runs[1::2, ::-1].copy()


PROGRAMS = (
    CorpusProgram(
        name="prefix_sum",
        description="inclusive sums of a sequence, int64",
        source="Hillis and Steele, Data parallel algorithms, CACM 1986; Blelloch, 1990",
        axes=("n",),
        sizes={"tiny": (1024,), "in cache": (1 << 14,), "out of cache": (1 << 22,)},
        arrays=scan_arrays,
        inputs=("x",),
        outputs=("out",),
        forms=(
            Form("doubling", "a launch for each power of two", submit_scan_doubling),
            Form("groups", "NdRange: group scans, their sums, additions", submit_scan_groups),
            Form("mixed", "group scans, then a plain range that divides", submit_scan_mixed),
        ),
        reference=scan_numpy,
    ),
    CorpusProgram(
        name="histogram",
        description="counts of levels, cumulated, and the image equalised; integers",
        source="Gonzalez and Woods, Digital Image Processing, 2008, section 3.3",
        axes=("n",),
        sizes={"tiny": (500,), "in cache": (1 << 15,), "out of cache": (1 << 22,)},
        arrays=histogram_arrays,
        inputs=("image",),
        outputs=("counts", "out"),
        forms=(
            Form("global", "atomics on the counts", submit_histogram_global),
            Form("local", "NdRange, counts of work-groups in local memory", submit_histogram_local),
        ),
        reference=histogram_numpy,
    ),
    CorpusProgram(
        name="bitonic_sort",
        description="compare and exchange, runs up to a length, int32",
        source="Batcher, Sorting networks and their applications, AFIPS 1968",
        axes=("n", "longest"),
        sizes={"tiny": (32, 8), "in cache": (1 << 15, 1 << 6), "out of cache": (1 << 24, 1 << 4)},
        arrays=sort_arrays,
        inputs=(),
        outputs=("x",),
        forms=(
            Form("guarded", "full range, the lower of a pair works", submit_sort_guarded),
            Form("pairs", "half the range, a work-item a pair, divided", submit_sort_pairs),
        ),
        reference=sort_numpy,
    ),
)
