"""What the device's clock is worth: its tick, its skew between workers, what a record costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import ArrayBinding, Backend, LaunchShape
from fusionq.compilation import program_of
from fusionq.errors import DeviceError
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Binary,
    BinaryOp,
    Call,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Logical,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.types import BOOL, INT64

_READS = 512
_ROUNDS = 64
_PATIENCE = 200_000
"""How often a work-item looks for the other's answer before it gives up."""

_SAME_CLOCK = 32
"""Looks at the host's clock on both sides of one at the device's."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A device's clock, measured when the profile starts; times in nanoseconds.

    ``tick_ns``: the least difference between two looks.  ``record_ns``: what a record costs.
    ``skew_ns``: how far the clocks of two workers are apart at most, None where no two ran at
    once.  ``host_offset_ns``: device time minus host time (``time.monotonic_ns``).
    """

    tick_ns: float
    record_ns: float
    skew_ns: float | None
    host_offset_ns: int

    @property
    def trusted_ns(self) -> float:
        """Shorter regions are not trustworthy: two ticks."""
        return 2 * self.tick_ns


def calibrate(backend: Backend) -> Calibration | str:
    """Measure the clock of ``backend``; the reason where it has none."""
    if "clock" not in getattr(backend, "device_functions", ()):
        return f"{backend.info.name} has no clock that kernels can read"
    try:
        reads = _run(backend, _reading_kernel(), _READS + 1, 1)
    except DeviceError as error:
        why = str(error).partition("\n")[0]
        return (
            f"{backend.info.name} (driver {backend.info.driver}) has no clock that kernels can "
            f"read (cl_khr_kernel_clock): {why}"
        )
    reads = _run(backend, _reading_kernel(), _READS + 1, 1)[:_READS]
    steps = np.diff(reads)
    steps = steps[steps > 0]
    if not len(steps):
        return f"the clock of {backend.info.name} stands still"
    return Calibration(
        tick_ns=float(max(steps.min(), gcd(*map(int, steps)))),
        record_ns=float(np.median(steps)),
        skew_ns=_skew(backend),
        host_offset_ns=_host_offset(backend),
    )


def _run(backend: Backend, kernel: Kernel, words: int, groups: int) -> npt.NDArray[np.int64]:
    """The kernel's array of ``words`` int64, zeros at first, after ``groups`` work-items that
    are work-groups of their own."""
    program = program_of(backend, kernel, "strict", {})
    memory = backend.allocate(8 * words)
    array = memory.host_view()[: 8 * words].view(np.int64)
    array[:] = 0
    binding = ArrayBinding(memory.address, (words,), (1,))
    backend.prepare(program, [binding], LaunchShape((groups,), (1,))).launch().wait()
    return array.copy()


def _kernel(name: str, variables: Sequence[str], body: Sequence[Stmt]) -> Kernel:
    param = ArrayParam("words", INT64, 1, unit_stride=True, restrict=True)
    return Kernel(name, 1, (param,), tuple((v, INT64) for v in variables), tuple(body))


_CLOCK = Call(INT64, "clock", ())


def _const(value: int) -> Const:
    return Const(INT64, value)


def _op(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(INT64, op, lhs, rhs)


def _reading_kernel() -> Kernel:
    turn = Var(INT64, "turn")
    store = Store("words", (turn,), _CLOCK)
    return _kernel("read_clock", (), [For("turn", _const(0), _const(_READS), _const(1), (store,))])


def _host_offset(backend: Backend) -> int:
    """0 where every look at the device's clock lies between the host's on both sides of it."""
    kernel = _kernel("look_once", (), [Store("words", (_const(0),), _CLOCK)])
    program = program_of(backend, kernel, "strict", {})
    memory = backend.allocate(8)
    launch = backend.prepare(
        program, [ArrayBinding(memory.address, (1,), (1,))], LaunchShape((1,), (1,))
    )
    looks = []
    for _ in range(_SAME_CLOCK):
        before = time.monotonic_ns()
        launch.launch().wait()
        after = time.monotonic_ns()
        looks.append((before, int(memory.host_view()[:8].view(np.int64)[0]), after))
    if all(before <= device <= after for before, device, after in looks):
        return 0
    before, device, after = min(looks, key=lambda look: look[2] - look[0])
    return device - (before + after) // 2


# --------------------------------------------------------------------------------- skew
def _skew(backend: Backend) -> float | None:
    """The bound on two workers' difference that the quickest exchange of messages gives.

    The first work-item notes the time, sends, and notes when the answer is there; the second
    notes the time between.  The difference of the clocks is at most half of the way to and fro
    plus the distance of the middle from it (Mills, NTP, RFC 5905, section 8).
    """
    if backend.info.compute_units < 2:
        return None
    words = 16 + 3 * _ROUNDS
    best: float | None = None
    for _ in range(8):
        times = _run(backend, _exchange_kernel(), words, 2)[16:].reshape(3, _ROUNDS)
        sent, seen, back = times[:, (times > 0).all(axis=0)]
        if len(sent):
            bound = np.abs(seen - (sent + back) / 2) + (back - sent) / 2
            best = min(float(bound.min()), np.inf if best is None else best)
    return best


def _exchange_kernel() -> Kernel:
    """words[0] and words[8]: the turn that the first and the second work-item are at."""

    def atomic(op: str, place: int, value: Expr | None, result: str | None) -> Stmt:
        order = "acquire" if op == "load" else "release"
        return Atomic(op, "words", (_const(place),), value, result, order, "device")  # type: ignore[arg-type]

    turn, number = Var(INT64, "turn"), _op("add", Var(INT64, "turn"), _const(1))
    seen, looks = Var(INT64, "seen"), Var(INT64, "looks")

    def wait(place: int) -> list[Stmt]:
        patient = Logical(
            "and", Compare("lt", seen, number), Compare("lt", looks, _const(_PATIENCE))
        )
        look = (atomic("load", place, None, "seen"), Assign("looks", _op("add", looks, _const(1))))
        return [Assign("seen", _const(0)), While(patient, look)]

    def note(row: int) -> Stmt:
        return Store("words", (_op("add", turn, _const(16 + row * _ROUNDS)),), _CLOCK)

    def note_if_seen(row: int) -> Stmt:
        return If(Compare("ge", seen, number), (note(row),))

    first: list[Stmt] = [note(0), atomic("store", 0, number, None), *wait(8), note_if_seen(2)]
    second: list[Stmt] = [*wait(0), note_if_seen(1), atomic("store", 8, number, None)]
    who = Compare("eq", ItemQuery("group_id", 0), _const(0), BOOL)
    turns = For(
        "turn", _const(0), _const(_ROUNDS), _const(1), (If(who, tuple(first), tuple(second)),)
    )
    return _kernel("exchange", ("seen", "looks"), [Assign("looks", _const(0)), turns])
