"""Whether plans that were read from somewhere fit the submissions that they are said to be for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import (
    ArrayArgument,
    DeclaredArgument,
    ScalarArgument,
    Submission,
)
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Validity
from fusionq.cache.condition import is_condition
from fusionq.cache.serialise import MalformedData
from fusionq.ir.nodes import ArrayParam
from fusionq.ir.verifier import verify
from fusionq.passes.sources import (
    ArgumentSource,
    ExtentSource,
    QueueSource,
    RangeSource,
)
from fusionq.planning.plan import Plan, StagePlan

T = TypeVar("T")


def check_plan(plan: Plan, submissions: Sequence[Submission]) -> None:
    """Raise MalformedData or VerificationError if ``plan`` is no plan for such ``submissions``."""
    count = len(submissions)
    members = [s for stage in plan.stages for s in stage.submissions]
    if sorted(members) != list(range(count)):
        raise MalformedData("the stages do not hold each submission once")
    for kernel in {id(stage.kernel): stage.kernel for stage in plan.stages}.values():
        verify(kernel)
    for stage in plan.stages:
        inner = [s for part in stage.inner for s in part]
        if inner and sorted(inner) != sorted(stage.submissions):
            raise MalformedData("a persistent kernel's stages are not those of its submissions")
        _check_sources(stage, submissions)
    for dependence in plan.dependences:
        _argument(submissions, dependence.consumer, dependence.argument)
        _at(range(count), dependence.producer)
    for promotion in plan.promotions:
        _argument(submissions, promotion.submission, promotion.argument)
    check_validity(plan.validity, submissions)


def _check_sources(stage: StagePlan, submissions: Sequence[Submission]) -> None:
    _at(submissions, stage.geometry)
    for part in stage.beside:
        _at(submissions, part.geometry)
    beside = [s for part in stage.beside for s in part.submissions]
    if beside and beside != list(stage.submissions):
        raise MalformedData("the stages side by side are not those of the launch's submissions")
    if stage.order and sorted(stage.order) != list(range(stage.kernel.ndim)):
        raise MalformedData("a launch's dimensions are not those of its range")
    if stage.orders and len(stage.orders) != len(stage.present):
        raise MalformedData("a launch has not one order of dimensions for each submission")
    for s, order in zip(stage.present, stage.orders, strict=False):
        if order and sorted(order) != list(range(len(global_range(submissions[s])))):
            raise MalformedData("a submission's dimensions are not those of its range")
    for extent in stage.extents:
        _source_type(extent, submissions)
    for param, source in zip(stage.kernel.params, stage.sources, strict=True):
        if isinstance(source, QueueSource):
            continue  # a part of the queue: no submission has it
        value = _source_type(source, submissions)
        if isinstance(param, ArrayParam):
            right = (
                isinstance(value, ArrayArgument)
                and value.dtype == param.dtype
                and len(value.shape) == param.ndim
            )
        else:
            right = not isinstance(value, (ArrayArgument, DeclaredArgument))
        if not right:
            raise MalformedData(f"parameter {param.name} does not take argument {source}")


def _source_type(
    source: ArgumentSource | RangeSource | ExtentSource, submissions: Sequence[Submission]
) -> ArrayArgument | ScalarArgument | DeclaredArgument | None:
    """The argument that a parameter takes; None for an extent."""
    if isinstance(source, RangeSource):
        _at(range(_at(submissions, source.submission).signature.ndim), source.dim)
        return None
    argument = _argument(submissions, source.submission, source.argument)
    if isinstance(source, ArgumentSource):
        return argument
    _extent(argument, source.dim)
    return None


def check_validity(validity: Validity, submissions: Sequence[Submission]) -> None:
    """Raise MalformedData if ``validity`` cannot be asked about such ``submissions``."""
    sources: list[Source] = [source for source, _ in validity.constants]
    names = set()
    for name, places in validity.sources:
        names.add(name)
        _at(places, 0)
        sources.extend(places)
    for source in sources:
        if source.argument is None:
            _at(range(_at(submissions, source.submission).signature.ndim), source.dim)
            continue
        argument = _argument(submissions, source.submission, source.argument)
        if source.dim is not None:
            _extent(argument, source.dim)
        elif not isinstance(argument, ScalarArgument):
            raise MalformedData("the value of an array")
    if any(name not in names for name, _ in (*validity.pinned, *validity.limits)):
        raise MalformedData("a symbol without a source")
    for condition in validity.conditions:
        if not is_condition(condition.text, condition.names):
            raise MalformedData(f"no condition: {condition.text!r:.80}")
        if any(len(use) != len(condition.names) or not names.issuperset(use)
               for use in condition.uses):  # fmt: skip
            raise MalformedData("a condition about a symbol without a source")


def _argument(
    submissions: Sequence[Submission], submission: int, argument: int
) -> ArrayArgument | ScalarArgument | DeclaredArgument:
    return _at(_at(submissions, submission).arguments, argument)


def _extent(argument: object, dim: int) -> None:
    if not isinstance(argument, ArrayArgument):
        raise MalformedData("an extent of what is no array")
    _at(argument.shape, dim)


def _at(items: Sequence[T], index: Any) -> T:
    if type(index) is not int or not 0 <= index < len(items):
        raise MalformedData(f"{index} is no index below {len(items)}")
    return items[index]
