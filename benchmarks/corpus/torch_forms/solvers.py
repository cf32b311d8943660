"""Linear solvers and elimination."""

from __future__ import annotations

from typing import Any

from fusionq.benchmarks.corpus.programs.solvers import WIND
from fusionq.benchmarks.corpus.torch_forms.form import Size, Tensor, TorchForm


def operator(torch: Any, wind: float, x: Tensor) -> Tensor:
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    found = 5.0 * x[1:-1, 1:-1] - around
    if wind:
        found = found + wind * (x[1:-1, 2:] - x[1:-1, :-2])
    return torch.nn.functional.pad(found, (1, 1, 1, 1))


def conjugate_gradients(
    torch: Any, size: Size, b: Tensor, x: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    r, p = b, b
    rr = (r * r).sum()
    for _step in range(size[1]):
        q = operator(torch, 0.0, p)
        alpha = rr / (p * q).sum()
        x = x + alpha * p
        r = r - alpha * q
        rr, old = (r * r).sum(), rr
        p = r + rr / old * p
    return x, r


def bicgstab(torch: Any, size: Size, b: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    r, x = b, torch.zeros_like(b)
    p, v = torch.zeros_like(b), torch.zeros_like(b)
    old = alpha = omega = torch.ones((), dtype=b.dtype, device=b.device)
    for _step in range(size[1]):
        rho = (b * r).sum()
        p = r + rho / old * (alpha / omega) * (p - omega * v)
        old = rho
        v = operator(torch, WIND, p)
        alpha = rho / (b * v).sum()
        r = r - alpha * v
        t = operator(torch, WIND, r)
        omega = (t * r).sum() / (t * t).sum()
        x = x + alpha * p + omega * r
        r = r - omega * t
    return x, r


def jacobi_solver(
    torch: Any, size: Size, a: Tensor, b: Tensor, x: Tensor, y: Tensor
) -> tuple[Tensor, ...]:
    diagonal = a.diagonal()
    for _ in range(2 * size[1]):
        x = (b - (a @ x - diagonal * x)) / diagonal
    return (x,)


def gaussian(torch: Any, size: Size, a: Tensor, b: Tensor, m: Tensor) -> tuple[Tensor, ...]:
    for t in range(size[1]):
        m[t + 1 :, t] = a[t + 1 :, t] / a[t, t]
        a[t + 1 :, t:] -= m[t + 1 :, t, None] * a[t, t:]
        b[t + 1 :] -= m[t + 1 :, t] * b[t]
    return a, b, m


def floyd_warshall(torch: Any, size: Size, d: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    for k in range(size[1]):
        d = torch.minimum(d, d[:, k, None] + d[k])
    return (d,)


def pathfinder(
    torch: Any, size: Size, wall: Tensor, source: Tensor, out: Tensor
) -> tuple[Tensor, ...]:
    before = source
    for t in range(size[1]):
        before = source
        wide = torch.cat((source[:1], source, source[-1:]))
        source = wall[t] + torch.minimum(torch.minimum(wide[:-2], source), wide[2:])
    return (source, before) if size[1] % 2 == 0 else (before, source)


FORMS = {
    "conjugate_gradients": TorchForm(conjugate_gradients),
    "bicgstab": TorchForm(bicgstab),
    "jacobi_solver": TorchForm(jacobi_solver),
    "gaussian": TorchForm(gaussian),
    "floyd_warshall": TorchForm(floyd_warshall),
    "pathfinder": TorchForm(pathfinder),
}
