"""Scalars by which fusions divide, shift and mask are constants there, where the plan holds for one
value only; a kernel for each value is built a few times at most."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import Kernel, ScalarParam
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from fusionq.planning.specialise import MOST_VALUES
from tests.unit.lists import submissions
from tests.unit.planning.plans import TARGET

SIZE = 64


@fq.kernel
def exchange(item: fq.Item, k, j, x):
    """Compare and exchange, by quotients."""
    pair = item.get_id(0)
    i = pair // j * (2 * j) + pair % j
    low, high = min(x[i], x[i + j]), max(x[i], x[i + j])
    ascending = i // k % 2 == 0
    x[i] = low if ascending else high
    x[i + j] = high if ascending else low


@fq.kernel
def exchange_by_bits(item: fq.Item, k, j, x):
    i = item.get_id(0)
    other = i ^ j
    if other > i and (x[i] > x[other]) == ((i & k) == 0):
        lower = x[other]
        x[other] = x[i]
        x[i] = lower


@fq.kernel
def shifted(item: fq.Item, places, x, out):
    i = item.get_id(0)
    out[i] = x[i >> places << places]


@fq.kernel
def of_row(item: fq.Item, size, t, x):
    """A scalar for whose value the proof holds, and nothing is divided by."""
    i = item.get_id(0)
    x[t * size + i] = x[t * size + i] + 1


@fq.kernel
def remainders(item: fq.Item, n, out):
    """Divides by a scalar, of which no index is made."""
    i = item.get_id(0)
    out[i] = i % n


def plan_of(*commands: object, known: tuple[Plan, ...] = ()) -> Plan:
    return make_plan(submissions(*commands), FusionOptions(strategy="fused"), TARGET, known)


def scalars(kernel: Kernel) -> list[str]:
    return [p.name for p in kernel.params if isinstance(p, ScalarParam)]


def sort(kernel: fq.KernelFunction, steps: list[tuple[int, int]]) -> list[tuple[object, ...]]:
    x = np.zeros(SIZE, np.int32)
    items = SIZE // 2 if kernel is exchange else SIZE
    return [(kernel, items, k, j, x) for k, j in steps]


STEPS = [(2, 1), (4, 2), (4, 1)]


@pytest.mark.parametrize("kernel", [exchange, exchange_by_bits], ids=lambda k: k.__name__)
def test_stages_of_a_sort_have_no_scalars(kernel: fq.KernelFunction) -> None:
    """And serve no other steps."""
    plan = plan_of(*sort(kernel, STEPS))
    (stage,) = plan.stages
    assert scalars(stage.kernel) == ["range_0"]
    assert plan.validity.holds(submissions(*sort(kernel, STEPS)))
    assert not plan.validity.holds(submissions(*sort(kernel, [(2, 1), (4, 1), (4, 2)])))


def test_shifts_have_none_either() -> None:
    x, out, last = (np.zeros(SIZE) for _ in range(3))
    (stage,) = plan_of((shifted, SIZE, 2, x, out), (shifted, SIZE, 1, x, last)).stages
    assert len(stage.submissions) == 2
    assert scalars(stage.kernel) == ["range_0"]


def test_a_submission_by_itself_has_one_kernel_for_all_values() -> None:
    (stage,) = plan_of(*sort(exchange, [(4, 2)])).stages
    assert {"k", "j"} <= set(scalars(stage.kernel))


def test_another_value_makes_a_parameter() -> None:
    """Of what has changed only; the list is planned again anyway."""
    first = plan_of(*sort(exchange, STEPS))
    (stage,) = plan_of(*sort(exchange, [(2, 1), (8, 2), (4, 1)]), known=(first,)).stages
    assert scalars(stage.kernel) == ["range_0", "k"]


def test_scalars_that_nothing_is_divided_by_stay() -> None:
    x = np.zeros(4 * SIZE)
    (stage,) = plan_of((of_row, SIZE, SIZE, 1, x), (of_row, SIZE, SIZE, 1, x)).stages
    assert {"t", "size"} <= set(scalars(stage.kernel))


def test_scalars_for_whose_every_value_the_plan_holds_stay() -> None:
    out, other = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
    plan = plan_of((remainders, SIZE, 7, out), (remainders, SIZE, 5, other))
    (stage,) = plan.stages
    assert len(stage.submissions) == 2
    assert {"n", "n_1"} <= set(scalars(stage.kernel))
    again = submissions((remainders, SIZE, 3, out), (remainders, SIZE, 2, other))
    assert plan.validity.holds(again)


@fq.kernel
def across(item: fq.Item, x, out):
    """Needs all of what is before: a stage of its own begins."""
    i = item.get_id(0)
    out[i] = x[x.shape[0] - 1 - i]


def test_few_kernels_of_one_kind_have_them() -> None:
    """A list of many stages that are alike but for their values has kernels for some of them, and
    one for the others."""
    commands: list[tuple[object, ...]] = []
    buffers = [np.zeros(20_000, np.int32) for _ in range(2)]
    for number in range(MOST_VALUES + 3):
        x, y = buffers if number % 2 else buffers[::-1]
        j = 1 << number
        commands += [(exchange, 10_000, 2 * j, j, x), (exchange, 10_000, 4 * j, j, x)]
        commands += [(across, 20_000, x, y)]
    plan = plan_of(*commands)
    joined = [stage.kernel for stage in plan.stages if len(stage.submissions) > 1]
    assert len(joined) >= MOST_VALUES + 2
    with_constants = [kernel for kernel in joined if "j" not in scalars(kernel)]
    assert len(set(with_constants)) <= MOST_VALUES
    assert len(set(joined)) <= MOST_VALUES + 1
