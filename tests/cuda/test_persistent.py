"""Persistent kernels on a GPU: lists at random, very many launches, what does not fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given

import fusionq as fq
from fusionq.backends.cuda.program import CudaProgram
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.megakernel.launch import JoinedLaunches
from tests import long_lists
from tests.e2e.test_work_group_stages import LISTS, buffers
from tests.property.group_id_programs import group_id_programs
from tests.property.list_runs import runs_on_gpus
from tests.property.programs import Program
from tests.property.running import examples
from tests.property.stage_programs import stage_programs
from tests.property.test_megakernels import SEEDS, check
from tests.property.tilings import random_tilings

LAUNCHES = 100_000
ROUNDS = 500
"""Launches between two looks at the results."""


@fq.kernel
def mixed(item: fq.Item, a, b):
    """Every bit of the neighbours' counts."""
    i = item.get_id(0)
    n = a.shape[0]
    b[i] = a[i] * 3 + a[(i + 1) % n] - (a[(i + n - 1) % n] >> 2) + i


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield


@examples(60)
@given(stage_programs(), SEEDS)
def test_random_lists(program: Program, seed: int) -> None:
    assume(runs_on_gpus(program))
    check(program, "cuda", seed)


@examples(60)
@given(group_id_programs(wide=True), SEEDS)
def test_elements_named_by_work_groups(program: Program, seed: int) -> None:
    check(program, "cuda", seed)


@pytest.mark.parametrize("form", [f.name for f in PROGRAMS["prefix_sum"].forms])
def test_prefix_sums_of_many_groups(queue: fq.FusionQueue, form: str) -> None:
    """Tiles of several work-groups, as planning has them for large arrays."""
    program, size = PROGRAMS["prefix_sum"], (1 << 20,)
    arrays = program.arrays(size, np.random.default_rng(0))
    buffers = {name: fq.Buffer(array) for name, array in arrays.items()}
    submit = next(f.submit for f in program.forms if f.name == form)
    with fq.fusion(queue, strategy="megakernel") as f:
        submit(queue, size, *buffers.values())
    assert f.report.strategy == "megakernel"
    np.testing.assert_array_equal(buffers["out"].numpy(), np.cumsum(arrays["x"]))


@pytest.mark.parametrize("name", sorted(LISTS.keys() - {"functions of sub-groups"}))
def test_stages_of_work_groups(queue: fq.FusionQueue, name: str) -> None:
    """Those of sub-groups ask for 16 work-items in one, and a warp has 32."""
    expected, given = buffers(), buffers()
    with random_tilings(7), fq.fusion(queue, strategy="megakernel", require=True) as f:
        LISTS[name](queue, given)
    f.replay()
    for _ in range(2):
        LISTS[name](queue, expected)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def steps(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer, strategy: str) -> fq.Fusion:
    with fq.fusion(queue, strategy=strategy) as f:
        for _ in range(4):
            queue.submit(mixed, a.shape[0], a, b)
            a, b = b, a
    return f


@fq.kernel
def three_points(item: fq.Item, a, b):
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        b[i] = a[i - 1] * a[i + 1] + a[i]
    else:
        b[i] = a[i]


@fq.kernel
def five_points(item: fq.Item, a, b):
    y, x = item.get_id(0), item.get_id(1)
    if 0 < y < a.shape[0] - 1 and 0 < x < a.shape[1] - 1:
        b[y, x] = (a[y - 1, x] + a[y + 1, x]) * a[y, x - 1] - a[y, x + 1]
    else:
        b[y, x] = a[y, x]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("start", [0, 16, 3])
@pytest.mark.parametrize("shape", [(100_003,), (100_000,), (70, 1536), (300, 700), (65, 2047)])
def test_rows_in_vectors(queue: fq.FusionQueue, shape, start, dtype) -> None:
    """Views that begin where vectors do, or elsewhere; rows that fill all lanes, or half."""
    kernel = three_points if len(shape) == 1 else five_points
    found = []
    for strategy in ("unfused", "megakernel"):
        rng = np.random.default_rng(1)
        whole = [rng.integers(0, 9, (*shape[:-1], shape[-1] + 32)) for _ in range(2)]
        buffers = [fq.Buffer(x.astype(dtype)) for x in whole]
        a, b = (x[..., start : start + shape[-1]] for x in buffers)
        with fq.fusion(queue, strategy=strategy) as f:
            for _ in range(5):
                queue.submit(kernel, shape, a, b)
                a, b = b, a
        f.replay()
        assert strategy == "unfused" or f.report.strategy == strategy
        found.append([x.numpy().copy() for x in buffers])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def pair(n: int) -> tuple[fq.Buffer, fq.Buffer]:
    return fq.Buffer(np.random.default_rng(n).integers(0, 1 << 62, n)), fq.Buffer(n, np.int64)


