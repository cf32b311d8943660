"""Random lists of submissions with work-groups: fused, unfused and the Python functions agree
bit for bit, in whichever order work-groups and work-items run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference.order import Order
from fusionq.base.options import Barriers, Promote
from tests.property.commands import with_commands
from tests.property.group_programs import group_programs
from tests.property.kernel_expressions import Features
from tests.property.list_runs import check_fused, unfused
from tests.property.programs import Program
from tests.property.running import assert_identical, examples, needs_device

EXACT = Features(statements=3, transcendental=False)
PROMOTE: st.SearchStrategy[Promote] = st.sampled_from(["flagged", "internal", "internal", "none"])
BARRIERS: st.SearchStrategy[Barriers] = st.sampled_from(["auto", "auto", "auto", "all", "none"])
ORDERS: st.SearchStrategy[Order] = st.sampled_from(["shuffled", "reversed"])


@examples(52)
@given(with_commands(group_programs(EXACT)), PROMOTE, BARRIERS, ORDERS)
def test_the_reference_device_agrees_with_python(
    program: Program, promote: Promote, barriers: Barriers, order: Order
) -> None:
    expected = program.run_python()
    assert_identical(program.run_python(order, seed=1), expected)
    assert_identical(unfused(program, "reference"), expected)
    check_fused(program, "reference", expected, promote=promote, barriers=barriers)


@needs_device
@examples(20)
@given(with_commands(group_programs(EXACT)), PROMOTE, BARRIERS)
def test_the_sycl_device_agrees_with_python(
    program: Program, promote: Promote, barriers: Barriers
) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, None), expected)
    check_fused(program, None, expected, promote=promote, barriers=barriers)


@needs_device
@examples(8)
@given(with_commands(group_programs(EXACT, plain=True)), PROMOTE)
def test_chosen_work_groups_agree_with_python(program: Program, promote: Promote) -> None:
    """Plain ranges whose work-items exchange elements inside blocks of neighbours."""
    expected = program.run_python()
    check_fused(program, "reference", expected, promote=promote)
    check_fused(program, None, expected, promote=promote)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
