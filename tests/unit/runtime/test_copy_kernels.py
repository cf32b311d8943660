"""The kernels of ``memcpy`` and ``fill``, as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from fusionq.language.execute import KernelArray, run_function
from fusionq.language.item import Item
from fusionq.runtime.copy_kernels import COPIES, FILLS

SHAPE = (2, 3, 2, 3)


def run(kernel, shape, *arguments) -> None:
    """A work-item for each element, of four dimensions for each row."""
    for index in np.ndindex(*shape[:3]):
        run_function(kernel.function, Item(index, shape[:3]), arguments)


@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_each_element_is_copied_and_filled_once(ndim: int) -> None:
    shape = SHAPE[:ndim]
    source = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    copy, filled = np.full(shape, -1, np.int32), np.zeros(shape, np.int32)
    run(COPIES[ndim - 1], shape, copy, source)
    run(FILLS[ndim - 1], shape, filled, np.int32(7))
    assert np.array_equal(copy, source)
    assert (filled == 7).all()
    assert KernelArray(copy).shape == shape
