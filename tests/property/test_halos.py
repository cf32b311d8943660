"""Halos computed anew are what the unfused run computes, bit for bit: random chains of stencils."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import event, given

import fusionq as fq
from tests.property.commands import with_commands
from tests.property.halo_programs import halo_programs
from tests.property.list_runs import check_fused, unfused
from tests.property.programs import Program
from tests.property.running import assert_identical, examples, needs_device


def _check(program: Program, target: str | None) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, target), expected)
    report = check_fused(program, target, expected, "internal", strategy="overlap")
    event(f"{report.strategy}, {len(report.plan.recomputed)} computed anew")


@examples(60)
@given(with_commands(halo_programs()))
def test_on_the_reference_device(program: Program) -> None:
    _check(program, "reference")


@needs_device
@examples(15)
@given(with_commands(halo_programs()))
def test_on_the_sycl_device(program: Program) -> None:
    _check(program, None)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
