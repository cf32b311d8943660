"""The kernels that combine partial results, as plain Python: a few work-items in groups."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.language import NdRange
from fusionq.runtime import combining_kernels
from fusionq.runtime.combining_kernels import combine_all, combine_stretches
from tests.unit.frontend.running import run_python


def test_each_stretch_is_combined_to_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combining_kernels, "STRETCH", 5)
    partial, combined = np.arange(13, dtype=np.int32), np.zeros(3, np.int32)
    kernel = combine_stretches("add", ("total",), 0)
    run_python(kernel.function, NdRange(6, 2), combined, partial)
    assert combined.tolist() == [sum(range(5)), sum(range(5, 10)), sum(range(10, 13))]


@pytest.mark.parametrize(
    ("op", "initialize", "wanted"),
    [("add", True, 18), ("add", False, 118), ("max", True, 9), ("max", False, 100)],
)
def test_what_was_there_counts_unless_it_is_initialised(op, initialize, wanted) -> None:
    partial, result = np.array([3, 9, 6], np.int64), np.array([100], np.int64)
    kernel = combine_all(op, initialize, ("total",), 0)
    run_python(kernel.function, NdRange(2, 2), result, partial)
    assert result.tolist() == [wanted]
