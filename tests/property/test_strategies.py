"""Random lists of every generator by every strategy: a piece of the long run of lists."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import fusionq as fq
from tests.property.running import examples, needs_device
from tests.property.strategy_checks import GENERATORS, ListCase, check_list, list_cases, mixed_cases

CASES = st.one_of(*map(list_cases, GENERATORS), *dict.fromkeys(mixed_cases()))


@examples(30)
@given(CASES)
def test_on_the_reference_device(case: ListCase) -> None:
    event(f"{case.strategy}: {check_list(case, 'reference').strategy}")


@needs_device
@examples(10)
@given(CASES)
def test_on_the_sycl_device(case: ListCase) -> None:
    event(f"{case.strategy}: {check_list(case, None).strategy}")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
