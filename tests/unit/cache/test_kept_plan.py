"""Dependences that differ in their submissions alone are kept as numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.cache.kept_plan import KeptPlan, kept_plan, plan_of
from fusionq.cache.serialise import MalformedData, decode, encode
from fusionq.cache.sharing import packed, unpacked
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import REFERENCE


@fq.kernel
def scattered(item: fq.Item, place, a, b):
    i = item.get_id(0)
    a[place[i]] = b[i] + 1


@fq.kernel
def doubled(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] * 2


def made(repeats):
    place, a, b = np.zeros(30, np.int64), np.zeros(30), np.zeros(30)
    calls = [(scattered, 30, place, a, b), (doubled, 30, a, b)] * repeats
    return make_plan(submissions(*calls), FusionOptions(strategy="unfused"), REFERENCE)


def test_a_plan_that_was_kept_is_the_same():
    plan = made(3)
    assert len(plan.dependences) > 3
    data = unpacked(json.loads(json.dumps(packed(encode(kept_plan(plan))))))
    assert plan_of(decode(KeptPlan, data)) == replace(plan, timings={})


def test_more_dependences_of_the_same_kinds_are_three_numbers_each():
    plan = made(3)
    kept = kept_plan(plan)
    more = kept_plan(replace(plan, dependences=plan.dependences * 40))
    assert more.kinds == kept.kinds and len(kept.kinds) < len(plan.dependences)
    assert len(more.dependences) == 3 * 40 * len(plan.dependences)
    longer = len(json.dumps(packed(encode(more)))) - len(json.dumps(packed(encode(kept))))
    assert longer < 12 * 40 * len(plan.dependences)


@pytest.mark.parametrize("numbers", [(0, 0), (0, 1, 2, 0), (9999, 0, 1), (-1, 0, 1)])
def test_numbers_that_are_no_dependences_are_refused(numbers):
    kept = replace(kept_plan(made(2)), dependences=numbers)
    with pytest.raises(MalformedData):
        plan_of(kept)
