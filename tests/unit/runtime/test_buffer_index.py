"""What a Buffer cannot be indexed with, and what to do about it."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (None, "integers, slices and ..., not NoneType; for anything else use .numpy"),
        ((None, slice(None)), "integers, slices and ..., not NoneType"),
        ((slice(None), None, slice(None)), "not NoneType"),
        ([0, 1], "not list"),
        (True, "not bool"),
        (1.0, "not float"),
        ((0, 0, 0), "too many indices for a Buffer of 2 dimensions"),
        ((..., ...), "too many indices"),
        (4, "index 4 is out of bounds for an extent of 4"),
        ((1, 1), "one element is no Buffer"),
    ],
)
def test_what_is_no_view_says_why(index, text):
    buffer = fq.Buffer((4, 3), np.float32)
    with pytest.raises(fq.ArgumentError, match=text):
        buffer[index]
