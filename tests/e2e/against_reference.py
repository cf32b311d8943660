"""Kernels by themselves in a fusion, compared with the reference backend."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusionq as fq


def run(queue: fq.FusionQueue, kernel: Any, extents: tuple[int, ...], *arguments: Any) -> fq.Report:
    """The report of a kernel over a range, whose last argument is written: it has become what the
    reference backend makes of it, bit for bit."""
    *inputs, out = arguments
    expected = out.copy()
    with fq.FusionQueue("reference") as reference:
        reference.submit(kernel, fq.Range(*extents), *inputs, expected)
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(kernel, fq.Range(*extents), *inputs, out)
    queue.wait()
    np.testing.assert_array_equal(out, expected)
    return f.report
