"""Random lists of submissions: fused, unfused and the Python functions agree bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.options import Barriers, Check, Promote
from tests.property.commands import with_commands
from tests.property.group_programs import group_programs
from tests.property.kernel_expressions import Features
from tests.property.list_runs import check_fused, held, made, submit, unfused
from tests.property.programs import Program, programs
from tests.property.running import assert_identical, examples, needs_host_memory

EXACT = Features(statements=3, transcendental=False)
ANY = Features(statements=3)
PROMOTE: st.SearchStrategy[Promote] = st.sampled_from(["flagged", "internal", "none"])
BARRIERS: st.SearchStrategy[Barriers] = st.sampled_from(["auto", "auto", "all", "none"])


@examples(80)
@given(with_commands(programs(EXACT)), PROMOTE, BARRIERS)
def test_the_reference_device_agrees_with_python(
    program: Program, promote: Promote, barriers: Barriers
) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, "reference"), expected)
    check_fused(program, "reference", expected, promote=promote, barriers=barriers)


@needs_host_memory
@examples(10)
@given(with_commands(programs(EXACT)), PROMOTE, BARRIERS)
def test_the_sycl_device_agrees_with_python(
    program: Program, promote: Promote, barriers: Barriers
) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, None), expected)
    check_fused(program, None, expected, promote=promote, barriers=barriers)


@needs_host_memory
@examples(10)
@given(with_commands(programs(ANY)), PROMOTE)
def test_fusion_changes_no_bit_of_any_function(program: Program, promote: Promote) -> None:
    check_fused(program, None, unfused(program, None), promote=promote)


@examples(20)
@given(
    st.one_of(with_commands(programs(EXACT)), group_programs(EXACT)),
    st.sampled_from((True, "initialized")),
)
def test_checked_accesses_change_no_bit(program: Program, check: Check) -> None:
    """Promotion is left out: what is flagged has contents, which checks take it not to have."""
    with fq.FusionQueue("reference") as queue:
        buffers = made(program)
        with fq.fusion(queue, check=check, promote="none"):
            submit(queue, program, buffers)
        contents = held(queue, buffers)
    assert_identical(contents, unfused(program, "reference"))


@pytest.mark.slow
@examples(30)
@given(with_commands(programs(EXACT)), PROMOTE)
def test_graphs_and_replays_in_lists_change_no_bit(program: Program, promote: Promote) -> None:
    """Recorded, and launched alone, again, and within a list."""
    whole = all(spec.flag == "none" for spec in program.buffers)
    with fq.FusionQueue("reference") as queue:
        buffers, graph = made(program), fq.Graph()
        with graph.record(queue, promote=promote if whole else "none"):
            submit(queue, program, buffers)
        assert_identical(held(queue, buffers), [spec.data for spec in program.buffers])
        graph.launch()
        assert_identical(held(queue, buffers), unfused(program, "reference"))
        with fq.fusion(queue, promote="none"):
            submit(queue, program, buffers)
            graph.launch()
        graph.launch()
        assert_identical(held(queue, buffers), unfused(program, "reference", rounds=4))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
