"""Plans serve no other sizes, scalars and layouts than they hold for: the same kernels on one
queue, again and again with others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.analysis import isl_operations
from fusionq.base.options import Barriers, Promote, Strategy, checked_options
from fusionq.frontend.kernel import KernelFunction
from fusionq.ir.types import INT64
from fusionq.language.ranges import NdRange, Range
from tests.property.kernel_parameters import Axis, ItemArray, RandomKernel
from tests.property.list_runs import fused, unfused
from tests.property.programs import BufferSpec, Program, SubmissionSpec, View
from tests.property.running import examples
from tests.property.strategy_checks import GENERATORS
from tests.property.variations import fits, varied

STRATEGIES: tuple[Strategy, ...] = (
    "auto", "fused", "overlap", "sequence", "megakernel", "megakernel",
)  # fmt: skip
BARRIERS: tuple[Barriers, ...] = ("auto", "auto", "all", "none")
PROMOTE: tuple[Promote, ...] = ("flagged", "internal", "none")


@examples(60)
@given(
    st.one_of(*map(varied, GENERATORS.values())),
    st.sampled_from(STRATEGIES),
    st.sampled_from(BARRIERS),
    st.sampled_from(PROMOTE),
    st.sampled_from((1, isl_operations.OPERATIONS_FOR_OTHERS)),
)
def test_each_variation_agrees_with_its_unfused_run(
    variations: tuple[Program, ...],
    strategy: Strategy,
    barriers: Barriers,
    promote: Promote,
    operations_for_others: int,
) -> None:
    """Also where it is too hard to say of all proofs for which scalars they hold."""
    options = checked_options(strategy=strategy, barriers=barriers, promote=promote)
    known: dict[int, KernelFunction] = {}
    with pytest.MonkeyPatch.context() as patch, fq.FusionQueue("reference") as queue:
        patch.setattr(isl_operations, "OPERATIONS_FOR_OTHERS", operations_for_others)
        for program in (*variations, variations[0]):
            _, f = fused(queue, program, unfused(program, "reference"), options, known)
            event(f"{f.report.strategy}, plan: {f.report.cache}")


@pytest.mark.parametrize(
    ("range_", "inside"),
    [(Range(22), True), (Range(24), False), (NdRange(Range(44), Range(22)), False)],
)
def test_kernels_without_guards_fit_where_they_write_inside(
    range_: Range | NdRange, inside: bool
) -> None:
    written = ItemArray("out", INT64, (Axis(0, 1, 1),), True)
    for guarded in (False, True):
        kernel = RandomKernel("", 1, (written,), guarded=guarded)
        submission = SubmissionSpec(kernel, range_, (View(0, (slice(None),)),))
        assert fits(submission, [BufferSpec(np.zeros(24, np.int64))]) is (inside or guarded)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
