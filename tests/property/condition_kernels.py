"""Random kernels that store functions of ids under several conditions on ids.

They are what Intel's compiler computed wrong: products of ids in kernels that ask for them in
several branches, and negations of them behind barriers.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

import fusionq as fq
from tests.property.kernel_expressions import Draw

IDS = {"range": ("i",), "rows": ("i", "j"), "groups": ("i", "own", "number")}
"""The ids of a kernel over a range of one dimension, of two, and by work-groups."""

_HEADS = {
    "range": "item: fq.Item, a, o, m, n):\n    i = item.get_id(0)",
    "rows": "item: fq.Item, a, o, m, n):\n    i, j = item.get_id(0), item.get_id(1)",
    "groups": "item: fq.NdItem, a, o, m, n):\n    group = item.get_group()\n"
    "    i, own, number = item.get_global_id(0), item.get_local_id(0), group.get_group_id(0)",
}
_LIMITS = ("m", "n", "a.shape[0]", "a.shape[0] - 2", "m - 1", "5", "0")


@dataclass(frozen=True)
class ConditionKernel:
    """A kernel's text, its range, and its scalars ``m`` and ``n``."""

    text: str
    range: int | tuple[int, int] | fq.NdRange
    scalars: tuple[int, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """One element a work-item."""
        if isinstance(self.range, fq.NdRange):
            return tuple(self.range.global_range)
        return (self.range,) if isinstance(self.range, int) else self.range


@st.composite
def condition_kernels(draw: Draw) -> ConditionKernel:
    """Kernels of one to four statements, on the array ``a`` and the output ``o``."""
    kind = draw(st.sampled_from(tuple(IDS)))
    lines = [f"def k({_HEADS[kind]}", "    held = -np.float32(i) * n"]
    for number in range(draw(st.integers(1, 4))):
        if kind == "groups" and draw(st.integers(0, 3)) == 0:
            lines.append("    fq.group_barrier(group)")
        lines += [f"    {line}" for line in _statement(draw, kind, number)]
    text = "\n".join(lines)
    limits = st.sampled_from((-3, 0, 1, 5, 16, 17, 60, 500, 1000))
    return ConditionKernel(text, draw(_ranges(kind)), (draw(limits), draw(limits)))


def _ranges(kind: str) -> st.SearchStrategy[int | tuple[int, int] | fq.NdRange]:
    if kind == "range":
        return st.sampled_from((1, 7, 16, 17, 33, 100, 257, 1000))
    if kind == "rows":
        return st.tuples(st.sampled_from((1, 3, 16, 33)), st.sampled_from((1, 5, 17, 64, 129)))
    local = st.sampled_from((4, 16, 32, 48, 64))
    return st.builds(lambda n, groups: fq.NdRange(n * groups, n), local, st.integers(1, 9))


def _statement(draw: Draw, kind: str, number: int) -> list[str]:
    store = f"o[{'i, j' if kind == 'rows' else 'i'}] = {_value(draw, kind)}"
    choice = draw(st.integers(0, 9))
    if choice < 2:
        return [store]
    lines = [f"if {_condition(draw, kind)}:", f"    {store}"]
    if choice > 6:
        return [*lines, "else:", f"    o[{'i, j' if kind == 'rows' else 'i'}] += {number + 2}"]
    return lines


def _condition(draw: Draw, kind: str) -> str:
    id = draw(st.sampled_from(IDS[kind]))
    offset = draw(st.sampled_from(("", " + 1", " - 3", " + 17", " // 3", " % 7")))
    comparison = draw(st.sampled_from(("<", "<=", ">", ">=", "==")))
    text = f"{id}{offset} {comparison} {draw(st.sampled_from(_LIMITS))}"
    if draw(st.integers(0, 4)) < 2:
        return f"{text} {draw(st.sampled_from(('and', 'or')))} {_condition(draw, kind)}"
    return text


def _value(draw: Draw, kind: str) -> str:
    at = "i, j" if kind == "rows" else "i"
    first, *_, last = (*IDS[kind], "n")
    factor = draw(st.integers(2, 1000))
    return draw(
        st.sampled_from((
            f"{first} * {factor} + m", f"a[{at}] * 2 + {last}", f"o[{at}] + {first} * {last}",
            f"o[{at}] * 3 - {last}", f"{last} * {factor} + {first}",
            f"{first} // {factor} - {last}", "np.int64(held)",
            f"np.int64(np.float64({last}) * -1.0)",
        ))
    )  # fmt: skip
