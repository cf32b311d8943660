"""Kernels of changed source text: each is accepted, or refused by an error of fusionq's."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from fusionq.base.options import Check
from tests.property.changed_kernel_checks import CHECKS, check_changed
from tests.property.changed_kernels import ChangedKernel, changed_kernels
from tests.property.running import examples, needs_device


@examples(100)
@given(changed_kernels(), st.sampled_from(CHECKS))
def test_on_the_reference_device(case: ChangedKernel, check: Check) -> None:
    event(check_changed(case, "reference", check))


@needs_device
@examples(20)
@given(changed_kernels())
def test_on_the_sycl_device(case: ChangedKernel) -> None:
    event(check_changed(case, None))
