"""Linear solvers: conjugate gradients, BiCGStab, Jacobi's method for a dense matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

GROUP = 64
WIND = 0.25
"""Strength of the convection that makes BiCGStab's operator unsymmetric."""


# ------------------------------------------------------------- what the Krylov methods share
@fq.kernel
def stencil_padded(item: fq.Item, wind: Scalar, x: Array, out: Array) -> None:
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    around = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
    out[i, j] = 5.0 * x[i, j] - around + wind * (x[i, j + 1] - x[i, j - 1])


@fq.kernel
def stencil_guarded(item: fq.Item, wind: Scalar, x: Array, out: Array) -> None:
    m = x.shape[1]
    i = item.get_linear_id() // m
    j = item.get_linear_id() % m
    if i > 0 and i < x.shape[0] - 1 and j > 0 and j < m - 1:
        around = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
        out[i, j] = 5.0 * x[i, j] - around + wind * (x[i, j + 1] - x[i, j - 1])


@fq.kernel
def row_dots(item: fq.Item, x: Array, y: Array, partial: Array) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(x.shape[1]):
        total += x[i, j] * y[i, j]
    partial[i] = total


@fq.kernel
def group_dots(item: fq.NdItem, x: Array, y: Array, partial: Array) -> None:
    i = item.get_global_id(0)
    k = item.get_local_id(1)
    own = 0.0
    for j in range(k, x.shape[1], GROUP):
        own += x[i, j] * y[i, j]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if k == 0:
        partial[i] = total


@fq.kernel
def finish_dot(item: fq.Item, slot: Scalar, partial: Array, scalars: Array) -> None:
    total = 0.0
    for k in range(partial.shape[0]):
        total += partial[k]
    scalars[slot + item.get_id(0)] = total


@fq.kernel
def ratio(item: fq.Item, out: Scalar, over: Scalar, under: Scalar, scalars: Array) -> None:
    scalars[out + item.get_id(0)] = scalars[over] / scalars[under]


