"""Kernels of many kinds, and what the device's compiler takes for each.

The kinds: all programs of the corpus at their tiny size; and lists that go where programs rarely
go: integers divided, long chains, barriers, many arrays, long kernels.
"""

from __future__ import annotations

import linecache
import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.backends.registry import backend_for
from fusionq.base.options import UNFUSED, FusionOptions
from fusionq.benchmarks.corpus.program import HALVES, Half
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.frontend import KernelFunction
from fusionq.ir.nodes import Kernel
from fusionq.planning.build_cost import BuildWork, build_work
from fusionq.planning.planner import make_plan

N = 256
"""Work-items and elements of the generated lists."""

STRATEGIES = (
    UNFUSED, FusionOptions(strategy="fused"), FusionOptions(strategy="megakernel"),
)  # fmt: skip


@dataclass(frozen=True)
class BuildSample:
    """A kernel and the processor ``seconds`` that its build took."""

    name: str
    kind: str
    half: Half
    work: BuildWork
    seconds: float


@dataclass(frozen=True)
class _List:
    name: str
    kind: str
    half: Half
    submit: Callable[[fq.FusionQueue], object]


def measured_samples(
    known: Collection[str], on_doing: Callable[[str], object]
) -> Iterator[BuildSample]:
    """The kernels of all lists by each strategy, as they are measured, but those ``known`` by
    name."""
    backend = backend_for(None)
    seen: set[Kernel] = set()
    fq.set_disk_cache(enabled=False)
    for each in (*_corpus(), *_generated()):
        on_doing(each.name)
        with fq.FusionQueue() as queue, fq.fusion(queue, strategy="unfused") as fusion:
            each.submit(queue)
        for options in STRATEGIES:
            plan = make_plan(fusion.report.submissions, options, backend.target)
            for number, stage in enumerate(plan.stages):
                name = f"{each.name}, {options.strategy}, launch {number}"
                if stage.kernel in seen or name in known:
                    continue
                seen.add(stage.kernel)
                started = time.process_time()
                backend.build(stage.kernel, "strict")
                seconds = time.process_time() - started
                work = build_work(stage.kernel)
                yield BuildSample(name, each.kind, each.half, work, seconds)


def _corpus() -> Iterator[_List]:
    for program in PROGRAMS.values():
        size = program.sizes["tiny"]
        arrays = program.arrays(size, np.random.default_rng(0))
        buffers = [fq.Buffer(array) for array in arrays.values()]
        for form in program.forms:
            submit = partial(_submit_form, form.submit, size, buffers)
            yield _List(f"{program.name}/{form.name}", "the corpus", program.half, submit)


def _submit_form(
    submit: Callable[..., None],
    size: tuple[int, ...],
    buffers: Sequence[fq.Buffer],
    queue: fq.FusionQueue,
) -> None:
    submit(queue, size, *buffers)


# ---------------------------------------------------------------------------- generated
def _generated() -> Iterator[_List]:
    """Lists of kernels made here; neighbours in a kind are in different halves."""
    for kind, lists in _bodies().items():
        for number, (bodies, arrays) in enumerate(lists):
            submit = partial(_submit_bodies, bodies, arrays)
            yield _List(f"{kind} {number}", kind, HALVES[number % 2], submit)


def _bodies() -> dict[str, list[tuple[list[str], int]]]:
    """By kind, lists as what their kernels do, and how many arrays they have."""
    condition = "if a[i] > 3:\n        b[i] = b[i] + math.exp(a[i])"
    return {
        "chains": [(["b[i] = a[i] * 1.5 + 2"] * n, 2) for n in (1, 4, 16, 64, 150, 256, 500)],
        "conditions": [([condition] * n, 2) for n in (1, 4, 16, 64, 150, 250)],
        "barriers": [
            (["b[i] = a[i // 16 * 16 + 15 - i % 16] + 1"] * n, 2) for n in (4, 16, 64, 150)
        ],
        "many arrays": [(["b[i] = a[i] * 2"] * n, n) for n in (10, 20, 40, 80, 150, 300)],
        "long sums": [
            ([f"b[i] = {' + '.join(f'a[i] * {k}' for k in range(n))}"], 2)
            for n in (10, 30, 100, 200, 300)
        ],
        "divisions": [(_divisions(random.Random(seed), 2 * seed + 2), 4) for seed in range(8)],
    }


def _divisions(drawn: random.Random, kernels: int) -> list[str]:
    """What kernels do that read elements at quotients and remainders."""
    found = []
    for _ in range(kernels):
        divisor = drawn.choice((2, 3, 5, 7, 8))
        reads = (
            f"a[(i + {divisor}) % {N}]", f"a[i // {divisor}]", f"a[i // {divisor} + i % {divisor}]",
            f"a[{N - 1} - i]",
        )  # fmt: skip
        value = " + ".join(drawn.sample(reads, drawn.choice((1, 2, 3))))
        guard = drawn.choice(("", f"if i % {divisor} > 0:\n        "))
        found.append(f"{guard}b[i] = {value}")
    return found


def _submit_bodies(bodies: Sequence[str], arrays: int, queue: fq.FusionQueue) -> None:
    kernels = {body: _kernel(body) for body in bodies}
    buffers = [fq.Buffer(N, np.float32) for _ in range(arrays)]
    for k, body in enumerate(bodies):
        queue.submit(kernels[body], N, buffers[k % arrays], buffers[(k + 1) % arrays])


@cache
def _kernel(body: str) -> KernelFunction:
    """A kernel that does that for element ``i`` of its arrays ``a`` and ``b``."""
    text = f"def kernel(item, a, b):\n    i = item.get_id(0)\n    {body}\n"
    file = f"<build sample {next(_numbers)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    namespace: dict[str, Any] = {"math": math}
    exec(compile(text, file, "exec"), namespace)
    kernel: KernelFunction = fq.kernel(namespace["kernel"])
    return kernel


_numbers = count()
