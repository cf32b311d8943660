"""Lists over Buffers that are made anew each time leave what submissions one by one leave."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fusionq as fq
from tests.conformance.new_memory import Lists
from tests.in_turn import one_in


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_in(4, range(16), first=1))
def test_random_lists(queue: fq.FusionQueue, target: str, seed: int) -> None:
    large = 1 << 19 if queue.device.kind == "gpu" else 0
    with np.errstate(all="ignore"), warnings.catch_warnings(), fq.FusionQueue(target) as other:
        warnings.simplefilter("ignore", fq.FusionAborted)
        lists = Lists([queue, other] if seed % 3 else [queue], seed, large)
        lists.run(7)
    assert lists.compared
