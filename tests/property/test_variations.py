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
from fusionq.base.options import Barriers, Promote, Strategy, checked_options
from fusionq.frontend.kernel import KernelFunction
from tests.property.list_runs import fused, unfused
from tests.property.programs import Program
from tests.property.running import examples
from tests.property.strategy_checks import GENERATORS
from tests.property.variations import varied

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
)
def test_each_variation_agrees_with_its_unfused_run(
    variations: tuple[Program, ...], strategy: Strategy, barriers: Barriers, promote: Promote
) -> None:
    options = checked_options(strategy=strategy, barriers=barriers, promote=promote)
    known: dict[int, KernelFunction] = {}
    with fq.FusionQueue("reference") as queue:
        for program in (*variations, variations[0]):
            _, f = fused(queue, program, unfused(program, "reference"), options, known)
            event(f"{f.report.strategy}, plan: {f.report.cache}")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
