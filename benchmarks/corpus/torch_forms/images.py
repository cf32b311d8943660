"""Images: filters as sums of slices, and grids of several resolutions."""

from __future__ import annotations

from typing import Any

from fusionq.benchmarks.corpus.programs.corners import sobel
from fusionq.benchmarks.corpus.programs.images import THRESHOLD, binomial
from fusionq.benchmarks.corpus.programs.images import WEIGHT as SHARPNESS
from fusionq.benchmarks.corpus.programs.multiresolution import DEPTH, LEVELS, SWEEPS, WEIGHT
from fusionq.benchmarks.corpus.torch_forms.form import Size, Tensor, TorchForm
from fusionq.benchmarks.corpus.torch_forms.grids import clamped


def blurred(torch: Any, x: Tensor) -> Tensor:
    p = clamped(torch, x, 2, 2, 0, 0)
    p = binomial(p[:, :-4], p[:, 1:-3], p[:, 2:-2], p[:, 3:-1], p[:, 4:])
    p = clamped(torch, p, 0, 0, 2, 2)
    return binomial(p[:-4], p[1:-3], p[2:-2], p[3:-1], p[4:])


def separable_blur(torch: Any, size: Size, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    return (blurred(torch, x),)


def unsharp_mask(torch: Any, size: Size, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    across = binomial(x[:, :-4], x[:, 1:-3], x[:, 2:-2], x[:, 3:-1], x[:, 4:])
    soft = binomial(across[:-4], across[1:-3], across[2:-2], across[3:-1], across[4:])
    here = x[2:-2, 2:-2]
    sharp = here * (1.0 + SHARPNESS) - soft * SHARPNESS
    found = torch.where(torch.abs(here - soft) < THRESHOLD, here, sharp)
    return (torch.nn.functional.pad(found, (2, 2, 2, 2)),)


def harris(torch: Any, size: Size, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    a, b, c = x[:-2], x[1:-1], x[2:]
    ix = sobel(a[:, :-2], b[:, :-2], c[:, :-2], a[:, 2:], b[:, 2:], c[:, 2:])
    iy = sobel(a[:, :-2], a[:, 1:-1], a[:, 2:], c[:, :-2], c[:, 1:-1], c[:, 2:])

    def box(f: Tensor) -> Tensor:
        across = f[:, :-2] + f[:, 1:-1] + f[:, 2:]
        return across[:-2] + across[1:-1] + across[2:]

    sxx, sxy, syy = box(ix * ix), box(ix * iy), box(iy * iy)
    trace = sxx + syy
    found = sxx * syy - sxy * sxy - 0.04 * trace * trace
    return (torch.nn.functional.pad(found, (2, 2, 2, 2)),)


def laplacian_pyramid(torch: Any, size: Size, fine: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    details = []
    for _level in range(LEVELS):
        m = fine.shape[0]
        p = clamped(torch, fine, 2, 2, 0, 0)
        p = binomial(*(p[:, k : k + m : 2] for k in range(5)))
        p = clamped(torch, p, 0, 0, 2, 2)
        coarse = binomial(*(p[k : k + m : 2] for k in range(5)))
        ids = torch.arange(m, device=fine.device)
        here, there = ids // 2, torch.clamp((ids + 1) // 2, max=m // 2 - 1)
        a, b = coarse[here], coarse[there]
        wide = (a[:, here] + b[:, here]) + (a[:, there] + b[:, there])
        details.append(fine - 0.25 * wide)
        fine = coarse
    return tuple(details)


def multigrid(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    f, u = list(arrays[:DEPTH]), list(arrays[DEPTH : 2 * DEPTH])
    pad = torch.nn.functional.pad

    def left_over(level: int) -> Tensor:
        x = u[level]
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return f[level][1:-1, 1:-1] - (4.0 * x[1:-1, 1:-1] - around)

    def smooth(level: int) -> None:
        for _ in range(SWEEPS):
            u[level] = u[level] + pad(WEIGHT * left_over(level), (1, 1, 1, 1))

    for level in range(DEPTH - 1):
        smooth(level)
        x = pad(left_over(level), (1, 1, 1, 1))
        y, n, s = slice(2, -2, 2), slice(1, -3, 2), slice(3, -1, 2)
        sides = x[n, y] + x[s, y] + x[y, n] + x[y, s]
        corners = x[n, n] + x[n, s] + x[s, n] + x[s, s]
        f[level + 1] = pad(x[y, y] + 0.5 * sides + 0.25 * corners, (1, 1, 1, 1))
        u[level + 1] = torch.zeros_like(u[level + 1])
    smooth(DEPTH - 1)
    for level in reversed(range(DEPTH - 1)):
        ids = torch.arange(1, u[level].shape[0] - 1, device=u[0].device)
        here, there = ids // 2, (ids + 1) // 2
        a, b = u[level + 1][here], u[level + 1][there]
        between = 0.25 * ((a[:, here] + b[:, here]) + (a[:, there] + b[:, there]))
        u[level] = u[level] + pad(between, (1, 1, 1, 1))
        smooth(level)
    return (u[0],)


FORMS = {
    "separable_blur": TorchForm(separable_blur),
    "unsharp_mask": TorchForm(unsharp_mask, thresholds=1e-6),
    "harris": TorchForm(harris),
    "laplacian_pyramid": TorchForm(laplacian_pyramid),
    "multigrid": TorchForm(multigrid),
}
