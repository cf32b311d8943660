"""The cost model: what it counts, and which way each of its terms points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import Submission
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.ir.nodes import ArrayParam, Persistent
from fusionq.megakernel.schedule import make_schedule
from fusionq.planning.cost import Estimate, ListWork, StageWork, Work, estimate
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import sizes_of
from fusionq.planning.list_work import list_work
from fusionq.planning.planner import make_plan
from fusionq.planning.predicted import predicted_seconds
from tests.unit.lists import submission, submissions
from tests.unit.targets import TWO_CORES

WEIGHTS = TWO_CORES.weights


@fq.kernel
def blur(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = (a[i - 1] + a[i] + a[i + 1]) * 0.25
    else:
        b[i] = a[i]


@fq.kernel
def row_sums(item: fq.Item, a: Any, out: Any) -> None:
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += np.exp(a[i, k]) / np.float32(3)
    out[i] = np.sqrt(total)


def steps(n: int, number: int) -> tuple[Submission, ...]:
    a, b = np.zeros(n, np.float32), np.zeros(n, np.float32)
    return submissions(*((blur, n, *((a, b) if k % 2 == 0 else (b, a))) for k in range(number)))


def work_of(listed: tuple[Submission, ...], target: Target) -> tuple[ListWork, int]:
    """What the model sees of a list, and the instructions of the schedule that it gets."""
    plan = make_plan(listed, FusionOptions(strategy="megakernel"), target)
    (stage,) = plan.stages
    found = list_work(Questions(listed), stage, [(k,) for k in range(len(listed))], target)
    body = stage.kernel.body[0]
    assert isinstance(body, Persistent)
    n = listed[0].range[0]  # type: ignore[index]  # a plain range
    assert isinstance(n, int)
    params = [
        {p.name: n for p in body.codes[use.code].kernel.params if not isinstance(p, ArrayParam)}
        for use in body.stages
    ]
    return found, len(make_schedule(body, params, 8 * n, target).stage)


@pytest.mark.parametrize("n", [100, 5_000, 70_000, 300_000, 3_000_001])
@pytest.mark.parametrize("workers", [2, 5])
def test_the_tiles_are_those_of_the_schedule(n: int, workers: int) -> None:
    work, instructions = work_of(steps(n, 6), replace(TWO_CORES, resident_workers=workers))
    assert sum(stage.tiles for stage in work.stages) == instructions
    assert len(work.stages) == 6
    assert work.pipelined
    assert work.nbytes == 8 * n


def test_tiles_of_a_long_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark's: 32 steps over 16.7 million points; and where that is too many."""
    listed = steps(1 << 24, 32)
    assert sum(s.tiles for s in work_of(listed, TWO_CORES)[0].stages) == 131_072
    monkeypatch.setattr("fusionq.megakernel.schedule.MOST_INSTRUCTIONS", 100_000)
    assert sum(s.tiles for s in work_of(listed, TWO_CORES)[0].stages) == 65_536


def test_what_a_stage_does() -> None:
    n = 1000
    stage = work_of(steps(n, 3), TWO_CORES)[0].stages[0]
    # The last work-item does not take the first side of the condition.
    assert stage.whole == Work(4 * ((n - 1) * (3 + 1) + (1 + 1)))
    assert stage.inside == Work(4 * n * (3 + 1))
    assert (stage.items, stage.nbytes) == (n, 8 * n)


@fq.kernel
def by_linear_id(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0) // a.shape[1]
    j = item.get_id(0) % a.shape[1]
    if i > 0 and 0 < j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j - 1] + a[i, j + 1]


def test_nothing_is_divided_where_rows_are_cut() -> None:
    a, b = (np.zeros((300, 300), np.float32) for _ in range(2))
    listed = submissions((by_linear_id, 90_000, a, b), (by_linear_id, 90_000, b, a))
    work, _ = work_of(listed, TWO_CORES)
    assert all(s.whole.serial > 0 for s in work.stages)
    assert all(s.inside is not None and s.inside.serial == 0 for s in work.stages)


def test_loops_count_as_often_as_they_run() -> None:
    one = submission(row_sums, 3, np.zeros((3, 50), np.float32), np.zeros(3, np.float32))
    found, division = item_work(one.ir, sizes_of(one), TWO_CORES), WEIGHTS.float_division
    gathered = 50 * WEIGHTS.gathered_bytes
    assert found.accessed == gathered + 4  # a row each: neighbours are a row apart
    assert found.functions == pytest.approx(50 * (1 + division) + division)
    assert found.serial == 0


