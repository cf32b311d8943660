"""What the device's clock is worth: its tick, its skew between workers, what a record costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import Allocation, ArrayBinding, Backend
from fusionq.base.errors import DeviceError
from fusionq.base.target import LaunchShape, Target
from fusionq.execution.programs import program_of
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    AtomicOp,
    Binary,
    BinaryOp,
    Call,
    Clock,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Logical,
    MemoryOrderName,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.types import BOOL, INT64

_READS = 512
_ROUNDS = 64
_MOST_READS = 200_000
"""Of a word, by a worker that waits for another to start: some milliseconds."""
_APART = 0.01
_UNEVEN = 1e-4
"""How much the lengths of a count, measured one after the other, may differ."""

_EXCHANGES = 8
_CLOSE = 25_000
_EXCHANGING_SECONDS = 0.2
"""How many exchanges of messages are made; where none gave a bound of ``_CLOSE`` counts, as on a
busy machine, more of them for so long."""

_SAME_CLOCK = 32
"""Reads of the host's clock on both sides of one at the device's."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A device's clock, measured when the profile starts; times in nanoseconds.

    ``function``: what kernels read.  ``tick_ns``: the least difference between two reads.
    ``record_ns``: what a read costs.  ``skew_ns``: how far the clocks of two workers are apart at
    most, None where no two ran at once.  ``count_ns``: what one count of the clock is; it counts
    ``zero_count`` at ``zero_ns`` of the host's ``time.monotonic_ns``.
    """

    function: Clock
    tick_ns: float
    record_ns: float
    skew_ns: float | None
    count_ns: float = 1.0
    zero_count: int = 0
    zero_ns: int = 0

    @property
    def trusted_ns(self) -> float:
        """Shorter regions are not trustworthy: two ticks."""
        return 2 * self.tick_ns

    def host_ns(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Reads of the clock as ``time.monotonic_ns``."""
        since = (counts - self.zero_count) * self.count_ns
        found: npt.NDArray[np.int64] = np.rint(since).astype(np.int64) + self.zero_ns
        return found


def calibrate(backend: Backend) -> Calibration | str:
    """Measure the clock of ``backend``; the reason where it has none.

    The cycle counter is read in its place where it counts evenly and the same for all
    workers: on a CPU that takes a quarter of the time, and leaves the vector code around it alone.
    """
    if "clock" not in backend.abilities.device_functions:
        return f"{backend.info.name} has no clock that kernels can read"
    try:
        _run(backend, _reading_kernel("clock"), _READS + 1, 1)
    except DeviceError as error:
        why = str(error).partition("\n")[0]
        return (
            f"{backend.info.name} (driver {backend.info.driver}) has no clock that kernels can "
            f"read (cl_khr_kernel_clock): {why}"
        )
    offset = _host_offset(backend)
    counter = _cycle_counter(backend, offset)
    if counter is not None:
        return counter
    steps = _steps(backend, "clock")
    if not len(steps):
        return f"the clock of {backend.info.name} stands still"
    workers = _exchange(backend, "clock")
    skew = None if workers is None else workers.bound
    return Calibration("clock", _tick(steps), float(np.median(steps)), skew, zero_ns=-offset)


def _cycle_counter(backend: Backend, offset: int) -> Calibration | None:
    """The cycle counter, measured by the clock; None where it does not do."""
    if "cycle_counter" not in backend.abilities.device_functions:
        return None
    try:
        steps = _steps(backend, "cycle_counter")
    except DeviceError:
        return None
    if not len(steps):
        return None
    (time_0, count_0), (time_1, count_1), (time_2, count_2) = _pairs(backend)
    if not count_0 < count_1 < count_2:
        return None
    first = (time_1 - time_0) / (count_1 - count_0)
    second = (time_2 - time_1) / (count_2 - count_1)
    if abs(first / second - 1) > _UNEVEN:
        return None
    count_ns = (time_2 - time_0) / (count_2 - count_0)
    workers = _exchange(backend, "cycle_counter")
    if workers is not None and workers.apart * count_ns > backend.target.early_clock_ns:
        return None
    skew = None if workers is None else workers.bound * count_ns
    tick, record = _tick(steps) * count_ns, float(np.median(steps)) * count_ns
    return Calibration(
        "cycle_counter", tick, record, skew, count_ns, count_0, round(time_0) - offset
    )


