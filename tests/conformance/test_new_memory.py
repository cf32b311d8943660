"""Lists over Buffers that are made anew each time leave what submissions one by one leave."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fusionq as fq
from tests.conformance.new_memory import Lists


@pytest.mark.parametrize("seed", range(12))
def test_random_lists(queue: fq.FusionQueue, seed: int) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", fq.FusionAborted)
        lists = Lists(queue, seed, large=1 << 19 if queue.device.kind == "gpu" else 0)
        lists.run(7)
    assert lists.compared
