"""Lists of submissions whose every part can be another, as a new process would make them."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.frontend.kernel import KernelFunction

COPY = """
def first(item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * C
"""
SECOND = """
def second(item, a, factor, out):
    i = item.get_id(0)
    out[i] = helper(a[i], factor)
"""
HELPER = """
def helper(x, factor):
    return x + factor
"""
FIRST_2D = """
def first(item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j] * C
"""
SECOND_2D = """
def second(item, a, factor, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = helper(a[i, j], factor)
"""
_numbers = count()


@dataclass(frozen=True)
class Program:
    """``tmp[i] = a[i] * C; out[i] = helper(tmp[i], factor)``, and what may differ about it."""

    first: str = COPY
    second: str = SECOND
    helper: str = HELPER
    constant: Any = 2
    factor: Any = 3.0
    dtype: Any = np.float32
    tmp_dtype: Any = None
    shape: tuple[int, ...] = (12,)
    local: tuple[int, ...] | None = None
    in_place: bool = False
    step: int = 1
    """Of the view of ``a`` that is read."""
    overlapping: bool = False
    tmp_flags: Mapping[str, bool] = field(default_factory=dict)
    access: Mapping[str, bool] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None
    line: int = 1
    """Where the kernels stand."""


@dataclass(frozen=True)
class Ran:
    """How a program went."""

    cache: str
    out: Any
    report: fq.Report


def kernels(program: Program) -> tuple[KernelFunction, KernelFunction]:
    """Its kernels, made anew."""
    file = program.file or f"<program {next(_numbers)}>"
    text = "\n" * (program.line - 1) + program.helper + program.first + program.second
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"C": program.constant, "np": np, "fq": fq}
    exec(compile(text, file, "exec"), names)
    return fq.kernel(names["first"]), fq.kernel(names["second"])


def run(program: Program, queue: fq.FusionQueue, seed: int = 0) -> Ran:
    """Run it in fusion mode, with new kernels and new buffers."""
    first, second = kernels(program)
    shape, size = program.shape, int(np.prod(program.shape))
    values = np.random.default_rng(seed).integers(0, 50, size * program.step + 1)
    base = fq.Buffer(values.astype(program.dtype))
    a = base[: size * program.step : program.step]
    out = fq.Buffer(np.zeros(shape, program.dtype))
    tmp = fq.Buffer(shape, program.tmp_dtype or program.dtype, **program.tmp_flags)
    if program.in_place:
        tmp = out
    if program.overlapping:
        tmp = base[1 : size + 1]
    if len(shape) > 1:
        a = fq.Buffer(np.asarray(a.numpy()).reshape(shape))
    items: Any = shape if program.local is None else fq.NdRange(shape, program.local)
    handed = tmp if program.access is None else fq.access(tmp, **program.access)
    with fq.fusion(queue, **program.options) as f:
        queue.submit(first, items, a, handed)
        queue.submit(second, items, handed, program.factor, out)
    assert f.event is not None
    f.event.wait()
    return Ran(f.report.cache, np.array(out.numpy()), f.report)


def without_cache(program: Program, queue: fq.FusionQueue, seed: int = 0) -> Ran:
    """The same, where no cache helps."""
    from tests.unit.cache.conftest import forget

    forget()
    fq.set_disk_cache(enabled=False)
    try:
        return run(program, queue, seed)
    finally:
        fq.set_disk_cache()
        forget()


BASE = Program()


def changed(**changes: Any) -> Program:
    """The usual program with other parts."""
    return replace(BASE, **changes)
