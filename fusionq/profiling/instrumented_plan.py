"""From a plan to one whose kernels record: instrumentation passes, then lowering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fusionq.analysis.submission import Submission
from fusionq.base.errors import ArgumentError
from fusionq.base.target import Target
from fusionq.codegen.along_rows import along_rows
from fusionq.codegen.padded_rows import with_padding_if_legal
from fusionq.ir.nodes import Clock, Kernel
from fusionq.ir.verifier import verify
from fusionq.ir.walk import persistent_of
from fusionq.planning.plan import Plan
from fusionq.profiling.calibration import Calibration
from fusionq.profiling.instructions import LoweredPersistent, lower_persistent
from fusionq.profiling.instrumentation import Instrumentation, Scope
from fusionq.profiling.lowering import Lowered, lower_records
from fusionq.profiling.regions import WORD_BYTES, Overflow
from fusionq.profiling.stages import RecordStages

_ONLY_TRUNCATED = (
    "profile(overflow={!r}): {} is a persistent kernel, each of whose tiles has a place of its own "
    "for its records, so that there is nothing to overwrite or to add up. Leave overflow at "
    '"truncate" (buffer_bytes says how many tiles have a place), or fuse with strategy="sequence"'
)


@dataclass(frozen=True)
class RecordOptions:
    """How kernels are instrumented; see ``profile``."""

    passes: tuple[Instrumentation, ...]
    overflow: Overflow
    occurrences: int
    every: int | None
    """None: as many as are worth it."""
    buffer_bytes: int
    clock: Calibration | None
    """The device's, if it has one."""

    @property
    def clock_function(self) -> Clock | None:
        """The device function that says the time."""
        return None if self.clock is None else self.clock.function


def instrumented(
    plan: Plan,
    submissions: tuple[Submission, ...],
    target: Target,
    options: RecordOptions,
    every: Sequence[int],
) -> tuple[Plan, tuple[Lowered | LoweredPersistent, ...]]:
    """``plan`` with kernels that record, and each launch's records; of launch k one work-group in
    ``every[k]`` records."""
    lowered: list[Lowered | LoweredPersistent] = []
    stages = [replace(stage, kernel=along_rows(stage.numbered_kernel)) for stage in plan.stages]
    for stage, one_in in zip(stages, every, strict=True):
        scope = Scope(plan, stage, submissions, target.device)
        body = persistent_of(stage.kernel)
        if body is not None:
            if options.overflow != "truncate":
                raise ArgumentError(_ONLY_TRUNCATED.format(options.overflow, stage.kernel.name))
            codes = tuple(
                replace(c, kernel=_with_passes(c.kernel, scope, options)) for c in body.codes
            )
            lowered.append(
                lower_persistent(
                    stage.kernel,
                    replace(body, codes=codes),
                    instructions=any(isinstance(p, RecordStages) for p in options.passes),
                    occurrences=options.occurrences,
                    clock=options.clock_function,
                    target=target,
                )
            )
            continue
        lowered.append(
            lower_records(
                _with_passes(stage.kernel, scope, options),
                scope.headings(),
                overflow=options.overflow,
                occurrences=options.occurrences,
                buffer_words=options.buffer_bytes // WORD_BYTES,
                target=target,
                every=one_in,
                clock=options.clock_function,
            )
        )
    recording = tuple(
        replace(stage, kernel=with_padding_if_legal(low.kernel))
        for stage, low in zip(stages, lowered, strict=True)
    )
    return replace(plan, stages=recording), tuple(lowered)


def _with_passes(kernel: Kernel, scope: Scope, options: RecordOptions) -> Kernel:
    for instrumentation in options.passes:
        kernel = instrumentation.instrument(kernel, scope)
        verify(kernel)
    return kernel
