"""Binding: the launches of a plan with their arguments, allocated and prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fusionq.analysis.submission import (
    ArrayArgument,
    DeclaredArgument,
    ScalarArgument,
    Submission,
)
from fusionq.backends.base import ArrayBinding, Backend, Binding, PreparedLaunch
from fusionq.base.errors import DeviceError
from fusionq.memory.storage import Storage
from fusionq.planning.plan import (
    ArgumentSource,
    ExtentSource,
    ParamSource,
    QueueSource,
    RangeSource,
    StagePlan,
)
from fusionq.submission.pending import SubmissionList
from fusionq.submission.run import PreparedRun, selection

if TYPE_CHECKING:
    from fusionq.backends.base import Program
    from fusionq.megakernel.launch import PersistentLaunch
    from fusionq.megakernel.schedule import Schedule


def bind(backend: Backend, run: PreparedRun, pending: SubmissionList) -> None:
    """Allocate what the launches need, and prepare them."""
    from fusionq.planning.launching import launch_shape_of

    submissions = run.submissions
    arrays, scalars = _positions(submissions)
    run.bound_values = list(pending.values)
    run.setters = [[] for _ in pending.values]
    used: dict[object, int] = {}

    def array_binding(
        submission: Submission, argument: ArrayArgument, held: object
    ) -> ArrayBinding:
        try:
            address = run.address_of(backend, argument, held)
        except DeviceError as error:
            raise DeviceError(
                f"{submission.span}: argument {argument.name!r} ({argument.label}) of kernel "
                f"{submission.name!r}: {error}"
            ) from error
        itemsize = argument.dtype.nbytes
        return ArrayBinding(
            address, argument.shape, tuple(stride // itemsize for stride in argument.strides)
        )

    def binding(source: ParamSource) -> Binding:
        if isinstance(source, RangeSource):
            return _global_range(submissions[source.submission])[source.dim]
        assert not isinstance(source, QueueSource)
        argument = submissions[source.submission].arguments[source.argument]
        if isinstance(source, ExtentSource):
            assert isinstance(argument, ArrayArgument)
            return argument.shape[source.dim]
        if isinstance(argument, ScalarArgument):
            return argument.value
        assert isinstance(argument, ArrayArgument)
        position = arrays[source.submission, source.argument]
        held = pending.memory[position]
        if isinstance(held, Storage):
            used.setdefault(held.token, position)
        return array_binding(submissions[source.submission], argument, held)

    plan = run.built.plan
    launches: list[PreparedLaunch | None] = []
    for k, (stage, program) in enumerate(zip(plan.stages, run.built.programs, strict=True)):
        launch: PreparedLaunch
        scheduling: frozenset[str] = frozenset()
        if stage.inner:
            launch = _persistent(backend, program, stage, binding, partial(run.extra_tiles, k))
            scheduling = launch.scheduling
            run.checks.append(launch.check)
        else:
            shape = launch_shape_of(stage, submissions, backend.target)
            if shape is None:
                launches.append(None)
                continue
            bindings = [*map(binding, stage.sources), *run.extra_bindings(k, shape)]
            launch = backend.prepare(program, bindings, shape)
        launches.append(launch)
        for position, name in _scalar_params(stage, scalars):
            run.setters[position].append((launch, name))
            if name in scheduling:
                run.scheduling.add(position)
    run.has_launches(backend, launches)
    run.used = selection(tuple(used.values()), len(pending.memory))
    run.is_in(pending.memory)
    if type(run) is PreparedRun and not run.checks:  # others have arguments of their own
        run.pointers = [_pointers(stage, arrays) for stage in plan.stages]


def _persistent(
    backend: Backend,
    program: Program,
    stage: StagePlan,
    binding: Callable[[ParamSource], Binding],
    extra: Callable[[Schedule], Sequence[Binding]],
) -> PersistentLaunch:
    from fusionq.megakernel.launch import PersistentLaunch

    bindings = [0 if isinstance(s, QueueSource) else binding(s) for s in stage.sources]
    return PersistentLaunch(
        backend, program, stage.kernel, stage.sources, bindings, extra=extra
    )


def _scalar_params(stage: StagePlan, scalars: dict[tuple[int, int], int]) -> list[tuple[int, str]]:
    """Each parameter of the stage's kernel that has a scalar argument's value: the argument's
    place among the list's scalars, the parameter's name."""
    return [
        (scalars[source.submission, source.argument], param.name)
        for param, source in zip(stage.kernel.params, stage.sources, strict=False)
        if isinstance(source, ArgumentSource) and (source.submission, source.argument) in scalars
    ]


def _pointers(stage: StagePlan, arrays: dict[tuple[int, int], int]) -> dict[str, int]:
    """Each parameter of the stage's kernel that is an array: its place among the list's arrays."""
    return {
        param.name: arrays[source.submission, source.argument]
        for param, source in zip(stage.kernel.params, stage.sources, strict=True)
        if isinstance(source, ArgumentSource) and (source.submission, source.argument) in arrays
    }


def _positions(
    submissions: Sequence[Submission],
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
    """Where (submission, argument) lies among the list's array arguments and its scalars."""
    arrays: dict[tuple[int, int], int] = {}
    scalars: dict[tuple[int, int], int] = {}
    for s, submission in enumerate(submissions):
        for a, argument in enumerate(submission.arguments):
            if not isinstance(argument, DeclaredArgument):
                places = arrays if isinstance(argument, ArrayArgument) else scalars
                places[s, a] = len(places)
    return arrays, scalars


def _global_range(submission: Submission) -> tuple[int, ...]:
    space = submission.range
    return space if isinstance(space, tuple) else space.global_range
