"""Lists of submissions that profiles are taken of."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from tests.unit.profiling import kernels as k

N = 20_000


def chain(queue: fq.FusionQueue, n: int = N, seed: int = 0, private: bool = True):
    rng = np.random.default_rng(seed)
    a, b, c, d = (fq.Buffer(rng.random(n).astype(np.float32)) for _ in range(4))
    t, u, v = (fq.Buffer(n, np.float32, promote_private=private) for _ in range(3))
    out = fq.Buffer(n, np.float32)

    def run() -> fq.Fusion:
        with fq.fusion(queue) as f:
            queue.submit(k.mul, n, a, b, t)
            queue.submit(k.sub, n, a, c, u)
            queue.submit(k.mul, n, u, d, v)
            queue.submit(k.sub, n, t, v, out)
        return f

    return run, out, (t, u, v)


def flipped(queue: fq.FusionQueue, n: int = 4096, local: int = 64):
    a, t, out = fq.Buffer(np.arange(n)), fq.Buffer(n, np.int64), fq.Buffer(n, np.int64)

    def run() -> fq.Fusion:
        with fq.fusion(queue) as f:
            queue.submit(k.copy_tile, fq.NdRange((n,), (local,)), a, t)
            queue.submit(k.flip_tile, fq.NdRange((n,), (local,)), t, out)
        return f

    return run, out