@fq.kernel
def add_scaled(item: fq.Item, slot: Scalar, sign: Scalar, s: Array, x: Array, y: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = y[i, j] + sign * s[slot] * x[i, j]


@fq.kernel
def scale_and_add(item: fq.Item, slot: Scalar, s: Array, x: Array, y: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = x[i, j] + s[slot] * y[i, j]


@fq.kernel
def copy(item: fq.Item, x: Array, y: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = x[i, j]


@fq.kernel
def add_scaled_linear(
    item: fq.Item, slot: Scalar, sign: Scalar, s: Array, x: Array, y: Array
) -> None:
    i = item.get_linear_id() // x.shape[1]
    j = item.get_linear_id() % x.shape[1]
    y[i, j] = y[i, j] + sign * s[slot] * x[i, j]


@fq.kernel
def scale_and_add_linear(item: fq.Item, slot: Scalar, s: Array, x: Array, y: Array) -> None:
    i = item.get_linear_id() // x.shape[1]
    j = item.get_linear_id() % x.shape[1]
    y[i, j] = x[i, j] + s[slot] * y[i, j]


class Fields:
    """How a form writes the operations on fields of ``(n + 2, n + 2)`` points whose frame is
    zero: ``linear`` with one linear id and dot products by work-groups, else by rows."""

    def __init__(
        self, queue: fq.FusionQueue, n: int, linear: bool, partial: fq.Buffer, scalars: fq.Buffer
    ) -> None:
        self.queue, self.n, self.linear = queue, n, linear
        self.partial, self.scalars = partial, scalars

    def operator(self, wind: float, x: fq.Buffer, out: fq.Buffer) -> None:
        if self.linear:
            self.queue.submit(stencil_guarded, (self.n + 2) ** 2, wind, x, out)
        else:
            self.queue.submit(stencil_padded, (self.n, self.n), wind, x, out)

    def dot(self, slot: int, x: fq.Buffer, y: fq.Buffer) -> None:
        if self.linear:
            groups = fq.NdRange((self.n + 2, GROUP), (1, GROUP))
            self.queue.submit(group_dots, groups, x, y, self.partial)
        else:
            self.queue.submit(row_dots, self.n + 2, x, y, self.partial)
        self.queue.submit(finish_dot, 1, slot, self.partial, self.scalars)

    def ratio(self, out: int, over: int, under: int) -> None:
        self.queue.submit(ratio, 1, out, over, under, self.scalars)

    def axpy(self, slot: int, sign: float, x: fq.Buffer, y: fq.Buffer) -> None:
        """``y += sign · scalar · x``."""
        if self.linear:
            points = (self.n + 2) ** 2
            self.queue.submit(add_scaled_linear, points, slot, sign, self.scalars, x, y)
        else:
            whole = (self.n + 2, self.n + 2)
            self.queue.submit(add_scaled, whole, slot, sign, self.scalars, x, y)

    def xpay(self, slot: int, x: fq.Buffer, y: fq.Buffer) -> None:
        """``y = x + scalar · y``."""
        if self.linear:
            self.queue.submit(scale_and_add_linear, (self.n + 2) ** 2, slot, self.scalars, x, y)
        else:
            self.queue.submit(
                scale_and_add, (self.n + 2, self.n + 2), slot, self.scalars, x, y
            )

    def copy(self, x: fq.Buffer, y: fq.Buffer) -> None:
        self.queue.submit(copy, (self.n + 2, self.n + 2), x, y)


def krylov_arrays(names: str) -> Callable[[Size, np.random.Generator], dict[str, Array]]:
    """The right side ``b`` and the fields ``names``, with what dot products need."""

    def arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
        n, _ = size
        b = np.zeros((n + 2, n + 2))
        b[1:-1, 1:-1] = rng.random((n, n))
        fields = {name: np.zeros_like(b) for name in names.split()}
        return {"b": b, **fields, "partial": np.zeros(n + 2), "scalars": np.zeros(8)}

    return arrays


def operator_numpy(wind: float, x: Array) -> Array:
    out = np.zeros_like(x)
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    out[1:-1, 1:-1] = 5.0 * x[1:-1, 1:-1] - around + wind * (x[1:-1, 2:] - x[1:-1, :-2])
    return out


# ------------------------------------------------------------------------ conjugate gradients
def submit_cg(linear: bool) -> Callable[..., None]:
    def submit(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
        n, steps = size
        b, x, r, p, q, partial, scalars = arrays
        on = Fields(queue, n, linear, partial, scalars)
        on.copy(b, r)
        on.copy(b, p)
        on.dot(0, r, r)
        for step in range(steps):
            old, new = step % 2, (step + 1) % 2
            on.operator(0.0, p, q)
            on.dot(2, p, q)
            on.ratio(3, old, 2)
            on.axpy(3, 1.0, p, x)
            on.axpy(3, -1.0, q, r)
            on.dot(new, r, r)
            on.ratio(4, new, old)
            on.xpay(4, r, p)

    return submit


def cg_numpy(size: Size, b: Array, x: Array, r: Array, p: Array, *_: Array) -> None:
    r[...], p[...] = b, b
    rr = np.vdot(r, r)
    for _step in range(size[1]):
        q = operator_numpy(0.0, p)
        alpha = rr / np.vdot(p, q)
        x += alpha * p
        r -= alpha * q
        rr, old = np.vdot(r, r), rr
        p[...] = r + rr / old * p


# ----------------------------------------------------------------------------------- BiCGStab
RHO, ALPHA, OMEGA, BETA, TT, TS, RV, OLD = range(8)


@fq.kernel
def direction_scale(item: fq.Item, scalars: Array) -> None:
    slot = BETA + item.get_id(0)
    scalars[slot] = scalars[RHO] / scalars[OLD] * (scalars[ALPHA] / scalars[OMEGA])
    scalars[OLD] = scalars[RHO]


@fq.kernel
def direction(item: fq.Item, s: Array, r: Array, v: Array, p: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    p[i, j] = r[i, j] + s[BETA] * (p[i, j] - s[OMEGA] * v[i, j])


@fq.kernel
def first_scalars(item: fq.Item, scalars: Array) -> None:
    k = item.get_id(0)
    scalars[k] = 1.0


@fq.kernel
def clear(item: fq.Item, x: Array, y: Array, z: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    x[i, j] = 0.0
    y[i, j] = 0.0
    z[i, j] = 0.0


def submit_bicgstab(linear: bool) -> Callable[..., None]:
    def submit(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
        n, steps = size
        b, x, r, shadow, p, v, t, partial, scalars = arrays
        on = Fields(queue, n, linear, partial, scalars)
        whole = (n + 2, n + 2)
        on.copy(b, r)
        on.copy(b, shadow)
        queue.submit(clear, whole, p, v, x)
        queue.submit(first_scalars, 8, scalars)
        for _ in range(steps):
            on.dot(RHO, shadow, r)
            queue.submit(direction_scale, 1, scalars)
            queue.submit(direction, whole, scalars, r, v, p)
            on.operator(WIND, p, v)
            on.dot(RV, shadow, v)
            on.ratio(ALPHA, RHO, RV)
            on.axpy(ALPHA, -1.0, v, r)
            on.operator(WIND, r, t)
            on.dot(TS, t, r)
            on.dot(TT, t, t)
            on.ratio(OMEGA, TS, TT)
            on.axpy(ALPHA, 1.0, p, x)
            on.axpy(OMEGA, 1.0, r, x)
            on.axpy(OMEGA, -1.0, t, r)

    return submit


def bicgstab_numpy(size: Size, b: Array, x: Array, r: Array, *_: Array) -> None:
    r[...] = b
    p, v = np.zeros_like(b), np.zeros_like(b)
    old = alpha = omega = 1.0
    for _step in range(size[1]):
        rho = float(np.vdot(b, r))
        p = r + rho / old * (alpha / omega) * (p - omega * v)
        old = rho
        v = operator_numpy(WIND, p)
        alpha = rho / float(np.vdot(b, v))
        r -= alpha * v
        t = operator_numpy(WIND, r)
        omega = float(np.vdot(t, r) / np.vdot(t, t))
        x += alpha * p
        x += omega * r
        r -= omega * t


PROGRAMS = (
    CorpusProgram(
        name="conjugate_gradients",
        description="a 5-point operator, dot products, updates of vectors; float64",
        source="Hestenes and Stiefel 1952; Saad, Iterative Methods, 2003, algorithm 6.18",
        axes=("n", "steps"),
        sizes={"tiny": (6, 2), "in cache": (128, 4), "out of cache": (1792, 3)},
        arrays=krylov_arrays("x r p q"),
        inputs=("b",),
        outputs=("x", "r"),
        forms=(
            Form("rows", "rows and columns as ids, dot products by rows", submit_cg(False)),
            Form("groups", "one linear id, dot products by work-groups", submit_cg(True)),
        ),
        reference=cg_numpy,
        tolerance=1e-10,
    ),
    CorpusProgram(
        name="bicgstab",
        description="stabilised biconjugate gradients for convection and diffusion; float64",
        source="van der Vorst 1992; Saad, Iterative Methods, 2003, algorithm 7.7",
        axes=("n", "steps"),
        sizes={"tiny": (6, 1), "in cache": (112, 2), "out of cache": (1600, 2)},
        arrays=krylov_arrays("x r shadow p v t"),
        inputs=("b",),
        outputs=("x", "r"),
        forms=(
            Form("rows", "rows and columns as ids, dot products by rows", submit_bicgstab(False)),
            Form("groups", "one linear id, dot products by work-groups", submit_bicgstab(True)),
        ),
        reference=bicgstab_numpy,
        tolerance=1e-8,
    ),
)
