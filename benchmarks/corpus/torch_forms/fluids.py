"""Fluids and weather: many slices of staggered grids."""

from __future__ import annotations

from typing import Any

from fusionq.benchmarks.corpus.programs.fluids import DT, NU, RATIO, RHO, SWEEPS, momentum
from fusionq.benchmarks.corpus.programs.hydro import DT as STEP
from fusionq.benchmarks.corpus.programs.hydro import GAMMA
from fusionq.benchmarks.corpus.programs.weather import BET_M, BET_P, DTR
from fusionq.benchmarks.corpus.torch_forms.form import Size, Tensor, TorchForm


def shallow_water(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    h, u, v, *_ = arrays
    for _step in range(size[1]):
        for edge, inner in ((0, 1), (-1, -2)):
            h[:, edge], u[:, edge], v[:, edge] = h[:, inner], u[:, inner], -v[:, inner]
        for edge, inner in ((0, 1), (-1, -2)):
            h[edge], u[edge], v[edge] = h[inner], -u[inner], v[inner]
        ha, hb, ua, ub, va, vb = (x for f in (h, u, v) for x in (f[1:, 1:-1], f[:-1, 1:-1]))
        hx = 0.5 * (ha + hb) - 0.5 * RATIO * (ua - ub)
        ux = 0.5 * (ua + ub) - 0.5 * RATIO * (momentum(ua, ha) - momentum(ub, hb))
        vx = 0.5 * (va + vb) - 0.5 * RATIO * (ua * va / ha - ub * vb / hb)
        hc, hd, uc, ud, vc, vd = (x for f in (h, u, v) for x in (f[1:-1, 1:], f[1:-1, :-1]))
        hy = 0.5 * (hc + hd) - 0.5 * RATIO * (vc - vd)
        uy = 0.5 * (uc + ud) - 0.5 * RATIO * (vc * uc / hc - vd * ud / hd)
        vy = 0.5 * (vc + vd) - 0.5 * RATIO * (momentum(vc, hc) - momentum(vd, hd))
        h[1:-1, 1:-1] -= RATIO * (ux[1:] - ux[:-1]) + RATIO * (vy[:, 1:] - vy[:, :-1])
        fx, cx = momentum(ux, hx), ux * vx / hx
        fy, cy = momentum(vy, hy), vy * uy / hy
        u[1:-1, 1:-1] -= RATIO * (fx[1:] - fx[:-1]) + RATIO * (cy[:, 1:] - cy[:, :-1])
        v[1:-1, 1:-1] -= RATIO * (cx[1:] - cx[:-1]) + RATIO * (fy[:, 1:] - fy[:, :-1])
    return h, u, v


def cavity_flow(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    u, v, p, *_ = arrays
    n, steps = size
    dx = 2.0 / (n - 1)

    def five(f: Tensor) -> tuple[Tensor, ...]:
        """Here, east, west, south, north."""
        return f[1:-1, 1:-1], f[1:-1, 2:], f[1:-1, :-2], f[2:, 1:-1], f[:-2, 1:-1]

    rate, spread, half = DT / dx, NU * DT / (dx * dx), DT / (2.0 * RHO * dx)
    for _ in range(steps):
        uc, ue, uw, us, un = five(u)
        vc, ve, vw, vs, vn = five(v)
        ux, vy = (ue - uw) / (2.0 * dx), (vs - vn) / (2.0 * dx)
        uy, vx = (us - un) / (2.0 * dx), (ve - vw) / (2.0 * dx)
        b = RHO * ((ux + vy) / DT - ux * ux - 2.0 * (uy * vx) - vy * vy)
        for _sweep in range(SWEEPS):
            _, pe, pw, ps, pn = five(p)
            p[1:-1, 1:-1] = 0.25 * (pe + pw + ps + pn) - 0.25 * dx * dx * b
            p[:, -1], p[:, 0] = p[:, -2], p[:, 1]
            p[0], p[-1] = p[1], 0.0
        _, pe, pw, ps, pn = five(p)
        move = uc * rate * (uc - uw) + vc * rate * (uc - un)
        u, v = u.clone(), v.clone()
        u[1:-1, 1:-1] = uc - move - half * (pe - pw) + spread * (ue + uw + us + un - 4.0 * uc)
        move = uc * rate * (vc - vw) + vc * rate * (vc - vn)
        v[1:-1, 1:-1] = vc - move - half * (ps - pn) + spread * (ve + vw + vs + vn - 4.0 * vc)
    return u, v, p


def cloverleaf(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    density, energy, xvel, yvel, *_ = arrays
    pad = torch.nn.functional.pad

    def around(f: Tensor) -> tuple[Tensor, ...]:
        """Here, west, north, north-west."""
        return f[1:, 1:], f[1:, :-1], f[:-1, 1:], f[:-1, :-1]

    for _ in range(size[1]):
        p = (GAMMA - 1.0) * density * energy
        sound = torch.sqrt(GAMMA * p / density)
        c, w, n, nw = around(xvel)
        across = n + c - nw - w
        c, w, n, nw = around(yvel)
        div = 0.5 * (across + (w + c - nw - n))
        q = torch.where(div < 0.0, density * (2.0 * div * div - sound * div * 0.5), 0.0)
        c, w, n, nw = around(density)
        scale = 0.5 * STEP / (0.25 * (nw + w + c + n))
        (pc, pw, pn, pnw), (qc, qw, qn, qnw) = around(p), around(q)
        xvel[1:-1, 1:-1] -= scale * ((pc - pw + pn - pnw) + (qc - qw + qn - qnw))
        yvel[1:-1, 1:-1] -= scale * ((pc - pn + pw - pnw) + (qc - qn + qw - qnw))
        fx = 0.5 * STEP * (xvel[:-1] + xvel[1:])
        fy = 0.5 * STEP * (yvel[:, :-1] + yvel[:, 1:])
        change = fx[:, 1:] - fx[:, :-1] + fy[1:] - fy[:-1]
        energy = energy - (p + q) * change / density
        density = density / (1.0 + change)
        inner = fx[:, 1:-1]
        mx = pad(inner * torch.where(inner > 0.0, density[:, :-1], density[:, 1:]), (1, 1))
        inner = fy[1:-1]
        my = pad(inner * torch.where(inner > 0.0, density[:-1], density[1:]), (0, 0, 1, 1))
        density = density + (mx[:, :-1] - mx[:, 1:] + my[:-1] - my[1:])
    return density, energy, xvel, yvel


def horizontal_diffusion(
    torch: Any, size: Size, f: Tensor, coeff: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    around = f[2:, 1:-1] + f[:-2, 1:-1] + f[1:-1, 2:] + f[1:-1, :-2]
    lap = 4.0 * f[1:-1, 1:-1] - around
    slope = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = torch.where(slope * (f[2:-1, 2:-2] - f[1:-2, 2:-2]) > 0.0, 0.0, slope)
    slope = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly = torch.where(slope * (f[2:-2, 2:-1] - f[2:-2, 1:-2]) > 0.0, 0.0, slope)
    return (f[2:-2, 2:-2] - coeff * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1]),)


def vertical_advection(
    torch: Any, size: Size, u: Tensor, wcon: Tensor, tend: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    levels = size[0]
    across = 0.25 * (wcon[:, 1:] + wcon[:, :-1])
    c_col: list[Tensor] = []
    d_col: list[Tensor] = []
    for k in range(levels):
        a = -across[k] * BET_P if k > 0 else 0.0
        c = across[k + 1] * BET_P if k < levels - 1 else torch.zeros_like(u[k])
        correction = across[k] * BET_M * (u[k - 1] - u[k]) if k > 0 else 0.0
        if k < levels - 1:
            correction = correction - across[k + 1] * BET_M * (u[k + 1] - u[k])
        b = DTR - a - c
        d = DTR * u[k] + tend[k] + correction
        divided = 1.0 / (b - c_col[-1] * a if k > 0 else b)
        d_col.append((d - d_col[-1] * a if k > 0 else d) * divided)
        c_col.append(c * divided)
    data = d_col[-1]
    found = [DTR * (data - u[-1])]
    for k in reversed(range(levels - 1)):
        data = d_col[k] - c_col[k] * data
        found.append(DTR * (data - u[k]))
    return (torch.stack(found[::-1]),)


FORMS = {
    "shallow_water": TorchForm(shallow_water),
    "cavity_flow": TorchForm(cavity_flow),
    "cloverleaf": TorchForm(cloverleaf),
    "horizontal_diffusion": TorchForm(horizontal_diffusion),
    "vertical_advection": TorchForm(vertical_advection),
}
