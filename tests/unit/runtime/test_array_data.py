"""Where an array's elements are, as NumPy tells it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fusionq.memory import array_data as module
from fusionq.memory.array_data import _read, _told, array_data


def arrays() -> dict[str, np.ndarray]:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    fixed = whole.copy()
    fixed.flags.writeable = False
    repeated, _ = np.broadcast_arrays(np.ones(6), np.ones((4, 6)))
    return {
        "whole": whole,
        "a part": whole[1:, 2:],
        "backwards": whole[::-1, ::-1],
        "transposed": whole.T,
        "read-only": fixed,
        "a part of it": fixed[1:],
        "broadcast": np.broadcast_to(np.float32(1), 5),
        "that NumPy warns of writing to": repeated,
        "bytes": np.frombuffer(b"12345678", np.uint8),
        "empty": np.empty((0, 3)),
        "no dimensions": np.array(3.0),
        "records": np.zeros(3, [("x", "f4"), ("y", "i8")])["y"],
        "a subclass": np.ones(3).view(np.recarray),
        "objects": np.array([None]),
    }


@pytest.mark.parametrize("name", arrays())
def test_it_is_what_the_array_interface_says(name: str) -> None:
    array = arrays()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an array that may be read-only some day
        assert array_data(array) == _told(array)


def test_the_fields_are_read_where_they_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert array_data is _read
    monkeypatch.setattr(module, "_WRITEABLE", 0x0001)  # which NumPy gives another meaning
    assert not module._can_be_read()
