"""Random lists that come again and again over other memory: Buffers made anew, some that stay,
views that begin elsewhere, overlap, or lie where vectors cannot begin, other sizes, some of which
never come again, and scalars.

What they have to leave is worked out by NumPy, a submission at a time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

import fusionq as fq

Array = npt.NDArray[np.float32]
SIZES = (1, 5, 64, 257, 1000, 4096)
STRATEGIES: tuple[Literal["auto", "sequence", "megakernel", "fused"], ...] = (
    "auto", "auto", "sequence", "megakernel", "fused",
)  # fmt: skip


@fq.kernel
def scaled(item: fq.Item, a: Any, factor: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def added(item: fq.Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def blurred(item: fq.Item, a: Any, out: Any) -> None:
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        out[i] = a[i - 1] + a[i] + a[i + 1]


@fq.kernel
def reversed_(item: fq.Item, a: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[a.shape[0] - 1 - i]


@fq.kernel
def increased(item: fq.Item, a: Any, step: Any) -> None:
    i = item.get_id(0)
    a[i] = a[i] + step


def _blur(a: Array, out: Array) -> None:
    out[1:-1] = a[:-2] + a[1:-1] + a[2:]


class Kind(NamedTuple):
    """A kernel: how many arrays it reads that may be the same, whether it reads only the elements
    that it writes, whether it writes all, and what it does."""

    kernel: Any
    reads: int
    by_item: bool
    writes_all: bool
    by_numpy: Callable[[Sequence[Array], np.float32, Array], object]


KINDS = (
    Kind(scaled, 1, True, True, lambda a, f, out: np.multiply(a[0], f, out=out)),
    Kind(added, 2, True, True, lambda a, f, out: np.add(a[0], a[1], out=out)),
    Kind(blurred, 1, False, False, lambda a, f, out: _blur(a[0], out)),
    Kind(reversed_, 1, False, True, lambda a, f, out: np.copyto(out, a[0][::-1])),
    Kind(increased, 0, True, False, lambda a, f, out: np.add(out, f, out=out)),
)


class Slot(NamedTuple):
    """An array of a list: part of a memory, beginning ``gap`` elements behind the memory's
    ``start``."""

    memory: int
    gap: int


class Step(NamedTuple):
    kind: Kind
    reads: tuple[int, ...]
    writes: int


@dataclass(eq=False)
class Memory:
    """A Buffer, and what has to be in it; ``is_temporary``: which is not looked at."""

    buffer: fq.Buffer
    contents: Array
    is_temporary: bool


class Lists:
    """The lists of one ``seed``: all have the same steps, on one of ``queues`` each.  ``large``:
    work-items of a list, which some have."""

    def __init__(self, queues: Sequence[fq.FusionQueue], seed: int, large: int = 0) -> None:
        self._queues = queues
        self._random = random.Random(seed)
        chance = self._random
        self._large = large if large and chance.random() < 0.15 else 0
        memories = chance.randint(2, 5)
        self._temporary = [chance.random() < 0.3 for _ in range(memories)]
        self._slots = [
            Slot(m, g)
            for m in range(memories)
            for g in ([0] if self._temporary[m] else chance.sample((0, 1, 2, 3, 8), 2))
        ]
        self._steps = self._new_steps(chance.randint(1, 7))
        self._strategy = chance.choice(STRATEGIES)
        self._is_plain = chance.random() < 0.2
        self._kept: list[Memory] = []
        self._fusions: list[tuple[fq.Fusion, list[Memory], list[int], int, list[np.float32]]] = []
        self.compared = 0
        """Memories whose contents were looked at."""
        self._gaps = chance.random() < 0.4
        self._least = chance.choice((0, 0, 1, 40, 300, 1500))
        """Of sizes that seldom come again, up to twice as many; 0 where they are of ``SIZES``."""

    def _new_steps(self, count: int) -> list[Step]:
        chance, steps = self._random, []
        written: set[int] = set()
        """Temporaries with contents."""
        while len(steps) < count:
            kind = chance.choice(KINDS)
            out = chance.randrange(len(self._slots))
            memory = self._slots[out].memory
            known = [
                k
                for k, slot in enumerate(self._slots)
                if not self._temporary[slot.memory] or slot.memory in written
            ]
            # The work-items of one submission do not touch each other's elements.
            reads = [k for k in known if self._slots[k].memory != memory]
            reads += [out] if kind.by_item and out in known else []
            if not reads or (self._temporary[memory] and not kind.writes_all and out not in known):
                if not known:
                    self._temporary[self._slots[0].memory] = False
                continue
            steps.append(Step(kind, tuple(chance.choices(reads, k=kind.reads)), out))
            if self._temporary[memory]:
                written.add(memory)
        return steps

    def run(self, rounds: int) -> None:
        """Submit so many lists, replay some, and compare."""
        for _ in range(rounds):
            self._run_once()
            if self._fusions and self._random.random() < 0.3:
                self._replay()
            if self._random.random() < 0.2:
                self.check()
        self.check()

    def _run_once(self) -> None:
        chance = self._random
        size = self._large or chance.choice(SIZES[:: chance.choice((1, 2, 5))])
        if self._least:
            size = chance.randint(self._least, 2 * self._least)
        starts = [chance.choice((0, 0, 1, 4, 16)) if self._gaps else 0 for _ in self._temporary]
        memories: list[Memory] = []
        for number in range(len(self._temporary)):
            memories.append(self._memory(number, size, memories))
        factors = [np.float32(chance.choice((0.5, 0.25, -1.0, 3.0))) for _ in self._steps]
        queue = chance.choice(self._queues)
        if self._is_plain:
            self._submit(queue, memories, starts, size, factors)
        else:
            with fq.fusion(queue, strategy=self._strategy) as fusion:
                self._submit(queue, memories, starts, size, factors)
            self._fusions.append((fusion, memories, starts, size, factors))
            del self._fusions[: -chance.randint(1, 4)]
        self._by_numpy(memories, starts, size, factors)

    def _memory(self, number: int, size: int, others: Sequence[Memory]) -> Memory:
        """A new one, or, where it is large enough, one that earlier lists have, other than those
        that this one has."""
        chance, temporary = self._random, self._temporary[number]
        length = size + 64
        if not temporary and chance.random() < 0.25:
            held = [m for m in self._kept if m.contents.size >= length and m not in others]
            if held:
                return chance.choice(held)
        if temporary:
            buffer = fq.Buffer(length, np.float32, internal=True)
            made = Memory(buffer, np.zeros(length, np.float32), True)
        elif chance.random() < 0.3:
            buffer = fq.Buffer(length, np.float32)
            made = Memory(buffer, np.zeros(length, np.float32), False)
        else:
            contents = np.arange(length, dtype=np.float32) % np.float32(chance.choice((7, 11, 13)))
            made = Memory(fq.Buffer(contents), contents, False)
        if not temporary:
            self._kept.append(made)
            if len(self._kept) > 12:
                if chance.random() < 0.5:  # else they die while their launches run
                    self.check()
                self._kept = self._kept[-chance.randint(0, 6) :]
                self._fusions.clear()
        return made

    def _submit(
        self,
        queue: fq.FusionQueue,
        memories: Sequence[Memory],
        starts: Sequence[int],
        size: int,
        factors: Sequence[np.float32],
    ) -> None:
        arrays = [
            memories[slot.memory].buffer[starts[slot.memory] + slot.gap :][:size]
            for slot in self._slots
        ]
        for step, factor in zip(self._steps, factors, strict=True):
            given: list[Any] = [arrays[k] for k in step.reads]
            if step.kind.kernel is scaled:
                given.append(factor)
            given.append(arrays[step.writes])
            if step.kind.kernel is increased:
                given.append(factor)
            queue.submit(step.kind.kernel, size, *given)

    def _by_numpy(
        self,
        memories: Sequence[Memory],
        starts: Sequence[int],
        size: int,
        factors: Sequence[np.float32],
    ) -> None:
        arrays = [
            memories[slot.memory].contents[starts[slot.memory] + slot.gap :][:size]
            for slot in self._slots
        ]
        for step, factor in zip(self._steps, factors, strict=True):
            reads = [arrays[k].copy() for k in step.reads]
            step.kind.by_numpy(reads, factor, arrays[step.writes])

    def _replay(self) -> None:
        fusion, *rest = self._random.choice(self._fusions)
        if any(self._temporary) and not all(m in self._kept or m.is_temporary for m in rest[0]):
            return
        fusion.replay()
        self._by_numpy(*rest)

    def check(self) -> None:
        """What nobody writes to any more is as it has to be; so is the rest."""
        self.compared += len(self._kept)
        for memory in self._kept:
            found = memory.buffer.numpy()
            np.testing.assert_array_equal(
                found.view(np.uint32)[~np.isnan(found)],
                memory.contents.view(np.uint32)[~np.isnan(memory.contents)],
            )
