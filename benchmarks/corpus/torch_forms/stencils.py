"""Stencils over two arrays in turn and in place: slices that are assigned."""

from __future__ import annotations

from typing import Any

from fusionq.benchmarks.corpus.programs.relaxation import RATE
from fusionq.benchmarks.corpus.torch_forms.form import Size, Tensor, TorchForm


def jacobi_1d(torch: Any, size: Size, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    for _ in range(size[1]):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return a, b


def jacobi_2d(torch: Any, size: Size, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    for _ in range(size[1]):
        for x, y in ((a, b), (b, a)):
            around = x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]
            y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + around)
    return (a,)


def jacobi_3d(torch: Any, size: Size, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    for _ in range(size[1]):
        for x, y in ((a, b), (b, a)):
            total = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1]
            total = total + x[1:-1, 2:, 1:-1] + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]
            y[1:-1, 1:-1, 1:-1] = 0.1 * total + 0.4 * x[1:-1, 1:-1, 1:-1]
    return a, b


def heat_3d(torch: Any, size: Size, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    for _ in range(size[1]):
        for s, t in ((a, b), (b, a)):
            here = s[1:-1, 1:-1, 1:-1]
            x = 0.125 * (s[2:, 1:-1, 1:-1] - 2.0 * here + s[:-2, 1:-1, 1:-1])
            y = 0.125 * (s[1:-1, 2:, 1:-1] - 2.0 * here + s[1:-1, :-2, 1:-1])
            z = 0.125 * (s[1:-1, 1:-1, 2:] - 2.0 * here + s[1:-1, 1:-1, :-2])
            t[1:-1, 1:-1, 1:-1] = x + y + z + here
    return a, b


def gauss_seidel_red_black(torch: Any, size: Size, f: Tensor, u: Tensor) -> tuple[Tensor, ...]:
    n, steps = size
    ids = torch.arange(1, n - 1, device=u.device)
    colours = (ids[:, None] + ids) % 2
    for _ in range(steps):
        for colour in (0, 1):
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            relaxed = 0.25 * (around + f[1:-1, 1:-1])
            u[1:-1, 1:-1] = torch.where(colours == colour, relaxed, u[1:-1, 1:-1])
    return (u,)


def wave_2d(torch: Any, size: Size, u: Tensor, v: Tensor, lap: Tensor) -> tuple[Tensor, ...]:
    for _ in range(size[1]):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        v[1:-1, 1:-1] += RATE * (around - 4.0 * u[1:-1, 1:-1])
        u += v
    return u, v


def fdtd_2d(
    torch: Any, size: Size, fict: Tensor, ex: Tensor, ey: Tensor, hz: Tensor
) -> tuple[Tensor, ...]:
    for t in range(size[2]):
        ey[0] = fict[t]
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


FORMS = {
    "jacobi_1d": TorchForm(jacobi_1d),
    "jacobi_2d": TorchForm(jacobi_2d),
    "jacobi_3d": TorchForm(jacobi_3d),
    "heat_3d": TorchForm(heat_3d),
    "gauss_seidel_red_black": TorchForm(gauss_seidel_red_black),
    "wave_2d": TorchForm(wave_2d),
    "fdtd_2d": TorchForm(fdtd_2d),
}
