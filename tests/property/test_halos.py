"""Halos computed anew are what the unfused run computes, bit for bit: random chains of stencils."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.reference import ReferenceBackend
from fusionq.cache.plan_cache import PLANS
from fusionq.planning import overlap
from tests.property.commands import with_commands
from tests.property.halo_programs import halo_programs
from tests.property.list_runs import check_fused, unfused, with_buffers
from tests.property.programs import Program
from tests.property.running import assert_identical, examples, needs_device

Way = Literal["inlined", "tiled"]


def check(program: Program, target: str | None, *ways: Way) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, target), expected)
    for way in ways:
        with only(way):
            report = check_fused(program, target, expected, "internal", strategy="overlap")
        tiled = any(stage.tiling is not None for stage in report.plan.stages)
        recomputed = len(report.plan.recomputed)
        event(f"{report.strategy}, {recomputed} computed anew{', by tiles' if tiled else ''}")


@contextmanager
def only(way: Way) -> Iterator[None]:
    """Elements are computed anew that way, where there are several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSIONQ_CACHE", "0")
        patch.setattr(PLANS, "_plans", OrderedDict())
        patch.setattr(overlap, "WAYS", (way,))
        yield


@pytest.mark.slow
@examples(60)
@given(with_commands(halo_programs()))
def test_on_the_reference_device(program: Program) -> None:
    check(program, "reference", "inlined", "tiled")


@pytest.mark.slow
@examples(60)
@given(halo_programs(), st.sampled_from([40, 100, 400]))
def test_where_work_items_are_threads(program: Program, largest: int) -> None:
    """Tiles that are inside of all bounds have code of their own."""
    backend = ReferenceBackend()
    backend.target = replace(
        backend.target, worker_size=16, sub_group_size=4, largest_overlapped_tile=largest,
        resident_workers=1,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "backend_for", lambda target, profiling=False: backend)
        check(with_buffers(program), None, "tiled")


@needs_device
@examples(15)
@given(with_commands(halo_programs()))
def test_on_the_sycl_device(program: Program) -> None:
    check(program, None, "tiled")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
