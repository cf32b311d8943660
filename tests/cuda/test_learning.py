"""Lists that learn from their runs, with a worker process that leaves the GPU alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import standing
from fusionq.execution.background import BACKGROUND
from fusionq.execution.list_record import RECORDS, ListRecord
from tests.unit.cuda.test_streams import product

ROOT = Path(__file__).parents[2]

N, STEPS = 4096, 8


@fq.kernel
def three_points(item: fq.Item, a, out):
    i = item.get_id(0)
    left = a[i - 1] if i > 0 else a[i]
    right = a[i + 1] if i + 1 < a.shape[0] else a[i]
    out[i] = left + a[i] + right


BUILDS = """
from fusionq.backends.cuda.devices import device
from fusionq.backends.cuda.runtime import load_driver
from fusionq.backends.registry import builder_for
import fusionq as fq, numpy as np
from tests.unit.lists import submission

@fq.kernel
def scale(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i] * 2

made = builder_for("cuda")
one = submission(scale, 64, *(np.zeros(64, np.float32) for _ in range(2)))
assert made.keep(made.build(one.ir, "strict")).binary
print(load_driver().cuDevicePrimaryCtxGetState(device(0)._handle))
"""


def test_what_builds_makes_no_context(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(BUILDS)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(", 0)"), done.stdout


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FUSIONQ_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FUSIONQ_CACHE", "on")
    monkeypatch.delenv("FUSIONQ_ADAPT", raising=False)
    RECORDS.clear()
    yield
    RECORDS.clear()
    BACKGROUND.stop()


def chosen(
    queue: fq.FusionQueue,
    learns: fq.Fusion,
    seconds: float,
    replays: int,
    start: Callable[[], object],
) -> ListRecord:
    """What is known of ``learns`` once one way to run it is chosen; ``start`` comes before each
    ``replays`` of it."""
    end = time.monotonic() + seconds
    while True:
        start()
        for _ in range(replays):
            learns.replay()
        queue.wait()
        record = RECORDS.latest
        assert record is not None, "lists on a GPU learn"
        if record.trials.chosen is not None:
            return record
        assert time.monotonic() < end, record.trials.contenders
        if record.making is not None:
            time.sleep(0.005)


def test_a_list_that_comes_again_tries_others_and_stays_the_same(queue: fq.FusionQueue) -> None:
    values = np.random.default_rng(7).random(N, np.float32)
    a, b = fq.Buffer(values), fq.Buffer(N, np.float32)

    def submit() -> None:
        for k in range(STEPS):
            queue.submit(three_points, N, *((b, a) if k % 2 else (a, b)))

    with fq.fusion(queue, strategy="unfused") as unfused:
        submit()
    expected = a.numpy().copy()
    assert unfused.report.strategy == "unfused"
    a.write(values)
    with fq.fusion(queue) as learns:
        submit()
    np.testing.assert_array_equal(a.numpy(), expected)
    # They would grow beyond all bounds.
    record = chosen(queue, learns, 60, 50, lambda: a.write(values))
    assert record.trials.contenders["overlap"].seconds, record.trials.contenders
    persistent = record.trials.contenders["megakernel"]  # of 4,096 elements it is far slower
    assert persistent.seconds or "model" in persistent.reason, persistent
    for _ in range(600):  # some of them are timed
        a.write(values)
        learns.replay()
        np.testing.assert_array_equal(a.numpy(), expected)


def test_rings_with_slots_of_other_sizes_are_tried(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the persistent kernel has rings, as far behind as it may be here."""
    monkeypatch.setattr(standing, "NEAR", 1e9)
    monkeypatch.setattr(standing, "MOST_SLOWDOWN", 1e9)
    width = 1024
    rng = np.random.default_rng(3)
    weights = [
        fq.Buffer((rng.standard_normal((2 * width, width)) / 32).astype(np.float32))
        for _ in range(4)
    ]
    start = rng.standard_normal(width).astype(np.float32)
    x, y = fq.Buffer(start), fq.Buffer(width, np.float32)

    def submit() -> None:
        for k in range(256):
            space = fq.NdRange((width, 128), (1, 128))
            queue.submit(product, space, weights[k % 4], *((y, x) if k % 2 else (x, y)))

    with fq.fusion(queue, strategy="unfused"):
        submit()
    expected = x.numpy().copy()
    x.write(start)
    with fq.fusion(queue) as learns:
        submit()
    record = chosen(queue, learns, 240, 20, lambda: x.write(start))
    tried = [name for name, own in record.trials.contenders.items() if own.compared or own.seconds]
    others = {*record.trials.variants["megakernel"]}
    assert others and others & {*tried}, record.trials.contenders
    for _ in range(20):
        x.write(start)
        learns.replay()
        np.testing.assert_array_equal(x.numpy(), expected)
    assert "megakernel" in str(learns.report.choice)
