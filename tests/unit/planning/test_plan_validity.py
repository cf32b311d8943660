"""For which sizes, scalars and views a plan is another one; scalars that are constants in it."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.ir.printer import print_kernel
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.planner import holds_for, make_plan
from fusionq.planning.structure import structure_key
from tests.unit.lists import submissions
from tests.unit.planning.plans import BIG, TARGET, N, copy, diamond, plan_of, vector


# ------------------------------------------------------------------------- validity
def keyed(calls):
    return structure_key(submissions(*calls), FusionOptions())


def test_another_size_has_the_same_key_and_plan():
    plan = plan_of(*diamond(N))
    for n in (1, 7, 1000):
        assert keyed(diamond(n)) == keyed(diamond(N))
        assert holds_for(plan, submissions(*diamond(n)))


def test_size_at_which_the_scope_changes_needs_another_plan():
    @fq.kernel
    def reverse(item: fq.Item, a, out):
        i = item.get_id(0)
        out[item.get_range(0) - 1 - i] = a[i]

    def calls(n):
        a, b, c = vector(n), vector(n), vector(n)
        return (reverse, n, a, b), (copy, n, b, c)

    many, one = plan_of(*calls(BIG)), plan_of(*calls(1))
    assert (many.strategy, one.strategy) == ("unfused", "fused")
    assert holds_for(many, submissions(*calls(2 * BIG)))
    assert not holds_for(many, submissions(*calls(1)))
    assert not holds_for(one, submissions(*calls(2)))
    group = plan_of(*calls(100))
    assert group.strategy == "fused"
    assert holds_for(group, submissions(*calls(200)))
    assert not holds_for(group, submissions(*calls(300)))


def test_scalar_that_decides_needs_another_plan():
    @fq.kernel
    def offset(item: fq.Item, a, out, k):
        i = item.get_id(0)
        if i + k < item.get_range(0):
            out[i] = a[i + k]

    @fq.kernel
    def scaled(item: fq.Item, a, out, k):
        i = item.get_id(0)
        out[i] = a[i] * k

    a, b, c = vector(), vector(), vector()

    def calls(kernel, k):
        return (copy, N, a, b), (kernel, N, b, c, k)

    plan = plan_of(*calls(offset, 0))
    assert plan.strategy == "fused"
    assert not holds_for(plan, submissions(*calls(offset, 1)))
    free = plan_of(*calls(scaled, 0))
    assert holds_for(free, submissions(*calls(scaled, 12345)))


def test_equal_scalars_that_become_different_need_another_plan():
    @fq.kernel
    def at(item: fq.Item, a, out, k):
        i = item.get_id(0)
        if i + k < out.shape[0]:
            out[i + k] = a[i]

    a, b, c = vector(), vector(), vector()

    def calls(k1, k2):
        return (at, N, a, b, k1), (at, N, c, b, k2)

    plan = plan_of(*calls(3, 3))
    assert plan.strategy == "fused"
    assert holds_for(plan, submissions(*calls(5, 5)))
    assert not holds_for(plan, submissions(*calls(5, 6)))


def test_pinned_size_needs_another_plan():
    @fq.kernel
    def flat(item: fq.Item, a, out):
        i = item.get_id(0)
        j = item.get_id(1)
        out[i * item.get_range(1) + j] = a[i * item.get_range(1) + j]

    def calls(rows, columns):
        a, b, c = (vector(rows * columns) for _ in range(3))
        return (flat, (rows, columns), a, b), (flat, (rows, columns), b, c)

    plan = plan_of(*calls(4, 8))
    assert plan.strategy == "fused"
    assert not holds_for(plan, submissions(*calls(4, 9)))


def test_aliasing_pattern_is_part_of_the_key():
    a, b, c = vector(), vector(), vector()
    base = vector(2 * N)
    separate = (copy, N, a, b), (copy, N, b, c)
    assert keyed(separate) != keyed(((copy, N, a, b), (copy, N, c, a)))
    one = (copy, N, a, base[:N]), (copy, N, base[1 : N + 1], c)
    two = (copy, N, a, base[:N]), (copy, N, base[2 : N + 2], c)
    assert keyed(one) != keyed(two)


def test_flags_options_and_constants_are_part_of_the_key():
    assert keyed(diamond(N)) != keyed(diamond(N, wrap=lambda a: a))
    calls = submissions(*diamond(N))
    assert structure_key(calls, FusionOptions()) != structure_key(
        calls, FusionOptions(promote="none")
    )


def test_empty_ranges_have_their_own_plan():
    assert keyed(diamond(0)) != keyed(diamond(N))
    plan = plan_of(*diamond(0))
    assert launch_shape_of(plan.stages[0], submissions(*diamond(0)), TARGET) is None


# ------------------------------------------------------------------- specialisation
@fq.kernel
def smooth(item: fq.Item, a, out, times):
    i = item.get_id(0)
    x = a[i]
    for _ in range(times):
        x = x * np.float32(0.5)
    out[i] = x


def test_a_loop_bound_becomes_a_constant_until_it_varies():
    def calls(times):
        return submissions((smooth, N, vector(), vector(), times))

    options = FusionOptions()
    first = make_plan(calls(3), options, TARGET)
    assert "range(3)" in print_kernel(first.stages[0].kernel)
    assert holds_for(first, calls(3))
    assert not holds_for(first, calls(4))
    second = make_plan(calls(4), options, TARGET, [first])
    assert "range(times)" in print_kernel(second.stages[0].kernel)
    assert all(holds_for(second, calls(times)) for times in (4, 5, 0, 3))


def test_a_constant_that_stays_is_kept_when_another_varies():
    @fq.kernel
    def two_loops(item: fq.Item, a, out, m, n):
        i = item.get_id(0)
        x = a[i]
        for _ in range(m):
            x = x + np.float32(1)
        for _ in range(n):
            x = x * np.float32(2)
        out[i] = x

    def calls(m, n):
        return submissions((two_loops, N, vector(), vector(), m, n))

    first = make_plan(calls(3, 4), FusionOptions(), TARGET)
    second = make_plan(calls(3, 5), FusionOptions(), TARGET, [first])
    text = print_kernel(second.stages[0].kernel)
    assert "range(3)" in text
    assert "range(n)" in text


def test_scalars_outside_loop_bounds_stay_parameters():
    @fq.kernel
    def scale(item: fq.Item, a, out, factor):
        i = item.get_id(0)
        out[i] = a[i] * factor

    plan = plan_of((scale, N, vector(), vector(), 3))
    assert "factor" in [p.name for p in plan.stages[0].kernel.params]
