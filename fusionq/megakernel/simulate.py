"""A persistent kernel's queue, step by step, with workers that an adversary holds up.

The protocol is that of the device (docs/megakernel-protocol.md), with the same control memory and
32-bit arithmetic.  Workers are coroutines; a step of one is one access to the control memory or one
step of an instruction's work.  Which worker makes the next step is the caller's choice, so a
missing wait shows as a wrong result under some choice, and an order that cannot work as a stall.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from fusionq.errors import MegakernelStalled

Instruction: TypeAlias = tuple[int, int]
"""A stage and one of its tiles."""

Choice: TypeAlias = Callable[[Sequence[int], Sequence[int]], int]
"""Which worker makes the next step: one of those that can, which come first; then the steps that
each worker of the launch has made so far."""

WORD = 1 << 32
POLLS_FOR_WORKERS = 3
"""How often a worker looks whether all others have started before it takes tickets instead."""


class Schedule(Protocol):
    """What the workers of a launch do."""

    @property
    def instructions(self) -> Sequence[Instruction]:
        """All instructions, in the order in which tickets hand them out."""

    @property
    def assignment(self) -> Sequence[Sequence[Instruction]] | None:
        """The instructions of each worker where all are resident, or None: always tickets."""

    def waits(self, instruction: Instruction) -> Sequence[tuple[int, int]]:
        """The counters that the instruction waits for, each with the completions in one launch."""

    def signals(self, instruction: Instruction) -> Sequence[int]:
        """The counters that count the instruction's completion."""

    def run(self, instruction: Instruction) -> Iterator[object]:
        """The instruction's work, a step each time that the iterator is asked."""


@dataclass
class Control:
    """The control memory of one prepared run, which no launch resets.

    ``launches``: how many have been started; the number of the present one is its epoch.
    """

    launches: int = 0
    head: int = 0
    arrived: int = 0
    mode: int = 0
    counters: dict[int, int] = field(default_factory=dict)

    @classmethod
    def after(cls, launches: int, schedule: Schedule, workers: int) -> Control:
        """The memory after so many launches that went well, all with tickets."""
        control = cls(
            launches=launches,
            head=launches * (len(schedule.instructions) + workers) % WORD,
            arrived=launches * workers % WORD,
            mode=2 * launches % WORD,
        )
        for instruction in schedule.instructions:
            for counter in schedule.signals(instruction):
                control.counters[counter] = (control.counters.get(counter, 0) + launches) % WORD
        return control

    def is_behind(self, counter: int, target: int) -> bool:
        """Whether ``counter`` has not come to ``target``, both modulo the word's size."""
        return (self.counters.get(counter, 0) - target) % WORD >= WORD // 2


@dataclass(frozen=True, slots=True)
class Wait:
    """Where a worker stands that waits."""

    instruction: Instruction
    counter: int
    expected: int


@dataclass(frozen=True, slots=True)
class Launched:
    """What happened: how instructions were handed out, the steps of each worker, and who ran what,
    in the order in which the instructions began."""

    schedule: Literal["dynamic", "static"]
    steps: tuple[int, ...]
    ran: tuple[tuple[int, Instruction], ...]


def random_choice(seed: int) -> Choice:
    """Any of the workers that can move, with equal chance."""
    generator = random.Random(seed)
    return lambda movable, _: generator.choice(movable)


def delayed(worker: int, step: int, otherwise: Choice) -> Choice:
    """Holds ``worker`` up before the step that it makes after ``step`` others, as long as anybody
    else can move."""

    def choose(movable: Sequence[int], steps: Sequence[int]) -> int:
        others = [w for w in movable if w != worker]
        return otherwise(others if others and steps[worker] == step else movable, steps)

    return choose


def launch(
    schedule: Schedule, control: Control, workers: int, resident: int, choose: Choice
) -> Launched:
    """One launch with ``workers`` workers, of which ``resident`` at most run at once; another
    starts when one has ended.

    Raises MegakernelStalled where nobody can move.  The control memory is then of no further use.
    """
    if not 1 <= resident <= workers:
        raise ValueError(f"{resident} of {workers} workers resident: needs 1 to {workers}")
    if schedule.assignment is not None and len(schedule.assignment) != workers:
        raise ValueError(
            f"the schedule is assigned to {len(schedule.assignment)} workers, and {workers} are "
            "launched; make the assignment for the workers of the launch"
        )
    return _Launch(schedule, control, workers).run(resident, choose)


