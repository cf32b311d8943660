"""Which submissions become one stage, why others do not, and where barriers stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.dependence import PairScope
from fusionq.analysis.item_space import ItemSpace
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.base.span import Span
from fusionq.planning import members
from fusionq.planning.stages import SplitOptions, Stage, apart, barriers_of, group_scopes, split
from tests.unit.lists import completed, submissions
from tests.unit.targets import TWO_CORES

NOWHERE = Span("k.py", 1, "")


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def reverse(item: fq.Item, a, out):
    i = item.get_id(0)
    out[item.get_range(0) - 1 - i] = a[i]


@fq.kernel
def on_plane(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j]


@fq.kernel
def long_reverse(item: fq.Item, a, out):
    i = item.get_id(0)
    x = a[i]
    for _ in range(4096):
        x = x * np.float32(0.5) + np.float32(1)
    out[item.get_range(0) - 1 - i] = x


@fq.kernel
def flip(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i // 4 * 4 + 3 - i % 4] = a[i]


@fq.kernel
def turn(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[item.get_range(0) - 1 - i, item.get_range(1) - 1 - j] = a[i, j]


def vectors(count, n=64):
    return [np.zeros(n, np.float32) for _ in range(count)]


def stages_of(*calls, barrierless=None, wanted="profitable", target=TWO_CORES):
    questions = Questions(submissions(*calls))
    options = SplitOptions(barrierless, wanted, target, lambda: target)
    return completed(split(questions, completed(direct_dependences(questions)), options))


def members_of(stages):
    return [stage.members for stage in stages]


# ------------------------------------------------------------------------------- joining
def test_each_submission_apart():
    a, b, c, _ = vectors(4)
    found = apart(Questions(submissions((copy, 64, a, b), (copy, 64, b, c))), "asked for")
    assert members_of(found) == [(0,), (1,)]
    assert [stage.boundary for stage in found] == [None, "asked for"]


def planes(count):
    """Submissions of different shapes, which join none but by strategy='fused'."""
    shapes = [(1 << k, 1 << 17 - k) for k in range(7, 7 + count)]
    return [(on_plane, s, np.zeros(s, np.float32), np.zeros(s, np.float32)) for s in shapes]


def test_an_earlier_stage_is_joined_where_the_last_cannot_be():
    n = 1 << 17
    a, b, c = vectors(3, n)
    (plane,) = planes(1)
    assert members_of(stages_of((copy, n, a, b), plane, (copy, n, b, c))) == [(0, 2), (1,)]


def test_memory_without_a_common_element_is_no_reason_to_stay_behind():
    """The plane is every other element of what the third writes the rest of."""
    n = 1 << 17
    a, b = vectors(2, n)
    (both,) = vectors(1, 2 * n)
    plane = both.reshape(256, -1)[:, ::2]
    calls = [(copy, n, a, b), (on_plane, plane.shape, plane, np.zeros_like(plane))]
    assert members_of(stages_of(*calls, (copy, n, b, both[1::2]))) == [(0, 2), (1,)]
    assert members_of(stages_of(*calls, (copy, n, b, both[:n]))) == [(0,), (1,), (2,)]


def test_no_stage_is_joined_past_a_producer():
    n = 1 << 17
    a, b, c = vectors(3, n)
    (plane,) = planes(1)
    found = stages_of((copy, n, a, b), plane, (copy, n, plane[3].reshape(-1), c))
    assert members_of(found) == [(0,), (1,), (2,)]
    assert "differ in shape" in found[2].boundary


@pytest.mark.parametrize(("between", "joins"), [(3, True), (4, False)])
def test_only_so_many_stages_are_looked_back_at(between, joins):
    n = 1 << 17
    a, b, c = vectors(3, n)
    found = stages_of((copy, n, a, b), *planes(between), (copy, n, b, c))
    assert len(found) == between + (1 if joins else 2)
    assert (between + 1 in found[0].members) == joins


def test_what_meets_by_ids_does_not_meet_by_linear_ids():
    """Rows of 6 and of 5: with a third range of another shape, linear ids are what is equal."""
    plane = [np.zeros((4, 6), np.float32) for _ in range(4)]
    a, b = vectors(2, 100)
    dependent = [(on_plane, (4, 6), *plane[:2]), (on_plane, (3, 5), *plane[1:3])]
    found = stages_of(*dependent, (copy, 100, a, b), wanted="required")
    assert members_of(found) == [(0, 1), (2,)]
    assert found[1].boundary.startswith("RAW dependence of submission 1 on submission 0 has scope ")
    assert found[1].boundary.endswith(
        ": beside the others their work-items would meet in another way"
    )
    independent = [(on_plane, (4, 6), *plane[:2]), (on_plane, (3, 5), *plane[2:])]
    (found,) = stages_of(*independent, (copy, 100, a, b), wanted="required")
    assert found.space.mode == "linear"


def test_what_is_not_known_joins_nothing():
    @fq.kernel
    def gather(item: fq.Item, index, a, out):
        i = item.get_id(0)
        out[i] = a[index[i]]

    n = 5000
    a, b, c, _ = vectors(4, n)
    found = stages_of((copy, n, a, b), (gather, n, np.zeros(n, np.int64), b, c))
    assert members_of(found) == [(0,), (1,)]
    assert found[1].boundary.endswith(": what they touch is not known")
    assert found[1].boundary.startswith(
        "RAW dependence of submission 1 on submission 0 has scope UNKNOWN ("
    )


def test_what_is_not_known_joins_in_the_work_group_of_all():
    @fq.kernel
    def gather(item: fq.Item, index, a, out):
        i = item.get_id(0)
        out[i] = a[index[i]]

    index = np.zeros(64, np.int64)
    a, b, c, d = vectors(4)
    calls = (copy, 64, a, b), (gather, 64, index, b, c), (gather, 64, index, c, d)
    (found,) = stages_of(*calls)
    assert found.space.local_range is not None and found.space.local_range[0] >= 64
    assert [(d.producer, d.consumer) for d in found.crossing] == [(0, 1), (1, 2)]
    assert barriers_of(found) == (1, 2)
    # A larger range has several groups, of which the first has all that is not known.
    more = [np.zeros(5000, np.float32) for _ in range(2)]
    found = stages_of(*calls, (copy, 5000, *more), wanted="required")
    assert members_of(found) == [(0, 1, 2, 3)]
    assert found[0].space.local_range[0] >= 64
    found = stages_of((copy, 5000, *more), (copy, 64, a, b), (gather, 64, index, b, c))
    assert (1, 2) not in members_of(found) or found[-1].crossing
    barrierless = stages_of(*calls, barrierless="no barriers")
    assert members_of(barrierless) == [(0,), (1,), (2,)]


def test_work_groups_of_a_size_that_keeps_all_inside():
    a, b, c, _ = vectors(4)
    (found,) = stages_of((flip, 64, a, b), (copy, 64, b, c))
    assert found.space.local_range is not None and found.space.local_range[0] % 4 == 0
    assert [(d.producer, d.consumer) for d in found.crossing] == [(0, 1)]


def test_a_work_group_size_keeps_what_earlier_members_exchange():
    """Blocks of 4, then of 6, then a member that waits for nobody."""

    @fq.kernel
    def flip_six(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i // 6 * 6 + 5 - i % 6] = a[i]

    n = 1 << 14
    a, b, c, d, e = vectors(5, n)
    calls = [(flip, n, a, b), (flip_six, n, b, c), (copy, n, c, d), (copy, n, d, e)]
    (found,) = stages_of(*calls)
    assert found.space.local_range is not None and found.space.local_range[0] % 12 == 0
    assert [(w.producer, w.consumer) for w in found.crossing] == [(0, 1), (1, 2)]


def test_why_work_groups_do_not_do():
    """Of what waits itself, and of what waits for nobody but is longer than a group may be."""
    n = 1 << 14
    a, b, c, d = vectors(4, n)
    found = stages_of((copy, n, a, b), (reverse, n, b, c), (reverse, n, c, d))
    assert members_of(found) == [(0, 1), (2,)]
    assert found[1].boundary.startswith(
        "RAW dependence of submission 2 on submission 1 has scope GLOBAL ("
    )
    assert found[1].boundary.endswith("): work-groups would have to wait for each other")
    plane, other = (np.zeros((20, 40), np.float32) for _ in range(2))
    square, copied = (np.zeros((64, 64), np.float32) for _ in range(2))
    calls = [(turn, (20, 40), plane, other), (on_plane, (20, 40), other, plane)]
    found = stages_of(*calls, (on_plane, (64, 64), square, copied), wanted="required")
    assert members_of(found) == [(0, 1), (2,)]
    assert found[0].space.local_range is not None
    assert found[0].space.local_range >= (20, 40)
    assert found[1].boundary == (
        "no work-group size keeps the dependences of the launch before inside a work-group"
    )


@pytest.mark.parametrize("wanted", ["profitable", "required"])
def test_work_items_that_only_wait_cost_more_than_a_launch(wanted):
    """Also where no other waits for them: the first of each row does what is to be done for it."""
    a, b = vectors(2)
    plane, other = (np.zeros((64, 4096), np.float32) for _ in range(2))
    found = stages_of((copy, 64, a, b), (on_plane, (64, 4096), plane, other), wanted=wanted)
    assert members_of(found) == ([(0, 1)] if wanted == "required" else [(0,), (1,)])


def test_local_memory_is_enough_for_all_that_join(monkeypatch):
    """As if each kernel took half of what there is."""
    most = TWO_CORES.device.local_memory_bytes
    monkeypatch.setattr(members, "launched_bytes", lambda ir, *_: most // 2)
    a, b, c, d = vectors(4)
    found = stages_of((copy, 64, a, b), (copy, 64, b, c), (copy, 64, c, d))
    assert members_of(found) == [(0, 1), (2,)]
    assert found[1].boundary == (
        f"they take {most // 2 * 3} bytes of local memory for each work-group, and "
        f"the device has {most}"
    )


def test_private_memory_is_enough_for_all_that_join(monkeypatch):
    """As if each kernel took half of what there is for the largest group."""
    device = replace(TWO_CORES.device, private_memory_bytes=1 << 30)
    target = replace(TWO_CORES, device=device)
    half = (1 << 29) // (device.compute_units * target.largest_barrier_group)
    monkeypatch.setattr(members, "private_bytes", lambda ir: half)
    a, b, c, d = vectors(4)
    found = stages_of((copy, 64, a, b), (copy, 64, b, c), (copy, 64, c, d), target=target)
    assert members_of(found) == [(0, 1), (2,)]
    assert f"{3 * half} bytes of private memory for each work-item" in found[1].boundary


def test_no_work_groups_where_nothing_may_wait():
    a, b, c, _ = vectors(4)
    found = stages_of((flip, 64, a, b), (copy, 64, b, c), barrierless="barriers='none' was given")
    assert members_of(found) == [(0,), (1,)]
    assert found[1].boundary.endswith(": barriers='none' was given")


@pytest.mark.parametrize("wanted", ["profitable", "required"])
def test_work_groups_that_cost_more_than_a_launch(wanted):
    """One group of all work-items would do, on one of two compute units."""
    n = TWO_CORES.largest_barrier_group
    a, b, c = vectors(3, n)
    found = stages_of((long_reverse, n, a, b), (long_reverse, n, b, c), wanted=wanted)
    assert len(found) == (1 if wanted == "required" else 2)
    if wanted == "required":
        assert found[0].space.local_range == (n,)
    else:
        assert found[1].boundary == (
            f"work-groups of {n} would keep the dependences inside, but there are 1 of them for 2 "
            "compute units, which costs more than a launch; strategy='fused' joins them all the "
            "same"
        )


@fq.kernel
def clamped_blur(item: fq.Item, a, out, w):
    i = item.get_id(0)
    j = item.get_id(1)
    total = a[i, j]
    for t in range(1, 40):
        total += a[i, min(j + t, w - 1)] * t + a[i, max(j - t, 0)]
    out[i, j] = total


@fq.kernel
def wrapped_blur(item: fq.Item, a, out, w):
    i = item.get_id(0)
    j = item.get_id(1)
    left = j - 1 if j > 0 else w - 1
    right = j + 1 if j < w - 1 else 0
    total = a[i, j]
    for t in range(1, 40):
        total += (a[i, left] + a[i, right]) * t
    out[i, j] = total


@fq.kernel
def row_sums(item: fq.NdItem, a, out):
    i, j = item.get_global_id(0), item.get_global_id(1)
    total = fq.reduce_over_group(item.get_group(), a[i, j], "add")
    if item.get_group().leader:
        out[i, j // 128] = total


@fq.kernel
def backwards_along_rows(item: fq.Item, a, out, w):
    i = item.get_id(0)
    j = item.get_id(1)
    total = a[i, j]
    for t in range(1, 40):
        total += a[i, w - 1 - j] * t
    out[i, j] = total


@pytest.mark.parametrize(
    ("second", "splits_rows", "wanted", "count"),
    [
        (clamped_blur, True, "profitable", 2),
        (clamped_blur, True, "asked", 2),
        (clamped_blur, True, "required", 1),
        (clamped_blur, False, "asked", 1),
        (clamped_blur, False, "profitable", 1),
        (backwards_along_rows, True, "profitable", 1),
        (wrapped_blur, True, "profitable", 2),
        (wrapped_blur, True, "asked", 2),
        (wrapped_blur, True, "required", 1),
        (wrapped_blur, False, "asked", 1),
    ],
)
def test_indices_that_launches_decide_at_the_ends_of_rows(second, splits_rows, wanted, count):
    """Work-groups of a row would ask at each of them."""
    shape = 2000, 512
    a, b, c = (np.zeros(shape, np.float32) for _ in range(3))
    device = replace(TWO_CORES.device, splits_rows=splits_rows)
    target = replace(TWO_CORES, device=device)
    calls = (on_plane, shape, a, b), (second, shape, b, c, shape[1])
    found = stages_of(*calls, wanted=wanted, target=target)
    assert len(found) == count
    if count == 2:
        assert f"{second.name} would ask at each" in found[1].boundary or (
            f"each index of {second.name} what" in found[1].boundary
        )
        assert "what launches along rows ask at their ends only" in found[1].boundary


@pytest.mark.parametrize("wanted", ["profitable", "asked"])
@pytest.mark.parametrize("blur", [clamped_blur, wrapped_blur])
def test_they_do_so_before_work_groups_of_the_user_too(blur, wanted):
    target = replace(TWO_CORES, device=replace(TWO_CORES.device, splits_rows=True))

    def found(kernel, rows, wanted=wanted, target=target):
        a, b, out = (np.zeros((rows, 512), np.float32) for _ in range(3))
        scalars = () if kernel is on_plane else (512,)
        groups = row_sums, fq.NdRange((rows, 512), (1, 128)), b, out
        return stages_of(
            (kernel, (rows, 512), a, b, *scalars), groups, wanted=wanted, target=target
        )

    _, last = found(blur, 2000)
    assert f"{blur.name} would ask at each index" in last.boundary
    assert "require=True joins them all the same" in last.boundary or wanted == "profitable"
    assert len(found(blur, 2000, "required")) == 1
    assert len(found(blur, 2000, target=TWO_CORES)) == 1
    assert len(found(blur, 2)) == 1
    assert len(found(on_plane, 2000)) == 1


# --------------------------------------------------------------- barriers of kernels' own
@fq.kernel
def sums(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = fq.reduce_over_group(item.get_group(), a[i], "add")


@fq.kernel
def waiting(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = a[i]
    fq.group_barrier(item.get_group())
    out[i] = out[i] + a[i]


LARGE, SMALL = fq.NdRange(64, 8), fq.NdRange(32, 8)


@pytest.mark.parametrize("large", [(waiting, LARGE), (sums, LARGE), (copy, 64)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_group_function_cannot_be_guarded(large, turned):
    """Where ranges differ, the smaller one's work is guarded: work-items beyond it have no value.
    Of groups that are all inside or all outside the range, too: the reason speaks of no part."""
    a, b, c, d = vectors(4)
    calls = [(*large, a, b), (sums, SMALL, c, d)]
    found = stages_of(*(calls[::-1] if turned else calls))
    assert len(found) == 2
    assert found[1].boundary.startswith("the ranges differ, and the group function at ")
    assert found[1].boundary.endswith("where work-items have no value for it")


@pytest.mark.parametrize("small", [(waiting, SMALL), (sums, LARGE), (copy, 32)])
@pytest.mark.parametrize("turned", [False, True])
def test_what_needs_no_guard_or_stands_outside_it_joins(small, turned):
    a, b, c, d = vectors(4)
    calls = [(sums, LARGE, a, b), (*small, c, d)]
    assert len(stages_of(*(calls[::-1] if turned else calls))) == 1


# ------------------------------------------------------------------------------- barriers
def waits(producer, consumer, scope="GLOBAL"):
    return PairScope(producer, consumer, 0, 0, "RAW", scope, "", NOWHERE, NOWHERE)


def stage(members, *crossing, local=None):
    return Stage(members, ItemSpace("ids", 1, local), None, crossing)


@pytest.mark.parametrize(
    ("crossing", "barriers"),
    [
        ([], ()),
        ([(0, 1)], (1,)),
        ([(0, 2)], (2,)),
        ([(0, 1), (0, 2)], (1,)),
        ([(0, 1), (1, 2), (0, 2)], (1, 2)),
        ([(0, 1), (0, 2), (1, 2)], (1, 2)),
        ([(0, 3), (1, 3), (0, 2)], (2,)),
        ([(0, 3), (2, 3), (0, 2)], (2, 3)),
        ([(0, 3), (1, 2)], (2,)),
    ],
)
def test_as_few_barriers_as_there_can_be(crossing, barriers):
    assert barriers_of(stage((0, 1, 2, 3), *(waits(*pair) for pair in crossing))) == barriers


def test_scopes_are_those_of_the_chosen_work_groups():
    inside, outside, local = waits(0, 1), waits(0, 2), waits(1, 2, "GROUP")
    found = group_scopes(
        [inside, outside, local], [stage((0, 1), inside, local, local=(8,)), stage((2,), outside)]
    )
    assert [d.scope for d in found] == ["GROUP", "GLOBAL", "GROUP"]
    assert found[0].reason.endswith("inside one work-group of 8 only, the size that fusionq chose")
    assert found[1:] == (outside, local)


@fq.kernel
def doubled_by_first(item: fq.NdItem, a, first, out):
    i = item.get_global_id(0)
    out[i] = a[i] * first[i // 4]


@fq.kernel
def first_of_reversed(item: fq.NdItem, out, first):
    i = item.get_global_id(0)
    if item.get_local_id(0) == 0:
        first[i // 4] = out[out.shape[0] - 1 - i]


def test_the_reason_is_the_dependence_that_no_work_group_holds():
    # The first in order, of `first`, stays inside work-groups.
    with fq.FusionQueue("reference") as queue:
        a, first, out = (fq.Buffer(np.ones(n, np.int32)) for n in (16, 4, 16))
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(doubled_by_first, fq.NdRange(16, 4), a, first, out)
            queue.submit(first_of_reversed, fq.NdRange(16, 4), out, first)
    assert [d.scope for d in f.report.dependences] == ["GROUP", "GLOBAL"]
    assert "RAW dependence of submission 1 on submission 0 has scope GLOBAL" in str(f.report)
