"""Rows of docs/semantics.md about lists whose fusion mode has ended by itself."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def add_one(item: fq.Item, a):
    i = item.get_id(0)
    a[i] = a[i] + 1


def test_require_does_not_undo_an_abort() -> None:
    """The list has run already, unfused, and the warning has said so."""
    a = fq.Buffer(np.zeros(4, np.float32))
    with fq.FusionQueue("reference") as queue:
        with pytest.warns(fq.FusionAborted), fq.fusion(queue, require=True) as f:
            queue.submit(add_one, 4, a)
            assert a.numpy().tolist() == [1] * 4
            queue.submit(add_one, 4, a)
        assert f.report.fallback is not None and "fusion mode ended" in f.report.fallback
        assert f.report.strategy == "unfused"
    assert a.numpy().tolist() == [2] * 4
