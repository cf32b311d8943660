"""Random kernels that reduce into small arrays by atomic operations, as persistent kernels cut into
random tiles, and unfused: bit for bit the same."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.kernels.library import Array
from tests.property.kernel_expressions import Draw
from tests.property.running import examples, needs_device
from tests.property.tilings import random_tilings

OPS = (("add", "sub"), ("add",), ("min",), ("max",), ("and",), ("or",), ("xor",))
PLACES = ("a[{i}] % {n}", "{i} % {n}", "({i} * 7 + a[{i}]) % {n}", "{n} - 1 - {i} % {n}", "0")
VALUES = ("1", "a[{i}]", "{i} - 5", "a[{i}] * {i}", "~a[{i}]")
GUARDS = ("", "if a[{i}] % 3 > 0:", "if {i} > 4:", "if {i} < a.shape[0] - 3:", "for k in range(2):")


@fq.kernel
def spread(item: fq.Item, a: Array, b: Array) -> None:
    """Makes the next stage wait."""
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] * 5 + 3


@st.composite
def reducing_kernels(draw: Draw) -> str:
    """The source of a kernel that reduces into one array or two."""
    arrays = draw(st.sampled_from((("bins",), ("bins", "table"))))
    linear = draw(st.booleans())
    i = "(p * 24 + j)" if linear else "i"
    lines = ["i = item.get_id(0)"]
    if linear:
        lines += ["p = i // 24", "j = i % 24"]
    for array in arrays:
        ops = draw(st.sampled_from(OPS))
        for _ in range(draw(st.integers(1, 2))):
            indices = [
                draw(st.sampled_from(PLACES)).format(i=i, n=f"{array}.shape[{d}]")
                for d in range(1 if array == "bins" else 2)
            ]
            value = draw(st.sampled_from(VALUES)).format(i=i)
            op = draw(st.sampled_from(ops))
            guard = draw(st.sampled_from(GUARDS)).format(i=i)
            element = f"fq.AtomicRef({array}, ({', '.join(indices)},))"
            call = f"{element}.fetch_{op}(a.dtype.type({value}))"
            lines += [guard, f"    {call}"] if guard else [call]
        if draw(st.booleans()):
            lines.append(f"b[i] = a[i] + {draw(st.integers(-3, 3))}")
    body = "\n".join(f"    {line}" for line in lines)
    return f"def reducing(item, a, b, bins, table):\n{body}\n"


def made(source: str) -> Any:
    name = f"<reducing kernel {hash(source)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names: dict[str, Any] = {"fq": fq, "np": np}
    exec(compile(source, name, "exec"), names)
    return fq.kernel(names["reducing"])


def check(target: str | None, draw: Callable[[Any], Any]) -> None:
    kernel = made(draw(reducing_kernels()))
    dtype = draw(st.sampled_from((np.int64, np.int32, np.uint32)))
    n = draw(st.sampled_from((1, 40, 260, 777) if target else (1, 40, 777, 2000, 5000)))
    size = draw(st.sampled_from((1, 3, 8, 40, 700)))
    rows, columns = draw(st.sampled_from((1, 2, 9))), draw(st.sampled_from((1, 4, 60)))
    seed = draw(st.integers(0, 1 << 20))
    data = np.random.default_rng(seed).integers(0, 1 << 31, 4 * n + size + rows * columns)

    def run(strategy: Any) -> list[Any]:
        with fq.FusionQueue(target) as queue, random_tilings(seed):
            values = data.astype(dtype)
            a, b = (fq.Buffer(values[k * n : (k + 1) * n].copy()) for k in range(2))
            bins = fq.Buffer(values[4 * n : 4 * n + size].copy())
            table = fq.Buffer(values[4 * n + size :].reshape(rows, columns).copy())
            with fq.fusion(queue, strategy=strategy, barriers="none") as f:
                queue.submit(spread, n, a, b)
                queue.submit(kernel, n, b, a, bins, table)
                queue.submit(spread, n, a, b)
                queue.submit(kernel, n, b, a, bins, table)
            f.replay()
            queue.wait()
            event(f.report.strategy)
            if strategy == "megakernel" and target is None:
                event("with copies", "reduction_copy" in f.report.device_source)
            return [x.numpy().copy() for x in (a, b, bins, table)]

    for found, expected in zip(run("megakernel"), run("unfused"), strict=True):
        np.testing.assert_array_equal(found, expected)


@examples(20)
@given(st.data())
def test_on_the_reference_device(data: Any) -> None:
    check("reference", data.draw)


@needs_device
@examples(15)
@given(st.data())
def test_on_the_sycl_device(data: Any) -> None:
    check(None, data.draw)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield
