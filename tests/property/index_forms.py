"""Which elements work-items read and write in random kernels, as text of an id ``{i}``, an extent
``{n}`` and a scalar ``shift``.

Analysed or not, an index means what Python means by it: quotients and remainders round down, also
of negative numbers; shifts, masks and complements are those of two's complement; integers of narrow
types wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.property.kernel_parameters import Axis

PLAIN = (
    "{i}", "{i} - 1", "{i} + 1", "{n} - 1 - {i}", "2 * {i}", "{i} // 2", "{i} + 3", "0",
    "{i} + shift", "{i} - shift", "shift", "shift * {i}", "{i} % 4", "min({i}, shift)",
)  # fmt: skip

PERIODIC = (
    "({i} + shift) % {n}", "3 * {i} % {n}", "({n} - 3 * {i}) % {n}", "(5 - {i}) % {n}",
    "-{i} % {n}", "{i} // 4 * 4 + 3 - {i} % 4", "{i} % 16 * 2", "{i} // 5 % 3", "{i} % 12 // 3",
)  # fmt: skip
"""With remainders by extents and constants."""

STEEP = (
    "3 * {i}", "5 * {i} + 1", "({n} - 1 - {i}) // 4", "(3 * {i} + 1) // 3", "{n} - 2 * {i}",
    "abs({i} - shift)", "{i} * {i}", "{i} * ({i} + 1) // 2", "-1 - {i} // 2",
    "max(min({i} + shift, {n} - 1), 0)",
)  # fmt: skip
"""Rising and falling by more than one."""

BITS = (
    "~{i}", "{n} + ~{i}", "{i} ^ 1", "{i} ^ 5", "{i} & 3", "{i} & ~3", "{i} >> 1", "{i} << 1",
    "{i} | 1", "{i} ^ shift", "{i} & shift", "({n} - {i}) >> 2", "({i} >> 2 << 2) + ({i} & 3)",
)  # fmt: skip

NARROW = (
    "np.int32({i}) * np.int32(3)", "np.int16({i}) - np.int16(1)", "np.uint8({i}) - np.uint8(1)",
    "~np.uint8({i})", "np.uint32({i}) + np.uint32(4294967295)", "np.int8({i}) * np.int8(9)",
)  # fmt: skip
"""Of types that wrap."""

READS = (*PLAIN, *PLAIN, *PERIODIC, *STEEP, *BITS, *NARROW)
"""Which element of an array a work-item reads; half of them plain."""

NEAR = (
    "{i} ^ 1", "{i} | 1", "{i} & ~1", "{i} + {i} % 3 - 1", "{i} // 4 * 4 + 3 - {i} % 4",
    "(3 * {i} + 1) // 3", "{n} - ({n} - 1 - {i})", "4 * {i} - 3 * {i} + 1",
)  # fmt: skip
"""At a bounded distance from the work-item's own."""

VALUES = (
    "3 * {i} - ({n} - 1 - {i})", "({n} - {i}) // 4", "5 * {i} % 7", "~{i} % 5", "{i} ^ 3",
)  # fmt: skip
"""Small integers that work-items compute from their ids."""


@dataclass(frozen=True)
class FormAxis(Axis):
    """An index that no two work-items have in common, by its ``form``."""

    form: str = "flipped"

    def text(self, extent: str) -> str:
        i = "ijk"[self.dim]
        return {
            "flipped": f"{i} ^ 1",
            "turned": f"({i} + 3) % {extent}",
            "exchanged": f"({i} & ~3) + (3 - ({i} & 3))",
            "complemented": f"{extent} + ~{i}",
            "tripled": f"3 * {i}",
        }[self.form]

    def value(self, ids: Sequence[int], extent: int) -> int:
        i = ids[self.dim]
        return {
            "flipped": i ^ 1,
            "turned": (i + 3) % max(extent, 1),
            "exchanged": (i & ~3) + (3 - (i & 3)),
            "complemented": extent + ~i,
            "tripled": 3 * i,
        }[self.form]

    def values(self, ids: Sequence[int], extent: int) -> Sequence[int]:
        """None for the items that would begin a second turn."""
        if self.form == "turned" and ids[self.dim] >= extent:
            return []
        return [self.value(ids, extent)]

    def guard(self, extent: str) -> str:
        return f"{'ijk'[self.dim]} < {extent}" if self.form == "turned" else super().guard(extent)


FORMS = ("flipped", "turned", "exchanged", "complemented", "tripled")
