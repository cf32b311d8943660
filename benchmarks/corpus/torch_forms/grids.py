"""Grids with clamped and periodic edges: padded and rolled tensors."""

from __future__ import annotations

from typing import Any

from fusionq.benchmarks.corpus.programs.lattice import CX, CY, DU, DV, FEED, KILL, OMEGA, WEIGHTS
from fusionq.benchmarks.corpus.programs.thermal import AMBIENT, CAP, LAMBDA, RX, RY, RZ
from fusionq.benchmarks.corpus.torch_forms.form import Size, Tensor, TorchForm


def clamped(torch: Any, x: Tensor, left: int, right: int, above: int, below: int) -> Tensor:
    """``x`` with its edges repeated so far."""
    pad = torch.nn.functional.pad
    return pad(x[None, None], (left, right, above, below), mode="replicate")[0, 0]


def hotspot(torch: Any, size: Size, power: Tensor, t: Tensor, out: Tensor) -> tuple[Tensor, ...]:
    before = t
    for _ in range(size[1]):
        before, wide = t, clamped(torch, t, 1, 1, 1, 1)
        vertical = (wide[2:, 1:-1] + wide[:-2, 1:-1] - 2.0 * t) * RY
        horizontal = (wide[1:-1, 2:] + wide[1:-1, :-2] - 2.0 * t) * RX
        t = t + CAP * (power + vertical + horizontal + (AMBIENT - t) * RZ)
    return (t, before) if size[1] % 2 == 0 else (before, t)


def srad(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    image = arrays[2]
    for _ in range(size[1]):
        mean = image.mean(dtype=torch.float64)
        square = (image * image).mean(dtype=torch.float64)
        q0 = ((square - mean * mean) / (mean * mean)).to(torch.float32)
        wide = clamped(torch, image, 1, 1, 1, 1)
        dn, ds = wide[:-2, 1:-1] - image, wide[2:, 1:-1] - image
        dw, de = wide[1:-1, :-2] - image, wide[1:-1, 2:] - image
        g2 = (dn * dn + ds * ds + dw * dw + de * de) / (image * image)
        lap = (dn + ds + dw + de) / image
        den = 1.0 + 0.25 * lap
        den = ((0.5 * g2 - 0.0625 * (lap * lap)) / (den * den) - q0) / (q0 * (1.0 + q0))
        c = torch.clamp(1.0 / (1.0 + den), 0.0, 1.0)
        south = clamped(torch, c, 0, 0, 0, 1)[1:]
        east = clamped(torch, c, 0, 1, 0, 0)[:, 1:]
        image = image + 0.25 * LAMBDA * (c * dn + south * ds + c * dw + east * de)
    return (image,)


def lattice_boltzmann(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    f = arrays[3]
    for _ in range(size[2]):
        rho = f.sum(0)
        x = (f[1] - f[3] + f[5] - f[6] - f[7] + f[8]) / rho
        y = (f[2] - f[4] + f[5] + f[6] - f[7] - f[8]) / rho
        square = 1.5 * (x * x + y * y)
        moved = []
        for q in range(9):
            cu = 3.0 * (CX[q] * x + CY[q] * y)
            to = WEIGHTS[q] * rho * (1.0 + cu + 0.5 * cu * cu - square)
            moved.append(torch.roll(f[q] + OMEGA * (to - f[q]), (CY[q], CX[q]), (0, 1)))
        f = torch.stack(moved)
    return (f,)


def gray_scott(
    torch: Any, size: Size, u: Tensor, v: Tensor, u2: Tensor, v2: Tensor
) -> tuple[Tensor, ...]:
    def around(x: Tensor) -> Tensor:
        rolls = ((1, 0), (-1, 0), (1, 1), (-1, 1))
        return sum(torch.roll(x, shift, axis) for shift, axis in rolls) - 4.0 * x

    for _ in range(2 * size[1]):
        uvv = u * v * v
        u, v = (
            u + (DU * around(u) - uvv + FEED * (1.0 - u)),
            v + (DV * around(v) + uvv - (FEED + KILL) * v),
        )
    return u, v


FORMS = {
    "hotspot": TorchForm(hotspot),
    "srad": TorchForm(srad),
    "lattice_boltzmann": TorchForm(lattice_boltzmann),
    "gray_scott": TorchForm(gray_scott),
}
