"""A program of the corpus as PyTorch runs it: an operation at a time, compiled, as CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fusionq.benchmarks.case import Unavailable, compare
from fusionq.benchmarks.corpus.against.results import (
    COMPILED,
    COMPILED_GRAPH,
    EAGER,
    EAGER_GRAPH,
    REDUCED,
    TUNED_GRAPH,
)
from fusionq.benchmarks.corpus.program import Array
from fusionq.benchmarks.corpus.torch_forms.form import Tensor, TorchForm
from fusionq.benchmarks.corpus.workload import Problem
from fusionq.benchmarks.timing import Sampler, Start
from fusionq.benchmarks.variants import MissingVariant, Variant

CONTRACTED = {"float32": 1e-5, "float64": 1e-9}
"""Relative difference from NumPy's result that PyTorch may have where the program asks for the same
bits: its compiler contracts ``a * b + c`` and chooses the order of sums."""
FIRST_RUNS = 3
"""Of each variant, until it is compiled, recorded and replayed."""


def imported_torch() -> Any:
    """PyTorch with a GPU, and float32 products in float32; Unavailable where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"PyTorch is not installed: {error}") from None
    if not torch.cuda.is_available():
        raise Unavailable("PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


def as_torch_takes(array: Array) -> Array:
    """A copy of an array; int64 of uint32, with which PyTorch computes little."""
    return array.astype(np.int64 if array.dtype == np.uint32 else array.dtype)


class TorchProgram:
    """A form of PyTorch with tensors of its own, in order on a stream."""

    def __init__(self, torch: Any, problem: Problem, form: TorchForm, device: str) -> None:
        self.torch, self.problem, self.form = torch, problem, form
        self._tensors = {
            name: torch.from_numpy(as_torch_takes(array)).to(device)
            for name, array in problem.initial.items()
        }
        self._first: dict[str, Tensor] = {}
        """Of the tensors that a run writes, what it begins with."""
        self._found: tuple[Tensor, ...] = ()
        """What the last run returned."""
        self._eager = self._module()
        versions = {name: tensor._version for name, tensor in self._tensors.items()}
        with torch.no_grad():
            self._found = self._eager()
        program = problem.program
        for name, tensor in self._tensors.items():
            if tensor._version != versions[name]:
                assert name not in program.inputs, f"the form of PyTorch writes input {name}"
                first = torch.from_numpy(as_torch_takes(problem.initial[name])).to(device)
                self._first[name] = first

    def _module(self) -> Any:
        """The form as a module without parameters, whose buffers are the tensors: their addresses
        stay, which ``torch.compile`` knows, so that it copies none of them for a CUDA graph."""
        torch, run, size = self.torch, self.form.run, self.problem.size
        names = tuple(self._tensors)

        def forward(self: Any) -> tuple[Tensor, ...]:
            return run(torch, size, *(getattr(self, name) for name in names))

        module = type("Program", (torch.nn.Module,), {"forward": forward})()
        for name, tensor in self._tensors.items():
            module.register_buffer(name, tensor)
        return module

    def restore(self) -> None:
        """Give the tensors that a run writes what it begins with."""
        for name, first in self._first.items():
            self._tensors[name].copy_(first)

    def check(self) -> str:
        """Compare the last run's results with NumPy's; returns how well they agree.  AssertionError
        where they do not."""
        program = self.problem.program
        for name, tensor in zip(program.outputs, self._found, strict=True):
            expected = self.problem.expected[name]
            found = tensor.cpu().numpy().astype(expected.dtype)
            assert found.shape == expected.shape, f"{name} has the shape {found.shape}"
            tolerance = program.tolerance or CONTRACTED.get(expected.dtype.name, 0.0)
            if self.form.thresholds:
                found = self._but_at_thresholds(found, expected, tolerance)
            compare(found, expected, tolerance, f"{program.name}, PyTorch: {name}")
        return f"NumPy within {tolerance:.0e}"

    def _but_at_thresholds(self, found: Array, expected: Array, tolerance: float) -> Array:
        """``found``, with so few elements as the form allows made right."""
        wrong = np.abs(found - expected) > tolerance * np.maximum(1.0, np.abs(expected))
        if wrong.sum() > max(1, self.form.thresholds * wrong.size):
            return found
        return np.where(wrong, expected, found)

    # -------------------------------------------------------------------------------- variants
    def variants(
        self, stream: Any, sampler: Callable[[Start], Sampler], tell: Callable[[str], object]
    ) -> Iterator[Variant | MissingVariant]:
        """The ways to run it, each compiled, run and checked; ``sampler`` times runs on
        ``stream``."""
        eager = self._run_of(self._eager)
        compile_ = self.torch.compile
        yield self._variant(EAGER, lambda: eager, stream, sampler, tell)
        yield self._variant(EAGER_GRAPH, lambda: self._graph(eager), stream, sampler, tell)
        made: list[Start] = []

        def compiled(**options: Any) -> Start:
            module = compile_(self._module(), fullgraph=True, dynamic=False, **options)
            return self._run_of(module)

        def kept() -> Start:
            made.append(compiled())
            return made[0]

        yield self._variant(COMPILED, kept, stream, sampler, tell)

        def graph() -> Start:
            return self._graph(made[0])

        yield self._variant(COMPILED_GRAPH, graph, stream, sampler, tell)
        if self.form.products:

            def tuned() -> Start:
                return self._graph(compiled(mode="max-autotune-no-cudagraphs"))

            yield self._variant(TUNED_GRAPH, tuned, stream, sampler, tell)

        def reduced() -> Start:
            return compiled(mode="reduce-overhead")

        yield self._variant(REDUCED, reduced, stream, sampler, tell)

    def _run_of(self, module: Any) -> Start:
        def start() -> None:
            self._found = module()

        return start

    def _graph(self, run: Start) -> Start:
        """A run as a CUDA graph, recorded by hand."""
        torch = self.torch
        for _ in range(FIRST_RUNS):
            run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # Other threads of the process, which load kernels of fusionq's, are no part of it.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            run()
        results = self._found

        def start() -> None:
            self._found = results
            graph.replay()

        return start

    def _variant(
        self,
        name: str,
        make: Callable[[], Start],
        stream: Any,
        sampler: Callable[[Start], Sampler],
        tell: Callable[[str], object],
    ) -> Variant | MissingVariant:
        """A way to run it, which has run and was right; where PyTorch cannot, or is wrong, why."""
        tell(name)
        torch = self.torch
        try:
            with torch.no_grad(), torch.cuda.stream(stream):
                start = make()
                for _ in range(FIRST_RUNS):
                    self.restore()
                    start()
                stream.synchronize()
            self.check()
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error).strip()}"
            return MissingVariant(name, "baseline", reason[:300])
        timed = sampler(start)

        def run() -> None:
            with torch.no_grad(), torch.cuda.stream(stream):
                self.restore()
                start()
            stream.synchronize()

        def sample(runs: int) -> float:
            with torch.no_grad(), torch.cuda.stream(stream):
                self.restore()
                return timed(runs)

        return Variant(name, "baseline", "unfused", run, sampler=sample, check=self.check)