class _Launch:
    def __init__(self, schedule: Schedule, control: Control, workers: int) -> None:
        control.launches += 1
        self.schedule = schedule
        self.control = control
        self.workers = workers
        self.epoch = control.launches
        self.is_static = False
        self.ran: list[tuple[int, Instruction]] = []

    def run(self, resident: int, choose: Choice) -> Launched:
        coroutines = [self._worker(w) for w in range(self.workers)]
        steps = [0] * self.workers
        waiting: list[Wait | None] = [None] * self.workers
        absent, present = list(range(self.workers)), list[int]()
        while absent or present:
            movable = [w for w in present if not self._is_held(waiting[w])]
            if len(present) < resident:
                movable += absent
            if not movable:
                raise _stalled([(w, wait) for w in present if (wait := waiting[w])], self.control)
            worker = choose(movable, steps)
            if worker in absent:
                absent.remove(worker)
                present.append(worker)
            steps[worker] += 1
            try:
                waiting[worker] = next(coroutines[worker])
            except StopIteration:
                present.remove(worker)
        return Launched("static" if self.is_static else "dynamic", tuple(steps), tuple(self.ran))

    def _is_held(self, wait: Wait | None) -> bool:
        return wait is not None and self.control.is_behind(wait.counter, wait.expected)

    def _worker(self, number: int) -> Generator[Wait | None, None, None]:
        """Yields after each step; a Wait where the next one has to be waited for."""
        schedule, control = self.schedule, self.control
        if schedule.assignment is not None and (yield from self._is_assigned()):
            self.is_static = True
            for instruction in schedule.assignment[number]:
                yield from self._execute(number, instruction)
            if number == 0:  # tickets that nobody takes in this launch
                control.head = (control.head + len(schedule.instructions) + self.workers) % WORD
            return
        first = (self.epoch - 1) * (len(schedule.instructions) + self.workers)
        while True:
            ticket = (control.head - first) % WORD
            control.head = (control.head + 1) % WORD
            yield None
            if ticket >= len(schedule.instructions):
                return
            yield from self._execute(number, schedule.instructions[ticket])

    def _is_assigned(self) -> Generator[None, None, bool]:
        """Whether all workers have started, so that each follows its list: one answer for all."""
        control = self.control
        control.arrived = (control.arrived + 1) % WORD
        last = control.arrived == self.epoch * self.workers % WORD
        yield
        if not last:
            for _ in range(POLLS_FOR_WORKERS):
                if self._is_decided():
                    break
                yield
        if not self._is_decided():
            control.mode = (2 * self.epoch + last) % WORD
        yield
        return bool(control.mode & 1)

    def _is_decided(self) -> bool:
        return self.control.mode >> 1 == self.epoch % (WORD // 2)

    def _execute(
        self, number: int, instruction: Instruction
    ) -> Generator[Wait | None, None, None]:
        schedule, counters = self.schedule, self.control.counters
        for counter, completions in schedule.waits(instruction):
            yield Wait(instruction, counter, self.epoch * completions % WORD)
        self.ran.append((number, instruction))
        for _ in schedule.run(instruction):
            yield None
        for counter in schedule.signals(instruction):
            counters[counter] = (counters.get(counter, 0) + 1) % WORD
            yield None


def _stalled(held: Sequence[tuple[int, Wait]], control: Control) -> MegakernelStalled:
    places = "; ".join(
        f"worker {worker} waits with instruction {wait.instruction} (stage, tile) for counter "
        f"{wait.counter}: expected {wait.expected}, seen {control.counters.get(wait.counter, 0)}"
        for worker, wait in held
    )
    return MegakernelStalled(
        f"no worker of launch {control.launches} can move: {places}; the order has an instruction "
        "before one that it waits for, or a counter's target exceeds its completions: check the "
        "plan"
    )
