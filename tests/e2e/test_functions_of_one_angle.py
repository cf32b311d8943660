"""Functions give the same bits whatever else their kernel computes.  Intel's compiler makes one
call of the sine and the cosine of one angle, whose last bits are not those of the two functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole

FUNCTIONS = np.sin, np.cos, np.tan, fq.sinpi, fq.cospi
N = 300


def kernel_of(function: Callable[[Any], Any]) -> Any:
    def apply(item: fq.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = function(x[i])

    return fq.kernel(apply)


@fq.kernel
def turned(item: fq.Item, x: Any, sum: Any) -> None:
    sum += np.float64(x[x.shape[0] - 1 - item.get_id(0)])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_of_one_angle_in_one_kernel(dtype: Any) -> None:
    queue = fq.FusionQueue()
    x = fq.Buffer(np.random.default_rng(5).uniform(0.01, 6, N).astype(dtype))
    kernels = [kernel_of(function) for function in FUNCTIONS]
    expected = [fq.Buffer(N, dtype) for _ in kernels]
    for kernel, out in zip(kernels, expected, strict=True):
        queue.submit(kernel, N, x, out)
    strategies = ("fused", "megakernel")
    for strategy in strategies if is_whole() else strategies[dtype is np.float32 :][:1]:
        outs, sum = [fq.Buffer(N, dtype) for _ in kernels], fq.Buffer(1, np.float64)
        with fq.fusion(queue, strategy=strategy) as fusion:
            for kernel, out in zip(kernels, outs, strict=True):
                queue.submit(kernel, N, x, out)
            queue.submit(turned, N, outs[0], fq.Reduction(sum, "add"))
        assert fusion.report.stages[0].submissions[: len(kernels)] == tuple(range(len(kernels)))
        for function, out, alone in zip(FUNCTIONS, outs, expected, strict=True):
            assert out.numpy().tobytes() == alone.numpy().tobytes(), (strategy, function)
