"""Binding: the launches of a plan with their arguments, allocated and prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from fusionq.analysis.submission import (
    ArrayArgument,
    ArrayPlace,
    Operands,
    ScalarArgument,
    ScalarValue,
)
from fusionq.backends.base import ArrayBinding, Backend, Binding, PreparedLaunch
from fusionq.base.errors import DeviceError
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.recursion import room_for_recursion
from fusionq.base.target import FloatMode
from fusionq.execution.split_launch import SplitLaunch, is_split, split_launch
from fusionq.memory.storage import Storage
from fusionq.planning.plan import (
    ArgumentSource,
    ExtentSource,
    ParamSource,
    Plan,
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

    arguments = ListArguments(backend, run, pending)
    run.bound_values = list(pending.values)
    run.setters = [[] for _ in pending.values]
    plan = run.built.plan
    parameters = parameters_of(plan, pending)
    launches: list[PreparedLaunch | None] = []
    stages = zip(plan.stages, run.built.programs, parameters, strict=True)
    for k, (stage, program, of_stage) in enumerate(stages):
        launch: PreparedLaunch
        scheduling: frozenset[str] = frozenset()
        bindings: list[Binding] = []
        if stage.inner:
            bindings = [0 if p is None else p.value(arguments) for p in of_stage.parameters]
            launch = _persistent(backend, program, stage, bindings, partial(run.extra_tiles, k))
            scheduling = launch.scheduling
            run.is_persistent = True
        else:
            shape = launch_shape_of(stage, arguments.operands, backend.target)
            if shape is None:
                launches.append(None)
                continue
            bindings = of_stage.bindings(arguments)
            bindings += run.extra_bindings(k, shape)
            if is_split(backend, shape):
                span = pending.entries[stage.geometry].deferred.like.span
                launch = split_launch(
                    backend, stage.kernel, bindings, shape, fp, run.timings, span
                )
            else:
                launch = backend.prepare(program, bindings, shape)
        launches.append(launch)
        for name, position in of_stage.scalars.items():
            run.setters[position].append((launch, name))
            if name in scheduling:
                run.scheduling.add(position)
    split = any([isinstance(launch, SplitLaunch) for launch in launches])
    run.has_launches(backend, launches)
    if split:
        run.as_one = None
    run.used = selection(tuple(arguments.used.values()), len(pending.memory))
    run.is_in(pending.memory)
    if type(run) is PreparedRun and not split:  # others have arguments of their own
        run.pointers = [of_stage.arrays for of_stage in parameters]


class StageParameters(NamedTuple):
    """What the parameters of a launch are bound to, in lists of one structure."""

    parameters: tuple[_Parameter | None, ...]
    """One for each; None for those of a persistent kernel's queue."""
    arrays: dict[str, int]
    """Those that are arrays: which of the list's array arguments they are."""
    scalars: dict[str, int]
    """The same of scalars."""

    def bindings(self, arguments: Arguments) -> list[Binding]:
        """Their values; DeviceError where memory cannot be allocated or reached."""
        return [p.value(arguments) for p in self.parameters if p is not None]


@cached_by_identity
def parameters_of(plan: Plan, pending: SubmissionList) -> tuple[StageParameters, ...]:
    """Of each stage of a plan, which serves lists like ``pending``."""
    entries = [entry.deferred for entry in pending.entries]
    forms = [entry.operands.form for entry in entries]
    arrays = list(accumulate([len(form.dtypes) for form in forms], initial=0))
    scalars = list(accumulate([entry.scalars for entry in pending.entries], initial=0))

    def parameter(source: ParamSource) -> _Parameter | None:
        if isinstance(source, QueueSource):
            return None
        if isinstance(source, RangeSource):
            return _Extent(source.submission, None, source.dim)
        if isinstance(source, ExtentSource):
            return _Extent(source.submission, source.argument, source.dim)
        s, form = source.submission, forms[source.submission]
        position = form.positions[source.argument]
        if isinstance(entries[s].like.arguments[source.argument], ScalarArgument):
            return _Scalar(scalars[s] + position)
        return _Array(arrays[s] + position, form.units[position], source)

    found = []
    for stage in plan.stages:
        named = list(zip(stage.kernel.params, map(parameter, stage.sources), strict=False))
        found.append(
            StageParameters(
                tuple(map(parameter, stage.sources)),
                {param.name: p.place for param, p in named if isinstance(p, _Array)},
                {param.name: p.place for param, p in named if isinstance(p, _Scalar)},
            )
        )
    return tuple(found)


