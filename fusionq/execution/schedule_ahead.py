"""The schedules of a plan's persistent kernels before there is a launch: where nobody waits."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.backends.base import ArrayBinding, Backend, Binding
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution.fitting_workers import chosen_workers
from fusionq.megakernel.launch import schedule_for, target_of
from fusionq.planning.plan import ArgumentSource, ExtentSource, ParamSource, RangeSource


def make_schedules(backend: Backend, built: BuiltPlan, submissions: Sequence[Submission]) -> None:
    """Make those for ``submissions``, and what has to be known of the kernels for that; the first
    launch finds them."""
    for stage, program in zip(built.plan.stages, built.programs, strict=True):
        if stage.inner:
            bindings = {
                param.name: binding
                for param, source in zip(stage.kernel.params, stage.sources, strict=False)
                if (binding := _binding(source, submissions)) is not None
            }
            target = target_of(backend, program)
            schedule_for(stage.kernel, bindings, target, None, chosen_workers(backend))


def _binding(source: ParamSource, submissions: Sequence[Submission]) -> Binding | None:
    """What a parameter is bound to, but for where arrays are; None for what is no argument."""
    match source:
        case ArgumentSource(s, k):
            argument = submissions[s].arguments[k]
            if isinstance(argument, ArrayArgument):
                return ArrayBinding(0, argument.shape, ())
            return argument.value if isinstance(argument, ScalarArgument) else None
        case ExtentSource(s, k, dim):
            return submissions[s].number(k, dim)
        case RangeSource(s, dim):
            return submissions[s].number(None, dim)
    return None
