"""Which stages run side by side in one launch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.base.target import target_of
from fusionq.ir.nodes import Kernel
from fusionq.ir.side_by_side import side_by_side
from fusionq.planning import side_by_side as stages_beside
from fusionq.planning.list_work import launches_work
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.planning.plans import TARGET, Flagged, plan_of
from tests.unit.targets import device

GPU = target_of(
    device("gpu", compute_units=132, max_work_group_size=1024),
    sub_group_size=32, worker_size=256, vector_width=32, resident_workers=1056,
)  # fmt: skip


@fq.kernel
def sums(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = fq.reduce_over_group(item.get_group(), a[i], "add")


@fq.kernel
def sums_of_rows(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    total = fq.reduce_over_group(item.get_group(), a[i, item.get_local_id(1)], "add")
    out[i] = total


@fq.kernel
def twice(item: fq.Item, a, out):
    out[item.get_id(0)] = 2 * a[item.get_id(0)]


@fq.kernel
def gather(item: fq.NdItem, a, at, out):
    i = item.get_global_id(0)
    out[i] = fq.reduce_over_group(item.get_group(), a[at[i]], "add")


@fq.kernel
def mirrored(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    last = item.get_global_range(0) - 1
    out[i] = fq.reduce_over_group(item.get_group(), a[last - i], "add")


def ints(n: int = 64) -> np.ndarray:
    return np.zeros(n, np.int64)


def groups(n: int, local: int = 8) -> fq.NdRange:
    return fq.NdRange(n, local)


def beside(plan: Any) -> list[list[tuple[int, ...]]]:
    """The submissions of each stage of each launch."""
    return [
        [part.submissions for part in stage.beside] or [stage.submissions] for stage in plan.stages
    ]


def test_independent_kernels_whose_ranges_differ() -> None:
    x = ints()
    plan = plan_of(
        (sums, groups(64), x, ints()), (sums, groups(16), x, ints()), strategy="sequence"
    )
    assert beside(plan) == [[(0,), (1,)]]
    assert plan.strategy == "sequence"


@fq.kernel
def twice_2d(item: fq.Item, a, out):
    out[item.get_id(0), item.get_id(1)] = 2 * a[item.get_id(0), item.get_id(1)]


def test_stages_that_are_alike_are_asked_once_how_long_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def counted(*arguments: Any) -> float:
        asked.append(arguments)
        return 0.0

    monkeypatch.setattr(stages_beside, "launch_seconds", counted)
    calls, y, z = [], ints(), ints()
    for _ in range(3):
        others = ints(), ints()
        calls += [(mirrored, groups(64), y, others[0]), (mirrored, groups(16), z, others[1])]
        y, z = others
    plan = make_plan(submissions(*calls), FusionOptions(), TARGET, (), lambda: TARGET)
    assert beside(plan) == [[(0,), (1,)], [(2,), (3,)], [(4,), (5,)]]
    assert len(asked) == 2, "once for each range"


def test_vectors_stay_without_masks() -> None:
    """Kernels over plain ranges have guards, which compilers for CPUs make masks of."""
    shapes = (100_000, 64), (2, 64)
    calls = [
        (twice_2d, shape, np.zeros(shape, np.int64), np.zeros(shape, np.int64)) for shape in shapes
    ]
    assert beside(plan_of(*calls, strategy="sequence")) == [[(0,)], [(1,)]]


def test_require_has_one_kernel() -> None:
    x = ints()
    plan = plan_of(
        (sums, groups(64), x, ints()), (sums, groups(16), x, ints()), require=True
    )
    assert beside(plan) == [[(0,), (1,)]]
    assert plan.fallback is None and plan.strategy == "fused"


def test_unfused_stays_unfused() -> None:
    x = ints()
    plan = plan_of(
        (sums, groups(64), x, ints()), (sums, groups(16), x, ints()), strategy="unfused"
    )
    assert len(plan.stages) == 2


@pytest.mark.parametrize("how", ["read after write", "write after read", "write after write"])
def test_not_what_depends_on_each_other(how: str) -> None:
    x, y, z = ints(), ints(), ints()
    first, second = {
        "read after write": ((x, y), (y[8:], z)),
        "write after read": ((x, y), (z, x[8:24])),
        "write after write": ((x, y), (z, y[8:24])),
    }[how]
    plan = plan_of(
        (sums, groups(64), *first), (sums, groups(16), *second), strategy="sequence"
    )
    assert beside(plan) == [[(0,)], [(1,)]]


def test_halves_of_one_array_are_independent() -> None:
    x, y = ints(), ints()
    plan = plan_of(
        (sums, groups(32), x, y[:32]), (sums, groups(16), x, y[32:48]), strategy="sequence"
    )
    assert beside(plan) == [[(0,), (1,)]]


def test_not_what_cannot_be_analysed() -> None:
    x, y, at = ints(), ints(), ints()
    plan = plan_of(
        (sums, groups(64), x, y), (gather, groups(16), y, at, ints()), strategy="sequence"
    )
    assert beside(plan) == [[(0,)], [(1,)]]


def test_not_groups_of_other_sizes() -> None:
    x = ints()
    plan = plan_of(
        (sums, groups(64, 8), x, ints()), (sums, groups(16, 4), x, ints()), strategy="sequence"
    )
    assert beside(plan) == [[(0,)], [(1,)]]


def test_not_rows_of_other_lengths() -> None:
    a = np.zeros((64, 64), np.int64)
    plan = plan_of(
        (sums_of_rows, fq.NdRange((8, 8), (1, 8)), a, ints()),
        (sums_of_rows, fq.NdRange((16, 16), (1, 8)), a, ints()),
        strategy="sequence",
    )
    assert beside(plan) == [[(0,)], [(1,)]]


def test_beside_an_earlier_launch() -> None:
    """Two chains of which each step needs the one before: the second step of the second one runs
    beside that of the first, though the list has it later."""
    x, a, b, c, d = (ints() for _ in range(5))
    plan = plan_of(
        (sums, groups(64), x, a), (sums, groups(64), a[::-1], b),
        (sums, groups(16), x, c), (sums, groups(16), c[:16][::-1], d),
        strategy="sequence",
    )  # fmt: skip
    assert beside(plan) == [[(0,), (2,)], [(1,), (3,)]]


def test_never_before_what_it_needs() -> None:
    x, a, b, c = (ints() for _ in range(4))
    plan = plan_of(
        (sums, groups(64), x, a), (sums, groups(64), a[::-1], b), (sums, groups(16), b, c),
        strategy="sequence",
    )  # fmt: skip
    assert beside(plan) == [[(0,)], [(1,)], [(2,)]]


def test_no_more_local_memory_than_there_is() -> None:
    @fq.kernel
    def reverse(item: fq.NdItem, local, out):
        local[item.get_local_id(0)] = item.get_global_id(0)
        fq.group_barrier(item.get_group())
        out[item.get_global_id(0)] = local[7 - item.get_local_id(0)]

    found = []
    for share in (4, 2):
        queue = fq.FusionQueue("reference")
        elements = queue.device.local_memory_bytes // 8 // share
        with fq.fusion(queue, strategy="sequence") as f:
            for n in (64, 16, 24):
                out = fq.Buffer(n, np.int64)
                queue.submit(reverse, groups(n), fq.LocalAccessor(elements, np.int64), out)
        found.append(len(f.report.stages))
    assert found == [1, 2]


# ------------------------------------------------------------------------ where threads wait
def gpu_plan(*calls: Any, **options: Any) -> Any:
    return make_plan(submissions(*calls), FusionOptions(strategy="sequence", **options), GPU)


def test_threads_do_not_do_one_after_the_other() -> None:
    x = ints()
    plan = gpu_plan(*((sums, groups(64), x, ints()) for _ in range(3)))
    assert beside(plan) == [[(0,), (1,), (2,)]]


def test_but_where_a_device_is_full_anyway() -> None:
    n = 1 << 20
    x = ints(n)
    plan = gpu_plan(*((sums, groups(n, 128), x, ints(n)) for _ in range(2)))
    assert beside(plan) == [[(0, 1)]]


def test_nor_do_those_that_wait_at_barriers_for_memory_of_their_own() -> None:
    n = 1 << 20
    plan = gpu_plan(*((sums, groups(n, 128), ints(n), ints(n)) for _ in range(2)))
    assert beside(plan) == [[(0,), (1,)]]
    plain = gpu_plan(*((twice, n, ints(n), ints(n)) for _ in range(2)))
    assert beside(plain) == [[(0, 1)]]


def test_what_depends_on_each_other_stays_together() -> None:
    x, a, b, c, d = (ints() for _ in range(5))
    plan = gpu_plan(
        (twice, 64, x, a), (twice, 64, x, b), (twice, 64, a, c), (twice, 64, b, d),
    )  # fmt: skip
    assert beside(plan) == [[(0, 2), (1, 3)]]


def test_a_common_consumer_keeps_them_together() -> None:
    @fq.kernel
    def add(item: fq.Item, a, b, out):
        out[item.get_id(0)] = a[item.get_id(0)] + b[item.get_id(0)]

    x, a, b, c = (ints() for _ in range(4))
    plan = gpu_plan((twice, 64, x, a), (twice, 64, x, b), (add, 64, a, b, c))
    assert beside(plan) == [[(0, 1, 2)]]


def test_promoted_buffers_keep_them_together() -> None:
    x, a, b = ints(), Flagged(ints(), private=True), ints()
    plan = gpu_plan((twice, 64, x, a), (twice, 64, a, b), (twice, 64, x, ints()))
    assert beside(plan) == [[(0, 1, 2)]]


def test_launches_that_are_alike_have_one_kernel() -> None:
    x = ints()
    calls: list[Any] = []
    for _ in range(3):
        y, z, w = ints(), ints(), ints()
        calls += [(sums, groups(64), x[::-1], y), (sums, groups(16), x[::-1], z)]
        calls += [(gather, groups(64), y, z, w)]
        x = w
    plan = plan_of(*calls, strategy="sequence")
    kernels: list[Kernel] = [stage.kernel for stage in plan.stages if stage.beside]
    assert len(kernels) == 3 and len({id(kernel) for kernel in kernels}) == 1
    parts = side_by_side(kernels[0].body)
    assert parts is not None and len(parts.bodies) == 2


def test_each_work_item_is_predicted_to_do_its_own_kernel_only() -> None:
    x, n = ints(1 << 16), 1 << 16
    calls = [(sums, groups(size, 128), x, ints(size)) for size in (n, n // 4)]
    together = plan_of(*calls, strategy="fused")
    assert beside(together) == [[(0,), (1,)]]
    apart = plan_of(*calls, strategy="unfused")
    works = [
        launches_work(Questions(submissions(*calls), ()), plan.stages, TARGET)[0]
        for plan in (together, apart)
    ]
    whole, parts = works[0][0].whole, [stage.whole for stage in works[1]]
    assert whole == parts[0] + parts[1]


@fq.kernel
def products(item: fq.NdItem, a, x, out):
    own = 0
    for k in range(item.get_local_id(1), a.shape[1], 128):
        own += a[item.get_global_id(0), k] * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


WORKERS = replace(GPU, device=replace(GPU.device, groups_in_workers=True))


def stages_of_workers(*calls: Any, **options: Any) -> list[tuple[int, ...]]:
    """The submissions of each stage of a persistent kernel."""
    plan = make_plan(
        submissions(*calls), FusionOptions(strategy="megakernel", **options), WORKERS
    )
    return [part for stage in plan.stages for part in stage.inner or (stage.submissions,)]


def product_of(rows: int, x: Any, out: Any, a: Any = None) -> tuple[Any, ...]:
    a = np.zeros((rows, 64), np.int64) if a is None else a
    return products, fq.NdRange((rows, 128), (1, 128)), a, x, out


def test_products_that_leave_workers_idle_are_stages_of_one_wave() -> None:
    x, y, z = ints(), ints(128), ints(128)
    first = product_of(512, ints(), x)
    assert stages_of_workers(first, product_of(128, x, y), product_of(128, x, z)) == [
        (0,), (1,), (2,),
    ]  # fmt: skip


def test_products_that_keep_workers_busy_stay_one_stage() -> None:
    x = ints()
    first = product_of(512, ints(), x)
    many = [product_of(1 << 12, x, ints(1 << 12)) for _ in range(2)]
    assert stages_of_workers(first, *many) == [(0,), (1, 2)]


def test_products_that_need_each_other_stay_one_stage() -> None:
    """The second work-group reads what the same one has written."""

    @fq.kernel
    def scaled(item: fq.NdItem, a, x, y, out):
        own = 0
        for k in range(item.get_local_id(1), a.shape[1], 128):
            own += a[item.get_global_id(0), k] * x[k]
        total = fq.reduce_over_group(item.get_group(), own, "add")
        if item.get_local_id(1) == 0:
            out[item.get_global_id(0)] = total * y[item.get_global_id(0)]

    x, y, z, a = ints(), ints(128), ints(128), np.zeros((128, 64), np.int64)
    space = fq.NdRange((128, 128), (1, 128))
    calls = [product_of(512, ints(), x), product_of(128, x, y), (scaled, space, a, x, y, z)]
    assert stages_of_workers(*calls) == [(0,), (1, 2)]


def test_waves_end_where_buffers_are_promoted() -> None:
    x, y, z = ints(), ints(128), ints(128)
    last = Flagged(ints(128), private=True)
    calls = [product_of(512, ints(), x), product_of(128, x, y), product_of(128, x, z)]
    alone = (twice, 128, y, last), (twice, 128, last, z)
    assert stages_of_workers(*calls, *alone)[1][:2] == (1, 2)
