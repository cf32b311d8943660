"""Random lists of kernels over arrays of records: layouts, views, fields as arrays of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fusionq.ir.record_types import members
from tests.property.launches import Array

N = 12
REAL = ("i1", "i2", "i4", "i8", "u1", "u4", "f4", "f8")
OTHER = ("?", "c8")


@dataclass(frozen=True)
class RecordView:
    """An argument: a buffer, or one of its fields, in one order or the other."""

    buffer: int
    field: str | None = None
    reverse: bool = False

    def of(self, holder: Any) -> Any:
        """The view of what holds the buffer."""
        view = holder if self.field is None else holder[self.field]
        return view[::-1] if self.reverse else view


@dataclass(frozen=True)
class RecordProgram:
    """Buffers of ``dtypes`` and the submissions: each a kernel's text and its arguments."""

    dtypes: tuple[np.dtype[Any], ...]
    submissions: tuple[tuple[str, tuple[RecordView, ...]], ...]
    seed: int

    def contents(self) -> list[Array]:
        """Numbers in the fields, anything between them."""
        rng = np.random.default_rng(self.seed)
        made = []
        for dtype in self.dtypes:
            array = rng.integers(0, 256, N * dtype.itemsize, np.uint8).view(dtype)
            for member in members(dtype):
                part = array
                for name in member.path:
                    part = part[name]
                if part.dtype.kind in "fc":
                    part[...] = rng.normal(size=part.shape).round(2)
                else:
                    part[...] = rng.integers(0, 2, part.shape)
            made.append(array)
        return made


@st.composite
def record_dtypes(draw: Any, depth: int = 1) -> np.dtype[Any]:
    """Fields with room between them: at multiples of their size, or anywhere."""
    formats: list[Any] = []
    packed = draw(st.integers(0, 2)) == 0
    for _ in range(draw(st.integers(1, 4 if depth else 2))):
        code: Any = draw(st.sampled_from(REAL + OTHER))
        if depth and draw(st.integers(0, 3)) == 0:
            code = draw(record_dtypes(depth - 1))
        shape = draw(st.sampled_from([(), (), (), (2,), (3,), (2, 2)]))
        formats.append((np.dtype(code), shape))
    names = [f"f{k}" for k in range(len(formats))]
    offsets, at, most = [], 0, 1
    for dtype, shape in formats:
        align = 1 if packed else alignment(dtype)
        at = -(-at // align) * align + align * draw(st.sampled_from((0, 0, 0, 1)))
        offsets.append(at)
        at += dtype.itemsize * int(np.prod(shape))
        most = max(most, align)
    order = draw(st.permutations(range(len(names))))
    return np.dtype(
        {
            "names": [names[k] for k in order],
            "formats": [formats[k] for k in order],
            "offsets": [offsets[k] for k in order],
            "itemsize": (-(-at // most) + draw(st.sampled_from((0, 0, 1)))) * most,
        }
    )


def alignment(dtype: np.dtype[Any]) -> int:
    if dtype.names is None:
        return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return max(alignment(member.dtype) for member in members(dtype))


@st.composite
def record_programs(draw: Any) -> RecordProgram:
    """Each work-item writes its own records, and reads those of others that nobody writes."""
    one, other = draw(record_dtypes()), draw(record_dtypes())
    dtypes = (one, one, other)
    submissions = []
    for _ in range(draw(st.integers(1, 4))):
        submissions.append(_submission(draw, dtypes))
    return RecordProgram(dtypes, tuple(submissions), draw(st.integers(0, 99)))


def _numbers(dtype: np.dtype[Any], index: str, name: str, draw: Any, kinds: str) -> list[str]:
    """Texts of the numbers of a record, of these kinds."""
    found: list[str] = []

    def walk(dtype: np.dtype[Any], text: str) -> None:
        for field in dtype.names or ():
            assert dtype.fields is not None
            whole = dtype.fields[field][0]
            base, shape = (whole, ()) if whole.subdtype is None else whole.subdtype
            inner = f"{text}.{field}" if draw(st.booleans()) else f'{text}["{field}"]'
            inner += "".join(f"[{draw(st.integers(0, extent - 1))}]" for extent in shape)
            if base.names is not None:
                walk(base, inner)
            elif base.kind in kinds:
                found.append(inner)

    start = f"{name}[{index}]"
    walk(dtype, start)
    first = [f for f in dtype.names or () if dtype[f].subdtype is None and dtype[f].kind in kinds]
    return found + [f'{name}["{f}"][{index}]' for f in first]


def _submission(draw: Any, dtypes: tuple[np.dtype[Any], ...]) -> tuple[str, tuple[RecordView, ...]]:
    written = draw(st.integers(0, 2))
    read = draw(st.sampled_from([k for k in range(3) if k != written]))
    dtype, source = dtypes[written], dtypes[read]
    plain = [f for f in dtype.names or () if dtype[f].subdtype is None and dtype[f].kind in "iuf"]
    kept = draw(st.sampled_from([None, *plain]))
    views = [
        RecordView(written, None, draw(st.booleans())),
        RecordView(read, None, draw(st.booleans())),
    ]
    own = _numbers(dtype, "i", "p", draw, "iuf")
    if kept is not None:  # others read that field of records that are written
        own = [text for text in own if f".{kept}" not in text and f'"{kept}"' not in text]
        views.append(RecordView(written, kept, draw(st.booleans())))
    values = [*own, "1", "0.5", "i"]
    for index in ("i", "N - 1 - i", "j"):
        values += _numbers(source, index, "q", draw, "iuf")
    if kept is not None:
        values += ["x[i]", "x[N - 1 - i]"]
    lines = ["i = item.get_id(0)", "j = (i * 5 + 1) % N", "r = q[j]"]
    if source == dtype and kept is None and draw(st.booleans()):
        lines.append(draw(st.sampled_from(("p[i] = q[j]", "p[i] = r", "p[i] = q[N - 1 - i]"))))
        for field in draw(st.lists(st.sampled_from(dtype.names), max_size=2)):
            if dtype[field].subdtype is None:
                lines.append(f"p[i].{field} = r.{field}")
    values += _numbers(source, "j", "q", draw, "iuf")
    for _ in range(draw(st.integers(1, 3))) if own else ():
        operator = draw(st.sampled_from("+-*"))
        value = f"{draw(st.sampled_from(values))} {operator} {draw(st.sampled_from(values))}"
        target = draw(st.sampled_from(own))
        lines.append(f"{target} = {value}")
    text = "\n".join(f"    {line}" for line in lines)
    parameters = ", ".join(["item", "p", "q", *(["x"] if kept is not None else [])])
    return f"N = {N}\ndef k({parameters}):\n{text}\n", tuple(views)
