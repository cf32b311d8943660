"""A list of two kernels, for the tests of what is found again."""

from __future__ import annotations

import fusionq as fq
from tests.unit.runtime.kernels import add, copy


def chain(queue, a, tmp, out, n=8, **options):
    with fq.fusion(queue, **options) as f:
        queue.submit(copy, n, a, tmp)
        queue.submit(add, n, tmp, a, out)
    f.event.wait()
    return f
