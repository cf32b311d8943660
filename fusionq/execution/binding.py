"""Binding: the launches of a plan with their arguments, allocated and prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from fusionq.analysis.submission import ArrayArgument, ScalarArgument
from fusionq.backends.base import ArrayBinding, Backend, Binding, PreparedLaunch
from fusionq.base.errors import DeviceError
from fusionq.base.recursion import room_for_recursion
from fusionq.base.target import FloatMode
from fusionq.execution.split_launch import SplitLaunch, is_split, split_launch
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


def bind(
    backend: Backend, run: PreparedRun, pending: SubmissionList, fp: FloatMode
) -> None:
    """Allocate what the launches need, and prepare them; ``fp``: that of the programs."""
    from fusionq.planning.launching import launch_shape_of

    arguments = _ListArguments(backend, run, pending)
    run.bound_values = list(pending.values)
    run.setters = [[] for _ in pending.values]
    plan = run.built.plan
    launches: list[PreparedLaunch | None] = []
    for k, (stage, program) in enumerate(zip(plan.stages, run.built.programs, strict=True)):
        launch: PreparedLaunch
        scheduling: frozenset[str] = frozenset()
        if stage.inner:
            extra = partial(run.extra_tiles, k)
            launch = _persistent(backend, program, stage, arguments.binding, extra)
            scheduling = launch.scheduling
            run.checks.append(launch.check)
        else:
            shape = launch_shape_of(stage, arguments.operands, backend.target)
            if shape is None:
                launches.append(None)
                continue
            bindings = [*map(arguments.binding, stage.sources), *run.extra_bindings(k, shape)]
            if is_split(backend, shape):
                span = pending.entries[stage.geometry].deferred.like.span
                launch = split_launch(
                    backend, stage.kernel, bindings, shape, fp, run.timings, span
                )
            else:
                launch = backend.prepare(program, bindings, shape)
        launches.append(launch)
        for name, position in arguments.parameters(stage, ScalarArgument).items():
            run.setters[position].append((launch, name))
            if name in scheduling:
                run.scheduling.add(position)
    split = any(isinstance(launch, SplitLaunch) for launch in launches)
    run.has_launches(backend, launches)
    if split:
        run.as_one = None
    run.used = selection(tuple(arguments.used.values()), len(pending.memory))
    run.is_in(pending.memory)
    if type(run) is PreparedRun and not run.checks and not split:
        # Others have arguments of their own.
        run.pointers = [arguments.parameters(stage, ArrayArgument) for stage in plan.stages]


class _ListArguments:
    """What the parameters of kernels are bound to: the arguments of a list."""

    def __init__(self, backend: Backend, run: PreparedRun, pending: SubmissionList) -> None:
        self._backend, self._run, self._memory = backend, run, pending.memory
        self._likes = [entry.deferred.like for entry in pending.entries]
        self.operands = pending.operands()
        self._arrays = list(accumulate([len(o.places) for o in self.operands], initial=0))
        """How many array arguments come before each submission."""
        self._scalars = list(accumulate([len(o.values) for o in self.operands], initial=0))
        self.used: dict[int, int] = {}
        """The storages that parameters are bound to, by token, each with the position of an
        argument that is in it."""

    def binding(self, source: ParamSource) -> Binding:
        """The value of a parameter; DeviceError where memory cannot be had or reached."""
        if isinstance(source, ArgumentSource):
            operands = self.operands[source.submission]
            position = operands.form.positions[source.argument]
            like = self._likes[source.submission].arguments[source.argument]
            if isinstance(like, ScalarArgument):
                return operands.values[position]
            return self._array(source, position)
        if isinstance(source, RangeSource):
            return self.operands[source.submission].number(None, source.dim)
        assert isinstance(source, ExtentSource)
        return self.operands[source.submission].number(source.argument, source.dim)

    def _array(self, source: ArgumentSource, position: int) -> ArrayBinding:
        operands = self.operands[source.submission]
        place, unit = operands.places[position], operands.form.units[position]
        in_list = self._arrays[source.submission] + position
        held = self._memory[in_list]
        if isinstance(held, Storage):
            self.used.setdefault(held.token, in_list)
        try:
            address = self._run.address_of(self._backend, place, held)
        except DeviceError as error:
            like = self._likes[source.submission]
            argument = like.arguments[source.argument]
            assert isinstance(argument, ArrayArgument)
            raise DeviceError(
                f"{like.span}: argument {argument.parameter_text!r} ({argument.text}) of kernel "
                f"{like.name!r}: {error}"
            ) from error
        shape, strides, *_ = place
        return ArrayBinding(address, shape, tuple([stride // unit for stride in strides]))

    def parameters(
        self, stage: StagePlan, kind: type[ArrayArgument] | type[ScalarArgument]
    ) -> dict[str, int]:
        """Each parameter of the stage's kernel that is an argument of that kind: its place among
        the list's."""
        before = self._arrays if kind is ArrayArgument else self._scalars
        found: dict[str, int] = {}
        if before[-1] == 0:
            return found
        for param, source in zip(stage.kernel.params, stage.sources, strict=False):
            if isinstance(source, ArgumentSource):
                like = self._likes[source.submission].arguments[source.argument]
                if isinstance(like, kind):
                    position = self.operands[source.submission].form.positions[source.argument]
                    found[param.name] = before[source.submission] + position
        return found


@room_for_recursion("a kernel of the list")
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
