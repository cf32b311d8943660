"""What a benchmark case is: a chain of kernels, its arrays, its NumPy form, its baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import fusionq as fq
from fusionq.benchmarks.timing import Start

Role = Literal["input", "state", "temporary", "output"]
"""``state`` is an input that submissions also write: a run has to write the same each time."""
Traffic = Literal["unfused", "fused", "promoted"]
Extents: TypeAlias = tuple[int, ...]
HostArrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
CHUNK_ELEMENTS = 1 << 22


class Unavailable(Exception):
    """A baseline cannot run here; the message says what is missing."""


@dataclass(frozen=True)
class ArraySpec:
    """An array of a case.  Its shape: ``shape_of`` the case's extents if given, else the given
    ``axes`` of them (None: all)."""

    name: str
    role: Role
    axes: tuple[int, ...] | None = None
    shape_of: Callable[[Extents], Extents] | None = None
    dtype: Literal["float32", "int32"] = "float32"
    between: tuple[float, float] = (0.0, 1.0)
    """The half-open interval that an input's random numbers are from."""

    def shape(self, extents: Extents) -> Extents:
        """Its shape for a case of ``extents``."""
        if self.shape_of is not None:
            return self.shape_of(extents)
        return extents if self.axes is None else tuple(extents[axis] for axis in self.axes)


@dataclass(frozen=True)
class Step:
    """One submission: array names and scalars in the kernel's order, the written array last.
    Scalars may be functions of the case's extents."""

    kernel: Any
    arguments: tuple[str | float | Callable[[Extents], float], ...]
    range_of: Callable[[Extents], Extents] = tuple
    """The range it is submitted with, for a case of given extents."""

    @property
    def arrays(self) -> tuple[str, ...]:
        """The array names among the arguments."""
        return tuple(a for a in self.arguments if isinstance(a, str))


@dataclass(frozen=True)
class Baseline:
    """Another way to compute the case's output.

    ``prepare`` returns a callable that starts one run; it raises Unavailable where a package,
    compiler or device is missing.
    """

    name: str
    traffic: Traffic
    prepare: Callable[[Workload], Start]
    raw: RawKernels | None = None
    """The kernels of a baseline that is written by hand."""


@dataclass(frozen=True)
class RawKernels:
    """OpenCL C, and its launches: a kernel's name and the arrays it takes; the extent of the last
    axis is its last argument, which it guards."""

    source: str
    launches: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Case:
    """A list of kernels and the arrays they run over."""

    name: str
    description: str
    sizes: tuple[int, ...]
    """Default sizes, in elements of the output unless the description says otherwise."""
    extents: Callable[[int], Extents]
    """The extents for a size: the range of steps that have none of their own."""
    arrays: tuple[ArraySpec, ...]
    steps: tuple[Step, ...]
    numpy: Callable[[HostArrays], object]
    """The NumPy form, with preallocated results; the reference that results are checked by."""
    baselines: tuple[Baseline, ...]
    promotion: Literal["private", "local"] = "private"
    """How temporaries are flagged in the promoted variants."""
    compare: Literal["promotion", "strategies"] = "promotion"
    """What fusionq's variants differ in."""
    local_range: tuple[int, ...] | None = None
    """The work-group size of every submission; None leaves it to fusionq."""
    expression: Callable[[Any, Mapping[str, Any]], Any] | None = None
    """The output as arithmetic of whole arrays, of a library (CuPy, PyTorch) that has NumPy's
    functions under NumPy's names, and of its arrays by the inputs' names."""
    tolerance: float = 0.0
    """Allowed difference from NumPy, relative to max(1, |expected|); 0 means the same bits."""

    def names(self, role: Role) -> tuple[str, ...]:
        """The names of the arrays with that role."""
        return tuple(spec.name for spec in self.arrays if spec.role == role)

    @property
    def output(self) -> str:
        """The name of the output."""
        return self.names("output")[0]

    def stated_bytes(self, traffic: Traffic, size: int) -> int:
        """Bytes that the algorithm has to move between memory and the cores.

        ``unfused``: every submission reads its inputs and writes its result.  ``fused``: every
        input is read once, every temporary and the output written once.  ``promoted``: inputs
        and output only.  What hardware moves besides, such as the read of a line before it is
        overwritten, is not counted.  An array counts whole for a submission that takes part of
        it.
        """
        extents = self.extents(size)
        nbytes = {
            spec.name: np.dtype(spec.dtype).itemsize * prod(spec.shape(extents))
            for spec in self.arrays
        }
        if traffic == "unfused":
            return sum(nbytes[name] for step in self.steps for name in step.arrays)
        total = sum(nbytes[name] for name in (*self.names("input"), self.output))
        if traffic == "fused":
            total += sum(nbytes[step.arrays[-1]] for step in self.steps[:-1])
        return total


