"""Persistent kernels on the reference device: the schedule's words, instruction by instruction,
with several workers in adversarial interleavings."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.backends.arguments import bound_by_name
from fusionq.backends.base import ArrayBinding, Binding, DeviceEvent
from fusionq.backends.reference.checked_arrays import array_at
from fusionq.backends.reference.compile import ClosedForms, compile_closed_forms, compile_kernel
from fusionq.backends.reference.launch import ReferenceEvent, ReferenceLaunch, ReferenceProgram
from fusionq.backends.reference.order import Order
from fusionq.backends.reference.workers import (
    Choice,
    Control,
    Instruction,
    Launched,
    delayed,
    launch,
    random_choice,
)
from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.target import LaunchShape, Target
from fusionq.codegen import queue_layout as q
from fusionq.ir.nodes import ArrayParam, Kernel, KernelParam, Persistent, ScalarParam
from fusionq.ir.types import INT64
from fusionq.ir.walk import takes_work_groups

LONGEST_DELAY = 10
"""Workers are held up after less than two to that power of their steps."""


@dataclass(frozen=True, slots=True)
class PersistentProgram:
    """A persistent kernel: a program for each stage code, and its closed forms."""

    kernel: Kernel
    body: Persistent
    codes: tuple[tuple[ReferenceProgram, ClosedForms], ...]
    source: str
    build_seconds: float


def build_persistent(
    kernel: Kernel, body: Persistent, source: str, started: float
) -> PersistentProgram:
    """Compile the stages of ``kernel``, whose body is ``body``; ``started``: when building was."""
    codes = tuple(
        (
            ReferenceProgram(code.kernel, compile_kernel(code.kernel), "", 0.0),
            compile_closed_forms(code),
        )
        for code in body.codes
    )
    return PersistentProgram(kernel, body, codes, source, time.perf_counter() - started)


def _as_size(param: KernelParam, binding: Binding) -> Binding:
    """An argument for a stage's parameter: a size in waits may be that of an integer of another
    type with the same value."""
    if isinstance(param, ScalarParam) and param.type == INT64 and isinstance(binding, np.integer):
        return int(binding)
    return binding


class PersistentReferenceLaunch:
    """A persistent kernel with its arguments; see ``PreparedLaunch``.

    ``shape``: a work-group for each worker.  ``seed`` determines, with the launch's epoch, how
    many workers are resident, and which of them is held up where.
    """

    def __init__(
        self,
        program: PersistentProgram,
        arguments: Sequence[Binding],
        shape: LaunchShape,
        order: Order,
        seed: int,
        target: Target,
    ) -> None:
        self._program = program
        self._line = target.control_line
        self._order: Order = order
        self._seed = seed
        self._bindings = bound_by_name(program.kernel, arguments)
        if shape.local_range != (target.worker_size,) or len(shape.global_range) != 1:
            raise DeviceError(
                f"kernel '{program.kernel.name}' is persistent: its workers are work-groups of "
                f"{target.worker_size} work-items, not of {shape.local_range}"
            )
        self._workers = shape.global_range[0] // target.worker_size
        self._words = self._array(program.body.schedule)
        if self._workers != self._words[q.WORKERS]:
            raise DeviceError(
                f"kernel '{program.kernel.name}' has a schedule for {self._words[q.WORKERS]} "
                f"workers and is launched with {self._workers}"
            )
        self._places: Mapping[str, int] = {}
        """Of a copy's arrays."""
        self._stages()  # checks the arguments

    def copy(self, places: Mapping[str, int]) -> PersistentReferenceLaunch:
        """As ``ReferenceLaunch.copy``."""
        other = copy(self)
        other._bindings, other._places = self._bindings.copy(), places
        return other

    def move(self, addresses: Sequence[int | None]) -> None:
        """As ``ReferenceLaunch.move``."""
        for name, place in self._places.items():
            binding, address = self._bindings[name], addresses[place]
            assert isinstance(binding, ArrayBinding) and address is not None
            self._bindings[name] = replace(binding, address=address)

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow."""
        self._program.kernel.param(name)
        self._bindings[name] = value

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> ReferenceEvent:
        """Run every instruction, after the events in ``depends``."""
        for event in depends:
            event.wait()
        epoch = self._scalar(self._program.body.epoch)
        adversary = random.Random(f"{self._seed} {epoch}")
        choose: Choice = random_choice(adversary.getrandbits(32))
        if adversary.getrandbits(1):
            step = int(2 ** (adversary.random() * LONGEST_DELAY))
            choose = delayed(adversary.randrange(self._workers), step, choose)
        resident = self._workers
        if adversary.getrandbits(1):
            resident = adversary.randint(1, self._workers)
        self.launch_with(choose, resident, adversary.getrandbits(32))
        return ReferenceEvent()

    def launch_with(self, choose: Choice, resident: int, seed: int) -> Launched:
        """Run every instruction, with ``resident`` workers at once, of which ``choose`` says who
        makes the next step; ``seed`` determines a shuffled order of a tile's work-items."""
        body = self._program.body
        work = _Instructions(self._words, self._stages(), self._order, seed)
        with np.errstate(all="ignore"):
            return launch(
                work,
                Control(self._array(body.control), self._line),
                self._scalar(body.epoch),
                self._workers,
                resident,
                choose,
            )

    def _scalar(self, name: str) -> int:
        value = self._bindings[name]
        assert not isinstance(value, ArrayBinding)
        return int(value)

    def _array(self, name: str) -> npt.NDArray[Any]:
        param, binding = self._program.kernel.param(name), self._bindings[name]
        assert isinstance(param, ArrayParam)
        assert isinstance(binding, ArrayBinding)
        return array_at(binding, param.dtype.dtype)

    def _stages(self) -> list[_Stage]:
        """Each stage's kernel with its arguments."""
        found = []
        for stage in self._program.body.stages:
            program, forms = self._program.codes[stage.code]
            code = self._program.body.codes[stage.code]
            given = [self._bindings[name] for name in stage.arguments]
            bindings = list(map(_as_size, program.kernel.params, given))
            ndim = program.kernel.ndim
            alone = ReferenceLaunch(
                program, bindings, LaunchShape((0,) * ndim, (1,) * ndim), self._order, self._seed
            )
            extents = tuple(map(int, alone.applied(forms.extents)))
            local = code.local_range or (1,) * ndim
            whole = tuple(-(-e // n) * n for e, n in zip(extents, local, strict=True))
            items = ReferenceLaunch(
                program, bindings, LaunchShape(whole, local), self._order, self._seed
            )
            boxes = alone.applied(forms.waits)
            by_groups = takes_work_groups(code.kernel)
            found.append(_Stage(extents, items, boxes, stage.producers, by_groups))
        return found


@dataclass(frozen=True, slots=True)
class _Stage:
    """``boxes``: what a tile waits for, of its first and last work-item."""

    extents: tuple[int, ...]
    items: ReferenceLaunch
    boxes: Any
    producers: tuple[int, ...]
    by_groups: bool


class _Instructions:
    """The schedule that the words describe; see ``workers.Schedule``."""

    def __init__(
        self,
        words: npt.NDArray[np.int64],
        stages: Sequence[_Stage],
        order: Order,
        seed: int,
    ) -> None:
        self._records = words[q.HEADER :][: q.RECORD * len(stages)].reshape(-1, q.RECORD).tolist()
        self._stages = stages
        self._order: Order = order
        self._seed = seed
        header = [int(word) for word in words[: q.HEADER]]
        count = header[q.INSTRUCTIONS]
        self.instructions = _decoded(words[header[q.ORDER] :][:count])
        self.assignment: list[list[Instruction]] | None = None
        if header[q.STATIC]:
            starts = words[header[q.STARTS] :][: header[q.WORKERS] + 1].tolist()
            assigned = words[header[q.ASSIGNMENT] :]
            self.assignment = [_decoded(assigned[start:stop]) for start, stop in pairwise(starts)]

    def waits(self, instruction: Instruction) -> Iterator[tuple[int, int]]:
        """See ``workers.Schedule``; as ``fq_wait_tiles`` of the device."""
        stage = self._stages[instruction[0]]
        first, last = self._items(instruction)
        boxes = stage.boxes(_int64(first), _int64(last))
        count = self._records[instruction[0]][q.WAITS] & ((1 << q.WAITED_SHIFT) - 1)
        for producer, box in list(zip(stage.producers, boxes, strict=True))[:count]:
            record = self._records[producer]
            if box is None:
                yield record[q.TOTAL], prod(record[q.COUNT :][: q.DIMS])
            else:
                yield from _counters_of(record, [(int(a), int(b)) for a, b in box])

    def signals(self, instruction: Instruction) -> Iterator[int]:
        """See ``workers.Schedule``; as ``fq_publish`` of the device."""
        stage, tile = instruction
        record = self._records[stage]
        if record[q.COUNTERS] >= 0:
            counts, shared = record[q.COUNT :][: q.DIMS], record[q.SHARED :][: q.DIMS]
            at = 0
            for index, count, share in zip(_unravelled(tile, counts), counts, shared, strict=True):
                at = at * -(-count // share) + index // share
            yield record[q.COUNTERS] + at
        if record[q.TOTAL] >= 0:
            yield record[q.TOTAL]

    def run(self, instruction: Instruction) -> Iterator[object]:
        """See ``workers.Schedule``: a work-item a step."""
        first, last = self._items(instruction)
        box = tuple(range(a, b + 1) for a, b in zip(first, last, strict=True))
        seed = hash((self._seed, *instruction))
        stage = self._stages[instruction[0]]
        if stage.by_groups:
            return stage.items.group_steps(box, seed)
        return stage.items.item_steps([box], self._order, seed)

    def _items(self, instruction: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The first and the last work-item of a tile."""
        stage, tile = instruction
        extents, record = self._stages[stage].extents, self._records[stage]
        at = _unravelled(tile, record[q.COUNT :][: len(extents)])
        first = tuple(i * size for i, size in zip(at, record[q.TILE :], strict=False))
        last = tuple(
            min(start + size, extent) - 1
            for start, size, extent in zip(first, record[q.TILE :], extents, strict=False)
        )
        return first, last


def _decoded(words: npt.NDArray[np.int64]) -> list[Instruction]:
    return [(word >> q.TILE_BITS, word & (1 << q.TILE_BITS) - 1) for word in words.tolist()]


def _unravelled(tile: int, counts: Sequence[int]) -> list[int]:
    """A tile's position in each dimension, the last fastest."""
    at: list[int] = []
    for count in reversed(counts):
        at.insert(0, tile % count)
        tile //= count
    return at


def _counters_of(
    record: Sequence[int], box: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The lines of the counters of the tiles that hold a box of work-items, each with the tiles
    that it counts."""
    lines: list[range] = []
    for d, (first, last) in enumerate(box):
        if last < max(first, 0):
            return
        size, count, share = (record[field + d] for field in (q.TILE, q.COUNT, q.SHARED))
        low, high = max(first, 0) // size, min(last // size, count - 1)
        lines.append(range(low // share, high // share + 1))
    for position in product(*lines):
        at, tiles = 0, 1
        for d, c in enumerate(position):
            count, share = record[q.COUNT + d], record[q.SHARED + d]
            at = at * -(-count // share) + c
            tiles *= min(share, count - c * share)
        yield record[q.COUNTERS] + at, tiles


def _int64(index: tuple[int, ...]) -> tuple[np.int64, ...]:
    return tuple(map(np.int64, index))
