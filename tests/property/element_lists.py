"""Random lists of kernels that load, compute and store elements at their own ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fusionq as fq


@fq.kernel
def added(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def stored_and_loaded(item: fq.Item, a, b, out):
    i = item.get_id(0)
    t = a[i] * b[i]
    out[i] = t - a[i]
    t = out[i] + t
    out[i] = t


@fq.kernel
def larger(item: fq.Item, a, b, out):
    i = item.get_id(0)
    x, y = a[i], b[i]
    out[i] = x if x > y else y + b[3]


@fq.kernel
def in_place(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = out[i] * a[i] - b[i]


@fq.kernel
def with_edges(item: fq.Item, a, b, out):
    i = item.get_id(0)
    left = a[i - 1] if i > 0 else b[0]
    right = a[i + 1] if i + 1 < a.shape[0] else b[1]
    out[i] = left + a[i] * right


@fq.kernel
def inside(item: fq.Item, a, b, out):
    i = item.get_id(0)
    if 2 <= i < a.shape[0] - 3:
        out[i] = a[i - 2] + b[i] * a[i + 3]


@fq.kernel
def clamped(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[max(i - 1, 0)] + a[min(i + 5, a.shape[0] - 1)] * b[i]


@fq.kernel
def by_rows(item: fq.Item, a, b, out):
    y, x = item.get_id(0), item.get_id(1)
    out[y, x] = a[y, x] * b[1, x] + b[y, 0]


@fq.kernel
def five_points(item: fq.Item, a, b, out):
    y, x = item.get_id(0), item.get_id(1)
    if 0 < y < a.shape[0] - 1 and 0 < x < a.shape[1] - 1:
        out[y, x] = a[y - 1, x] + a[y + 1, x] - a[y, x - 1] * a[y, x + 1] + b[y, x]
    else:
        out[y, x] = a[y, x]


ON_ELEMENTS = (added, stored_and_loaded, in_place, larger, with_edges, inside, clamped)
ON_ROWS = (by_rows, five_points)
_READ_OTHERS = ON_ELEMENTS[3:]
DTYPES = (np.uint8, np.int16, np.int32, np.float16, np.float32, np.float64)


@dataclass(frozen=True)
class Step:
    """A kernel (less than 0: over rows), and of which of the arrays it gets which elements from
    where on."""

    kernel: int
    arrays: tuple[int, int, int]
    starts: tuple[int, int, int]
    steps: tuple[int, int, int]


@dataclass(frozen=True)
class ElementList:
    """``steps`` over ``n`` elements, in rows of ``width``, of arrays of ``dtypes``."""

    n: int
    width: int
    seed: int
    dtypes: tuple[Any, ...]
    steps: tuple[Step, ...]


def _step() -> st.SearchStrategy[Step]:
    three = st.permutations([0, 1, 2, 3]).map(lambda order: tuple(order[:3]))
    start = st.sampled_from([0, 0, 0, 1, 4, 5, 16])
    return st.builds(
        Step,
        st.integers(-len(ON_ROWS), len(ON_ELEMENTS) - 1),
        st.one_of(three, st.sampled_from([(0, 0, 1), (1, 0, 0), (2, 2, 2)])),
        st.tuples(start, start, start),
        st.tuples(*[st.sampled_from([1, 1, 1, 1, -1, 2])] * 3),
    )


def element_lists() -> st.SearchStrategy[ElementList]:
    """Lists over ranges of all lengths, of one type or several."""
    dtype = st.sampled_from(DTYPES)
    one = dtype.map(lambda type: (type,) * 4)
    return st.builds(
        ElementList,
        st.one_of(st.integers(4, 70), st.sampled_from([0, 1, 256, 1000])),
        st.sampled_from([4, 8, 7, 20]),
        st.integers(0, 100),
        st.one_of(one, st.tuples(dtype, dtype, dtype, dtype)),
        st.lists(_step(), min_size=1, max_size=4).map(tuple),
    )


def results(queue: fq.FusionQueue, program: ElementList, fused: bool) -> list[np.ndarray]:
    """What the arrays hold behind the list."""
    rng = np.random.default_rng(program.seed)
    size = 2 * program.n + 160
    buffers = [fq.Buffer(rng.integers(0, 12, size).astype(dtype)) for dtype in program.dtypes]
    rows = 4 + program.n // 16
    whole = rows + 8, program.width + 24
    images = [fq.Buffer(rng.integers(0, 12, whole).astype(dtype)) for dtype in program.dtypes]

    def submit() -> None:
        for step in program.steps:
            views = []
            arrays = step.arrays
            same = arrays[2] in arrays[:2]  # then all views of it are one
            if same and (step.kernel < 0 or ON_ELEMENTS[step.kernel] in _READ_OTHERS):
                arrays, same = (0, 1, 2), False  # these read what others write
            for array, start, by in zip(arrays, step.starts, step.steps, strict=True):
                if same and array == arrays[2]:
                    start, by = step.starts[2], step.steps[2]
                if step.kernel < 0:
                    image = images[array][start // 4 : start // 4 + rows]
                    views.append(image[:, start : start + program.width])
                else:
                    views.append(_view(buffers[array], program, start, by))
            if step.kernel < 0:
                over = rows - 1, program.width - program.seed % 2
                queue.submit(ON_ROWS[step.kernel], over, *views)
            else:
                queue.submit(ON_ELEMENTS[step.kernel], program.n, *views)

    if fused:
        with fq.fusion(queue, strategy="fused", adapt=False):
            submit()
    else:
        submit()
    return [buffer.numpy().copy() for buffer in (*buffers, *images)]


def _view(buffer: fq.Buffer, program: ElementList, start: int, by: int) -> fq.Buffer:
    n = max(program.n, 4)
    if by < 0:
        return buffer[start : start + n][::-1]
    return buffer[start : start + n * by : by]
