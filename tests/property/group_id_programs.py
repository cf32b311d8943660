"""Random lists of kernels whose work-items name elements by their work-group, by their place in it,
and by quotients and remainders of their ids, in lists of persistent kernels.

No kernel has a barrier, so that its work-items are done one by one, in tiles that know nothing of
work-groups.  Every index lies inside its array without a condition: the kernels load, compute and
store, which is what several work-items of a lane do together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fusionq.ir.types import FLOAT32, INT32, INT64, ScalarType
from fusionq.language.ranges import NdRange, Range
from tests.property.kernel_expressions import Draw
from tests.property.kernel_parameters import Axis, GatherArray, ItemArray, RandomKernel
from tests.property.programs import BufferSpec, Program, SubmissionSpec, View

SHAPES: tuple[tuple[int, ...], ...] = ((96,), (48,), (6, 24))
WIDE: tuple[tuple[int, ...], ...] = ((4608,), (4, 1536))
"""Of all ranges and arrays of a list; rows of the wide ones hold several work-items for each thread
of a GPU's worker."""
DIVISORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 256)
"""Sizes of work-groups, and what ids are divided by; of a size those that divide its extent."""

OF_IDS = (
    "{i}", "{n} - 1 - {i}", "{i} // {c}", "{i} % {c}", "({i} + {k}) % {n}", "{i} // {c} * {c}",
    "({n} - 1 - {i}) // {c}", "{n} - 1 - {i} // {c}", "({i} // {c} + {i} % {d}) % {n}",
)  # fmt: skip
OF_GROUPS = (
    "{g}", "{l}", "{i} - {l}", "{g} + {l}", "{s} - 1 - {l}", "{m} - 1 - {g}", "{g} // {c}",
    "({g} + {k}) % {m}", "{l} * {m} + {g}", "{n} - 1 - {g}",
)  # fmt: skip
"""Which element of an extent ``n`` a work-item ``i`` names; ``l``: its place in work-group ``g``,
one of ``m`` of ``s``; ``c``, ``d`` and ``k``: constants."""

CONDITIONS = ("{g} % 2 == 0", "{l} == 0", "{i} // {c} % 3 > 0", "{i} % {c} < 2", "{l} > {g}")


class _Draw:
    def __init__(self, draw: Draw, shapes: Sequence[tuple[int, ...]]) -> None:
        self._draw = draw
        self._dtype: ScalarType = self._of((INT64, FLOAT32, INT32))
        self._shape: tuple[int, ...] = self._of(shapes)
        self._latest: int | None = None
        """The buffer that the submission before wrote: the next one reads it."""

    def _of(self, values: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(values))

    def _chance(self, percent: int) -> bool:
        return bool(self._draw(st.integers(0, 99)) >= 100 - percent)

    def program(self) -> Program:
        buffers = tuple(
            BufferSpec(
                np.random.default_rng(n).integers(-9, 10, self._shape).astype(self._dtype.dtype)
            )
            for n in range(4)
        )
        count = self._of((2, 3, 4, 5))
        return Program(buffers, tuple(self._submission() for _ in range(count)))

    def _submission(self) -> SubmissionSpec:
        grouped = self._chance(70)
        local = tuple(self._of([c for c in DIVISORS if n % c == 0]) for n in self._shape)
        ndim = len(self._shape)
        others = [n for n in range(4) if n != self._latest]
        out, sums, other = self._draw(st.permutations(others))[:3]
        reads = (other, other) if self._latest is None else (self._latest, other)
        self._latest = out
        lines = [f"value = out[{_own(ndim)}] * 3 + 1"]
        for _ in range(self._of((1, 2, 3))):
            line = f"value += {self._of('ab')}[{self._indices(ndim, local, grouped)}]"
            if self._chance(15):
                conditions = CONDITIONS if grouped else CONDITIONS[2:4]
                line = f"if {self._text(conditions, 0, local)}: {line}"
            lines.append(line)
        if self._chance(15):
            lines += [
                "for t in range(3):",
                f"    value += a[{self._indices(ndim, local, grouped)}]",
            ]
        lines.append(f"out[{_own(ndim)}] = value")
        if grouped and self._chance(25):
            first = " and ".join(f"l{d} == 0" for d in range(ndim))
            lines.append(f"if {first}: sums[{', '.join(f'g{d}' for d in range(ndim))}] = value")
        text = ["import fusionq as fq", "", "", "def kernel(item, out, sums, a, b):"]
        for d in range(ndim):
            text.append(f"    i{d}, n{d} = item.get_global_id({d}), out.shape[{d}]")
            if grouped:
                text += [
                    f"    g{d}, m{d} = group.get_group_id({d}), group.get_group_range({d})",
                    f"    l{d}, s{d} = item.get_local_id({d}), item.get_local_range({d})",
                ]
        if grouped:
            text.insert(4, "    group = item.get_group()")
        else:
            text = [line.replace("get_global_id", "get_id") for line in text]
        source = "\n".join([*text, *(f"    {line}" for line in lines), ""])
        axes = tuple(Axis(d) for d in range(ndim))
        parameters = (
            ItemArray("out", self._dtype, axes, True),
            ItemArray("sums", self._dtype, axes, True),
            GatherArray("a", self._dtype, ndim),
            GatherArray("b", self._dtype, ndim),
        )
        whole = (slice(None),) * ndim
        return SubmissionSpec(
            RandomKernel(source, ndim, parameters, nd_item=grouped),
            NdRange(self._shape, local) if grouped else Range(*self._shape),
            tuple(View(number, whole) for number in (out, sums, *reads)),
        )

    def _indices(self, ndim: int, local: Sequence[int], grouped: bool) -> str:
        forms = (*OF_IDS, *OF_GROUPS) if grouped else OF_IDS
        return ", ".join(self._text(forms, d, local) for d in range(ndim))

    def _text(self, forms: Sequence[str], d: int, local: Sequence[int]) -> str:
        names = {name: f"{name}{d}" for name in "inglsm"}
        divisors = [c for c in DIVISORS if c <= self._shape[d]]
        numbers = {name: self._of(divisors) for name in "cd"}
        return str(self._of(forms).format(**names, **numbers, k=self._of((1, 5))))


def _own(ndim: int) -> str:
    return ", ".join(f"i{d}" for d in range(ndim))


@st.composite
def group_id_programs(draw: Any, wide: bool = False) -> Program:
    """A random list of such kernels over whole arrays of one shape."""
    return _Draw(draw, WIDE if wide else SHAPES).program()
