"""Random lists on a GPU: fused, replayed and unfused agree bit for bit; ``math`` is the GPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.options import Promote
from tests.property.group_programs import group_programs
from tests.property.halo_programs import halo_programs
from tests.property.kernel_expressions import Features
from tests.property.list_runs import check_fused, held, made, runs_on_gpus, submit, unfused
from tests.property.programs import Program, programs
from tests.property.record_programs import RecordProgram, record_programs
from tests.property.running import assert_identical, examples
from tests.property.test_bfloat16 import check as check_bfloat16
from tests.property.test_bfloat16 import programs as bfloat16_programs
from tests.property.test_complex import check as check_complex
from tests.property.test_complex import programs as complex_programs
from tests.property.test_halos import Way
from tests.property.test_halos import check as check_halos
from tests.property.test_records import by as records_by
from tests.property.test_records import by_numpy as records_by_numpy
from tests.property.test_records import fields

PROMOTE: st.SearchStrategy[Promote] = st.sampled_from(["flagged", "internal", "none"])


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


@examples(60)
@given(programs(Features(statements=3)), PROMOTE)
def test_fused_is_unfused(program: Program, promote: Promote) -> None:
    assume(runs_on_gpus(program))
    check_fused(program, "cuda", unfused(program, "cuda"), promote=promote)


@examples(30)
@given(programs(Features(statements=3, transcendental=False)))
def test_without_functions_the_gpu_agrees_with_python(program: Program) -> None:
    assume(runs_on_gpus(program))
    assert_identical(unfused(program, "cuda"), program.run_python())


@examples(30)
@given(group_programs(Features(statements=2, sub_groups=False)), PROMOTE)
def test_fused_is_unfused_in_groups(program: Program, promote: Promote) -> None:
    assume(runs_on_gpus(program))
    check_fused(program, "cuda", unfused(program, "cuda"), promote=promote)


@examples(30)
@given(group_programs(Features(statements=3, sub_groups=False, transcendental=False)))
def test_groups_agree_with_python(program: Program) -> None:
    assume(runs_on_gpus(program))
    assert_identical(unfused(program, "cuda"), program.run_python())


@examples(30)
@given(halo_programs(), st.sampled_from(["inlined", "tiled"]))
def test_halos_computed_anew(program: Program, way: Way) -> None:
    assume(runs_on_gpus(program))
    check_halos(program, "cuda", way)


@examples(30)
@given(record_programs(), st.sampled_from(["unfused", "auto", "fused", "sequence"]))
def test_records(program: RecordProgram, strategy: str) -> None:
    found = records_by("cuda", program, strategy, "copied")
    wanted = records_by_numpy(program)
    for one, other, dtype in zip(found, wanted, program.dtypes, strict=True):
        assert fields(np.frombuffer(one, dtype)) == fields(np.frombuffer(other, dtype))


@examples(30)
@given(bfloat16_programs(), st.booleans())
def test_bfloat16(program: Any, fused: bool) -> None:
    check_bfloat16("cuda", program, fused)


@examples(30)
@given(complex_programs())
def test_complex_numbers(program: Any) -> None:
    check_complex("cuda", program)


@examples(20)
@given(programs(Features(statements=3)))
def test_graphs_are_launches(program: Program) -> None:
    assume(runs_on_gpus(program))
    for strategy in ("unfused", "sequence"):
        with fq.FusionQueue("cuda") as queue:
            buffers = made(program)
            with fq.fusion(queue, strategy=strategy, promote="none") as f:
                submit(queue, program, buffers)
            f.replay()
            f.replay()
            assert_identical(held(queue, buffers), unfused(program, "cuda", rounds=3))
