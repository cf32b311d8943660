"""What a persistent kernel's workers read ahead: run on the host, which takes note of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq
from fusionq.codegen import queue_layout as q
from fusionq.ir.tile_footprint import read_ahead
from fusionq.report.model import _tiled
from fusionq.report.text import _ahead
from tests.unit.codegen.host_dialect import COMPILER
from tests.unit.codegen.test_host_workers import TARGET, assert_memory, results, run
from tests.unit.megakernel.cases import Calls
from tests.unit.megakernel.plans import PersistentPlan, persistent


@fq.kernel
def product(item: fq.Item, w, x, out):  # type: ignore[no-untyped-def]  # kernel language
    row = item.get_id(0)
    value = np.int64(0)
    for j in range(w.shape[1]):
        value += w[row, j] * x[j]
    out[row] = value


@fq.kernel
def scaled(item: fq.Item, gain, table, pick, x):  # type: ignore[no-untyped-def]  # kernel language
    i = x.shape[0] - 1 - item.get_id(0)
    x[i] = x[i] * gain[i + 1] + table[pick[i], 0] + table[0, 1]


@fq.kernel
def blocks(item: fq.Item, w, by, x):  # type: ignore[no-untyped-def]  # kernel language
    i = x.shape[0] - 1 - item.get_id(0)
    last = min(i // 2 + by, w.shape[1] - 1)
    for k in range(1, 3):
        x[i] += w[k, last, 2 * i] - w[k - 1, last, 2 * i + 1]


def decode(n: int) -> Calls:
    """Two products with weights that nobody writes, a vector that is scaled, and what cannot be
    known: rows that data choose."""
    def values(*shape: int) -> npt.NDArray[Any]:
        return np.arange(np.prod(shape), dtype=np.int64).reshape(shape) % 7

    x, y = values(n), values(n)
    table, pick = values(n, 3), values(n) % n
    return [
        (product, n, values(n, n), x, y),
        (scaled, n, values(n + 1), table, pick, y),
        (product, n, values(n, n), y, x),
        (blocks, n, values(3, n, 2 * n), 1, x),
        (product, n, values(2 * n, 2 * n)[::2, ::2], x, y),
        (product, n, values(2 * n, n)[::2], y, x),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> PersistentPlan:
    return persistent(*decode(12))


def test_arrays_that_no_stage_writes_and_of_which_tiles_read_their_own(
    plan: PersistentPlan
) -> None:
    found = read_ahead(plan.body)
    params = [plan.body.codes[s.code].kernel.params for s in plan.body.stages]
    assert [list(one.boxes) for one in found] == [
        ["w"], ["gain", "pick"], ["w"], ["w"], [], ["w"]
    ]  # fmt: skip
    assert all(len(one.boxes[p.name]) == p.ndim for one, own in zip(found, params, strict=True)
               for p in own if p.name in one.boxes)  # fmt: skip
    assert found[0].reasons == {"x": "a stage writes it"}
    assert "not known" in found[1].reasons["table"]
    assert found[4].reasons["w"] == "its elements are no neighbours in memory"


def test_the_report_says_what_is_read_ahead_and_what_not(plan: PersistentPlan) -> None:
    schedule = plan.schedule()
    silent = _tiled(plan.stage, schedule)
    assert not any(map(_ahead, silent))
    schedule.words[q.AHEAD] = 1
    texts = list(map(_ahead, _tiled(plan.stage, schedule)))
    assert texts[0] == ""  # it does not wait
    assert texts[1].startswith("gain, pick; not table (which elements a tile reads is not known")
    assert texts[2] == "w; not x (a stage writes it)"
    assert texts[4].startswith("nothing; not w (its elements are no neighbours in memory)")


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
@pytest.mark.parametrize("nbytes", [1 << 20, 200])
def test_what_is_asked_for(plan: PersistentPlan, nbytes: int, tmp_path: Path) -> None:
    """All that waiting tiles read of these arrays, and nothing outside of arrays; no more bytes
    than the target says."""
    device = replace(TARGET.device, reads_ahead=True)
    target = replace(TARGET, device=device, read_ahead_bytes=nbytes)
    done = run(plan, tmp_path, "turns", target=target)
    (wanted,) = results(plan, 1)
    done.launch()
    assert_memory(plan, wanted)
    asked = done.kernel.asked()
    weights = [a for call in plan.calls for a in call[2:] if isinstance(a, np.ndarray)]
    inside = 0
    covered = {k: set[int]() for k in range(len(weights))}
    for address, length in asked:
        for k, array in enumerate(weights):
            low, high = np.lib.array_utils.byte_bounds(array)
            if low <= address and address + length <= high:
                inside += 1
                covered[k] |= set(range(address - low, address - low + length))
                break
    assert inside == len(asked) > 0
    if nbytes == 200:
        tiles = sum(stage.tiles for stage in done.schedule.stages)
        assert sum(length for _, length in asked) <= nbytes * tiles
        return
    of = {id(array): k for k, array in enumerate(weights)}
    (_, _, first, *_), (_, _, gain, _, pick, _), (_, _, second, *_) = plan.calls[:3]
    rows = plan.calls[5][2]
    # The first stage waits for nothing, so that there is nothing to do ahead of.
    assert not covered[of[id(first)]]
    for array in (second, pick):
        assert covered[of[id(array)]] == set(range(array.nbytes))
    assert covered[of[id(gain)]] == set(range(8, gain.nbytes))
    row = 8 * rows.shape[1]
    of_rows = {at for k in range(len(rows)) for at in range(2 * row * k, 2 * row * k + row)}
    assert covered[of[id(rows)]] == of_rows
