"""The report: what it holds, how it reads, that a cached plan gives the same."""

from __future__ import annotations

import io
import json
import re
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import fusionq as fq
from fusionq.report.model import InsertedBarrier
from fusionq.report.report import Report

N = 8
MANY = 1 << 13


@fq.kernel
def double(item: fq.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] + x[i]


@fq.kernel
def increment(item: fq.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] + 1


@fq.kernel
def permute(item: fq.Item, x: Any, places: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[places[i]]


@fq.kernel
def turn_in_pairs(item: fq.NdItem, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    out[i] = x[i + 1 - 2 * item.get_local_id(0)]


def fused_report(queue: fq.FusionQueue) -> Report:
    x, out = fq.Buffer(np.arange(N, dtype=np.float32)), fq.Buffer(N, np.float32)
    temporary = fq.Buffer(N, np.float32, promote_private=True)
    with fq.fusion(queue) as fusion:
        queue.submit(double, N, x, temporary)
        queue.submit(increment, N, temporary, out)
    assert np.array_equal(out.numpy(), 2 * x.numpy() + 1)
    return fusion.report


def sequence_report(queue: fq.FusionQueue) -> Report:
    """Of a list that is longer than a work-group, which could wait for itself."""
    x, out = fq.Buffer(np.arange(MANY, dtype=np.float32)), fq.Buffer(MANY, np.float32)
    places = fq.Buffer(np.arange(MANY)[::-1].copy())
    middle, turned = fq.Buffer(MANY, np.float32), fq.Buffer(MANY, np.float32)
    with fq.fusion(queue) as fusion:
        queue.submit(double, MANY, x, middle)
        queue.submit(permute, MANY, middle, places, turned)
        queue.submit(increment, MANY, turned, out)
    assert np.array_equal(out.numpy(), 2 * x.numpy()[::-1] + 1)
    return fusion.report


@pytest.fixture
def queue() -> fq.FusionQueue:
    return fq.FusionQueue("reference")


def test_a_fused_list(queue: fq.FusionQueue) -> None:
    report = fused_report(queue)
    assert report.strategy == "fused"
    assert report.headline == "2 submissions → 1 kernel"
    (stage,) = report.stages
    assert stage.submissions == (0, 1)
    assert [kernel.kernel for kernel in stage.kernels] == ["double", "increment"]
    assert [kernel.span.text for kernel in stage.kernels] == [
        "queue.submit(double, N, x, temporary)",
        "queue.submit(increment, N, temporary, out)",
    ]
    assert stage.boundary is None
    assert report.fallback is None
    assert report.advice == ()
    (dependence,) = report.dependences
    assert (dependence.producer, dependence.consumer) == (0, 1)
    assert (dependence.buffer, dependence.kind, dependence.scope) == ("temporary", "RAW", "ITEM")
    (promotion,) = report.promotions
    assert (promotion.buffer, promotion.scope) == ("temporary", "private")


def test_a_sequence_says_why_and_what_would_help(queue: fq.FusionQueue) -> None:
    report = sequence_report(queue)
    assert report.strategy == "sequence"
    assert report.headline == "3 submissions → 2 kernels"
    first, second = report.stages
    assert (first.submissions, second.submissions) == ((0,), (1, 2))
    assert first.boundary is None
    assert second.boundary
    dependence, _ = report.dependences
    assert dependence.scope == "UNKNOWN"
    (advice,) = report.advice
    assert advice.startswith(f"middle ({dependence.producer_span} and {dependence.consumer_span})")
    text = str(report)
    # The reason stands with the dependence; the launch names it only.
    assert dependence.reason in second.boundary
    assert (
        "apart because: RAW dependence of submission 1 on submission 0 has scope UNKNOWN: " in text
    )
    assert text.count(dependence.reason) == 1
    assert "To fuse more" in text


def test_barriers_and_work_groups_are_shown(queue: fq.FusionQueue) -> None:
    x, out = fq.Buffer(np.arange(N, dtype=np.float32)), fq.Buffer(N, np.float32)
    middle, space = fq.Buffer(N, np.float32), fq.NdRange(N, 2)
    with fq.fusion(queue) as fusion:
        queue.submit(turn_in_pairs, space, x, middle)
        queue.submit(turn_in_pairs, space, middle, out)
    assert np.array_equal(out.numpy(), x.numpy())
    (stage,) = fusion.report.stages
    assert (stage.work_group, stage.barriers) == ((2,), 1)
    assert not stage.work_group_chosen
    assert stage.inserted == (
        InsertedBarrier(1, "RAW of middle, which [0] writes in the same work-group"),
    )
    text = str(fusion.report)
    assert "Launch 0 of 2 submissions, work-groups of 2, 1 barrier\n" in text
    lines = text.splitlines()
    (at,) = (k for k, line in enumerate(lines) if "── barrier" in line)
    assert lines[at].endswith("barrier: RAW of middle, which [0] writes in the same work-group")
    assert lines[at + 1].startswith("  [1] turn_in_pairs")


@fq.kernel
def turn_all(item: fq.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i // 4 * 4 + 3 - i % 4]


def test_a_chosen_work_group_and_a_barrier_that_was_asked_for(queue: fq.FusionQueue) -> None:
    x, out = fq.Buffer(np.arange(2048, dtype=np.float32)), fq.Buffer(2048, np.float32)
    middle = fq.Buffer(2048, np.float32, promote_private=True)
    with fq.fusion(queue, barriers="all") as fusion:
        queue.submit(turn_all, 2048, x, out)
        queue.submit(double, 2048, x, middle)
        queue.submit(turn_all, 2048, middle, out)
    (stage,) = fusion.report.stages
    assert stage.work_group_chosen
    first, second = stage.inserted
    assert (first.before, first.reason) == (1, "barriers='all' asks for it")
    assert second.before == 2
    assert "RAW of middle, which [1] writes in the same work-group" in second.reason
    text = str(fusion.report)
    assert f"work-groups of {stage.work_group[0]} (chosen by fusionq), 2 barriers" in text
    (promotion,) = fusion.report.promotions
    assert promotion.scope == "global"
    assert "to change that: promote_local" in text


@fq.kernel
def number(item: fq.NdItem, out: Any) -> None:
    out[item.get_global_id(0)] = item.get_local_id(0)


def test_advice_for_ranges_without_a_common_one(queue: fq.FusionQueue) -> None:
    x, out = fq.Buffer(np.zeros(N, np.float32)), fq.Buffer(N, np.float32)
    with fq.fusion(queue) as fusion:
        queue.submit(turn_in_pairs, fq.NdRange(N, 2), x, out)
        queue.submit(number, fq.NdRange(N, 4), x)
    assert "launch 1: submit both with one work-group size" in fusion.report.advice[-1]


def test_plain_text_holds_all_there_is_to_know(queue: fq.FusionQueue) -> None:
    report = fused_report(queue)
    text = str(report)
    assert "\x1b" not in text
    assert text.startswith("fusionq: fused, 2 submissions → 1 kernel\n")
    (dependence,) = report.dependences
    (promotion,) = report.promotions
    for piece in (
        f"{__file__}:",
        "queue.submit(double, N, x, temporary)",
        "temporary: [0] double → [1] increment  RAW ITEM",
        dependence.reason,
        str(dependence.producer_span),
        str(dependence.consumer_span),
        "out[i] = x[i] + x[i]",
        "out[i] = x[i] + 1",
        f"temporary: private — {promotion.reason}",
    ):
        assert piece in text, piece
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_console_shows_the_same_text(queue: fq.FusionQueue) -> None:
    report = fused_report(queue)
    plain, coloured = io.StringIO(), io.StringIO()
    Console(file=plain, width=500).print(report)
    Console(file=coloured, width=500, force_terminal=True).print(report)
    assert [line.rstrip() for line in plain.getvalue().splitlines()] == str(report).splitlines()
    assert "\x1b[" in coloured.getvalue()


def test_the_source_is_python_and_the_device_source_kept(queue: fq.FusionQueue) -> None:
    report = sequence_report(queue)
    compile(report.source, "<report>", "exec")
    assert report.source.count("\ndef ") + report.source.startswith("def ") == 2
    assert len(report.device_sources) == 2
    assert all(source.strip() in report.device_source for source in report.device_sources)


def test_as_json(queue: fq.FusionQueue) -> None:
    report = sequence_report(queue)
    found = json.loads(json.dumps(report.to_dict()))
    assert list(found) == [
        "strategy", "headline", "stages", "dependences", "promotions", "recomputed",
        "recomputed_share", "fallback", "choice", "advice", "notes", "cache", "timings_seconds",
        "source", "device_source",
    ]  # fmt: skip
    assert found["stages"][1]["kernels"][0]["kernel"] == "permute"
    assert found["stages"][1]["kernels"][0]["span"]["file"] == __file__
    assert found["dependences"][0]["kind"] == "RAW"
    assert found["timings_seconds"] == report.timings


def test_the_same_from_the_cache() -> None:
    def without_time(report: Report) -> dict[str, Any]:
        values = report.to_dict()
        del values["cache"], values["timings_seconds"]
        return values

    queue = fq.FusionQueue("reference")
    first, second = (fused_report(queue) for _ in range(2))
    assert second.cache == "memory"
    assert without_time(first) == without_time(second)


def test_a_report_does_not_change(queue: fq.FusionQueue) -> None:
    report = fused_report(queue)
    with pytest.raises(FrozenInstanceError):
        report.cache = "disk"  # type: ignore[misc]
    timings = {"analysis": 0.5}
    made = Report(report.plan, report.submissions, (), "miss", timings)
    timings["analysis"] = 7.0
    assert made.timings == {"analysis": 0.5}
    assert "made new · analysis 500.00 ms" in str(made)


def test_fallback_is_shown(queue: fq.FusionQueue) -> None:
    x, out = fq.Buffer(np.ones(N, np.float32)), fq.Buffer(N, np.float32)
    queue.start_fusion()
    queue.submit(double, N, x, out)
    queue.cancel_fusion()
    report = queue.last_report
    assert report is not None
    assert report.strategy == "unfused"
    assert report.fallback
    assert f"Fallback: {report.fallback}" in str(report)


@fq.kernel
def _copied(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def _shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    if i > 0:
        out[i] = a[i - 1]


@pytest.mark.parametrize("strategy", ["auto", "overlap", "unfused"])
def test_a_buffer_has_one_name_whatever_the_program_calls_it(strategy):
    def step(kernel, source, sink):
        queue.submit(kernel, sink.shape, source, sink)

    first, middle, last = (fq.Buffer(8, np.float32, promote_local=k == 1) for k in range(3))
    with fq.FusionQueue("reference") as queue, fq.fusion(queue, strategy=strategy) as f:
        step(_copied, first, middle)  # in which `source` and `sink` name several buffers
        step(_shifted, middle, last)
        part = middle[4:]
        queue.submit(_copied, 4, part, last[:4])
        queue.submit(_copied, 8, middle, last)
    names = {(d.producer, d.consumer, d.kind): d.buffer for d in f.report.dependences}
    assert names[0, 1, "RAW"] == names[0, 2, "RAW"] == names[0, 3, "RAW"] == "middle"
    assert set(names.values()) == {"middle", "last"}
    assert {p.buffer for p in f.report.promotions} <= {"middle"}
    assert not re.search(r"\b(source|sink|part):", str(f.report))


def test_the_line_of_a_known_submission_is_that_of_the_first():
    x, y = fq.Buffer(8, np.float32), fq.Buffer(8, np.float32)
    with fq.FusionQueue("reference") as queue:
        with fq.fusion(queue) as first:
            queue.submit(_shifted, 8, x, y)
        with fq.fusion(queue) as again:
            queue.submit(_copied, 8, y, x)
            queue.submit(_shifted, 8, x, y)
    (known,) = [k for k in again.report.stages[-1].kernels if k.kernel == "_shifted"]
    assert known.span == first.report.stages[0].kernels[0].span


def test_buffers_that_take_turns_have_one_name():
    now, then = fq.Buffer(8, np.float32), fq.Buffer(8, np.float32)
    with fq.FusionQueue("reference") as queue, fq.fusion(queue) as f:
        for _ in range(3):
            queue.submit(_shifted, 8, now, then)
            now, then = then, now
    reads = {(d.producer, d.consumer): d.buffer for d in f.report.dependences if d.kind == "RAW"}
    assert reads == dict.fromkeys([(0, 1), (1, 2)], "now or then")
    assert {d.buffer for d in f.report.dependences} == {"now or then"}


def test_lists_that_run_unfused_are_analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from fusionq.planning import planner

    analysed = []
    make = planner.make_plan
    monkeypatch.setattr(
        planner, "make_plan", lambda *a, **k: analysed.append(len(a[0])) or make(*a, **k)
    )
    queue = fq.FusionQueue("reference")

    def report(n: int) -> Report:
        x, between, out = (fq.Buffer(n, np.float32) for _ in range(3))
        queue.start_fusion()
        queue.submit(_copied, n, x, between)
        queue.submit(_shifted, n, between, out)
        queue.cancel_fusion()
        made = queue.last_report
        assert made is not None and str(made) == str(queue.last_report)
        return made

    for n in (40, 41, 41):
        assert [d.scope for d in report(n).dependences] == ["GLOBAL"]
        assert f"Range({n})" in str(report(n))
    assert analysed.count(2) == 1
    assert [d.scope for d in report(1).dependences] == ["NONE"]
