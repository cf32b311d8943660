"""Elements named by ids of work-groups, in persistent kernels whose work-items are done one by one
in any tiles: bit for bit as unfused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.planning.planner import make_plan
from tests.property.group_id_programs import group_id_programs
from tests.property.programs import Program
from tests.property.running import assert_identical, examples, needs_device
from tests.property.test_megakernels import SEEDS, check
from tests.unit.codegen.host_dialect import COMPILER
from tests.unit.codegen.test_host_workers import LANES, run
from tests.unit.lists import submissions
from tests.unit.megakernel.plans import PersistentPlan
from tests.unit.targets import REFERENCE


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield


@examples(40)
@given(group_id_programs(), SEEDS)
def test_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@needs_device
@examples(20)
@given(group_id_programs(wide=True), SEEDS)
def test_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
@examples(60)
@given(group_id_programs())
def test_where_lanes_are_threads(
    tmp_path_factory: pytest.TempPathFactory, program: Program
) -> None:
    """As on GPUs: a lane does several work-items together, which lie in several work-groups."""
    expected, contents = program.run_python(), program.contents()
    calls = [
        (s.kernel.made(), s.range, *(contents[a.buffer] for a in s.arguments))
        for s in program.submissions
    ]
    listed = submissions(*calls)
    plan = make_plan(listed, FusionOptions(strategy="megakernel", barriers="none"), REFERENCE)
    assume(plan.strategy == "megakernel" and len(plan.stages) == 1)
    of_list = PersistentPlan(plan.stages[0], listed, calls)
    run(of_list, tmp_path_factory.mktemp("built"), "turns", row=5 * LANES + 3).launch()
    assert_identical(contents, expected)