class _Array(NamedTuple):
    """An array argument of the list; ``unit``: the bytes in which kernels count its strides."""

    place: int
    unit: int
    source: ArgumentSource

    def value(self, arguments: Arguments) -> ArrayBinding:
        """The parameter's value; DeviceError where memory cannot be allocated or reached."""
        place, unit, source = self
        shape, strides, *_ = arguments.places[place]
        address = arguments.address_of(place, source)
        return ArrayBinding(address, shape, _in_units(strides, unit))


@lru_cache(1024)
def _in_units(strides: tuple[int, ...], unit: int) -> tuple[int, ...]:
    return tuple([stride // unit for stride in strides])


class _Scalar(NamedTuple):
    """A scalar argument of the list."""

    place: int

    def value(self, arguments: Arguments) -> ScalarValue:
        """The parameter's value."""
        return arguments.values[self.place]


class _Extent(NamedTuple):
    """An extent of a submission's range (``argument`` None) or of an array argument."""

    submission: int
    argument: int | None
    dim: int

    def value(self, arguments: Arguments) -> int:
        """The parameter's value."""
        return arguments.operands[self.submission].number(self.argument, self.dim)


_Parameter = _Array | _Scalar | _Extent


class Arguments:
    """What the parameters of kernels are bound to: the arguments of a list, whose arrays are at
    ``places`` and at ``addresses``."""

    __slots__ = ("addresses", "operands", "places", "values")

    def __init__(
        self,
        operands: Sequence[Operands],
        places: Sequence[ArrayPlace],
        values: Sequence[ScalarValue],
        addresses: Sequence[int | None],
    ) -> None:
        self.operands, self.places, self.values = operands, places, values
        self.addresses = addresses

    def address_of(self, place: int, source: ArgumentSource) -> int:
        """Where an array argument's memory is."""
        address = self.addresses[place]
        assert address is not None
        return address


class ListArguments(Arguments):
    """The same of a list whose memory may have to be allocated."""

    __slots__ = ("_backend", "_entries", "_memory", "_run", "used")

    def __init__(self, backend: Backend, run: PreparedRun, pending: SubmissionList) -> None:
        self._backend, self._run, self._memory = backend, run, pending.memory
        self._entries, operands = pending.entries, pending.operands()
        places = [place for of_one in operands for place in of_one.places]
        super().__init__(operands, places, pending.values, ())
        self.used: dict[int, int] = {}
        """The storages that parameters are bound to, by token, each with the position of an
        argument that is in it."""

    def address_of(self, place: int, source: ArgumentSource) -> int:
        """Where an array argument's memory is."""
        held = self._memory[place]
        if isinstance(held, Storage):
            self.used.setdefault(held.token, place)
        try:
            return self._run.address_of(self._backend, self.places[place], held)
        except DeviceError as error:
            like = self._entries[source.submission].deferred.like
            argument = like.arguments[source.argument]
            assert isinstance(argument, ArrayArgument)
            raise DeviceError(
                f"{like.span}: argument {argument.parameter_text!r} ({argument.text}) of kernel "
                f"{like.name!r}: {error}"
            ) from error


@room_for_recursion("a kernel of the list")
def _persistent(
    backend: Backend,
    program: Program,
    stage: StagePlan,
    bindings: Sequence[Binding],
    extra: Callable[[Schedule], Sequence[Binding]],
) -> PersistentLaunch:
    from fusionq.execution.fitting_workers import chosen_workers
    from fusionq.megakernel.launch import PersistentLaunch

    choose = chosen_workers(backend)
    return PersistentLaunch(
        backend, program, stage.kernel, stage.sources, bindings, choose=choose, extra=extra
    )
