"""The scalar values of a list as bytes, which are compared at once."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from fusionq.analysis.submission import ScalarValue

_FORMATS: dict[type, str] = {
    bool: "?", int: "q", float: "d", np.bool_: "?", np.float32: "f", np.float64: "d",
    np.int8: "b", np.int16: "h", np.int32: "i", np.int64: "q",
    np.uint8: "B", np.uint16: "H", np.uint32: "I", np.uint64: "Q",
}  # fmt: skip
"""As what values are written by ``struct``, which keeps all their bits."""


class PackedValues:
    """Scalars of some types with their values; floats are the same if their bits are."""

    __slots__ = ("_bytes", "_format", "_types")

    def __init__(self, types: list[type], format: struct.Struct, packed: bytes) -> None:
        self._types, self._format, self._bytes = types, format, packed

    @classmethod
    def of(cls, values: Sequence[ScalarValue]) -> PackedValues | None:
        """``values``; None where some of them are not written with all their bits."""
        types = list(map(type, values))
        try:
            format = _format(tuple(types))
            return cls(types, format, format.pack(*values))
        except (KeyError, struct.error):
            return None

    def are(self, values: Sequence[ScalarValue]) -> bool:
        """Whether ``values`` are these; False where that is not known."""
        if list(map(type, values)) != self._types:
            return False
        try:
            return self._format.pack(*values) == self._bytes
        except struct.error:
            return False


@lru_cache(256)
def _format(types: tuple[type, ...]) -> struct.Struct:
    return struct.Struct("=" + "".join([_FORMATS[one] for one in types]))
