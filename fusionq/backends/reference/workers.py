"""A persistent kernel's workers, step by step, with an adversary who holds them up.

The protocol is that of the device (``codegen.queue_protocol``), over the same control memory.
Workers are coroutines; a step of one is one access to the control memory or one step of an
instruction's work.  Which worker makes the next step is the caller's choice, so a missing wait
shows as a wrong result under some choice, and an order that cannot work as a stall.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fusionq.base.frozen import dataclass
from fusionq.codegen import queue_layout as q

Instruction: TypeAlias = tuple[int, int]
"""A stage and one of its tiles."""

Choice: TypeAlias = Callable[[Sequence[int], Sequence[int]], int]
"""Which worker makes the next step: one of those that can, which come first; then the steps that
each worker of the launch has made so far."""

WORD = 1 << 32
POLLS_FOR_WORKERS = 3
"""How often a worker checks whether all others have started before it takes tickets instead."""


class WorkerSchedule(Protocol):
    """What the workers of a launch do."""

    @property
    def instructions(self) -> Sequence[Instruction]:
        """All instructions, in the order in which tickets hand them out."""

    @property
    def assignment(self) -> Sequence[Sequence[Instruction]] | None:
        """The instructions of each worker where all are resident, or None: always tickets."""

    def waits(self, instruction: Instruction) -> Iterable[tuple[int, int]]:
        """The lines of the counters that the instruction waits for, each with the completions in
        one launch."""

    def signals(self, instruction: Instruction) -> Iterable[int]:
        """The lines of the counters that count the instruction's completion."""

    def run(self, instruction: Instruction) -> Iterator[object]:
        """The instruction's work, a step each time that the iterator is asked."""


class Control:
    """The control memory of one prepared run, which no launch resets: ``words`` (uint32) as
    ``codegen.queue_layout`` has them, ``line`` of them a line; shared, not copied."""

    def __init__(self, words: npt.NDArray[np.uint32], line: int) -> None:
        self._lines = words.reshape(-1, line)

    def read(self, line: int, word: int = 0) -> int:
        """The value of a word."""
        return int(self._lines[line, word])

    def write(self, line: int, value: int, word: int = 0) -> None:
        """Replace a word, modulo its size."""
        self._lines[line, word] = value % WORD

    def add(self, line: int, value: int = 1) -> int:
        """Add to a line's first word; the value before it."""
        before = self.read(line)
        self.write(line, before + value)
        return before

    def is_behind(self, line: int, target: int) -> bool:
        """Whether a counter has not come to ``target``, both modulo the word's size."""
        return (self.read(line) - target) % WORD >= WORD // 2

    @property
    def stalled(self) -> bool:
        """Whether a worker has stalled."""
        return self.read(q.STALL, q.FLAG) != 0

    def record_stall(self, instruction: Instruction, line: int, expected: int) -> None:
        """Say what a worker has waited for in vain, unless another has."""
        if self.stalled:
            return
        found = (*instruction, line, expected, self.read(line))
        for k, value in enumerate(found):
            self.write(q.STALL, value, q.STALL_STAGE + k)
        self.write(q.STALL, 1, q.CLAIM)
        self.write(q.STALL, 1, q.FLAG)


@dataclass(frozen=True, slots=True)
class Wait:
    """Where a worker stands that waits, and since which step of all workers."""

    line: int
    target: int
    since: int


@dataclass(frozen=True, slots=True)
class Launched:
    """What happened: how instructions were handed out, the steps of each worker, who ran what,
    in the order in which the instructions began, and whether a worker has stalled."""

    schedule: Literal["dynamic", "static"]
    steps: tuple[int, ...]
    ran: tuple[tuple[int, Instruction], ...]
    stalled: bool


def random_choice(seed: int) -> Choice:
    """Any of the workers that can move, with equal chance."""
    chance = random.Random(seed).random
    return lambda movable, _: movable[int(chance() * len(movable))]


def delayed(worker: int, step: int, otherwise: Choice) -> Choice:
    """Holds ``worker`` up before the step that it makes after ``step`` others, as long as anybody
    else can move."""

    def choose(movable: Sequence[int], steps: Sequence[int]) -> int:
        others = [w for w in movable if w != worker]
        return otherwise(others if others and steps[worker] == step else movable, steps)

    return choose


