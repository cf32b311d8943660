"""One execution mode added to a SPIR-V module.

Source: Khronos, SPIR-V Specification, sections 2.3 and 2.4, and the execution modes of 3.6.
"""

from __future__ import annotations

import numpy as np

_HEADER_WORDS = 5
_OP_ENTRY_POINT, _OP_EXECUTION_MODE = 15, 16
_CONTRACTION_OFF = 31


def without_contraction(module: bytes) -> bytes:
    """The module with ``ContractionOff`` on each entry point, so that the device's compiler does
    not make one operation of ``a * b + c``; without it, it may."""
    words = np.frombuffer(module, np.dtype("<u4"))
    position, end, entry_points = _HEADER_WORDS, 0, []
    while position < len(words):
        opcode, length = int(words[position]) & 0xFFFF, int(words[position]) >> 16
        if opcode == _OP_ENTRY_POINT:
            entry_points.append(int(words[position + 2]))
            end = position + length  # the execution modes follow the last entry point
        position += max(length, 1)
    modes = [
        word
        for entry in entry_points
        for word in (3 << 16 | _OP_EXECUTION_MODE, entry, _CONTRACTION_OFF)
    ]
    return np.insert(words, end, modes).astype("<u4").tobytes() if modes else module
