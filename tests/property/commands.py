"""Copies, fills and reductions between the submissions of random lists: of views that overlap,
reversed and strided ones, empty ones, within a buffer and between buffers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.property.kernel_expressions import Draw
from tests.property.launches import as_slice, random_data, random_slices
from tests.property.programs import BufferSpec, CommandSpec, Program, View
from tests.property.reductions import ReductionSpec, random_reduction


@st.composite
def with_commands(
    draw: Any, programs: st.SearchStrategy[Program], often: bool = False, whole: bool = False
) -> Program:
    """Half of ``programs`` with copies, fills and a few reductions before, between and after their
    submissions; ``often``: nine of ten, and more reductions than others; ``whole``: most copies and
    fills are of whole buffers, and of those that somebody looks at."""
    program: Program = draw(programs)
    usable = [n for n, buffer in enumerate(program.buffers) if buffer.holder != "array"]
    seen = [n for n in usable if program.buffers[n].flag == "none"]
    if whole and seen and draw(st.integers(0, 3)) < 3:
        usable = seen
    if not usable or draw(st.integers(0, 9)) > (8 if often else 4):
        return program
    commands: list[CommandSpec | ReductionSpec] = []
    for _ in range(draw(st.sampled_from((1, 2, 3)))):
        target = draw(st.sampled_from(usable))
        before = draw(st.integers(0, len(program.submissions)))
        if draw(st.integers(0, 3)) < (3 if often else 1):
            contents = [buffer.data for buffer in program.buffers]
            for _ in range(4 if often else 1):
                reduction = random_reduction(draw, contents, before, usable)
                if reduction is not None:
                    commands.append(reduction)
                    break
            continue
        if draw(st.integers(0, 2)) == 0:
            entire = whole and draw(st.integers(0, 3)) < 3
            commands.append(_fill(draw, program.buffers, before, target, entire))
            continue
        spec = program.buffers[target]
        alike = [
            n
            for n in usable
            if program.buffers[n].dtype == spec.dtype
            and program.buffers[n].data.ndim == spec.data.ndim
        ]
        source = draw(st.sampled_from(alike))
        same_shape = program.buffers[source].data.shape == spec.data.shape and source != target
        if whole and same_shape and draw(st.integers(0, 3)) < 3:
            all_of = (slice(None),) * spec.data.ndim
            commands.append(CommandSpec(before, View(target, all_of), View(source, all_of)))
            continue
        commands.append(_copy(draw, program.buffers, before, target, source))
    return replace(program, commands=tuple(sorted(commands, key=lambda c: c.before)))


def _fill(
    draw: Draw, buffers: tuple[BufferSpec, ...], before: int, target: int, entire: bool
) -> CommandSpec:
    spec = buffers[target]
    value: np.generic = random_data((1,), spec.dtype, draw(st.integers(0, 50)))[0]
    shape = spec.data.shape
    part = (slice(None),) * len(shape) if entire else random_slices(draw, shape)
    return CommandSpec(before, View(target, part), value)


def _copy(
    draw: Draw, buffers: tuple[BufferSpec, ...], before: int, target: int, source: int
) -> CommandSpec:
    into: list[slice] = []
    out_of: list[slice] = []
    shapes = buffers[target].data.shape, buffers[source].data.shape
    for there, here in zip(*shapes, strict=True):
        extent = min(there, here)
        if draw(st.booleans()):
            extent = max(extent - draw(st.sampled_from((1, 2, extent // 2, extent))), 0)
        into.append(_part(draw, there, extent))
        out_of.append(_part(draw, here, extent))
    return CommandSpec(before, View(target, tuple(into)), View(source, tuple(out_of)))


def _part(draw: Draw, extent: int, length: int) -> slice:
    """``length`` of ``extent`` indices, one after the other or with a step."""
    steps = [s for s in (1, 1, -1, 2, -2) if (length - 1) * abs(s) < extent]
    step = draw(st.sampled_from(steps))
    reach = max(length - 1, 0) * abs(step)
    first = draw(st.integers(0, max(extent - 1 - reach, 0)))
    part = range(extent)[first : first + reach + 1 : abs(step)][:length]
    return as_slice(part if step > 0 else part[::-1])