def launch(
    schedule: WorkerSchedule,
    control: Control,
    epoch: int,
    workers: int,
    resident: int,
    choose: Choice,
) -> Launched:
    """Launch number ``epoch`` over the control memory, with ``workers`` workers, of which
    ``resident`` at most run at once; another starts when one has ended.

    A wait stalls when nobody can move; the control memory then has the stall record, and is of no
    further use.
    """
    if not 1 <= resident <= workers:
        raise ValueError(f"{resident} of {workers} workers resident: needs 1 to {workers}")
    if schedule.assignment is not None and len(schedule.assignment) != workers:
        raise ValueError(
            f"the schedule is assigned to {len(schedule.assignment)} workers, and {workers} are "
            "launched; make the assignment for the workers of the launch"
        )
    return _Launch(schedule, control, epoch, workers).run(resident, choose)


class _Launch:
    def __init__(
        self, schedule: WorkerSchedule, control: Control, epoch: int, workers: int
    ) -> None:
        self.schedule = schedule
        self.control = control
        self.epoch = epoch
        self.workers = workers
        self.instructions = len(schedule.instructions)
        self.now = 0
        self.is_static = False
        self.ran: list[tuple[int, Instruction]] = []

    def run(self, resident: int, choose: Choice) -> Launched:
        coroutines = [self._worker(w) for w in range(self.workers)]
        steps = [0] * self.workers
        waiting: list[Wait | None] = [None] * self.workers
        absent, present = list(range(self.workers)), list[int]()
        while absent or present:
            movable = [
                w for w in present if (wait := waiting[w]) is None or not self._is_held(wait)
            ]
            if len(present) < resident:
                movable += absent
            if movable:
                worker = choose(movable, steps)
            else:  # the one who has waited longest stops
                worker = min(present, key=lambda w: self._since(waiting[w]))
            if worker in absent:
                absent.remove(worker)
                present.append(worker)
            steps[worker] += 1
            self.now += 1
            try:
                waiting[worker] = next(coroutines[worker])
            except StopIteration:
                present.remove(worker)
        return Launched(
            "static" if self.is_static else "dynamic",
            tuple(steps), tuple(self.ran), self.control.stalled,
        )  # fmt: skip

    @staticmethod
    def _since(wait: Wait | None) -> int:
        return 0 if wait is None else wait.since

    def _is_held(self, wait: Wait) -> bool:
        return not self.control.stalled and self.control.is_behind(wait.line, wait.target)

    def _worker(self, number: int) -> Generator[Wait | None, None, None]:
        """Yields after each step; a Wait where the next one has to be waited for."""
        schedule, control = self.schedule, self.control
        if schedule.assignment is not None and (yield from self._is_assigned()):
            self.is_static = True
            for instruction in schedule.assignment[number]:
                if not (yield from self._execute(number, instruction)):
                    break
            if number == 0:  # tickets that nobody takes in this launch
                control.add(q.HEAD, self.instructions + self.workers)
            return
        first = (self.epoch - 1) * (self.instructions + self.workers)
        while True:
            ticket = (control.add(q.HEAD) - first) % WORD
            yield None
            if ticket >= self.instructions:
                return
            if not (yield from self._execute(number, schedule.instructions[ticket])):
                return

    def _is_assigned(self) -> Generator[None, None, bool]:
        """Whether all workers have started, so that each follows its list: one answer for all."""
        control = self.control
        last = control.add(q.ARRIVED) + 1 == self.epoch * self.workers % WORD
        yield
        if not last:
            for _ in range(POLLS_FOR_WORKERS):
                if self._is_decided():
                    break
                yield
        if not self._is_decided():
            control.write(q.MODE, 2 * self.epoch + last)
        yield
        return bool(control.read(q.MODE) & 1)

    def _is_decided(self) -> bool:
        return self.control.read(q.MODE) >> 1 == self.epoch % (WORD // 2)

    def _execute(self, number: int, instruction: Instruction) -> Generator[Wait | None, None, bool]:
        """False if the worker has to leave: it or another has stalled."""
        schedule, control = self.schedule, self.control
        if control.stalled:
            return False
        for line, completions in schedule.waits(instruction):
            target = self.epoch * completions % WORD
            yield Wait(line, target, self.now)
            if control.is_behind(line, target):
                control.record_stall(instruction, line, target)
                return False
        self.ran.append((number, instruction))
        for _ in schedule.run(instruction):
            yield None
        for line in schedule.signals(instruction):
            control.add(line)
            yield None
        return True
