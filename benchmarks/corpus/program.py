"""What a program of the corpus is: the lists it submits, in several textual forms."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

import fusionq as fq
from fusionq.kernels.library import Array, Scalar

__all__ = [
    "WORKING_SETS",
    "Array",
    "CorpusHalf",
    "CorpusProgram",
    "Form",
    "Half",
    "Scalar",
    "Size",
    "WorkingSet",
    "in_groups",
    "rounded_up",
]

Size: TypeAlias = tuple[int, ...]
"""The numbers that make a problem, named by ``CorpusProgram.axes``."""
WorkingSet: TypeAlias = Literal["tiny", "in cache", "out of cache"]
"""How large a problem is: for tests; the arrays fit into the cores' caches; they are a multiple of
the last level's."""
Half: TypeAlias = Literal["fit", "report"]
"""Which half of the corpus a program is in: what is fitted may look at the first, figures are
reported on the second."""
HALVES: tuple[Half, ...] = get_args(Half)
CorpusHalf: TypeAlias = Half | Literal["all"]
WORKING_SETS: tuple[WorkingSet, ...] = get_args(WorkingSet)


@dataclass(frozen=True)
class Form:
    """One way in which people write a program down.

    ``submit(queue, size, *arrays)`` submits the whole list, with the program's arrays as Buffers
    in the order of ``CorpusProgram.arrays``.
    """

    name: str
    description: str
    submit: Callable[..., None]


@dataclass(frozen=True)
class CorpusProgram:
    """A program from the literature."""

    name: str
    description: str
    source: str
    """Where it is from: paper, book or suite."""
    axes: tuple[str, ...]
    """What the numbers of a size are, such as ``("n", "steps")``."""
    sizes: Mapping[WorkingSet, Size]
    arrays: Callable[[Size, np.random.Generator], Mapping[str, Array]]
    """The arrays by name, with the contents that a run begins with."""
    inputs: tuple[str, ...]
    """The arrays that no form writes."""
    outputs: tuple[str, ...]
    """The arrays that hold the result; those that are neither are scratch memory."""
    forms: tuple[Form, ...]
    reference: Callable[..., None]
    """``reference(size, *arrays)``: the same with NumPy; leaves the result in the outputs."""
    tolerance: float = 0.0
    """Allowed difference from NumPy, relative to max(1, |expected|); 0 means the same bits, as the
    operations are the same in the same order."""
    loop: Callable[[Any], Callable[..., None]] | None = None
    """``loop(numba)``: the program as a Python function ``(*size, *arrays)`` of parallel loops,
    where it has natural ones."""

    @property
    def half(self) -> Half:
        """By the first bit of the sha256 of the name, so that nobody chose."""
        return HALVES[hashlib.sha256(self.name.encode()).digest()[0] >> 7]

    def size_text(self, size: Size) -> str:
        """Such as ``n=1,024 steps=8``."""
        return " ".join(f"{a}={x:,}" for a, x in zip(self.axes, size, strict=True))


def rounded_up(n: int, group: int) -> int:
    """The smallest multiple of ``group`` that is at least ``n``."""
    return -(-n // group) * group


def in_groups(extents: tuple[int, ...], group: tuple[int, ...]) -> fq.NdRange:
    """Work-groups of ``group`` that cover ``extents``."""
    return fq.NdRange(tuple(map(rounded_up, extents, group)), group)
