"""Group functions as a language without calls for them has them: made of broadcasts."""

from __future__ import annotations

import linecache
from types import FunctionType

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.target import LaunchShape
from fusionq.codegen.opencl.groups import OpenCLGroups
from fusionq.language.combine import over_group
from tests.in_turn import one_in
from tests.unit.lists import submission
from tests.unit.sycl.running import bind, different

LOCAL, GROUPS = 7, 3
FUNCTIONS = ("reduce", "inclusive_scan", "exclusive_scan")
OPERATIONS = {"b": ("and", "or", "xor"), "f": ("add", "mul", "min", "max")}
DTYPES = ("bool", "uint16", "int8", "float16", "uint64", "int64", "float32")
BITS = ("add", "mul", "min", "max", "and", "or", "xor")


def calls(dtype: str) -> list[tuple[str, str | None]]:
    """The group functions of values of a type."""
    kind = np.dtype(dtype).kind
    found = [(f, op) for f in FUNCTIONS for op in OPERATIONS.get(kind, BITS)]
    return [*found, ("any", None), ("all", None)] if kind == "b" else found


def kernel_of(dtype: str) -> FunctionType:
    """A kernel that stores the result of each call in a row of its own."""
    lines = [
        f"out[{row}, i] = fq.{name}_of_group(group, x[i])"
        if op is None
        else f"out[{row}, i] = fq.{name}_over_group(group, x[i], '{op}')"
        for row, (name, op) in enumerate(calls(dtype))
    ]
    head = "def every_call(item: fq.NdItem, x, out):\n    i = item.get_global_id(0)\n"
    text = f"{head}    group = item.get_group()\n    " + "\n    ".join(lines) + "\n"
    file = f"<groups of broadcasts {dtype}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, object] = {"fq": fq}
    exec(compile(text, file, "exec"), names)
    made = names["every_call"]
    assert isinstance(made, FunctionType)
    return made


def values(dtype: str) -> np.ndarray:
    """Values that wrap, that are not ordered, that are not what sums and extrema start from."""
    rng = np.random.default_rng(3)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([[1] * 7, [0] * 7, [0, 1, 0, 0, 1, 1, 0]], bool)
    if kind == "f":
        small = rng.integers(-8, 9, LOCAL) / 4
        odd = [-0.0, -0.0, 0.0, 1.0, -np.inf, 2.0, 3.0]
        return np.array([small, odd, [np.nan, 2.0, -1.0, np.inf, 0.5, 4.0, np.nan]], dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (GROUPS, LOCAL), dtype, endpoint=True)


@pytest.mark.parametrize("dtype", one_in(2, DTYPES))
def test_they_agree_with_the_definition(device, monkeypatch, dtype):
    monkeypatch.setattr(OpenCLGroups, "has_collective", lambda *_: False)
    x = values(dtype)
    flat, out = x.reshape(-1), np.zeros((len(calls(dtype)), x.size), dtype)
    nd_range = fq.NdRange(x.size, LOCAL)
    kernel = submission(fq.kernel(kernel_of(dtype)), nd_range, flat, out).ir
    program = device.build(kernel, "strict")
    assert "work_group_broadcast" in program.source
    assert "work_group_reduce" not in program.source and "work_group_scan" not in program.source
    launch = device.prepare(program, [bind(a) for a in (flat, out)], LaunchShape((21,), (7,)))
    launch.launch().wait()
    with np.errstate(all="ignore"):
        for row, (name, op) in zip(out, calls(dtype), strict=True):
            wanted = np.array([over_group(name, op, list(group), None) for group in x], dtype)
            assert different(row, wanted.reshape(-1)).size == 0, f"{name} {op}: {row} {wanted}"