def _steps(backend: Backend, clock: Clock) -> npt.NDArray[np.int64]:
    """Differences between reads one after the other, without those of which nothing is seen."""
    kernel = _reading_kernel(clock)
    _run(backend, kernel, _READS + 1, 1)
    steps = np.diff(_run(backend, kernel, _READS + 1, 1)[:_READS])
    found: npt.NDArray[np.int64] = steps[steps > 0]
    return found


def _tick(steps: npt.NDArray[np.int64]) -> float:
    return float(max(steps.min(), gcd(*map(int, steps))))


def _pairs(backend: Backend) -> list[tuple[float, int]]:
    """Three times by the clock, ``_APART`` seconds apart, and what the cycle counter said."""
    turn = Var(INT64, "turn")
    reads = [
        Store("words", (_op("add", _op("mul", turn, _const(3)), _const(k)),), Call(INT64, name, ()))
        for k, name in enumerate(("clock", "cycle_counter", "clock"))
    ]
    loop = For("turn", _const(0), _const(_ROUNDS), _const(1), tuple(reads))
    kernel = _kernel("compare_clocks", (), [loop])
    found = []
    for number in range(3):
        if number:
            time.sleep(_APART)
        rows = _run(backend, kernel, 3 * _ROUNDS, 1).reshape(_ROUNDS, 3)
        before, count, after = rows[(rows[:, 2] - rows[:, 0]).argmin()].tolist()
        found.append(((before + after) / 2, count))
    return found


def _run(backend: Backend, kernel: Kernel, words: int, groups: int) -> npt.NDArray[np.int64]:
    """The kernel's array of ``words`` int64, zeros at first, after ``groups`` work-items that
    are work-groups of their own."""
    program = program_of(backend, kernel, "strict", {})
    memory = backend.allocate(8 * words)
    memory.zero()
    binding = ArrayBinding(memory.address, (words,), (1,))
    backend.prepare(program, [binding], LaunchShape((groups,), (1,))).launch().wait()
    return _words(memory, words)


def _words(memory: Allocation, count: int) -> npt.NDArray[np.int64]:
    """The first ``count`` int64 of the memory, as they are now."""
    found = np.empty(count, np.int64)
    memory.read(found.view(np.uint8))
    return found


def _kernel(name: str, variables: Sequence[str], body: Sequence[Stmt]) -> Kernel:
    param = ArrayParam("words", INT64, 1, unit_stride=True, restrict=True)
    return Kernel(name, 1, (param,), tuple((v, INT64) for v in variables), tuple(body))


_CLOCK = Call(INT64, "clock", ())


def _const(value: int) -> Const:
    return Const(INT64, value)


