"""Lists for the tests of this directory."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.analysis.submission import Submission


@fq.kernel
def scale(item: fq.Item, a, b, s):
    i = item.get_id(0)
    b[i] = a[i] * s


@fq.kernel
def shift(item: fq.NdItem, a, b, k):
    i = item.get_global_id(0)
    b[i] = a[i] + k


@fq.kernel
def neighbours(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i + 1]


def captured(target: object = None) -> tuple[tuple[Submission, ...], fq.FusionQueue]:
    """Two submissions that join, which did not run, and their queue."""
    queue = fq.FusionQueue(target)
    a, b, c = (fq.Buffer(np.arange(1000, dtype=np.float32)) for _ in range(3))
    queue.start_fusion()
    queue.submit(scale, 1000, a, b, 2.5)
    queue.submit(shift, fq.NdRange(1000, 100), b, c, np.int16(3))
    pending = queue._state.list
    assert pending is not None
    submissions = pending.submissions()
    queue._state.leave_fusion_mode(pending)
    return submissions, queue
