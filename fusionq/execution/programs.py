"""The programs of a plan's stages: from the caches of memory or disk, or built, several at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter

from fusionq.backends.base import Backend, KeptProgram, Program
from fusionq.base.options import FusionOptions
from fusionq.base.phases import add_seconds, timed
from fusionq.base.recursion import room_for_recursion
from fusionq.base.target import FloatMode
from fusionq.cache.entries import keep_program, kept_program
from fusionq.cache.plan_cache import PLANS
from fusionq.ir.nodes import Kernel
from fusionq.planning.plan import Plan


def programs_of(
    backend: Backend, plan: Plan, options: FusionOptions, timings: dict[str, float]
) -> tuple[Program, ...]:
    """The program of each stage of ``plan``; adds the seconds by phase to ``timings``."""
    kernels = [stage.kernel for stage in plan.stages]
    build_together(backend, kernels, options.fp, timings)
    return tuple([program_of(backend, kernel, options.fp, timings) for kernel in kernels])


@room_for_recursion("a kernel of the list")
def build_together(
    backend: Backend, kernels: Sequence[Kernel], fp: FloatMode, timings: dict[str, float]
) -> None:
    """Give the cache of memory the programs of ``kernels``, built at once as far as no cache has
    them; where they are alone or one cannot be built, none."""
    unknown = [k for k in dict.fromkeys(kernels) if not _is_in_memory(backend, k, fp)]
    if len(unknown) < 2:
        return
    with timed(timings, "disk"):
        kept = {kernel: _kept(backend, kernel, fp) for kernel in unknown}
    made = {k: _made(backend, k, fp, found, timings) for k, found in kept.items() if found}
    missing = [kernel for kernel, found in kept.items() if found is None]
    started = perf_counter()
    built = dict(zip(missing, backend.build_together(missing, fp), strict=True))
    seconds = sum(program.build_seconds for program in built.values())
    add_seconds(timings, "build", seconds)
    add_seconds(timings, "codegen", max(perf_counter() - started - seconds, 0.0))
    if backend.abilities.keeps_programs:
        with timed(timings, "disk"):
            for kernel, program in built.items():
                keep_program(backend, kernel, fp, partial(backend.keep, program))
    for kernel, program in (made | built).items():
        PLANS.add_program((backend.program_domain, kernel, fp), program)


def _is_in_memory(backend: Backend, kernel: Kernel, fp: FloatMode) -> bool:
    return PLANS.program((backend.program_domain, kernel, fp)) is not None


def _kept(backend: Backend, kernel: Kernel, fp: FloatMode) -> KeptProgram | None:
    """What the disk cache has of ``kernel``."""
    return kept_program(backend, kernel, fp) if backend.abilities.keeps_programs else None


def programs_before(
    backend: Backend, plan: Plan, options: FusionOptions, timings: dict[str, float]
) -> tuple[Program, ...] | None:
    """As ``programs_of``; None, and nothing is restored, where one would have to be built."""
    kept: dict[Kernel, KeptProgram] = {}
    with timed(timings, "disk"):
        for kernel in dict.fromkeys([stage.kernel for stage in plan.stages]):
            if not _is_in_memory(backend, kernel, options.fp):
                found = _kept(backend, kernel, options.fp)
                if found is None:
                    return None
                kept[kernel] = found
    for kernel, found in kept.items():
        program = _made(backend, kernel, options.fp, found, timings)
        PLANS.add_program((backend.program_domain, kernel, options.fp), program)
    return programs_of(backend, plan, options, timings)


def is_built(backend: Backend, kernel: Kernel, fp: FloatMode) -> bool:
    """Whether a cache has the program of ``kernel``."""
    return _is_in_memory(backend, kernel, fp) or _kept(backend, kernel, fp) is not None


@room_for_recursion("the kernel")
def program_of(
    backend: Backend, kernel: Kernel, fp: FloatMode, timings: dict[str, float]
) -> Program:
    """The program of ``kernel``, built only if no cache has it."""
    key = (backend.program_domain, kernel, fp)
    program = PLANS.program(key)
    if program is None:
        program = _program(backend, kernel, fp, timings)
        PLANS.add_program(key, program)
    return program


def _program(backend: Backend, kernel: Kernel, fp: FloatMode, timings: dict[str, float]) -> Program:
    """The program of ``kernel``, from disk or built now."""
    with timed(timings, "disk"):
        kept = _kept(backend, kernel, fp)
    program = _made(backend, kernel, fp, kept, timings)
    if backend.abilities.keeps_programs and kept is None:
        with timed(timings, "disk"):
            keep_program(backend, kernel, fp, lambda: backend.keep(program))
    return program


def _made(
    backend: Backend,
    kernel: Kernel,
    fp: FloatMode,
    kept: KeptProgram | None,
    timings: dict[str, float],
) -> Program:
    """The program of ``kernel``, restored from what is ``kept`` of it, or built."""
    started = perf_counter()
    program = backend.build(kernel, fp) if kept is None else backend.restore(kernel, fp, kept)
    add_seconds(timings, "build", program.build_seconds)
    add_seconds(timings, "codegen", max(perf_counter() - started - program.build_seconds, 0.0))
    return program
