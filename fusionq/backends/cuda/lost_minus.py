"""Minima of negations, of which an older ptxas loses the minus.

Before NVRTC 13.4, ptxas makes ``VIMNMX3`` of ``min.s32 t, a, b; min.s32 d, t, c`` on sm_90, and of
``b = -x`` it takes ``x``; of maxima likewise, and of int16.  It does not so of unsigned integers as
far as was seen; those are treated alike.  An instruction between the two keeps them apart.
Where such a pair comes from elsewhere than the functions of integers, as from a condition in the
user's kernel of which the compiler makes a minimum, the kernel is not optimised: that is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FIRST_RIGHT = (13, 4)
"""The first version of NVRTC that loses none."""
_ARCHITECTURE = "sm_90"

UNOPTIMISED = ("--ptxas-options=-O0",)
"""The option with which ptxas makes one instruction of each operation."""

_INTEGER = r"(?:signed char|unsigned char|(?:unsigned )?short|int|unsigned)"
_HELPER = re.compile(
    rf"({_INTEGER} fq_\w+\({_INTEGER} a, {_INTEGER} b\) \{{\n    return )"
    r"(min\(a, b\)|max\(a, b\)|b [<>] a \? b : a);"
)
_FUNCTION = re.compile(r"^\.(?:visible |weak )?\.?(?:entry|func)\b", re.MULTILINE)
_REGISTER = r"(%rs?\d+)"
_MOVED = re.compile(rf"\bmov\.[bsu](?:16|32)\s+{_REGISTER}, (%rs?\d+|0);")
_NEGATED = re.compile(rf"\bneg\.s(?:16|32)\s+{_REGISTER},")
_SUBTRACTED = re.compile(rf"\bsub\.s(?:16|32)\s+{_REGISTER}, (%rs?\d+|0),")
_EXTREMUM = re.compile(
    rf"\b((?:min|max)\.[su](?:16|32))\s+{_REGISTER}, {_REGISTER}, {_REGISTER};"
)


def happens(version: tuple[int, int], architecture: str) -> bool:
    """Whether this NVRTC loses a minus in code for ``architecture``."""
    return version < FIRST_RIGHT and architecture == _ARCHITECTURE


def kept_apart(text: str) -> str:
    """``text``, whose functions of integers give what the compiler does not know for a minimum."""
    return _HELPER.sub(r"\1(\2) | (gridDim.x >> 31);", text)


def may_be_lost(ptx: str) -> bool:
    """Whether a minimum's operand is a negation and its result another minimum's operand, or so of
    maxima, moves between registers apart."""
    return any(map(_loses, _functions(ptx)))


def _functions(ptx: str) -> Iterator[str]:
    starts = [found.start() for found in _FUNCTION.finditer(ptx)]
    for start, end in zip(starts, [*starts[1:], len(ptx)], strict=True):
        yield ptx[start:end]


def _loses(function: str) -> bool:
    extrema = _EXTREMUM.findall(function)
    if not extrema:
        return False
    same = _Registers(_MOVED.findall(function))
    negated = {same.one(to) for to in _NEGATED.findall(function)}
    zero = same.one("0")
    negated |= {same.one(to) for to, of in _SUBTRACTED.findall(function) if same.one(of) == zero}
    used = {(name, same.one(operand)) for name, _, *both in extrema for operand in both}
    return any(
        (name, same.one(result)) in used and not negated.isdisjoint(map(same.one, operands))
        for name, result, *operands in extrema
    )


class _Registers:
    """Which registers may hold the same value, since one is moved into the other."""

    def __init__(self, moves: list[tuple[str, str]]) -> None:
        self._of: dict[str, str] = {}
        for to, of in moves:
            self._of[self.one(to)] = self.one(of)

    def one(self, register: str) -> str:
        """The same one for all that may hold the same value."""
        while register in self._of and self._of[register] != register:
            register = self._of[register]
        return register
