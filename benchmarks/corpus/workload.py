"""A program of the corpus at one size: its arrays, its result, and a queue that runs it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

import fusionq as fq
from fusionq.benchmarks.case import compare
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size


class Problem:
    """The arrays of a program at one size, as a run begins, and NumPy's result; shared by all
    forms."""

    def __init__(self, program: CorpusProgram, size: Size, seed: int = 0) -> None:
        self.program, self.size = program, size
        with np.errstate(all="raise", under="ignore"):
            self.initial = dict(program.arrays(size, np.random.default_rng(seed)))

    @cached_property
    def expected(self) -> dict[str, Array]:
        """The outputs of NumPy's run."""
        program = self.program
        arrays = {
            name: array if name in program.inputs else array.copy()
            for name, array in self.initial.items()
        }
        with np.errstate(all="raise", under="ignore"):
            program.reference(self.size, *arrays.values())
        return {name: arrays[name] for name in program.outputs}

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays together."""
        return sum(array.nbytes for array in self.initial.values())


class CorpusWorkload:
    """A form of a problem on a queue, with Buffers of its own.

    Meets what ``runner.measure`` asks of a workload.
    """

    def __init__(self, problem: Problem, form: Form, queue: fq.FusionQueue) -> None:
        self.problem, self.form, self.queue = problem, form, queue
        self.buffers = {name: fq.Buffer(array) for name, array in problem.initial.items()}
        self._bits: dict[str, Array] | None = None

    def submit(self) -> None:
        """Submit the list."""
        self.form.submit(self.queue, self.problem.size, *self.buffers.values())

    @property
    def host(self) -> dict[str, Array]:
        """The arrays' present contents: the Buffers' memory, or where the host does not see that,
        copies that cannot be written."""
        return {name: buffer.numpy() for name, buffer in self.buffers.items()}

    def restore(self) -> None:
        """Give all arrays that are written the contents that a run begins with, once what was
        submitted has run."""
        self.queue.wait()
        for name, array in self.problem.initial.items():
            if name not in self.problem.program.inputs:
                self.buffers[name].write(array)

    def spoil(self) -> None:
        """The contents that a run begins with are no result."""
        self.restore()

    def check(self, bit_for_bit: bool) -> str:
        """Compare the outputs with NumPy's, and where ``bit_for_bit`` with the first ones that
        were checked so, those of the unfused run; returns how well they agree.

        Raises AssertionError, with the first wrong element, where they do not, or where an input
        was written.
        """
        program = self.problem.program
        host = self.host
        where = f"{program.name}/{self.form.name}, {program.size_text(self.problem.size)}"
        for name in program.inputs:
            compare(host[name], self.problem.initial[name], 0.0, f"{where}: input {name}")
        for name in program.outputs:
            compare(
                host[name], self.problem.expected[name], program.tolerance, f"{where}: {name}"
            )
        if bit_for_bit and program.tolerance:
            if self._bits is None:
                self._bits = {name: host[name].copy() for name in program.outputs}
            for name, bits in self._bits.items():
                compare(host[name], bits, 0.0, f"{where}: {name} against unfused")
        if not program.tolerance:
            return "bit for bit NumPy"
        agreement = f"NumPy within {program.tolerance:.0e}"
        return f"bit for bit unfused, {agreement}" if bit_for_bit else agreement

    def restoring(self, sample: Callable[[int], float]) -> Callable[[int], float]:
        """``sample`` on the contents that a run begins with, which are restored untimed."""

        def restored(runs: int) -> float:
            self.restore()
            return sample(runs)

        return restored