@pytest.mark.parametrize("columns", [2048, 2000, 1001, 100])
def test_loads_ahead(queue: fq.FusionQueue, columns: int) -> None:
    """Whole turns of loads, a rest, and a rest only."""
    expected, given = (long_lists.arrays(192, columns) for _ in range(2))
    with fq.fusion(queue, strategy="megakernel", require=True) as f:
        long_lists.submit(queue, given)
    f.replay()
    for _ in range(2):
        long_lists.submit(queue, expected)
    for one, other in zip(given[2:], expected[2:], strict=True):
        np.testing.assert_array_equal(
            np.array(one.numpy()).view(np.uint32), np.array(other.numpy()).view(np.uint32)
        )


@pytest.mark.parametrize("n", [3_000, 300_000])
def test_very_many_launches(queue: fq.FusionQueue, n: int) -> None:
    """Small enough for waits to be most of it; on all multiprocessors."""
    (a, b), (x, y) = pair(n), pair(n)
    fused, plain = steps(queue, a, b, "megakernel"), steps(queue, x, y, "unfused")
    assert fused.report.strategy == "megakernel"
    for _ in range(LAUNCHES * 3_000 // n // ROUNDS):
        for _ in range(ROUNDS):
            fused.replay()
            plain.replay()
        np.testing.assert_array_equal(a.numpy(), x.numpy())


def test_no_more_workers_than_run_at_once(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CudaProgram, "resident_blocks", lambda *_: 5)
    (a, b), (x, y) = pair(50_000), pair(50_000)
    f = steps(queue, a, b, "megakernel")
    (schedule,) = f._list.run.schedules
    assert schedule is not None and schedule.workers == 5
    steps(queue, x, y, "unfused")
    np.testing.assert_array_equal(a.numpy(), x.numpy())


def test_more_workers_than_run_at_once_are_refused(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the driver, before anything runs; nothing is lost."""
    monkeypatch.setattr(CudaProgram, "resident_blocks", lambda *_: 1 << 20)
    target = queue._state.target
    object.__setattr__(target, "resident_workers", 1 << 14)
    try:
        a, b = pair(50_000)
        with pytest.raises(fq.DeviceError, match="blocks that have to run at once"):
            steps(queue, a, b, "megakernel")
    finally:
        object.__setattr__(target, "resident_workers", 1056)
    steps(queue, a, b, "unfused")
    queue.wait()


def test_launches_are_captured() -> None:
    """Workers count launches themselves, those of a graph with those of the queue."""
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with fq.FusionQueue(stream) as queue:
        (a, b), (x, y) = pair(3_000), pair(3_000)
        f, plain = steps(queue, a, b, "megakernel"), steps(queue, x, y, "unfused")
        queue.wait()
        stream.begin_capture()
        f.replay()
        graph = stream.end_capture()
        for _ in range(30):
            graph.launch(stream)
            f.replay()
        queue.wait()
        for _ in range(60):
            plain.replay()
        np.testing.assert_array_equal(a.numpy(), x.numpy())


@fq.kernel
def added(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] += a[i] >> 3


def test_replays_of_several_launches_are_one_graph(queue: fq.FusionQueue) -> None:
    """One of them a persistent kernel."""
    found = []
    for strategy in ("megakernel", "unfused"):
        a, b = pair(50_000)
        with fq.fusion(queue, strategy=strategy, barriers="all") as f:
            for _ in range(2):
                queue.submit(mixed, a.shape[0], a, b)
                queue.submit(mixed, a.shape[0], b, a)
            # Two in one stage, which then has a launch of its own.
            queue.submit(added, a.shape[0], b, a)
            queue.submit(added, a.shape[0], a, b)
        for _ in range(100):
            f.replay()
        queue.wait()
        found.append(a.numpy().copy())
        if strategy == "megakernel":
            assert isinstance(f._list.run.one, JoinedLaunches)
    np.testing.assert_array_equal(*found)


@fq.kernel
def row_product(item: fq.NdItem, a, x, out):
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], 128):
        own += a[item.get_global_id(0), k] * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[item.get_global_id(0)] = total


def test_lists_of_other_sizes_in_turn(queue: fq.FusionQueue) -> None:
    """The first one's sizes are constants in its kernel, since it streams; the others share one."""
    rng = np.random.default_rng(0)
    texts = []
    for rows, columns in ((256, 2048), (384, 2048), (256, 2048), (256, 1024), (384, 2048)):
        space = fq.NdRange((rows, 128), (1, 128))
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (
            (rows, columns), (rows, rows), columns
        )]  # fmt: skip
        a, b, x = map(fq.Buffer, arrays)
        found = []
        for strategy in ("unfused", "megakernel"):
            y, out = fq.Buffer(rows, np.float32), fq.Buffer(rows, np.float32)
            with fq.fusion(queue, strategy=strategy) as products:
                queue.submit(row_product, space, a, x, y)
                queue.submit(row_product, space, b, y, out)
            queue.wait()
            found.append(out.numpy().copy())
        np.testing.assert_array_equal(found[0], found[1])
        assert products.report.strategy == "megakernel", products.report.fallback
        texts.append(products.report.device_source)
    assert texts[1] == texts[3] == texts[4] != texts[0]
    assert "_shape1 = 2048" in texts[0]
