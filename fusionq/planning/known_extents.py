"""Persistent kernels that stream operands, with the sizes of their first list as constants.

    for k in range(lane, x.shape[1], 128)    →    for k in range(lane, 2048, 128)

Their stages wait for each other's results with no other work to do meanwhile, so what a block needs
to begin one counts: loops over rows are unrolled whole, and there is less code to fetch.  The plan
serves these sizes only.  Where there is one of the same structure already, the next has sizes as
parameters (``PlanTask.is_another``): lists whose sizes change cost one more kernel, not one for
each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.base.target import Target
from fusionq.codegen.ring_shape import streams_to
from fusionq.ir.nodes import ArrayParam, KernelParam, ScalarParam
from fusionq.ir.walk import persistent_of
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource, RangeSource
from fusionq.planning.plan import StagePlan


class KnownExtents:
    """The launches of a list of ``submissions`` on ``target``; sizes that become constants are
    what they are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity

    def plan(self, stage: StagePlan) -> StagePlan:
        """``stage`` with its sizes as constants, where it is a persistent kernel that streams."""
        target = self._target
        if not target.device.streams_rows:
            return stage
        body = persistent_of(stage.kernel)
        if body is None or streams_to(body, target) is None:
            return stage
        params = tuple(
            self._known(param, source)
            for param, source in zip(stage.kernel.params, stage.sources, strict=True)
        )
        return replace(stage, kernel=replace(stage.kernel, params=params))

    def _known(self, param: KernelParam, source: ParamSource) -> KernelParam:
        match param, source:
            case ArrayParam(), ArgumentSource(s, k):
                argument = self._submissions[s].arguments[k]
                assert isinstance(argument, ArrayArgument)
                return replace(param, extents=tuple(map(self._demanded, argument.shape)))
            case ScalarParam(), RangeSource(s, dim):
                size = self._demanded(self._submissions[s].number(None, dim))
                return replace(param, bounds=(size, size))
            case ScalarParam(), ExtentSource(s, k, dim):
                size = self._demanded(self._submissions[s].number(k, dim))
                return replace(param, bounds=(size, size))
        return param

    def _demanded(self, size: int) -> int:
        self._validity.demand_between(size, size, size + 1)
        return size
