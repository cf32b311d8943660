"""Sizes and divisors that 32 bits hold, on devices whose indices have 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.program import generated
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import SMALL, ScalarParam
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.cuda.compile_only import TARGET
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

N = 1000


@fq.kernel
def placed(item: fq.Item, m: int, s: int, a, out):
    n = item.get_id(0)
    out[n] = a[n] + n // m * 3 + n % m + s


def listed(m, s=7):
    return submissions((placed, N, m, s, *(np.zeros(N, np.int64) for _ in range(2))))


def planned(*of, target=TARGET):
    return make_plan(listed(*of), FusionOptions(), target)


def bounds(plan):
    (stage,) = plan.stages
    return {p.name: p.bounds for p in stage.kernel.params if isinstance(p, ScalarParam)}


@pytest.mark.parametrize(("m", "small"), [(1, True), (33, True), (SMALL, True), (SMALL + 1, False),
                                          (0, False), (-4, False)])  # fmt: skip
def test_divisors_of_today(m, small):
    found = bounds(planned(m))
    assert (found["m"] == (1, SMALL)) == small
    assert found["s"] != (1, SMALL)  # nothing is divided by it


def test_a_plan_serves_small_divisors_or_all():
    small, any_ = planned(33), planned(0)
    for m in (1, 2, 1000, SMALL):
        assert holds_for(small, listed(m)) and holds_for(any_, listed(m))
    for m in (0, -1, SMALL + 1, -(1 << 63)):
        assert not holds_for(small, listed(m)) and holds_for(any_, listed(m))
    assert holds_for(small, listed(33, 1 << 40))


def test_divisions_by_them_have_32_bits():
    for m, narrow in ((33, True), (0, False)):
        kernel = planned(m).stages[0].kernel
        text = generated(kernel, "strict", TARGET).text
        assert ("fq_floordiv_i64" not in text and "fq_mod_i64" not in text) == narrow


def test_where_indices_have_64_bits_nothing_is_asked():
    assert bounds(planned(33, target=TWO_CORES))["m"] != (1, SMALL)
    assert holds_for(planned(33, target=TWO_CORES), listed(0))
