"""Random damage to the disk cache: the run is as if the entries were not there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from hypothesis import event, given

import fusionq as fq
from tests.property.damaged_entries import KINDS, ON_DEVICES, Case, cases
from tests.property.damaged_entry_checks import DamagedRuns, check_damaged
from tests.property.running import examples, needs_device


@pytest.fixture(scope="module")
def on_reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagedRuns]:
    with fq.FusionQueue("reference") as queue:
        yield DamagedRuns(tmp_path_factory.mktemp("reference"), queue)


@pytest.fixture(scope="module")
def on_sycl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagedRuns]:
    with fq.FusionQueue() as queue:
        yield DamagedRuns(tmp_path_factory.mktemp("sycl"), queue)


@examples(60)
@given(case=cases(tuple(KINDS)))
def test_on_the_reference_device(on_reference: DamagedRuns, case: Case) -> None:
    event(check_damaged(on_reference, case))


@needs_device
@examples(10)
@given(case=cases(ON_DEVICES))
def test_on_the_sycl_device(on_sycl: DamagedRuns, case: Case) -> None:
    event(check_damaged(on_sycl, case))


@pytest.fixture(autouse=True)
def _warnings_are_no_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the cache cannot be written
        yield
