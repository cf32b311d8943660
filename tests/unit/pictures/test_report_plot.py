"""``report.plot``: the picture of any fusion."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.megakernel.launch import PersistentLaunch
from fusionq.planning import overlap
from tests.unit.megakernel.cases import blur
from tests.unit.pictures.reports import (
    N,
    add_turned,
    buffers,
    double,
    long_names,
    mixed,
    sequence,
    shown,
    steps,
    text_of,
    texts,
)

pytest.importorskip("matplotlib")

from fusionq.report.pictures.fusion import figure_of


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("tiled", "launch 0, a work-group's tile of work-items: "),
        ("inlined", "a work-item of [1] blur: 1"),
    ],
)
def test_halos_to_scale(way: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PLANS, "_plans", OrderedDict())
    monkeypatch.setattr(overlap, "WAYS", (way,))
    a, out = buffers(2, 5000)
    between = fq.Buffer(5000, np.float64, internal=True)
    with (
        fq.FusionQueue("reference") as queue,
        fq.fusion(queue, strategy="overlap", promote="internal") as f,
    ):
        queue.submit(blur, 5000, a, between)
        queue.submit(blur, 5000, between, out)
    (r,) = f.report.recomputed
    figure = figure_of(f.report)
    assert shown(figure, "halo") == [("[0]", "blur"), ("tile",)]
    assert any(t.startswith(said) for t in texts(figure))
    (computed,) = r.computed if r.computed is not None else r.halo[0]
    (whole,) = r.tile or (1,)
    wanted = f"[0] blur: {computed} work-items, a halo of {computed - whole}"
    assert wanted in texts(figure)
    patches = {p.get_gid(): p for p in figure.axes[0].patches}
    boxes = patches["halo [0] blur"].get_bbox(), patches["halo tile"].get_bbox()
    assert boxes[1].width / boxes[0].width == pytest.approx(whole / computed)


def test_launches_dependences_barriers_and_promotions() -> None:
    figure = figure_of(sequence())
    assert text_of(figure, "title") == "fusionq: sequence, 4 submissions → 2 kernels"
    assert shown(figure, "launch") == [("0",), ("1",)]
    assert shown(figure, "submission") == [("0",), ("1",), ("2",), ("3",)]
    assert shown(figure, "dependence") == [
        ("0", "1", "ITEM"), ("1", "2", "GROUP"), ("2", "3", "GLOBAL"),
    ]  # fmt: skip
    assert shown(figure, "barrier") == [("2",)]
    written = texts(figure)
    assert [t for t in written if t.endswith("in private memory")] == [
        "reads private of [0]: RAW ITEM, in private memory"
    ]
    assert [t for t in written if t.endswith("in local memory")] == [
        "reads local of [1]: RAW GROUP, in local memory"
    ]
    assert any(t.startswith("apart: RAW dependence of submission 3 on") for t in written)


def test_what_follows_from_other_dependences_is_not_drawn() -> None:
    report = steps("sequence")
    pairs = {(d.producer, d.consumer) for d in report.dependences if d.scope != "NONE"}
    assert (0, 2) in pairs
    drawn = shown(figure_of(report), "dependence")
    assert {(int(p), int(c)) for p, c, _ in drawn} == {(0, 1), (1, 2), (2, 3)}


def test_a_wider_dependence_does_not_follow_from_narrower_ones() -> None:
    queue = fq.FusionQueue("reference")
    a, b, c, d = buffers(4)
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(double, N, a, b)
        queue.submit(double, N, b, c)
        queue.submit(add_turned, N, b, c, d)
    drawn = shown(figure_of(f.report), "dependence")
    assert drawn == [("0", "1", "ITEM"), ("0", "2", "GROUP"), ("1", "2", "ITEM")]


def test_submissions_that_do_not_fit_are_left_out_and_that_is_said() -> None:
    figure = figure_of(long_names())
    drawn = len(shown(figure, "submission"))
    assert 20 < drawn < 79
    said = text_of(figure, "submissions left out")
    assert said == f"{79 - drawn} of 79 submissions are not drawn"
    assert all(int(consumer) < drawn for _, consumer, _ in shown(figure, "dependence"))


def test_a_persistent_kernel_has_its_tiles() -> None:
    report = steps("megakernel")
    [schedule] = report.schedules
    assert schedule is not None
    figure = figure_of(report)
    assert len(shown(figure, "tile")) == len(schedule.stage)
    assert shown(figure, "launch") == []


def test_a_list_with_a_persistent_kernel_and_other_launches_has_both() -> None:
    report = mixed()
    figure = figure_of(report)
    assert len(shown(figure, "launch")) == len(report.stages) > 1
    drawn = sum(len(schedule.stage) for schedule in report.schedules if schedule is not None)
    assert len(shown(figure, "tile")) == drawn > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "report",
    [sequence, long_names, mixed, lambda: steps("sequence"), lambda: steps("megakernel", 20)],
)
def test_no_text_runs_into_another_or_out_of_the_page(report: Callable[[], fq.Report]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = figure_of(report())
    renderer = FigureCanvasAgg(figure).get_renderer()
    page = figure.bbox
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in figure.axes[0].texts]
    boxes += [(a.get_title("left"), a.get_tightbbox(renderer)) for a in figure.axes[1:]]
    for text, box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1, text
        assert page.y0 <= box.y0 < box.y1 <= page.y1, text
    for (one, a), (other, b) in combinations(boxes, 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
        assert apart, f"{one!r} runs into {other!r}"


@pytest.mark.parametrize(
    "suffix", ["png", *(pytest.param(s, marks=pytest.mark.slow) for s in ("svg", "pdf", "PNG"))]
)
def test_formats(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plan.{suffix}"
    steps("megakernel").plot(str(path))
    beginning = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix.lower()]
    assert path.read_bytes().startswith(beginning)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("plan.txt", r"plan\.txt: the ending .* \.png, \.svg, \.pdf"),
        ("plan", "the ending"),
        ("no/such/plan.png", "there is no folder"),
        ("folder.png", "it is a folder"),
    ],
)
def test_bad_paths(tmp_path: Path, name: str, complaint: str) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(fq.ArgumentError, match=complaint):
        steps("megakernel").plot(tmp_path / name)


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = steps("sequence")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(fq.FusionqError, match="pip install matplotlib"):
        report.plot(tmp_path / "plan.png")
    assert not list(tmp_path.iterdir())


def test_an_empty_fusion(tmp_path: Path) -> None:
    queue = fq.FusionQueue("reference")
    with pytest.warns(fq.FusionAborted), fq.fusion(queue) as f:
        pass
    f.report.plot(tmp_path / "plan.png")
    assert shown(figure_of(f.report), "submission") == []


def test_a_report_keeps_no_launch_alive() -> None:
    def launches() -> list[Any]:
        return [o for o in gc.get_objects() if type(o) is PersistentLaunch]

    gc.collect()
    before = set(map(id, launches()))
    queue = fq.FusionQueue("reference")
    report = steps_on(queue)
    launched = [o for o in launches() if id(o) not in before]
    assert len(launched) == 1
    control = weakref.ref(launched[0]._control.memory)
    del queue, launched
    gc.collect()
    assert control() is None
    assert len(shown(figure_of(report), "tile")) > 0


def steps_on(queue: fq.FusionQueue) -> fq.Report:
    """A persistent kernel's report; the memory goes with this call."""
    a, b = buffers(2)
    with fq.fusion(queue, strategy="megakernel") as f:
        queue.submit(blur, N, a, b)
        queue.submit(blur, N, b, a)
    return f.report