def _op(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(INT64, op, lhs, rhs)


def _reading_kernel(clock: Clock) -> Kernel:
    turn = Var(INT64, "turn")
    store = Store("words", (turn,), Call(INT64, clock, ()))
    loop = For("turn", _const(0), _const(_READS), _const(1), (store,))
    return _kernel(f"read_{clock}", (), [loop])


def _host_offset(backend: Backend) -> int:
    """0 where every read of the device's clock lies between the host's on both sides of it."""
    kernel = _kernel("read_clock_once", (), [Store("words", (_const(0),), _CLOCK)])
    program = program_of(backend, kernel, "strict", {})
    memory = backend.allocate(8)
    launch = backend.prepare(
        program, [ArrayBinding(memory.address, (1,), (1,))], LaunchShape((1,), (1,))
    )
    reads = []
    for _ in range(_SAME_CLOCK):
        before = time.monotonic_ns()
        launch.launch().wait()
        after = time.monotonic_ns()
        reads.append((before, int(_words(memory, 1)[0]), after))
    if all(before <= device <= after for before, device, after in reads):
        return 0
    before, device, after = min(reads, key=lambda read: read[2] - read[0])
    return device - (before + after) // 2


# --------------------------------------------------------------------------------- skew
@dataclass(frozen=True, slots=True)
class _Exchange:
    """What an exchange of messages says of two workers' clocks, in counts: they are at most
    ``bound`` apart, and ``apart`` at least."""

    bound: float
    apart: int


def _exchange(backend: Backend, clock: Clock) -> _Exchange | None:
    """The tightest bound that messages between two workers give; None where no two ran at once.

    The first work-item notes the time, sends, and notes when the answer is there; the second
    notes the time between.  The difference of the clocks is at most half of the way to and fro
    plus the distance of the middle from it (Mills, NTP, RFC 5905, section 8).
    """
    target = backend.target
    if target.resident_workers < 2:
        return None
    at = 2 * _line(target)
    best: _Exchange | None = None
    began, tried = time.monotonic(), 0
    while tried < _EXCHANGES or (
        (best is None or best.bound > _CLOSE) and time.monotonic() - began < _EXCHANGING_SECONDS
    ):
        tried += 1
        times = _run(backend, _exchange_kernel(clock, target), at + 3 * _ROUNDS, 2)[at:]
        times = times.reshape(3, _ROUNDS)
        sent, seen, back = times[:, (times > 0).all(axis=0)]
        if len(sent):
            bound = float((np.abs(seen - (sent + back) / 2) + (back - sent) / 2).min())
            apart = max(int(np.maximum(sent - seen, seen - back).max()), 0)
            if best is not None:
                bound, apart = min(bound, best.bound), max(apart, best.apart)
            best = _Exchange(bound, apart)
    return best


def _line(target: Target) -> int:
    """Words (int64) of a cache line."""
    return target.cache_line_bytes // 8


def _exchange_kernel(clock: Clock, target: Target) -> Kernel:
    """The first words of the first two cache lines: the turn that the first and the second
    work-item are at; their spins are bounded, in case the other does not answer."""
    line = _line(target)

    def atomic(op: AtomicOp, place: int, value: Expr | None, result: str | None) -> Stmt:
        order: MemoryOrderName = "acquire" if op == "load" else "release"
        return Atomic(op, "words", (_const(place),), value, result, order, "device")

    turn, number = Var(INT64, "turn"), _op("add", Var(INT64, "turn"), _const(1))
    seen, reads = Var(INT64, "seen"), Var(INT64, "reads")

    def wait(place: int) -> list[Stmt]:
        bounded = Logical(
            "and", Compare("lt", seen, number), Compare("lt", reads, _const(_MOST_READS))
        )
        read = (atomic("load", place, None, "seen"), Assign("reads", _op("add", reads, _const(1))))
        return [Assign("seen", _const(0)), While(bounded, read)]

    def note(row: int) -> Stmt:
        place = _op("add", turn, _const(2 * line + row * _ROUNDS))
        return Store("words", (place,), Call(INT64, clock, ()))

    def note_if_seen(row: int) -> Stmt:
        return If(Compare("ge", seen, number), (note(row),))

    first: list[Stmt] = [note(0), atomic("store", 0, number, None), *wait(line), note_if_seen(2)]
    second: list[Stmt] = [*wait(0), note_if_seen(1), atomic("store", line, number, None)]
    who = Compare("eq", ItemQuery("group_id", 0), _const(0), BOOL)
    turns = For(
        "turn", _const(0), _const(_ROUNDS), _const(1), (If(who, tuple(first), tuple(second)),)
    )
    return _kernel("exchange", ("seen", "reads"), [Assign("reads", _const(0)), turns])