class Workload:
    """A case's arrays at one size, shared by all variants, and the queue they run on.

    Memory: every input, temporary and output once; temporaries again for each set with flags,
    where they are not promoted; the expected result; and for a case with a tolerance the bits of
    the unfused run.
    """

    def __init__(self, case: Case, size: int, queue: fq.FusionQueue, seed: int = 0) -> None:
        self.case, self.size, self.queue = case, size, queue
        self.extents = case.extents(size)
        self.buffers: dict[str, fq.Buffer] = {}
        self.host: dict[str, npt.NDArray[Any]] = {}
        self._flagged: list[fq.Buffer] = []
        rng = np.random.default_rng(seed)
        self.shares_memory = queue.device.host_memory
        """Whether ``host`` is the buffers' own memory; else ``spoil`` writes and ``check`` reads
        it."""
        for spec in case.arrays:
            buffer = fq.Buffer(spec.shape(self.extents), spec.dtype)
            host = buffer.numpy() if self.shares_memory else np.zeros(buffer.shape, buffer.dtype)
            if spec.role in ("input", "state"):
                _fill_random(host, rng, spec.between)
                if not self.shares_memory:
                    buffer.write(host)
            self.buffers[spec.name], self.host[spec.name] = buffer, host
        self._states = {name: self.host[name].copy() for name in case.names("state")}
        self.out = self.host[case.output]
        case.numpy(self.host)
        self.expected = self.out.copy()
        self.bits: npt.NDArray[Any] | None = None if case.tolerance else self.expected

    def range_of(self, step: Step) -> int | Extents | fq.NdRange:
        """The range to submit a step with."""
        extents = step.range_of(self.extents)
        if self.case.local_range:
            return fq.NdRange(extents, self.case.local_range)
        return extents[0] if len(extents) == 1 else extents

    def arguments(self, step: Step, buffers: Mapping[str, fq.Buffer]) -> list[fq.Buffer | float]:
        """What to submit a step's kernel with, its arrays being ``buffers``."""
        return [
            buffers[argument]
            if isinstance(argument, str)
            else argument(self.extents)
            if callable(argument)
            else argument
            for argument in step.arguments
        ]

    def promoted_buffers(self) -> dict[str, fq.Buffer]:
        """The arrays, with temporaries that are flagged for promotion and so need no memory."""
        return self._with_flags(**{f"promote_{self.case.promotion}": True})

    def internal_buffers(self) -> dict[str, fq.Buffer]:
        """The arrays, with temporaries whose contents need not survive a list."""
        return self._with_flags(internal=True)

    def _with_flags(self, **flags: Any) -> dict[str, fq.Buffer]:
        flagged = {
            spec.name: fq.Buffer(spec.shape(self.extents), spec.dtype, **flags)
            for spec in self.case.arrays
            if spec.role == "temporary"
        }
        self._flagged += flagged.values()
        return {**self.buffers, **flagged}

    def spoil(self) -> None:
        """Overwrite the output and all temporaries that have memory, so that an old result cannot
        pass as a new one; give the state its first value."""
        for name in (*self.case.names("temporary"), self.case.output):
            _spoil(self.host[name])
            self._give(name)
        for buffer in self._flagged:
            if buffer.is_allocated and self.shares_memory:
                _spoil(buffer.numpy())
            elif buffer.is_allocated:
                spoiled = np.empty(buffer.shape, buffer.dtype)
                _spoil(spoiled)
                buffer.write(spoiled)
        for name, values in self._states.items():
            np.copyto(self.host[name], values)
            self._give(name)

    def _give(self, name: str) -> None:
        if not self.shares_memory:
            self.buffers[name].write(self.host[name])

    def check_close(self, tolerance: float) -> str:
        """Compare the output with the expected result within ``tolerance``, for what rounds where
        it likes; as ``check``."""
        if not self.shares_memory:
            np.copyto(self.out, self.buffers[self.case.output].numpy())
        allowed = max(tolerance, self.case.tolerance)
        compare(self.out, self.expected, allowed, self.case.name)
        return f"NumPy within {allowed:.0e}"

    def check(self, bit_for_bit: bool) -> str:
        """Compare the output with the expected result, and with the bits of the unfused run
        (the first to be checked) where ``bit_for_bit``; returns how well they agree.

        Raises AssertionError, with the first wrong element, where they do not.
        """
        if not self.shares_memory:
            np.copyto(self.out, self.buffers[self.case.output].numpy())
        if self.bits is None and bit_for_bit:
            self.bits = self.out.copy()
        if self.bits is not None and bit_for_bit:
            compare(self.out, self.bits, 0.0, self.case.name)
        compare(self.out, self.expected, self.case.tolerance, self.case.name)
        if not self.case.tolerance:
            return "bit for bit NumPy"
        agreement = f"NumPy within {self.case.tolerance:.0e}"
        return f"bit for bit unfused, {agreement}" if bit_for_bit else agreement


def _fill_random(
    array: npt.NDArray[Any], rng: np.random.Generator, between: tuple[float, float]
) -> None:
    low, high = between
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK_ELEMENTS):
        part = flat[start : start + CHUNK_ELEMENTS]
        if part.dtype.kind == "i":
            part[...] = rng.integers(int(low), int(high), part.size)
        else:
            part[...] = rng.random(part.size, dtype=np.float32)
            if between != (0.0, 1.0):
                part *= np.float32(high - low)
                part += np.float32(low)


def _spoil(array: npt.NDArray[Any]) -> None:
    array.fill(-1 if array.dtype.kind == "i" else np.nan)


def compare(
    found: npt.NDArray[Any], expected: npt.NDArray[Any], tolerance: float, case: str
) -> None:
    """AssertionError, which names ``case`` and the first wrong element, unless ``found`` is
    ``expected``: within ``tolerance`` relative to max(1, |expected|), or for 0 bit for bit."""
    a, b = found.reshape(-1), expected.reshape(-1)
    for start in range(0, a.size, CHUNK_ELEMENTS):
        x, y = a[start : start + CHUNK_ELEMENTS], b[start : start + CHUNK_ELEMENTS]
        if tolerance and y.dtype.kind == "f":
            right = np.abs(x - y) <= tolerance * np.maximum(1.0, np.abs(y))
        else:
            right = x.view(f"u{x.itemsize}") == y.view(f"u{y.itemsize}")
        if not right.all():
            at = int(np.argmin(right))
            raise AssertionError(
                f"{case}: {int((~right).sum())} wrong elements from element {start + at} on: "
                f"{x[at]!r} where {y[at]!r} was expected"
            )
