"""``tune=True``: a choice is remembered, and by what it is found again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.validity import size_order
from tests.device_programs import COSTS_ARE_ASSUMED
from tests.e2e.tuned_lists import (
    Blurs,
    Measured,
    floats,
    forget,
    groups,
    less_one,
    repeated_sum,
    tuned,
)

pytestmark = pytest.mark.usefixtures("nothing_is_planned")


# ---------------------------------------------------------------------------- remembering
@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
def test_remembered_in_memory(queue: fq.FusionQueue, measured: Measured, fastest: str) -> None:
    measured.fastest = fastest
    tuned(queue, tune=True)
    for options in ({"tune": True}, {}, {"strategy": "auto"}):
        report = tuned(queue, **options)
        assert (report.strategy, report.cache) == (fastest, "memory")
        assert report.choice is not None and report.choice.endswith("(remembered)")
    assert len(measured.strategies) == 1


@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
@pytest.mark.parametrize("options", [{"tune": True}, {}])
def test_remembered_on_disk(
    target: str | None, measured: Measured, fastest: str, options: dict[str, Any]
) -> None:
    measured.fastest = fastest
    with fq.FusionQueue(target) as queue:
        tuned(queue, tune=True)
    forget()
    with fq.FusionQueue(target) as queue:
        report = tuned(queue, **options)
        assert (report.strategy, report.cache) == (fastest, "disk")
        assert report.choice is not None and report.choice.endswith("(remembered on disk)")
        assert tuned(queue, **options).cache == "memory"
    assert len(measured.strategies) == 1


def test_without_a_disk_cache(
    queue: fq.FusionQueue, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    tuned(queue, tune=True)
    forget()
    tuned(fq.FusionQueue("reference"), tune=True)
    assert len(measured.strategies) == 2


def test_what_was_prepared_before_is_not_used_any_longer(
    target: str | None, measured: Measured
) -> None:
    measured.fastest = "unfused"
    queue, other = fq.FusionQueue(target), fq.FusionQueue(target)
    lists = {q: Blurs() for q in (queue, other)}
    for q, list_ in lists.items():
        assert list_.run(q).report.strategy != "unfused"
    lists[queue].run(queue, tune=True)
    for q, list_ in lists.items():
        assert list_.run(q).report.strategy == "unfused"


SCRIPT = """
import json, sys
import numpy as np
import fusionq as fq


@fq.kernel
def turned(item, a, b):
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] + 1


queue = fq.FusionQueue(None if sys.argv[1] == "sycl" else sys.argv[1])
start = np.arange(200, dtype=np.float32)
a, b = fq.Buffer(start), fq.Buffer(200, np.float32)
with fq.fusion(queue, tune=sys.argv[2] == "tune") as f:
    for _ in range(2):
        queue.submit(turned, 200, a, b)
        queue.submit(turned, 200, b, a)
assert np.array_equal(a.numpy(), start + 4)
report = f.report
tuner = "fusionq.execution.autotune" in sys.modules
print(json.dumps([report.strategy, report.cache, report.choice, tuner]))
"""


@pytest.mark.one_backend
def test_remembered_for_other_processes(target: str | None, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(COSTS_ARE_ASSUMED + SCRIPT, encoding="utf-8")

    def run(tune: str) -> list[Any]:
        command = [sys.executable, str(script), target or "sycl", tune]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found

    strategy, cache, choice, tuning_is_there = run("tune")
    assert cache == "miss" and tuning_is_there
    remembered = choice.replace("(measured now)", "(remembered on disk)")
    assert remembered != choice
    assert run("auto") == [strategy, "disk", remembered, False]
    assert run("tune") == [strategy, "disk", remembered, True]


# ------------------------------------------------------------------------------- the key
def test_other_options_are_other_lists(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "unfused"
    tuned(queue, tune=True)
    assert tuned(queue, barriers="none").strategy != "unfused"
    tuned(queue, barriers="none", tune=True)
    assert len(measured.strategies) == 2
    assert tuned(queue, barriers="none").strategy == "unfused"


def test_other_orders_of_size_are_other_lists(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "unfused"
    low, beyond = size_order(96)
    tuned(queue, 96, tune=True)
    for same in (low, beyond - 16):
        tuned(queue, same, tune=True)
        assert tuned(queue, same).strategy == "unfused"
    assert len(measured.strategies) == 1
    for number, other in enumerate((low - 16, beyond), 2):
        assert tuned(queue, other).strategy != "unfused"
        tuned(queue, other, tune=True)
        assert len(measured.strategies) == number
    assert tuned(queue, 96).strategy == "unfused"


def test_a_measured_plan_goes_before_one_that_was_not(
    queue: fq.FusionQueue, measured: Measured
) -> None:
    """What fuses the larger size would serve the smaller one too."""
    measured.fastest = "unfused"

    def strategy(n: int, **options: Any) -> str:
        a, b, c = (fq.Buffer(floats(n)) for _ in range(3))
        with fq.fusion(queue, **options) as f:
            queue.submit(less_one, groups(n), a, b)
            queue.submit(less_one, groups(n), b, c)
        return f.report.strategy

    assert strategy(64, tune=True) == "unfused"
    for larger, smaller in ((4096, 64), (4112, 112)):
        assert strategy(larger) == "fused"
        assert strategy(smaller) == "unfused"
        forget()  # both come from disk the second time
    assert strategy(112) == "unfused"
    assert strategy(4096) == "fused"
    assert strategy(128) == "unfused"
    assert len(measured.strategies) == 1


# ------------------------------------------------------------------- replay, and scalars
@pytest.mark.parametrize("fastest", ["megakernel", "sequence", "unfused"])
def test_replay(queue: fq.FusionQueue, measured: Measured, fastest: str) -> None:
    measured.fastest = fastest
    list_ = Blurs()
    f = list_.run(queue, tune=True)
    for factor in (2.0, 3.0):
        queue.memcpy(list_.a, list_.start)
        list_.factor = np.float32(factor)
        f.replay(factor=np.float32(factor))
        assert list_.right()
    assert len(measured.strategies) == 1


def test_scalars_that_change(queue: fq.FusionQueue, measured: Measured) -> None:
    measured.fastest = "unfused"
    list_ = Blurs()
    for factor in (2.0, 3.0, 4.0):
        queue.memcpy(list_.a, list_.start)
        list_.factor = np.float32(factor)
        assert list_.run(queue, tune=True).report.strategy == "unfused"
        assert list_.right()
    assert len(measured.strategies) == 1


def test_integers_that_were_compiled_in_are_measured_once_more(
    queue: fq.FusionQueue, measured: Measured
) -> None:
    measured.fastest = "unfused"
    a = fq.Buffer(np.ones(64, np.float32))
    b, c = fq.Buffer(64, np.float32), fq.Buffer(64, np.float32)
    for times in (3, 5, 6, 7, 3):
        with fq.fusion(queue, tune=True) as f:
            queue.submit(repeated_sum, 64, a, b, times)
            queue.submit(repeated_sum, 64, b, c, times)
        assert f.report.strategy == "unfused"
        assert c.numpy()[7] == times * times
    assert len(measured.strategies) == 2
