"""Several resolutions: a Laplacian pyramid, and a multigrid V-cycle."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

# ------------------------------------------------------------------------------------ pyramid
LEVELS = 3


def five(a: Scalar, b: Scalar, c: Scalar, d: Scalar, e: Scalar) -> Scalar:
    return 0.0625 * (a + e) + 0.25 * (b + d) + 0.375 * c


@fq.kernel
def reduce_rows(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_id(0)
    j = 2 * item.get_id(1)
    last = x.shape[1] - 1
    out[i, item.get_id(1)] = five(
        x[i, max(j - 2, 0)], x[i, max(j - 1, 0)], x[i, j], x[i, min(j + 1, last)],
        x[i, min(j + 2, last)],
    )  # fmt: skip


@fq.kernel
def reduce_columns(item: fq.Item, x: Array, out: Array) -> None:
    i = 2 * item.get_id(0)
    j = item.get_id(1)
    last = x.shape[0] - 1
    out[item.get_id(0), j] = five(
        x[max(i - 2, 0), j], x[max(i - 1, 0), j], x[i, j], x[min(i + 1, last), j],
        x[min(i + 2, last), j],
    )  # fmt: skip


@fq.kernel
def detail(item: fq.Item, fine: Array, coarse: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    below = min((i + 1) // 2, coarse.shape[0] - 1)
    right = min((j + 1) // 2, coarse.shape[1] - 1)
    left = coarse[i // 2, j // 2] + coarse[below, j // 2]
    out[i, j] = fine[i, j] - 0.25 * (left + (coarse[i // 2, right] + coarse[below, right]))


@fq.kernel
def blur_full(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_linear_id() // x.shape[1]
    j = item.get_linear_id() % x.shape[1]
    last = x.shape[1] - 1
    out[i, j] = five(
        x[i, max(j - 2, 0)], x[i, max(j - 1, 0)], x[i, j], x[i, min(j + 1, last)],
        x[i, min(j + 2, last)],
    )  # fmt: skip


@fq.kernel
def take_half(item: fq.Item, x: Array, out: Array) -> None:
    i = item.get_linear_id() // out.shape[1]
    j = item.get_linear_id() % out.shape[1]
    last = x.shape[0] - 1
    k = 2 * i
    out[i, j] = five(
        x[max(k - 2, 0), 2 * j], x[max(k - 1, 0), 2 * j], x[k, 2 * j], x[min(k + 1, last), 2 * j],
        x[min(k + 2, last), 2 * j],
    )  # fmt: skip


def submit_pyramid_reduced(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    fines, halves, details = arrays[:4], arrays[4:7], arrays[10:]
    for level in range(LEVELS):
        m = n >> level
        queue.submit(reduce_rows, (m, m // 2), fines[level], halves[level])
        queue.submit(reduce_columns, (m // 2, m // 2), halves[level], fines[level + 1])
        queue.submit(detail, (m, m), fines[level], fines[level + 1], details[level])


def submit_pyramid_subsampled(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    (n,) = size
    fines, wholes, details = arrays[:4], arrays[7:10], arrays[10:]
    for level in range(LEVELS):
        m = n >> level
        queue.submit(blur_full, m * m, fines[level], wholes[level])
        queue.submit(take_half, (m // 2) ** 2, wholes[level], fines[level + 1])
    for level in reversed(range(LEVELS)):
        m = n >> level
        queue.submit(detail, (m, m), fines[level], fines[level + 1], details[level])


def pyramid_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    (n,) = size
    levels = [(k, n >> k) for k in range(LEVELS)]
    arrays = {"fine_0": rng.random((n, n), dtype=np.float32)}
    arrays |= {f"fine_{k + 1}": np.zeros((m // 2, m // 2), np.float32) for k, m in levels}
    arrays |= {f"half_{k}": np.zeros((m, m // 2), np.float32) for k, m in levels}
    for name in ("whole", "detail"):
        arrays |= {f"{name}_{k}": np.zeros((m, m), np.float32) for k, m in levels}
    return arrays


def pyramid_numpy(size: Size, *arrays: Array) -> None:
    fines, details = arrays[:4], arrays[10:]
    for fine, coarse, out in zip(fines, fines[1:], details, strict=False):
        p = np.pad(fine, ((0, 0), (2, 2)), mode="edge")
        m = fine.shape[0]
        rows = five(*(p[:, k : k + m : 2] for k in range(5)))
        p = np.pad(rows, ((2, 2), (0, 0)), mode="edge")
        coarse[...] = five(*(p[k : k + m : 2] for k in range(5)))
        here = np.arange(m) // 2
        there = np.minimum((np.arange(m) + 1) // 2, m // 2 - 1)
        a, b = coarse[here], coarse[there]
        out[...] = fine - 0.25 * ((a[:, here] + b[:, here]) + (a[:, there] + b[:, there]))


# ---------------------------------------------------------------------------------- multigrid
SWEEPS = 2
"""Weighted Jacobi sweeps before and after the coarse grid."""
DEPTH = 3
WEIGHT = 0.2
"""4/5 of the inverse diagonal."""


@fq.kernel
def smooth_guarded(item: fq.Item, f: Array, u: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n = u.shape[0]
    if i == 0 or j == 0 or i == n - 1 or j == n - 1:
        out[i, j] = 0.0
    else:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + WEIGHT * (f[i, j] - (4.0 * u[i, j] - around))


@fq.kernel
def smooth_interior(item: fq.Item, f: Array, u: Array, out: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
    out[i, j] = u[i, j] + WEIGHT * (f[i, j] - (4.0 * u[i, j] - around))


@fq.kernel
def residual_guarded(item: fq.Item, f: Array, u: Array, r: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n = u.shape[0]
    if 0 < i < n - 1 and 0 < j < n - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        r[i, j] = f[i, j] - (4.0 * u[i, j] - around)


@fq.kernel
def residual_interior(item: fq.Item, f: Array, u: Array, r: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
    r[i, j] = f[i, j] - (4.0 * u[i, j] - around)


@fq.kernel
def restrict_interior(item: fq.Item, r: Array, f: Array, u: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    y = 2 * i
    x = 2 * j
    sides = r[y - 1, x] + r[y + 1, x] + r[y, x - 1] + r[y, x + 1]
    corners = r[y - 1, x - 1] + r[y - 1, x + 1] + r[y + 1, x - 1] + r[y + 1, x + 1]
    f[i, j] = r[y, x] + 0.5 * sides + 0.25 * corners
    u[i, j] = 0.0


@fq.kernel
def restrict_guarded(item: fq.Item, r: Array, f: Array, u: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    u[i, j] = 0.0
    if 0 < i < f.shape[0] - 1 and 0 < j < f.shape[1] - 1:
        y = 2 * i
        x = 2 * j
        sides = r[y - 1, x] + r[y + 1, x] + r[y, x - 1] + r[y, x + 1]
        corners = r[y - 1, x - 1] + r[y - 1, x + 1] + r[y + 1, x - 1] + r[y + 1, x + 1]
        f[i, j] = r[y, x] + 0.5 * sides + 0.25 * corners


@fq.kernel
def prolong(item: fq.Item, coarse: Array, u: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    left = coarse[i // 2, j // 2] + coarse[(i + 1) // 2, j // 2]
    right = coarse[i // 2, (j + 1) // 2] + coarse[(i + 1) // 2, (j + 1) // 2]
    u[i, j] += 0.25 * (left + right)


def submit_multigrid(queue: fq.FusionQueue, size: Size, guarded: bool, *arrays: fq.Buffer) -> None:
    """A V-cycle; the finest grid has ``n`` points a side, one more than a power of two."""
    (n,) = size
    sides = [((n - 1) >> level) + 1 for level in range(DEPTH)]
    f, u, v, r = (arrays[k * DEPTH : (k + 1) * DEPTH] for k in range(4))

    def smooth(level: int) -> None:
        m = sides[level]
        for _ in range(SWEEPS // 2):
            for source, target in ((u, v), (v, u)):
                if guarded:
                    queue.submit(smooth_guarded, (m, m), f[level], source[level], target[level])
                else:
                    inner = (m - 2, m - 2)
                    queue.submit(smooth_interior, inner, f[level], source[level], target[level])

    for level in range(DEPTH - 1):
        m, coarse = sides[level], sides[level + 1]
        smooth(level)
        if guarded:
            queue.submit(residual_guarded, (m, m), f[level], u[level], r[level])
            whole = (coarse, coarse)
            queue.submit(restrict_guarded, whole, r[level], f[level + 1], u[level + 1])
        else:
            queue.submit(residual_interior, (m - 2, m - 2), f[level], u[level], r[level])
            inner = (coarse - 2, coarse - 2)
            queue.submit(restrict_interior, inner, r[level], f[level + 1], u[level + 1])
    smooth(DEPTH - 1)
    for level in reversed(range(DEPTH - 1)):
        m = sides[level]
        queue.submit(prolong, (m - 2, m - 2), u[level + 1], u[level])
        smooth(level)


def submit_multigrid_guarded(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    submit_multigrid(queue, size, True, *arrays)


def submit_multigrid_interior(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    submit_multigrid(queue, size, False, *arrays)


def multigrid_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    sides = [((size[0] - 1) >> level) + 1 for level in range(DEPTH)]
    zeros = {f"{name}_{k}": np.zeros((m, m)) for name in "fuvr" for k, m in enumerate(sides)}
    inside = np.s_[1:-1, 1:-1]
    zeros["f_0"][inside] = rng.random((size[0] - 2, size[0] - 2))
    zeros["u_0"][inside] = rng.random((size[0] - 2, size[0] - 2))
    return zeros


def multigrid_numpy(size: Size, *arrays: Array) -> None:
    f, u, _, r = (arrays[k * DEPTH : (k + 1) * DEPTH] for k in range(4))
    c = np.s_[1:-1, 1:-1]

    def left_over(level: int) -> Array:
        x = u[level]
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        found: Array = f[level][c] - (4.0 * x[c] - around)
        return found

    def smooth(level: int) -> None:
        for _ in range(SWEEPS):
            u[level][c] += WEIGHT * left_over(level)

    for level in range(DEPTH - 1):
        smooth(level)
        x = r[level]
        x[c] = left_over(level)
        y, n, s = np.s_[2:-2:2], np.s_[1:-3:2], np.s_[3:-1:2]
        sides = x[n, y] + x[s, y] + x[y, n] + x[y, s]
        corners = x[n, n] + x[n, s] + x[s, n] + x[s, s]
        f[level + 1][c] = x[y, y] + 0.5 * sides + 0.25 * corners
        u[level + 1][...] = 0.0
    smooth(DEPTH - 1)
    for level in reversed(range(DEPTH - 1)):
        here = np.arange(1, u[level].shape[0] - 1)
        a, b = u[level + 1][here // 2], u[level + 1][(here + 1) // 2]
        left = a[:, here // 2] + b[:, here // 2]
        u[level][c] += 0.25 * (left + (a[:, (here + 1) // 2] + b[:, (here + 1) // 2]))
        smooth(level)


PROGRAMS = (
    CorpusProgram(
        name="laplacian_pyramid",
        description="three levels: blur and halve, then what each level lost, float32",
        source="Burt and Adelson, The Laplacian pyramid, IEEE Trans. Comm. 1983",
        axes=("n",),
        sizes={"tiny": (16,), "in cache": (256,), "out of cache": (4096,)},
        arrays=pyramid_arrays,
        inputs=("fine_0",),
        outputs=tuple(f"detail_{k}" for k in range(LEVELS)),
        forms=(
            Form("reduced", "rows and columns as ids, halving as it blurs", submit_pyramid_reduced),
            Form("subsampled", "linear ids, blurred whole and halved", submit_pyramid_subsampled),
        ),
        reference=pyramid_numpy,
    ),
    CorpusProgram(
        name="multigrid",
        description="a V-cycle for Poisson's equation on three grids, float64",
        source="Briggs, Henson and McCormick, A Multigrid Tutorial, SIAM 2000",
        axes=("n",),
        sizes={"tiny": (9,), "in cache": (193,), "out of cache": (2049,)},
        arrays=multigrid_arrays,
        inputs=("f_0",),
        outputs=("u_0",),
        forms=(
            Form("guarded", "full ranges, the edge is a condition", submit_multigrid_guarded),
            Form("interior", "interior ranges, id + 1", submit_multigrid_interior),
        ),
        reference=multigrid_numpy,
    ),
)