@fq.kernel
def accesses(item: fq.NdItem, a: Any, table: Any, counts: Any, out: Any) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    k = i * 1 + 2
    out[i, j] = a[i, j + 1] + a[0, k] + a[k, a.shape[1] - j - 1]  # consecutive or the same: 4 * 4
    out[i, 2 * j] = a[i, min(j, 5)]  # every other element, and a clamped index: 2
    out[table[j], j] = a[j, 0]  # rows that are loaded, the transposed: 2, and 8 consecutive bytes
    out[i, j // 3] = np.float32(j % 8)  # a division and its element, a shift
    out[(i + 1) % out.shape[0], j] = np.float32(0)  # one division for all neighbours: 4
    if item.get_local_id(1) == 0:
        fq.AtomicRef(counts, i).fetch_add(1)
    if j < 4:
        out[i, j] = np.exp(a[i, j])  # by 4 of 64 work-items
    for s in range(j, a.shape[1] // 2, 4):  # 32 less than half of 256, by fours: 24 times
        out[s, i] = a[i, s]


def test_what_is_accessed_by_which_neighbours() -> None:
    a, out = np.zeros((2, 256), np.float32), np.zeros((2, 256), np.float32)
    table, counts = np.zeros(64, np.int64), np.zeros(2, np.int32)
    one = submission(accesses, fq.NdRange((2, 64), (1, 16)), a, table, counts, out)
    found = item_work(one.ir, sizes_of(one), TWO_CORES)
    assert found.accessed == 4 * 4 + 8 + 4 + (4 + 4) * 4 / 64 + 24 * (4 + WEIGHTS.gathered_bytes)
    assert found.serial == 2 + 2 + 1 + WEIGHTS.integer_division + WEIGHTS.atomic_operation / 16
    assert found.functions == 4 / 64


@fq.kernel
def repeated(item: fq.Item, a: Any, out: Any) -> None:
    i = item.get_id(0)
    value = a[i] + a[i]  # 4 bytes: the second is the first
    if i > 0:
        value += a[i] + a[i - 1]  # 4
    if i > 0:
        value += a[i - 1]  # 0
    if i > 1:
        value += a[i - 1]  # 4: who is here has been above, but compilers do not find out
    value += a[i - 1]  # 4
    out[i] = value  # 4


def test_loads_that_are_repeated() -> None:
    one = submission(repeated, 64, np.zeros(64, np.float32), np.zeros(64, np.float32))
    assert item_work(one.ir, sizes_of(one), TWO_CORES).accessed == 20


WORK = Work(1 << 20, 0.0)
STAGE = StageWork(0, 1 << 16, 1 << 19, WORK, None, 8)
EACH = tuple(replace(STAGE, launch=k) for k in range(8))
IN_CACHE = ListWork(EACH, 1 << 19, True, 1, False)
LARGE = replace(STAGE, nbytes=1 << 28, whole=Work(1 << 29, 0.0))
BEYOND = ListWork(tuple(replace(LARGE, launch=k) for k in range(8)), 1 << 28, True, 4, False)


def of(work: ListWork, **costs: float) -> Estimate:
    """With all workers: a single one would take long."""
    costs = {"alone_seconds": 1.0, **costs}
    target = replace(TWO_CORES, costs=replace(TWO_CORES.costs, **costs))
    return estimate(work, target)


def changed(work: ListWork, **what: Any) -> ListWork:
    return replace(work, stages=tuple(replace(stage, **what) for stage in work.stages))


@pytest.mark.parametrize("work", [IN_CACHE, BEYOND])
def test_what_makes_the_persistent_kernel_slower(work: ListWork) -> None:
    base = of(work)
    for slower in (
        of(changed(work, tiles=80)),
        of(work, instruction_seconds=1e-3),
        of(work, start_launches=100),
        of(changed(work, tiles=1), access_efficiency=1e-3),
    ):
        assert slower.persistent > base.persistent
    assert of(changed(work, tiles=80)).sequence == base.sequence


def test_a_single_worker_is_predicted_too() -> None:
    small = changed(IN_CACHE, items=1 << 10, whole=Work(1 << 10, 0.0))
    costs = TWO_CORES.costs
    assert of(small, alone_seconds=2e-7).persistent < of(small).persistent
    assert of(small, alone_seconds=4e-7).persistent == pytest.approx(
        of(small, alone_seconds=2e-7).persistent + len(small.stages) * 2e-7
    )
    slower = of(small, alone_seconds=2e-7, stage_seconds=2 * costs.stage_seconds)
    assert slower.persistent == of(small, alone_seconds=2e-7).persistent


@pytest.mark.parametrize("work", [IN_CACHE, BEYOND])
def test_what_makes_the_launches_slower(work: ListWork) -> None:
    base = of(work)
    assert of(work, launch_seconds=1).sequence > base.sequence
    joined = replace(work, stages=tuple(replace(s, launch=s.launch // 2) for s in work.stages))
    half = of(work, launch_seconds=1).sequence / 2
    assert of(joined, launch_seconds=1).sequence == pytest.approx(half)
    apart = of(work, launch_seconds=0).sequence
    assert of(joined, launch_seconds=0).sequence == pytest.approx(apart)
    one_wide = replace(joined.stages[0], items=1)
    beside = replace(joined, stages=(one_wide, *joined.stages[1:]))  # has the other's work-groups
    assert of(beside, launch_seconds=0).sequence == pytest.approx(apart)
    much = Work(float(1 << 32), 0.0)
    few, many = changed(work, items=1, whole=much), changed(work, whole=much)
    assert of(few).sequence > of(many).sequence  # one work-group has one compute unit


def test_what_makes_tiles_faster() -> None:
    heavy = changed(IN_CACHE, whole=Work(float(1 << 30), 0.0))
    inside = changed(heavy, inside=Work(float(1 << 30), 0.0))
    assert of(inside).persistent < of(heavy).persistent
    assert of(inside).sequence == of(heavy).sequence
    less = changed(heavy, inside=Work(float(1 << 29), 0.0))
    assert of(less).persistent < of(inside).persistent
    assert of(replace(heavy, affinity=True)).persistent < of(heavy).persistent
    alone = changed(heavy, tiles=1)  # one worker does them all: the others' caches have the rest
    assert of(replace(alone, affinity=True)) == of(alone)
    functions_too = changed(heavy, whole=Work(float(1 << 30), float(1 << 30)))
    assert of(functions_too).persistent > of(heavy).persistent
    assert of(functions_too).sequence > of(heavy).sequence


def test_what_makes_launches_along_rows_faster() -> None:
    """They have code of their own for the inside, as tiles have."""
    heavy = changed(IN_CACHE, whole=Work(float(1 << 30)), inside=Work(float(1 << 30)))
    rows = changed(heavy, along_rows=True)
    assert of(rows).sequence < of(heavy).sequence
    assert of(rows).persistent == of(heavy).persistent
    less = changed(rows, inside=Work(float(1 << 29)))
    assert of(less).sequence < of(rows).sequence
    assert of(changed(rows, inside=None)) == of(changed(heavy, inside=None))


@fq.kernel
def on_a_torus(item: fq.Item, a: Any, b: Any) -> None:
    h, w = a.shape[0], a.shape[1]
    i, j = item.get_id(0), item.get_id(1)
    total = 0
    for di in range(-1, 2):
        for dj in range(-1, 2):
            total += a[(i + di + h) % h, (j + dj + w) % w]
    b[i, j] = total


@pytest.mark.parametrize("n", [600, 1024])
def test_remainders_are_of_the_edges_of_rows_only(n: int) -> None:
    """Eight steps over 1024 x 1024 took as long as launches as in a persistent kernel; 180 times
    as long were predicted, by remainders that each work-item takes."""
    a, b = (np.zeros((n, n), np.int32) for _ in range(2))
    pairs = [(a, b), (b, a)] * 4
    listed = submissions(*((on_a_torus, (n, n), *pair) for pair in pairs))
    device = replace(TWO_CORES.device, splits_rows=True)
    target = replace(TWO_CORES, device=device)
    plan = make_plan(listed, FusionOptions(), target, measured=lambda: target)
    text = str(plan.choice)
    ratio = float(text.partition("sequence of launches (")[2].partition("x)")[0])
    assert 0.3 < ratio < 6, text
    launches = make_plan(listed, FusionOptions(strategy="unfused"), target)
    one, alone = (
        predicted_seconds(listed, made, target)
        for made in (launches, make_plan(listed, FusionOptions(strategy="megakernel"), target))
    )
    assert 0.3 < one / alone < 6


def test_what_lanes_do_one_after_the_other() -> None:
    serial = changed(IN_CACHE, whole=Work(0.0, 0.0, float(1 << 26)))
    assert of(serial).persistent > of(serial).sequence
    assert of(serial, serial_slowdown=1.0).persistent < of(serial).persistent
    assert of(serial, serial_seconds=1e-8).sequence > of(serial).sequence
    assert of(replace(serial, affinity=True)) == of(serial)  # no matter of bandwidth


def test_work_groups_of_a_fixed_size_are_started_one_by_one() -> None:
    many = changed(IN_CACHE, groups=4096)
    assert of(many).sequence > of(IN_CACHE).sequence
    assert of(many).persistent == of(IN_CACHE).persistent
    assert of(changed(IN_CACHE, groups=1)).sequence >= of(IN_CACHE).sequence
    assert of(changed(IN_CACHE, groups=0)).sequence > 0  # of an empty range


def test_pipelines_read_the_memory_once_for_a_block() -> None:
    slow = {"memory_bandwidth": 1e9}
    assert of(BEYOND, **slow).persistent < of(BEYOND, **slow).sequence / 3
    whole = of(replace(BEYOND, block=8), **slow)
    assert whole.persistent < of(BEYOND, **slow).persistent
    apart = of(replace(BEYOND, pipelined=False), **slow)
    assert apart.persistent > of(BEYOND, **slow).persistent
    within = of(replace(BEYOND, nbytes=TWO_CORES.kept_bytes), **slow)
    assert within.persistent < of(BEYOND, **slow).persistent


def test_a_margin_is_asked_for() -> None:
    assert Estimate(1.3, 1.0).prefers_persistent
    assert not Estimate(1.2, 1.0).prefers_persistent
    assert "1.30x" in str(Estimate(1.3, 1.0))


def test_memory_gives_no_more_than_is_accessed() -> None:
    """A launch that touches a row of an array does not read all of it."""
    row = changed(BEYOND, whole=Work(1 << 16, 0.0))
    slow = {"memory_bandwidth": 1e9, "launch_seconds": 1e-9}
    assert of(row, **slow).sequence < of(BEYOND, **slow).sequence / 2
