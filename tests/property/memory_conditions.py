"""Random kernels whose conditions read neighbours behind others: of memory, of ids, or both."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

DTYPES = ("bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")


@dataclass(frozen=True)
class MemoryConditions:
    """A kernel's text, the shape of its arrays ``a`` and ``o``, its first column, and the type of
    ``a``."""

    text: str
    shape: tuple[int, int]
    first: int
    dtype: str


@st.composite
def memory_conditions(draw: st.DrawFn) -> MemoryConditions:
    """``o[i, j]`` is 1 where a condition holds, of up to four comparisons of neighbours: each is
    behind those of ids that keep it inside of ``a``."""
    first = draw(st.integers(0, 2))
    lines = [
        "def k(item: fq.Item, a, o, n):",
        f"    i, j = item.get_id(0), item.get_id(1) + {first}",
        "    own = a[i, j]",
        f"    if {_condition(draw, 4)}:",
        "        o[i, j] += 1",
    ]
    if draw(st.booleans()):
        lines += ["    else:", "        o[i, j] = 7"]
    if draw(st.booleans()):
        lines += [f"    o[i, j] += 2 if {_condition(draw, 2)} else 3"]
    rows, width = draw(st.sampled_from((1, 3, 9))), draw(st.sampled_from((first + 1, 19, 40, 300)))
    text = "\n".join(lines)
    return MemoryConditions(text, (rows, width), first, draw(st.sampled_from(DTYPES)))


def _condition(draw: st.DrawFn, most: int) -> str:
    text = _term(draw)
    for _ in range(draw(st.integers(0, most - 1))):
        joined = draw(st.sampled_from(("and", "or")))
        other = _term(draw)
        text = f"{text} {joined} {other}" if draw(st.booleans()) else f"({text}) {joined} {other}"
    return text


def _term(draw: st.DrawFn) -> str:
    down, right = draw(st.integers(-1, 1)), draw(st.integers(-2, 2))
    op = draw(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")))
    other = draw(st.sampled_from(("own", "n", "a[i, j]")))
    inside = f"0 <= i + {down} < a.shape[0] and 0 <= j + {right} < a.shape[1]"
    read = f"a[i + {down}, j + {right}] {op} {other}"
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return f"(j % 3 == 1 and {inside} and {read})"
    if kind == 1:
        return f"(own {op} n and {inside} and {read})"
    if kind == 2:
        return f"({inside} and {read})"
    return f"a[i, j] {op} {other}"
